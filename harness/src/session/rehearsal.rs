//! Refuses a rehearsal with a fault that no check can detect: it would be green and prove nothing.

use super::report_error;
use metric::Files;
use model::artefact::{Plan, PlannedCase, PlannedJob, WorkloadFacts};
use model::exit_code;
use model::fault::{Fault, NodeFault};
use recipes::catalogue::Catalogue;
use recipes::recipe::RecipeSpec;

/// What can detect a fault, in one run or in several.
pub(crate) struct Rehearsal<'a> {
    pub plans: &'a [Plan],
    /// Nodes on any of which later jobs of these kinds may be placed; without it jobs run where the plans say.
    pub placeable_on: Option<&'a [String]>,
    pub is_probed: bool,
    /// Facts of the probe that nodes are refused by, beside those of their instance.
    pub asked_facts: &'a [String],
    pub catalogue: &'a Catalogue,
}

const NO_PROBE: &str = "only a probe detects it; add --probe";
const NO_FACT: &str = "only `harness accept` detects it, by a suite that asks for that fact, or a run with --probe whose inventory does";
const NO_NICS: &str =
    "only collectives over several nodes and flows of NICs detect it, and none is selected there";
const NO_NIC: &str = "only a probe, collectives over several nodes, flows of NICs and trainings whose NICs are counted \
                      detect it, and none is selected there";
const NO_GPUS: &str = "only collectives, GPUs alone and trainings detect it, and none is selected there";
const NO_DATA: &str = "only nccl-tests that check their data, loads of GPUs and `torch-ddp` detect it, and none is \
                       selected there";
const NO_LINKS: &str = "only collectives over all GPUs of a node detect it, and none is selected there";
const NO_COPIES: &str = "only `nvbandwidth` and recipe `gpu_state` detect it, and none is selected there";
const NO_DIAGNOSIS: &str = "only `dcgm-diag` and recipe `gpu_state` detect it, and none is selected there";
const NO_STATE: &str = "only recipe `gpu_state` detects it, and no case with it is selected there";
const NO_BURN: &str = "only `gpu-burn` and `torch-burn` detect it, and none is selected there";
const NO_LATENCY: &str = "only `nic-latency` detects it, and none is selected there";
const NO_MEMORY: &str = "only `stream` detects it, and none is selected there";
const NO_STRESS: &str = "only `stress-ng` detects it, and none is selected there";
const NO_ALLOCATION: &str = "only `gpu-allocation` detects it, and none is selected there";
const NO_TCP: &str = "only `iperf3` detects it, and none is selected there";
const NO_DISK: &str = "only `fio` detects it, and none is selected there";
const NO_REPORTS: &str = "only profiled cases detect it, and none is selected there";
const NO_TRAINING: &str = "only trainings detect it, and none is selected";
const NO_LATE_RANK: &str =
    "only collectives over several GPUs and trainings detect it, and none is selected there";

