//! The launchers that there are, and the facts about each that stages behind the plan ask for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How jobs are started, by `via` in the inventory's `reach`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    /// `sbatch`, on this machine or the login host.
    Slurm,
    /// Processes on each node over SSH, kept alive by heartbeats.
    Ssh,
    /// Processes in a pod for each node, kept alive by heartbeats as over SSH.
    Kubernetes,
    /// Processes of this machine; a job has one node.
    Local,
}

impl Launcher {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Launcher; 4] = [Launcher::Slurm, Launcher::Ssh, Launcher::Kubernetes, Launcher::Local];

    /// As in inventories, artefacts and messages: `slurm`.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Its row of the table of launchers.
    pub const fn facts(self) -> &'static LauncherFacts {
        match self {
            Launcher::Slurm => &SLURM,
            Launcher::Ssh => &SSH,
            Launcher::Kubernetes => &KUBERNETES,
            Launcher::Local => &LOCAL,
        }
    }
}

/// What the stages behind the plan ask of a launcher. No fact follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LauncherFacts {
    /// As in inventories, artefacts and messages: `slurm`.
    pub name: &'static str,
    /// Which hosts see the folders of jobs.
    pub folder: FolderAccess,
    /// Who runs `job.sh`.
    pub script: ScriptRuns,
    /// Several jobs are handed over at the same time.
    pub side_by_side: bool,
    /// Where jobs wait, and are searched and ended too.
    pub queue: Option<Queue>,
    /// A job has no more than one node.
    pub single_node: bool,
}

/// Which hosts see the folders of jobs: files are put there and fetched from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderAccess {
    /// This machine, or the login host in its place.
    ThisMachine,
    /// Any node.
    Nodes,
}

/// Who runs a job's script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptRuns {
    /// One host, for all nodes of the job.
    Once,
    /// Every node of the job; each writes files of its own.
    OnEachNode,
}

/// A queue of jobs, by whose commands it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// `squeue`, `sacct` and `scancel`.
    Slurm,
}

const SLURM: LauncherFacts = LauncherFacts {
    name: "slurm",
    folder: FolderAccess::ThisMachine,
    script: ScriptRuns::Once,
    side_by_side: false,
    queue: Some(Queue::Slurm),
    single_node: false,
};

const SSH: LauncherFacts = LauncherFacts {
    name: "ssh",
    folder: FolderAccess::Nodes,
    script: ScriptRuns::OnEachNode,
    side_by_side: true,
    queue: None,
    single_node: false,
};

const KUBERNETES: LauncherFacts = LauncherFacts {
    name: "kubernetes",
    folder: FolderAccess::Nodes,
    script: ScriptRuns::OnEachNode,
    side_by_side: true,
    queue: None,
    single_node: false,
};

const LOCAL: LauncherFacts = LauncherFacts {
    name: "local",
    folder: FolderAccess::ThisMachine,
    script: ScriptRuns::Once,
    side_by_side: false,
    queue: None,
    single_node: true,
};

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    #[test]
    fn a_launcher_has_one_name_in_artefacts_and_messages() {
        for launcher in Launcher::ALL {
            let name: StrDeserializer<'_, Error> = launcher.name().into_deserializer();
            assert_eq!(Launcher::deserialize(name), Ok(launcher));
        }
        assert_eq!(
            Launcher::ALL.map(|launcher| launcher.to_string()),
            ["slurm", "ssh", "kubernetes", "local"]
        );
    }
}
