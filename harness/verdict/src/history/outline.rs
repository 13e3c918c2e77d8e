//! What lists of many runs need of a run: its plan and verdicts without scripts, files, words and numbers. Runs of one plan
//! that came to the same then have the same outline.

use super::past::Run;
use model::artefact::{CaseVerdict, Plan};
use std::sync::Arc;

/// In the place of the id: runs with the same plan share it.
const ANY_RUN: &str = "any";

/// Drops all the rest.
pub(super) fn trim(run: &mut Run) {
    trim_plan(Arc::make_mut(&mut run.stored.plan));
    run.cases.iter_mut().for_each(|case| trim_case(Arc::make_mut(case)));
}

fn trim_plan(plan: &mut Plan) {
    plan.run_id = ANY_RUN.to_owned();
    plan.seed = 0;
    (plan.recipes, plan.network, plan.allocations) = Default::default();
    // What the software of a run is made of; the others change with every baseline.
    plan.sources.retain(|source| source.file.starts_with("suites/"));
    for case in &mut plan.cases {
        (case.about, case.tags) = Default::default();
        for job in &mut case.jobs {
            (job.files, job.launch, job.expected) = Default::default();
            (job.folder, job.secrets, job.profile) = Default::default();
        }
        case.assertions.iter_mut().for_each(|assertion| assertion.parts = Default::default());
    }
}

fn trim_case(case: &mut CaseVerdict) {
    case.seconds = 0.0;
    case.findings = Vec::new();
    for verdict in &mut case.verdicts {
        (verdict.message, verdict.evidence, verdict.next) = Default::default();
        (verdict.baseline, verdict.runs) = Default::default();
        (verdict.observed, verdict.lower, verdict.upper) = Default::default();
        (verdict.n, verdict.seconds) = Default::default();
        // That it is about NICs is asked for, and not what they reached.
        let first = verdict.nics.pop_first();
        verdict.nics = first.map(|(nic, _)| (nic, 0.0)).into_iter().collect();
    }
}
