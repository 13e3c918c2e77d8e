//! Refuses a rehearsal with a fault that no check of the run can detect: it would be green and prove nothing.

use super::RunOptions;
use metric::Files;
use model::artefact::{Plan, PlannedJob, WorkloadFacts};
use model::fault::{Fault, NodeFault};
use recipes::catalogue::Catalogue;

/// Why a run with such faults would show nothing; a line for each of them.
pub(crate) fn undetectable(
    plan: &Plan,
    faults: &[NodeFault],
    options: &RunOptions,
    catalogue: &Catalogue,
) -> Vec<String> {
    let compares_clocks =
        |name: &String| catalogue.job_recipe(name).is_some_and(|recipe| recipe.compares_clocks);
    let trains = |facts: &WorkloadFacts| matches!(facts, WorkloadFacts::Training { .. });
    let computes = |facts: &WorkloadFacts| {
        matches!(facts, WorkloadFacts::Training { .. } | WorkloadFacts::Command { .. })
    };
    let reads_counters = |name: &String| {
        let recipe = catalogue.job_recipe(name);
        recipe.is_some_and(|recipe| recipe.metrics.iter().any(|metric| metric.files == Files::Counters))
    };
    let has_window = |job: &PlannedJob| job.profile.as_ref().is_some_and(|profile| profile.window.is_some());
    let jobs = || plan.cases.iter().flat_map(|case| &case.jobs);
    let takes_part = |node: &String| jobs().any(|job| job.nodes.contains(node));
    let line = |fault: &NodeFault| {
        let why = match &fault.fault {
            _ if !options.probe && jobs().next().is_some() && !takes_part(&fault.node) => {
                "no selected job runs on that node; select cases that do, or another node"
            }
            Fault::GpuMissing { .. } | Fault::GpuBusy { .. } | Fault::DriverDiffers if !options.probe => {
                "only a probe detects it; add --probe"
            }
            Fault::ClockOffset { .. } | Fault::ClockDrift { .. }
                if !plan.cases.iter().flat_map(|case| &case.recipes).any(compares_clocks) =>
            {
                "no selected case compares the clocks of nodes; try --suite evidence-p5"
            }
            Fault::ClockJump if !plan.cases.iter().flat_map(|case| &case.recipes).any(reads_counters) => {
                "only cases that read counters of NICs detect it, and none is selected"
            }
            Fault::CommExposed if !plan.cases.iter().any(|case| computes(&case.workload)) => {
                "only trainings detect it, and none is selected"
            }
            Fault::SlowLoader { .. } | Fault::NanLoss { .. }
                if !plan.cases.iter().any(|case| trains(&case.workload)) =>
            {
                "only trainings detect it, and none is selected"
            }
            Fault::WindowShut if !jobs().any(has_window) => {
                "only profiled cases with a window of steps detect it, and none is selected"
            }
            _ => return None,
        };
        Some(format!("--sim-fault {fault}: {why}"))
    };
    faults.iter().filter_map(line).collect()
}
