//! Programs that test one node by itself: `dcgm-diag`, `nvbandwidth`, `gpu-burn`, `torch-burn`, `stream`, `stress-ng` and
//! `fio`; `gpu-allocation`, which asks Slurm for GPUs; and `nic-latency` and `iperf3`, which test two.

use super::super::Placement;
use super::Workload;
use super::arguments::{argument, environment, program_of};
use super::table::{Refusal, WorkloadKind, WorkloadTable};
use super::{args_key, environment_key};
use crate::form::{Form, Key, Type};
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use ::model::artefact::{HOST_ENGINE, SLURM_GPUS};
use std::collections::BTreeMap;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    names: &[
        "dcgm-diag",
        "nvbandwidth",
        "gpu-burn",
        "torch-burn",
        "stream",
        "stress-ng",
        "fio",
        "nic-latency",
        "iperf3",
        "gpu-allocation",
    ],
    form,
    read,
    settings: &[],
};

/// Programs that the probe looks for by their usual names, as `node_programs` of `probe.sh` lists them.
pub const PROBED_PROGRAMS: [&str; 8] =
    ["dcgmi", "fi_pingpong", "fio", "gpu_burn", "iperf3", "nvbandwidth", "stream", "stress-ng"];

/// PyTorch, which `python3` of a node must find: the probe looks for it, too.
pub const PYTORCH: &str = "torch";

/// What starts the processes of a training: the probe looks for it, too.
pub const TORCHRUN: &str = "torchrun";

/// Where AWS's Deep Learning AMI mounts the local disks: the probe looks for it, too.
pub const LOCAL_DISKS: &str = "/opt/dlami/nvme";

/// A call of such a program.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTool {
    /// What is called, and with what.
    pub tool: Tool,
    /// Its name or path.
    pub program: String,
    /// Behind those of the tool.
    pub args: Vec<String>,
    /// Wins over the inventory's.
    pub environment: BTreeMap<String, String>,
    /// Seconds between readings of the GPUs' state, 0 for none while it runs; nothing where it uses no GPU.
    pub sample_s: Option<u32>,
    /// Seconds of the soak before it, where it is a window of one; never read from a suite.
    pub soaked_s: Option<u32>,
}

/// The program and what a suite says of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Tool {
    /// `dcgmi diag`.
    DcgmDiag {
        /// 1 to 4.
        level: u32,
    },
    /// Copies between host and GPUs, and between GPUs.
    NvBandwidth,
    /// Matrix products on all GPUs.
    GpuBurn {
        /// How long.
        seconds: u32,
        /// By tensor cores.
        tensor_cores: bool,
    },
    /// The same by PyTorch, in one type of numbers.
    TorchBurn(TorchBurn),
    /// Memory of the host.
    Stream,
    /// Processors and memory of the host under load.
    StressNg {
        /// How long.
        seconds: u32,
        /// Of the memory that is free, in percent.
        memory: u32,
    },
    /// A disk or a shared file system.
    Fio(Fio),
    /// Messages from each NIC to its peer on another node, or to itself.
    NicLatency(NicLatency),
    /// TCP from one node to another.
    Iperf3 {
        /// How long.
        seconds: u32,
        /// At once.
        streams: u32,
        /// Of the server.
        port: u16,
    },
    /// Steps of a job with some of its GPUs, as Slurm gives them.
    GpuAllocation {
        /// Of each step.
        gpus: Vec<u32>,
    },
}

/// Messages between NICs.
#[derive(Debug, Clone, PartialEq)]
pub struct NicLatency {
    /// Of each size of message.
    pub iterations: u32,
    /// The port of the first device and size; each further one has the next.
    pub base_port: u16,
}

/// Where fio reads and writes.
#[derive(Debug, Clone, PartialEq)]
pub enum FioDirectory {
    /// The run's folder in `paths.shared`.
    Shared,
    /// A folder of the node.
    Path(String),
}

/// What PyTorch multiplies.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchBurn {
    /// How long.
    pub seconds: u32,
    /// `bf16`, `fp64`, ...
    pub dtype: &'static str,
    /// Rows and columns of each matrix.
    pub size: u32,
    /// `cuda` or `cpu`.
    pub device: &'static str,
}

