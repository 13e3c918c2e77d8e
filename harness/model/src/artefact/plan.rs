//! The plan of a run: what is launched where, and what is asserted of it. No choice is left open in it.

use super::{
    CaseEnd, ControlRun, Format, JobProperties, Launcher, LeftOut, NotInstalled, PlannedBound,
    PlannedEvidence, PlannedIsolation, WorkloadFacts,
};
use job::profile::{Keep, NsysVersion};
use job::window::PlannedWindow;
use metric::Dims;
use metric::unit::{Better, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of `plan.json`.
pub type PlanFormat = Format<1>;

/// `plan.json`: everything decided before anything is launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this layout.
    pub format: PlanFormat,
    /// Version of the harness that made the plan: `0.1.0`.
    pub harness: String,
    /// Also the name of the run's folder: `20261121T031000Z-nccl-p5-3f9c`.
    pub run_id: String,
    /// The run that this one was made from: gone through again from a later stage, or run again in part.
    pub parent: Option<String>,
    /// The stage at which this run began, where it launched nothing: the parent's jobs are not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_from: Option<String>,
    /// What the parent failed or left inconclusive: pending until a run shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "owed")]
    pub pending: Vec<String>,
    /// Whether the inventory is a simulated one.
    pub simulated: bool,
    /// `--seed`: of the simulated cluster's noise and clock.
    pub seed: u64,
    /// What was read to make this plan, with digests.
    pub sources: Vec<Source>,
    /// Stem of the inventory's file: `default`.
    pub inventory: String,
    /// Stems of the suites' files, in the order given.
    pub suites: Vec<String>,
    /// From the profile of the inventory's instance type.
    pub instance: InstanceFacts,
    /// By the inventory's `reach`.
    pub launcher: Launcher,
    /// The folder that all nodes see, with this run's folder below it.
    pub folder: String,
    /// The selected nodes in the inventory's order, with those that are left out.
    pub nodes: Vec<String>,
    /// Where they hang in the network, where ranks are numbered along it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<PlannedNetwork>,
    /// Those of them that nothing is launched on, since a probe showed that nothing on them can pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// `--set`, as given.
    pub settings: BTreeMap<String, String>,
    /// Faults of the simulated cluster, for the whole run.
    pub sim_faults: Vec<String>,
    /// `--timeout`: seconds after which the run stops launching and ends its jobs.
    pub limit_s: Option<u64>,
    /// `--max-fail`: nothing more is launched once this many assertions failed.
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
    /// Where the run is published when it has ended, below its id: `[publish]` of the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<String>,
    /// Jobs on the same nodes that share an allocation of Slurm. A job that is in none has one of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<PlannedAllocation>,
    /// Recipes that users wrote, whole: the plan needs no file of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<PlannedRecipe>,
    /// One per suite whose `on_failure` is to isolate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolations: Vec<PlannedIsolation>,
    /// Suite by suite, the skipped ones included.
    pub cases: Vec<PlannedCase>,
}

impl Plan {
    /// The estimate of all jobs, each on all its nodes.
    pub fn node_seconds(&self) -> f64 {
        let jobs = self.cases.iter().flat_map(|case| &case.jobs);
        jobs.map(|job| job.estimate_s as f64 * job.nodes.len() as f64).sum()
    }
}

/// The network of a run's nodes, as ranks are ordered by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNetwork {
    /// Who reported it: `Slurm` or `EC2`.
    pub source: String,
    /// The file of the report, as the inventory names it.
    pub file: String,
    /// In the order of ranks.
    pub places: Vec<PlannedPlace>,
}

/// A node's place in the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPlace {
    /// As in `nodes` of the plan.
    pub node: String,
    /// Switches, blocks or network nodes, from the top down.
    pub switches: Vec<String>,
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
    /// Name of the case in the plan.
    pub case: String,
    /// Name of the job in that case.
    pub job: String,
    /// What is kept for it: its own time limit, and what it may take to end.
    pub limit_s: u64,
}

