//! `--drain`: culprits out of the queue of Slurm or of Kubernetes. What is printed of each node stands here; how these are
//! asked, in `cluster::drain`.

use super::consent;
use crate::session::execution::new_runtime;
use crate::session::output::Output;
use crate::session::reached::{ReachScope, Reached, through_slurm};
use crate::session::run_cluster;
use cluster::drain::limits::{self, Limits};
use cluster::drain::{self, Drained, KubernetesQueue, Queue, SlurmQueue, Wanted};
use cluster::reach::Reach;
use config::inventory::{Inventory, Kind, ReachBy};
use sim::SimulatedReach;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Home;
use verdict::isolate::evidence::EvidenceLine;

/// Why an inventory's nodes have no queue to be taken out of, if so.
pub(crate) fn refused(inventory: &Inventory, flag: &str) -> Result<(), String> {
    match inventory.reach.planner().drains() {
        true => Ok(()),
        false => Err(format!(
            "{flag}: only Slurm and Kubernetes drain nodes, and those of this inventory are reached without them: `{}`",
            inventory.name
        )),
    }
}

/// The culprits to drain, and whether the user is asked first.
pub(crate) struct Drain<'a> {
    pub home: &'a Home,
    pub inventory: &'a Inventory,
    pub ssh_fanout: u32,
    pub lines: &'a [EvidenceLine],
    pub run: &'a str,
    pub simulated: bool,
    pub limits: Limits,
    pub without_asking: bool,
    /// The command that drains the same nodes without asking.
    pub command: String,
    /// Where the result of each is printed.
    pub output: Output,
}

/// Drains the culprits where the user agrees, and prints the result for each. Whether all of them are drained now.
pub(crate) fn drain(drain: &Drain) -> bool {
    let (mut wanted, left) = limits::choose_nodes(drain.lines, drain.run, &drain.limits);
    left.iter().for_each(|line| drain.output.print(line));
    if drain.simulated {
        // The reason must not look like a measurement to a reader of the queue.
        wanted.iter_mut().for_each(|wanted| wanted.reason.push_str(" (SIMULATED)"));
    }
    if wanted.is_empty() {
        return left.is_empty();
    }
    run_cluster::note_unrecorded(&blaming(drain), drain.inventory);
    if !drain.without_asking {
        match with_queue(drain, async |queue| refuse(queue, drain, &wanted).await) {
            Ok(None) => {}
            Ok(Some(why)) | Err(why) => {
                drain.output.print(why);
                return false;
            }
        }
        if let Err(why) = consent::ask(&wanted, &drain.command) {
            drain.output.print(why);
            return false;
        }
    }
    let lines = with_queue(drain, async |queue| {
        // Another call may have drained some while the user was asked.
        match refuse(queue, drain, &wanted).await {
            Some(why) => (vec![why], false),
            None => {
                let (done, stopped) = drain::drain_all(queue, &wanted, &drain.limits).await;
                let is_out = |it: &Drained| matches!(it, Drained::Done | Drained::Already { .. });
                let are_out = done.len() == wanted.len() && done.iter().all(is_out);
                (outcomes(queue, &wanted, &done, stopped), are_out)
            }
        }
    });
    let (lines, are_out) = lines.unwrap_or_else(|why| (vec![why], false));
    lines.iter().for_each(|line| drain.output.print(line));
    are_out && left.is_empty()
}

/// The folder of the run that they are blamed by.
fn blaming(drain: &Drain<'_>) -> PathBuf {
    drain.home.path().join("runs").join(drain.run)
}

fn outcomes(queue: &dyn Queue, wanted: &[Wanted], done: &[Drained], stopped: Option<String>) -> Vec<String> {
    let mut lines: Vec<String> =
        wanted.iter().zip(done).map(|(wanted, done)| outcome(queue, wanted, done)).collect();
    let rest: Vec<&str> = wanted.iter().skip(done.len()).map(|wanted| wanted.node.as_str()).collect();
    match stopped {
        Some(why) if rest.is_empty() => {
            lines.push(format!("too many are drained: {why}; `{}` puts one back", queue.undo("NODE")));
        }
        Some(why) => lines.push(format!("not drained {}: {why}", rest.join(", "))),
        None => {}
    }
    lines
}

