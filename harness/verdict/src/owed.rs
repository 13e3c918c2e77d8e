//! What a run owes: assertions that it failed or could not tell, and those that it owed from before and has not shown.
//! Pure; planning them again is `plan`'s business.

use crate::judge;
use model::artefact::{CaseVerdict, Plan, Status, Verdict};
use std::collections::BTreeSet;

/// By name, in the plan's order, then what is owed from before and was not run. `verdicts` are those of the plan's cases,
/// nothing for a case that has none.
pub fn owed(plan: &Plan, verdicts: &[Option<CaseVerdict>]) -> Vec<String> {
    let mut owed = Vec::new();
    for (at, case) in plan.cases.iter().enumerate() {
        let Some(judged) = verdicts.get(at).and_then(Option::as_ref) else {
            owed.extend(case.assertions.iter().map(|assertion| assertion.name.clone()));
            continue;
        };
        let is_owed = |status: Status| match status {
            Status::Fail | Status::Inconclusive | Status::Error | Status::UnexpectedPass => true,
            // A precondition that does not hold is nobody's debt; a case that another one stopped was never asked.
            Status::Skipped => case.skip.is_none(),
            // Running it again gives it nothing to be compared with.
            Status::Pass | Status::ExpectedFailure | Status::Unjudged => false,
        };
        let open = |verdict: &&Verdict| is_owed(verdict.status) && !judge::is_reported_only(verdict);
        let red = judged.verdicts.iter().filter(open);
        owed.extend(red.map(|verdict| verdict.name.clone()));
    }
    for name in still_owed(plan, verdicts.iter().flatten()) {
        if !owed.contains(&name) {
            owed.push(name);
        }
    }
    owed
}

/// What the plan owes from before and no verdict of its own run has shown: it was not run, or went badly again.
pub fn still_owed<'a>(plan: &Plan, verdicts: impl IntoIterator<Item = &'a CaseVerdict>) -> Vec<String> {
    let shown: BTreeSet<&str> = verdicts
        .into_iter()
        .flat_map(|case| &case.verdicts)
        .filter(|verdict| {
            matches!(verdict.status, Status::Pass | Status::ExpectedFailure)
                || judge::is_reported_only(verdict)
        })
        .map(|verdict| verdict.name.as_str())
        .collect();
    plan.owed.iter().filter(|name| !shown.contains(name.as_str())).cloned().collect()
}
