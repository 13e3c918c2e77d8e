//! A suite: cases with a workload, a placement, recipes and assertions, as `suites/*.toml` says it. Matrices are
//! already expanded here; nodes, baselines and whether limits obey hardware limits come later (`plan`,
//! `hardware_limits`).

mod assertion;
mod evidence;
mod extend;
mod form;
mod matrix;
mod order;
mod profile;
pub mod rank_lint;
mod read;
mod soak;
pub mod window_lint;
pub mod workload;

pub(crate) use form::file as file_form;

pub use extend::{Find, base_of};
pub use soak::Soak;
pub use workload::{
    Algorithm, Backend, Command, Fio, FioDirectory, LOCAL_DISKS, NcclTests, NicLatency, NicPairs, NodeTool,
    PROBED_PROGRAMS, PYTORCH, Refusal, Setting, SettingValue, Step, TORCHRUN, Tool, TorchBurn, TorchDdp,
    TorchRunner, Workload, WorkloadTable, model, settings, training, variables,
};

pub use ::model::artefact::CaseEnd;

use crate::facts::Requirement;
use ::model::artefact::{EvidenceSource, JobProperties};
use ::model::fault::NodeFault;
use job::profile::Profile;
use metric::Dim;
use recipes::catalogue::Catalogue;

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
    /// What `harness accept` asks of the nodes' probes; a fact that is unknown breaks no bound.
    pub probe: Vec<Requirement>,
    /// Facts of a probe that all nodes must have alike to be accepted.
    pub alike: Vec<String>,
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
    /// What its ranks write of themselves without a profiler.
    pub evidence: Evidence,
    /// What it asks of each of its jobs.
    pub properties: JobProperties,
    /// Where they are not met, the case is skipped.
    pub requires: Requires,
    /// A node whose probe reports that its program is absent skips it.
    pub where_installed: bool,
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
    /// How long it loads its nodes, window by window.
    pub soak: Option<Soak>,
    /// Each `[[case.assert]]`, in the order of the file.
    pub assertions: Vec<Assertion>,
    /// Of its `[[case]]` in the file, from 1.
    pub line: usize,
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

/// By what the calls of ranks are recorded: `evidence`, a table or a list of sources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// In order of preference: each job uses the first that all of its nodes have. Empty where the case has no list.
    pub order: Vec<EvidenceSource>,
    /// Recipe `nccl_log` is there for the list alone: only jobs whose source is the log write one.
    pub adds_log: bool,
    /// NCCL's Inspector records their calls; recipe `inspector` is added.
    pub inspector: bool,
    /// Whether each job is rerun without Inspector, and what it may cost of rates and times: a fraction.
    pub control_run: Option<f64>,
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

impl Suite {
    /// Reads a suite with the recipes of the catalogue, or reports every error in it.
    pub fn read(
        text: &str,
        file: &str,
        catalogue: &Catalogue,
    ) -> Result<Suite, crate::diagnostic::Diagnostics> {
        read::suite(text, file, catalogue)
    }

    /// Reads a suite that may extend another, which `find` gives by its name.
    pub fn read_with(
        text: &str,
        file: &str,
        find: Find<'_>,
        catalogue: &Catalogue,
    ) -> Result<Suite, crate::diagnostic::Diagnostics> {
        extend::suite(text, file, find, catalogue)
    }
}

#[cfg(test)]
mod tests;
