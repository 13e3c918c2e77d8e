//! How nodes are reached and jobs are started: `[reach]`, whose `via` names the launcher. Each launcher has a file here.

mod extra;
mod kubernetes;
mod local;
mod planner;
mod slurm;
mod ssh;

pub use kubernetes::{KubernetesReach, Toleration, is_object_name};
pub use planner::{JobNeeds, JobSite, LaunchPlanner};
pub use slurm::SlurmReach;
pub use ssh::{SshReach, SshStart};

use crate::form::{Condition, Form, Key, Type};
use crate::toml_reader::Table;
use model::artefact::Launcher;

/// How its nodes are reached and jobs start there: `reach.via`.
// There are few of them: a box would only be in the way.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq)]
pub enum ReachBy {
    /// By sbatch and srun.
    Slurm(SlurmReach),
    /// One by one over ssh, without a scheduler.
    Ssh(SshReach),
    /// In pods that stand for the nodes, by kubectl.
    Kubernetes(KubernetesReach),
    /// This machine alone.
    Local,
}

impl ReachBy {
    /// What starts jobs there.
    pub fn launcher(&self) -> Launcher {
        self.planner().launcher()
    }

    /// What planning and reporting ask of it.
    pub fn planner(&self) -> &dyn LaunchPlanner {
        match self {
            ReachBy::Slurm(slurm) => slurm,
            ReachBy::Ssh(ssh) => ssh,
            ReachBy::Kubernetes(pods) => pods,
            ReachBy::Local => &local::ThisMachine,
        }
    }

    /// What only Slurm has, where it starts the jobs.
    pub fn slurm(&self) -> Option<&SlurmReach> {
        match self {
            ReachBy::Slurm(slurm) => Some(slurm),
            _ => None,
        }
    }

    /// Where nodes are reached by pods.
    pub fn kubernetes(&self) -> Option<&KubernetesReach> {
        match self {
            ReachBy::Kubernetes(pods) => Some(pods),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(super) fn slurm_mut(&mut self) -> Option<&mut SlurmReach> {
        match self {
            ReachBy::Slurm(slurm) => Some(slurm),
            _ => None,
        }
    }
}

impl Default for ReachBy {
    fn default() -> ReachBy {
        ReachBy::Slurm(SlurmReach::usual())
    }
}

/// `[reach]`.
pub(super) fn form() -> Form {
    let via = Type::OneOf(|_| Launcher::ALL.map(|launcher| launcher.name().to_owned()).to_vec());
    Form::new([Key::needed("via", via, "what starts jobs on the nodes")]).by(
        "via",
        Launcher::ALL.map(|launcher| {
            let form = match launcher {
                Launcher::Slurm => SlurmReach::form(),
                Launcher::Ssh => SshReach::form(),
                Launcher::Kubernetes => KubernetesReach::form(),
                Launcher::Local => Form::default(),
            };
            (Condition::Is(launcher.name()), form)
        }),
    )
}

/// Reads `[reach]`.
pub(super) fn read(table: &Table<'_>) -> Option<ReachBy> {
    let launchers = Launcher::ALL.map(|launcher| (launcher.name(), launcher));
    let reach = match table.need("via").and_then(|value| value.one_of(&launchers))? {
        Launcher::Slurm => ReachBy::Slurm(SlurmReach::read(table)),
        Launcher::Ssh => ReachBy::Ssh(SshReach::read(table)?),
        Launcher::Kubernetes => ReachBy::Kubernetes(KubernetesReach::read(table)?),
        Launcher::Local => ReachBy::Local,
    };
    table.close(form);
    Some(reach)
}
