//! The list of recipes, and what a recipe is: a declaration, and a function from one job's files to numbers.
//! Add one by adding its file and its line in `LIST`.

pub mod breakdown;
pub mod command;
pub(crate) mod cross_checks;
pub mod cuda_gpu_kern_sum;
pub mod efa_traffic;
mod extracts;
pub mod inspector;
pub mod nccl_log;
pub mod nccl_profile;
pub mod nccl_shape;
pub mod nccl_tests;
pub mod nic_flows;
pub mod nic_rate;
mod node_tools;
pub(crate) mod nvtx_unbalanced;
pub mod of_reports;
mod rank_list;
mod ras_hang;
pub mod ring;
pub(crate) mod shared_findings;
pub mod steps;
pub mod stragglers;
#[cfg(test)]
pub(crate) mod testing;
pub mod training_log;
pub mod window;

pub use extracts::ExtractStore;
pub use node_tools::{growing, nic_latency, onset};

pub(crate) use metric::TrainingFacts;
use metric::finding::{Finding, FindingKind, Meaning};
pub(crate) use metric::lacks::{Absent, Contradiction, NotComparable};
use metric::op::Op;
use metric::{Dim, Dims, Metric, MetricSpec, Role, SweepFacts};
use nsys::tables::TableSpec;
use serde::{Deserialize, Serialize};
use shared_findings::FileFinding;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Every built-in recipe, by the name that suites use.
pub const LIST: &[RecipeSpec<'static>] = &[
    nccl_tests::SPEC,
    nccl_shape::SPEC,
    efa_traffic::SPEC,
    nic_flows::SPEC,
    command::SPEC,
    cuda_gpu_kern_sum::SPEC,
    nccl_profile::SPEC,
    breakdown::SPEC,
    steps::SPEC,
    stragglers::SPEC,
    training_log::SPEC,
    window::SPEC,
    nvtx_unbalanced::SPEC,
    cross_checks::SPEC,
    nccl_log::SPEC,
    inspector::SPEC,
    node_tools::dcgm_diag::SPEC,
    node_tools::nvbandwidth::SPEC,
    node_tools::gpu_burn::SPEC,
    node_tools::stream::SPEC,
    node_tools::stress_ng::SPEC,
    node_tools::fio::SPEC,
    node_tools::nic_latency::SPEC,
    node_tools::iperf3::SPEC,
    node_tools::gpu_allocation::SPEC,
    node_tools::gpu_state::SPEC,
];

/// The declaration of a recipe. The planner, the linter and the manual read it. A user's borrows from the catalogue that
/// it is in.
#[derive(Clone, Copy)]
pub struct RecipeSpec<'a> {
    /// As `recipes` in a suite names it: `nccl_tests`.
    pub name: &'a str,
    /// One line for lists of recipes.
    pub about: &'a str,
    /// Every metric that it may give.
    pub metrics: &'a [MetricSpec],
    /// The tables of profiler reports that it reads: a case that asserts its metrics must be profiled.
    pub tables: &'a [&'static TableSpec],
    /// Its findings and causes of failures, by who declares them; a code in none of them is a note of a reader.
    pub findings: &'static [&'static [FindingKind]],
    /// Whether it reads NCCL's log: the planner has NCCL write one.
    pub reads_nccl_log: bool,
    /// Whether it compares moments of different nodes: only then does it matter whether their clocks agree.
    pub compares_clocks: bool,
    /// Whether records of NCCL's Inspector give its metrics, or some of them, where there is no report.
    pub reads_inspector: bool,
    /// One job's files to its numbers.
    pub run: Run<'a>,
}

impl RecipeSpec<'_> {
    /// The codes of findings that explain a missing number of its metrics.
    pub fn causes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let kinds = self.findings.iter().copied().flatten();
        let is_cause = |kind: &FindingKind| matches!(kind.means, Meaning::NoNumber | Meaning::NotRecorded(_));
        kinds.filter(move |kind| is_cause(kind)).map(|kind| kind.code)
    }

    /// Whether findings of this code explain a missing number of its metrics.
    pub fn is_cause(&self, code: &str) -> bool {
        self.causes().any(|cause| cause == code)
    }
}

/// The function of a recipe: it reads the job's files, and no others.
pub(crate) type Run<'a> = &'a (dyn Fn(&JobInput) -> Output + Sync);

/// What a built-in recipe declares of a metric. Roles, limits and parts that a metric names are those of built-in metrics
/// alone: who asks for nothing else needs no catalogue.
pub fn built_in(name: &str) -> Option<&'static MetricSpec> {
    LIST.iter().flat_map(|recipe| recipe.metrics).find(|metric| metric.name == name)
}

/// The built-in metric that has the role; it is the only one.
pub fn only_with(role: Role) -> Option<&'static MetricSpec> {
    LIST.iter().flat_map(|recipe| recipe.metrics).find(|metric| metric.is(role))
}

