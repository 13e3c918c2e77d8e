//! What was found in the files of a case, and what came of its assertions.

use super::{CaseEnd, CommonFailure, Culprit, Format};
use metric::finding::Finding;
use metric::lacks::{Absent, Contradiction, NotComparable};
use metric::unit::Unit;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// `cases/<case>/analysis.json`, beside `metrics.parquet`: what the recipes found that is no number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Version of this layout.
    pub format: Format<1>,
    /// By job name; without jobs that were not run or left out.
    pub jobs: BTreeMap<String, JobAnalysis>,
}

/// What recipes and the launcher found about one job, beside metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobAnalysis {
    /// The workload's own account of why it did not end well, first cause first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<WorkloadFailure>,
    /// Why the numbers of this job say nothing, though they stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<NotComparable>,
    /// Numbers that another account of the same thing contradicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Contradiction>,
    /// Numbers that a node cannot give, since what they are read from came with a later release of its software.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// What the workload said of the software it ran on: by name, each version seen.
    #[serde(default)]
    pub versions: BTreeMap<String, BTreeSet<String>>,
    /// The workload said itself that its data were wrong; its exit code is then no failure of the machinery.
    pub data_wrong: bool,
    /// Of its recipes, its launcher, and its missing or changed files.
    pub findings: Vec<Finding>,
    /// Of a job that did not end well: what its tools said last, without the launcher's word on their exit codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
}

/// Why a workload failed, by its own output or stderr.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadFailure {
    /// A short code: `rank-died`, `disk-full`, `NODE_FAIL`.
    pub cause: String,
    /// The node that the output names; `None` where it names none or all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What its output says, for messages.
    pub evidence: String,
}

/// `cases/<case>/verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseVerdict {
    /// Version of this layout.
    pub format: Format<1>,
    /// Stem of the suite's file.
    pub suite: String,
    /// The case's name.
    pub case: String,
    /// The worst of `verdicts`.
    pub end: CaseEnd,
    /// Wall time of its longest job.
    pub seconds: f64,
    /// Something that came home says that nothing real made it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Nodes, ranks, NICs and sizes measured in this case.
    pub coverage: Coverage,
    /// What the workloads said of the software they ran on. More than one version of a thing is worth a look.
    #[serde(default)]
    pub versions: BTreeMap<String, BTreeSet<String>>,
    /// In the order of the planned assertions, one for each.
    pub verdicts: Vec<Verdict>,
    /// Of all its jobs, and of warnings.
    pub findings: Vec<Finding>,
    /// Parts that this case's measurements name by themselves.
    pub culprits: Vec<Culprit>,
    /// All its jobs failed in the same way: no node is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_failure: Option<CommonFailure>,
}

/// What an assertion came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Measured, and within all bounds.
    Pass,
    /// Measured, and out of bounds.
    Fail,
    /// A number is missing, or what it was compared with allows no decision.
    Inconclusive,
    /// The job or the machinery failed: nothing was judged.
    Error,
    /// Its case was not run, or it only reports.
    Skipped,
    /// Failed, in a case with `expected_failure`.
    ExpectedFailure,
    /// Passed with all others of a case with `expected_failure`: counts as failed.
    UnexpectedPass,
    /// Measured, and there is nothing to compare it with: no baseline, no peers, no bound.
    Unjudged,
}

impl Status {
    /// Whether a run with such a verdict can not exit 0.
    pub fn is_red(self) -> bool {
        match self {
            Status::Fail | Status::UnexpectedPass | Status::Inconclusive | Status::Error => true,
            Status::Pass | Status::Skipped | Status::ExpectedFailure | Status::Unjudged => false,
        }
    }

    /// In the order of the declaration.
    pub const ALL: [Status; 8] = [
        Status::Pass,
        Status::Fail,
        Status::Inconclusive,
        Status::Error,
        Status::Skipped,
        Status::ExpectedFailure,
        Status::UnexpectedPass,
        Status::Unjudged,
    ];

