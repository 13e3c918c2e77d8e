//! Instance types: GPUs, NICs, line rates, and which EFA counters carry the traffic. A profile may be `like` another
//! and give only what differs; whether the figures are possible is `hardware_limits`'s business.

use super::form;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::form::Form;
use crate::toml_reader::file::stem;
use crate::toml_reader::quantity::line_rate_of;
use crate::toml_reader::{self, Table, Value};
use base::nodeset;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An instance type, from `inventory/instances/NAME.toml` or an inventory's own table.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The file's stem, or `name` in an inventory; simulated ones begin with `sim-`.
    pub name: String,
    /// The profile that this one is like: suites for that one fit this one too.
    pub like: Option<String>,
    /// Of a node.
    pub gpus: u32,
    /// The model, as `H100`; the driver's name for it must contain the first word.
    pub gpu: String,
    /// What a GPU can compute of dense bfloat16 at most, by its data table; nothing where there is none.
    pub bf16_tflops: Option<f64>,
    /// Per GPU, one way.
    pub nvlink_gb_s: f64,
    /// Device names in natural order.
    pub nics: Vec<String>,
    /// Of one NIC, one way.
    pub nic_line_rate_gb_s: f64,
    /// What the NICs of one GPU's PCIe switch move together to and from the host's memory; nothing where it was
    /// not measured.
    pub host_link_gb_s: Option<f64>,
    /// What aws-ofi-nccl uses on it.
    pub transport: Transport,
    /// Counters that grow with data that leaves the node.
    pub tx_counters: Vec<String>,
    /// Counters that grow with data that arrives.
    pub rx_counters: Vec<String>,
    /// The operation by which data crosses the fabric.
    pub flow_op: FlowOp,
    /// Whether the conservation law of the counters has been shown on this instance.
    pub conservation_shown: bool,
    /// Whether the device names were ever seen; otherwise they stand in for names to be filled in.
    pub device_names_seen: bool,
    /// Where the figures come from.
    pub source: String,
}

/// The protocol of the OFI plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Sends and receives, as on p4d.
    Sendrecv,
    /// RDMA operations, as on p5.
    Rdma,
}

/// Who moves the data of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowOp {
    /// The sender, which is the flow tool's client.
    Write,
    /// The receiver, which is the flow tool's client.
    Read,
}

impl FlowOp {
    /// As in profiles: `write`.
    pub fn name(self) -> &'static str {
        match self {
            FlowOp::Write => "write",
            FlowOp::Read => "read",
        }
    }
}

impl Instance {
    /// Whether a suite for `suite_instance` may run here.
    pub fn fits(&self, suite_instance: &str) -> bool {
        self.name == suite_instance || self.like.as_deref() == Some(suite_instance)
    }

    /// With the device names that the nodes report.
    pub fn take_device_names(&mut self, nics: &[String]) {
        (self.nics, self.device_names_seen) = (nics.to_vec(), true);
    }

    /// By its name, which begins with `sim-`.
    pub fn is_simulated(&self) -> bool {
        self.name.starts_with("sim-")
    }

    /// The GPU that shares a PCIe switch with a NIC, where the node itself does not say: NICs in their order, divided
    /// evenly over the GPUs.
    pub fn gpu_of_nic(&self, nic: usize) -> u32 {
        let gpu = nic as u64 * u64::from(self.gpus) / self.nics.len().max(1) as u64;
        u32::try_from(gpu).unwrap_or_default().min(self.gpus.saturating_sub(1))
    }

    /// How many NICs share a PCIe switch with the same GPU, at most.
    pub fn nics_of_gpu(&self) -> u32 {
        let mut counts = std::collections::BTreeMap::new();
        for nic in 0..self.nics.len() {
            *counts.entry(self.gpu_of_nic(nic)).or_insert(0u32) += 1;
        }
        counts.into_values().max().unwrap_or(1)
    }

    /// What all NICs of a node carry together, one way.
    pub fn node_wire_gb_s(&self) -> f64 {
        self.nics.len() as f64 * self.nic_line_rate_gb_s
    }
}

/// All profiles by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instances {
    good: BTreeMap<String, Instance>,
    /// Names of profiles that could not be read; naming one is no further error.
    broken: BTreeSet<String>,
}

impl Instances {
    /// The profiles in `inventory/instances` under `home`.
    pub fn load(home: &Path) -> Result<Instances, Diagnostics> {
        let (files, mut diagnostics) = crate::toml_reader::folder::texts(home, "inventory/instances");
        let (instances, wrong) = Instances::read(&files);
        diagnostics.extend(wrong);
        if diagnostics.is_empty() { Ok(instances) } else { Err(Diagnostics(diagnostics)) }
    }

