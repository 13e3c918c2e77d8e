//! Nodes that are taken out of Slurm's queue, and put back, under reasons of our own. What somebody else said of a node is
//! never written over. Which nodes deserve it is decided in `isolate`; when they are good again, in `cli`.

mod bounded;
pub mod limits;
mod recheck;
mod shown;

pub use bounded::{Bound, drain_all};
pub use recheck::{Held, hold, release, take_up};
pub use shown::Shown;

use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach};

/// A node, and what Slurm is to say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub node: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drained {
    /// Read back: out of the queue, for our reason.
    Done,
    /// It was out of the queue for a reason of ours before.
    Already { reason: String },
    /// Somebody else has said something of it, which stands.
    Others { told: String },
    /// Whether it is out of the queue is not known, or it is not.
    Failed { why: String },
}

/// One node. Slurm has no way to write only where nobody has written, so the node is read just before and just after:
/// where somebody else was faster or slower by a moment, what Slurm says in the end is what is told.
pub async fn drain(reach: &dyn Reach, wanted: &Wanted) -> Drained {
    let before = match show(reach, &wanted.node).await {
        Ok(before) => before,
        Err(why) => return Drained::Failed { why },
    };
    if let Some(reason) = before.ours().filter(|_| before.is_draining()) {
        return Drained::Already { reason: reason.to_owned() };
    }
    // A reason of ours on a node that is in the queue is what is left of a drain that somebody ended.
    if before.ours().is_none() && (before.is_draining() || before.reason.is_some()) {
        return Drained::Others { told: before.to_string() };
    }
    let update = update(reach, &wanted.node, "DRAIN", Some(&wanted.reason)).await;
    match show(reach, &wanted.node).await {
        Ok(after) if after.is_draining() && after.reason.as_deref() == Some(&wanted.reason) => Drained::Done,
        Ok(after) if after.reason.is_some() && after.ours().is_none() => {
            Drained::Others { told: after.to_string() }
        }
        Ok(after) => Drained::Failed {
            why: match update {
                Err(why) => why,
                Ok(()) => format!("`scontrol update` went well, and Slurm has it as {after}"),
            },
        },
        Err(why) => Drained::Failed { why: format!("it could not be read back: {why}") },
    }
}

/// What Slurm says of a node.
pub async fn show(reach: &dyn Reach, node: &str) -> Result<Shown, String> {
    let told = scontrol(reach, &["--oneliner", "show", "node", node]).await?;
    Shown::read(&told).map_err(|why| format!("the answer of `scontrol show node {node}` {why}"))
}

/// What it says of all of them, in its order.
pub async fn show_all(reach: &dyn Reach) -> Result<Vec<(String, Shown)>, String> {
    let told = scontrol(reach, &["--oneliner", "show", "node"]).await?;
    let wrong = |why: String| format!("the answer of `scontrol show node` {why}");
    let nodes = told.split("NodeName=").skip(1).map(|line| {
        let name =
            line.split_whitespace().next().ok_or_else(|| wrong("has a node without a name".to_owned()))?;
        let shown = Shown::read(line).map_err(|why| wrong(format!("{why}: {name}")))?;
        Ok((name.to_owned(), shown))
    });
    nodes.collect()
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
        Ok(answer) => {
            // Some of its complaints go to stdout.
            let stdout = answer.stdout_text();
            let told = match answer.complaint() {
                told if told.is_empty() => stdout.trim().to_owned(),
                told => told,
            };
            Err(format!("{asked} ended with {}: {told}", answer.status))
        }
        Err(error) => Err(format!("{asked}: {error}")),
    }
}
