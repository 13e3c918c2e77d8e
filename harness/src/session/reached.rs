//! How the nodes of a real inventory are reached in a run: as processes of this machine or of a login host, over ssh, or
//! by the pods that stand for them.
//! Simulated nodes are reached where the run is made.

use super::past_events::planned_inventory;
use super::writable_files;
use base::redact::{Redactor, Reference, Secrets, reference};
use cluster::reach::Reach;
use cluster::reach::login::AtLogin;
use cluster::reach::openssh::{OpenSsh, SshOptions};
use cluster::reach::pods::{PodOwner, Pods, this_process};
use cluster::reach::process::ProcessReach;
use cluster::reach::redacted::Redacted;
use cluster::reach::slurm_calls::{self, SlurmCalls};
use config::inventory::{Inventory, ReachBy};
use model::artefact::{Launcher, Plan};
use sim::SimulatedReach;
use std::path::PathBuf;
use store::Home;

pub(crate) enum Reached {
    Processes(ProcessReach),
    Slurm(SlurmCalls<ProcessReach>),
    Login(Box<SlurmCalls<AtLogin<OpenSsh>>>),
    Ssh(Box<OpenSsh>),
    Pods(Box<Pods>),
}

/// Who reaches nodes, and which: pods are made for these and bear that name.
pub(crate) struct ReachScope<'a> {
    /// The id of a run, or the name of a probe.
    pub run: &'a str,
    pub nodes: &'a [String],
    pub seed: u64,
    /// So many hosts are connected to at the same time.
    pub fanout: usize,
    /// A run's folder knows of it; else pods bear the process that made them.
    pub has_folder: bool,
}

impl<'a> ReachScope<'a> {
    pub(crate) fn from_plan(plan: &'a Plan, fanout: u32) -> ReachScope<'a> {
        let fanout = fanout as usize;
        ReachScope { run: &plan.run_id, nodes: &plan.nodes, seed: plan.seed, fanout, has_folder: true }
    }
}

impl Reached {
    /// Connects to no host yet, and makes no pod.
    pub(crate) fn new(inventory: &Inventory, scope: &ReachScope<'_>) -> Result<Reached, String> {
        let over_ssh = |way: SshOptions| {
            // ssh checks the user's own file alone, and none that is named by `-F`.
            writable_files::warn(way.config.as_ref().map(PathBuf::from).as_slice());
            OpenSsh::new(way, scope.seed, scope.fanout)
                .map_err(|error| format!("cannot create a folder for the sockets of ssh: {error}"))
        };
        Ok(match &inventory.reach {
            ReachBy::Slurm(slurm) => match &slurm.login {
                Some(login) => {
                    let way = SshOptions { config: slurm.login_config.clone(), ..SshOptions::default() };
                    let at_login = AtLogin::new(over_ssh(way)?, login);
                    Reached::Login(Box::new(SlurmCalls::new(at_login, inventory.paths.slurm.as_deref())))
                }
                None => {
                    if let Some(ignored) = slurm_calls::ignored(std::env::vars_os()) {
                        eprintln!("warning: {ignored}");
                    }
                    Reached::slurm(inventory.paths.slurm.as_deref())
                }
            },
            ReachBy::Local => Reached::Processes(ProcessReach),
            ReachBy::Ssh(ssh) => {
                let way = SshOptions { user: ssh.user.clone(), port: ssh.port, config: ssh.config.clone() };
                Reached::Ssh(Box::new(over_ssh(way)?))
            }
            ReachBy::Kubernetes(pods) => {
                writable_files::warn(&writable_files::kubeconfigs(|name| std::env::var_os(name)));
                let person = std::env::var("USER").unwrap_or_default();
                let process = if scope.has_folder { None } else { this_process() };
                let owner = PodOwner { run: scope.run.to_owned(), person, process };
                Reached::Pods(Box::new(Pods::new(inventory, pods, owner, scope.nodes, scope.fanout)))
            }
        })
    }

    /// As the run reached its nodes: its inventory has more of it than its plan. `named` is where that is, should it lie
    /// outside of the project.
    pub(crate) fn for_run(home: &Home, plan: &Plan, named: &str, fanout: u32) -> Result<Reached, String> {
        match plan.launcher {
            Launcher::Local => Ok(Reached::Processes(ProcessReach)),
            Launcher::Slurm | Launcher::Ssh | Launcher::Kubernetes => {
                let inventory = planned_inventory(home, plan, named)?;
                Reached::new(&inventory, &ReachScope::from_plan(plan, fanout))
            }
        }
    }

    /// Slurm's commands are called on this machine.
    pub(crate) fn slurm(folder: Option<&str>) -> Reached {
        Reached::Slurm(SlurmCalls::new(ProcessReach, folder))
    }

    pub(crate) fn reach(&self) -> &dyn Reach {
        match self {
            Reached::Processes(reach) => reach,
            Reached::Slurm(reach) => reach,
            Reached::Login(reach) => reach.as_ref(),
            Reached::Ssh(reach) => reach.as_ref(),
            Reached::Pods(reach) => reach.as_ref(),
        }
    }

    /// The same without the secrets in what nodes print, which becomes part of messages.
    pub(crate) fn clean<'a>(&'a self, redactor: &'a Redactor) -> Redacted<'a> {
        Redacted { reach: self.reach(), redactor }
    }

    /// Clears away what a harness that was killed left of its connections.
    pub(crate) async fn begin(&self) {
        if let Some(ssh) = self.ssh() {
            ssh.end_orphans().await;
        }
    }

    /// Ends the connections, and the pods that were made.
    pub(crate) async fn end(&self) {
        self.disconnect().await;
        if let Reached::Pods(pods) = self
            && let Err(why) = pods.end().await
        {
            let verb = if pods.are_of_run() { "clean --all" } else { "clean --kubernetes" };
            eprintln!("warning: {why}; `harness {verb}` looks for such pods");
        }
    }

    /// Ends the connections alone: what runs in pods goes on, for a run that is resumed.
    pub(crate) async fn disconnect(&self) {
        if let Some(ssh) = self.ssh() {
            ssh.end().await;
        }
    }

    /// To look at what a run left: no pod takes a device, and without `makes` none is made.
    pub(crate) fn looking(self, makes: bool) -> Reached {
        match self {
            Reached::Pods(pods) => Reached::Pods(Box::new(pods.looking(makes))),
            other => other,
        }
    }

    pub(crate) fn pods(&self) -> Option<&Pods> {
        match self {
            Reached::Pods(pods) => Some(pods),
            _ => None,
        }
    }

    fn ssh(&self) -> Option<&OpenSsh> {
        match self {
            Reached::Processes(_) | Reached::Slurm(_) | Reached::Pods(_) => None,
            Reached::Login(reach) => Some(reach.inner().inner()),
            Reached::Ssh(reach) => Some(reach),
        }
    }
}

/// What is known to be secret before there is a plan: by the environment, and by the variables that the inventory names.
pub(crate) fn redactor(inventory: &Inventory) -> Redactor {
    let named = inventory.environment.values().filter_map(|value| match reference(value) {
        Reference::To(name) => Secrets::resolve([name], &|name| std::env::var(name).ok()).ok(),
        _ => None,
    });
    named.fold(store::redactor(), |redactor, secrets| redactor.and(&secrets))
}

/// A simulated cluster, whose Slurm is called as a real one is.
pub(crate) fn through_slurm<'a>(
    inventory: &Inventory,
    reach: &'a SimulatedReach,
) -> SlurmCalls<&'a SimulatedReach> {
    SlurmCalls::new(reach, inventory.paths.slurm.as_deref())
}
