//! Which culprit explains a red result, so that a fault is reported once and not once for each assertion that it fails.
//! Only what took part in the job of a result explains it, and a NIC explains nothing that stayed inside one node. What was
//! not measured because the run was stopped is explained by none.

use super::{Report, unlaunched};
use crate::report::text::gpu_of;
use metric::Names;
use model::artefact::{Culprit, PlannedAssertion, PlannedCase, Status, Verdict};
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// The culprits of a run, with the jobs that they took part in.
pub(crate) struct Explanations<'a> {
    culprits: &'a [Culprit],
    planned: BTreeMap<&'a str, (&'a PlannedCase, &'a PlannedAssertion)>,
    /// Why the run was stopped.
    stopped: Option<&'a str>,
}

impl<'a> Explanations<'a> {
    /// Those of a run; what it planned is looked at only where it names any.
    pub(crate) fn new(report: &Report<'a>) -> Explanations<'a> {
        let culprits = &report.summary.culprits[..];
        let cases = report.plan.cases.iter().filter(|_| !culprits.is_empty());
        let planned =
            cases.flat_map(|case| case.assertions.iter().map(move |one| (one.name.as_str(), (case, one))));
        let stopped = report.summary.interrupted.as_deref();
        Explanations { culprits, planned: planned.collect(), stopped }
    }

    /// The first culprit that explains a result, by its index in the summary; none for a result that is not red.
    pub(crate) fn index_of(&self, verdict: &Verdict) -> Option<usize> {
        if self.culprits.is_empty() || !verdict.status.is_red() {
            return None;
        }
        if unlaunched::by_stop(verdict, self.stopped) {
            return None;
        }
        let jobs = self.nodes_of_jobs(verdict);
        self.culprits.iter().position(|culprit| explains(culprit, verdict, &jobs))
    }

    /// That culprit.
    pub(crate) fn culprit_of(&self, verdict: &Verdict) -> Option<&'a Culprit> {
        self.index_of(verdict).and_then(|at| self.culprits.get(at))
    }

    /// The nodes of each job that a result was read from.
    fn nodes_of_jobs(&self, verdict: &Verdict) -> Vec<Vec<String>> {
        match self.planned.get(verdict.name.as_str()) {
            Some((case, assertion)) => {
                let jobs = case.jobs.iter().filter(|job| assertion.jobs.contains(&job.name));
                jobs.map(|job| job.nodes.clone()).collect()
            }
            None => vec![base::nodeset::expand(&verdict.nodes).unwrap_or_default()],
        }
    }
}

fn explains(culprit: &Culprit, verdict: &Verdict, jobs: &[Vec<String>]) -> bool {
    let took_part = |node: &String| jobs.iter().any(|nodes| nodes.contains(node));
    match culprit {
        Culprit::Culprit { node, part, evidence, .. } => {
            let of_host = ["memory", "disk"].contains(&part.as_str());
            let is_network = !of_host
                && !["node", "nvlink"].contains(&part.as_str())
                && !part.starts_with("rank")
                && gpu_of(part).is_none();
            let is_about_it = match (&verdict.node, &verdict.part) {
                // A job that failed as a whole measured none of its nodes and parts.
                _ if part == "node" && is_of_failed_job(verdict, evidence) => true,
                (Some(of), Some(own)) => {
                    of == node
                        && (is_of(own, part)
                            || part == "nvlink" && has_code(&verdict.metric, "HRN-NVLINK-SLOW"))
                }
                // What a node shows in a job that it shares is that job's.
                (Some(of), None) => of == node || jobs.iter().all(|nodes| nodes.contains(node)),
                (None, _) => true,
            };
            let is_inside = verdict.part.is_none() && jobs.iter().all(|nodes| nodes.len() < 2);
            let is_its_metric = !of_host || speaks_against(&verdict.metric, part);
            is_about_it && is_its_metric && took_part(node) && !(is_network && is_inside)
        }
        Culprit::Suspects { nodes: suspected, .. } => suspected.iter().any(took_part),
        Culprit::Fleet { .. } => false,
    }
}

/// Whether a metric speaks against parts with this code.
fn has_code(metric: &str, code: &str) -> bool {
    let names = recipe::built_in(metric).map(|metric| metric.names);
    matches!(names, Some(Names::Coded(_, own)) if own == code)
}

/// Whether a metric says by itself that this part is at fault.
fn speaks_against(metric: &str, part: &str) -> bool {
    let names = recipe::built_in(metric).map(|metric| metric.names);
    matches!(names, Some(Names::Coded(Some(own), _)) if own == part)
}

/// Whether a result is missing for what a node is blamed for.
fn is_of_failed_job(verdict: &Verdict, evidence: &str) -> bool {
    let cause = verdict.cause.as_deref().unwrap_or_default();
    match verdict.status {
        Status::Error => true,
        Status::Inconclusive => !cause.is_empty() && evidence.split(':').next() == Some(cause),
        _ => false,
    }
}

/// Whether a part that a result is about belongs to the part that is blamed.
fn is_of(own: &str, blamed: &str) -> bool {
    own == blamed || blamed == "node" || (blamed == "fabric" && gpu_of(own).is_none())
}

/// How many red results a culprit explains, and in how many cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExplainedCount {
    pub results: usize,
    pub cases: usize,
}