/// What fio does.
#[derive(Debug, Clone, PartialEq)]
pub struct Fio {
    /// Whose file system it is; its files there are removed at the end.
    pub directory: FioDirectory,
    /// `read`, `randread`, ...
    pub access: String,
    /// Of one operation.
    pub block: u64,
    /// Of the file of each process.
    pub size: u64,
    /// How long.
    pub seconds: u32,
    /// Operations under way at once, of each process.
    pub depth: u32,
    /// Processes.
    pub jobs: u32,
}

impl Tool {
    /// `kind` in suites.
    pub fn kind(&self) -> &'static str {
        match self {
            Tool::DcgmDiag { .. } => "dcgm-diag",
            Tool::NvBandwidth => "nvbandwidth",
            Tool::GpuBurn { .. } => "gpu-burn",
            Tool::TorchBurn(_) => "torch-burn",
            Tool::Stream => "stream",
            Tool::StressNg { .. } => "stress-ng",
            Tool::Fio(_) => "fio",
            Tool::NicLatency(_) => "nic-latency",
            Tool::Iperf3 { .. } => "iperf3",
            Tool::GpuAllocation { .. } => "gpu-allocation",
        }
    }

    /// The level of a diagnosis.
    pub fn level(&self) -> Option<u32> {
        match self {
            Tool::DcgmDiag { level } => Some(*level),
            _ => None,
        }
    }

    /// How long it loads the node, where the suite says so.
    pub fn seconds(&self) -> Option<u32> {
        match self {
            Tool::GpuBurn { seconds, .. }
            | Tool::TorchBurn(TorchBurn { seconds, .. })
            | Tool::StressNg { seconds, .. }
            | Tool::Iperf3 { seconds, .. }
            | Tool::Fio(Fio { seconds, .. }) => Some(*seconds),
            Tool::DcgmDiag { .. }
            | Tool::NvBandwidth
            | Tool::Stream
            | Tool::NicLatency(_)
            | Tool::GpuAllocation { .. } => None,
        }
    }
}

impl WorkloadTable for NodeTool {
    fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    fn written_arguments(&self) -> Vec<&String> {
        std::iter::once(&self.program).chain(&self.args).collect()
    }

    fn probed_programs(&self) -> Vec<&'static str> {
        let usual = usual_program(self.tool.kind());
        match &self.tool {
            // No program of a node: the launcher of the inventory says whether Slurm gives them.
            Tool::GpuAllocation { .. } => vec![SLURM_GPUS],
            _ if self.program != usual => Vec::new(),
            Tool::TorchBurn(_) => vec![PYTORCH],
            Tool::Fio(Fio { directory: FioDirectory::Path(path), .. }) if path == LOCAL_DISKS => {
                vec![usual, LOCAL_DISKS]
            }
            Tool::DcgmDiag { .. } => vec![usual, HOST_ENGINE],
            _ => vec![usual],
        }
    }

    /// gpu-burn prints all the time, and so does PyTorch once the host has its own products; the others at their end.
    fn stall_s(&self) -> Option<u64> {
        match self.tool {
            Tool::GpuBurn { .. } => Some(180),
            Tool::TorchBurn(_) => Some(420),
            _ => None,
        }
    }

    fn usual_placement(&self) -> Option<Placement> {
        Some(if matches!(self.tool, Tool::NicLatency(_) | Tool::Iperf3 { .. }) {
            Placement::Pairs
        } else {
            Placement::Each
        })
    }

    fn refuse_placement(&self, placement: Placement) -> Option<Refusal> {
        let why = match self.tool {
            Tool::DcgmDiag { .. } => "`dcgm-diag` tests one node by itself",
            Tool::NvBandwidth => "`nvbandwidth` tests one node by itself",
            Tool::GpuBurn { .. } => "`gpu-burn` tests one node by itself",
            Tool::TorchBurn(_) => "`torch-burn` tests one node by itself",
            Tool::Stream => "`stream` tests one node by itself",
            Tool::StressNg { .. } => "`stress-ng` tests one node by itself",
            Tool::Fio(_) => "`fio` tests one node by itself",
            Tool::GpuAllocation { .. } => "`gpu-allocation` tests one node by itself",
            Tool::Iperf3 { .. } => {
                let why = "`iperf3` runs between two nodes at a time";
                return (placement != Placement::Pairs).then_some((why, "write `placement = \"pairs\"`"));
            }
            Tool::NicLatency(_) => {
                let why = "`nic-latency` tests the NICs of a node by themselves, or those of two nodes";
                let is_one = matches!(placement, Placement::Each | Placement::Pairs);
                return (!is_one).then_some((why, "write `placement = \"pairs\"` or `placement = \"each\"`"));
            }
        };
        (placement != Placement::Each).then_some((why, "write `placement = \"each\"`"))
    }

    fn refuse_profile(&self) -> Option<&'static str> {
        Some("programs that test a node are not profiled")
    }

    fn refuse_nccl_log(&self) -> Option<&'static str> {
        Some("programs that test a node do not run NCCL; remove `nccl_log` from `recipes`")
    }

    fn reads_counters(&self) -> bool {
        false
    }
}

