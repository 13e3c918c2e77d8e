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
mod evidence;
mod format;
mod isolation;
mod jobs;
mod launcher;
mod not_installed;
mod outcome;
mod plan;
mod probed;
mod properties;
mod run_cluster;
mod run_files;
mod verdict;
mod workload;

pub use analyses::{Analyses, AnalysisPlace};
pub use bound::{BaselineNumbers, PackHelp, PlannedBaseline, PlannedBound, PlannedSpread};
pub use common_failure::CommonFailure;
pub use control_run::{AGAIN, ControlRun};
pub use culprit::Culprit;
pub use ended::{
    CONTAINER_FAILED, CREDENTIAL_EXPIRED, DISK_FULL, DISK_QUOTA, Ended, LEFT_OUT, MPI_REFUSED, NOT_RUN,
    STEP_NOT_STARTED, TOOL_MISSING,
};
pub use evidence::{EvidenceSource, PlannedEvidence};
pub use format::{Format, is_newer};
pub use isolation::{Isolated, IsolationCost, PlannedIsolation};
pub use jobs::{
    Blamed, CaseEnd, CaseJobs, Change, ChangedFile, Collected, CollectedFile, JobRecord, KeptReports,
    MissingFile,
};
pub use launcher::{FolderAccess, Launcher, LauncherFacts, Queue, ScriptRuns};
pub use not_installed::{HOST_ENGINE, NotInstalled, SLURM_GPUS, absence, remedy};
pub use outcome::{Bad, CaseOutcomes, CoverageSets, JobOutcome, WorkKind};
pub use plan::{
    ExpectedFile, FileKind, InstanceFacts, NAMES_UNKNOWN, Plan, PlanFormat, PlannedAllocation,
    PlannedAssertion, PlannedCase, PlannedFile, PlannedJob, PlannedNetwork, PlannedPlace, PlannedProfile,
    PlannedRecipe, PlannedSecret, PlannedTurn, ProfiledRank, Source,
};
pub use probed::{ClockOffset, LeftOut, Probe, ProbedNode, Value};
pub use properties::{JOB_PROPERTIES, JobProperties, JobProperty};
pub use run_cluster::{RunCluster, kubectl_command, named_server, plain_server, server_of_pod};
pub use run_files::{CaseSummary, Counts, RunArtefacts, RunRecord, Summary, SummaryFormat};
pub use verdict::{
    Analysis, BELOW_FLOOR, CaseVerdict, Coverage, Evidence, JobAnalysis, JudgedBy, Share, Status, Unfit,
    Verdict, WorkloadFailure,
};
pub use workload::{WorkloadFacts, WorkloadTraits};

/// The cause of a job whose files ended a recipe by a panic.
pub const INTERNAL_ERROR: &str = "internal-error";