/// The counts by culprit, in the order of the summary.
pub(crate) fn counts(report: &Report, explanations: &Explanations) -> Vec<ExplainedCount> {
    let mut counts = vec![ExplainedCount::default(); report.summary.culprits.len()];
    for case in report.cases {
        let mut of_case = BTreeSet::new();
        for at in case.verdicts.iter().filter_map(|verdict| explanations.index_of(verdict)) {
            counts[at].results += 1;
            of_case.insert(at);
        }
        of_case.into_iter().for_each(|at| counts[at].cases += 1);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::{Made, Reported as _};

    fn part(node: &str, part: &str) -> Culprit {
        Culprit::Culprit { node: node.into(), part: part.into(), evidence: "slow".into(), code: None }
    }

    #[test]
    fn a_part_explains_its_own_results_and_jobs_that_it_took_part_in() {
        // Blamed, then the result's nodes, its node and its part, and whether the one explains the other.
        let table = [
            (part("n2", "rdmap1s0"), "n2", Some("n2"), Some("rdmap1s0"), true),
            (part("n2", "rdmap1s0"), "n2", Some("n2"), Some("rdmap2s0"), false),
            (part("n2", "rdmap1s0"), "n1", Some("n1"), Some("rdmap1s0"), false),
            (part("n2", "rdmap1s0"), "n[1-4]", None, None, true),
            (part("n2", "rdmap1s0"), "n[3-4]", None, None, false),
            (part("n2", "rdmap1s0"), "n2", Some("n2"), None, false),
            (part("n2", "rdmap1s0"), "n1", Some("n1"), None, false),
            (part("n2", "gpu3"), "n2", Some("n2"), None, true),
            (part("n2", "gpu3"), "n2", Some("n2"), Some("gpu4"), false),
            (part("n2", "fabric"), "n2", Some("n2"), Some("rdmap9s0"), true),
            (part("n2", "fabric"), "n2", Some("n2"), Some("gpu1"), false),
            (part("n2", "node"), "n2", Some("n2"), Some("gpu1"), true),
            (
                Culprit::Suspects { nodes: vec!["n1".into(), "n2".into()], evidence: "hang".into() },
                "n[2-3]",
                None,
                None,
                true,
            ),
            (Culprit::Fleet { evidence: "low".into() }, "n[1-4]", None, None, false),
        ];
        for (culprit, nodes, node, about, expected) in table {
            let mut verdict = fixture::verdict("c", "rate", "n", "p", Status::Fail);
            verdict.nodes = nodes.into();
            verdict.node = node.map(str::to_owned);
            verdict.part = about.map(str::to_owned);
            let mut case = fixture::case("c");
            case.verdicts = vec![verdict];
            case.culprits = vec![culprit.clone()];
            let made = Made::from_cases(vec![case]);
            let report = made.report();
            let found = Explanations::new(&report).index_of(&made.cases[0].verdicts[0]);
            assert_eq!(found.is_some(), expected, "{culprit}: {nodes} {node:?} {about:?}");
        }
    }

    #[test]
    fn a_node_that_broke_a_job_explains_all_that_the_job_lacks() {
        let mut case = fixture::case("c");
        case.verdicts = vec![fixture::verdict("c", "rate", "n1", "rdmap1s0", Status::Error)];
        case.verdicts[0].nodes = "n[1-2]".into();
        case.culprits = vec![part("n2", "node")];
        let mut made = Made::from_cases(vec![case]);
        let explains = |made: &Made| {
            let report = made.report();
            Explanations::new(&report).index_of(&made.cases[0].verdicts[0]).is_some()
        };
        assert!(explains(&made));
        made.cases[0].verdicts[0].status = Status::Fail;
        assert!(!explains(&made), "what was measured on another node's NIC is that NIC's");
        made.cases[0].verdicts[0].status = Status::Inconclusive;
        assert!(!explains(&made), "it is missing for another cause");
        made.cases[0].verdicts[0].cause = Some("slow".into());
        assert!(explains(&made));
    }

    #[test]
    fn what_the_end_of_the_run_left_is_explained_by_no_culprit() {
        let mut case = fixture::case("c");
        case.verdicts = vec![fixture::verdict("c", "rate", "n2", "p", Status::Error)];
        case.verdicts[0].cause = Some("not-run".into());
        let suspects = Culprit::Suspects { nodes: vec!["n1".into(), "n2".into()], evidence: "slow".into() };
        case.culprits = vec![part("n2", "node"), suspects];
        let mut made = Made::from_cases(vec![case]);
        let mut explains = |message: &str, interrupted: Option<&str>| {
            made.cases[0].verdicts[0].message = format!("nic.rate on n2: job n1+n2: {message}");
            made.summary.interrupted = interrupted.map(str::to_owned);
            let report = made.report();
            Explanations::new(&report).index_of(&made.cases[0].verdicts[0]).is_some()
        };
        assert!(!explains("not run: --max-fail 1: 2 assertions failed", None));
        assert!(!explains("not run: interrupted", Some("interrupted")));
        // What a culprit kept from running is its doing.
        assert!(explains("not run: all hung on the same nodes", Some("interrupted")));
    }

    #[test]
    fn what_passed_needs_no_explanation() {
        let mut case = fixture::case("c");
        case.verdicts = vec![fixture::verdict("c", "rate", "n2", "rdmap1s0", Status::Pass)];
        case.culprits = vec![part("n2", "rdmap1s0")];
        let made = Made::from_cases(vec![case]);
        let report = made.report();
        assert_eq!(counts(&report, &Explanations::new(&report)), [ExplainedCount::default()]);
    }
}
