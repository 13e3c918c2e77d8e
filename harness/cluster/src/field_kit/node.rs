//! What the harness assumes of a node's hardware, drivers and system.

use super::Outcome::{self, Differs, Holds, NotSeen};
use super::evidence::{Section, section};
use super::{Assumption, Evidence, On, assumption};
use base::nodeset;
use base::text;
use config::inventory::{Instance, Inventory};
use model::artefact::Value;
use plan::EXCLUDED_INTERFACES;
use std::collections::{BTreeMap, BTreeSet};

type Sections = BTreeMap<String, Section>;

const COUNTERS: &str = "ls ports/1/hw_counters";
const DEVICES: &str = "/sys/class/infiniband";

pub(super) const ASSUMPTIONS: &[Assumption] = &[
    assumption(
        "node.instance",
        "the firmware names the instance type of the inventory",
        "/sys/class/dmi/id/product_name",
        "EC2 documentation, identify instances",
        On::Any,
        instance,
    ),
    assumption(
        "node.gpus",
        "a node has the GPUs of its instance",
        "nvidia-smi",
        "the instance's profile",
        On::Any,
        gpus,
    ),
    assumption(
        "node.nic_names",
        "the EFA devices have the names of the instance's profile",
        DEVICES,
        "published device lists of p4d, p5 and p5en",
        On::Any,
        nic_names,
    ),
    assumption(
        "node.other_rdma",
        "every RDMA device is EFA",
        "device/vendor is 0x1d0f",
        "p6-b200 lists two mlx5 beside 8 EFA devices (aws-do-eks)",
        On::Any,
        other_rdma,
    ),
    assumption(
        "node.links",
        "the link of every EFA device is active",
        "ports/1/state",
        "the kernel's sysfs of RDMA devices",
        On::Any,
        links,
    ),
    assumption(
        "node.line_rate",
        "a device reports the line rate of the instance's profile",
        "ports/1/rate",
        "stas00 ml-engineering, network/README.md",
        On::Any,
        line_rate,
    ),
    assumption(
        "node.counters",
        "hw_counters has the counters that carry this instance's traffic",
        COUNTERS,
        "amzn-drivers, efa_verbs.c",
        On::Any,
        counters,
    ),
    assumption(
        "node.retrans",
        "the EFA driver counts retransmissions (2.17 or newer)",
        COUNTERS,
        "amzn-drivers, efa RELEASENOTES.md, r2.17.0",
        On::Any,
        retrans,
    ),
    assumption(
        "node.rx_drops",
        "the EFA driver counts dropped packets",
        COUNTERS,
        "amzn-drivers, efa_verbs.c",
        On::Any,
        rx_drops,
    ),
    assumption(
        "node.rdma_traffic",
        "what NICs have sent since the boot went by RDMA: by SENDRECV, or over TCP, the counters of a run stand still",
        "values of ports/1/hw_counters",
        "aws-ofi-nccl, platform-aws: RDMA on p5, SENDRECV on p4; amzn-drivers, efa_verbs.c",
        On::Any,
        rdma_traffic,
    ),
    assumption(
        "node.gpu_of_nic",
        "each NIC has a GPU behind the same PCIe switch",
        "the path of `device` in sysfs",
        "aws-ofi-nccl topologies; lstopo of a p5",
        On::Any,
        gpu_of_nic,
    ),
    assumption(
        "node.host_link",
        "what a PCIe switch of NICs moves to and from the host's memory is as the profile has it",
        "current_link_speed and current_link_width of the root ports",
        "lstopo of a p5: 15.75 GB/s, of which nvbandwidth measures 14.2",
        On::Any,
        host_link,
    ),
    assumption(
        "node.nvlink",
        "all NVLinks run, at the rate of the instance's profile",
        "the probe: nvidia-smi nvlink -s",
        "the instance's profile",
        On::Any,
        nvlink,
    ),
    assumption(
        "node.memlock",
        "a process may lock all memory",
        "ulimit -l",
        "EFA documentation, memlock limits",
        On::Any,
        memlock,
    ),
    assumption(
        "node.gdrdrv",
        "programs may open /dev/gdrdrv: without it small messages of GPUs are copied by slower calls",
        "/sys/module/gdrdrv, /dev/gdrdrv",
        "libfabric, hmem of CUDA: FI_HMEM_CUDA_USE_GDRCOPY",
        On::Any,
        gdrdrv,
    ),
    assumption(
        "node.shared",
        "nodes can write the folder that all nodes see",
        "the probe",
        "the inventory's `paths.shared`",
        On::Any,
        shared,
    ),
    assumption("node.bash", "bash is 4.2 or newer", "bash", "Amazon Linux 2 has 4.2", On::Any, bash),
    assumption(
        "node.interfaces",
        "no virtual interface is left for MPI and NCCL to pick",
        "/sys/class/net",
        "AWS's job scripts exclude lo, docker0 and veth_def_agent",
        On::Any,
        interfaces,
    ),
    assumption(
        "node.environment",
        "jobs find no variable of NCCL, libfabric or MPI set that the inventory does not set",
        "env",
        "sbatch exports the submitter's environment",
        On::Any,
        environment,
    ),
];