fn outcome(queue: &dyn Queue, wanted: &Wanted, done: &Drained) -> String {
    let node = &wanted.node;
    match done {
        Drained::Done => format!("drained {node}: {}", wanted.reason),
        Drained::Already { reason } => format!("{node} is drained already: {reason}"),
        Drained::Others { state: reason } => {
            format!("not drained {node}, its reason in {} is not the harness's: {reason}", queue.name())
        }
        Drained::Failed { why } => format!("not drained {node}: {why}"),
    }
}

/// Why none of them is drained, if so.
async fn refuse(queue: &dyn Queue, drain: &Drain<'_>, wanted: &[Wanted]) -> Option<String> {
    match queue.show_all().await {
        Ok(all) => drain.limits.refuse(wanted, &all),
        Err(why) => Some(format!("nothing is drained: the number of drained nodes is unknown: {why}")),
    }
}

/// Does something with the queue of the nodes.
fn with_queue<T>(drain: &Drain<'_>, act: impl AsyncFnOnce(&dyn Queue) -> T) -> Result<T, String> {
    if let ReachBy::Kubernetes(pods) = &drain.inventory.reach {
        run_cluster::check_nodes(&blaming(drain), drain.inventory)
            .map_err(|why| format!("nothing is drained: {why}"))?;
        let queue = KubernetesQueue::new(pods);
        return Ok(new_runtime(false)?.block_on(act(&queue)));
    }
    let done = with_slurm(drain.inventory, drain.ssh_fanout, async |reach| act(&SlurmQueue(reach)).await);
    done.map_err(|why| format!("not drained, Slurm cannot be asked: {why}"))
}

/// Does something with the inventory's Slurm. A simulated one is rehearsed on, and remembers nothing of it.
pub(crate) fn with_slurm<T>(
    inventory: &Inventory,
    ssh_fanout: u32,
    act: impl AsyncFnOnce(&dyn Reach) -> T,
) -> Result<T, String> {
    let simulated = inventory.kind == Kind::Simulated;
    new_runtime(simulated)?.block_on(async {
        if simulated {
            let reach = SimulatedReach::new(inventory, 0, Vec::new(), BTreeMap::new())?;
            return Ok(act(&through_slurm(inventory, &reach)).await);
        }
        let reached = Reached::new(
            inventory,
            &ReachScope {
                run: "drain",
                nodes: &inventory.nodes,
                seed: 0,
                fanout: ssh_fanout as usize,
                has_folder: false,
            },
        )?;
        reached.begin().await;
        let done = act(reached.reach()).await;
        reached.end().await;
        Ok(done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::reach::process::ProcessReach;

    #[test]
    fn messages() {
        let wanted = Wanted {
            node: "p5-002".to_owned(),
            reason: "[harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1".to_owned(),
        };
        let reason = wanted.reason.clone();
        let all = [
            Drained::Done,
            Drained::Already { reason },
            Drained::Others { state: "IDLE+DRAIN: a fan is loud [root]".to_owned() },
            Drained::Failed { why: "`scontrol update` ended with 1: denied".to_owned() },
        ];
        let lines: Vec<String> =
            all.iter().map(|done| outcome(&SlurmQueue(&ProcessReach), &wanted, done)).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        drained p5-002: [harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1
        p5-002 is drained already: [harness] HRN-NIC-DEAD rdmap113s0: moved no byte, run 1
        not drained p5-002, its reason in Slurm is not the harness's: IDLE+DRAIN: a fan is loud [root]
        not drained p5-002: `scontrol update` ended with 1: denied
        ");
    }
}
