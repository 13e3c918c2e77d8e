//! Numbers that a node cannot give, since its driver is too old to have the counter, or since the program is not installed
//! there: they are skipped with that reason, and never pass.

use super::{CaseData, Measured, subject};
use base::nodeset;
use metric::lacks::Absent;
use model::artefact::{PlannedAssertion, PlannedCase, Status, Verdict};
use std::collections::BTreeSet;

/// The cause of such a verdict.
pub(crate) const ABSENT: &str = "source-absent";

/// The cause where a program is not installed.
pub(super) const NOT_INSTALLED: &str = "not-installed";

/// Whether all jobs of the assertion are left out for what a node does not have; the verdict then says so.
pub(super) fn skip(case: &PlannedCase, assertion: &PlannedAssertion, verdict: &mut Verdict) -> bool {
    let is_planned = |name: &String| case.jobs.iter().any(|job| job.name == *name);
    let Some(absent) = case.not_installed.as_ref().filter(|_| !assertion.jobs.iter().any(is_planned)) else {
        return false;
    };
    verdict.status = Status::Skipped;
    verdict.cause = Some(NOT_INSTALLED.to_owned());
    verdict.message = format!("{}: skipped: {}", subject(assertion), absent.reason());
    true
}

/// Whether a node of the assertion lacks the metric's source; the verdict then says so. Where other nodes of the same
/// assertion have it, the assertion as a whole cannot be judged.
pub(super) fn judge(
    data: &CaseData,
    assertion: &PlannedAssertion,
    measured: &Measured,
    verdict: &mut Verdict,
) -> bool {
    let jobs = || assertion.jobs.iter().filter_map(|job| data.analysis.jobs.get(job));
    let is_about = |absent: &&Absent| {
        absent.metrics.contains(&assertion.metric)
            && assertion.node.as_ref().is_none_or(|node| *node == absent.node)
    };
    let absent: Vec<&Absent> = jobs().flat_map(|analysis| &analysis.absent).filter(is_about).collect();
    let Some(first) = absent.first() else { return false };
    let without: BTreeSet<&String> = absent.iter().map(|absent| &absent.node).collect();
    let planned = data.case.jobs.iter().filter(|job| assertion.jobs.contains(&job.name));
    let all: BTreeSet<&String> = match &assertion.node {
        Some(node) => BTreeSet::from([node]),
        None => planned.flat_map(|job| &job.nodes).collect(),
    };
    let all_lack_it = all == without && measured.parts.is_empty();
    let nodes: Vec<String> = without.into_iter().cloned().collect();
    let nodes = nodeset::fold(&nodes);
    verdict.status = if all_lack_it { Status::Skipped } else { Status::Inconclusive };
    verdict.cause = Some(ABSENT.to_owned());
    verdict.message = match all_lack_it {
        true => format!("{}: not judged: {}", subject(assertion), first.why),
        false => format!("{}: not measured on {nodes}: {}", subject(assertion), first.why),
    };
    verdict.next = Some(format!("update the driver on {nodes}, then rerun the case"));
    true
}
