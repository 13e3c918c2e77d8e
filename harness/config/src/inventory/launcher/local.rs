//! `[reach]` with `via = "local"`: this machine alone. It has no keys.

use super::{JobNeeds, JobSite, LaunchPlanner};
use crate::inventory::Paths;
use job::script::{Start, start};
use model::artefact::{Launcher, RunCluster};

/// Jobs are processes of this machine.
pub(super) struct ThisMachine;

impl LaunchPlanner for ThisMachine {
    fn launcher(&self) -> Launcher {
        Launcher::Local
    }

    fn site_names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check_when_silent(&self, _cluster: Option<&RunCluster>) -> String {
        "is bash installed on this machine?".to_owned()
    }

    fn refuse_simulated(&self) -> Option<&'static str> {
        Some("a simulated cluster needs `via = \"slurm\"` or `via = \"ssh\"`")
    }

    fn mpi<'a>(&'a self, _paths: &'a Paths) -> Option<&'a str> {
        None
    }

    /// What needs Slurm is not made to look as if it ran.
    fn refuse_job(&self, needs: &JobNeeds<'_>) -> Result<(), String> {
        if needs.container {
            return Err("`[container]` needs Slurm with Pyxis, and jobs run on this machine itself".into());
        }
        if needs.tasks_per_node > 1 {
            return Err(format!(
                "`tasks_per_node = {}` needs Slurm: on this machine a command runs once",
                needs.tasks_per_node
            ));
        }
        Ok(())
    }

    fn start(&self, _job: &JobSite<'_>) -> Start {
        Start::Bash
    }

    fn launch(&self, folder: &str) -> Vec<String> {
        start::on_this_machine(folder)
    }
}
