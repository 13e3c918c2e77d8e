//! Refuses a rehearsal with a fault that no check of the run can detect: it would be green and prove nothing.

use super::RunOptions;
use metric::Files;
use model::artefact::{Plan, PlannedCase, PlannedJob, WorkloadFacts};
use model::fault::{Fault, NodeFault};
use recipes::catalogue::Catalogue;
use recipes::recipe::RecipeSpec;

/// Why a run with such faults would show nothing; a line for each of them.
pub(crate) fn undetectable(
    plan: &Plan,
    faults: &[NodeFault],
    options: &RunOptions,
    catalogue: &Catalogue,
) -> Vec<String> {
    let rehearsal = Rehearsal { plan, options, catalogue };
    let line =
        |fault: &NodeFault| rehearsal.needs(fault).map(|needed| format!("--sim-fault {fault}: {needed}"));
    faults.iter().filter_map(line).collect()
}

/// What of a run can detect a fault.
struct Rehearsal<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    catalogue: &'a Catalogue,
}

const NO_PROBE: &str = "only a probe detects it; add --probe";
const NO_NICS: &str =
    "only collectives over several nodes and flows of NICs detect it, and none is selected there";
const NO_NIC: &str = "only a probe, collectives over several nodes, flows of NICs and trainings whose NICs are counted \
                      detect it, and none is selected there";
const NO_GPUS: &str = "only collectives, GPUs alone and trainings detect it, and none is selected there";
const NO_DATA: &str = "only nccl-tests that check their data detect it, and none is selected there";
const NO_LINKS: &str = "only collectives over all GPUs of a node detect it, and none is selected there";
const NO_REPORTS: &str = "only profiled cases detect it, and none is selected there";
const NO_TRAINING: &str = "only trainings detect it, and none is selected";
const NO_LATE_RANK: &str =
    "only collectives over several GPUs and trainings detect it, and none is selected there";

impl Rehearsal<'_> {
    /// What is missing for this fault to be detected.
    fn needs(&self, fault: &NodeFault) -> Option<&'static str> {
        let node = &fault.node;
        let by = |sees: &dyn Fn(&PlannedCase, &PlannedJob) -> bool| {
            self.jobs().any(|(case, job)| job.nodes.contains(node) && sees(case, job))
        };
        let probed = self.options.probe;
        if !probed && self.jobs().next().is_some() && !by(&|_, _| true) {
            return Some("no selected job runs on that node; select cases that do, or another node");
        }
        let (is_seen, needed) = match &fault.fault {
            Fault::GpuMissing { .. } | Fault::GpuBusy { .. } | Fault::DriverDiffers => (probed, NO_PROBE),
            Fault::NicDead { .. } | Fault::NicMissing { .. } => {
                (probed || by(&|case, job| uses_nics(case, job) || self.counts_nics(case, job)), NO_NIC)
            }
            Fault::NicSlow { .. } | Fault::PortSlow { .. } | Fault::LinkSlow { .. } | Fault::NoGdrdma => {
                (by(&uses_nics), NO_NICS)
            }
            Fault::GpuSlow { .. } => (by(&uses_gpus), NO_GPUS),
            Fault::NodeSlow { .. } => (by(&uses_gpus) || by(&uses_nics), NO_GPUS),
            Fault::NvlinkSlow { .. } => (by(&|case, _| is_collective(case)), NO_LINKS),
            Fault::Corrupt { .. } => (by(&|case, _| checks_data(case)), NO_DATA),
            Fault::Straggler { .. } => {
                (by(&|case, _| is_collective(case) || is_training(case)), NO_LATE_RANK)
            }
            Fault::SlowLoader { .. } | Fault::NanLoss { .. } => {
                (by(&|case, _| is_training(case)), NO_TRAINING)
            }
            Fault::CommExposed => (by(&|case, _| is_training(case) || is_command(case)), NO_TRAINING),
            Fault::NsysMissing | Fault::NsysOld => (probed || by(&is_profiled), NO_REPORTS),
            Fault::ReportTruncated
            | Fault::ReportMissing
            | Fault::ReportEmpty
            | Fault::EventsDropped
            | Fault::GraphLaunch
            | Fault::ProfilerCosts { .. } => (by(&is_profiled), NO_REPORTS),
            Fault::WindowShut => (
                by(&has_window),
                "only profiled cases with a window of steps detect it, and none is selected",
            ),
            Fault::ClockOffset { .. } | Fault::ClockDrift { .. } => (
                self.recipes().any(|recipe| recipe.compares_clocks),
                "no selected case compares the clocks of nodes; try --suite evidence-p5",
            ),
            Fault::ClockJump => (
                self.recipes().any(reads_counters),
                "only cases that read counters of NICs detect it, and none is selected",
            ),
            // Any job of the node ends by it, or goes on in spite of it.
            Fault::RankDies
            | Fault::Hang
            | Fault::NodeFails
            | Fault::NodeFailsOnce
            | Fault::QueueStuck
            | Fault::Preempted
            | Fault::PreemptedOnce
            | Fault::OutputMissing
            | Fault::Garbled
            | Fault::DiskFull
            | Fault::WrongRanks
            | Fault::Desync { .. }
            | Fault::Mismatch { .. }
            | Fault::ConnectionDrops
            | Fault::HostUnreachable => (true, ""),
        };
        (!is_seen).then_some(needed)
    }

    fn jobs(&self) -> impl Iterator<Item = (&PlannedCase, &PlannedJob)> {
        self.plan.cases.iter().flat_map(|case| case.jobs.iter().map(move |job| (case, job)))
    }

    fn recipes(&self) -> impl Iterator<Item = RecipeSpec<'_>> {
        let names = self.plan.cases.iter().flat_map(|case| &case.recipes);
        names.filter_map(|name| self.catalogue.job_recipe(name))
    }

    /// Shows NICs that carry nothing, though none that is slow.
    fn counts_nics(&self, case: &PlannedCase, job: &PlannedJob) -> bool {
        let mut recipes = case.recipes.iter().filter_map(|name| self.catalogue.job_recipe(name));
        is_training(case) && job.nodes.len() > 1 && recipes.any(reads_counters)
    }
}

fn reads_counters(recipe: RecipeSpec<'_>) -> bool {
    recipe.metrics.iter().any(|metric| metric.files == Files::Counters)
}

/// Over all GPUs of its nodes.
fn is_collective(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { each_gpu: false, .. })
}

fn is_training(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::Training { .. })
}

fn is_command(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::Command { .. })
}

fn checks_data(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { checked: true, .. })
}

fn uses_gpus(case: &PlannedCase, _: &PlannedJob) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { .. }) || is_training(case)
}

fn uses_nics(case: &PlannedCase, job: &PlannedJob) -> bool {
    matches!(case.workload, WorkloadFacts::NicPairs { .. }) || (is_collective(case) && job.nodes.len() > 1)
}

fn is_profiled(_: &PlannedCase, job: &PlannedJob) -> bool {
    job.profile.is_some()
}

fn has_window(_: &PlannedCase, job: &PlannedJob) -> bool {
    job.profile.as_ref().is_some_and(|profile| profile.window.is_some())
}
