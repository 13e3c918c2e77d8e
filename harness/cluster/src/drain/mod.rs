//! Nodes that are taken out of the queue of Slurm or of Kubernetes, and put back, under reasons of our own. A reason that
//! somebody else gave is never overwritten. Which nodes deserve it is decided in `isolate`; when they are good again, in `cli`.

mod bounded;
mod kubernetes;
pub mod limits;
mod node_state;
mod recheck;

pub use bounded::{Bound, drain_all};
pub use kubernetes::{BORNE_BY_RECHECKS, KubernetesQueue, read_nodes};
pub use node_state::NodeState;
pub use recheck::{Held, Leftover, hold, release, take_up};

use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach, Wait};
use std::collections::BTreeSet;

/// What hands nodes to jobs, and can take them out of its queue.
pub trait Queue {
    /// As messages call it.
    fn name(&self) -> &'static str;

    /// What it says of all nodes, in its order, by the names of the inventory.
    fn show_all(&self) -> Wait<'_, Result<Vec<(String, NodeState)>, String>>;

    /// Takes one node out of the queue.
    fn drain<'a>(&'a self, wanted: &'a Wanted) -> Wait<'a, Drained>;

    /// The command by which a person puts a node back.
    fn undo(&self, node: &str) -> String;
}

/// Slurm's nodes, by `scontrol`.
pub struct SlurmQueue<'a>(pub &'a dyn Reach);

impl Queue for SlurmQueue<'_> {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn show_all(&self) -> Wait<'_, Result<Vec<(String, NodeState)>, String>> {
        Box::pin(show_all(self.0))
    }

    fn drain<'a>(&'a self, wanted: &'a Wanted) -> Wait<'a, Drained> {
        Box::pin(drain(self.0, wanted))
    }

    fn undo(&self, node: &str) -> String {
        format!("scontrol update NodeName={node} State=RESUME")
    }
}

/// A node, and what its queue is to say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the queue names it.
    pub node: String,
    /// Begins with `[harness]` and a code.
    pub reason: String,
}

/// What became of one node that was to be drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// Read back: out of the queue, for our reason.
    Done,
    /// It was out of the queue for a reason of ours before.
    Already {
        /// As the queue shows it.
        reason: String,
    },
    /// Somebody else gave a reason, which stands.
    Others {
        /// State and reason, as `NodeState` prints them.
        state: String,
    },
    /// Whether it is out of the queue is not known, or it is not.
    Failed {
        /// An error of its program, or the state that it shows instead.
        why: String,
    },
}

/// One node. Slurm cannot update conditionally, so the node is read just before and just after: where somebody else
/// updated it at the same moment, its final state is what is reported.
pub async fn drain(reach: &dyn Reach, wanted: &Wanted) -> Drained {
    let before = match show(reach, &wanted.node).await {
        Ok(before) => before,
        Err(why) => return Drained::Failed { why },
    };
    if let Some(settled) = before.settled() {
        return settled;
    }
    let update = update(reach, &wanted.node, "DRAIN", Some(&wanted.reason)).await;
    match show(reach, &wanted.node).await {
        Ok(after) if after.is_draining() && after.reason.as_deref() == Some(&wanted.reason) => Drained::Done,
        Ok(after) if after.reason.is_some() && after.ours().is_none() => {
            Drained::Others { state: after.to_string() }
        }
        Ok(after) => Drained::Failed {
            why: match update {
                Err(why) => why,
                Ok(()) => format!("`scontrol update` succeeded, but Slurm reports it as {after}"),
            },
        },
        Err(why) => Drained::Failed { why: format!("its state could not be read back: {why}") },
    }
}

/// What Slurm says of a node. Without `--all` it leaves out nodes of partitions that are hidden, or closed to the user.
pub async fn show(reach: &dyn Reach, node: &str) -> Result<NodeState, String> {
    let printed = scontrol(reach, &["--all", "--oneliner", "show", "node", node]).await?;
    NodeState::read(&printed).map_err(|why| format!("the answer of `scontrol show node {node}` {why}"))
}

/// What it says of all of them, in its order.
pub async fn show_all(reach: &dyn Reach) -> Result<Vec<(String, NodeState)>, String> {
    let printed = scontrol(reach, &["--all", "--oneliner", "show", "node"]).await?;
    read_all(&printed).map_err(|why| format!("the answer of `scontrol show node` {why}"))
}

/// A node a line: comments and reasons may name other nodes, as `scontrol update NodeName=...` does.
fn read_all(printed: &str) -> Result<Vec<(String, NodeState)>, String> {
    let mut all: Vec<(String, NodeState)> = Vec::new();
    let mut names = BTreeSet::new();
    for line in printed.lines() {
        let Some(rest) = line.strip_prefix("NodeName=") else { continue };
        let name = rest.split_whitespace().next().ok_or("has a node without a name")?;
        if !names.insert(name) {
            return Err(format!("lists {name} twice"));
        }
        all.push((name.to_owned(), NodeState::read(rest).map_err(|why| format!("{why}: {name}"))?));
    }
    Ok(all)
}

async fn update(reach: &dyn Reach, node: &str, state: &str, reason: Option<&str>) -> Result<(), String> {
    let (name, state) = (format!("NodeName={node}"), format!("State={state}"));
    let reason = reason.map(|reason| format!("Reason={reason}"));
    let words = ["update", &name, &state].into_iter().chain(reason.as_deref());
    scontrol(reach, &words.collect::<Vec<_>>()).await.map(|_| ())
}

async fn scontrol(reach: &dyn Reach, words: &[&str]) -> Result<String, String> {
    let command = Command::new(std::iter::once("scontrol").chain(words.iter().copied()), QUERY_LIMIT);
    let asked = words.iter().copied().filter(|word| !word.starts_with('-')).take(2).collect::<Vec<_>>();
    let asked = format!("`scontrol {}`", asked.join(" "));
    match reach.exec(&Host::Here, &command).await {
        Ok(answer) if answer.succeeded() => Ok(answer.stdout_text()),
        Ok(answer) => Err(format!("{asked} ended with {}: {}", answer.status, answer.complaint())),
        Err(error) => Err(format!("{asked}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_named_in_a_comment_or_reason_of_another_is_no_node() {
        let ours = "NodeName=n2 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 Reason=[harness] HRN-MEMORY-SLOW \
                    memory: 289.3 GB/s, run R [root@2026-11-22T03:55:51]";
        for other in [
            "NodeName=n3 State=IDLE Comment=later scontrol update NodeName=n2 State=RESUME please",
            "NodeName=n3 State=IDLE+DRAIN Reason=swap of DIMM, see also NodeName=n2 [root@2026-11-22T03:55:51]",
        ] {
            let all = read_all(&format!("{ours}\n{other}\n\n")).expect("nodes");
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["n2", "n3"], "{other}");
            assert!(all[0].1.is_draining() && all[0].1.ours().is_some(), "{other}");
        }
        assert_eq!(read_all(&format!("{ours}\n{ours}")), Err("lists n2 twice".to_owned()));
        assert_eq!(read_all("NodeName=n2 Arch=x86_64"), Err("has no `State`: n2".to_owned()));
        assert_eq!(read_all("NodeName= "), Err("has a node without a name".to_owned()));
        assert_eq!(read_all("No nodes in the system\n"), Ok(Vec::new()));
    }
}
