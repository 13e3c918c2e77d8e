//! Which assertions have to be rerun: no red one may be forgotten, and no green one rerun for ever.

use crate::judge::absent;
use crate::pending::{pending, still_pending};
use model::artefact::{CaseVerdict, Plan, Status};

/// The fixture's plan, and its one case with these two verdicts.
fn ran(statuses: [Status; 2]) -> (Plan, CaseVerdict) {
    let plan = fixture::plan();
    let mut case = fixture::case("nics");
    case.verdicts = plan.cases[0]
        .assertions
        .iter()
        .zip(statuses)
        .map(|(assertion, status)| {
            let mut verdict = fixture::verdict("nics", "rate", "p5-001", "x", status);
            verdict.name.clone_from(&assertion.name);
            verdict
        })
        .collect();
    (plan, case)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.cases[0].assertions.iter().map(|assertion| assertion.name.clone()).collect()
}

#[test]
fn what_failed_or_was_not_measured_is_rerun_and_what_passed_is_not() {
    for status in [Status::Fail, Status::Inconclusive, Status::Error, Status::UnexpectedPass, Status::Skipped]
    {
        let (plan, case) = ran([Status::Pass, status]);
        assert_eq!(pending(&plan, &[Some(case), None]), names(&plan)[1..], "{status}");
    }
    for status in [Status::Pass, Status::ExpectedFailure, Status::Unjudged] {
        let (plan, case) = ran([status, Status::Pass]);
        assert_eq!(pending(&plan, &[Some(case), None]), Vec::<String>::new(), "{status}");
    }
}

#[test]
fn a_case_without_verdicts_is_rerun_as_a_whole() {
    let (plan, _) = ran([Status::Pass; 2]);
    assert_eq!(pending(&plan, &[None, None]), names(&plan));
    assert_eq!(pending(&plan, &[]), names(&plan));
}

#[test]
fn a_case_that_its_own_precondition_skipped_and_a_warning_are_not_rerun() {
    let (mut plan, case) = ran([Status::Skipped; 2]);
    plan.cases[0].skip = Some("needs 8 nodes".into());
    assert_eq!(pending(&plan, &[Some(case), None]), Vec::<String>::new());
    let (plan, mut case) = ran([Status::Skipped; 2]);
    case.verdicts[0].cause = Some(absent::ABSENT.to_owned());
    assert_eq!(pending(&plan, &[Some(case), None]), names(&plan)[1..]);
}

#[test]
fn what_an_earlier_run_left_open_stays_open_until_it_passes() {
    let (mut plan, case) = ran([Status::Pass, Status::Fail]);
    plan.pending = names(&plan);
    plan.pending.push("another suite's".into());
    assert_eq!(pending(&plan, &[Some(case.clone()), None]), [names(&plan)[1].as_str(), "another suite's"]);
    assert_eq!(still_pending(&plan, [&case]), [names(&plan)[1].as_str(), "another suite's"]);
    assert_eq!(still_pending(&plan, []), plan.pending);
    for (status, cause, is_open) in [
        (Status::ExpectedFailure, None, false),
        (Status::Skipped, Some(absent::ABSENT), false),
        (Status::Skipped, None, true),
        (Status::Unjudged, None, true),
        (Status::Error, None, true),
    ] {
        let (_, mut case) = ran([Status::Pass, status]);
        case.verdicts[1].cause = cause.map(str::to_owned);
        let open = still_pending(&plan, [&case]).contains(&names(&plan)[1]);
        assert_eq!(open, is_open, "{status}");
    }
}
