//! Random faults of a fleet by a seed, and whether any run can distinguish them. Tests and `benches/isolate.rs` measure
//! the strategy by them.

use super::model::Fault;
use super::named::{Conclusion, Place};
use super::trial::Fleet;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a fault lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultSite {
    /// The whole node.
    Node,
    /// One GPU.
    Gpu,
    /// The links between the GPUs of a node.
    NvLink,
    /// One NIC.
    Nic,
    /// What all NICs of a node share.
    Port,
    /// The link between two topology groups.
    Link,
}

impl FaultSite {
    /// In the order of the benchmark's output.
    pub const ALL: [FaultSite; 6] = [
        FaultSite::Node,
        FaultSite::Gpu,
        FaultSite::NvLink,
        FaultSite::Nic,
        FaultSite::Port,
        FaultSite::Link,
    ];

    /// As the benchmark prints it: `nvlink`.
    pub fn name(self) -> &'static str {
        match self {
            FaultSite::Node => "node",
            FaultSite::Gpu => "gpu",
            FaultSite::NvLink => "nvlink",
            FaultSite::Nic => "nic",
            FaultSite::Port => "port",
            FaultSite::Link => "link",
        }
    }

    /// Every two of them, one kind twice included.
    pub fn pairs() -> Vec<[FaultSite; 2]> {
        let with = |(at, one): (usize, &FaultSite)| {
            FaultSite::ALL.iter().skip(at).map(|other| [*one, *other]).collect::<Vec<_>>()
        };
        FaultSite::ALL.iter().enumerate().flat_map(with).collect()
    }
}

/// What faults cost: from 20 to 90 % of a run, or exactly so much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// A random fraction from 0.2 to 0.9 of the rate.
    Promised,
    /// The fraction of the rate that is lost.
    Exactly(f64),
}

/// One fault of each kind, somewhere.
pub fn faults(fleet: &Fleet, kinds: &[FaultSite], cost: Cost, seed: u64) -> Vec<Fault> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |n: usize| (random.next_u64() % n.max(1) as u64) as usize;
    let groups = fleet.all_groups().len();
    kinds
        .iter()
        .map(|kind| {
            let node = below(fleet.nodes());
            let place = match kind {
                FaultSite::Node => Place::Node(node),
                FaultSite::Gpu => Place::Gpu(node, below(fleet.gpus)),
                FaultSite::NvLink => Place::NvLink(node),
                FaultSite::Nic => Place::Nic(node, below(fleet.nics)),
                FaultSite::Port => Place::Port(node),
                FaultSite::Link => {
                    let a = below(groups);
                    let b = (a + 1 + below(groups - 1)) % groups;
                    Place::Link(a.min(b), a.max(b))
                }
            };
            let left = match cost {
                Cost::Promised => 0.1 + 0.7 * below(1_000_001) as f64 / 1e6,
                Cost::Exactly(cost) => 1.0 - cost,
            };
            Fault { place, left }
        })
        .collect()
}

/// Whether each of them shows in some run: one that is on the same path as a worse one, and on no other, shows in none.
pub fn are_distinguishable(faults: &[Fault]) -> bool {
    let hides = |one: &Fault, other: &Fault| {
        let covers = match (one.place, other.place) {
            (a, b) if a == b => true,
            (Place::Node(a), Place::Gpu(b, _) | Place::NvLink(b) | Place::Nic(b, _) | Place::Port(b))
            | (Place::Gpu(a, _), Place::NvLink(b))
            | (Place::Port(a), Place::Nic(b, _)) => a == b,
            _ => false,
        };
        // It must be worse by as much as a fault must cost to be looked for.
        covers && other.left > one.left * 0.8
    };
    let each = |(at, one): (usize, &Fault)| {
        faults.iter().enumerate().all(|(to, other)| at == to || !hides(one, other))
    };
    faults.iter().enumerate().all(each)
}

/// How a conclusion stands against what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Every fault is named exactly, and no good part is.
    pub exact: bool,
    /// Something that was good is named.
    pub blamed: bool,
}

/// Compares what was named with the faults that were there.
pub fn outcome(conclusion: &Conclusion, faults: &[Fault]) -> Outcome {
    let named = |place: &Place| conclusion.named.iter().any(|named| named.place == *place);
    let true_one = |place: &Place| match place {
        // The node is guilty, and no part of it is accused.
        Place::Somewhere(node) => faults.iter().any(|fault| fault.place.node() == Some(*node)),
        place => faults.iter().any(|fault| fault.place == *place),
    };
    let blamed = conclusion.named.iter().any(|named| !true_one(&named.place));
    Outcome { exact: !blamed && faults.iter().all(|fault| named(&fault.place)), blamed }
}
