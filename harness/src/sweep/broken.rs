//! The invariants of any run, checked against its artefacts and the injected faults: a green verdict needs its
//! measurements, and some faults make measurements impossible.

use cluster::run::shared_slots;
use metric::{Dim, Metrics, Query};
use model::artefact::{
    CaseVerdict, Plan, PlannedAssertion, PlannedCase, PlannedProfile, Status, Summary, Verdict,
};
use model::fault::{Fault, NodeFault};
use recipes::catalogue::Catalogue;
use recipes::recipe;
use serde_json::Value;
use std::collections::BTreeSet;

/// The artefacts of one run.
pub struct Left<'a> {
    /// `plan.json`.
    pub plan: &'a Plan,
    /// The injected faults.
    pub faults: &'a [NodeFault],
    /// Lines of `events.jsonl`.
    pub events: &'a [Value],
    /// Verdicts of each case.
    pub cases: &'a [CaseVerdict],
    /// Of each case, in the order of `cases`.
    pub metrics: &'a [Metrics],
    /// `summary.json`.
    pub summary: &'a Summary,
    /// What the simulated cluster itself saw.
    pub violations: &'a [String],
}

/// A message for every invariant that does not hold.
pub fn broken(left: &Left) -> Vec<String> {
    let mut broken: Vec<String> = left.violations.to_vec();
    broken.extend(
        shared_slots(left.events).into_iter().map(|slot| format!("two jobs on one node slot: {slot}")),
    );
    broken.extend(launches(left.events));
    broken.extend(verdicts(left));
    broken.extend(exit_code(left.summary));
    for (case, metrics) in left.cases.iter().zip(left.metrics) {
        let Some(planned) = left.plan.cases.iter().find(|planned| planned.name == case.case) else {
            continue;
        };
        for (assertion, verdict) in planned.assertions.iter().zip(&case.verdicts) {
            if matches!(verdict.status, Status::Pass | Status::UnexpectedPass) {
                broken.extend(green(left, planned, assertion, verdict, metrics));
            }
        }
    }
    broken
}

/// Every job that was launched was launched once and ended once.
fn launches(events: &[Value]) -> Vec<String> {
    let of = |kind: &str| -> Vec<String> {
        let matching = events.iter().filter(|event| event["event"] == kind);
        let mut jobs: Vec<String> =
            matching.map(|event| format!("{}/{}", event["case"], event["job"])).collect();
        jobs.sort();
        jobs
    };
    let (submitted, ended) = (of("job-submitted"), of("job-ended"));
    let mut broken = Vec::new();
    if submitted.windows(2).any(|pair| pair[0] == pair[1]) {
        broken.push(format!("a job was launched twice: {submitted:?}"));
    }
    if submitted != ended {
        broken.push(format!("launched {submitted:?}, ended {ended:?}"));
    }
    broken
}

/// Exactly one verdict per planned assertion, in all that counts them.
fn verdicts(left: &Left) -> Vec<String> {
    let mut broken = Vec::new();
    for planned in &left.plan.cases {
        let cases: Vec<&CaseVerdict> = left
            .cases
            .iter()
            .filter(|case| case.case == planned.name && case.suite == planned.suite)
            .collect();
        let [case] = cases.as_slice() else {
            broken.push(format!("case `{}` has {} verdicts", planned.name, cases.len()));
            continue;
        };
        let expected: Vec<&str> =
            planned.assertions.iter().map(|assertion| assertion.name.as_str()).collect();
        let judged: Vec<&str> = case.verdicts.iter().map(|verdict| verdict.name.as_str()).collect();
        if expected != judged {
            broken.push(format!("case `{}`: planned {expected:?}, judged {judged:?}", planned.name));
        }
        if judged.iter().collect::<BTreeSet<_>>().len() != judged.len() {
            broken.push(format!("case `{}`: an assertion was judged twice", planned.name));
        }
    }
    let planned: usize = left.plan.cases.iter().map(|case| case.assertions.len()).sum();
    if left.summary.counts.total as usize != planned {
        broken.push(format!("{planned} assertions were planned, {} are counted", left.summary.counts.total));
    }
    broken
}

fn exit_code(summary: &Summary) -> Vec<String> {
    let counts = &summary.counts;
    let red = counts.fail + counts.unexpected_pass;
    let inconclusive = counts.inconclusive + counts.error;
    let green = summary.exit_code == model::exit_code::PASSED;
    match green && red + inconclusive > 0 {
        true => vec![format!("exit code 0 with {red} failed and {inconclusive} inconclusive")],
        false => Vec::new(),
    }
}

/// Checks the measurements behind a green verdict.
fn green(
    left: &Left,
    case: &PlannedCase,
    assertion: &PlannedAssertion,
    verdict: &Verdict,
    metrics: &Metrics,
) -> Vec<String> {
    let mut broken = Vec::new();
    let mut report =
        |what: String| broken.push(format!("green without its measurement: {}: {what}", verdict.name));
    if !verdict.observed.is_some_and(f64::is_finite) {
        report(format!("observed {:?}", verdict.observed));
    }
    if verdict.n == 0 || verdict.n != verdict.n_expected {
        report(format!("{} of {} were measured", verdict.n, verdict.n_expected));
    }
    let measured = assertion.jobs.iter().any(|job| {
        let dims = assertion.dims.clone().with(Dim::Job, job.as_str());
        !metrics.select(&Query { metric: assertion.metric.clone(), dims }).is_empty()
    });
    let over_jobs = assertion.metric == recipe::nic_flows::NIC_RATE.name;
    if !measured && !over_jobs {
        report("no such number in the case's metrics".to_owned());
    }
    for fault in left.faults {
        if impossible(&fault.fault, case, assertion, &fault.node) {
            report(format!("{fault} makes it impossible"));
        }
    }
    broken
}

/// Whether a fault of that node makes it impossible to measure what the assertion asks for.
fn impossible(fault: &Fault, case: &PlannedCase, assertion: &PlannedAssertion, node: &str) -> bool {
    let jobs: Vec<_> = case.jobs.iter().filter(|job| assertion.jobs.contains(&job.name)).collect();
    let hit = jobs.iter().filter(|job| job.nodes.iter().any(|name| name == node)).count();
    let from_reports =
        Catalogue::built_in().metric(&assertion.metric).is_some_and(|(recipe, _)| !recipe.tables.is_empty());
    match fault {
        Fault::ReportTruncated
        | Fault::ReportMissing
        | Fault::ReportEmpty
        | Fault::NsysMissing
        | Fault::NsysOld
        | Fault::EventsDropped => {
            from_reports
                && jobs
                    .iter()
                    .filter_map(|job| job.profile.as_ref())
                    .any(|profile| profile.ranks.iter().any(|rank| rank.node == node))
        }
        Fault::WindowShut => {
            let watched = |profile: &&PlannedProfile| profile.window.is_some();
            from_reports
                && jobs
                    .iter()
                    .filter_map(|job| job.profile.as_ref())
                    .filter(watched)
                    .any(|profile| profile.ranks.iter().any(|rank| rank.node == node))
        }
        // Nothing that a job on this node would have measured can be there.
        Fault::Hang
        | Fault::Mismatch { .. }
        | Fault::MismatchSize { .. }
        | Fault::NodeFails
        | Fault::RankDies
        | Fault::Preempted
        | Fault::QueueStuck
        | Fault::HostUnreachable => !jobs.is_empty() && hit == jobs.len(),
        _ => false,
    }
}