fn seen<T>(result: Result<T, Outcome>, then: impl FnOnce(T) -> Outcome) -> Outcome {
    result.map_or_else(|outcome| outcome, then)
}

/// A row of the section `devices`.
struct Device<'a> {
    name: &'a str,
    vendor: &'a str,
    state: &'a str,
    rate: &'a str,
    path: &'a str,
}

const EFA_VENDOR: &str = "0x1d0f";

impl Device<'_> {
    /// A device that does not report its vendor counts as EFA: older kernels have no such file.
    fn is_efa(&self) -> bool {
        matches!(self.vendor, EFA_VENDOR | "-" | "")
    }
}

fn device(row: &str) -> Option<Device<'_>> {
    let mut fields = row.split('|').map(str::trim);
    let mut next = || fields.next();
    Some(Device { name: next()?, vendor: next()?, state: next()?, rate: next()?, path: next()? })
}

fn devices(sections: &Sections) -> Result<Vec<Device<'_>>, Outcome> {
    let rows = section(sections, "devices")?;
    let devices: Option<Vec<Device<'_>>> = rows.names().map(device).collect();
    devices.ok_or_else(|| NotSeen(format!("unexpected row of devices: {}", rows.first())))
}

fn efa(sections: &Sections) -> Result<Vec<Device<'_>>, Outcome> {
    Ok(devices(sections)?.into_iter().filter(Device::is_efa).collect())
}

/// The instance by AWS's name, without what makes it a simulated one.
pub(super) fn base_name(instance: &Instance) -> &str {
    let own = instance.name.trim_start_matches("sim-");
    match &instance.like {
        Some(like) if !own.starts_with('p') => like.trim_start_matches("sim-"),
        _ => own,
    }
}

fn instance(evidence: &Evidence<'_>) -> Outcome {
    let wanted = base_name(&evidence.inventory.instance);
    evidence.each(|sections| {
        seen(section(sections, "product"), |product| {
            let product = product.first();
            let family = product.trim_start_matches("ml.").split('.').next().unwrap_or_default();
            match family == wanted {
                true => Holds(product.to_owned()),
                false => Differs(format!("{product}, the inventory has {wanted}")),
            }
        })
    })
}

fn gpus(evidence: &Evidence<'_>) -> Outcome {
    let Instance { gpus, gpu, .. } = &evidence.inventory.instance;
    evidence.each(|sections| {
        seen(section(sections, "gpus"), |rows| {
            let models: BTreeSet<&str> = rows.names().filter_map(|row| row.split('|').nth(1)).collect();
            let count = rows.names().count();
            let model = gpu.split_whitespace().next().unwrap_or_default();
            let shown = format!("{count} x {}", models.iter().copied().collect::<Vec<_>>().join(" and "));
            let is_so = count == *gpus as usize
                && models.len() == 1
                && models.iter().all(|name| name.contains(model));
            if is_so { Holds(shown) } else { Differs(format!("{shown}, the profile has {gpus} x {gpu}")) }
        })
    })
}

fn nic_names(evidence: &Evidence<'_>) -> Outcome {
    let wanted: BTreeSet<&str> = evidence.inventory.instance.nics.iter().map(String::as_str).collect();
    evidence.each(|sections| {
        seen(efa(sections), |devices| {
            let found: BTreeSet<&str> = devices.iter().map(|device| device.name).collect();
            let names: Vec<String> = found.iter().map(|name| (*name).to_owned()).collect();
            match found == wanted {
                true => Holds(nodeset::fold(&names)),
                false => Differs(format!("{} of {}: {}", found.len(), wanted.len(), nodeset::fold(&names))),
            }
        })
    })
}

