//! The ranks of a job by records of NCCL's Inspector, which have no time that nodes share. A collective that no rank leaves
//! before every rank has come ends on all of them at once: whose kernel is shorter began later. Within one communicator
//! that takes no clock. Across several a rank may have waited in another one, and none is called late.

use crate::recipe::inspector::{times_of_ranks, untrusted};
use crate::recipe::{InputFile, JobInput, Workload};
use crate::stragglers::robust::median;
use crate::stragglers::{Collective, Evidence, Limits, Rank, Work};
use logs::inspector::{InspectorLog, MemberRecords};
use metric::op::Op;
use std::collections::{BTreeMap, BTreeSet};

/// A longer kernel is none.
const MOST_NS: u64 = 1_000_000_000_000;
/// By how much of a call its ends may differ on the ranks: nothing shows it, so that less is not lateness.
const PART_OF_CALL: u64 = 20;
/// One clock for all ranks.
const CLOCK: &str = "ends of collectives";

/// A rank with the lengths of its kernels.
struct RecordedRank {
    rank: u32,
    node: String,
    gpu: Option<i64>,
    /// Nanoseconds, by the numbers of the calls.
    lengths: BTreeMap<u64, u64>,
}

/// The ranks of one communicator.
pub(crate) struct Recorded {
    communicator: u64,
    ranks: Vec<RecordedRank>,
    /// Of each rank, on a time axis of all of them.
    works: Vec<Vec<Work>>,
    /// Of a call, the median.
    length_ns: u64,
}

impl Recorded {
    /// Calls of which a rank has no time are left out.
    fn new(communicator: u64, kind: Collective, ranks: Vec<RecordedRank>) -> Recorded {
        let numbers: BTreeSet<u64> = ranks.iter().flat_map(|rank| rank.lengths.keys().copied()).collect();
        let mut works: Vec<Vec<Work>> = ranks.iter().map(|_| Vec::new()).collect();
        let (mut end, mut longest) = (0i64, Vec::new());
        for number in numbers {
            let lengths = ranks.iter().map(|rank| rank.lengths.get(&number).copied());
            let Some(lengths) = lengths.collect::<Option<Vec<u64>>>() else { continue };
            let most = lengths.iter().copied().max().unwrap_or_default();
            longest.push(most as i64);
            end = end.saturating_add(most as i64);
            for (work, ns) in works.iter_mut().zip(lengths) {
                let start = end.saturating_sub(ns as i64);
                let communicator = Some(communicator);
                work.push(Work { communicator, stream: 0, kind, start, end, busy_ns: 0 });
            }
        }
        let length_ns = median(&mut longest).unwrap_or_default() as u64;
        Recorded { communicator, ranks, works, length_ns }
    }

    pub(crate) fn evidence(&self) -> Evidence<'_> {
        let ranks = self.ranks.iter().zip(&self.works).map(|(rank, work)| Rank {
            rank: i64::from(rank.rank),
            node: &rank.node,
            gpu: rank.gpu,
            clock: CLOCK,
            zero: 0,
            lead_ns: None,
            work,
            compute: &[],
        });
        Evidence {
            ranks: ranks.collect(),
            sizes: BTreeMap::from([(self.communicator, self.ranks.len() as u32)]),
            by_order: false,
            ends_assumed: true,
        }
    }

    /// From when on a rank is named.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        Limits { least_ns: limits.least_ns.max(self.length_ns / PART_OF_CALL), ..limits }
    }
}

