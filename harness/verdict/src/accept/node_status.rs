//! The status of each node after a run: the assertions that did not pass for it, and the cases without a result for it.

use super::attribution::{Attribution, Unattributable, judged};
use crate::unjudged;
use base::text::count;
use model::artefact::{CaseVerdict, JudgedBy, NotInstalled, Plan, PlannedCase, Status, Verdict};
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};

/// Nothing in it: every assertion of every case passed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeStatus {
    /// By case in the order of the plan; entries of no single case come last.
    pub bad: Vec<Bad>,
}

/// An assertion that did not pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Bad {
    /// The assertion's name; without a result `suite::case`, or empty where no case applies.
    pub name: String,
    /// The case's name; empty where no single case applies.
    pub case: String,
    /// Never `Pass` or `Unjudged`.
    pub status: Status,
    /// The verdict's message, or why there is no result.
    pub message: String,
    /// The assertion's metric; empty where there is no assertion.
    pub metric: String,
    /// A device or `gpuN`; `None` where the assertion is not about one part.
    pub part: Option<String>,
    /// It covers this node alone, rather than all that ran together.
    pub is_own: bool,
    /// Why a failure speaks against no node; `None` where it does, and where nothing failed.
    pub unattributable: Option<Unattributable>,
    /// Measured, and outside the bounds of a baseline that one number does not fail.
    pub is_near_miss: bool,
    /// The other nodes of its jobs.
    pub with: BTreeSet<String>,
}

impl NodeStatus {
    /// Whether every assertion of every case passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.bad.is_empty()
    }

    /// Whether an assertion ended with this status.
    pub(crate) fn any(&self, status: Status) -> bool {
        self.bad.iter().any(|bad| bad.status == status)
    }

    /// Measured, and out of bounds: a node of which this holds is not accepted by another run.
    pub fn is_red(&self) -> bool {
        self.bad.iter().any(Bad::is_red)
    }

    /// The same by a failure that speaks against the node.
    pub fn has_failed(&self) -> bool {
        self.bad.iter().any(|bad| bad.is_red() && bad.unattributable.is_none())
    }

    /// Whether nothing but near misses kept it from passing.
    pub(crate) fn is_near_miss(&self) -> bool {
        !self.bad.is_empty() && self.bad.iter().all(|bad| bad.is_near_miss)
    }

    /// The gravest of it, in words: first what speaks against the node.
    pub fn why(&self) -> String {
        let own = self.bad.iter().find(|bad| bad.status == Status::Fail && bad.unattributable.is_none());
        let gravest = [Status::Fail, Status::Error, Status::Inconclusive];
        let of = |status: &Status| self.bad.iter().find(|bad| bad.status == *status);
        match own.or_else(|| gravest.iter().find_map(of)).or(self.bad.first()) {
            Some(bad) => format!("{}: {}{}", bad.status, bad.message, bad.names_no_node()),
            None => String::new(),
        }
    }

    /// A few of the assertions, measured failures first.
    pub(crate) fn names(&self) -> Vec<String> {
        const SHOWN: usize = 8;
        let (failed, rest): (Vec<&Bad>, Vec<&Bad>) =
            self.bad.iter().partition(|bad| bad.status == Status::Fail);
        failed.into_iter().chain(rest).take(SHOWN).map(|bad| bad.name.clone()).collect()
    }
}

impl Bad {
    fn is_red(&self) -> bool {
        matches!(self.status, Status::Fail | Status::UnexpectedPass)
    }

    /// Why it names no node, and the next step; empty where the message says so, and where it names one.
    fn names_no_node(&self) -> String {
        let Bad { name, metric, .. } = self;
        match self.unattributable {
            None | Some(Unattributable::BelowFloor) => String::new(),
            Some(Unattributable::Metric) => format!(
                "; `{metric}` names no node: look at the output of `{name}`, or set `severity = \"warn\"` on it if it is \
                 not to decide"
            ),
            Some(Unattributable::Shared { failed, all }) => format!(
                "; {failed} of {} fail `{metric}`, which names none of them: check its limit and what they share",
                count(all, "node")
            ),
        }
    }
}

/// Nodes that ran together in a case and did well: of all that was judged of their jobs, all passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The case's name.
    pub case: String,
    /// All nodes of one job, two or more.
    pub nodes: BTreeSet<String>,
}

/// Who did well together in a run, by what was judged of their jobs in both directions.
pub fn did_well_together(plan: &Plan, verdicts: &[CaseVerdict]) -> Vec<Together> {
    let mut all = Vec::new();
    for case in &plan.cases {
        let nodes_of = |name: &String| {
            let job = case.jobs.iter().find(|job| job.name == *name)?;
            Some(job.nodes.iter().cloned().collect::<BTreeSet<_>>()).filter(|nodes| nodes.len() > 1)
        };
        let mut well: BTreeMap<BTreeSet<String>, bool> = BTreeMap::new();
        for (assertion, verdict) in judged(case, verdicts) {
            if verdict.status != Status::Unjudged {
                for nodes in assertion.jobs.iter().filter_map(nodes_of) {
                    *well.entry(nodes).or_insert(true) &= verdict.status == Status::Pass;
                }
            }
        }
        let well = well.into_iter().filter(|(_, well)| *well);
        all.extend(well.map(|(nodes, _)| Together { case: case.name.clone(), nodes }));
    }
    all
}

