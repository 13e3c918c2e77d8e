//! The artefacts of a run as a whole: how it went, and what it came to. The results of each case are in files of their
//! own.

use super::{CaseEnd, CommonFailure, Coverage, Culprit, Format, Isolated, LeftOut};
use metric::finding::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `run.json`: how the run went; written when it begins, and again when it is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this layout.
    pub format: Format<1>,
    /// Simulated time where the run is simulated.
    pub started: String,
    /// Nothing while it goes on, and where its process was ended.
    pub ended: Option<String>,
    /// Wall time, to the millisecond; `None` as for `ended`.
    pub seconds: Option<f64>,
    /// Why it stopped before its end, if it did.
    pub stopped: Option<String>,
    /// The exit code that goes with the signal that stopped it.
    pub signal_exit_code: Option<i32>,
    /// What it wrote for its verdicts, by which files of another run are found; `None` as for `ended`, and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefacts: Option<RunArtefacts>,
}

/// The artefacts of a run, as they were when it was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunArtefacts {
    /// Also the name of the run's folder.
    pub run_id: String,
    /// Each by its path in the run's folder, in hex.
    pub sha256: BTreeMap<String, String>,
}

/// The version of `summary.json`.
pub type SummaryFormat = Format<1>;

/// `summary.json`: the run in one small file. Within a format, fields are added; one that is renamed is
/// read under its older name, too, and stands in CHANGELOG.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this layout.
    pub format: SummaryFormat,
    /// Also the name of the run's folder.
    pub run_id: String,
    /// The run that this one was made from, as in the plan.
    pub parent: Option<String>,
    /// Version of the harness that made the plan: `0.1.0`.
    pub harness: String,
    /// Nothing in this run was measured on real hardware.
    pub simulated: bool,
    /// The same in words, for whoever reads the file and not the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Stems of the suites' files.
    pub suites: Vec<String>,
    /// Stem of the inventory's file.
    pub inventory: String,
    /// Instance type of the inventory: `p5`.
    pub instance: String,
    /// Selected nodes, folded: `p5-[001-004]`.
    pub nodes: String,
    /// Those of them that nothing was launched on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// `--seed`: of the simulated cluster's noise and clock.
    pub seed: u64,
    /// When the run began; simulated time where it is simulated.
    pub started: String,
    /// When the run ended; as `started` where that is unknown.
    pub ended: String,
    /// Wall time; 0 where it is unknown.
    pub seconds: f64,
    /// Why the run stopped before its end, if it did.
    pub interrupted: Option<String>,
    /// What the process exited with; meanings are in `exit_code`.
    pub exit_code: i32,
    /// What an earlier run failed or left inconclusive, and this one has not shown either.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "owed")]
    pub pending: Vec<String>,
    /// Verdicts of all cases.
    pub counts: Counts,
    /// Of all cases together; what several cover counts once.
    pub coverage: Coverage,
    /// Empty where `exit_code` is 0 or 5.
    pub culprits: Vec<Culprit>,
    /// The launcher, the image or the tool is broken: what the run was ended for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_failure: Option<CommonFailure>,
    /// What was found by further runs, since a suite wanted it so where it is red.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolations: Vec<Isolated>,
    /// In the plan's order, those that were judged.
    pub cases: Vec<CaseSummary>,
}

/// How many verdicts there are of each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All verdicts, whatever their status.
    pub total: u32,
    /// Provisional passes included.
    pub pass: u32,
    /// Of the passes: those judged by a provisional baseline.
    pub provisional: u32,
    /// Measured, and out of bounds.
    pub fail: u32,
    /// Not measured, or not decided.
    pub inconclusive: u32,
    /// The job or the machinery failed.
    pub error: u32,
    /// Not run, or only reported.
    pub skipped: u32,
    /// Failed in a case with `expected_failure`.
    pub expected_failure: u32,
    /// All passed in a case with `expected_failure`; the run fails.
    pub unexpected_pass: u32,
    /// Measured, with nothing to compare them with.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unjudged: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A case in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    /// Stem of the suite's file.
    pub suite: String,
    /// The case's name.
    pub name: String,
    /// The worst of its verdicts.
    pub end: CaseEnd,
    /// The end that the suite requires; the terminal report compares `end` with it.
    pub must_end: Option<CaseEnd>,
    /// Wall time of its longest job.
    pub seconds: f64,
    /// Its own verdicts.
    pub counts: Counts,
    /// Of this case alone.
    pub coverage: Coverage,
    /// As in the case's `verdict.json`.
    pub findings: Vec<Finding>,
}
