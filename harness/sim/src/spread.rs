//! What starts a workload on the nodes of a job: one srun, one mpirun, or each node by itself.

use job::script::{Script, Start, Step};

/// What starts a job's workload on all of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// One srun over all nodes.
    Srun,
    /// One mpirun on the first node.
    Mpirun,
    /// Each node's own script.
    Each,
}

impl Spread {
    /// Over ssh, a step that runs by mpirun makes it `Mpirun`.
    pub(crate) fn from_script(script: &Script) -> Spread {
        let by_mpi = |step: &Step| matches!(step, Step::Run(run) if run.mpi.is_some());
        match script.start {
            Start::Slurm(_) => Spread::Srun,
            Start::Ssh | Start::Pods if script.steps.iter().any(by_mpi) => Spread::Mpirun,
            Start::Ssh | Start::Pods | Start::Bash => Spread::Each,
        }
    }
}