fn other_rdma(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(devices(sections), |devices| {
            let others: Vec<String> = devices
                .iter()
                .filter(|device| !device.is_efa())
                .map(|device| format!("{} {}", device.name, device.vendor))
                .collect();
            match others.is_empty() {
                true => Holds(text::count(devices.len(), "device")),
                false => Differs(others.join(", ")),
            }
        })
    })
}

fn links(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(efa(sections), |devices| {
            let silent = devices.iter().filter(|device| matches!(device.state, "-" | "")).count();
            let down: Vec<String> = devices
                .iter()
                .filter(|device| !matches!(device.state, "-" | "") && !device.state.contains("ACTIVE"))
                .map(|device| format!("{} {}", device.name, device.state))
                .collect();
            match (devices.len(), down.is_empty(), silent) {
                (0, ..) => Differs("no EFA device".to_owned()),
                (_, false, _) => Differs(down.join(", ")),
                (count, true, 0) => Holds(format!("{count} active")),
                (_, true, silent) => NotSeen(format!("no `state` of {}", text::count(silent, "device"))),
            }
        })
    })
}

fn line_rate(evidence: &Evidence<'_>) -> Outcome {
    let wanted = evidence.inventory.instance.nic_line_rate_gb_s * 8.0;
    evidence.each(|sections| {
        seen(efa(sections), |devices| {
            let rates: BTreeSet<&str> = devices.iter().map(|device| device.rate).collect();
            let number =
                |rate: &&str| rate.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            let numbers: Option<Vec<f64>> = rates.iter().map(number).collect();
            let shown = rates.iter().copied().collect::<Vec<_>>().join(" and ");
            match numbers.as_deref() {
                None | Some([]) => NotSeen(format!("no rate in: {shown}")),
                Some(numbers) if numbers.iter().all(|rate| (rate - wanted).abs() < 0.5) => Holds(shown),
                Some(_) => Differs(format!("{shown}, the profile has {wanted} Gb/s")),
            }
        })
    })
}

fn has_counters(evidence: &Evidence<'_>, wanted: &[String]) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "counters"), |section| {
            let names: BTreeSet<&str> = section.names().collect();
            let missing: Vec<&str> =
                wanted.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
            match missing.is_empty() {
                true => Holds(format!("{} counters", names.len())),
                false => Differs(format!("no {}", missing.join(", "))),
            }
        })
    })
}

fn counters(evidence: &Evidence<'_>) -> Outcome {
    let Instance { tx_counters, rx_counters, .. } = &evidence.inventory.instance;
    has_counters(evidence, &[tx_counters.as_slice(), rx_counters.as_slice()].concat())
}

fn retrans(evidence: &Evidence<'_>) -> Outcome {
    has_counters(evidence, &["retrans_bytes", "retrans_pkts", "retrans_timeout_events"].map(str::to_owned))
}

fn rx_drops(evidence: &Evidence<'_>) -> Outcome {
    has_counters(evidence, &["rx_drops".to_owned()])
}

/// Less was not the traffic of a job.
const LEAST_TRAFFIC: u64 = GB;
const GB: u64 = 1_000_000_000;

/// Counters of all devices together, as NAME VALUE; `send_bytes` are those of messages, which RDMA needs few of.
fn rdma_traffic(evidence: &Evidence<'_>) -> Outcome {
    let names = &evidence.inventory.instance.tx_counters;
    evidence.each(|sections| {
        seen(section(sections, "traffic"), |rows| {
            let values: Option<BTreeMap<&str, u64>> = rows
                .names()
                .map(|row| row.split_once(' ').and_then(|(name, value)| Some((name, value.parse().ok()?))))
                .collect();
            let Some(values) = values else {
                return NotSeen(format!("unexpected row of counters: {}", rows.first()));
            };
            let Some(sent) = values.get("send_bytes").copied() else {
                return NotSeen("no send_bytes".to_owned());
            };
            let by_rdma = names.iter().filter_map(|name| values.get(name.as_str()));
            let by_rdma = by_rdma.fold(0_u64, |sum, value| sum.saturating_add(*value));
            let shown = format!("{} GB by {}, {} GB by messages", by_rdma / GB, names.join(", "), sent / GB);
            match by_rdma.saturating_add(sent) {
                0..LEAST_TRAFFIC => NotSeen(format!("no job has run since the boot: {shown}")),
                _ if by_rdma >= sent => Holds(shown),
                _ => Differs(shown),
            }
        })
    })
}

/// The bridges that a device lies behind, the root port first, without its own address.
fn bridges(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.pop();
    parts
}

