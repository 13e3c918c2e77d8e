//! What is skipped since a node does not have the program, and what counts all the same.

use super::*;
use model::artefact::NotInstalled;
use std::collections::{BTreeMap, BTreeSet};

/// A case with two assertions, the second on a job that is left out, since `n3` has no dcgmi.
fn without() -> World {
    let mut world = World::new(at_least(10.0));
    let left_out = PlannedAssertion { jobs: vec!["k".into()], ..assertion("nccl.busbw", at_least(10.0)) };
    world.case.assertions.push(left_out);
    let nodes = BTreeSet::from(["n3".to_owned()]);
    let without = BTreeMap::from([("dcgmi".to_owned(), nodes.clone())]);
    world.case.not_installed = Some(NotInstalled { without, skipped: nodes });
    world
}

#[test]
fn only_what_was_left_out_is_skipped_and_the_rest_is_judged() {
    for (value, status) in [(11.0, Status::Pass), (9.0, Status::Fail)] {
        let verdicts = without().saw(value).judged().verdict.verdicts;
        assert_eq!((verdicts[0].status, verdicts[1].status), (status, Status::Skipped));
        assert_eq!(verdicts[1].cause.as_deref(), Some("not-installed"));
        assert!(
            verdicts[1].message.ends_with(": skipped: dcgmi is not installed on n3"),
            "{}",
            verdicts[1].message
        );
    }
    let nothing = without().judged().verdict.verdicts;
    assert_eq!(nothing[0].status, Status::Inconclusive, "a program that prints nothing is no absent one");
}

#[test]
fn without_a_program_that_is_absent_a_job_that_was_not_run_is_an_error() {
    let mut world = without().saw(11.0);
    world.case.not_installed = None;
    assert_eq!(world.judged().verdict.verdicts[1].status, Status::Error);
}
