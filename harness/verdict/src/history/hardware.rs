//! Which hardware a node's name stood for in each run, by what its probe read: the UUIDs of its GPUs, else the machine's id.
//! What a run says of hardware that is gone is no suspicion of what came in its place, and a GPU that moved is followed.

use super::past::{Past, Run};
use super::suspects::SuspectedPart;
use model::artefact::{Probe, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const OTHER_HARDWARE: &str = "other hardware has this name now";
const OTHER_GUID: &str = "the device has another GUID";

/// What a probe read of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    machine: Option<String>,
    /// Their UUIDs, by `gpuN`.
    gpus: BTreeMap<String, String>,
    /// Their GUIDs, by device.
    nics: BTreeMap<String, String>,
}

impl Hardware {
    /// Of the facts of a node; nothing where they do not say.
    pub fn from_facts(facts: &BTreeMap<String, Value>) -> Option<Hardware> {
        let machine = match facts.get("machine") {
            Some(Value::Text(machine)) => Some(machine.clone()),
            _ => None,
        };
        let gpus: BTreeMap<String, String> = match facts.get("gpu_ids") {
            Some(Value::Names(rows)) => rows.iter().filter_map(|row| gpu(row)).collect(),
            _ => BTreeMap::new(),
        };
        let nics: BTreeMap<String, String> = match facts.get("nic_ids") {
            Some(Value::Names(rows)) => rows.iter().filter_map(|row| nic(row)).collect(),
            _ => BTreeMap::new(),
        };
        let is_known = machine.is_some() || !gpus.is_empty() || !nics.is_empty();
        is_known.then_some(Hardware { machine, gpus, nics })
    }

    /// Whether a node with the same name is another machine now: most of its GPUs are others. An instance keeps its id on
    /// other hardware, so ids count only where no GPU is known. What is not known is not other.
    pub fn is_other(&self, now: &Hardware) -> bool {
        if self.gpus.is_empty() || now.gpus.is_empty() {
            return self.machine.as_ref().zip(now.machine.as_ref()).is_some_and(|(then, now)| then != now);
        }
        let then: BTreeSet<&String> = self.gpus.values().collect();
        let kept = now.gpus.values().filter(|uuid| then.contains(uuid)).count();
        // A GPU that is missing makes no other machine of it.
        kept * 2 < self.gpus.len().min(now.gpus.len())
    }

    /// Whether the part of such a node, `gpu3`, a device or `node`, is not in the one with its name now.
    pub fn is_gone(&self, part: &str, now: &Hardware) -> bool {
        self.why_gone(part, now).is_some()
    }

    /// What shows that. A driver that lists fewer GPUs than before may have lost it.
    fn why_gone(&self, part: &str, now: &Hardware) -> Option<&'static str> {
        let is_replaced = |uuid: &String| {
            now.place_of(uuid).is_none() && !now.gpus.is_empty() && now.gpus.len() >= self.gpus.len()
        };
        if self.is_other(now) || self.gpus.get(part).is_some_and(is_replaced) {
            return Some(OTHER_HARDWARE);
        }
        // Whether a device can have another without being replaced is not known.
        let guids = self.nics.get(part).zip(now.nics.get(part));
        guids.filter(|(then, now)| then != now).map(|_| OTHER_GUID)
    }

    /// Whether evidence about the part may be of hardware that is not there any more: the part is gone, or any GPU of a node
    /// that is blamed as a whole.
    pub fn may_be_gone(&self, part: &str, now: &Hardware) -> bool {
        self.is_gone(part, now)
            || (!self.gpus.contains_key(part) && self.gpus.keys().any(|gpu| self.is_gone(gpu, now)))
    }

    /// Whether both are one machine: by the GPUs, else by the machine's id, else by the NICs. Nothing where neither was read
    /// of both.
    pub fn is_same(&self, other: &Hardware) -> Option<bool> {
        let are_read = !self.gpus.is_empty() && !other.gpus.is_empty();
        if are_read || (self.machine.is_some() && other.machine.is_some()) {
            return Some(!self.is_other(other));
        }
        let fewer = self.nics.len().min(other.nics.len());
        let kept = self.nics.values().filter(|guid| other.nics.values().any(|one| one == *guid)).count();
        (fewer > 0).then_some(kept * 2 >= fewer)
    }

    /// Whether what the node proved then holds for what has its name now: the same machine, and none of its GPUs replaced.
    /// Nothing where too little was read of either.
    fn still_vouches(&self, now: &Hardware) -> Option<bool> {
        self.is_same(now).map(|is_same| is_same && !self.may_be_gone("node", now))
    }

    /// The id of a part by its name, `gpu3` or a device.
    pub(super) fn part_id(&self, part: &str) -> Option<PartId> {
        let gpu = self.gpus.get(part).cloned().map(PartId::Gpu);
        gpu.or_else(|| self.nics.get(part).cloned().map(PartId::Nic))
    }

    /// The places of a part: more than one where the probe contradicts itself.
    pub fn places_of(&self, id: &PartId) -> Vec<&str> {
        let (ids, id) = self.ids_like(id);
        ids.iter().filter(|(_, other)| *other == id).map(|(place, _)| place.as_str()).collect()
    }

    /// Whether parts of that kind were read at all.
    pub(super) fn has_read(&self, id: &PartId) -> bool {
        !self.ids_like(id).0.is_empty()
    }

    fn ids_like<'a>(&self, id: &'a PartId) -> (&BTreeMap<String, String>, &'a String) {
        match id {
            PartId::Gpu(uuid) => (&self.gpus, uuid),
            PartId::Nic(guid) => (&self.nics, guid),
        }
    }

    fn place_of(&self, uuid: &str) -> Option<&str> {
        self.gpus.iter().find(|(_, other)| *other == uuid).map(|(place, _)| place.as_str())
    }
}

