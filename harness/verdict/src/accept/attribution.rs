//! Whether a failure speaks against a node at all, by the rules by which a run blames: what the metric declares, and how
//! many nodes of the case fail alike.

use crate::judge::culprit::{are_few, are_most, blames};
use crate::judge::{few_peers, is_reported_only};
use metric::Blames;
use model::artefact::{BELOW_FLOOR, CaseVerdict, Plan, PlannedAssertion, PlannedCase, Status, Verdict};
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};

/// Why a failure speaks against no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unattributable {
    /// It is below a published floor, like its peers.
    BelowFloor,
    /// The metric is declared to blame no node, or by no recipe.
    Metric,
    /// So many nodes of the case fail by it.
    Shared {
        /// How many fail.
        failed: usize,
        /// How many were measured.
        all: usize,
    },
}

/// Suite, case and metric.
type Key<'a> = (&'a str, &'a str, &'a str);

/// What a run's failures speak against.
pub(super) struct Attribution<'a> {
    catalogue: &'a Catalogue,
    /// How many nodes fail of how many, where these are too many to blame any of them.
    shared: BTreeMap<Key<'a>, (usize, usize)>,
}

/// The nodes of jobs, by whether a number of the job failed.
#[derive(Default)]
struct Nodes<'a> {
    failed: BTreeSet<&'a str>,
    passed: BTreeSet<&'a str>,
}

/// What was judged of a case, without what only reports; with fewer verdicts than assertions nothing was.
pub(super) fn judged<'a>(
    case: &'a PlannedCase,
    verdicts: &'a [CaseVerdict],
) -> impl Iterator<Item = (&'a PlannedAssertion, &'a Verdict)> {
    let found = verdicts.iter().find(|verdict| verdict.suite == case.suite && verdict.case == case.name);
    let judged = found.map(|found| found.verdicts.as_slice());
    let judged = judged.filter(|judged| judged.len() == case.assertions.len()).unwrap_or_default();
    case.assertions.iter().zip(judged).filter(|(_, verdict)| !is_reported_only(verdict))
}

impl<'a> Attribution<'a> {
    /// Of a stored run.
    pub(super) fn new(
        plan: &'a Plan,
        verdicts: &'a [CaseVerdict],
        catalogue: &'a Catalogue,
    ) -> Attribution<'a> {
        let mut of_cases: BTreeMap<Key<'a>, Nodes<'a>> = BTreeMap::new();
        // A node that did well in any case is not one of those that fail alike.
        let mut cleared: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for case in &plan.cases {
            let is_alone = case.jobs.iter().all(|job| job.nodes.len() == 1);
            let mut jobs: BTreeMap<(&str, &str), bool> = BTreeMap::new();
            for (assertion, verdict) in judged(case, verdicts) {
                let failed = match verdict.status {
                    Status::Fail if verdict.cause.as_deref() == Some(BELOW_FLOOR) => continue,
                    Status::Pass if few_peers(verdict).is_some() => continue,
                    Status::Fail | Status::UnexpectedPass => true,
                    Status::Pass => false,
                    _ => continue,
                };
                for job in &assertion.jobs {
                    *jobs.entry((verdict.metric.as_str(), job.as_str())).or_default() |= failed;
                }
            }
            for ((metric, job), failed) in jobs {
                let nodes = case.jobs.iter().filter(|planned| planned.name == job);
                let nodes = nodes.flat_map(|planned| planned.nodes.iter().map(String::as_str));
                if !failed {
                    cleared.entry(metric).or_default().extend(nodes.clone());
                }
                // Which of several nodes made their job fail is found out by other partners.
                if is_alone || blames(catalogue, metric) == Blames::OddNode {
                    let of_case = of_cases.entry((&case.suite, &case.name, metric)).or_default();
                    let side = if failed { &mut of_case.failed } else { &mut of_case.passed };
                    side.extend(nodes);
                }
            }
        }
        let is_shared = |(_, _, metric): &Key<'a>, nodes: &Nodes<'a>| match blames(catalogue, metric) {
            Blames::OddNode => !are_few(nodes.failed.difference(&nodes.passed).count(), nodes.passed.len()),
            _ => {
                let cleared = cleared.get(metric).cloned().unwrap_or_default();
                let all = nodes.failed.len() + nodes.passed.len();
                are_most(nodes.failed.difference(&cleared).count(), all)
            }
        };
        let shared =
            of_cases.iter().filter(|&(key, nodes)| !nodes.failed.is_empty() && is_shared(key, nodes));
        let shared = shared
            .map(|(key, nodes)| (*key, (nodes.failed.len(), nodes.failed.union(&nodes.passed).count())));
        Attribution { catalogue, shared: shared.collect() }
    }

    /// Why a failure of this case speaks against no node; `None` where it does.
    pub(super) fn unattributable(&self, case: &PlannedCase, verdict: &Verdict) -> Option<Unattributable> {
        if !matches!(verdict.status, Status::Fail | Status::UnexpectedPass) {
            return None;
        }
        if verdict.cause.as_deref() == Some(BELOW_FLOOR) {
            return Some(Unattributable::BelowFloor);
        }
        if blames(self.catalogue, &verdict.metric) == Blames::NoNode {
            return Some(Unattributable::Metric);
        }
        let key: Key<'_> = (&case.suite, &case.name, &verdict.metric);
        self.shared.get(&key).map(|&(failed, all)| Unattributable::Shared { failed, all })
    }
}
