//! Reports over small made-up runs.

use super::Report;
pub(crate) use fixture::*;
use model::artefact::{Culprit, Status};

pub(crate) trait Reported {
    fn report(&self) -> Report<'_>;
}

/// A failure that ended its run, what the run then left, and an error of a job that had ended before.
pub(crate) fn stopped_by_max_fail() -> Made {
    let reason = "--max-fail 1: 1 assertion failed";
    let mut case = case("c");
    case.verdicts = vec![
        verdict("c", "rate", "n1", "p", Status::Fail),
        verdict("c", "rate", "n2", "p", Status::Error),
        verdict("c", "rate", "n3", "p", Status::Error),
        verdict("c", "rate", "n4", "p", Status::Error),
    ];
    for (at, cause, message) in [(1, "not-run", "not run"), (2, "interrupted", "the run was stopped")] {
        case.verdicts[at].cause = Some(cause.to_owned());
        case.verdicts[at].message = format!("nic.rate on n{}: job j: {message}: {reason}", at + 1);
    }
    let nodes = (1..=4).map(|n| format!("n{n}")).collect();
    case.culprits = vec![Culprit::Suspects { nodes, evidence: "slow".into() }];
    let mut made = Made::from_cases(vec![case]);
    made.summary.interrupted = Some(reason.to_owned());
    made
}

impl Reported for Made {
    fn report(&self) -> Report<'_> {
        Report::new(&self.plan, &self.cases, &self.summary)
    }
}
