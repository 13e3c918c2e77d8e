//! The workloads that there are, and what stages behind the plan ask of each: its facts in `plan.json`, and what holds of
//! its kind.

use super::WorkKind;
use metric::op::Op;
use metric::{SweepFacts, TrainingFacts};
use serde::{Deserialize, Serialize};

/// What the readers of a job's output need to know of its workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadFacts {
    /// A collective over a sweep of sizes.
    NcclTests {
        /// Which program it is: `all_reduce_perf`, ...
        op: Op,
        /// Message sizes of the sweep, in bytes.
        sizes: Vec<u64>,
        /// Ranks of one communicator: all of the job's, or fewer where a split mask divides them, or one.
        ranks_per_communicator: Option<u32>,
        /// Whether nccl-tests checks the data (`#wrong`).
        checked: bool,
        /// One single-GPU run per GPU, side by side.
        each_gpu: bool,
        /// PyTorch runs it, and not a program of nccl-tests.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_torch: bool,
        /// GPUs of a node reach each other through its NICs alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        through_nics: bool,
        /// Its options, which the output is compared with; older plans do not have them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sweep: Option<SweepFacts>,
    },
    /// A flow for each NIC between two nodes.
    NicPairs {
        /// The inventory's `nic_tool`: `fi_rma_bw`, `ib_write_bw`.
        tool: String,
        /// `write` or `read`, by the instance profile.
        op: String,
        /// As the case asks for it; older plans do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<job::script::FlowMemory>,
        /// Through whose memory flows go and why, as far as it was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Any other program.
    Command {
        /// As in the suite, without arguments.
        program: String,
    },
    /// A training, whose log is read step by step.
    Training {
        /// The kind, as suites say it.
        program: String,
        /// Steps, batch, tokens and FLOPs, as far as suite and instance state them.
        #[serde(flatten)]
        facts: TrainingFacts,
    },
    /// A program that tests one node by itself.
    NodeTool {
        /// The kind, as suites say it.
        program: String,
        /// How long it loads the node, where the suite says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u32>,
        /// Of DCGM's diagnosis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<u32>,
    },
}

/// What holds of a kind of workload. No fact follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadTraits {
    /// What its jobs are to whoever compares how jobs ended.
    pub work: WorkKind,
    /// The exit code of a job is what it was run for, and no error by itself.
    pub exit_code_is_result: bool,
    /// Its numbers show which ranks took part.
    pub shows_ranks: bool,
    /// A number of a job speaks of the GPUs and NICs of its nodes.
    pub uses_devices: bool,
    /// Its own output names the node that others waited for, better than the launcher's.
    pub names_culprit: bool,
    /// Further runs can look for the part that makes it slow.
    pub isolates: bool,
}

const COLLECTIVE: WorkloadTraits = WorkloadTraits {
    work: WorkKind::Collective,
    exit_code_is_result: false,
    shows_ranks: true,
    uses_devices: true,
    names_culprit: false,
    isolates: true,
};

const EACH_GPU: WorkloadTraits = WorkloadTraits { work: WorkKind::Gpus, ..COLLECTIVE };

const FLOWS: WorkloadTraits = WorkloadTraits {
    work: WorkKind::Flows,
    exit_code_is_result: false,
    shows_ranks: false,
    uses_devices: true,
    names_culprit: false,
    isolates: true,
};

const COMMAND: WorkloadTraits = WorkloadTraits {
    work: WorkKind::Command,
    exit_code_is_result: true,
    shows_ranks: false,
    uses_devices: false,
    names_culprit: false,
    isolates: false,
};

const TRAINING: WorkloadTraits = WorkloadTraits {
    work: WorkKind::Command,
    exit_code_is_result: false,
    shows_ranks: false,
    uses_devices: true,
    names_culprit: true,
    isolates: false,
};

const NODE_TOOL: WorkloadTraits = WorkloadTraits { exit_code_is_result: false, ..COMMAND };

impl WorkloadFacts {
    /// The row of its kind.
    pub const fn traits(&self) -> &'static WorkloadTraits {
        match self {
            WorkloadFacts::NcclTests { each_gpu: true, .. } => &EACH_GPU,
            WorkloadFacts::NcclTests { .. } => &COLLECTIVE,
            WorkloadFacts::NicPairs { .. } => &FLOWS,
            WorkloadFacts::Command { .. } => &COMMAND,
            WorkloadFacts::Training { .. } => &TRAINING,
            WorkloadFacts::NodeTool { .. } => &NODE_TOOL,
        }
    }

    /// Whether rank 0 alone prints results, wherever it runs: other nodes have nothing to print.
    pub fn prints_once(&self) -> bool {
        match self {
            WorkloadFacts::NcclTests { by_torch, each_gpu, ranks_per_communicator, .. } => {
                *by_torch && !each_gpu && ranks_per_communicator.is_none()
            }
            WorkloadFacts::Training { program, .. } => program == "torch-ddp",
            _ => false,
        }
    }

    /// The sizes of its sweep; none where it has no sweep.
    pub fn sizes(&self) -> &[u64] {
        match self {
            WorkloadFacts::NcclTests { sizes, .. } => sizes,
            _ => &[],
        }
    }

    /// What joins the GPUs of a node in a collective on that node alone.
    pub fn link_within_node(&self) -> &'static str {
        match self {
            WorkloadFacts::NcclTests { through_nics: true, .. } => "own NICs",
            _ => "NVLink",
        }
    }

    /// The tool that makes its flows, where it runs flows between NICs.
    pub fn flow_tool(&self) -> Option<&str> {
        match self {
            WorkloadFacts::NicPairs { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// What a person should know of it before it is launched: what it is, and how it is done.
    pub fn notice(&self) -> Option<(&'static str, &str)> {
        match self {
            WorkloadFacts::NicPairs { path: Some(path), .. } => Some(("flows through", path)),
            _ => None,
        }
    }
}