impl Rehearsal<'_> {
    /// Reports each fault that nothing would detect, and gives the exit code if there is one.
    pub(crate) fn refused(&self, faults: &[NodeFault]) -> Option<i32> {
        let report =
            |fault| self.needs(fault).map(|needed| report_error(&format!("--sim-fault {fault}: {needed}")));
        let codes: Vec<i32> = faults.iter().filter_map(report).collect();
        (!codes.is_empty()).then(|| codes.into_iter().fold(exit_code::INCONCLUSIVE, exit_code::graver))
    }

    /// What is missing for this fault to be detected.
    fn needs(&self, fault: &NodeFault) -> Option<&'static str> {
        let node = &fault.node;
        let by = |sees: &dyn Fn(&PlannedCase, &PlannedJob) -> bool| {
            let runs_there = |job: &PlannedJob| self.placeable_on.unwrap_or(&job.nodes).contains(node);
            self.jobs().any(|(case, job)| runs_there(job) && sees(case, job))
        };
        let nodes = || self.placeable_on.or(self.plans.first().map(|plan| plan.nodes.as_slice()));
        let probed = self.is_probed && nodes().is_some_and(|nodes| nodes.contains(node));
        if !probed && self.jobs().next().is_some() && !by(&|_, _| true) {
            return Some("no selected job runs on that node; select cases that do, or another node");
        }
        let (is_seen, needed) = match &fault.fault {
            Fault::GpuMissing { .. } | Fault::GpuBusy { .. } | Fault::DriverDiffers => (probed, NO_PROBE),
            Fault::BadFact { fact } => {
                let is_chosen_by_probe = |_: &PlannedCase, job: &PlannedJob| probed && job.evidence.is_some();
                let is_read = INSPECTOR_FACTS.contains(&fact.as_str())
                    && (by(&is_inspected) || by(&is_chosen_by_probe));
                (is_read || (probed && self.asked_facts.iter().any(|asked| asked == fact)), NO_FACT)
            }
            Fault::NicDead { .. } | Fault::NicMissing { .. } => {
                let sees = |case: &PlannedCase, job: &PlannedJob| {
                    uses_nics(case, job) || self.counts_nics(case, job) || is_tool(case, "nic-latency")
                };
                (probed || by(&sees), NO_NIC)
            }
            Fault::NicSlow { .. } | Fault::PortSlow { .. } | Fault::LinkSlow { .. } | Fault::NoGdrdma => {
                (by(&uses_nics), NO_NICS)
            }
            Fault::GpuSlow { .. } => (by(&uses_gpus), NO_GPUS),
            Fault::NodeSlow { .. } => (by(&uses_gpus) || by(&uses_nics), NO_GPUS),
            Fault::NvlinkSlow { .. } => {
                (by(&|case, _| uses_nvlink(case) || is_tool(case, "nvbandwidth")), NO_LINKS)
            }
            Fault::Corrupt { .. } => (by(&|case, _| checks_data(case)), NO_DATA),
            Fault::PcieSlow { .. } => {
                (by(&|case, _| is_tool(case, "nvbandwidth") || self.reads_gpu_state(case)), NO_COPIES)
            }
            Fault::NvlinkErrors { .. }
            | Fault::NvlinkDown { .. }
            | Fault::EccGrows { .. }
            | Fault::NvlinkReplays { .. }
            | Fault::NicFlaps { .. }
            | Fault::DriverLeaks { .. } => (by(&|case, _| self.reads_gpu_state(case)), NO_STATE),
            Fault::EccErrors { .. } => {
                let sees = |case: &PlannedCase, job: &PlannedJob| {
                    is_tool(case, "dcgm-diag") || runs_nhc(case, job) || self.reads_gpu_state(case)
                };
                (by(&sees), NO_DIAGNOSIS)
            }
            Fault::Throttles { .. } | Fault::ThrottlesAfter { .. } => (by(&|case, _| burns(case)), NO_BURN),
            Fault::NicLate { .. } => (by(&|case, _| is_tool(case, "nic-latency")), NO_LATENCY),
            Fault::MemorySlow { .. } => (by(&|case, _| is_tool(case, "stream")), NO_MEMORY),
            Fault::MemoryWrong | Fault::CpuSlow { .. } | Fault::CpuShared { .. } => {
                (by(&|case, _| is_tool(case, "stress-ng")), NO_STRESS)
            }
            Fault::GpusUnconstrained => (by(&|case, _| is_tool(case, "gpu-allocation")), NO_ALLOCATION),
            Fault::TcpSlow { .. } => (by(&|case, _| is_tool(case, "iperf3")), NO_TCP),
            Fault::DiskSlow { .. } | Fault::DiskErrors => (by(&|case, _| is_tool(case, "fio")), NO_DISK),
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
            | Fault::GraphLaunch => (by(&is_profiled), NO_REPORTS),
            Fault::ProfilerCosts { .. } => (by(&is_profiled) || by(&is_inspected), NO_REPORTS),
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
            | Fault::MismatchSize { .. }
            | Fault::ConnectionDrops
            | Fault::HostUnreachable => (true, ""),
        };
        (!is_seen).then_some(needed)
    }

    /// Of its nodes, by a program that is run under the readings.
    fn reads_gpu_state(&self, case: &PlannedCase) -> bool {
        let mut recipes = case.recipes.iter().filter_map(|name| self.catalogue.job_recipe(name));
        matches!(case.workload, WorkloadFacts::NodeTool { .. })
            && recipes.any(|recipe| recipe.metrics.iter().any(|metric| metric.files == Files::GpuState))
    }

    fn cases(&self) -> impl Iterator<Item = &PlannedCase> {
        self.plans.iter().flat_map(|plan| &plan.cases)
    }

    fn jobs(&self) -> impl Iterator<Item = (&PlannedCase, &PlannedJob)> {
        self.cases().flat_map(|case| case.jobs.iter().map(move |job| (case, job)))
    }

    fn recipes(&self) -> impl Iterator<Item = RecipeSpec<'_>> {
        let names = self.cases().flat_map(|case| &case.recipes);
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

/// Between GPUs of a node.
fn uses_nvlink(case: &PlannedCase) -> bool {
    is_collective(case) && !through_nics(case)
}

fn through_nics(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { through_nics: true, .. })
}

fn is_training(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::Training { .. })
}

fn is_command(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::Command { .. })
}

/// LBNL Node Health Check, by the script of its job.
fn runs_nhc(case: &PlannedCase, job: &PlannedJob) -> bool {
    let mut texts = job.files.iter().filter_map(|file| file.text.as_deref());
    is_command(case) && texts.any(|text| text.contains("nhc -"))
}

/// Tests a node by itself with that program.
fn is_tool(case: &PlannedCase, kind: &str) -> bool {
    matches!(&case.workload, WorkloadFacts::NodeTool { program, .. } if program == kind)
}

/// All GPUs of a node under full load.
fn burns(case: &PlannedCase) -> bool {
    is_tool(case, "gpu-burn") || is_tool(case, "torch-burn")
}

fn checks_data(case: &PlannedCase) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { checked: true, .. })
        || burns(case)
        || is_torch_ddp(case)
}

/// A training that compares the weights of its ranks.
fn is_torch_ddp(case: &PlannedCase) -> bool {
    matches!(&case.workload, WorkloadFacts::Training { program, .. } if program == "torch-ddp")
}

fn uses_gpus(case: &PlannedCase, _: &PlannedJob) -> bool {
    matches!(case.workload, WorkloadFacts::NcclTests { .. }) || is_training(case) || burns(case)
}

fn uses_nics(case: &PlannedCase, job: &PlannedJob) -> bool {
    // Between two nodes small messages are judged alone, which show no rate.
    let to_itself = is_tool(case, "nic-latency") && job.nodes.len() == 1;
    let by_nics = is_collective(case) && (job.nodes.len() > 1 || through_nics(case));
    matches!(case.workload, WorkloadFacts::NicPairs { .. }) || to_itself || by_nics
}

fn is_profiled(_: &PlannedCase, job: &PlannedJob) -> bool {
    job.profile.is_some()
}

/// Facts of a node without which NCCL's Inspector leaves no records there.
const INSPECTOR_FACTS: [&str; 2] = ["nccl", "nccl_inspector"];

fn is_inspected(_: &PlannedCase, job: &PlannedJob) -> bool {
    job.is_inspected()
}

fn has_window(_: &PlannedCase, job: &PlannedJob) -> bool {
    job.profile.as_ref().is_some_and(|profile| profile.window.is_some())
}
