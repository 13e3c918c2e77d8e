//! Numbers that another source of the same fact contradicts prove nothing: assertions on them are inconclusive, with both
//! numbers in the message.

use super::{CaseData, subject};
use metric::lacks::Contradiction;
use metric::{Dims, Metric};
use model::artefact::{PlannedAssertion, Status, Verdict};

/// Whether the assertion's numbers are contradicted; the verdict then says why.
pub(super) fn judge(data: &CaseData, assertion: &PlannedAssertion, verdict: &mut Verdict) -> bool {
    let found = assertion
        .jobs
        .iter()
        .filter_map(|job| data.analysis.jobs.get(job))
        .flat_map(|analysis| &analysis.doubts)
        .find(|one| is_about(one, assertion));
    let Some(contradiction) = found else { return false };
    verdict.status = Status::Inconclusive;
    verdict.cause = Some(contradiction.cause.clone());
    verdict.message = format!("{}: contradicted: {}", subject(assertion), contradiction.why);
    verdict.next = Some("compare the two sources, then rerun the case, once without the profiler".to_owned());
    true
}

/// A dimension that the assertion leaves open asks for all of it.
fn is_about(contradiction: &Contradiction, assertion: &PlannedAssertion) -> bool {
    let agrees = |asked: &Dims| {
        contradiction.dims.iter().all(|(dim, value)| asked.get(dim).is_none_or(|asked| asked == value))
    };
    contradiction.metrics.contains(&assertion.metric)
        && agrees(&assertion.dims)
        && (assertion.parts.is_empty() || assertion.parts.iter().any(agrees))
}

/// Whether it contradicts this number of its job.
pub(super) fn speaks_of(contradiction: &Contradiction, row: &Metric) -> bool {
    contradiction.metrics.iter().any(|metric| metric.as_str() == &*row.name)
        && contradiction
            .dims
            .iter()
            .all(|(dim, value)| row.dims.get(dim).is_none_or(|of_row| of_row == value))
}
