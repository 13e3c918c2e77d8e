//! Which of Kubernetes' nodes an inventory is made of, and why each of the others is not.

use super::limits::Room;
use super::nodes::{Node, Taint};
use super::{Discovered, Request};
use crate::discover::selection::{instance_of, profile_name};
use crate::discover::{Failure, LeftOut};
use base::nodeset;
use base::text::count;
use config::inventory::Instance;
use config::inventory::Instances;
use std::collections::{BTreeMap, BTreeSet};

/// Pods are pinned by it.
const HOSTNAME: &str = "kubernetes.io/hostname";
const TYPES: [&str; 2] = ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"];
const GPU: &str = "nvidia.com/gpu";
const EFA: &str = "vpc.amazonaws.com/efa";
const HUGEPAGES: &str = "hugepages-2Mi";
/// What a pod with EFA devices asks for where the inventory says nothing else.
const HUGEPAGE_BYTES: u64 = 5 << 30;
/// Taints that keep pods without devices away from nodes that have some.
const DEVICE_TAINTS: [&str; 2] = [GPU, EFA];
/// HyperPod's labels, and the values with which a node takes jobs.
const HEALTH: [(&str, &str); 2] = [
    ("sagemaker.amazonaws.com/node-health-status", "Schedulable"),
    ("sagemaker.amazonaws.com/deep-health-check-status", "Passed"),
];
/// Labels whose values say what nodes share, widest first.
const SHARED: [&str; 7] = [
    "topology.kubernetes.io/zone",
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    "sagemaker.amazonaws.com/instance-group-name",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
];

pub(super) fn select(
    mut nodes: Vec<Node>,
    request: &Request,
    instances: &Instances,
) -> Result<Discovered, Failure> {
    nodes.sort_by(|a, b| nodeset::compare(&a.name, &b.name));
    let asked = request.instance.as_deref();
    let kinds: BTreeSet<&str> = nodes.iter().filter(|node| has_gpus(node)).filter_map(kind_of).collect();
    let instance = instance_of(&kinds, asked, instances, "Kubernetes")?;
    let nics = instance.nics.len() as u64;
    let has_efa = nics > 0 && nodes.iter().any(|node| node.allocatable(EFA).is_some_and(|n| n > 0));
    let has_hugepages = has_efa && nodes.iter().any(has_hugepages);
    let needs = Needs { instance, has_efa, has_hugepages, tolerations: &request.tolerations };
    let mut left_out = Vec::new();
    nodes.retain(|node| match needs.missing(node) {
        Some(why) => {
            left_out.push(LeftOut { node: node.name.clone(), why });
            false
        }
        None => true,
    });
    // Two nodes that call themselves alike are one to a pod.
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes {
        *names.entry(node.label(HOSTNAME).unwrap_or_default()).or_default() += 1;
    }
    if let Some((name, many)) = names.into_iter().find(|(_, many)| *many > 1) {
        return Err(Failure::NoAnswer(format!(
            "{} have the label `{HOSTNAME}={name}`, and pods are pinned by it",
            count(many, "node")
        )));
    }
    if nodes.is_empty() {
        return Err(Failure::NoUsableNode(left_out));
    }
    let mut notes = Vec::new();
    if nics > 0 && !has_efa {
        notes.push(format!(
            "no node offers {EFA}: pods ask for no EFA device (efa = 0), and NCCL will talk TCP; is the EFA device plugin installed?"
        ));
    }
    if has_efa && !has_hugepages {
        notes.push(format!(
            "no node offers {HUGEPAGES}: pods ask for none (hugepages = false); EFA may not start"
        ));
    }
    let taints: BTreeSet<&Taint> =
        nodes.iter().flat_map(|node| &node.taints).filter(|taint| keeps_away(taint)).collect();
    Ok(Discovered {
        instance: instance.name.clone(),
        cluster: None,
        groups: groups(&nodes, &mut notes),
        taints: taints.into_iter().cloned().collect(),
        has_efa,
        has_hugepages,
        room: Room { cpu: least(&nodes, "cpu"), memory: least(&nodes, "memory") },
        wanted: Vec::new(),
        nodes: nodes.iter().filter_map(|node| node.label(HOSTNAME)).map(str::to_owned).collect(),
        left_out,
        notes,
    })
}

/// What a node must have.
struct Needs<'a> {
    instance: &'a Instance,
    has_efa: bool,
    has_hugepages: bool,
    tolerations: &'a [String],
}

