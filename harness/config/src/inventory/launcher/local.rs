//! `[reach]` with `via = "local"`: this machine alone. It has no keys.

use super::{JobSite, LaunchPlanner};
use crate::inventory::Paths;
use job::script::{Start, start};
use model::artefact::Launcher;

/// Jobs are processes of this machine.
pub(super) struct ThisMachine;

impl LaunchPlanner for ThisMachine {
    fn launcher(&self) -> Launcher {
        Launcher::Local
    }

    fn site_names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check_when_silent(&self) -> &'static str {
        "is bash installed on this machine? `--no-probe` launches without asking"
    }

    fn refuse_simulated(&self) -> Option<&'static str> {
        Some("a simulated cluster needs `via = \"slurm\"` or `via = \"ssh\"`")
    }

    fn mpi<'a>(&'a self, _paths: &'a Paths) -> Option<&'a str> {
        None
    }

    fn start(&self, _job: &JobSite<'_>) -> Start {
        Start::Bash
    }

    fn launch(&self, folder: &str) -> Vec<String> {
        start::on_this_machine(folder)
    }
}
