//! Numbers that another account of the same thing contradicts prove nothing, neither good nor bad: what asserts them is
//! inconclusive, with both numbers.

use super::{CaseData, subject};
use metric::Dims;
use metric::lacks::Doubt;
use model::artefact::{PlannedAssertion, Status, Verdict};

/// Whether the assertion's numbers are doubted; the verdict then says why.
pub(super) fn judge(data: &CaseData, assertion: &PlannedAssertion, verdict: &mut Verdict) -> bool {
    let doubt = assertion
        .jobs
        .iter()
        .filter_map(|job| data.analysis.jobs.get(job))
        .flat_map(|analysis| &analysis.doubts)
        .find(|doubt| is_about(doubt, assertion));
    let Some(doubt) = doubt else { return false };
    verdict.status = Status::Inconclusive;
    verdict.cause = Some(doubt.cause.clone());
    verdict.message = format!("{}: contradicted: {}", subject(assertion), doubt.why);
    verdict.next = Some("look at both accounts; run the case again, and without the profiler".to_owned());
    true
}

/// What says nothing of a dimension asks for all of it.
fn is_about(doubt: &Doubt, assertion: &PlannedAssertion) -> bool {
    let agrees = |asked: &Dims| {
        doubt.dims.iter().all(|(dim, value)| asked.get(dim).is_none_or(|asked| asked == value))
    };
    doubt.metrics.contains(&assertion.metric)
        && agrees(&assertion.dims)
        && (assertion.parts.is_empty() || assertion.parts.iter().any(agrees))
}
