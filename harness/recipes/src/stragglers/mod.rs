//! Which rank keeps the others waiting: a pure function of when the ranks of a job ran their communication, each by the
//! clock of its own host. The recipes that read reports make these numbers.
//!
//! A collective ends everywhere at once, so its ends show how clocks differ, and how long its kernel lasts on a rank
//! shows how long that rank waited. A rank that arrives late because it waited elsewhere is not the culprit: what it
//! did beside waiting is compared, round by round, with the ranks that do the same work.

mod arrivals;
mod clocks;
mod compute;
#[cfg(test)]
mod made;
pub mod robust;
mod rounds;
mod series;
#[cfg(test)]
mod tests;
mod verdict;

pub use arrivals::{Arrived, Instances};
pub use clocks::Clock;
pub use rounds::Rounds;
pub use series::Flaw;
pub use verdict::{Cause, Culprit, Node, Verdict, Who};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the ranks of one job recorded.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    pub ranks: Vec<Rank<'a>>,
    /// How many ranks a communicator has, where that is recorded.
    pub sizes: BTreeMap<u64, u32>,
    /// No communicator is recorded: the streams that ranks used in the same order are taken for one communicator of all
    /// ranks each.
    pub by_order: bool,
}

#[derive(Debug, Clone)]
pub struct Rank<'a> {
    pub rank: i64,
    pub node: &'a str,
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
pub struct Work {
    pub communicator: Option<u64>,
    /// Which of the rank's streams it ran on, in the order of their first use.
    pub stream: u32,
    pub kind: Kind,
    pub start: i64,
    pub end: i64,
    /// How long kernels that compute ran meanwhile, counted where no earlier communication ran: then it was not waited
    /// for.
    pub busy_ns: i64,
}

/// What a kernel of communication does. No rank leaves the four that are named before every rank has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    AllReduce,
    AllGather,
    ReduceScatter,
    AlltoAll,
    Other,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "AllReduce",
            Kind::AllGather => "AllGather",
            Kind::ReduceScatter => "ReduceScatter",
            Kind::AlltoAll => "AlltoAll",
            Kind::Other => "other",
        }
    }
}

/// The kernels of one name that compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compute {
    pub name: String,
    pub count: u64,
    pub total_ns: u64,
    /// How long the first of them lasted, in their order.
    pub first_ns: Vec<u32>,
}

/// Work in the order that `Rank` wants, and how much of it was left out because it ends before it begins.
pub fn sorted(mut work: Vec<Work>) -> (Vec<Work>, usize) {
    let all = work.len();
    work.retain(|work| work.end >= work.start);
    work.sort_by_key(|work| (work.start, work.end, work.stream));
    let left_out = all - work.len();
    (work, left_out)
}

/// From when on a culprit is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
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

#[derive(Debug, Clone)]
pub struct Judgement {
    /// In the order of the evidence.
    pub ranks: Vec<RankResult>,
    /// In the order of their names.
    pub nodes: Vec<Node>,
    pub clocks: Vec<Clock>,
    pub instances: Vec<Instances>,
    /// The robust deviation of ends of one collective from each other, once clocks are aligned.
    pub residual_ns: Option<u64>,
    /// What of the evidence could not be used, and why.
    pub flaws: Vec<Flaw>,
    /// The groups of connected clocks, where there are several.
    pub apart: Vec<Vec<String>>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankResult {
    /// Of the instances that it was part of.
    pub arrived: Option<Arrived>,
    /// What it did beside waiting, against the others.
    pub rounds: Option<Rounds>,
    /// Its kernels' time by that of the same kernels of others.
    pub compute_ratio: Option<f64>,
    /// By how much its kernels lasted longer in a round; below nothing where they lasted less.
    pub compute_extra_ns: Option<i64>,
}

pub fn judge(evidence: &Evidence, limits: &Limits) -> Judgement {
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
        clocks: aligned.clocks(),
        instances,
        residual_ns: aligned.residual_ns,
        flaws: found.flaws,
        verdict,
    }
}
