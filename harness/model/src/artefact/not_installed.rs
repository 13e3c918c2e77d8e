//! Programs of a case that some of its nodes do not have or do not run: it is skipped there, and never passes.

use base::nodeset;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// DCGM's daemon, which `dcgmi` asks.
pub const HOST_ENGINE: &str = "nv-hostengine";

/// GPUs that Slurm gives to steps of jobs: no program, and absent where Slurm does not start the jobs.
pub const SLURM_GPUS: &str = "slurm-gpus";

/// What is absent, by the probe, and whose jobs are left out for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotInstalled {
    /// By program, or by folder from `/`: the nodes without it.
    pub without: BTreeMap<String, BTreeSet<String>>,
    /// Nodes on which nothing of the case is run: those, and who could run it with those alone.
    pub skipped: BTreeSet<String>,
}

impl NotInstalled {
    /// For people: `dcgmi is not installed on p5-[033-035]`.
    pub fn reason(&self) -> String {
        let all = self.without.iter().map(|(program, nodes)| {
            let nodes = nodeset::fold(&nodes.iter().cloned().collect::<Vec<_>>());
            format!("{} {nodes}{}", absence(program), remedy(program))
        });
        all.collect::<Vec<_>>().join("; ")
    }
}

/// `fio is not installed on`; `there is no /opt/dlami/nvme on`.
pub fn absence(program: &str) -> String {
    match program {
        HOST_ENGINE => format!("{program} does not run on"),
        SLURM_GPUS => "Slurm gives no GPUs to steps on".to_owned(),
        _ if program.starts_with('/') => format!("there is no {program} on"),
        _ => format!("{program} is not installed on"),
    }
}

/// Behind the nodes: how it comes to be there, where that is more than an installation.
pub fn remedy(program: &str) -> &'static str {
    match program {
        HOST_ENGINE => "; start it with `systemctl start nvidia-dcgm`",
        _ => "",
    }
}