const LONGEST_S: std::ops::RangeInclusive<u32> = 10..=86_400;
const ACCESSES: [(&str, &str); 6] = [
    ("read", "read"),
    ("write", "write"),
    ("randread", "randread"),
    ("randwrite", "randwrite"),
    ("readwrite", "readwrite"),
    ("randrw", "randrw"),
];

/// Types of numbers; `tf32` is float with the fast products of tensor cores.
const DTYPES: [(&str, &str); 6] = [
    ("fp64", "fp64"),
    ("fp32", "fp32"),
    ("tf32", "tf32"),
    ("bf16", "bf16"),
    ("fp16", "fp16"),
    ("fp8", "fp8"),
];
const DEVICES: [(&str, &str); 2] = [("cuda", "cuda"), ("cpu", "cpu")];
/// Larger ones take minutes on the host, whose own product each is compared with.
const SIZES: std::ops::RangeInclusive<u32> = 64..=32_768;

fn usual_program(kind: &str) -> &'static str {
    match kind {
        "dcgm-diag" => "dcgmi",
        "nvbandwidth" => "nvbandwidth",
        "gpu-burn" => "gpu_burn",
        "torch-burn" => "python3",
        "stream" => "stream",
        "stress-ng" => "stress-ng",
        "nic-latency" => "fi_pingpong",
        "iperf3" => "iperf3",
        "gpu-allocation" => "srun",
        _ => "fio",
    }
}

/// Copies are measured without a reading beside them.
fn usual_sample_s(kind: &str) -> Option<(u32, &'static str)> {
    match kind {
        "dcgm-diag" => Some((30, "30")),
        "nvbandwidth" => Some((0, "0")),
        "gpu-burn" | "torch-burn" => Some((10, "10")),
        _ => None,
    }
}