/// A recipe that a user wrote, as it was when the run was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRecipe {
    /// As in the `recipes` of a case.
    pub name: String,
    /// The file that it was read from, for messages.
    pub file: String,
    /// Of `text`, in hex; a plan whose recipe does not match it is refused.
    pub sha256: String,
    /// The TOML of the whole file.
    pub text: String,
}

/// A suite, inventory, instance profile or baseline file that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Relative to the project's folder; the bare file name for files from elsewhere.
    pub file: String,
    /// Of the file's text, in hex.
    pub sha256: String,
}

/// What the later stages need to know of the instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceFacts {
    /// `p5`, or `sim-p5` where it is simulated.
    pub name: String,
    /// GPUs of each node.
    pub gpus: u32,
    /// Device names on each node in natural order: `rdmap79s0`.
    pub nics: Vec<String>,
    /// Of one NIC in one direction, in GB/s.
    pub nic_line_rate_gb_s: f64,
    /// EFA counters that grow with data leaving the node: `rdma_write_bytes`.
    pub tx_counters: Vec<String>,
    /// EFA counters that grow with data arriving at the node.
    pub rx_counters: Vec<String>,
    /// Whether the conservation law of the counters has been shown on this instance.
    pub conservation_shown: bool,
}

/// How the reason begins why a case is not run whose devices have no names yet.
pub const NAMES_UNKNOWN: &str = "device names of ";

/// A case of a suite with all its jobs and assertions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// Stem of the suite's file: `nccl-p5`.
    pub suite: String,
    /// Unique in the run: the case's folder is called so.
    pub name: String,
    /// What the case is for, as in the suite.
    pub about: String,
    /// As in the suite; kept for readers of the plan.
    pub tags: Vec<String>,
    /// What recipes and `judge` need to know of the workload.
    pub workload: WorkloadFacts,
    /// Recipes that read the jobs' files, by name: `efa_traffic`.
    pub recipes: Vec<String>,
    /// Cases that must have passed before this one is launched.
    pub after: Vec<String>,
    /// Why this case is not run at all: a precondition that does not hold.
    pub skip: Option<String>,
    /// What some of its nodes do not have, for which their jobs are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_installed: Option<NotInstalled>,
    /// Why the suite expects a failure; a failed verdict then becomes `ExpectedFailure`.
    pub expected_failure: Option<String>,
    /// The end that the suite requires of a case that goes red on purpose.
    pub must_end: Option<CaseEnd>,
    /// Faults that the simulated cluster has in this case alone: `p5-002:hang`.
    pub sim_faults: Vec<String>,
    /// What it asks of each of its jobs.
    #[serde(flatten)]
    pub properties: JobProperties,
    /// Control runs and second attempts included; empty where the case is skipped.
    pub jobs: Vec<PlannedJob>,
    /// One verdict each; named also where the case is skipped.
    pub assertions: Vec<PlannedAssertion>,
}

/// One launch on a fixed set of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedJob {
    /// Unique within the case, and good as a folder's name.
    pub name: String,
    /// Nodes that it runs on.
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
    /// Expected seconds where all is well; no limit is derived from it.
    pub estimate_s: u64,
    /// Seconds after which it is ended: the case's `limit_s`.
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
    /// By what its calls are recorded, where the suite names several sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<PlannedEvidence>,
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
    /// The inventory's `nsys_version`: it decides which switches are used.
    pub version: NsysVersion,
    /// The profiled ranks, with the node that each should lie on.
    pub ranks: Vec<ProfiledRank>,
    /// Seconds before the collection begins.
    pub delay_s: u64,
    /// Which complete reports are fetched once the case is judged.
    pub keep: Keep,
    /// The steps that are watched, where a window of steps was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<PlannedWindow>,
}

/// A rank that runs under nsys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledRank {
    /// In the whole job, from 0.
    pub rank: u32,
    /// The node that the rank should run on.
    pub node: String,
}

