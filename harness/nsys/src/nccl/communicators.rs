//! The communicators that a report mentions: how many ranks each has, and which of them a process is. Ranges that make or
//! end one say so; a report that began between both knows nothing of it.

use super::events::{Event, Events, Name};
use super::payload::Payload;
use crate::trace::process_of;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// A communicator of one process, as its first range that makes or ends it describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// Process, as `process_of` gives it.
    pub process: i64,
    /// Not recorded before NCCL 2.25.
    pub id: Option<u64>,
    /// Id of the communicator it was made from, such as by `ncclCommSplit`; `None` if not recorded.
    pub parent: Option<u64>,
    /// Number of its ranks.
    pub ranks: Option<u32>,
    /// The process's rank in it; `None` if not recorded.
    pub rank: Option<u32>,
    /// CUDA device of that rank; `None` if not recorded.
    pub device: Option<i32>,
    /// The range that mentioned it first.
    pub start: i64,
    /// End of that range, in nanoseconds of the session.
    pub end: i64,
}

/// Each once, in the order in which they are mentioned.
pub(super) fn collect(events: &Events) -> Vec<Communicator> {
    let mut all: Vec<Communicator> = Vec::new();
    let mut known = BTreeSet::new();
    let mut mentions: Vec<&Event> =
        events.all.iter().filter(|event| matches!(event.name, Name::Makes | Name::Ends)).collect();
    mentions.sort_by_key(|event| (event.start, event.global_tid, event.row));
    for event in mentions {
        let Some(payload) = events.payload(event) else { continue };
        let ranks = payload.ranks.or(payload.devices);
        // Without an id the end of one cannot be distinguished from that of another.
        if ranks.is_none() || (payload.communicator.is_none() && event.name == Name::Ends) {
            continue;
        }
        let process = process_of(event.global_tid);
        let Payload { communicator: id, parent, rank, device, .. } = *payload;
        if id.is_none() || known.insert((process, id, ranks, rank, device)) {
            let (start, end) = (event.start, event.end);
            all.push(Communicator { process, id, parent, ranks, rank, device, start, end });
        }
    }
    all
}

/// What is known of the communicator of a call, by process and id.
#[derive(Default)]
pub(super) struct KnownRanks {
    of_id: HashMap<(i64, u64), CommunicatorRanks>,
}

#[derive(Default)]
struct CommunicatorRanks {
    ranks: BTreeSet<u32>,
    ranks_of_devices: Vec<(Option<i32>, Option<u32>)>,
}

impl KnownRanks {
    pub(super) fn new(communicators: &[Communicator]) -> KnownRanks {
        let mut known = KnownRanks::default();
        for one in communicators {
            let Some(id) = one.id else { continue };
            let of = known.of_id.entry((one.process, id)).or_default();
            of.ranks.extend(one.ranks);
            of.ranks_of_devices.push((one.device, one.rank));
        }
        known
    }

    /// How many ranks it has; not known where two accounts differ.
    pub(super) fn ranks(&self, process: i64, id: u64) -> Option<u32> {
        let ranks = &self.of_id.get(&(process, id))?.ranks;
        ranks.first().copied().filter(|_| ranks.len() == 1)
    }

    /// Which of them this process is; where it is several, the one on the device.
    pub(super) fn rank(&self, process: i64, id: u64, device: Option<i64>) -> Option<u32> {
        let all = &self.of_id.get(&(process, id))?.ranks_of_devices;
        let only = |ranks: BTreeSet<Option<u32>>| match ranks.len() {
            1 => ranks.first().copied().flatten(),
            _ => None,
        };
        only(all.iter().map(|(_, rank)| *rank).collect()).or_else(|| {
            let of_device = all.iter().filter(|(of, _)| of.map(i64::from) == device && device.is_some());
            only(of_device.map(|(_, rank)| *rank).collect())
        })
    }
}