fn gpu_of_nic(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(efa(sections), |nics| {
            seen(section(sections, "gpus"), |rows| {
                let gpus: Vec<Vec<&str>> =
                    rows.names().map(|row| bridges(row.split('|').nth(3).unwrap_or_default())).collect();
                let is_known = |path: &[&str]| !path.is_empty();
                if nics.is_empty() || gpus.is_empty() || !gpus.iter().all(|path| is_known(path)) {
                    return NotSeen("sysfs shows no PCIe path of GPUs, or no NIC".to_owned());
                }
                // A root port has one link: what lies behind the same one shares it.
                let shares = |nic: &[&str], gpu: &[&str]| nic.first() == gpu.first();
                let mut alone: Vec<&str> = Vec::new();
                for nic in &nics {
                    let path = bridges(nic.path);
                    if !is_known(&path) {
                        return NotSeen(format!("sysfs shows no PCIe path of {}", nic.name));
                    }
                    if !gpus.iter().any(|gpu| shares(&path, gpu)) {
                        alone.push(nic.name);
                    }
                }
                match alone.as_slice() {
                    [] => Holds(text::count(nics.len(), "NIC")),
                    [first, ..] => {
                        Differs(format!("{} of {} NICs have none, such as {first}", alone.len(), nics.len()))
                    }
                }
            })
        })
    })
}

/// Of a row ADDRESS|SPEED|WIDTH, as sysfs has them: `16.0 GT/s PCIe` and `8` carry 15.75 GB/s.
fn link_gb_s(row: &str) -> Option<f64> {
    let mut fields = row.split('|').skip(1).map(str::trim);
    let gt_s: f64 = fields.next()?.split_whitespace().next()?.parse().ok()?;
    let lanes: u8 = fields.next()?.parse().ok()?;
    // Before Gen3 a byte was ten bits on the wire.
    let coding = if gt_s < 8.0 { 0.8 } else { 128.0 / 130.0 };
    (gt_s > 0.0 && gt_s < 1000.0 && lanes > 0).then(|| gt_s * f64::from(lanes) * coding / 8.0)
}

/// A copy reaches at least this part of what a link carries.
const REACHED: f64 = 0.8;

fn host_link(evidence: &Evidence<'_>) -> Outcome {
    let instance = &evidence.inventory.instance;
    // Where the profile knows no limit, all NICs of a switch run at once.
    let (least, most, profile) = match instance.host_link_gb_s {
        Some(link) => (link, link / REACHED, format!("the profile has {link} GB/s")),
        None => {
            let (nics, rate) = (f64::from(instance.nics_of_gpu()), instance.nic_line_rate_gb_s);
            (nics * rate, f64::INFINITY, format!("for {nics} x {rate} GB/s"))
        }
    };
    evidence.each(|sections| {
        seen(section(sections, "host_links"), |rows| {
            let links: Option<Vec<f64>> = rows.names().map(link_gb_s).collect();
            let Some(links) = links.filter(|links| !links.is_empty()) else {
                return NotSeen(format!("unexpected row of links: {}", rows.first()));
            };
            let shown: BTreeSet<String> = links.iter().map(|link| format!("{link:.2}")).collect();
            let shown = shown.into_iter().collect::<Vec<_>>().join(" and ");
            let shown = format!("{} of {shown} GB/s, {profile}", text::count(links.len(), "link"));
            match links.iter().all(|link| (least..=most).contains(link)) {
                true => Holds(shown),
                false => Differs(shown),
            }
        })
    })
}

/// `144 at 26.562 GB/s`: the number and the rate.
fn nvlinks(entry: &str) -> Option<(f64, f64)> {
    let (count, rate) = entry.split_once(" at ")?;
    let rate: f64 = rate.split_whitespace().next()?.parse().ok()?;
    Some((f64::from(count.trim().parse::<u16>().ok()?), rate)).filter(|_| rate > 0.0 && rate < 1000.0)
}

fn nvlink(evidence: &Evidence<'_>) -> Outcome {
    let Instance { gpus, nvlink_gb_s, .. } = &evidence.inventory.instance;
    evidence.each_fact("nvlinks", |value| {
        let Value::Names(entries) = value else { return NotSeen(format!("unexpected list: {value}")) };
        let shown = entries.join(", ");
        let of_gpu = match entries.as_slice() {
            [] => return NotSeen("the probe lists no NVLink".to_owned()),
            [entry] => nvlinks(entry).map(|(count, rate)| count * rate / f64::from(*gpus)),
            // Some are slower than others, or not there.
            _ => return Differs(shown),
        };
        match of_gpu {
            None => NotSeen(format!("unexpected list: {shown}")),
            // Drivers report the rate of the wire or that of the data.
            Some(of_gpu) if of_gpu >= nvlink_gb_s * 0.98 => Holds(shown),
            Some(of_gpu) => {
                Differs(format!("{shown}: {of_gpu:.0} GB/s of a GPU, the profile has {nvlink_gb_s}"))
            }
        }
    })
}

