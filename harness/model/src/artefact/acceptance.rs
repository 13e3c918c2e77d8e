//! The certificate of a delivery of nodes: who is accepted, who is not and why, by which limits, and what was not looked
//! at. How it came about is `accept`'s business.

use super::Format;
use metric::unit::Unit;
use serde::{Deserialize, Serialize};

/// `acceptance.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Version of this layout.
    pub format: Format<1>,
    /// Version of the harness that made it: `0.1.0`.
    pub harness: String,
    /// What this delivery is called; its runs' names begin so.
    pub delivery: String,
    /// Nothing of it was measured on real hardware.
    pub simulated: bool,
    /// The mark of simulated output; `None` on real hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// As given to `harness accept`, or `acceptance-p5` by the instance.
    pub suite: String,
    /// Stem of the inventory's file.
    pub inventory: String,
    /// Instance type of the inventory: `p5`.
    pub instance: String,
    /// Of the first run; later runs have others that follow from it.
    pub seed: u64,
    /// The nodes that were to be accepted, folded.
    pub nodes: String,
    /// How many nodes are to be accepted.
    pub count: usize,
    /// Nodes that were taken for good, folded; empty where new nodes were compared with each other only.
    pub partners: String,
    /// Who the partners are and why they count as good, or `each other: ...`.
    pub vouched: String,
    /// When the first run began; simulated time where it is simulated.
    pub began: String,
    /// When the last run ended; UTC, ISO 8601.
    pub ended: String,
    /// `--budget`: node-hours of all runs together; `None` for no limit.
    pub budget_node_hours: Option<f64>,
    /// Measured: nodes times seconds of all jobs, interrupted runs included.
    pub node_hours: f64,
    /// Nodes for which every assertion of every stage passed.
    pub accepted: Vec<String>,
    /// Nodes with a named fault, sorted by name.
    pub rejected: Vec<Rejected>,
    /// Nodes neither accepted nor named, sorted by name.
    pub undecided: Vec<Undecided>,
    /// Partners that turned out not to be good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Withdrawn>,
    /// In order; without those that no node reached or no case is for.
    pub stages: Vec<StageRecord>,
    /// None where no node was soaked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<SoakRecord>,
    /// Every limit that a number was compared with, by stage and case.
    pub limits: Vec<Limit>,
    /// What each new node's numbers were compared with; nodes that are alike in that are folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged_by: Vec<NodesJudged>,
    /// What the preflight read, then the versions that jobs reported.
    pub stack: Vec<StackPart>,
    /// Which hardware each new node is, by its preflight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<NodeHardware>,
    /// A line for each case that was skipped on nodes without its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
    /// A line for each stage, fact or accepted baseline that is lacking.
    pub not_measured: Vec<String>,
}

/// What a node is made of; what its probe did not read is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeHardware {
    /// Its name in the inventory.
    pub node: String,
    /// The instance id, else the serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The UUID and the serial number of each: `gpu0 GPU-... 1650123456789`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// The GUID and the PCI address of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<String>,
}

/// A node with a named fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// Its name in the inventory.
    pub node: String,
    /// The stage that rejected it: `pairs`.
    pub stage: String,
    /// What names it.
    pub culprits: Vec<Coded>,
    /// The assertions that did not pass for it, a few of them.
    pub assertions: Vec<String>,
    /// The run that shows it; none for the preflight, whose `probe.json` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Seconds of the soak after which it shows, where a soak rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soaked_s: Option<u64>,
}

/// How long nodes were loaded, and what a soak of that length can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakRecord {
    /// Seconds of load that were to be put on each node.
    pub planned_s: u64,
    /// Seconds of one window, which is judged when it ends.
    pub window_s: u64,
    /// Windows that were planned.
    pub windows: u32,
    /// Windows that were run and judged.
    pub judged: u32,
    /// Nodes that passed all planned windows, folded.
    pub completed: String,
    /// The fewest windows in which a slow growth can be named; with fewer none was.
    pub fewest_for_growth: u32,
    /// The chance, at most, that a slow growth is named anywhere among nodes without one.
    pub false_alarm: f64,
}

