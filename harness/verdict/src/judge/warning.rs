//! Assertions that only warn: a number out of bounds is reported, and neither fails nor passes.

use super::subject;
use metric::finding::Finding;
use model::artefact::{PlannedAssertion, Status, Verdict};

/// The cause of such a verdict, and the code of its finding.
pub(super) const WARNING: &str = "warning";

pub(super) fn soften(assertion: &PlannedAssertion, verdict: &mut Verdict) {
    if assertion.bound.warn && verdict.status == Status::Fail {
        verdict.status = Status::Skipped;
        verdict.cause = Some(WARNING.to_owned());
        verdict.message = format!("warning only: {}", verdict.message);
    }
}

/// One for each metric of the case.
pub(super) fn findings(assertions: &[PlannedAssertion], verdicts: &[Verdict]) -> Vec<Finding> {
    let mut findings: Vec<(Finding, usize)> = Vec::new();
    let warned = assertions.iter().zip(verdicts);
    for (assertion, verdict) in warned.filter(|(_, verdict)| verdict.cause.as_deref() == Some(WARNING)) {
        let metric = format!("{} ", assertion.metric);
        match findings.iter_mut().find(|(finding, _)| finding.message.starts_with(&metric)) {
            Some((_, more)) => *more += 1,
            None => {
                let observed = verdict.observed.map_or_else(String::new, |value| assertion.unit.show(value));
                let file = verdict.evidence.first().map(|evidence| evidence.file.clone()).unwrap_or_default();
                let message = format!("{}: {observed}, out of bounds (warning only)", subject(assertion));
                findings.push((Finding::new(WARNING, message).file(&file), 0));
            }
        }
    }
    let findings = findings.into_iter().map(|(mut finding, more)| {
        if more > 0 {
            finding.message.push_str(&format!("; and {more} more"));
        }
        finding
    });
    findings.collect()
}
