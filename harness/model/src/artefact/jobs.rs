//! How jobs ended, and what was collected of them.

use super::{Ended, FileKind, Format};
use metric::finding::Finding;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a case ends as a whole: the worst of its verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseEnd {
    /// A verdict is `Fail` or `UnexpectedPass`.
    Fail,
    /// A verdict is `Error`, and none is a failure.
    Error,
    /// A verdict is `Inconclusive`, or there are none but unjudged ones.
    Inconclusive,
    /// At least one passed; the rest are skipped or unjudged.
    Pass,
    /// A failure was expected, or some are skipped and none passed.
    Skipped,
}

impl CaseEnd {
    /// As in artefacts and suites: `inconclusive`.
    pub fn name(self) -> &'static str {
        match self {
            CaseEnd::Fail => "fail",
            CaseEnd::Error => "error",
            CaseEnd::Inconclusive => "inconclusive",
            CaseEnd::Pass => "pass",
            CaseEnd::Skipped => "skipped",
        }
    }

    /// Every value that `must_end` of a suite may have.
    pub const ALL: [CaseEnd; 5] =
        [CaseEnd::Fail, CaseEnd::Error, CaseEnd::Inconclusive, CaseEnd::Pass, CaseEnd::Skipped];
}

impl fmt::Display for CaseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `cases/<case>/job.json`: what became of each job of the case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseJobs {
    /// Version of this layout.
    pub format: Format<1>,
    /// The case was not launched at all, and why: a precondition, or a dependency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// One per job, without second attempts that were not needed.
    pub jobs: Vec<JobRecord>,
}

/// How one job went, by the launcher and the harness's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// As in the plan.
    pub name: String,
    /// How the launcher knows the job: a Slurm job id, a process group, its folder.
    pub handle: Option<String>,
    /// UTC, ISO 8601; `None` where it was never handed over.
    pub submitted: Option<String>,
    /// UTC, ISO 8601; `None` where it never began to run.
    pub started: Option<String>,
    /// When its end was observed: UTC, ISO 8601; `None` where it was never launched.
    pub ended: Option<String>,
    /// From start, or else submission, to end; `None` where either is missing.
    pub seconds: Option<f64>,
    /// How it ended, or why it was not launched.
    pub end: Ended,
    /// What the launcher said of a node, first thing first.
    pub blamed: Option<Blamed>,
    /// What it saw beside that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// A node that the launcher, a probe or the sampler itself named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// The node's name in the inventory.
    pub node: String,
    /// What the launcher or probe reported about it.
    pub evidence: String,
}

/// `cases/<case>/collected.json`: what lies in `raw/`, and what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    /// Version of this layout.
    pub format: Format<1>,
    /// Files that lie in `raw/`, job by job.
    pub files: Vec<CollectedFile>,
    /// Expected and required files that are absent or empty, and refused ones.
    pub missing: Vec<MissingFile>,
    /// Files that were changed by hand after they had come home, and were accepted so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
    /// Files that say themselves that nothing real made them, though the inventory is a real one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<String>,
}

/// What somebody did to a file of `raw/`, by which its numbers are no longer those of the run alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Name of the job whose file it is.
    pub job: String,
    /// Relative to the case's folder.
    pub path: String,
    /// Against the digests that were recorded when it was collected.
    pub how: Change,
}

/// How a file of `raw/` differs from what was collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It lies there, and was not collected before.
    Added,
    /// Its digest is another.
    Edited,
    /// It was collected, and is no longer there.
    Gone,
}

/// A file that lies in `raw/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectedFile {
    /// Name of the job that left it.
    pub job: String,
    /// Relative to the case's folder.
    pub path: String,
    /// How it is read.
    pub kind: FileKind,
    /// The node that it is from; `None` where it is of the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The GPU (`gpu3`) or device that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The profiled rank that it is of; `None` for all other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Of what lies there.
    pub bytes: u64,
    /// Of what lies there, in hex, without the secrets.
    pub sha256: String,
    /// Secrets that were taken out before it came to lie there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An expected file that could not be collected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingFile {
    /// Name of the job that should have left it.
    pub job: String,
    /// In the job's folder, as planned.
    pub name: String,
    /// As planned.
    pub kind: FileKind,
    /// The node that it would be from; `None` where it is of the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The GPU (`gpu3`) or device that it would be about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The profiled rank that it would be of; `None` for all other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// `empty`, why the job never ran, or the error of the fetch.
    pub why: String,
    /// It lies there, and was not taken: a link, a device, too large, or it cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// `cases/<case>/reports.json`: the reports that were brought home whole, once the case was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptReports {
    /// Version of this layout.
    pub format: Format<1>,
    /// Complete reports that lie in `raw/` now.
    pub files: Vec<CollectedFile>,
    /// Reports that the suite keeps and that could not be fetched.
    pub missing: Vec<MissingFile>,
    /// What was removed on the nodes, since it is no longer needed.
    pub removed: Vec<String>,
}