/// What stays the same of a part wherever it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartId {
    /// The UUID of a GPU.
    Gpu(String),
    /// The GUID of a NIC.
    Nic(String),
}

/// `gpu3 GPU-5e3f... 1650123456789`.
fn gpu(row: &str) -> Option<(String, String)> {
    let mut words = row.split(' ');
    let (place, uuid) = (words.next()?, words.next()?);
    let number = place.strip_prefix("gpu")?;
    (number.parse::<u32>().is_ok() && uuid.starts_with("GPU-")).then(|| (place.to_owned(), uuid.to_owned()))
}

/// `rdmap79s0 0000000000000001 0000:4f:00.0`; a GUID of zeros is none.
fn nic(row: &str) -> Option<(String, String)> {
    let mut words = row.split(' ');
    let (device, guid) = (words.next()?, words.next()?);
    let is_guid = guid.len() >= 16 && guid.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0');
    (is_guid && !guid.contains('.')).then(|| (device.to_owned(), guid.to_owned()))
}

/// A cluster: equal names in a simulated cluster, or in another inventory, are other nodes.
pub(super) type Cluster = (bool, String);
pub(super) type OfNodes = BTreeMap<String, Hardware>;

/// What a probe read.
pub fn read_probe(probe: &Probe) -> BTreeMap<String, Hardware> {
    let nodes = probe.nodes.iter();
    nodes.filter_map(|node| Some((node.node.clone(), Hardware::from_facts(&node.facts)?))).collect()
}

/// What the newest probe of each node of a cluster read.
pub fn newest(past: &Past, simulated: bool, inventory: &str) -> BTreeMap<String, Hardware> {
    let wanted: Cluster = (simulated, inventory.to_owned());
    let mut newest = OfNodes::new();
    for run in past.runs.iter().filter(|run| cluster(run) == wanted) {
        newest.extend(run.hardware().iter().map(|(node, hardware)| (node.clone(), hardware.clone())));
    }
    newest
}

/// Nodes for which what an earlier run showed may not hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unvouched {
    /// Their hardware is other than it was then.
    pub other: Vec<String>,
    /// Whether it is, was not read.
    pub unknown: Vec<String>,
}

/// Which of these nodes are not, or may not be, the hardware that had their names then.
pub fn unvouched(
    nodes: &[String],
    then: &BTreeMap<String, Hardware>,
    now: &BTreeMap<String, Hardware>,
) -> Unvouched {
    let mut found = Unvouched::default();
    for node in nodes {
        let both = then.get(node).zip(now.get(node));
        match both.and_then(|(then, now)| then.still_vouches(now)) {
            Some(true) => {}
            Some(false) => found.other.push(node.clone()),
            None => found.unknown.push(node.clone()),
        }
    }
    found
}

/// What the newest probes of a cluster show.
#[derive(Default)]
struct Newest {
    nodes: OfNodes,
    /// Where each GPU was seen last, by its UUID; nothing where two places have it at once.
    places: BTreeMap<String, Option<(String, String)>>,
    /// What was added last.
    last: Option<Arc<OfNodes>>,
}

/// The hardware behind the names, in runs and now.
pub(super) struct Identities {
    runs: Vec<Arc<OfNodes>>,
    now: BTreeMap<Cluster, Newest>,
}

/// What became of a part that a run blames.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// Under this name.
    Is(SuspectedPart),
    /// Other hardware has its name, and it is nowhere else: what shows that.
    Gone(&'static str),
}