    /// Reads profiles from pairs of file name and text; what one is like may stand in any of them.
    pub fn read(files: &[(String, String)]) -> (Instances, Vec<Diagnostic>) {
        let mut instances = Instances::default();
        let mut diagnostics = Vec::new();
        let mut rest: Vec<&(String, String)> = files.iter().collect();
        // A profile is read once the one it is like has been; what then remains names nothing, or itself.
        rest.sort_by_key(|(_, text)| Reverse(like_of(text).is_none()));
        loop {
            let before = rest.len();
            rest.retain(|(file, text)| {
                let ready = like_of(text).is_none_or(|like| instances.get(&like).is_some());
                if ready {
                    diagnostics.extend(instances.add(file, text));
                }
                !ready
            });
            if rest.is_empty() {
                break;
            }
            if rest.len() == before {
                rest.iter().for_each(|(file, text)| diagnostics.extend(instances.add(file, text)));
                break;
            }
        }
        diagnostics.sort();
        (instances, diagnostics)
    }

    /// By its exact name; none where it is absent or could not be read.
    pub fn get(&self, name: &str) -> Option<&Instance> {
        self.good.get(name)
    }

    /// By a profile's name, or by EC2's name of a whole machine, `p5.48xlarge` or `ml.p5.48xlarge`.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Instance> {
        self.get(name).or_else(|| self.get(whole_machine(name)?))
    }

    /// Of those that could be read, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.good.keys().map(String::as_str)
    }

    /// Those that could be read, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.good.values()
    }

    /// Whether there is such a profile that could not be read.
    pub fn is_broken(&self, name: &str) -> bool {
        self.broken.contains(name)
    }

    fn add(&mut self, file: &str, text: &str) -> Vec<Diagnostic> {
        let name = stem(file).to_owned();
        match toml_reader::read(text, file, |table| profile(table, Some(name.clone()), self, form::instance))
        {
            Ok(instance) => {
                self.good.insert(name, instance);
                Vec::new()
            }
            Err(diagnostics) => {
                self.broken.insert(name);
                diagnostics.0
            }
        }
    }
}

/// The profile that is called like EC2's instance type: `p5` for `p5.48xlarge`, and for SageMaker's `ml.p5.48xlarge`.
/// Smaller sizes are parts of a machine.
pub fn whole_machine(kind: &str) -> Option<&str> {
    match kind.strip_prefix("ml.").unwrap_or(kind).split_once('.') {
        Some((name, "24xlarge" | "48xlarge")) => Some(name),
        _ => None,
    }
}

/// Whether a word is EC2's name of an instance type, or SageMaker's.
pub fn is_ec2_type(word: &str) -> bool {
    let Some((family, size)) = word.strip_prefix("ml.").unwrap_or(word).split_once('.') else { return false };
    let is_family = family.starts_with(|c: char| c.is_ascii_lowercase())
        && family.chars().any(|c| c.is_ascii_digit())
        && family.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_size = size.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    is_family && is_size && (size.ends_with("large") || size.starts_with("metal"))
}

/// A profile within an inventory, which says its own name.
pub(crate) fn inline(table: &Table<'_>, instances: &Instances) -> Option<Instance> {
    let name = table.need("name");
    let name = name.and_then(|value| {
        let name = value.non_empty_text()?;
        if instances.get(&name).is_some() {
            let message = format!("profile `{name}` exists already in `inventory/instances`");
            value.diagnostic_with(
                message,
                "choose another name, and write `like = ` if it differs only in part",
            );
        }
        Some(name)
    });
    profile(table, Some(name.unwrap_or_default()), instances, form::own_instance)
}

fn like_of(text: &str) -> Option<String> {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    Some(document.get_ref().get("like")?.get_ref().as_str()?.to_owned())
}

pub(super) const TRANSPORTS: [(&str, Transport); 2] =
    [("sendrecv", Transport::Sendrecv), ("rdma", Transport::Rdma)];
pub(super) const FLOWS: [(&str, FlowOp); 2] = [("write", FlowOp::Write), ("read", FlowOp::Read)];

/// Adds the error of a name that no profile has.
pub(super) fn unknown(value: &Value<'_>, name: &str, instances: &Instances) {
    match why_without_profile(name) {
        Some(why) => {
            value.diagnostic_with(format!("unknown {}: `{}`", value.key(), name.escape_debug()), why);
        }
        None => value.unknown(name, instances.names()),
    }
}

/// Why no profile ships for an instance that people ask for, and what to do.
pub fn why_without_profile(name: &str) -> Option<&'static str> {
    let name = name.trim_start_matches("sim-").trim_start_matches("ml.");
    (name.split('.').next() == Some("p6e-gb200")).then_some(
        "no profile of p6e-gb200 ships, because published numbers of its NICs differ; write a table `[instance]` with those of \
         your nodes",
    )
}

