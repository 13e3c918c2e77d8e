//! What is stored of a bisection: in the folder of each of its runs, so that it can be resumed.

use model::artefact::Format;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The name of `BisectionRecord` in the folder of a run.
pub const RECORD: &str = "bisection.json";

/// What one run of a bisection was for. What it measured is in the run itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectionRecord {
    /// Version of this layout.
    pub format: Format<1>,
    /// Its first run, by which all of them are known.
    pub first: String,
    /// Counted from 1.
    pub number: usize,
    /// The pair that it belongs to, counted from 1.
    pub pair: usize,
    /// What was run.
    pub stack: RunStack,
    /// The same in all of its runs.
    pub scope: BisectionScope,
    /// Of the last run, once the bisection has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<BisectionOutcome>,
}

/// The stack of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStack {
    /// Number of the stack in `scope.stacks`.
    Ordered(usize),
    /// The good stack, compared with `Alone`.
    Control,
    /// The good stack with the one setting that was found.
    Alone,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectionScope {
    /// By name, or by path as given on the command line.
    pub suite: String,
    /// By name, or by path as given on the command line.
    pub inventory: String,
    /// The case that is run.
    pub case: String,
    /// The metric that is compared.
    pub metric: String,
    /// All runs take place on these.
    pub nodes: Vec<String>,
    /// From the good one to the bad one, each by its settings.
    pub stacks: Vec<Vec<String>>,
    /// Neighbours differ in one setting alone, in an order that means nothing.
    pub by_setting: bool,
    /// At most so many pairs of runs.
    pub pairs: usize,
    /// Node-hours of all runs; `None` for no limit.
    pub budget: Option<f64>,
    /// From `--seed`; each run derives its own from it.
    pub seed: u64,
    /// The Slurm reservation to run in, which overrides the inventory's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Runs of the good and of the bad stack that were there before, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierRun>,
}

/// A run that was made before the bisection, with the same jobs as one of its two ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// Its id.
    pub run: String,
    /// Number of the stack in `scope.stacks`: the first or the last.
    pub stack: usize,
    /// Logarithm of what it measured; more is better.
    pub value: f64,
    /// What it reported of its software.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, BTreeSet<String>>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectionOutcome {
    /// As it was printed.
    pub text: String,
    /// As of the command.
    pub exit_code: i32,
    /// The settings that explain the step, where they were found.
    pub settings: Vec<String>,
    /// Pairs of runs.
    pub pairs: usize,
    /// Of all runs.
    pub node_hours: f64,
}
