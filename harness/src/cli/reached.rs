//! How the nodes of a real inventory are reached in a run: as processes of this machine or of a login host, or over ssh.
//! Simulated nodes are reached where the run is made.

use base::redact::{Redactor, Reference, Secrets, reference};
use cluster::reach::Reach;
use cluster::reach::login::AtLogin;
use cluster::reach::openssh::{OpenSsh, Way};
use cluster::reach::process::ProcessReach;
use cluster::reach::redacted::Redacted;
use cluster::reach::slurm_calls::{self, SlurmCalls};
use config::inventory::{Inventory, ReachBy};
use sim::SimulatedReach;

pub(super) enum Reached {
    Processes(ProcessReach),
    Slurm(SlurmCalls<ProcessReach>),
    Login(Box<SlurmCalls<AtLogin<OpenSsh>>>),
    Ssh(Box<OpenSsh>),
}

impl Reached {
    /// Connects to nobody yet; `fanout` hosts will be connected to at the same time.
    pub(super) fn of(inventory: &Inventory, seed: u64, fanout: usize) -> Result<Reached, String> {
        let over_ssh = |way: Way| {
            OpenSsh::new(way, seed, fanout)
                .map_err(|error| format!("no folder for the sockets of ssh: {error}"))
        };
        Ok(match &inventory.reach {
            ReachBy::Slurm(slurm) => match &slurm.login {
                Some(login) => {
                    let way = Way { config: slurm.login_config.clone(), ..Way::default() };
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
                let way = Way { user: ssh.user.clone(), port: ssh.port, config: ssh.config.clone() };
                Reached::Ssh(Box::new(over_ssh(way)?))
            }
        })
    }

    /// Slurm's commands are called on this machine.
    pub(super) fn slurm(folder: Option<&str>) -> Reached {
        Reached::Slurm(SlurmCalls::new(ProcessReach, folder))
    }

    pub(super) fn reach(&self) -> &dyn Reach {
        match self {
            Reached::Processes(reach) => reach,
            Reached::Slurm(reach) => reach,
            Reached::Login(reach) => reach.as_ref(),
            Reached::Ssh(reach) => reach.as_ref(),
        }
    }

    /// The same without the secrets in what nodes print, which becomes part of messages.
    pub(super) fn clean<'a>(&'a self, redactor: &'a Redactor) -> Redacted<'a> {
        Redacted { reach: self.reach(), redactor }
    }

    /// Clears away what a harness that was killed left of its connections.
    pub(super) async fn begin(&self) {
        if let Some(ssh) = self.ssh() {
            ssh.end_orphans().await;
        }
    }

    pub(super) async fn end(&self) {
        if let Some(ssh) = self.ssh() {
            ssh.end().await;
        }
    }

    /// The shared folder of the nodes is this machine's too, and filled from here.
    pub(super) fn runs_here(&self) -> bool {
        matches!(self, Reached::Processes(_) | Reached::Slurm(_))
    }

    fn ssh(&self) -> Option<&OpenSsh> {
        match self {
            Reached::Processes(_) | Reached::Slurm(_) => None,
            Reached::Login(reach) => Some(reach.of().of()),
            Reached::Ssh(reach) => Some(reach),
        }
    }
}

/// What is known to be secret before there is a plan: by the environment, and by the variables that the inventory names.
pub(super) fn redactor(inventory: &Inventory) -> Redactor {
    let named = inventory.environment.values().filter_map(|value| match reference(value) {
        Reference::To(name) => Secrets::resolve([name], &|name| std::env::var(name).ok()).ok(),
        _ => None,
    });
    named.fold(store::redactor(), |redactor, secrets| redactor.and(&secrets))
}

/// A simulated cluster, whose Slurm is called as a real one is.
pub(super) fn through_slurm<'a>(
    inventory: &Inventory,
    reach: &'a SimulatedReach,
) -> SlurmCalls<&'a SimulatedReach> {
    SlurmCalls::new(reach, inventory.paths.slurm.as_deref())
}