/// Whether the metric has the role.
pub fn has_role(name: &str, role: Role) -> bool {
    built_in(name).is_some_and(|metric| metric.is(role))
}

/// Whether the metric shows that data came out right; one that no recipe gives shows nothing.
pub fn checks_data(name: &str) -> bool {
    built_in(name).is_some_and(|metric| metric.checks.is_some())
}

/// Whether the metric is the exit code of a program.
pub fn is_exit_code(name: &str) -> bool {
    name == command::EXIT_CODE.name
}

/// One job as its recipes see it: what was declared of it, and the files it left.
#[derive(Clone, Serialize, Deserialize)]
pub struct JobInput {
    /// As in the suite.
    pub case: String,
    /// Unique within the case.
    pub job: String,
    /// From 1; jobs of one round run side by side.
    pub round: u32,
    /// In the planned order; of a pair of NICs the sender first.
    pub nodes: Vec<String>,
    /// EFA devices that every node of the instance has: `rdmap113s0`.
    pub nics: Vec<String>,
    /// The instance's counters of payload that leaves a node: `rdma_write_bytes`.
    pub tx_counters: Vec<String>,
    /// The instance's counters of payload that arrives: `rdma_write_recv_bytes`.
    pub rx_counters: Vec<String>,
    /// Of the instance, as `DirectionMap` has it.
    pub conservation_shown: bool,
    /// What the plan declares of it.
    pub workload: Workload,
    /// Exit code of the script; `None` where it did not run to its end.
    pub exit_code: Option<i32>,
    /// Wall time from start, else submission, to the end; `None` where either is unknown.
    pub seconds: Option<f64>,
    /// Collected files, then the reports of profiled ranks.
    pub files: Vec<InputFile>,
    /// The steps that its profilers were to watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<window::StepWindow>,
    /// The ranks that must have left a report, and their nodes. The collector reports missing ones.
    pub expected_exports: Vec<(u32, String)>,
    /// Where the probe found NVIDIA's devices on PCI, by node: `0000:53:00`. A node that did not show them is not among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpu_places: BTreeMap<String, BTreeSet<String>>,
    /// What the kernel of a node calls itself, by node: jobs name their hosts so. A node of which it is not known is not among
    /// them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host_names: BTreeMap<String, String>,
    /// The extracts of its reports by other processes.
    #[serde(skip)]
    pub kept: Arc<ExtractStore>,
}

/// What a plan declares of a job's workload, as far as recipes need it.
#[derive(Clone, Serialize, Deserialize)]
pub enum Workload {
    /// One collective over a sweep of sizes.
    NcclTests {
        /// The operation that the program is to run.
        op: Op,
        /// Sizes of the sweep in bytes, ascending.
        sizes: Vec<u64>,
        /// `None` where a split mask divides the ranks.
        ranks_per_communicator: Option<u32>,
        /// Whether results are checked (`#wrong`).
        checked: bool,
        /// PyTorch runs it, and not a program of nccl-tests.
        by_torch: bool,
        /// Its other options; `None` in older plans.
        #[serde(default)]
        sweep: Option<SweepFacts>,
    },
    /// One flow per NIC, from the first node of the job to the second.
    NicPairs {
        /// `fi_rma_bw` or `ib_write_bw`.
        tool: String,
        /// `write` or `read`.
        op: String,
    },
    /// Any program.
    Command,
    /// A program that tests one node by itself.
    NodeTool {
        /// How long it loads the node, where that was asked for.
        seconds: Option<u32>,
        /// Of DCGM's diagnosis.
        level: Option<u32>,
    },
    /// A training with a log of its steps.
    Training {
        /// What suite and inventory state of it beforehand.
        facts: TrainingFacts,
        /// Ranks of the whole job.
        ranks: u32,
    },
}

/// What a file of a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileRole {
    /// The output of nccl-tests: of the whole job, or of one node.
    NcclTests,
    /// The output of nccl-tests on one GPU.
    GpuNcclTests,
    /// The sampler's capture of EFA counters on one node.
    Counters,
    /// The output of one flow between the NICs of two nodes.
    Flow,
    /// An exported report: a folder of tables, or one file that holds them all.
    NsysExport,
    /// The output of the workload.
    Stdout,
    /// Standard error of the workload.
    Stderr,
    /// What PyTorch's flight recorder dumped of one rank.
    FlightDump,
    /// What became of the request for dumps on one node.
    FlightRequest,
    /// The state of a node's GPUs before, during and after the workload.
    GpuState,
    /// What NCCL's RAS reports of the job, and the addresses of the node.
    Ras,
    /// What NCCL's Inspector recorded, of all ranks.
    Inspector,
    /// Logs of the launch and the sampler, and files of profilers other than exports.
    Other,
}

