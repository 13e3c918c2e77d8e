//! Jobs of any program.

use super::super::placement::Placed;
use super::{Context, JobPlan, PlannedStep, Results, WorkloadPlanner};
use config::inventory::Inventory;
use config::suite::{Case, Command};
use job::script::{Run, Step};
use model::artefact::{FileKind, WorkloadFacts};

impl WorkloadPlanner for Command {
    fn step(&self, site: JobPlan<'_>) -> Result<PlannedStep, String> {
        let mut argv = vec![self.program.clone()];
        argv.extend(self.args.iter().cloned());
        let tasks_per_node = self.tasks_per_node;
        let ranks = tasks_per_node * site.placed.nodes.len() as u32;
        let run = Run { argv, tasks_per_node, mpi: None, container: site.container, profile: None };
        Ok(PlannedStep {
            step: Step::Run(run),
            tasks_per_node,
            ranks,
            helpers: Vec::new(),
            follows_topology: true,
        })
    }

    /// It may well print nothing.
    fn results(&self, _: &Inventory, _: &Case, _: &Placed) -> Results {
        Results::Printed(FileKind::Log)
    }

    fn facts(&self, _: &Context, _: &Case) -> WorkloadFacts {
        WorkloadFacts::Command { program: self.program.clone() }
    }
}