/// The ranks of a job of nccl-tests; else why none can be called late.
pub(super) fn from_job(job: &JobInput, file: &InputFile) -> Result<Recorded, String> {
    let Workload::NcclTests { op, .. } = &job.workload else {
        return Err("records of NCCL's Inspector are read of nccl-tests".to_owned());
    };
    let kind = match op {
        Op::AllReduce => kind("AllReduce"),
        Op::AllGather => kind("AllGather"),
        Op::ReduceScatter => kind("ReduceScatter"),
        other => kind(other.name()),
    }?;
    let times = times_of_ranks(job, file, *op)?;
    let ranks = times.into_iter().map(|times| -> Result<RecordedRank, String> {
        let rank = times.rank;
        Ok(RecordedRank {
            rank,
            node: times.node.ok_or_else(|| format!("the node of rank {rank} is not known"))?,
            gpu: times.gpu.and_then(|gpu| i64::try_from(gpu).ok()),
            lengths: lengths(times.calls.into_iter().map(|(number, (_, ns))| (number, ns))),
        })
    });
    Ok(Recorded::new(0, kind, ranks.collect::<Result<Vec<RecordedRank>, String>>()?))
}

/// The ranks that one file has records of; else why none can be called late.
pub(crate) fn from_log(log: &InspectorLog) -> Result<Recorded, String> {
    if let Some(finding) = untrusted(log) {
        return Err(finding.message.clone());
    }
    let members = log.members.iter().enumerate().filter(|(_, member)| member.records > 0);
    let members: Vec<(usize, &MemberRecords)> = members.collect();
    let communicators: BTreeSet<&str> =
        members.iter().map(|(_, member)| member.communicator.as_str()).collect();
    let (Some((_, first)), 1) = (members.first(), communicators.len()) else {
        return Err(format!(
            "{} communicators: a rank may have waited in another one, and records have no time that nodes share",
            communicators.len()
        ));
    };
    if members.len() as u64 != first.ranks {
        return Err(format!("{} of {} ranks have records", members.len(), first.ranks));
    }
    let operations: BTreeSet<usize> = log.calls.iter().map(|call| call.operation).collect();
    let name = |at: &usize| log.operations.get(*at).map_or("?", String::as_str);
    let names: Vec<&str> = operations.iter().map(name).collect();
    let [operation] = names.as_slice() else {
        return Err(format!("calls of several operations have no order in records: {}", names.join(", ")));
    };
    let kind = kind(operation)?;
    let mut calls: BTreeMap<usize, Vec<(u64, Option<u64>)>> = BTreeMap::new();
    for call in &log.calls {
        let ns = call.gpu_us.map(|us| (us * 1e3).round() as u64);
        calls.entry(call.member).or_default().push((call.number, ns));
    }
    let ranks = members.iter().map(|(at, member)| -> Result<RecordedRank, String> {
        let rank = u32::try_from(member.rank).map_err(|_| format!("rank {} is out of range", member.rank))?;
        let recorded = calls.remove(at).unwrap_or_default();
        let numbers: BTreeSet<u64> = recorded.iter().map(|(number, _)| *number).collect();
        if numbers.len() < recorded.len() {
            return Err(format!(
                "calls of rank {rank} share a number, as replays of a CUDA graph do: no order"
            ));
        }
        Ok(RecordedRank {
            rank,
            node: member.host.clone().unwrap_or_else(|| format!("rank {rank}")),
            gpu: None,
            lengths: lengths(recorded.into_iter()),
        })
    });
    let ranks = ranks.collect::<Result<Vec<RecordedRank>, String>>()?;
    let id = first.communicator.trim_start_matches("0x");
    Ok(Recorded::new(u64::from_str_radix(id, 16).unwrap_or_default(), kind, ranks))
}

/// What no rank leaves before every rank has come.
fn kind(operation: &str) -> Result<Collective, String> {
    let kinds = [Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter];
    let found = kinds.into_iter().find(|kind| kind.name() == operation);
    found.ok_or_else(|| format!("`{operation}` does not hold each rank until the last one has come"))
}

fn lengths(calls: impl Iterator<Item = (u64, Option<u64>)>) -> BTreeMap<u64, u64> {
    calls.filter_map(|(number, ns)| Some((number, ns.filter(|ns| *ns <= MOST_NS)?))).collect()
}
