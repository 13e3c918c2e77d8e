//! What planning asks of a workload: where it is placed, what its jobs run and leave, how long they take, and what later
//! stages need to know of it. Each kind has a file here; its keys in suites are read in `config`.

mod command;
mod nccl_tests;
mod nic_pairs;
mod node_tool;
mod training;

pub use nccl_tests::EXCLUDED_INTERFACES;

use super::Context;
use super::placement::{self, Placed};
use config::baseline::BaselineKey;
use config::inventory::{Instance, Inventory};
use config::suite::{Case, Placement, Workload};
use job::script::{Container, Step};
use model::artefact::{ExpectedFile, FileKind, WorkloadFacts};
use std::collections::BTreeMap;

/// Before a program does anything: allocation, container, wiring.
pub(crate) const LAUNCH_S: f64 = 20.0;

/// A workload as the plan needs it. What most workloads have alike is the default.
pub(crate) trait WorkloadPlanner {
    /// The nodes of each of its jobs.
    fn place(&self, how: Placement, nodes: &[String]) -> Result<Vec<Placed>, String> {
        Ok(placement::place(&how, nodes))
    }

    /// Only MPI connects its ranks.
    fn needs_mpi(&self, _placement: Placement) -> bool {
        false
    }

    /// Its jobs ask Slurm for some of the GPUs of their nodes.
    fn shares_gpus(&self) -> bool {
        false
    }

    /// Of the container that it names for itself.
    fn image(&self) -> Option<&str> {
        None
    }

    /// Variables that its keys stand for; those that a person set win.
    fn variables(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Adds what it cannot do without to the variables of a job.
    fn complete(&self, _variables: &mut BTreeMap<String, String>) {}

    /// What one of its jobs runs.
    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String>;

    /// The files of a job with its results.
    fn results(&self, _inventory: &Inventory, _case: &Case, _placed: &Placed) -> Results {
        Results::Printed(FileKind::Stdout)
    }

    /// Files that its jobs leave beside their results.
    fn leaves(&self, _placed: &Placed) -> Vec<ExpectedFile> {
        Vec::new()
    }

    /// Seconds that a job on so many nodes takes where all is well.
    fn estimate_s(&self, _instance: &Instance, _placement: Placement, _nodes: usize) -> f64 {
        LAUNCH_S
    }

    /// What later stages need to know of it.
    fn facts(&self, context: &Context, case: &Case) -> WorkloadFacts;

    /// Adds what distinguishes its numbers from those of other workloads to the key of a baseline.
    fn distinguish(&self, _key: &mut BaselineKey, _inventory: &Inventory, _case: &Case, _nodes: u32) {}

    /// PyTorch's flight recorder can record the collectives of its ranks.
    fn has_flight_recorder(&self) -> bool {
        false
    }

    /// Its ranks are of NCCL, which reports of them while they run.
    fn has_ras(&self) -> bool {
        false
    }

    /// Where a training has a callback of its own that can open a window of steps.
    fn nsys_callback(&self) -> Option<u32> {
        None
    }
}

/// How a workload is planned.
pub(crate) fn planner(workload: &Workload) -> &dyn WorkloadPlanner {
    match workload {
        Workload::NcclTests(tests) => tests,
        Workload::NicPairs(pairs) => pairs,
        Workload::Command(command) => command,
        Workload::Training(training) => training,
        Workload::NodeTool(tool) => tool,
    }
}

/// A job before its step is made.
pub(crate) struct JobPlan<'a> {
    pub inventory: &'a Inventory,
    pub case: &'a Case,
    pub placed: &'a Placed,
    /// Of the run.
    pub run_id: &'a str,
    /// What wires ranks together, if anything does.
    pub wiring: Option<&'a str>,
    /// That of the inventory.
    pub container: Option<Container>,
}

/// What a job runs.
pub(crate) struct PlannedStep {
    pub step: Step,
    /// Asked of the launcher.
    pub tasks_per_node: u32,
    /// Declared of the whole job.
    pub ranks: u32,
    /// The shared scripts that the step needs.
    pub helpers: Vec<&'static str>,
    /// The launcher numbers its ranks, in the order of its nodes; otherwise they are numbered by their nodes' names.
    pub follows_topology: bool,
}

/// Where the results of a job stand.
pub(crate) enum Results {
    /// In what its nodes print.
    Printed(FileKind),
    /// In files of their own.
    Files(Vec<ExpectedFile>),
}
