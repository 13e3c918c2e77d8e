//! Cases that need an mpirun which no pod has: what the preflight adds to a plan.

use job::script::{self, Step, files};
use model::artefact::{Launcher, Plan, PlannedCase, PlannedJob, Probe, Value};

/// Skips them. All pods run one image: where one of them has an mpirun, and where one did not report any, nothing is
/// skipped, and jobs find out. So they do where the inventory says where it lies.
pub fn skip_without_mpirun(plan: &mut Plan, probe: &Probe) {
    if plan.launcher != Launcher::Kubernetes {
        return;
    }
    let lacks = |node: &String| {
        let probed = probe.nodes.iter().find(|probed| probed.node == *node);
        match probed.and_then(|probed| probed.facts.get("launchers")) {
            Some(Value::Names(names)) => !names.iter().any(|name| name.starts_with("mpirun ")),
            _ => false,
        }
    };
    if plan.nodes.is_empty() || !plan.nodes.iter().all(lacks) {
        return;
    }
    for case in plan.cases.iter_mut().filter(|case| case.skip.is_none() && case.jobs.iter().any(looks)) {
        skip(case);
    }
}

/// Whether its script has mpirun looked for.
fn looks(job: &PlannedJob) -> bool {
    let text = job.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
    let steps = text.and_then(|text| script::read(text).ok()).map(|script| script.steps).unwrap_or_default();
    let found = |step: &Step| match step {
        Step::Run(run) => run.mpi.as_deref() == Some(script::FIND_MPIRUN),
        _ => false,
    };
    steps.iter().any(found)
}

fn skip(case: &mut PlannedCase) {
    case.skip = Some(format!(
        "unsupported: the image has no mpirun, neither on PATH nor at {}; set `image` of `[reach]` or `paths.mpirun`",
        script::AWS_MPIRUN
    ));
    case.jobs.clear();
    for assertion in &mut case.assertions {
        assertion.jobs.clear();
    }
}
