//! The kinds of objects that a manifest can have, and which workloads each of them carries.

use clap::ValueEnum;
use job::script::{Script, Step, is_mpirun};

/// What the pods are made by, or whose values are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// An indexed Job of Kubernetes itself
    Job,
    /// A JobSet
    #[value(name = "jobset")]
    JobSet,
    /// An MPIJob of the MPI operator
    #[value(name = "mpijob")]
    MpiJob,
    /// A PyTorchJob of Kubeflow's training operator
    #[value(name = "pytorchjob")]
    PyTorchJob,
    /// A TrainJob of Kubeflow Trainer, with its runtime
    #[value(name = "trainjob")]
    TrainJob,
    /// A HyperPodPyTorchJob
    #[value(name = "hyperpod-pytorchjob")]
    HyperPodPyTorchJob,
    /// Values for the chart of NVIDIA's Nsight Operator
    NsightOperatorValues,
    /// Values for NVIDIA's older sidecar injector
    InjectorValues,
}

/// What starts the ranks of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    Mpi,
    Torchrun,
    Other,
}

impl ManifestKind {
    /// Whether it is the values of a chart.
    pub(crate) fn is_values(self) -> bool {
        matches!(self, ManifestKind::NsightOperatorValues | ManifestKind::InjectorValues)
    }

    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Where a pod finds its number. An operator that is not known to number pods has them take what is free.
    pub(super) fn index(self) -> &'static str {
        match self {
            ManifestKind::PyTorchJob => "RANK",
            ManifestKind::MpiJob => "HARNESS_POD_INDEX",
            ManifestKind::HyperPodPyTorchJob => "any",
            _ => "JOB_COMPLETION_INDEX",
        }
    }

    /// What the container of a pod has to be called.
    pub(super) fn container(self) -> &'static str {
        match self {
            ManifestKind::PyTorchJob | ManifestKind::HyperPodPyTorchJob => "pytorch",
            ManifestKind::TrainJob => "node",
            ManifestKind::MpiJob => "worker",
            _ => "work",
        }
    }

    /// Why it does not carry a case with this script.
    pub(super) fn refuse(self, case: &str, script: &Script) -> Result<(), String> {
        let workload = workload(script);
        let why = match (self, workload) {
            (ManifestKind::MpiJob, Workload::Torchrun | Workload::Other) => {
                "an MPIJob is for ranks that mpirun starts"
            }
            (
                ManifestKind::PyTorchJob | ManifestKind::TrainJob | ManifestKind::HyperPodPyTorchJob,
                Workload::Mpi | Workload::Other,
            ) => "it is for ranks that torchrun starts",
            _ => return Ok(()),
        };
        let instead = match workload {
            Workload::Mpi => "`--as mpijob`, `--as job` or `--as jobset`",
            Workload::Torchrun => {
                "`--as job`, `--as jobset`, `--as pytorchjob`, `--as trainjob` or `--as hyperpod-pytorchjob`"
            }
            Workload::Other => "`--as job` or `--as jobset`",
        };
        let article = if self == ManifestKind::MpiJob { "an" } else { "a" };
        Err(format!("case `{case}` cannot be {article} {}: {why}; write {instead}", self.name()))
    }
}

fn workload(script: &Script) -> Workload {
    let run = script.steps.iter().find_map(|step| match step {
        Step::Run(run) => Some(run),
        _ => None,
    });
    let Some(run) = run else { return Workload::Other };
    let is_torchrun = |word: &String| word.rsplit('/').next() == Some("torchrun");
    match &run.mpi {
        Some(mpi) if is_mpirun(mpi) => Workload::Mpi,
        _ if run.argv.first().is_some_and(is_torchrun) => Workload::Torchrun,
        _ => Workload::Other,
    }
}