/// A file that the job needs in its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// In the job's folder: `job.sh`, `counters.sh`.
    pub name: String,
    /// The text, where it is this job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Otherwise one of the scripts that every run has, by its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A file that a job should leave, fetched by `collect`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectedFile {
    /// In the job's folder: `stdout`, `counters.p5-001.txt`.
    pub name: String,
    /// How it is read, and whether it must be there.
    pub kind: FileKind,
    /// The node that it is from; `None` where it is of the whole job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The GPU (`gpu3`) or the device that the file speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The profiled rank that it is of; `None` for all other files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// What a collected file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// What nccl-tests printed for the ranks of a job.
    NcclTests,
    /// One GPU's run of a case that runs each GPU by itself.
    GpuNcclTests,
    /// EFA counters of one node, read by the sampler.
    Counters,
    /// What one flow of a `nic-pairs` job printed.
    Flow,
    /// What a profiled rank says of its report.
    ProfileAccount,
    /// A table of a report, exported on the node.
    ProfileTable,
    /// The report itself.
    ProfileReport,
    /// Stdout of a training; that of a command is a `Log`.
    Stdout,
    /// Stderr of a job, a node or a GPU's run.
    Stderr,
    /// Chatter of the launch, fetched where it is there.
    Log,
    /// What PyTorch's flight recorder dumped of one rank; there where the job failed.
    FlightDump,
    /// What became of the request for dumps on one node; there where the job stalled.
    FlightRequest,
    /// What NCCL's RAS reports of the job, and the addresses of the node; there where the job stalled.
    Ras,
    /// What NCCL's Inspector recorded, of all ranks.
    Inspector,
    /// The state of a node's GPUs before, during and after the workload.
    GpuState,
}

impl FileKind {
    /// The metrics that are read from it; `None` for what no number is read from.
    pub fn files(self) -> Option<metric::Files> {
        match self {
            FileKind::NcclTests | FileKind::GpuNcclTests | FileKind::Stdout => Some(metric::Files::Output),
            FileKind::Counters => Some(metric::Files::Counters),
            FileKind::Flow => Some(metric::Files::Flows),
            FileKind::ProfileAccount | FileKind::ProfileTable => Some(metric::Files::Reports),
            FileKind::Inspector => Some(metric::Files::Inspector),
            FileKind::GpuState => Some(metric::Files::GpuState),
            FileKind::ProfileReport
            | FileKind::Stderr
            | FileKind::Log
            | FileKind::FlightDump
            | FileKind::FlightRequest
            | FileKind::Ras => None,
        }
    }
}

impl FileKind {
    /// Whether its absence is worth a finding; logs and stderr may well be empty or absent.
    pub fn is_required(self) -> bool {
        !matches!(self, FileKind::Stderr | FileKind::Log) && !self.is_of_failures()
    }

    /// Whether only a job that failed leaves it: of any other it is not looked for.
    pub fn is_of_failures(self) -> bool {
        matches!(self, FileKind::FlightDump | FileKind::FlightRequest | FileKind::Ras)
    }
}

/// One assertion on one subject: it will get exactly one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedAssertion {
    /// Unique and stable: `suite::case::label@subject`.
    pub name: String,
    /// As a recipe declares it: `nccl.busbw`.
    pub metric: String,
    /// Unit of the metric and of all its bounds.
    pub unit: Unit,
    /// Which direction is good; decides on which side peers bound it.
    pub better: Better,
    /// What selects the metric's rows: operation, size, direction, ...
    pub dims: Dims,
    /// The parts that must each have a number: NICs or GPUs of a node; empty where the query itself is the part.
    pub parts: Arc<[Dims]>,
    /// The jobs whose metrics it reads, by name.
    pub jobs: Vec<String>,
    /// The nodes it speaks of, folded.
    pub nodes: String,
    /// Where it is about one node; `None` where it is about all nodes of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `gpuN` or a device, where it speaks of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// What the number is compared with.
    pub bound: PlannedBound,
}
