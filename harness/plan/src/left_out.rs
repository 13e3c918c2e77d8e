//! A plan whose nodes do not all take part: what can be asked of the rest is asked of them, and what was planned on a
//! node that was left out keeps its name and its place, and is not launched.

use base::nodeset;
use model::artefact::{LeftOut, Plan, PlannedAssertion, PlannedCase, PlannedJob};
use std::collections::BTreeSet;

/// `full` is planned on all nodes, `rest` on those that are left, if any are. Where a case cannot be planned on them, its
/// jobs are those of `full`: those that need no node that was left out are run as they are.
pub fn leave_out(full: Plan, rest: Option<Plan>, left_out: Vec<LeftOut>) -> Plan {
    let gone: BTreeSet<&str> = left_out.iter().map(|left| left.node.as_str()).collect();
    let mut of_rest = rest.map(|rest| rest.cases).unwrap_or_default();
    let cases = full.cases.into_iter().map(|case| {
        let at = of_rest.iter().position(|other| other.suite == case.suite && other.name == case.name);
        let other = at.map(|at| of_rest.swap_remove(at)).filter(|other| other.skip.is_none());
        match other {
            Some(other) if case.skip.is_none() => joined(case, other, &gone),
            _ => case,
        }
    });
    let cases = cases.collect();
    Plan { cases, left_out, ..full }
}

/// The plan of a run that leaves more nodes out from here on. Cases that have begun stay as they are: what is still to
/// come of them is run where it needs none of those nodes. The others are planned on the rest.
pub fn quarantine(
    plan: &Plan,
    rest: Option<Plan>,
    more: Vec<LeftOut>,
    has_begun: &dyn Fn(usize) -> bool,
) -> Plan {
    let mut left_out = plan.left_out.clone();
    left_out.extend(more);
    let begun: BTreeSet<usize> = (0..plan.cases.len()).filter(|case| has_begun(*case)).collect();
    let mut amended = leave_out(plan.clone(), rest, left_out);
    for at in begun {
        amended.cases[at].clone_from(&plan.cases[at]);
    }
    amended
}

/// The case on the nodes that are left, and beside it what was planned on those that are not.
fn joined(full: PlannedCase, rest: PlannedCase, gone: &BTreeSet<&str>) -> PlannedCase {
    let lost: BTreeSet<String> =
        full.jobs.iter().filter(|job| touches(job, gone)).map(|job| job.name.clone()).collect();
    let concerns = |assertion: &PlannedAssertion| {
        let nodes = nodeset::expand(&assertion.nodes).unwrap_or_default();
        nodes.iter().any(|node| gone.contains(node.as_str()))
            && assertion.jobs.iter().any(|job| lost.contains(job))
    };
    let kept: Vec<PlannedAssertion> = full.assertions.into_iter().filter(|one| concerns(one)).collect();
    let names: BTreeSet<&str> = kept.iter().map(|assertion| assertion.name.as_str()).collect();
    // Of one name there is one verdict, and what covers fewer nodes is no answer to what was asked.
    let mut assertions: Vec<PlannedAssertion> =
        rest.assertions.into_iter().filter(|assertion| !names.contains(assertion.name.as_str())).collect();
    assertions.extend(kept.into_iter().map(|mut assertion| {
        assertion.jobs.retain(|job| lost.contains(job));
        assertion.jobs.iter_mut().for_each(|job| *job = renamed(job));
        assertion
    }));
    let mut jobs = rest.jobs;
    jobs.extend(full.jobs.into_iter().filter(|job| lost.contains(&job.name)).map(|mut job| {
        job.rename(renamed);
        job
    }));
    PlannedCase { jobs, assertions, ..rest }
}

fn touches(job: &PlannedJob, gone: &BTreeSet<&str>) -> bool {
    job.nodes.iter().any(|node| gone.contains(node.as_str()))
}

/// A job on the rest of the nodes may have the same name, and is another.
fn renamed(job: &str) -> String {
    match job.ends_with(LEFT_OUT_JOB) {
        true => job.to_owned(),
        false => format!("{job}{LEFT_OUT_JOB}"),
    }
}

const LEFT_OUT_JOB: &str = ".left-out";