/// Nodes whose names stand for other machines than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherMachines {
    /// The first run that shows it.
    pub since: usize,
    /// Sorted.
    pub nodes: Vec<String>,
}

/// Which of these nodes are other machines in the run `after` than in the run `before`, by the probes of all runs up to it.
pub(super) fn other_machines(
    past: &Past,
    nodes: &BTreeSet<&String>,
    (before, after): (usize, usize),
) -> Vec<OtherMachines> {
    let (Some(first), Some(last)) = (past.runs.get(before), past.runs.get(after)) else { return Vec::new() };
    let of_cluster = cluster(last);
    if cluster(first) != of_cluster {
        return Vec::new();
    }
    let (mut then, mut since): (BTreeMap<&String, Hardware>, BTreeMap<&String, usize>) = Default::default();
    let runs = past.runs.iter().enumerate().take(after + 1).filter(|(_, run)| cluster(run) == of_cluster);
    for (at, run) in runs {
        let probed = run.hardware();
        for node in nodes {
            let Some(now) = probed.get(*node) else { continue };
            if at <= before {
                then.insert(node, now.clone());
            } else if then.get(*node).is_some_and(|then| then.is_other(now)) {
                since.entry(node).or_insert(at);
            } else {
                since.remove(*node);
            }
        }
    }
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (node, at) in since {
        found.entry(at).or_default().push(node.clone());
    }
    found.into_iter().map(|(since, nodes)| OtherMachines { since, nodes }).collect()
}

impl Newest {
    fn add(&mut self, nodes: &Arc<OfNodes>) {
        // Probe after probe of a fleet reads the same.
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, nodes)) {
            return;
        }
        self.last = Some(nodes.clone());
        let mut seen: BTreeMap<&String, Option<(String, String)>> = BTreeMap::new();
        for (node, hardware) in nodes.iter() {
            for (place, uuid) in &hardware.gpus {
                let here = Some((node.clone(), place.clone()));
                seen.entry(uuid).and_modify(|place| *place = None).or_insert(here);
            }
        }
        self.places.extend(seen.into_iter().map(|(uuid, place)| (uuid.clone(), place)));
        self.nodes.extend(nodes.iter().map(|(node, hardware)| (node.clone(), hardware.clone())));
    }

    /// Where the GPU is now: where it was seen last, if it is still there.
    fn place_of(&self, uuid: &str) -> Option<(&str, &str)> {
        let (node, place) = self.places.get(uuid)?.as_ref()?;
        (self.nodes.get(node)?.place_of(uuid)? == place).then_some((node, place))
    }
}

impl Identities {
    /// By the probes of these runs, oldest first.
    pub(super) fn read(runs: &[Run]) -> Identities {
        let mut all = Vec::with_capacity(runs.len());
        let mut now: BTreeMap<Cluster, Newest> = BTreeMap::new();
        for run in runs {
            let of_nodes = run.hardware();
            now.entry(cluster(run)).or_default().add(&of_nodes);
            all.push(of_nodes);
        }
        Identities { runs: all, now }
    }

    /// The nodes that the probe of a run read.
    pub(super) fn nodes(&self, at: usize) -> &OfNodes {
        &self.runs[at]
    }

    /// Whether the node's name stands for other hardware now than in that run.
    pub(super) fn is_other(&self, at: usize, run: &Run, node: &str) -> bool {
        let then = self.runs.get(at).and_then(|nodes| nodes.get(node));
        let now = self.now.get(&cluster(run)).and_then(|newest| newest.nodes.get(node));
        then.zip(now).is_some_and(|(then, now)| then.is_other(now))
    }

    /// Where a part that this run blames is now.
    pub(super) fn now(&self, at: usize, run: &Run, part: &SuspectedPart) -> Now {
        let then = self.runs.get(at).and_then(|nodes| nodes.get(&part.node));
        let Some((then, newest)) = then.zip(self.now.get(&cluster(run))) else {
            return Now::Is(part.clone());
        };
        if let Some((node, place)) = then.gpus.get(&part.part).and_then(|uuid| newest.place_of(uuid)) {
            return Now::Is(SuspectedPart { node: node.to_owned(), part: place.to_owned(), ..part.clone() });
        }
        let why = newest.nodes.get(&part.node).and_then(|own| then.why_gone(&part.part, own));
        why.map_or_else(|| Now::Is(part.clone()), Now::Gone)
    }
}

pub(super) fn cluster(run: &Run) -> Cluster {
    (run.is_simulated(), run.plan().inventory.clone())
}

#[cfg(test)]
#[path = "hardware_tests.rs"]
mod tests;