fn form(kind: &str) -> Form {
    let sampled = usual_sample_s(kind).map(|(_, usual)| {
        Key::usual(
            "sample_s",
            usual,
            Type::Whole(0..=3600),
            "seconds between readings of the GPUs' state (recipe `gpu_state`); 0 reads before and after it alone",
        )
    });
    let program = Key::usual("program", usual_program(kind), Type::Text, "the program by its name or path");
    let own = match kind {
        "dcgm-diag" => {
            vec![Key::usual(
                "level",
                "2",
                Type::Whole(1..=4),
                "of the diagnosis, from seconds at 1 to hours at 4",
            )]
        }
        "gpu-burn" => vec![
            Key::usual("seconds", "300", Type::Whole(10..=86_400), "how long all GPUs are loaded"),
            Key::usual("tensor_cores", "true", Type::Boolean, "multiply by tensor cores"),
        ],
        "torch-burn" => vec![
            Key::needed(
                "dtype",
                Type::OneOf(|_| DTYPES.map(|(name, _)| name.to_owned()).to_vec()),
                "of the numbers; `tf32` is fp32 by the fast products of tensor cores",
            ),
            Key::usual("seconds", "120", Type::Whole(10..=86_400), "how long all GPUs are loaded"),
            Key::usual(
                "size",
                "8192",
                Type::Whole(64..=32_768),
                "rows and columns of each matrix; 16 divides it",
            ),
            Key::usual(
                "device",
                "\"cuda\"",
                Type::OneOf(|_| DEVICES.map(|(name, _)| name.to_owned()).to_vec()),
                "what multiplies; `cpu` tries it out where there is no GPU, but for `tf32` and `fp8`",
            ),
        ],
        "fio" => vec![
            Key::needed(
                "directory",
                Type::Text,
                "a folder of the disk or file system, or `shared` for the run's in `paths.shared`; its files there are removed at the end",
            ),
            Key::usual(
                "access",
                "\"randread\"",
                Type::OneOf(|_| ACCESSES.map(|(name, _)| name.to_owned()).to_vec()),
                "what fio does",
            ),
            Key::usual("block", "\"4KiB\"", Type::Size, "of one operation"),
            Key::usual("size", "\"4GiB\"", Type::Size, "of the file of each process"),
            Key::usual("seconds", "30", Type::Whole(10..=86_400), "how long"),
            Key::usual("depth", "64", Type::Whole(1..=4096), "operations under way at once, of each process"),
            Key::usual("jobs", "4", Type::Whole(1..=256), "processes"),
        ],
        "stress-ng" => vec![
            Key::usual(
                "seconds",
                "60",
                Type::Whole(10..=86_400),
                "how long processors and memory are loaded",
            ),
            Key::usual(
                "memory",
                "60",
                Type::Whole(1..=90),
                "percent of the free memory that is written and checked",
            ),
        ],
        "nic-latency" => vec![
            Key::usual("iterations", "10000", Type::Whole(100..=1_000_000), "messages of each size"),
            Key::usual(
                "base_port",
                "19515",
                Type::Whole(1024..=60_000),
                "the port of the first device; each further device and size has the next",
            ),
        ],
        "iperf3" => vec![
            Key::usual("seconds", "10", Type::Whole(10..=86_400), "how long"),
            Key::usual("streams", "8", Type::Whole(1..=128), "connections at once"),
            Key::usual("port", "19515", Type::Whole(1024..=65_535), "where the server listens"),
        ],
        "gpu-allocation" => vec![Key::usual(
            "gpus",
            "[1, 2]",
            Type::list(Type::Whole(1..=64)),
            "a step for each of these numbers of GPUs",
        )],
        _ => Vec::new(),
    };
    let args = takes_args(kind).then(args_key);
    Form::new(own.into_iter().chain(sampled).chain([program]).chain(args).chain([environment_key()]))
}

/// A script calls the others, with arguments of its own.
fn takes_args(kind: &str) -> bool {
    !["nic-latency", "iperf3", "gpu-allocation"].contains(&kind)
}

fn read(table: &Table<'_>, kind: &str) -> Option<Workload> {
    let seconds = |usual: u32| table.get("seconds").map_or(Some(usual), |value| value.small(LONGEST_S));
    let tool = match kind {
        "dcgm-diag" => {
            let level = table.get("level").map_or(Some(2), |value| value.small(1..=4));
            level.map(|level| Tool::DcgmDiag { level })
        }
        "nvbandwidth" => Some(Tool::NvBandwidth),
        "gpu-burn" => {
            let seconds = seconds(300);
            let tensor_cores = table.get("tensor_cores").map_or(Some(true), |value| value.boolean());
            seconds.zip(tensor_cores).map(|(seconds, tensor_cores)| Tool::GpuBurn { seconds, tensor_cores })
        }
        "torch-burn" => torch_burn(table, seconds(120)),
        "stream" => Some(Tool::Stream),
        "stress-ng" => {
            let memory = table.get("memory").map_or(Some(60), |value| value.small(1..=90));
            seconds(60).zip(memory).map(|(seconds, memory)| Tool::StressNg { seconds, memory })
        }
        "nic-latency" => {
            let iterations =
                table.get("iterations").map_or(Some(10_000), |value| value.small(100..=1_000_000));
            let base_port = table.get("base_port").map_or(Some(19_515), |value| value.small(1024..=60_000));
            let base_port = base_port.and_then(|port| u16::try_from(port).ok());
            let both = iterations.zip(base_port);
            both.map(|(iterations, base_port)| Tool::NicLatency(NicLatency { iterations, base_port }))
        }
        "iperf3" => {
            let streams = table.get("streams").map_or(Some(8), |value| value.small(1..=128));
            let port = table.get("port").map_or(Some(19_515), |value| value.small(1024..=65_535));
            let port = port.and_then(|port| u16::try_from(port).ok());
            let all = seconds(10).zip(streams).zip(port);
            all.map(|((seconds, streams), port)| Tool::Iperf3 { seconds, streams, port })
        }
        "gpu-allocation" => steps_of(table).map(|gpus| Tool::GpuAllocation { gpus }),
        _ => fio(table, seconds(30)),
    };
    let sample_s = match usual_sample_s(kind) {
        Some((usual, _)) => Some(table.get("sample_s").map_or(Some(usual), |value| value.small(0..=3600))?),
        None => None,
    };
    let usual = || Some(usual_program(kind).to_owned());
    let program = table.get("program").map_or_else(usual, |value| program_of(&value));
    let args = if takes_args(kind) { table.get("args") } else { None };
    let args = args.and_then(|value| value.list()).unwrap_or_default();
    let args = args.iter().filter_map(argument).collect();
    let environment = environment(table);
    Some(Workload::NodeTool(NodeTool {
        tool: tool?,
        program: program?,
        args,
        environment,
        sample_s,
        soaked_s: None,
    }))
}

