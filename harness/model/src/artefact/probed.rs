//! What nodes reported before anything ran on them, and which of them can pass. How they are asked, and what
//! the facts are, is `probe`'s business.

use super::Format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `probe.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Version of this layout.
    pub format: Format<1>,
    /// Version of the harness that asked: `0.1.0`.
    pub harness: String,
    /// Whether any of it was reported by simulated hardware.
    pub simulated: bool,
    /// Stem of the inventory's file.
    pub inventory: String,
    /// Instance type of the inventory: `p5`.
    pub instance: String,
    /// When it was made; simulated time where the cluster is simulated.
    pub at: String,
    /// In the inventory's order.
    pub nodes: Vec<ProbedNode>,
}

/// What one node reported, and what follows from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbedNode {
    /// Its name in the inventory.
    pub node: String,
    /// Why no probe could be made, which says nothing about the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprobed: Option<String>,
    /// Why no job on it can pass. Empty where none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<String>,
    /// What is odd about it, and keeps no job from passing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What its kernel calls itself, where Slurm or ssh reaches it: programs on it name their host so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// How Slurm has it, where there is Slurm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm: Option<String>,
    /// The GPUs that its GRES names, 0 where it names none; `None` where Slurm did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gres_gpus: Option<u32>,
    /// `None` where its clock was not read, or was set meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<ClockOffset>,
    /// By name, as `probe/facts.rs` declares them.
    #[serde(default)]
    pub facts: BTreeMap<String, Value>,
    /// Facts that could not be read, and why. They are unknown, never 0.
    #[serde(default)]
    #[serde(alias = "not_told")]
    pub unknown: BTreeMap<String, String>,
    /// Of what nodes of one kind have alike: the same digest, the same node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl ProbedNode {
    /// Why nothing is known of its GPUs, where nothing else is wrong with it: whether it is fit is then not known either.
    pub fn gpus_unread(&self) -> Option<&str> {
        let is_open = self.unprobed.is_none() && self.unfit.is_empty() && !self.facts.contains_key("gpus");
        let why = self.unknown.get("gpus").map(String::as_str);
        is_open.then(|| why.unwrap_or("nothing on the node reported them"))
    }
}

/// The node's clock against the harness's own: it is ahead by no less and by no more, for the answer took its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Milliseconds that the node's clock is ahead, at least; below 0 it may be behind.
    pub at_least_ms: f64,
    /// Milliseconds that the node's clock is ahead, at most.
    pub at_most_ms: f64,
}

impl ClockOffset {
    /// By how much a clock is off at least, whichever way.
    pub fn surely_off_ms(&self) -> f64 {
        self.at_least_ms.max(-self.at_most_ms).max(0.0)
    }

    /// By how much it may be off at most.
    pub fn perhaps_off_ms(&self) -> f64 {
        self.at_most_ms.abs().max(self.at_least_ms.abs())
    }
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count or bytes.
    Number(u64),
    /// A list that may be empty: devices, processes, Xid errors.
    Names(Vec<String>),
    /// A version, a state, or `unlimited`.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            Value::Names(names) if names.is_empty() => f.write_str("none"),
            Value::Names(names) => write!(f, "{} ({})", names.join(", "), names.len()),
        }
    }
}

/// A node that nothing was launched on, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name in the inventory.
    pub node: String,
    /// What the probe or the earlier case showed.
    pub why: String,
    /// It is nothing of its own that keeps it from passing: the folder that all nodes share, a job on its GPUs, or the
    /// account by which they are reached. No node is blamed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_folder: bool,
    /// The case after which it was quarantined; nothing where a probe showed it before anything was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
