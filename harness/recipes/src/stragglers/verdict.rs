//! The culprit: a rank, or a node most of whose ranks are late together; with its evidence. If all are late together,
//! or by less than clocks and rounds can resolve, there is no culprit.

use super::robust::median;
use super::rounds::Group;
use super::{Evidence, Limits, RankResult};
use std::collections::BTreeMap;

/// Whether a rank is late by more than limits, clocks and chance explain.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The latest first.
    Named(Vec<Culprit>),
    /// All ranks were compared, and why there is no culprit.
    NoCulprit(String),
    /// Why nothing can be said.
    Inconclusive(String),
}

/// A rank or node that keeps the others waiting.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The node where at least 2 and three quarters of its compared ranks are late.
    pub who: Who,
    /// In each round, the median.
    pub late_ns: i64,
    /// Length of a round, the median.
    pub round_ns: i64,
    /// Lateness by its own standard error; of a node the least of its ranks that are late.
    pub sure: f64,
    /// `Kernels` where they explain at least half of the lateness.
    pub cause: Cause,
    /// One line: rounds late, times last, waits, agreement of clocks.
    pub evidence: String,
}

/// The faulty part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A node most of whose compared ranks are late.
    Node {
        /// As in `Rank::node`.
        node: String,
        /// Its late ranks.
        ranks: Vec<i64>,
    },
    /// One rank, where too few of its node are late to blame the node.
    Rank {
        /// As in `Rank::rank`.
        rank: i64,
        /// As in `Rank::node`.
        node: String,
        /// As in `Rank::gpu`.
        gpu: Option<i64>,
    },
}

/// What takes the time that the others do not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its kernels last longer than the same kernels of the others.
    Kernels,
    /// Its kernels do not: it comes to them late.
    Between,
    /// Its kernels could not be compared with those of peers.
    NotRecorded,
}

impl Cause {
    /// As it stands in findings: `its kernels run longer`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::Kernels => "its kernels run longer",
            Cause::Between => "its kernels run as long as others', but start late",
            Cause::NotRecorded => "not recorded",
        }
    }
}

/// The ranks of one node together.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// As in `Rank::node`.
    pub name: String,
    /// Ranks of the evidence on it, compared or not.
    pub ranks: usize,
    /// Medians over its ranks.
    pub late_ns: Option<i64>,
    /// In a collective for the last rank; the median over its ranks.
    pub wait_ns: Option<i64>,
    /// Its kernels' time by that of its peers; the median over its ranks.
    pub compute_ratio: Option<f64>,
    /// The sum over its ranks of `Arrived::last_in`.
    pub last_in: u64,
}

/// Lateness of this many of its standard errors is not by chance, even among hundreds of ranks.
const SURE: f64 = 6.0;
/// Lateness below this many residuals of the clocks does not count.
const RESIDUALS: u64 = 3;

pub(super) fn nodes(evidence: &Evidence, ranks: &[RankResult]) -> Vec<Node> {
    let mut of_node: BTreeMap<&str, Vec<&RankResult>> = BTreeMap::new();
    for (rank, result) in evidence.ranks.iter().zip(ranks) {
        of_node.entry(rank.node).or_default().push(result);
    }
    let nodes = of_node.into_iter().map(|(name, ranks)| {
        let of = |value: fn(&RankResult) -> Option<i64>| {
            median(&mut ranks.iter().filter_map(|rank| value(rank)).collect::<Vec<_>>())
        };
        let ratios = ranks.iter().filter_map(|rank| rank.compute_ratio);
        Node {
            name: name.to_owned(),
            ranks: ranks.len(),
            late_ns: of(|rank| Some(rank.rounds?.late_ns)),
            wait_ns: of(|rank| Some(rank.arrived?.wait_ns)),
            compute_ratio: median(&mut ratios.collect::<Vec<_>>()),
            last_in: ranks.iter().filter_map(|rank| Some(rank.arrived?.last_in)).sum(),
        }
    });
    nodes.collect()
}

