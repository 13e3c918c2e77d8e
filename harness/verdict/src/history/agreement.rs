//! Whether the culprits of a run's summary are those that its cases come to: a file that was changed, or is another run's,
//! blames no part.

use crate::judge::{common_failure, culprits_of_run, merge_culprits};
use model::artefact::{CaseVerdict, Culprit, JobOutcome, Plan, Summary};
use model::exit_code;
use recipes::catalogue::Catalogue;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use store::{StoreError, Stored};

/// Why a summary blames no part; for people.
pub const DISAGREES: &str =
    "summary.json names other parts than its cases; judge it again with `harness replay --from judge`";

/// Whether the summary names other parts than the verdicts and outcomes beside it come to.
pub fn disagrees<C: Borrow<CaseVerdict>>(
    stored: &Stored,
    summary: &Summary,
    cases: &[C],
) -> Result<bool, StoreError> {
    let has_passed = matches!(summary.exit_code, exit_code::PASSED | exit_code::OWES);
    if summary.culprits.is_empty() && has_passed {
        return Ok(false);
    }
    let mut outcomes: Vec<JobOutcome> = Vec::new();
    for case in &stored.plan.cases {
        outcomes.extend(stored.outcomes(&case.name)?.into_iter().flat_map(|of_case| of_case.jobs));
    }
    let cases: Vec<&CaseVerdict> = cases.iter().map(|case| -> &CaseVerdict { case.borrow() }).collect();
    let named: Vec<Culprit> = cases.iter().flat_map(|case| case.culprits.iter().cloned()).collect();
    if !is_of_this_version(&stored.plan) {
        return Ok(!are_among(&summary.culprits, &named, &outcomes));
    }
    common_failure::clear(&mut outcomes, common_failure::ends_run(cases));
    let of_run = culprits_of_run(&outcomes, &named, &Catalogue::built_in());
    Ok(parts(&summary.culprits) != parts(&merge_culprits(named, of_run)))
}

/// Whether this version names the parts as the one did that made the run. Recipes of a project's own are not at hand.
fn is_of_this_version(plan: &Plan) -> bool {
    plan.harness == env!("CARGO_PKG_VERSION") && plan.recipes.is_empty()
}

/// Each with its node, and suspects together; what is said of a whole fleet blames no part.
fn parts(culprits: &[Culprit]) -> BTreeSet<(Vec<&str>, &str)> {
    let all = culprits.iter().filter(|culprit| !culprit.nodes().is_empty());
    all.map(|culprit| match culprit {
        Culprit::Culprit { node, part, .. } => (vec![node.as_str()], part.as_str()),
        other => (other.nodes(), ""),
    })
    .collect()
}

/// Whether each node is named by a case, or took part in a job that went badly.
fn are_among(culprits: &[Culprit], named: &[Culprit], outcomes: &[JobOutcome]) -> bool {
    let went_badly = |job: &&JobOutcome| job.bad.is_some() || job.judged.values().any(|failed| *failed);
    let mut known: BTreeSet<&str> = named.iter().flat_map(Culprit::nodes).collect();
    known.extend(outcomes.iter().filter(went_badly).flat_map(|job| job.nodes.iter().map(String::as_str)));
    culprits.iter().flat_map(Culprit::nodes).all(|node| known.contains(node))
}
