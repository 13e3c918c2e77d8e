//! What a plan says of the isolation that a red suite may bring about, and what came of one. Which runs it has is
//! decided in `isolate`.

use serde::{Deserialize, Serialize};

/// In `plan.json`: what is done where a suite is red, and what that may take at worst.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedIsolation {
    /// Stem of the suite's file.
    pub suite: String,
    /// Where it lies, as `sources` name it.
    pub file: String,
    /// Run on sets of nodes, where no case that can be is red itself.
    pub case: String,
    /// No round begins that would take the sum beyond this.
    pub budget_node_h: f64,
    /// Whether the suite says so, or it is what the run itself is expected to take.
    pub budget_is_own: bool,
    /// No fault, at little noise.
    pub best: IsolationCost,
    /// Two faults at much noise: the most of 40 simulated isolations.
    pub worst: IsolationCost,
    /// Why it cannot come about on these nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What an isolation is estimated to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IsolationCost {
    /// Rounds, each a run of its own.
    pub rounds: u64,
    /// Sets of nodes that the case is run on, over all rounds.
    pub runs: u64,
    /// Nodes of all these sets, times the hours of one such run.
    pub node_h: f64,
}

/// In `summary.json`: an isolation that a red suite has brought about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Isolated {
    /// Stem of the suite's file.
    pub suite: String,
    /// As its exit code says: `culprits`, `no culprit`, `could not tell`, `interrupted`.
    pub end: String,
    /// One line each, as `harness isolate` prints them.
    pub culprits: Vec<String>,
    /// The ids of its rounds, each a run of its own.
    pub rounds: Vec<String>,
    /// Used by all rounds.
    pub node_hours: f64,
}