fn memlock(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "memlock"), |section| match section.first() {
            "unlimited" => Holds("unlimited".to_owned()),
            "" => NotSeen("ulimit printed nothing".to_owned()),
            other => Differs(format!("{other} KiB")),
        })
    })
}

fn gdrdrv(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "gdrdrv"), |section| match section.first() {
            // A container may have the device, and not the kernel's list of modules.
            "module loaded device open" | "module absent device open" => Holds("it opens".to_owned()),
            "module loaded device refused" | "module absent device refused" => {
                Differs("/dev/gdrdrv is there, and may not be opened".to_owned())
            }
            "module loaded device absent" => {
                Differs("gdrdrv is loaded, and there is no /dev/gdrdrv".to_owned())
            }
            "module absent device absent" => Differs("gdrdrv is not loaded".to_owned()),
            other => NotSeen(format!("unexpected row of gdrdrv: {other}")),
        })
    })
}

fn shared(evidence: &Evidence<'_>) -> Outcome {
    evidence.each_fact("shared", |value| match value {
        Value::Text(text) if text == "writable" => Holds(text.clone()),
        other => Differs(other.to_string()),
    })
}

fn bash(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "bash"), |section| {
            let version = section.first();
            match config::facts::compare_versions(version, "4.2").is_lt() {
                true => Differs(version.to_owned()),
                false => Holds(version.to_owned()),
            }
        })
    })
}

/// Whether a variable that leaves interfaces out, or names those to take, keeps this one from being used.
fn is_excluded(variable: &str, interface: &str, inventory: &Inventory) -> bool {
    let (excludes, interfaces) = EXCLUDED_INTERFACES;
    let value = inventory.environment.get(variable).map(String::as_str);
    let Some(value) = value.or((variable == excludes).then_some(interfaces)) else { return false };
    let leaves_out = variable.ends_with("_exclude") || value.starts_with('^');
    let matches = value.trim_start_matches('^').split(',').any(|begins| {
        let begins = begins.trim();
        !begins.is_empty()
            && match variable.starts_with("NCCL_") {
                true => interface.starts_with(begins.trim_start_matches('=')),
                false => interface == begins,
            }
    });
    matches == leaves_out
}

fn interfaces(evidence: &Evidence<'_>) -> Outcome {
    let inventory = evidence.inventory;
    evidence.each(|sections| {
        seen(section(sections, "interfaces"), |section| {
            let virtual_ones: Vec<&str> = section
                .names()
                .filter(|name| name.starts_with("docker") || name.starts_with("veth"))
                .collect();
            let variables = match inventory.container {
                // An image of AWS's sets them itself.
                Some(_) => &["NCCL_SOCKET_IFNAME"][..],
                None => &["OMPI_MCA_btl_tcp_if_exclude", "NCCL_SOCKET_IFNAME"][..],
            };
            for name in &virtual_ones {
                // NCCL leaves docker* out by itself.
                let is_left = |variable: &&&str| {
                    let by_itself = variable.starts_with("NCCL_")
                        && name.starts_with("docker")
                        && !inventory.environment.contains_key(**variable);
                    !by_itself && !is_excluded(variable, name, inventory)
                };
                if let Some(variable) = variables.iter().find(is_left) {
                    return Differs(format!("{name}, which `{variable}` of the inventory does not exclude"));
                }
            }
            Holds(match virtual_ones.as_slice() {
                [] => "none".to_owned(),
                some => format!("{} excluded", some.join(" ")),
            })
        })
    })
}

fn environment(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "environment"), |section| {
            let strange: Vec<&str> = section
                .names()
                .filter_map(|row| row.split_once('='))
                .filter(|(name, value)| {
                    evidence.inventory.environment.get(*name).is_none_or(|ours| ours != value)
                })
                .map(|(name, _)| name)
                .collect();
            match strange.is_empty() {
                true => Holds("none".to_owned()),
                false => Differs(strange.join(" ")),
            }
        })
    })
}
