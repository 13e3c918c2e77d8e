//! Nodes that somebody took out of the simulated Slurm's queue, and `scontrol`'s words about them: nothing new starts
//! there until somebody puts them back.

use super::World;
use super::calendar::slurm_time;
use cluster::reach::Answer;
use std::collections::BTreeMap;

/// Node to reason, with who gave it and when.
#[derive(Default)]
pub(crate) struct Drained(BTreeMap<String, (String, f64)>);

impl Drained {
    pub(crate) fn has(&self, node: &str) -> bool {
        self.0.contains_key(node)
    }

    pub(crate) fn reason(&self, node: &str) -> Option<&str> {
        self.0.get(node).map(|(reason, _)| reason.as_str())
    }
}

pub(crate) fn show(world: &World, node: &str) -> Answer {
    if !world.cluster.nodes.iter().any(|known| known == node) {
        return Answer::failed(1, format!("Node {node} not found\n"));
    }
    let base = match (world.slurm.is_down(node), world.slurm.is_busy(node)) {
        (true, _) => "DOWN*",
        (false, true) => "ALLOCATED",
        (false, false) => "IDLE",
    };
    let (drain, reason) = match world.slurm.drained.0.get(node) {
        Some((reason, at_s)) => {
            ("+DRAIN", format!(" Reason={reason} [root@{}]", slurm_time(world.epoch_s + at_s)))
        }
        None if world.slurm.is_down(node) => {
            ("", format!(" Reason=Not responding [slurm@{}]", slurm_time(world.epoch_s + world.now_s)))
        }
        None => ("", String::new()),
    };
    Answer::ok(format!(
        "NodeName={node} Arch=x86_64 NodeAddr={node} NodeHostName={node} State={base}{drain} ThreadsPerCore=1 \
         Weight=1 Partitions=sim-queue{reason}\n"
    ))
}

pub(crate) fn show_all(world: &World) -> Answer {
    let of_nodes = world.cluster.nodes.iter().map(|node| show(world, node).stdout_text());
    Answer::ok(of_nodes.collect::<String>())
}

/// `words`: what follows `scontrol update`. Nothing where they say something that is not understood.
pub(crate) fn update(world: &mut World, words: &[&str]) -> Option<Answer> {
    let (node, change) = match words {
        [node, "State=DRAIN", reason] => (node, Some(reason.strip_prefix("Reason=")?)),
        [node, "State=RESUME"] => (node, None),
        _ => return None,
    };
    let node = node.strip_prefix("NodeName=")?;
    if !world.cluster.nodes.iter().any(|known| known == node) {
        return Some(Answer::failed(1, "slurm_update error: Invalid node name specified\n"));
    }
    let now_s = world.now_s;
    let drained = &mut world.slurm.drained.0;
    match change {
        Some(reason) => {
            drained.insert(node.to_owned(), (reason.to_owned(), now_s));
        }
        None if drained.remove(node).is_none() => {
            return Some(Answer::failed(1, "slurm_update error: Invalid node state specified\n"));
        }
        // Whoever waits for it may start now.
        None => world.slurm.look_again(),
    }
    Some(Answer::ok(""))
}