    /// As people read it: `expected failure`; artefacts have `expected-failure`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Inconclusive => "inconclusive",
            Status::Error => "error",
            Status::Skipped => "skipped",
            Status::ExpectedFailure => "expected failure",
            Status::UnexpectedPass => "unexpected pass",
            Status::Unjudged => "unjudged",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one planned assertion came to, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The planned assertion's name.
    pub name: String,
    /// With warnings and the case's `expected_failure` applied.
    pub status: Status,
    /// Compared with a provisional baseline.
    pub provisional: bool,
    /// As a recipe declares it: `nccl.busbw`.
    pub metric: String,
    /// Of `observed`, `runs`, `lower` and `upper`.
    pub unit: Unit,
    /// The worst of its numbers; the first where nothing could be compared.
    pub observed: Option<f64>,
    /// The numbers of its independent runs, in their order, where there were several: the one observed is their median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<f64>,
    /// The rate of each NIC in its slower direction, by its device, where it is about all NICs of a node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nics: BTreeMap<String, f64>,
    /// Least value allowed; `None` where no lower bound was applied.
    pub lower: Option<f64>,
    /// Greatest value allowed; `None` where no upper bound was applied.
    pub upper: Option<f64>,
    /// How many numbers were measured.
    pub n: u32,
    /// How many numbers must be measured, at least 1.
    pub n_expected: u32,
    /// Key, n, median and source of the baseline it was compared with.
    pub baseline: Option<String>,
    /// One sentence: what was expected, what was seen, on what.
    pub message: String,
    /// What to try next; for anything but a pass.
    pub next: Option<String>,
    /// At most four files, or else the folders of its jobs.
    pub evidence: Vec<Evidence>,
    /// The nodes that it is about, folded: `p5-[001-004]`.
    pub nodes: String,
    /// Where it is about one node.
    pub node: Option<String>,
    /// `gpuN` or a device, where it is about one.
    pub part: Option<String>,
    /// The cause in a word, where nothing was measured.
    pub cause: Option<String>,
    /// What decided, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgedBy>,
    /// Wall time of the longest job that it reads.
    pub seconds: f64,
}

impl Verdict {
    /// Whether all that it is about was measured. A broken measurement is none, nor is one of some parts only.
    pub fn is_measured(&self) -> bool {
        let is_possible = self.cause.as_deref() != Some("above-ceiling");
        let is_judged = !matches!(self.status, Status::Error | Status::Skipped);
        is_possible && is_judged && self.n > 0 && self.n >= self.n_expected
    }
}

/// The cause of a failure that all peers share: it names no culprit.
pub const BELOW_FLOOR: &str = "below-floor";

/// What a number was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    /// A limit that the suite states: of the hardware, or of correctness.
    Limit,
    /// Bounds of a baseline that was reviewed: outside them it fails.
    AcceptedBaseline,
    /// So many parts measured the same number in the run, this one among them.
    Peers {
        /// Parts compared, this one included; fewer than 4 cannot name one.
        of: u32,
    },
    /// A published figure: within it is a provisional pass.
    Published,
    /// What no published system of that kind is below.
    Floor,
}

/// Where to look, relative to the run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `cases/nics/raw/p5-001-p5-002/stdout`, or a job's folder.
    pub file: String,
    /// Counted from 1; `None` where the whole file is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// What was measured of what was to be measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Nodes of planned jobs; measured where a job of theirs has a number.
    pub nodes: Share,
    /// GPUs of nodes with planned nccl-tests jobs; a node's GPUs count together.
    pub ranks: Share,
    /// NICs of nodes whose counters or flows are read.
    pub nics: Share,
    /// Message sizes of nccl-tests sweeps.
    pub sizes: Share,
}

/// Shown as `3/4`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// How many of the expected ones have a number.
    pub measured: u32,
    /// How many the plan covers; 0 where the question does not arise.
    pub expected: u32,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.measured, self.expected)
    }
}

/// Jobs whose files are not what came home, and why: nothing is read of them.
pub type Unfit = BTreeMap<String, NotComparable>;
