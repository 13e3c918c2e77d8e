//! The typed files of a run, in the order of the stages that write them. Where they lie is `store.rs`'s business.
//!
//! Every artefact carries `format`, the version of its own layout; a reader refuses a newer one by name.
//! No artefact holds an absolute path of the machine that the harness runs on, nor where outputs were sent to.

pub mod acceptance;
mod analyses;
mod bound;
mod common_failure;
mod control_run;
mod culprit;
mod ended;
mod isolation;
mod outcome;
mod probed;
mod run_files;

pub use analyses::Analyses;
pub use bound::{BaselineNumbers, PlannedBaseline, PlannedBound, PlannedSpread};
pub use common_failure::CommonFailure;
pub use control_run::{AGAIN, ControlRun};
pub use culprit::Culprit;
pub use ended::{Ended, LEFT_OUT};
pub use isolation::{Isolated, IsolationCost, PlannedIsolation};
pub use outcome::{Bad, CaseOutcomes, CoverageSets, JobOutcome, WorkKind};
pub use probed::{ClockOffset, LeftOut, Probe, ProbedNode, Value};
pub use run_files::{CaseSummary, Counts, RunRecord, Summary};

use job::profile::{Keep, NsysVersion};
use job::window::PlannedWindow;
use metric::Dims;
use metric::TrainingFacts;
use metric::finding::Finding;
use metric::lacks::{Absent, Contradiction, NotComparable};
use metric::op::Op;
use metric::unit::{Better, Unit};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub const FORMAT: u32 = 1;

/// `plan.json`: everything decided before anything is launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: u32,
    pub harness: String,
    pub run_id: String,
    /// The run that this one was made from: gone through again from a later stage, or run again in part.
    pub parent: Option<String>,
    /// The stage at which this run began, where it launched nothing: the parent's jobs are not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_from: Option<String>,
    /// What the parent failed or left inconclusive: pending until a run shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "owed")]
    pub pending: Vec<String>,
    pub simulated: bool,
    pub seed: u64,
    /// What was read to make this plan, with digests.
    pub sources: Vec<Source>,
    pub inventory: String,
    pub suites: Vec<String>,
    pub instance: InstanceFacts,
    pub launcher: Launcher,
    /// The folder that all nodes see, with this run's folder below it.
    pub folder: String,
    pub nodes: Vec<String>,
    /// Those of them that nothing is launched on, since a probe showed that nothing on them can pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// `--set`, as given.
    pub settings: BTreeMap<String, String>,
    /// Faults of the simulated cluster, for the whole run.
    pub sim_faults: Vec<String>,
    pub limit_s: Option<u64>,
    pub max_fail: Option<u32>,
    /// A number with nothing to compare it with makes the run exit 3, whatever else was judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Errors count as failures for `max_fail`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub max_fail_errors: bool,
    /// Nodes that hung, were lost or crashed take part in later cases all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_bad_nodes: bool,
    /// So many jobs are in the queue or run at the same time; as many as nodes allow, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_jobs: Option<u32>,
    /// The reservation of Slurm that was asked for beside the inventory's words: what this run leaves owing is run in
    /// it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Jobs on the same nodes that share an allocation of Slurm. A job that is in none has one of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<PlannedAllocation>,
    /// Recipes that users wrote, whole: the plan needs no file of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<PlannedRecipe>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolations: Vec<PlannedIsolation>,
    pub cases: Vec<PlannedCase>,
}

/// One allocation of Slurm for several jobs, which run in it one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedAllocation {
    /// What asks for the nodes and keeps them. It measures nothing, and belongs to no case.
    #[serde(alias = "keeper")]
    pub batch_job: PlannedJob,
    /// In the plan's order: the batch job knows them by their numbers, counted from 1.
    pub jobs: Vec<PlannedTurn>,
}

/// A job's place in an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTurn {
    pub case: String,
    pub job: String,
    /// What is kept for it: its own time limit, and what it may take to end.
    pub limit_s: u64,
}

/// A recipe that a user wrote, as it was when the run was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRecipe {
    pub name: String,
    pub file: String,
    pub sha256: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Relative to the project's folder; the bare file name for files from elsewhere.
    pub file: String,
    pub sha256: String,
}

