//! Second attempts: each verdict and finding of one says that there was a first, how it ended, and on which node.

use super::CaseData;
use super::case_index::CaseIndex;
use metric::finding::Finding;
use model::artefact::{JobRecord, PlannedAssertion, Verdict};

/// Appends the first attempt to the verdict's message.
pub(super) fn add_first(index: &CaseIndex, assertion: &PlannedAssertion, verdict: &mut Verdict) {
    let firsts: Vec<String> = assertion
        .jobs
        .iter()
        .filter_map(|job| first_of(index, job))
        .map(|first| format!("attempt 2 of 2; attempt 1: {}", ended(first)))
        .collect();
    if let Some(first) = firsts.first() {
        let more = match firsts.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        verdict.message = format!("{} ({first}{more})", verdict.message);
    }
}

/// One for each first attempt that another stands for.
pub(super) fn findings(data: &CaseData, index: &CaseIndex) -> Vec<Finding> {
    let firsts = data.case.jobs.iter().filter_map(|job| Some((&job.name, first_of(index, &job.name)?)));
    firsts
        .map(|(second, first)| {
            let why = format!("{second}: attempt 2 of 2 is judged; attempt 1: {}", ended(first));
            let mut finding = Finding::new("second-attempt", why).file(format!("raw/{}", first.name));
            finding.node = first.blamed.as_ref().map(|blamed| blamed.node.clone());
            finding
        })
        .collect()
}

fn first_of<'a>(index: &CaseIndex<'a>, job: &str) -> Option<&'a JobRecord> {
    index.record(index.planned(job)?.again_of.as_ref()?)
}

/// The cause, and the node that was named.
fn ended(first: &JobRecord) -> String {
    match &first.blamed {
        Some(blamed) => format!("{} {}", first.end.cause(), blamed.node),
        None => first.end.cause(),
    }
}
