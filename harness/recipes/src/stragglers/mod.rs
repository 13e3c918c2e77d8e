//! Which rank keeps the others waiting: a pure function of when the ranks of a job ran their communication, each by the
//! clock of its own host. The recipes that read reports make these numbers.
//!
//! A collective ends everywhere at once, so its ends show how clocks differ, and how long its kernel lasts on a rank
//! shows how long that rank waited. A rank that arrives late because it waited elsewhere is not the culprit: what it
//! did beside waiting is compared, round by round, with the ranks that do the same work.

mod alignment;
mod arrivals;
mod clocks;
mod compute;
#[cfg(test)]
mod made;
pub(crate) mod robust;
mod rounds;
mod series;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use alignment::{Alignment, CollectiveRun};
pub use arrivals::{Arrived, Instances};
pub use clocks::Clock;
pub use rounds::Rounds;
pub use series::Flaw;
pub use verdict::{Cause, Culprit, Node, Verdict, Who};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the ranks of one job recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence<'a> {
    /// One per GPU that communicates; GPUs of one report follow each other.
    pub ranks: Vec<Rank<'a>>,
    /// How many ranks a communicator has, where that is recorded.
    pub sizes: BTreeMap<u64, u32>,
    /// No communicator is recorded: the streams that ranks used in the same order are taken for one communicator of all
    /// ranks each.
    pub by_order: bool,
    /// Ends of a collective are taken to be one moment, and were not measured: that they agree shows nothing.
    pub ends_assumed: bool,
}

/// One GPU of a rank: its clock, its communication and its compute kernels.
#[derive(Debug, Clone)]
pub(crate) struct Rank<'a> {
    /// Of the report; its GPUs have the same.
    pub rank: i64,
    /// Its node, or the report's file where the host is unknown.
    pub node: &'a str,
    /// `deviceId` of its kernels, where known.
    pub gpu: Option<i64>,
    /// Ranks whose times are taken from one clock have one name here.
    pub clock: &'a str,
    /// What makes a time of the report one of that clock.
    pub zero: i64,
    /// How long before its kernels it launched them; the median.
    pub lead_ns: Option<i64>,
    /// In the order of their starts; see `sorted`.
    pub work: &'a [Work],
    /// In the order of their names.
    pub compute: &'a [Compute],
}

/// One kernel of communication, as the rank's own report records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Its id; `None` where the report does not record it.
    pub communicator: Option<u64>,
    /// Which of the rank's streams it ran on, in the order of their first use.
    pub stream: u32,
    /// By the NCCL call, else by the kernel's name.
    pub kind: Collective,
    /// Nanoseconds of the report; `Rank::zero` makes it a time of the clock.
    pub start: i64,
    /// The same; of a collective all ranks end at one moment.
    pub end: i64,
    /// How long kernels that compute ran meanwhile, counted where no earlier communication ran: then it was not waited
    /// for.
    pub busy_ns: i64,
}

/// What a kernel of communication does. No rank leaves the four that are named before every rank has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Collective {
    /// By the NCCL call, else `_AllReduce` in the kernel's name.
    AllReduce,
    /// By the NCCL call, else `_AllGather` in the kernel's name.
    AllGather,
    /// By the NCCL call, else `_ReduceScatter` in the kernel's name.
    ReduceScatter,
    /// By the NCCL call, else `_AlltoAll` in the kernel's name.
    AlltoAll,
    /// Any other, such as sends: not compared, but a rank waits in it too.
    Other,
}

impl Collective {
    /// As in kernel names: `AllReduce`; `other` for the rest.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "AllReduce",
            Collective::AllGather => "AllGather",
            Collective::ReduceScatter => "ReduceScatter",
            Collective::AlltoAll => "AlltoAll",
            Collective::Other => "other",
        }
    }
}

/// The kernels of one name that compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compute {
    /// `shortName` of the report.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// Of all runs, also those that `first_ns` leaves out.
    pub total_ns: u64,
    /// How long the first of them lasted, in their order.
    pub first_ns: Vec<u32>,
}

/// From when on a culprit is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// A rank that is late by less is not named.
    pub least_ns: u64,
    /// Of fewer rounds nothing is said.
    pub least_rounds: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { least_ns: 200_000, least_rounds: 16 }
    }
}

/// All results on the ranks of one job; recipes make tables and metrics of it.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    /// In the order of the evidence.
    pub ranks: Vec<RankResult>,
    /// In the order of their names.
    pub nodes: Vec<Node>,
    /// In the order in which ranks first use them.
    pub clocks: Vec<Clock>,
    /// One for each operation in each communicator.
    pub instances: Vec<Instances>,
    /// The robust deviation of ends of one collective from each other, once clocks are aligned.
    pub residual_ns: Option<u64>,
    /// What of the evidence could not be used, and why.
    pub flaws: Vec<Flaw>,
    /// The groups of connected clocks, where there are several.
    pub apart: Vec<Vec<String>>,
    /// The culprits, or why there is none.
    pub verdict: Verdict,
}

/// Results on one rank of the evidence; `None` where it could not be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankResult {
    /// Of the instances that it was part of.
    pub arrived: Option<Arrived>,
    /// What it did beside waiting, against the others.
    pub rounds: Option<Rounds>,
    /// Its kernels' time by that of the same kernels of others.
    pub compute_ratio: Option<f64>,
    /// By how much its kernels lasted longer in a round; below nothing where they lasted less.
    pub compute_extra_ns: Option<i64>,
}

/// Aligns the clocks, compares the ranks round by round, and names culprits beyond the limits.
pub(crate) fn judge(evidence: &Evidence, limits: &Limits) -> Judgement {
    let found = series::find(evidence);
    let aligned = clocks::align(evidence, &found.whole);
    let (arrived, instances) = arrivals::find(evidence, &found.whole, &aligned);
    let groups = rounds::groups(evidence, &found.whole, &aligned, limits);
    let mut ranks: Vec<RankResult> = arrived
        .into_iter()
        .map(|arrived| RankResult { arrived, rounds: None, compute_ratio: None, compute_extra_ns: None })
        .collect();
    for group in &groups {
        for (member, rounds) in group.members.iter().zip(&group.rounds) {
            ranks[*member].rounds = Some(*rounds);
        }
        for (member, ratio) in compute::ratios(evidence, group) {
            ranks[member].compute_ratio = Some(ratio.ratio);
            ranks[member].compute_extra_ns = Some(ratio.extra_ns);
        }
    }
    let nodes = verdict::nodes(evidence, &ranks);
    let verdict = verdict::verdict(evidence, &ranks, &groups, aligned.residual_ns, limits);
    Judgement {
        ranks,
        nodes,
        apart: aligned.apart(),
        clocks: if evidence.ends_assumed { Vec::new() } else { aligned.clocks() },
        instances,
        residual_ns: aligned.residual_ns.filter(|_| !evidence.ends_assumed),
        flaws: found.flaws,
        verdict,
    }
}
