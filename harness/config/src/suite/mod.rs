//! A suite: cases with a workload, a placement, recipes and assertions, as `suites/*.toml` says it. Matrices are
//! already expanded here; nodes, baselines and whether limits obey hardware limits come later (`plan`,
//! `hardware_limits`).

mod assertion;
mod extend;
mod matrix;
pub mod model;
mod order;
mod profile;
mod read;
pub mod training;
pub mod window_lint;
mod workload;

pub use extend::{Find, base_of};
pub use workload::variables;

pub use ::model::artefact::CaseEnd;

use ::model::fault::NodeFault;
use job::profile::Profile;
use metric::Dim;
use metric::op::Op;
use std::collections::BTreeMap;

/// A suite, from `suites/NAME.toml`, with matrices expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The file's stem.
    pub name: String,
    /// What it tests, for people.
    pub about: String,
    /// The instance type that it is for: `p5`.
    pub instance: String,
    /// `--on-failure` overrides it.
    pub on_failure: OnFailure,
    /// In the order of the file, one for each combination of a matrix.
    pub cases: Vec<Case>,
    /// The file with the cases: the extended suite's, where this one extends another.
    pub file: String,
}

/// What is done where something was measured and is out of bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum OnFailure {
    /// The run ends with its verdicts.
    #[default]
    Nothing,
    /// Further runs look for the part that makes it, within so many node-hours; within those of the run itself, where
    /// the suite says none.
    Isolate {
        /// `isolate_budget_node_h`.
        budget_node_h: Option<f64>,
    },
}

/// One `[[case]]`, or one combination of its matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Unique within a run: its folder is `cases/NAME`.
    pub name: String,
    /// What it tests, for people; may be empty.
    pub about: String,
    /// Copied to the plan; no option selects by them.
    pub tags: Vec<String>,
    /// What its jobs run.
    pub workload: Workload,
    /// Which nodes each of its jobs gets.
    pub placement: Placement,
    /// Names; `window` is added where the profile has a step window.
    pub recipes: Vec<String>,
    /// Of the NICs, read while its jobs run.
    pub counters: Counters,
    /// The profiler around the workload; none where absent.
    pub profile: Option<Profile>,
    /// Seconds that a job may run; 900 by default.
    pub limit_s: u64,
    /// A job that makes no progress for so long is ended; never, where absent.
    pub stall_s: Option<u64>,
    /// Seconds that a job may wait in the queue; 3600 by default.
    pub queue_limit_s: u64,
    /// Where they are not met, the case is skipped.
    pub requires: Requires,
    /// Names of cases that must have passed before.
    pub after: Vec<String>,
    /// The reason, where a failure is expected.
    pub expected_failure: Option<String>,
    /// The report compares the case's end with it; for suites that go red on purpose.
    pub must_end: Option<CaseEnd>,
    /// Of the simulated cluster, while this case runs.
    pub sim_faults: Vec<NodeFault>,
    /// How many independent runs of each job are judged together.
    pub repeats: u32,
    /// Whether a job that the cluster itself ended is retried once.
    pub retry_infrastructure: bool,
    /// Each `[[case.assert]]`, in the order of the file.
    pub assertions: Vec<Assertion>,
    /// Of its `[[case]]` in the file, from 1.
    pub line: usize,
}

/// What a case runs: `kind` of its `workload`.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// `nccl-tests`: an operation over a sweep of sizes.
    NcclTests(NcclTests),
    /// `nic-pairs`: flows between the NICs of two nodes.
    NicPairs(NicPairs),
    /// `command`: any program.
    Command(Command),
    /// `torchrun`, `fsdp`, `nemo`, `ddp` or `mpi`.
    Training(training::Training),
}