/// What is wrong, by a code that `harness explain` knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coded {
    /// `HRN-NIC-SLOW`.
    pub code: String,
    /// What to do: `replace`, `reboot`, `reset`, `configure` or `watch`.
    pub severity: String,
    /// A device, `gpuN`, `nvlink` or `node`.
    pub part: String,
    /// The measurement that names it, in a sentence.
    pub evidence: String,
}

/// A node that is neither accepted nor named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    /// Its name in the inventory.
    pub node: String,
    /// The stage after which it took no further part: `groups`.
    pub stage: String,
    /// What was not measured, or failed without a culprit.
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

/// A partner that is no longer used as known to be good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// Its name in the inventory.
    pub node: String,
    /// The stage that showed it: `pairs`.
    pub stage: String,
    /// What was found: a fault, a failed probe, or nodes that fail only with it.
    pub why: String,
}

/// One stage of the delivery with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// `preflight`, `single node`, `soak`, `pairs`, `groups` or `all`.
    pub name: String,
    /// The nodes that came into it, folded.
    pub entered: String,
    /// The nodes that are still candidates after it, folded.
    pub passed: String,
    /// By run id, interrupted ones included; the preflight has none.
    pub runs: Vec<RunOfStage>,
    /// Measured, of all its runs.
    pub node_hours: f64,
}

/// A run of a stage, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOfStage {
    /// Its id, which is its folder below `runs`.
    pub run: String,
    /// What it was for: `each node by itself`.
    pub about: String,
    /// Nodes of its plan, folded.
    pub nodes: String,
    /// Planned jobs of all its cases.
    pub jobs: usize,
    /// Measured: nodes times seconds of its jobs.
    pub node_hours: f64,
    /// By the estimates of its jobs.
    pub planned_node_hours: f64,
    /// How long it was to take.
    pub planned_s: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How many numbers of a node, and of what it ran in, were compared with what.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodesJudged {
    /// New nodes with the same counts, folded.
    pub nodes: String,
    /// With an accepted baseline.
    pub accepted_baseline: usize,
    /// With peers of the same run.
    pub peers: usize,
    /// As many parts as measured the same number where it was compared with the most.
    pub most_peers: usize,
    /// With a provisional baseline, or with one that could not be used.
    pub published: usize,
    /// Found below the published floor.
    pub floor: usize,
    /// Limits that the suite states: of the hardware, or of correctness.
    pub limit: usize,
    /// Measured, with nothing to compare them with.
    pub unjudged: usize,
}

/// One limit and all numbers compared with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// `single node`, `soak`, `pairs`, `groups` or `all`.
    pub stage: String,
    /// The case's name.
    pub case: String,
    /// The metric with its size, as the suite's assertion is called.
    pub what: String,
    /// Of the observed numbers.
    pub unit: Unit,
    /// For people: `at least 11.00 GB/s`.
    pub limit: String,
    /// `stated` in the suite, `peers`, or the state of the baseline: `accepted`, `provisional`, `expired`, `none`.
    pub state: String,
    /// `the suite`, `its peers in the same run`, or the baseline's key and source.
    pub source: String,
    /// How many numbers made the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// How much one number of the baseline varies, as a fraction of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// The software that the baseline is of, where it says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// Over all runs of the stage.
    pub observed: Observed,
    /// Verdicts that are a pass.
    pub passed: usize,
    /// Verdicts that are a failure or an unexpected pass.
    pub failed: usize,
    /// Neither: not measured, or inconclusive.
    pub open: usize,
}

/// The numbers compared with a limit; none where none was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// How many finite numbers.
    pub n: usize,
    /// Smallest number, in the limit's unit.
    pub least: Option<f64>,
    /// Mean of the middle two where `n` is even.
    pub median: Option<f64>,
    /// Largest number, in the limit's unit.
    pub most: Option<f64>,
    /// The median distance from the median, as a fraction of it.
    pub spread: Option<f64>,
}

/// One thing that nodes were made of, and which of them had which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackPart {
    /// A probed fact (`driver`), or `nccl, by its jobs`.
    pub part: String,
    /// The fact's value, or the version.
    pub value: String,
    /// Which nodes have it, folded.
    pub nodes: String,
}