/// The GPUs of each step; each number once.
fn steps_of(table: &Table<'_>) -> Option<Vec<u32>> {
    let Some(value) = table.get("gpus") else { return Some(vec![1, 2]) };
    let numbers: Vec<u32> =
        value.list()?.iter().map(|number| number.small(1..=64)).collect::<Option<Vec<u32>>>()?;
    let is_twice = (1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at]));
    if numbers.is_empty() || is_twice {
        value.diagnostic_with("`gpus` needs numbers, each of them once", "write `gpus = [1, 2]`");
        return None;
    }
    Some(numbers)
}

fn torch_burn(table: &Table<'_>, seconds: Option<u32>) -> Option<Tool> {
    let dtype = table.need("dtype").and_then(|value| value.one_of(&DTYPES));
    let device = table.get("device").map_or(Some("cuda"), |value| value.one_of(&DEVICES));
    let size = table.get("size").map_or(Some(8192), |value| {
        let size = value.small(SIZES)?;
        if size % 16 != 0 {
            value.diagnostic_with(format!("not a multiple of 16: {size}"), "write 4096 or 8192");
            return None;
        }
        Some(size)
    });
    let (dtype, device) = (dtype?, device?);
    if device == "cpu" && ["tf32", "fp8"].contains(&dtype) {
        table.diagnostic(format!("a CPU has no products in {dtype}"));
        return None;
    }
    Some(Tool::TorchBurn(TorchBurn { seconds: seconds?, dtype, size: size?, device }))
}

fn fio(table: &Table<'_>, seconds: Option<u32>) -> Option<Tool> {
    let directory = table.need("directory").and_then(|value| folder(&value));
    let access = table.get("access").map_or(Some("randread"), |value| value.one_of(&ACCESSES));
    let block = table.get("block").map_or(Some(4 << 10), |value| size_of(&value));
    let size = table.get("size").map_or(Some(4 << 30), |value| size_of(&value));
    let depth = table.get("depth").map_or(Some(64), |value| value.small(1..=4096));
    let jobs = table.get("jobs").map_or(Some(4), |value| value.small(1..=256));
    Some(Tool::Fio(Fio {
        directory: directory?,
        access: access?.to_owned(),
        block: block?,
        size: size?,
        seconds: seconds?,
        depth: depth?,
        jobs: jobs?,
    }))
}

/// fio takes `:` in a folder for the end of its name.
fn folder(value: &Value<'_>) -> Option<FioDirectory> {
    let text = argument(value)?;
    if text == "shared" {
        return Some(FioDirectory::Shared);
    }
    if text.starts_with('/') && !text.contains([':', '\n']) {
        return Some(FioDirectory::Path(text));
    }
    let help = "write its path from `/`, without `:`, or `shared`";
    value.diagnostic_with(format!("not a folder for fio: {text:?}"), help);
    None
}