/// What the later stages need to know of the instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceFacts {
    pub name: String,
    pub gpus: u32,
    pub nics: Vec<String>,
    pub nic_line_rate_gb_s: f64,
    pub tx_counters: Vec<String>,
    pub rx_counters: Vec<String>,
    /// Whether the conservation law of the counters has been shown on this instance.
    pub conservation_shown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    Slurm,
    Ssh,
    Local,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCase {
    pub suite: String,
    pub name: String,
    pub about: String,
    pub tags: Vec<String>,
    pub workload: WorkloadFacts,
    pub recipes: Vec<String>,
    /// Cases that must have passed before this one is launched.
    pub after: Vec<String>,
    /// Why this case is not run at all: a precondition that does not hold.
    pub skip: Option<String>,
    pub expected_failure: Option<String>,
    pub must_end: Option<CaseEnd>,
    pub sim_faults: Vec<String>,
    pub limit_s: u64,
    /// A job that makes no progress for so long is ended; never, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_s: Option<u64>,
    pub queue_limit_s: u64,
    pub jobs: Vec<PlannedJob>,
    pub assertions: Vec<PlannedAssertion>,
}

/// What the readers of a job's output need to know of its workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadFacts {
    NcclTests {
        op: Op,
        sizes: Vec<u64>,
        /// Ranks of one communicator: all of the job's, or fewer where a split mask divides them, or one.
        ranks_per_communicator: Option<u32>,
        checked: bool,
        /// One single-GPU run per GPU, side by side.
        each_gpu: bool,
    },
    NicPairs {
        tool: String,
        op: String,
        /// As the case asks for it; older plans do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<job::script::FlowMemory>,
        /// Through whose memory flows go and why, as far as it was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    Command {
        program: String,
    },
    Training {
        /// The kind, as suites say it.
        program: String,
        #[serde(flatten)]
        facts: TrainingFacts,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedJob {
    /// Unique within the case, and good as a folder's name.
    pub name: String,
    pub nodes: Vec<String>,
    /// Jobs of one case run in the order of their rounds; those of one round run side by side.
    pub round: u32,
    /// Ranks declared: nodes x GPUs, or 1 per process.
    pub ranks: u32,
    /// The folder on the nodes.
    pub folder: String,
    /// What is put into that folder before the launch.
    pub files: Vec<PlannedFile>,
    /// The exact argument list of the launch.
    pub launch: Vec<String>,
    /// What the job will leave in its folder.
    pub expected: Vec<ExpectedFile>,
    pub estimate_s: u64,
    pub limit_s: u64,
    /// What it is given beside its files, and no artefact holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<PlannedSecret>,
    /// What its ranks' profilers will leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PlannedProfile>,
    /// What it is to another job of the case.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "kin")]
    pub control_run: Option<ControlRun>,
    /// The job that it is a second attempt of: launched only where the cluster itself ended that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_of: Option<String>,
}

/// A value that a job reads when it begins: that of a variable where the harness is started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedSecret {
    /// The variable of the job's script.
    pub variable: String,
    /// The variable here.
    pub from: String,
}

/// The reports that a job must leave. Each is accounted for after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedProfile {
    pub version: NsysVersion,
    /// The profiled ranks, with the node that each should lie on.
    pub ranks: Vec<ProfiledRank>,
    /// Seconds before the collection begins.
    pub delay_s: u64,
    pub keep: Keep,
    /// The steps that are watched, where a window of steps was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<PlannedWindow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledRank {
    pub rank: u32,
    pub node: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFile {
    pub name: String,
    /// The text, where it is this job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Otherwise one of the scripts that every run has, by its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectedFile {
    pub name: String,
    pub kind: FileKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The GPU (`gpu3`) or the device that the file speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    NcclTests,
    /// One GPU's run of a case that runs each GPU by itself.
    GpuNcclTests,
    Counters,
    Flow,
    /// What a profiled rank says of its report.
    ProfileAccount,
    /// A table of a report, exported on the node.
    ProfileTable,
    /// The report itself.
    ProfileReport,
    Stdout,
    Stderr,
    /// Chatter of the launch, fetched where it is there.
    Log,
}

impl FileKind {
    /// Whether its absence is worth a finding; logs and stderr may well be empty or absent.
    pub fn is_required(self) -> bool {
        !matches!(self, FileKind::Stderr | FileKind::Log)
    }
}

/// One assertion on one subject: it will get exactly one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedAssertion {
    /// Unique and stable: `suite::case::label@subject`.
    pub name: String,
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    pub dims: Dims,
    /// The parts that must each have a number: NICs or GPUs of a node; empty where the query itself is the part.
    pub parts: Arc<[Dims]>,
    /// The jobs whose metrics it reads, by name.
    pub jobs: Vec<String>,
    /// The nodes it speaks of, folded.
    pub nodes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `gpuN` or a device, where it speaks of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    pub bound: PlannedBound,
}

/// How a case ends as a whole: the worst of its verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseEnd {
    Fail,
    Error,
    Inconclusive,
    Pass,
    Skipped,
}