/// A collected file of a job, or the exported report of a rank.
#[derive(Clone, Serialize, Deserialize)]
pub struct InputFile {
    /// Decides which recipes read it.
    pub role: FileRole,
    /// Its path.
    pub path: PathBuf,
    /// Its name in findings: relative to the case's folder.
    pub shown: String,
    /// The node that it came from; `None` where it is of the whole job.
    pub node: Option<String>,
    /// The GPU or NIC that it is of: `gpu3`, `rdmap113s0`; `None` for all other files.
    pub part: Option<String>,
    /// The rank whose report it is.
    pub rank: Option<u32>,
}

impl InputFile {
    /// A finding about the file, with the rank and the node that it is of.
    pub(crate) fn finding(&self, code: &str, why: String) -> Finding {
        let rank = self.rank.map(|rank| format!("rank {rank}: ")).unwrap_or_default();
        let finding = Finding::new(code, format!("{rank}{why}")).file(&self.shown);
        match &self.node {
            Some(node) => finding.node(node.as_str()),
            None => finding,
        }
    }
}

impl JobInput {
    /// The dimensions that every number of this job carries.
    pub(crate) fn dims(&self) -> Dims {
        Dims::new().with(Dim::Case, self.case.as_str()).with(Dim::Job, self.job.as_str())
    }

    /// The files of one role, in the order of `files`.
    pub fn files_of(&self, role: FileRole) -> impl Iterator<Item = &InputFile> {
        self.files.iter().filter(move |file| file.role == role)
    }

    /// Whether every profiled rank left a report.
    pub(crate) fn has_every_export(&self) -> bool {
        let left = |rank: u32| self.files_of(FileRole::NsysExport).any(|file| file.rank == Some(rank));
        self.expected_exports.iter().all(|(rank, _)| left(*rank))
    }
}

/// The results of a recipe for one job.
#[derive(Debug, Default)]
pub struct Output {
    /// Each has the dimensions of the job, `JobInput::dims`.
    pub metrics: Vec<Metric>,
    /// What a person should know of the files; what each means stands in `RecipeSpec::findings`.
    pub findings: Vec<Finding>,
    /// The failure that the workload itself reported.
    pub failure: Option<Failure>,
    /// Why these numbers are not those of the declared workload.
    pub not_comparable: Option<NotComparable>,
    /// Numbers that another source contradicts.
    pub doubts: Vec<Contradiction>,
    /// Numbers whose source does not exist on a node at all.
    pub absent: Vec<Absent>,
    /// The versions of software that the workload reported, by name.
    pub versions: BTreeMap<String, BTreeSet<String>>,
    /// The workload itself reported wrong data.
    pub data_wrong: bool,
}

/// Why a workload failed, by its own output.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// A code, such as `collective-timeout`.
    pub cause: String,
    /// The faulty node; `None` where the output does not show it.
    pub node: Option<String>,
    /// File, line and what it says: `raw/j/stderr:12: ...`.
    pub evidence: String,
}

/// Of a file that is held whole, such as what one flow printed.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a file of a job as a stream; a file that cannot be read is a finding and no number.
pub(crate) fn read_stream<T>(
    file: &InputFile,
    output: &mut Output,
    read: impl FnOnce(BufReader<File>) -> io::Result<T>,
) -> Option<T> {
    let opened = File::open(&file.path).map(|file| BufReader::with_capacity(256 << 10, file));
    match opened.and_then(read) {
        Ok(read) => Some(read),
        Err(error) => {
            output.findings.push(
                Finding::new(FileFinding::Unreadable.code(), format!("cannot be read: {error}"))
                    .file(&file.shown),
            );
            None
        }
    }
}

/// Reads a small file of a job.
pub(crate) fn bytes_of(file: &InputFile, output: &mut Output) -> Option<Vec<u8>> {
    read_stream(file, output, |from| {
        let mut bytes = Vec::new();
        match from.take(MOST_BYTES + 1).read_to_end(&mut bytes)? as u64 {
            ..=MOST_BYTES => Ok(bytes),
            _ => Err(io::Error::other(format!("larger than {} MiB", MOST_BYTES >> 20))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_above_the_size_limit_is_reported_and_not_read() {
        let named = tempfile::NamedTempFile::new().expect("a file");
        let file = InputFile {
            role: FileRole::Flow,
            path: named.path().to_owned(),
            shown: "raw/j/flow".into(),
            node: None,
            part: None,
            rank: None,
        };
        for (bytes, is_read) in [(MOST_BYTES, true), (MOST_BYTES + 1, false)] {
            named.as_file().set_len(bytes).expect("a length");
            let mut output = Output::default();
            assert_eq!(bytes_of(&file, &mut output).is_some(), is_read);
            let messages: Vec<&str> =
                output.findings.iter().map(|finding| finding.message.as_str()).collect();
            assert_eq!(messages, if is_read { vec![] } else { vec!["cannot be read: larger than 16 MiB"] });
        }
    }
}