pub(super) fn verdict(
    evidence: &Evidence,
    ranks: &[RankResult],
    groups: &[Group],
    residual_ns: Option<u64>,
    limits: &Limits,
) -> Verdict {
    let Some(residual_ns) = residual_ns else {
        return Verdict::Inconclusive(
            "no collective was recorded by all its ranks the same number of times".to_owned(),
        );
    };
    if groups.is_empty() {
        return Verdict::Inconclusive("no two ranks share collectives and do the same work".to_owned());
    }
    let most = groups.iter().filter_map(|group| group.rounds.first()).map(|r| r.rounds).max().unwrap_or(0);
    if most < limits.least_rounds {
        return Verdict::Inconclusive(format!("{most} rounds, at least {} needed", limits.least_rounds));
    }
    let limit_ns = limits.least_ns.max(residual_ns.saturating_mul(RESIDUALS));
    let comparable = ranks.iter().enumerate().filter_map(|(at, rank)| Some((at, rank.rounds?)));
    let comparable: Vec<_> = comparable.filter(|(_, rounds)| rounds.rounds >= limits.least_rounds).collect();
    let is_late = |late_ns: i64| late_ns > 0 && late_ns.unsigned_abs() > limit_ns;
    let late: Vec<usize> = comparable
        .iter()
        .filter(|(_, rounds)| is_late(rounds.late_ns) && rounds.sure >= SURE)
        .map(|(at, _)| *at)
        .collect();
    if late.is_empty() {
        let Some((at, most)) =
            comparable.iter().max_by_key(|(at, rounds)| (rounds.late_ns, std::cmp::Reverse(*at)))
        else {
            return Verdict::Inconclusive("no rank has enough rounds".to_owned());
        };
        return Verdict::NoCulprit(format!(
            "{} of {} ranks compared; latest is rank {}: {} us per round, limit {} us; {:.1} standard errors, limit \
             {SURE:.0}",
            comparable.len(),
            ranks.len(),
            evidence.ranks[*at].rank,
            most.late_ns / 1000,
            limit_ns / 1000,
            most.sure,
        ));
    }
    let mut culprits = Vec::new();
    let mut of_node: BTreeMap<&str, (Vec<usize>, usize)> = BTreeMap::new();
    for (at, _) in &comparable {
        let node = of_node.entry(evidence.ranks[*at].node).or_default();
        node.1 += 1;
        if late.contains(at) {
            node.0.push(*at);
        }
    }
    for (node, (late, of)) in of_node {
        if late.len() >= 2 && late.len() * 4 >= of * 3 {
            let who = Who::Node { node: node.to_owned(), ranks: numbers(evidence, &late) };
            culprits.push(culprit(evidence, ranks, who, &late, residual_ns));
            continue;
        }
        for at in late {
            let rank = &evidence.ranks[at];
            let who = Who::Rank { rank: rank.rank, node: node.to_owned(), gpu: rank.gpu };
            culprits.push(culprit(evidence, ranks, who, &[at], residual_ns));
        }
    }
    culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.late_ns));
    Verdict::Named(culprits)
}

fn numbers(evidence: &Evidence, places: &[usize]) -> Vec<i64> {
    places.iter().map(|at| evidence.ranks[*at].rank).collect()
}

fn culprit(evidence: &Evidence, ranks: &[RankResult], who: Who, late: &[usize], residual_ns: u64) -> Culprit {
    let of = |value: &dyn Fn(&RankResult) -> Option<i64>| {
        median(&mut late.iter().filter_map(|at| value(&ranks[*at])).collect::<Vec<_>>())
    };
    let late_ns = of(&|rank| Some(rank.rounds?.late_ns)).unwrap_or_default();
    let round_ns = of(&|rank| Some(rank.rounds?.length_ns)).unwrap_or_default();
    let extra_ns = of(&|rank| rank.compute_extra_ns);
    let cause = match extra_ns {
        None => Cause::NotRecorded,
        Some(extra_ns) if extra_ns >= late_ns / 2 => Cause::Kernels,
        Some(_) => Cause::Between,
    };
    let rounds = late.iter().filter_map(|at| ranks[*at].rounds);
    let sure = rounds.clone().map(|rounds| rounds.sure).fold(f64::INFINITY, f64::min);
    let (later, all) = rounds.fold((0, 0), |(later, all), of| (later + of.later, all + of.rounds));
    let arrived = late.iter().filter_map(|at| ranks[*at].arrived);
    let (last_in, instances) =
        arrived.fold((0, 0), |(last, all), of| (last + of.last_in, all + of.instances));
    let wait = of(&|rank| Some(rank.arrived?.wait_ns)).unwrap_or_default();
    let others =
        (0..ranks.len()).filter(|at| !late.contains(at)).filter_map(|at| Some(ranks[at].arrived?.wait_ns));
    let others = median(&mut others.collect::<Vec<_>>()).unwrap_or_default();
    let ends = match evidence.ends_assumed {
        true => "collective ends are taken to agree".to_owned(),
        false => format!("collective ends agree within {} us", residual_ns.div_ceil(1000)),
    };
    let mut evidence_text = format!(
        "late in {later} of {all} rounds; last in {last_in} of {instances} collectives; waits {} us, others {} us; \
         {ends}",
        wait / 1000,
        others / 1000,
    );
    if let Some(extra_ns) = extra_ns {
        evidence_text.push_str(&format!("; kernels {} us longer per round", extra_ns / 1000));
    }
    if let Who::Node { ranks: named, .. } = &who {
        let node = evidence.ranks[late[0]].node;
        let all = evidence.ranks.iter().filter(|rank| rank.node == node).count();
        evidence_text.push_str(&format!("; {} of {all} ranks of the node are late", named.len()));
    }
    Culprit { who, late_ns, round_ns, sure, cause, evidence: evidence_text }
}
