//! How the nodes of a real inventory are reached in a run: as processes of this machine, or over ssh. Pretend nodes are
//! reached where the run is made.

use crate::inventory::{Inventory, ReachBy};
use crate::reach::Reach;
use crate::reach::openssh::{OpenSsh, Way};
use crate::reach::process::ProcessReach;

pub enum Reached {
    Processes(ProcessReach),
    Ssh(Box<OpenSsh>),
}

impl Reached {
    /// Connects to nobody yet; `fanout` hosts will be connected to at the same time.
    pub fn of(inventory: &Inventory, seed: u64, fanout: usize) -> Result<Reached, String> {
        match &inventory.reach {
            // Slurm's commands are called on this machine.
            ReachBy::Slurm(_) | ReachBy::Local => Ok(Reached::Processes(ProcessReach)),
            ReachBy::Ssh(ssh) => {
                let way = Way { user: ssh.user.clone(), port: ssh.port, config: ssh.config.clone() };
                let reach = OpenSsh::new(way, seed, fanout)
                    .map_err(|error| format!("no folder for the sockets of ssh: {error}"))?;
                Ok(Reached::Ssh(Box::new(reach)))
            }
        }
    }

    pub fn reach(&self) -> &dyn Reach {
        match self {
            Reached::Processes(reach) => reach,
            Reached::Ssh(reach) => reach.as_ref(),
        }
    }

    /// Clears away what a harness that was killed left of its connections.
    pub async fn begin(&self) {
        if let Reached::Ssh(reach) = self {
            reach.end_orphans().await;
        }
    }

    pub async fn end(&self) {
        if let Reached::Ssh(reach) = self {
            reach.end().await;
        }
    }
}