impl Needs<'_> {
    /// The first thing that keeps a pod from it.
    fn missing(&self, node: &Node) -> Option<String> {
        let Some(name) = node.label(HOSTNAME) else {
            return Some(format!("it has no label `{HOSTNAME}`"));
        };
        if nodeset::expand(name) != Ok(vec![name.to_owned()]) {
            return Some("its name is not a valid node name".to_owned());
        }
        if let Some(why) = node.leaving() {
            return Some(format!("leaving: {why}"));
        }
        if let Some(why) = node.not_ready() {
            return Some(why);
        }
        if let Some(why) = unhealthy(node) {
            return Some(why);
        }
        if node.is_cordoned {
            return Some("cordoned".to_owned());
        }
        let bears = |taint: &&Taint| {
            DEVICE_TAINTS.contains(&taint.key.as_str()) || self.tolerations.contains(&taint.key)
        };
        if let Some(taint) = node.taints.iter().filter(|taint| keeps_away(taint)).find(|taint| !bears(taint))
        {
            let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
            return Some(format!(
                "taint {}{value}:{}; `--toleration {}` if pods may bear it",
                taint.key, taint.effect, taint.key
            ));
        }
        let instance = self.instance;
        if let Some(kind) = kind_of(node)
            && profile_name(kind) != Some(instance.name.as_str())
        {
            return Some(format!("its type is `{kind}`, expected {}", instance.name));
        }
        let gpus = node.allocatable(GPU).unwrap_or(0);
        if gpus != u64::from(instance.gpus) {
            return Some(format!("{GPU}: {gpus}, {} has {}", instance.name, instance.gpus));
        }
        let nics = instance.nics.len() as u64;
        let efa = node.allocatable(EFA).unwrap_or(0);
        if self.has_efa && efa != nics {
            return Some(format!("{EFA}: {efa}, {} has {nics}", instance.name));
        }
        (self.has_hugepages && !has_hugepages(node))
            .then(|| format!("{HUGEPAGES}: less than the 5Gi that pods with EFA devices ask for"))
    }
}

/// Whether a node is of that instance and takes pods that bear these taints.
pub(crate) fn takes_pods(node: &Node, instance: &Instance, tolerations: &[String]) -> bool {
    Needs { instance, has_efa: false, has_hugepages: false, tolerations }.missing(node).is_none()
}

/// As pods are pinned to it.
pub(crate) fn hostname(node: &Node) -> Option<&str> {
    node.label(HOSTNAME)
}

/// What HyperPod's labels say of its health.
pub(crate) fn health_labels(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    HEALTH.iter().filter_map(|(key, _)| Some((*key, node.label(key)?)))
}

/// Which of them keeps jobs from it.
pub(crate) fn unhealthy(node: &Node) -> Option<String> {
    HEALTH.iter().find_map(|(key, good)| {
        let value = node.label(key).filter(|value| value != good)?;
        Some(format!("HyperPod's label {key} is `{value}`"))
    })
}

fn has_gpus(node: &Node) -> bool {
    node.allocatable(GPU).is_some_and(|gpus| gpus > 0)
}

fn has_hugepages(node: &Node) -> bool {
    node.allocatable(HUGEPAGES).is_some_and(|bytes| bytes >= HUGEPAGE_BYTES)
}

/// What each of them has at least; nothing where that is not known of one.
fn least(nodes: &[Node], resource: &str) -> Option<u128> {
    let each: Option<Vec<u128>> = nodes.iter().map(|node| node.allocatable_milli(resource)).collect();
    each?.into_iter().min()
}

fn keeps_away(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

fn kind_of(node: &Node) -> Option<&str> {
    TYPES.iter().find_map(|key| node.label(key))
}

/// Nodes by what they share. A value that stands for two different sets of nodes names neither.
fn groups(nodes: &[Node], notes: &mut Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ambiguous = BTreeSet::new();
    for key in SHARED {
        let mut of_key: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for node in nodes {
            if let (Some(value), Some(name)) = (node.label(key), node.label(HOSTNAME)) {
                of_key.entry(value).or_default().push(name.to_owned());
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        of_key.retain(|value, members| members.len() < nodes.len() && value.chars().all(is_name));
        for (value, members) in of_key {
            let known = groups.entry(value.to_owned()).or_insert_with(|| members.clone());
            if *known != members {
                ambiguous.insert(value.to_owned());
            }
        }
    }
    for name in ambiguous {
        groups.remove(&name);
        notes.push(format!(
            "`{name}` is the value of several labels with different nodes: no group is made of it"
        ));
    }
    groups
}
