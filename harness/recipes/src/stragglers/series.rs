//! Which kernels of the ranks are one collective: the n-th of an operation in a communicator is the same on every
//! rank, where every rank recorded as many. Anything else is reported as a flaw, and not used.

use super::{Collective, Evidence};
use std::collections::BTreeMap;

/// All instances of one operation in one communicator, recorded by all its ranks.
#[derive(Debug)]
pub(super) struct Series {
    pub communicator: u64,
    pub kind: Collective,
    /// Ranks, as places in the evidence.
    pub members: Vec<usize>,
    /// Of each member its work of each instance, as places in its work.
    pub places: Vec<Vec<u32>>,
    /// How many instances there are.
    pub len: usize,
}

/// Evidence that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// Ranks of a communicator left no record of it.
    NotRecorded {
        /// Its id, or the number of a stream under `Evidence::by_order`.
        communicator: u64,
        /// How many ranks recorded it.
        recorded: usize,
        /// How many ranks it has.
        of: usize,
    },
    /// Who recorded the fewest, and who the most, of an operation.
    UnequalCounts {
        /// Its id, or the number of a stream under `Evidence::by_order`.
        communicator: u64,
        /// The operation; never `Collective::Other`.
        kind: Collective,
        /// A rank, and how many it recorded; 0 is possible.
        fewest: (i64, usize),
        /// A rank, and how many it recorded.
        most: (i64, usize),
    },
}

#[derive(Debug)]
pub(super) struct Found {
    pub whole: Vec<Series>,
    pub flaws: Vec<Flaw>,
}

/// Of each rank that has some, where its work stands.
type Places = BTreeMap<usize, Vec<u32>>;

pub(super) fn find(evidence: &Evidence) -> Found {
    let mut of_key: BTreeMap<(u64, Collective), Places> = BTreeMap::new();
    let mut ranks_of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (at, rank) in evidence.ranks.iter().enumerate() {
        for (place, work) in rank.work.iter().enumerate() {
            let communicator = match evidence.by_order {
                true => Some(u64::from(work.stream)),
                false => work.communicator,
            };
            let (Some(communicator), Ok(place)) = (communicator, u32::try_from(place)) else { continue };
            let ranks = ranks_of.entry(communicator).or_default();
            if ranks.last() != Some(&at) {
                ranks.push(at);
            }
            if work.kind != Collective::Other {
                of_key.entry((communicator, work.kind)).or_default().entry(at).or_default().push(place);
            }
        }
    }
    let (mut whole, mut flaws) = (Vec::new(), Vec::new());
    let size = |communicator: u64| match evidence.by_order {
        true => evidence.ranks.len(),
        false => {
            evidence.sizes.get(&communicator).map_or(ranks_of[&communicator].len(), |size| *size as usize)
        }
    };
    for (communicator, ranks) in &ranks_of {
        let of = size(*communicator);
        if ranks.len() != of {
            flaws.push(Flaw::NotRecorded { communicator: *communicator, recorded: ranks.len(), of });
        }
    }
    for ((communicator, kind), places) in of_key {
        let recorded = &ranks_of[&communicator];
        if recorded.len() != size(communicator) || recorded.len() < 2 {
            continue;
        }
        // A rank of the communicator that recorded none of this operation recorded the fewest.
        let counts = || recorded.iter().map(|at| (*at, places.get(at).map_or(0, Vec::len)));
        let (fewest, most) = (counts().min_by_key(|(_, n)| *n), counts().max_by_key(|(_, n)| *n));
        let (Some(fewest), Some(most)) = (fewest, most) else { continue };
        if fewest.1 != most.1 {
            let named = |(at, n): (usize, usize)| (evidence.ranks[at].rank, n);
            flaws.push(Flaw::UnequalCounts { communicator, kind, fewest: named(fewest), most: named(most) });
            continue;
        }
        let (members, places) = places.into_iter().unzip();
        whole.push(Series { communicator, kind, members, places, len: most.1 });
    }
    Found { whole, flaws }
}
