//! The artefacts of a run as a whole: how it went, and what it came to. The results of each case are in files of their
//! own.

use super::{CaseEnd, CommonFailure, Coverage, Culprit, Isolated, LeftOut};
use metric::finding::Finding;
use serde::{Deserialize, Serialize};

/// `run.json`: how the run went; written when it begins, and again when it is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub format: u32,
    /// Simulated time where the run is simulated.
    pub started: String,
    /// Nothing while it goes on, and where its process was ended.
    pub ended: Option<String>,
    pub seconds: Option<f64>,
    /// Why it stopped before its end, if it did.
    pub stopped: Option<String>,
    /// The exit code that goes with the signal that stopped it.
    pub signal_exit_code: Option<i32>,
}

/// `summary.json`: the run in one small file. Within a format, fields are added; one that is renamed is
/// read under its older name, too, and stands in CHANGELOG.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub format: u32,
    pub run_id: String,
    pub parent: Option<String>,
    pub harness: String,
    /// Nothing in this run was measured on real hardware.
    pub simulated: bool,
    /// The same in words, for whoever reads the file and not the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub suites: Vec<String>,
    pub inventory: String,
    pub instance: String,
    pub nodes: String,
    /// Those of them that nothing was launched on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    pub seed: u64,
    /// When the run began; simulated time where it is simulated.
    pub started: String,
    pub ended: String,
    pub seconds: f64,
    /// Why the run stopped before its end, if it did.
    pub interrupted: Option<String>,
    pub exit_code: i32,
    /// What an earlier run failed or left inconclusive, and this one has not shown either.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "owed")]
    pub pending: Vec<String>,
    pub counts: Counts,
    pub coverage: Coverage,
    pub culprits: Vec<Culprit>,
    /// The launcher, the image or the tool is broken: what the run was ended for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_failure: Option<CommonFailure>,
    /// What was found by further runs, since a suite wanted it so where it is red.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolations: Vec<Isolated>,
    pub cases: Vec<CaseSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub total: u32,
    pub pass: u32,
    /// Of the passes: those judged by a provisional baseline.
    pub provisional: u32,
    pub fail: u32,
    pub inconclusive: u32,
    pub error: u32,
    pub skipped: u32,
    pub expected_failure: u32,
    pub unexpected_pass: u32,
    /// Measured, with nothing to compare them with.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unjudged: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    pub suite: String,
    pub name: String,
    pub end: CaseEnd,
    pub must_end: Option<CaseEnd>,
    pub seconds: f64,
    pub counts: Counts,
    pub coverage: Coverage,
    pub findings: Vec<Finding>,
}
