//! Which nodes are idle, and which somebody took out of the queue.

use crate::isolate::drain::with_slurm;
use cluster::drain::{self, NodeState};
use config::inventory::{Inventory, ReachBy};
use std::collections::BTreeMap;

/// The nodes of an inventory, as their queue shows them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Queue {
    pub idle: Vec<String>,
    /// Drained or cordoned.
    pub out: Vec<String>,
    /// In the queue, idle or not.
    pub within: Vec<String>,
    /// Nodes of the inventory that it does not know.
    pub unknown: usize,
}

/// Asks the queue; where it cannot be asked, all nodes count as idle.
pub(super) fn ask(inventory: &Inventory, ssh_fanout: u32) -> Result<Queue, String> {
    match &inventory.reach {
        ReachBy::Slurm(_) => {
            let shown = with_slurm(inventory, ssh_fanout, async |reach| drain::show_all(reach).await)??;
            Ok(sort(&inventory.nodes, shown))
        }
        ReachBy::Kubernetes(_) | ReachBy::Ssh(_) | ReachBy::Local => {
            Ok(Queue { idle: inventory.nodes.clone(), within: inventory.nodes.clone(), ..Queue::default() })
        }
    }
}

fn sort(nodes: &[String], shown: Vec<(String, NodeState)>) -> Queue {
    let shown: BTreeMap<String, NodeState> = shown.into_iter().collect();
    let mut queue = Queue::default();
    for node in nodes {
        match shown.get(node) {
            None => queue.unknown += 1,
            Some(state) if state.is_draining() => queue.out.push(node.clone()),
            Some(state) => {
                // A reason that somebody gave is a hint that it is not everybody's.
                if state.is_idle() && state.reason.is_none() {
                    queue.idle.push(node.clone());
                }
                queue.within.push(node.clone());
            }
        }
    }
    queue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_nodes_are_those_without_a_job_and_without_a_reason() {
        let state = |text: &str| NodeState::read(text).expect("a node");
        let shown = [
            ("a", "State=IDLE"),
            ("b", "State=ALLOCATED"),
            ("c", "State=IDLE+DRAIN Reason=a fan [root@2026-11-22T03:55:51]"),
            ("d", "State=DOWN*"),
            ("e", "State=IDLE+RESERVED"),
            ("f", "State=IDLE Reason=odd"),
            ("other", "State=IDLE"),
        ];
        let shown = shown.iter().map(|(name, text)| ((*name).to_owned(), state(text))).collect();
        let nodes: Vec<String> = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec();
        let queue = sort(&nodes, shown);
        assert_eq!(queue.idle, ["a"]);
        assert_eq!(queue.out, ["c"]);
        assert_eq!(queue.within, ["a", "b", "d", "e", "f"]);
        assert_eq!(queue.unknown, 1);
    }
}
