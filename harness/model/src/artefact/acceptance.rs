//! The certificate of a delivery of nodes: who is accepted, who is not and why, by which limits, and what was not looked
//! at. How it came about is `accept`'s business.

use metric::unit::Unit;
use serde::{Deserialize, Serialize};

/// `acceptance.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    pub format: u32,
    pub harness: String,
    /// What this delivery is called; its runs' names begin so.
    pub delivery: String,
    /// Nothing of it was measured on real hardware.
    pub simulated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub suite: String,
    pub inventory: String,
    pub instance: String,
    pub seed: u64,
    /// The nodes that were to be accepted, folded.
    pub nodes: String,
    pub count: usize,
    /// Nodes that were taken for good, folded; empty where new nodes were compared with each other only.
    pub partners: String,
    pub vouched: String,
    /// When the first run began; simulated time where it is simulated.
    pub began: String,
    pub ended: String,
    pub budget_node_hours: Option<f64>,
    pub node_hours: f64,
    pub accepted: Vec<String>,
    pub rejected: Vec<Rejected>,
    pub undecided: Vec<Undecided>,
    /// Partners that turned out not to be good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Withdrawn>,
    pub stages: Vec<StageRecord>,
    pub limits: Vec<Limit>,
    /// What each new node's numbers were compared with; nodes that are alike in that are folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged_by: Vec<NodesJudged>,
    pub stack: Vec<StackPart>,
    pub not_measured: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    pub node: String,
    pub stage: String,
    pub culprits: Vec<Coded>,
    /// The assertions that did not pass for it, a few of them.
    pub assertions: Vec<String>,
    /// The run that shows it; none for the preflight, whose `probe.json` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What is wrong, by a code that `harness explain` knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    pub code: String,
    pub severity: String,
    pub part: String,
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    pub node: String,
    pub stage: String,
    pub why: String,
}

impl Acceptance {
    /// The undecided by stage and reason, in the order of their first: stage, nodes, reason.
    pub fn undecided_alike(&self) -> Vec<(&str, Vec<String>, &str)> {
        let mut alike: Vec<(&str, Vec<String>, &str)> = Vec::new();
        for one in &self.undecided {
            match alike.iter_mut().find(|(stage, _, why)| *stage == one.stage && *why == one.why) {
                Some((_, nodes, _)) => nodes.push(one.node.clone()),
                None => alike.push((&one.stage, vec![one.node.clone()], &one.why)),
            }
        }
        alike
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    pub node: String,
    pub stage: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    pub name: String,
    /// The nodes that came into it, folded.
    pub entered: String,
    pub passed: String,
    pub runs: Vec<RunOfStage>,
    pub node_hours: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOfStage {
    pub run: String,
    pub about: String,
    pub nodes: String,
    pub jobs: usize,
    pub node_hours: f64,
    pub planned_node_hours: f64,
    /// How long it was to take.
    pub planned_s: u64,
    pub seconds: f64,
}

/// How many numbers of a node, and of what it ran in, were compared with what.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodesJudged {
    pub nodes: String,
    pub accepted_baseline: usize,
    pub peers: usize,
    /// As many parts as measured the same number where it was compared with the most.
    pub most_peers: usize,
    pub published: usize,
    pub floor: usize,
    /// Limits that the suite states: of the hardware, or of correctness.
    pub limit: usize,
    pub unjudged: usize,
}

/// One limit and all numbers compared with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    pub stage: String,
    pub case: String,
    /// The metric with its size, as the suite's assertion is called.
    pub what: String,
    pub unit: Unit,
    pub limit: String,
    /// `stated` in the suite, `peers`, or the state of the baseline: `accepted`, `provisional`, `expired`, `none`.
    pub state: String,
    pub source: String,
    /// How many numbers made the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// The software that the baseline is of, where it says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    pub observed: Observed,
    pub passed: usize,
    pub failed: usize,
    /// Neither: not measured, or inconclusive.
    pub open: usize,
}

/// The numbers compared with a limit; none where none was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub n: usize,
    pub least: Option<f64>,
    pub median: Option<f64>,
    pub most: Option<f64>,
    /// The median distance from the median, as a fraction of it.
    pub spread: Option<f64>,
}

/// One thing that nodes were made of, and which of them had which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackPart {
    pub part: String,
    pub value: String,
    pub nodes: String,
}