fn profile(
    table: &Table<'_>,
    name: Option<String>,
    instances: &Instances,
    keys: fn() -> Form,
) -> Option<Instance> {
    let like_value = table.get("like");
    let like = like_value.as_ref().and_then(|value| value.non_empty_text());
    let base = like.as_deref().and_then(|like| instances.get(like)).cloned();
    if let (Some(value), Some(like), None) = (&like_value, &like, &base)
        && !instances.is_broken(like)
    {
        match name.as_ref() == Some(like) {
            true => value.diagnostic(format!("a profile cannot be `like` itself: `{like}`")),
            false => unknown(value, like, instances),
        }
    }
    let field = Fields { table, is_needed: like_value.is_none() };
    let gpus = field.read("gpus", |value| value.small(1..=1024));
    let gpu = field.read("gpu", |value| value.non_empty_text());
    let bf16 = table.get("bf16_tflops").and_then(|value| positive(&value));
    let nvlink = field.read("nvlink_gb_s", positive);
    let nics = field.read("nics", nics_of);
    let line_rate = field.read("nic_line_rate", line_rate_of);
    let host_link = table.get("host_link_gb_s").and_then(|value| positive(&value));
    let transport = field.read("transport", |value| value.one_of(&TRANSPORTS));
    let tx_counters = field.read("tx_counters", counters_of);
    let rx_counters = field.read("rx_counters", counters_of);
    let flow_op = field.read("flow_op", |value| value.one_of(&FLOWS));
    let shown = field.read("conservation_shown", |value| value.boolean());
    let seen = table.get("device_names_seen").and_then(|value| value.boolean());
    let source = field.read("source", |value| value.non_empty_text());
    table.close(keys);
    let of = base.as_ref();
    // Another GPU has another peak, unless it is said to be the same.
    let same_gpu = gpu.as_ref().is_none_or(|gpu| of.is_some_and(|base| base.gpu == *gpu));
    Some(Instance {
        name: name?,
        like,
        gpus: gpus.or(of.map(|base| base.gpus))?,
        gpu: gpu.or(of.map(|base| base.gpu.clone()))?,
        bf16_tflops: bf16.or(of.and_then(|base| base.bf16_tflops).filter(|_| same_gpu)),
        nvlink_gb_s: nvlink.or(of.map(|base| base.nvlink_gb_s))?,
        nics: nics.or(of.map(|base| base.nics.clone()))?,
        nic_line_rate_gb_s: line_rate.or(of.map(|base| base.nic_line_rate_gb_s))?,
        host_link_gb_s: host_link.or(of.and_then(|base| base.host_link_gb_s)),
        transport: transport.or(of.map(|base| base.transport))?,
        tx_counters: tx_counters.or(of.map(|base| base.tx_counters.clone()))?,
        rx_counters: rx_counters.or(of.map(|base| base.rx_counters.clone()))?,
        flow_op: flow_op.or(of.map(|base| base.flow_op))?,
        conservation_shown: shown.or(of.map(|base| base.conservation_shown))?,
        device_names_seen: seen.or(of.map(|base| base.device_names_seen)).unwrap_or(true),
        source: source.or(of.map(|base| base.source.clone()))?,
    })
}

struct Fields<'t, 'a> {
    table: &'t Table<'a>,
    /// A profile that is like another may leave out what is the same.
    is_needed: bool,
}

impl<'a> Fields<'_, 'a> {
    fn read<T>(&self, key: &'static str, read: impl Fn(&Value<'a>) -> Option<T>) -> Option<T> {
        let value = if self.is_needed { self.table.need(key) } else { self.table.get(key) };
        read(&value?)
    }
}

fn positive(value: &Value<'_>) -> Option<f64> {
    let number = value.number()?;
    if number <= 0.0 {
        value.diagnostic(format!("`{}` must be above 0, not: {number}", value.key()));
        return None;
    }
    Some(number)
}

fn nics_of(value: &Value<'_>) -> Option<Vec<String>> {
    let mut names = value.parsed(nodeset::expand(&value.text()?))?;
    nodeset::sort(&mut names);
    if names.len() > 1024 {
        value.diagnostic(format!("a node has at most 1024 NICs, not: {}", names.len()));
        return None;
    }
    Some(names)
}

/// Names of counters, which become names of files on the nodes.
fn counters_of(value: &Value<'_>) -> Option<Vec<String>> {
    let names = value.texts();
    let is_name =
        |name: &String| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if let Some(odd) = names.iter().find(|name| !is_name(name)) {
        value.diagnostic(format!("not a counter name: {odd:?}"));
        return None;
    }
    if names.is_empty() {
        value.diagnostic(format!("`{}` is an empty list", value.key()));
        return None;
    }
    Some(names)
}
