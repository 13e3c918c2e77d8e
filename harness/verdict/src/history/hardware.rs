//! Which hardware a node's name stood for in each run, by what its probe read: the UUIDs of its GPUs, else the machine's id.
//! What a run says of hardware that is gone is no suspicion of what came in its place, and a GPU that moved is followed.

use super::past::Run;
use super::suspects::SuspectedPart;
use model::artefact::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a probe read of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hardware {
    machine: Option<String>,
    /// Their UUIDs, by `gpuN`.
    gpus: BTreeMap<String, String>,
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
        (machine.is_some() || !gpus.is_empty()).then_some(Hardware { machine, gpus })
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

    /// Whether the part of such a node, `gpu3` or `node`, is not in the one with its name now. A driver that lists fewer GPUs
    /// than before may have lost it.
    pub fn is_gone(&self, part: &str, now: &Hardware) -> bool {
        let is_replaced = |uuid: &String| {
            now.place_of(uuid).is_none() && !now.gpus.is_empty() && now.gpus.len() >= self.gpus.len()
        };
        self.is_other(now) || self.gpus.get(part).is_some_and(is_replaced)
    }

    fn place_of(&self, uuid: &str) -> Option<&str> {
        self.gpus.iter().find(|(_, other)| *other == uuid).map(|(place, _)| place.as_str())
    }
}

/// `gpu3 GPU-5e3f... 1650123456789`.
fn gpu(row: &str) -> Option<(String, String)> {
    let mut words = row.split(' ');
    let (place, uuid) = (words.next()?, words.next()?);
    let number = place.strip_prefix("gpu")?;
    (number.parse::<u32>().is_ok() && uuid.starts_with("GPU-")).then(|| (place.to_owned(), uuid.to_owned()))
}

/// A cluster: equal names in a simulated cluster, or in another inventory, are other nodes.
type Cluster = (bool, String);
type OfNodes = BTreeMap<String, Hardware>;

/// The hardware behind the names, in runs and now.
pub(super) struct Identities {
    runs: Vec<OfNodes>,
    now: BTreeMap<Cluster, OfNodes>,
}

/// What became of a part that a run blames.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// Under this name.
    Is(SuspectedPart),
    /// Other hardware has its name, and it is nowhere else.
    Gone,
}

impl Identities {
    /// By the probes of these runs, oldest first.
    pub(super) fn read(runs: &[Run]) -> Identities {
        let mut all = Vec::with_capacity(runs.len());
        let mut now: BTreeMap<Cluster, OfNodes> = BTreeMap::new();
        for run in runs {
            // A probe that cannot be read says nothing.
            let probe = run.stored.probe().ok().flatten();
            let nodes = probe.into_iter().flat_map(|probe| probe.nodes);
            let of_nodes: OfNodes =
                nodes.filter_map(|node| Some((node.node, Hardware::from_facts(&node.facts)?))).collect();
            now.entry(cluster(run)).or_default().extend(of_nodes.clone());
            all.push(of_nodes);
        }
        Identities { runs: all, now }
    }

    /// Whether the node's name stands for other hardware now than in that run.
    pub(super) fn is_other(&self, at: usize, run: &Run, node: &str) -> bool {
        let then = self.runs.get(at).and_then(|nodes| nodes.get(node));
        let now = self.now.get(&cluster(run)).and_then(|nodes| nodes.get(node));
        then.zip(now).is_some_and(|(then, now)| then.is_other(now))
    }

    /// Where a part that this run blames is now.
    pub(super) fn now(&self, at: usize, run: &Run, part: &SuspectedPart) -> Now {
        let Some(then) = self.runs.get(at).and_then(|nodes| nodes.get(&part.node)) else {
            return Now::Is(part.clone());
        };
        let nodes = self.now.get(&cluster(run));
        let moved = then.gpus.get(&part.part).and_then(|uuid| {
            let place =
                |(node, now): (&String, &Hardware)| Some((node.clone(), now.place_of(uuid)?.to_owned()));
            nodes?.iter().find_map(place)
        });
        let own = nodes.and_then(|nodes| nodes.get(&part.node));
        match moved {
            Some((node, place)) => Now::Is(SuspectedPart { node, part: place, ..part.clone() }),
            None if own.is_some_and(|own| then.is_gone(&part.part, own)) => Now::Gone,
            None => Now::Is(part.clone()),
        }
    }
}

fn cluster(run: &Run) -> Cluster {
    (run.is_simulated(), run.plan().inventory.clone())
}

#[cfg(test)]
#[path = "hardware_tests.rs"]
mod tests;