/// One call of a program of nccl-tests, with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclTests {
    /// Decides the program: `all_reduce_perf`.
    pub op: Op,
    /// `from` in suites, `-b`.
    pub min_bytes: u64,
    /// `to` in suites, `-e`.
    pub max_bytes: u64,
    /// `factor` or `step` in suites; doubles by default.
    pub step: Step,
    /// Measured operations for each size, `-n`; 20 by default.
    pub iterations: u32,
    /// Operations before those, `-w`; 5 by default.
    pub warmup: u32,
    /// Of the elements, `-d`; `float` by default.
    pub dtype: String,
    /// For operations that reduce, `-o`; `sum` by default.
    pub redop: String,
    /// The root of rooted operations; nccl-tests' own default where absent.
    pub root: Option<u32>,
    /// Whether results are checked (`#wrong`).
    pub check: bool,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// Ranks with equal bits under this mask form one communicator.
    pub split_mask: Option<String>,
    /// Forced by `NCCL_ALGO`; left to NCCL where absent.
    pub algorithm: Option<Algorithm>,
}

/// From one size of a sweep to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Times this, `-f`.
    Factor(u64),
    /// Plus so many bytes, `-i`.
    Bytes(u64),
}

/// What `NCCL_ALGO` is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// `ring` in suites.
    Ring,
    /// `tree` in suites.
    Tree,
    /// `nvls` in suites: switches of NVLink reduce.
    Nvls,
    /// `nvlstree` in suites: NVLS within nodes, a tree between them.
    NvlsTree,
    /// `collnetdirect` in suites: switches of the fabric reduce.
    CollnetDirect,
    /// `collnetchain` in suites: switches of the fabric reduce.
    CollnetChain,
    /// `pat` in suites: parallel aggregated trees.
    Pat,
}

impl Algorithm {
    /// Every one that a suite may force.
    pub(crate) const ALL: [Algorithm; 7] = [
        Algorithm::Ring,
        Algorithm::Tree,
        Algorithm::Nvls,
        Algorithm::NvlsTree,
        Algorithm::CollnetDirect,
        Algorithm::CollnetChain,
        Algorithm::Pat,
    ];

    /// The name in suites.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::Nvls => "nvls",
            Algorithm::NvlsTree => "nvlstree",
            Algorithm::CollnetDirect => "collnetdirect",
            Algorithm::CollnetChain => "collnetchain",
            Algorithm::Pat => "pat",
        }
    }

    /// The name in `NCCL_ALGO`.
    pub fn nccl_name(self) -> &'static str {
        match self {
            Algorithm::Ring => "Ring",
            Algorithm::Tree => "Tree",
            Algorithm::Nvls => "NVLS",
            Algorithm::NvlsTree => "NVLSTree",
            Algorithm::CollnetDirect => "CollNetDirect",
            Algorithm::CollnetChain => "CollNetChain",
            Algorithm::Pat => "PAT",
        }
    }
}

/// Flows between pairs of nodes, one for each NIC, in both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct NicPairs {
    /// How long a flow lasts at line rate.
    pub seconds: f64,
    /// The port of the first device; each further device has the next.
    pub base_port: u16,
    /// Of one write or read; 1 MiB by default.
    pub message_bytes: u64,
    /// Whose memory is moved; `auto` by default.
    pub memory: job::script::FlowMemory,
}

/// Any program, as `kind = "command"` has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// A name or a path; no keyword or builtin of a shell.
    pub program: String,
    /// One that is `env:NAME` is replaced by that variable's value when the job starts.
    pub args: Vec<String>,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// 1 by default, and always 1 over ssh.
    pub tasks_per_node: u32,
}

/// Which nodes each job of a case gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One job, on the first so many selected nodes.
    Nodes(u32),
    /// One job, on all selected nodes.
    All,
    /// One run on every node.
    Each,
    /// One single-GPU run on every GPU, those of a node side by side.
    EachGpu,
    /// Disjoint pairs in rounds, every node covered.
    Pairs,
    /// Groups of so many nodes, every node covered: `groups of 4`.
    Groups(u32),
}

/// The placements in keys of baselines. The number of nodes of a job is a key of its own.
pub(crate) const PLACEMENTS: [&str; 5] = ["all", "pairs", "groups", "each", "each gpu"];

impl Placement {
    /// Jobs that lie alike are one kind: one alone, or several side by side.
    pub fn kind(self) -> &'static str {
        match self {
            Placement::Nodes(_) | Placement::All => "all",
            Placement::Pairs => "pairs",
            Placement::Groups(_) => "groups",
            Placement::Each => "each",
            Placement::EachGpu => "each gpu",
        }
    }
}