/// Of each of these nodes, by what a stored run came to.
pub fn node_statuses(
    nodes: &[String],
    plan: &Plan,
    verdicts: &[CaseVerdict],
    catalogue: &Catalogue,
) -> BTreeMap<String, NodeStatus> {
    let attribution = Attribution::new(plan, verdicts, catalogue);
    let mut node_statuses: BTreeMap<String, NodeStatus> =
        nodes.iter().map(|node| (node.clone(), NodeStatus::default())).collect();
    for case in &plan.cases {
        let mut covered: BTreeSet<&str> = BTreeSet::new();
        let jobs: BTreeMap<&str, &[String]> =
            case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
        for (assertion, verdict) in judged(case, verdicts) {
            let of_jobs = || {
                let named = assertion.jobs.iter().filter_map(|job| jobs.get(job.as_str()));
                named.flat_map(|nodes| nodes.iter().map(String::as_str)).collect::<BTreeSet<_>>()
            };
            let concerned: BTreeSet<&str> = match &assertion.node {
                Some(node) => [node.as_str()].into(),
                None => of_jobs(),
            };
            for node in concerned {
                // Without anything to compare it with, a number is no evidence for or against a node.
                if verdict.status == Status::Unjudged {
                    continue;
                }
                covered.extend(nodes.iter().map(String::as_str).find(|known| *known == node));
                if verdict.status == Status::Pass {
                    continue;
                }
                let Some(node_status) = node_statuses.get_mut(node) else { continue };
                node_status.bad.push(Bad {
                    name: verdict.name.clone(),
                    case: case.name.clone(),
                    status: verdict.status,
                    message: verdict.message.clone(),
                    metric: verdict.metric.clone(),
                    part: verdict.part.clone(),
                    is_own: assertion.node.is_some(),
                    unattributable: attribution.unattributable(case, verdict),
                    is_near_miss: is_near_miss(verdict),
                    with: of_jobs().into_iter().filter(|other| *other != node).map(str::to_owned).collect(),
                });
            }
        }
        let uncovered = |node: &String| !covered.contains(node.as_str()) && !is_spared(case, node);
        for (node, node_status) in node_statuses.iter_mut().filter(|(node, _)| uncovered(node)) {
            node_status.bad.push(not_covered(node, case));
        }
    }
    // A stage that asks nothing of a node shows nothing of it.
    let is_unasked = |node: &String| plan.cases.iter().all(|case| is_spared(case, node));
    for (node, node_status) in node_statuses.iter_mut().filter(|(node, _)| is_unasked(node)) {
        node_status.bad.extend(plan.cases.first().map(|case| not_covered(node, case)));
    }
    let judged: Vec<&CaseVerdict> = verdicts.iter().collect();
    for node in unjudged::nodes_without_judged(plan, &judged) {
        let Some(node_status) = node_statuses.get_mut(&node) else { continue };
        node_status.bad.push(Bad {
            message: "one of its parts has no judged number, there is nothing to compare with".to_owned(),
            ..nothing(&node)
        });
    }
    if plan.cases.is_empty() {
        node_statuses.iter_mut().for_each(|(node, node_status)| node_status.bad.push(nothing(node)));
    }
    node_statuses
}

/// Whether a number missed the bounds of a published figure, or those of an accepted baseline by less than its noise. A number
/// that was not compared has no bounds.
fn is_near_miss(verdict: &Verdict) -> bool {
    let is_by_baseline = matches!(verdict.judged_by, Some(JudgedBy::Published | JudgedBy::AcceptedBaseline));
    let has_bounds = verdict.lower.is_some() || verdict.upper.is_some();
    verdict.status == Status::Inconclusive && is_by_baseline && has_bounds && verdict.is_measured()
}

fn nothing(node: &str) -> Bad {
    Bad {
        name: String::new(),
        case: String::new(),
        status: Status::Inconclusive,
        message: format!("no case was planned on {node}"),
        metric: String::new(),
        part: None,
        is_own: true,
        unattributable: None,
        is_near_miss: false,
        with: BTreeSet::new(),
    }
}

/// Whether the case is not run on the node since its program is not installed.
fn is_spared(case: &PlannedCase, node: &str) -> bool {
    case.not_installed.as_ref().is_some_and(|absent| absent.skipped.contains(node))
}

/// A case without an assertion on the node shows nothing about it.
fn not_covered(node: &str, case: &PlannedCase) -> Bad {
    let absent = case.not_installed.as_ref().filter(|_| is_spared(case, node)).map(NotInstalled::reason);
    let why = case.skip.clone().or(absent).unwrap_or_else(|| "none of its assertions covers it".to_owned());
    Bad {
        name: format!("{}::{}", case.suite, case.name),
        case: case.name.clone(),
        status: Status::Inconclusive,
        message: format!("case `{}` has no result for {node}: {why}", case.name),
        metric: String::new(),
        part: None,
        is_own: false,
        unattributable: None,
        is_near_miss: false,
        with: BTreeSet::new(),
    }
}

#[cfg(test)]
#[path = "node_status_tests.rs"]
mod tests;
