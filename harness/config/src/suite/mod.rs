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

#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The file's stem.
    pub name: String,
    pub about: String,
    pub instance: String,
    pub on_failure: OnFailure,
    pub cases: Vec<Case>,
    pub file: String,
}

/// What is done where something was measured and is out of bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum OnFailure {
    #[default]
    Nothing,
    /// Further runs look for the part that makes it, within so many node-hours; within those of the run itself, where
    /// the suite says none.
    Isolate {
        /// `isolate_budget_node_h`.
        budget_node_h: Option<f64>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub name: String,
    pub about: String,
    pub tags: Vec<String>,
    pub workload: Workload,
    pub placement: Placement,
    pub recipes: Vec<String>,
    pub counters: Counters,
    /// The profiler around the workload; none where absent.
    pub profile: Option<Profile>,
    pub limit_s: u64,
    /// A job that makes no progress for so long is ended; never, where absent.
    pub stall_s: Option<u64>,
    pub queue_limit_s: u64,
    pub requires: Requires,
    /// Names of cases that must have passed before.
    pub after: Vec<String>,
    /// The reason, where a failure is expected.
    pub expected_failure: Option<String>,
    pub must_end: Option<CaseEnd>,
    pub sim_faults: Vec<NodeFault>,
    /// How many independent runs of each job are judged together.
    pub repeats: u32,
    /// Whether a job that the cluster itself ended is retried once.
    pub retry_infrastructure: bool,
    pub assertions: Vec<Assertion>,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    NcclTests(NcclTests),
    NicPairs(NicPairs),
    Command(Command),
    Training(training::Training),
}

#[derive(Debug, Clone, PartialEq)]
pub struct NcclTests {
    pub op: Op,
    pub min_bytes: u64,
    pub max_bytes: u64,
    pub step: Step,
    pub iterations: u32,
    pub warmup: u32,
    pub dtype: String,
    pub redop: String,
    /// The root of rooted operations; nccl-tests' own default where absent.
    pub root: Option<u32>,
    /// Whether results are checked (`#wrong`).
    pub check: bool,
    pub environment: BTreeMap<String, String>,
    /// Ranks with equal bits under this mask form one communicator.
    pub split_mask: Option<String>,
    pub algorithm: Option<Algorithm>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Factor(u64),
    Bytes(u64),
}

/// What `NCCL_ALGO` is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Ring,
    Tree,
    Nvls,
    NvlsTree,
    CollnetDirect,
    CollnetChain,
    Pat,
}

impl Algorithm {
    pub const ALL: [Algorithm; 7] = [
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

#[derive(Debug, Clone, PartialEq)]
pub struct NicPairs {
    /// How long a flow lasts at line rate.
    pub seconds: f64,
    /// The port of the first device; each further device has the next.
    pub base_port: u16,
    pub message_bytes: u64,
    pub memory: job::script::FlowMemory,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub program: String,
    pub args: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub tasks_per_node: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    Nodes(u32),
    All,
    /// One run on every node.
    Each,
    /// One single-GPU run on every GPU, those of a node side by side.
    EachGpu,
    /// Disjoint pairs in rounds, every node covered.
    Pairs,
    Groups(u32),
}

/// The placements in keys of baselines. The number of nodes of a job is a key of its own.
pub const PLACEMENTS: [&str; 5] = ["all", "pairs", "groups", "each", "each gpu"];

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
    pub enabled: bool,
    pub interval_s: f64,
    /// That many readings during the job, instead of one per interval.
    pub between: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requires {
    pub min_nodes: Option<u32>,
    pub max_nodes: Option<u32>,
    pub ranks_power_of_two: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    pub name: Option<String>,
    pub metric: String,
    /// Empty where the metric has no size, and where every size of the sweep is meant.
    pub sizes: Vec<u64>,
    pub place: Place,
    pub per: Per,
    /// The kernel, or the class of kernels, that it is about.
    pub of: Option<(Dim, String)>,
    pub bound: Bound,
    pub line: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    OutOfPlace,
    InPlace,
    Both,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Per {
    #[default]
    Job,
    Node,
    Nic,
    Gpu,
}

impl Per {
    pub fn name(self) -> &'static str {
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
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    pub equals: Option<f64>,
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
    pub fn communicators(&self) -> u32 {
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