/// How the counters are read while a job runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counters {
    /// By default for every workload but `command`.
    pub enabled: bool,
    /// Seconds between two readings, from 0.2 to 3600; 1 by default.
    pub interval_s: f64,
    /// That many readings during the job, instead of one per interval.
    pub between: Option<u32>,
}

/// What must hold, or the case is skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requires {
    /// Of the selected nodes.
    pub min_nodes: Option<u32>,
    /// Of the selected nodes.
    pub max_nodes: Option<u32>,
    /// Of the ranks of one job.
    pub ranks_power_of_two: bool,
}

/// One `[[case.assert]]`: a metric and its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// Label in the verdict's name; the metric's name where absent.
    pub name: Option<String>,
    /// One that the case's recipes make: `nccl.busbw`.
    pub metric: String,
    /// Empty where the metric has no size, and where every size of the sweep is meant.
    pub sizes: Vec<u64>,
    /// For metrics of nccl-tests; out of place by default.
    pub place: Place,
    /// What gets a verdict of its own.
    pub per: Per,
    /// The kernel, or the class of kernels, that it is about.
    pub of: Option<(Dim, String)>,
    /// What the number is compared with.
    pub bound: Bound,
    /// Of its table in the file, from 1.
    pub line: usize,
}

/// Whether nccl-tests' results overwrite their input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// `out` in suites: they do not.
    #[default]
    OutOfPlace,
    /// `in` in suites: they do.
    InPlace,
    /// `both` in suites: the bound must hold for each.
    Both,
}

/// What an assertion gives one verdict each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Per {
    /// The job as a whole.
    #[default]
    Job,
    /// Each of its nodes.
    Node,
    /// Each NIC of its nodes.
    Nic,
    /// Each GPU of its nodes.
    Gpu,
}

impl Per {
    /// As in suites: `node`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Per::Job => "job",
            Per::Node => "node",
            Per::Nic => "nic",
            Per::Gpu => "gpu",
        }
    }
}

/// At least one of these is set; `equals` excludes the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bound {
    /// Inclusive, in the metric's unit.
    pub at_least: Option<f64>,
    /// Inclusive, in the metric's unit.
    pub at_most: Option<f64>,
    /// In the metric's unit.
    pub equals: Option<f64>,
    /// `against = "baseline"`: bounds come from `baselines/INSTANCE.toml`.
    pub baseline: bool,
    /// A fraction: how far from its peers a part may lie.
    pub within_peers: Option<f64>,
    /// A fraction: how much one run differs from the next where all is well, one standard deviation.
    pub spread: Option<f64>,
    /// Out of bounds is reported, and never fails.
    pub warn: bool,
}

/// No sweep of nccl-tests has more sizes than this, so that a slip in a step cannot fill the memory.
const MOST_SIZES: usize = 1000;

impl NcclTests {
    /// The sizes that the sweep visits, as nccl-tests counts them.
    pub fn sizes(&self) -> Vec<u64> {
        let next = |size: &u64| match self.step {
            Step::Factor(factor) => size.checked_mul(factor.max(2)),
            Step::Bytes(bytes) => size.checked_add(bytes.max(1)),
        };
        std::iter::successors(Some(self.min_bytes), next)
            .take_while(|size| *size > 0 && *size <= self.max_bytes)
            .take(MOST_SIZES)
            .collect()
    }

    /// How many communicators a split mask makes of a job's ranks.
    pub(crate) fn communicators(&self) -> u32 {
        match self.split_mask.as_deref().and_then(workload::mask) {
            Some(mask) => 1u32.checked_shl(mask.count_ones()).unwrap_or(u32::MAX),
            None => 1,
        }
    }
}

impl Suite {
    /// Reads a suite, or reports every error in it.
    pub fn read(text: &str, file: &str) -> Result<Suite, crate::diagnostic::Diagnostics> {
        read::suite(text, file)
    }

    /// Reads a suite that may extend another, which `find` gives by its name.
    pub fn read_with(
        text: &str,
        file: &str,
        find: Find<'_>,
    ) -> Result<Suite, crate::diagnostic::Diagnostics> {
        extend::suite(text, file, find)
    }
}

#[cfg(test)]
mod tests;
