//! `[reach]` with `via = "local"`: this machine alone. It has no keys.

use super::LaunchPlanner;
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
}
