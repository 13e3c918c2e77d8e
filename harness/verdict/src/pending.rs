//! What a run owes: assertions that failed or were inconclusive, and those that was pending from before and has not
//! shown. Pure; planning them again is `plan`'s business.

use crate::judge;
use model::artefact::{CaseVerdict, Plan, Status, Verdict};
use std::collections::BTreeSet;

/// By name, in the plan's order, then what is pending from before and was not run. `verdicts` are those of the plan's
/// cases, nothing for a case that has none.
pub fn pending(plan: &Plan, verdicts: &[Option<CaseVerdict>]) -> Vec<String> {
    let mut pending = Vec::new();
    for (at, case) in plan.cases.iter().enumerate() {
        let Some(judged) = verdicts.get(at).and_then(Option::as_ref) else {
            pending.extend(case.assertions.iter().map(|assertion| assertion.name.clone()));
            continue;
        };
        let is_pending = |status: Status| match status {
            Status::Fail | Status::Inconclusive | Status::Error | Status::UnexpectedPass => true,
            // A precondition that does not hold leaves nothing to rerun; a case that another one stopped was never run.
            Status::Skipped => case.skip.is_none(),
            // Running it again gives it nothing to be compared with.
            Status::Pass | Status::ExpectedFailure | Status::Unjudged => false,
        };
        let open = |verdict: &&Verdict| is_pending(verdict.status) && !judge::is_reported_only(verdict);
        let red = judged.verdicts.iter().filter(open);
        pending.extend(red.map(|verdict| verdict.name.clone()));
    }
    for name in still_pending(plan, verdicts.iter().flatten()) {
        if !pending.contains(&name) {
            pending.push(name);
        }
    }
    pending
}

/// What the plan owes from before and no verdict of its own run has shown: it was not run, or went badly again.
pub fn still_pending<'a>(plan: &Plan, verdicts: impl IntoIterator<Item = &'a CaseVerdict>) -> Vec<String> {
    let shown: BTreeSet<&str> = verdicts
        .into_iter()
        .flat_map(|case| &case.verdicts)
        .filter(|verdict| {
            matches!(verdict.status, Status::Pass | Status::ExpectedFailure)
                || judge::is_reported_only(verdict)
        })
        .map(|verdict| verdict.name.as_str())
        .collect();
    plan.pending.iter().filter(|name| !shown.contains(name.as_str())).cloned().collect()
}
