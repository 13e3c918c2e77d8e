//! Checks give way to everybody else: an inventory that does not say how is refused.

use config::inventory::{Inventory, ReachBy};

/// The key that must say at which priority checks run, where it is absent.
pub(super) fn refused(inventory: &Inventory, assume_idle: bool) -> Result<(), String> {
    let file = &inventory.file;
    match &inventory.reach {
        ReachBy::Slurm(slurm) if slurm.qos.is_none() && slurm.partition.is_none() => Err(format!(
            "{file}: checks must give way to jobs: set `qos` in `[reach]` to a preemptible QOS, or `partition` to one whose jobs \
             are preempted; a copy of the inventory serves"
        )),
        ReachBy::Kubernetes(pods) if pods.priority_class.is_none() => Err(format!(
            "{file}: checks must give way to jobs: set `priority_class` in `[reach]` to a PriorityClass below all others; a copy of \
             the inventory serves"
        )),
        ReachBy::Slurm(_) => Ok(()),
        ReachBy::Kubernetes(_) | ReachBy::Ssh(_) | ReachBy::Local if assume_idle => Ok(()),
        ReachBy::Kubernetes(_) => Err(format!(
            "{file}: which nodes of Kubernetes are idle is not read; `--assume-idle` tries all: pods wait where others have the GPUs, \
             and such a check is no measurement"
        )),
        ReachBy::Ssh(_) | ReachBy::Local => Err(format!(
            "{file}: nothing here knows which nodes are idle, and nothing pushes a check aside; if no other jobs use them, give \
             `--assume-idle`"
        )),
    }
}