impl CaseEnd {
    pub fn name(self) -> &'static str {
        match self {
            CaseEnd::Fail => "fail",
            CaseEnd::Error => "error",
            CaseEnd::Inconclusive => "inconclusive",
            CaseEnd::Pass => "pass",
            CaseEnd::Skipped => "skipped",
        }
    }

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
    pub format: u32,
    /// The case was not launched at all, and why: a precondition, or a dependency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    pub jobs: Vec<JobRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    pub name: String,
    /// How the launcher knows the job: a Slurm job id, a process group, its folder.
    pub handle: Option<String>,
    pub submitted: Option<String>,
    pub started: Option<String>,
    pub ended: Option<String>,
    pub seconds: Option<f64>,
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
    pub node: String,
    pub evidence: String,
}

/// `cases/<case>/collected.json`: what lies in `raw/`, and what is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    pub format: u32,
    pub files: Vec<CollectedFile>,
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
    pub job: String,
    /// Relative to the case's folder.
    pub path: String,
    pub how: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    Added,
    Edited,
    Gone,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectedFile {
    pub job: String,
    /// Relative to the case's folder.
    pub path: String,
    pub kind: FileKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Of what lies there.
    pub bytes: u64,
    pub sha256: String,
    /// Secrets that were taken out before it came to lie there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingFile {
    pub job: String,
    pub name: String,
    pub kind: FileKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    pub why: String,
    /// It lies there, and was not taken: a link, a device, too large, or it cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// `cases/<case>/reports.json`: the reports that were brought home whole, once the case was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptReports {
    pub format: u32,
    pub files: Vec<CollectedFile>,
    pub missing: Vec<MissingFile>,
    /// What was removed on the nodes, since it is no longer needed.
    pub removed: Vec<String>,
}

/// `cases/<case>/analysis.json`, beside `metrics.parquet`: what the recipes found that is no number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    pub format: u32,
    pub jobs: BTreeMap<String, JobAnalysis>,
}

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
    pub findings: Vec<Finding>,
    /// Of a job that did not end well: what its tools said last, without the launcher's word on their exit codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadFailure {
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub evidence: String,
}

/// `cases/<case>/verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseVerdict {
    pub format: u32,
    pub suite: String,
    pub case: String,
    pub end: CaseEnd,
    pub seconds: f64,
    /// Something that came home says that nothing real made it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    pub coverage: Coverage,
    /// What the workloads said of the software they ran on. More than one version of a thing is worth a look.
    #[serde(default)]
    pub versions: BTreeMap<String, BTreeSet<String>>,
    pub verdicts: Vec<Verdict>,
    pub findings: Vec<Finding>,
    pub culprits: Vec<Culprit>,
    /// All its jobs failed in the same way: no node is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_failure: Option<CommonFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    Fail,
    Inconclusive,
    Error,
    Skipped,
    ExpectedFailure,
    UnexpectedPass,
    /// Measured, and there is nothing to compare it with: no baseline, no peers, no bound.
    Unjudged,
}

impl Status {
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The planned assertion's name.
    pub name: String,
    pub status: Status,
    /// Held against a provisional baseline.
    pub provisional: bool,
    pub metric: String,
    pub unit: Unit,
    pub observed: Option<f64>,
    /// The numbers of its independent runs, in their order, where there were several: the one observed is their median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<f64>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// How many numbers were measured.
    pub n: u32,
    pub n_expected: u32,
    pub baseline: Option<String>,
    /// One sentence: what was expected, what was seen, on what.
    pub message: String,
    /// What to try next; for anything but a pass.
    pub next: Option<String>,
    pub evidence: Vec<Evidence>,
    pub nodes: String,
    pub node: Option<String>,
    pub part: Option<String>,
    /// The cause in a word, where nothing was measured.
    pub cause: Option<String>,
    /// What decided, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgedBy>,
    pub seconds: f64,
}

/// The cause of a failure that all peers share: it names no culprit.
pub const BELOW_FLOOR: &str = "below-floor";

/// What a number was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    /// A limit that the suite states: of the hardware, or of correctness.
    Limit,
    AcceptedBaseline,
    /// So many parts measured the same number in the run, this one among them.
    Peers {
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
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// What was measured of what was to be measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub nodes: Share,
    pub ranks: Share,
    pub nics: Share,
    pub sizes: Share,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub measured: u32,
    pub expected: u32,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.measured, self.expected)
    }
}

/// Jobs whose files are not what came home, and why: nothing is read of them.
pub type Unfit = BTreeMap<String, NotComparable>;

/// The cause of a job whose files ended a recipe by a panic.
pub const INTERNAL_ERROR: &str = "internal-error";
