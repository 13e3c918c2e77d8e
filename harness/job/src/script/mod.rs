//! What a job does on its nodes: a short list of typed steps, and the shell text that they are rendered to.
//! Reading the text back is in `read.rs`; which steps a workload needs is decided in the plan.

mod in_image;
mod over_ssh;
mod read;
mod render;
pub mod secrets;
pub mod start;

pub use read::{NotAScript, read};
pub use render::{options_beside, render};

use crate::profile::{NsysVersion, Ranks, nsys};
use crate::window::{HOOK_FILE, HOOK_PY, Trigger};
use base::nodeset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The counter sampler: runs on every node of a job beside its workload.
pub const COUNTERS_SH: &str = include_str!("counters.sh");
/// Single-GPU runs side by side on one node.
pub const GPUS_SH: &str = include_str!("gpus.sh");
/// Point-to-point flows, one per NIC, between two nodes.
pub const FLOWS_SH: &str =
    concat!(include_str!("background.sh"), include_str!("node_pair.sh"), include_str!("flows.sh"));
/// Puts what NCCL's Inspector left for each process into one file.
pub const INSPECTOR_SH: &str = include_str!("inspector.sh");
/// A program, and the state of its node's GPUs before, during and after it.
pub const GPU_STATE_SH: &str = include_str!("gpu_state.sh");
/// What lies between two nodes, or between the NICs of one: latency, and TCP.
pub const LINKS_SH: &str =
    concat!(include_str!("background.sh"), include_str!("node_pair.sh"), include_str!("links.sh"));
/// Steps with some of the GPUs of a job, and those that each can use.
pub const GPU_ALLOCATION_SH: &str = concat!(include_str!("background.sh"), include_str!("gpu_allocation.sh"));
/// A program, and the processes beside it that use the processors of its node most.
pub const BUSY_SH: &str = include_str!("busy.sh");
/// A collective over a sweep of sizes, by PyTorch.
pub const TORCH_COLLECTIVE_PY: &str = include_str!("torch_collective.py");
/// Matrix products on all GPUs of a node, by PyTorch; prints as gpu-burn does.
pub const TORCH_BURN_PY: &str = include_str!("torch_burn.py");
/// How it begins to say that there is no PyTorch.
pub const NO_TORCH: &str = "torch_burn.py: PyTorch is missing";
/// A small training whose weights are compared over all ranks, by PyTorch.
pub const TORCH_DDP_PY: &str = include_str!("torch_ddp.py");
/// One rank of a workload, under nsys where it is among those to be profiled.
pub const PROFILE_SH: &str = include_str!("profile.sh");
/// Over ssh: what starts, keeps and ends a job's script on one node.
pub const SUPERVISOR_SH: &str = concat!(include_str!("strays.sh"), include_str!("supervisor.sh"));
/// In pods: takes mpirun to the other nodes of its job.
pub const AGENT_SH: &str = include_str!("agent.sh");
/// In the pods of a manifest: runs the jobs of a case there, and records where Kubernetes put them.
pub const POD_SH: &str = concat!(include_str!("strays.sh"), include_str!("pod.sh"));
/// Over ssh: has an image fetched, and a part of a job run in it by docker or podman.
pub const CONTAINER_SH: &str = include_str!("container.sh");
/// In an allocation that jobs share: runs their scripts, one after the other.
pub const ALLOCATION_SH: &str = concat!(include_str!("strays.sh"), include_str!("allocation.sh"));
/// Sent as it is to hosts, by `clean`: reports the leftovers of jobs there, and ends them.
pub const CLEAN_SH: &str = include_str!("clean.sh");

/// What wires ranks together over ssh: this by the node's PATH, in scripts of older plans.
pub const MPIRUN: &str = "mpirun";
/// The same, looked for by the script itself: on PATH, or else where AWS's installer puts it. Called by its whole path,
/// which is how Open MPI finds its own daemon on the other nodes.
pub const FIND_MPIRUN: &str = "find-mpirun";
/// Where AWS's installer of EFA puts it.
pub const AWS_MPIRUN: &str = "/opt/amazon/openmpi/bin/mpirun";

/// Whether a run is started by mpirun: found in one of these ways, or by its path.
pub fn is_mpirun(mpi: &str) -> bool {
    [MPIRUN, FIND_MPIRUN].contains(&mpi) || mpi.starts_with('/')
}

/// The text of one job: what the launcher hands over, complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Slurm, bash on this machine, or ssh.
    pub start: Start,
    /// All nodes of the job: ranks are numbered along them. Sorted by name, unless a topology orders them.
    pub nodes: Vec<String>,
    /// In the order in which the text has them.
    pub steps: Vec<Step>,
}

/// Who runs the text, and so how it reaches the job's nodes.
// There are few of them: a box would only be in the way.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Start {
    /// sbatch on the first node; srun spreads the steps.
    Slurm(Directives),
    /// Plain bash on the node itself.
    Bash,
    /// The same text on every node of the job, started by `supervisor.sh`, which passes each its name.
    Ssh,
    /// The same where no node reaches another by ssh: `agent.sh` takes mpirun there.
    Pods,
}

impl Script {
    /// The image that its workload runs in, by docker or podman.
    pub fn image(&self) -> Option<(Runtime, &str)> {
        let container = self.steps.iter().find_map(|step| match step {
            Step::Run(run) => run.container.as_ref(),
            Step::Gpus(gpus) => gpus.container.as_ref(),
            _ => None,
        })?;
        Some((container.runtime?, container.image.as_str()))
    }
}

impl Start {
    /// Every node runs the text; otherwise one host does, for all of them.
    fn is_on_each_node(&self) -> bool {
        matches!(self, Start::Ssh | Start::Pods)
    }

    /// How the job asks for GPUs.
    pub fn gpu_request(&self) -> GpuRequest {
        match self {
            Start::Slurm(directives) => directives.gpus,
            Start::Bash | Start::Ssh | Start::Pods => GpuRequest::None,
        }
    }
}

/// What sbatch is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Directives {
    /// `--job-name`: `RUN.CASE.JOB`, for an allocation its own.
    pub job_name: String,
    /// The working folder, shared between the nodes.
    pub folder: String,
    /// `--ntasks-per-node`.
    pub tasks_per_node: u32,
    /// 0 where Slurm is not asked for GPUs.
    pub gpus_per_node: u32,
    /// `--time`, in minutes.
    pub minutes: u64,
    /// `--exclusive`, as the inventory says.
    pub exclusive: bool,
    /// Steps take their numbers of tasks from their own arguments only, and the script writes how it ended, for when
    /// Slurm has forgotten it. Older plans have scripts that do neither.
    #[serde(default)]
    pub stands_alone: bool,
    /// `--partition`, where the inventory names one.
    pub partition: Option<String>,
    /// `--account`, where the inventory names one.
    pub account: Option<String>,
    /// `--reservation`, where the inventory names one.
    pub reservation: Option<String>,
    /// `--constraint`, where the inventory has one.
    pub constraint: Option<String>,
    /// By which option the GPUs are asked for.
    #[serde(default)]
    pub gpus: GpuRequest,
    /// `--qos`, where the inventory names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// `--mem` of each node, where the inventory sets it; `0` is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem: Option<String>,
    /// Further arguments of sbatch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sbatch: Vec<String>,
    /// Further arguments of each srun in the script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub srun: Vec<String>,
    /// The script writes down what it inherited from the shell that submitted it.
    #[serde(default)]
    pub records_environment: bool,
}

/// How Slurm is asked for the GPUs of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuRequest {
    /// `--gres=gpu:N`.
    #[default]
    Gres,
    /// `--gpus-per-node=N`.
    GpusPerNode,
    /// Not at all: Slurm knows of none, and jobs see all GPUs of their nodes.
    None,
}

impl GpuRequest {
    /// The name of the option and its value.
    pub fn option(self, gpus: u32) -> Option<(&'static str, String)> {
        match self {
            GpuRequest::Gres => Some(("gres", format!("gpu:{gpus}"))),
            GpuRequest::GpusPerNode => Some(("gpus-per-node", gpus.to_string())),
            GpuRequest::None => None,
        }
    }

    /// By which a step asks for none of its job's; each is refused where the job has the other.
    fn without(self) -> Option<&'static str> {
        match self {
            GpuRequest::Gres => Some("--gres=none"),
            GpuRequest::GpusPerNode => Some("--gpus-per-node=0"),
            GpuRequest::None => None,
        }
    }

    /// How many are asked for, of so many.
    pub fn count(self, gpus: u32) -> u32 {
        if self == GpuRequest::None { 0 } else { gpus }
    }
}

/// A part of a script, rendered under a comment line that names it.
// There are few of them: a box would only be in the way.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// What the job is given in a file, by the names of the variables.
    Secrets {
        /// Their values stand in that file only.
        variables: Vec<String>,
    },
    /// Variables that are exported for the steps behind it.
    Environment {
        /// By name; no secrets.
        variables: BTreeMap<String, String>,
    },
    /// Starts the samplers and waits until they are ready.
    CountersBegin(Sampler),
    /// Ranks of one program.
    Run(Run),
    /// Processes of one GPU each, by `gpus.sh`.
    Gpus(Gpus),
    /// Flows between two nodes, by `flows.sh`.
    Flows(Flows),
    /// Ends the samplers and waits for their end.
    CountersEnd,
    /// Puts the files of NCCL's Inspector into one, by `inspector.sh`, on the first node.
    Inspector,
    /// Jobs that share an allocation, by `allocation.sh`.
    Turns(Turns),
}

/// Several jobs in one allocation: `allocation.sh` runs the script of each when its slot comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// Where no turn comes for so long, the allocation ends by itself.
    pub idle_s: u64,
    /// The numbers in the files `turn.N` count them from 1.
    pub jobs: Vec<Turn>,
}

/// One of the jobs that share an allocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The job's folder, with its `job.sh`.
    pub folder: String,
    /// Seconds after which `allocation.sh` ends the job.
    pub limit_s: u64,
}

/// One sampler per node, from before the workload until after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// The folder with one folder per device; `{host}` in it is the node's name.
    pub root: String,
    /// Seconds between two readings.
    pub interval_s: f64,
    /// The sampler ends by itself after this long, unless it is ended before.
    pub limit_s: u64,
    /// The wait for it has one deadline for all nodes, and ends where the sampler has ended. Scripts of older plans wait
    /// for each node in turn, and for a sampler that is gone.
    #[serde(default)]
    pub watched: bool,
}

/// The workload as ranks of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The program and its arguments, without the profiler's.
    pub argv: Vec<String>,
    /// Ranks on each node.
    pub tasks_per_node: u32,
    /// What wires the ranks together: the plugin that srun is given, or over ssh an mpirun (`is_mpirun`); none for
    /// programs that are not MPI programs.
    pub mpi: Option<String>,
    /// None where it runs on the host.
    pub container: Option<Container>,
    /// The profiler around each rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// The arguments of `profile.sh`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The program, or `find`.
    pub nsys: String,
    /// The release that the arguments are written for.
    pub version: NsysVersion,
    /// Ranks of the whole job.
    pub tasks: u32,
    /// Those that are profiled.
    pub ranks: Ranks,
    /// Those that sample what belongs to their node as a whole.
    pub node_ranks: Ranks,
    /// The beginning of the reports' names.
    pub name: String,
    /// Formats by comma, the first that nsys takes is used; `none` for no export.
    pub export: String,
    /// The tables to export; all where empty.
    pub tables: Vec<String>,
    /// Of `nsys profile`; a watcher splits them between `nsys launch` and `nsys start`.
    pub words: nsys::Arguments,
    /// What opens and closes the window, where neither nsys nor the program does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Box<Trigger>>,
}

/// The workload as one single-GPU process per GPU of each node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gpus {
    /// The program of each process, with its arguments.
    pub argv: Vec<String>,
    /// Processes on each node, one for each GPU.
    pub gpus: u32,
    /// None where they run on the host.
    pub container: Option<Container>,
}

/// Whose memory flows move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowMemory {
    /// The GPUs' where the tools of both nodes can, else the hosts'.
    #[default]
    Auto,
    /// Of the GPU behind each NIC's PCIe switch; all flows run at once.
    Gpu,
    /// One NIC of each PCIe switch at a time, for its link to the CPU is slower than its NICs together.
    Host,
}

impl FlowMemory {
    /// Every value, the default first.
    pub const ALL: [FlowMemory; 3] = [FlowMemory::Auto, FlowMemory::Gpu, FlowMemory::Host];

    /// As in suites and in the script: `auto`.
    pub fn name(self) -> &'static str {
        match self {
            FlowMemory::Auto => "auto",
            FlowMemory::Gpu => "gpu",
            FlowMemory::Host => "host",
        }
    }
}

/// The workload as one flow per device from one node to the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    /// `fi_rma_bw` or `ib_write_bw`.
    pub tool: String,
    /// `write` or `read`.
    pub op: String,
    /// The node that data arrives at with `write`, and leaves with `read`.
    pub server: String,
    /// The other node: its outputs hold the rates.
    pub client: String,
    /// Port of the first device; each further device has the next one.
    pub base_port: u16,
    /// Bytes of each transfer.
    pub message_bytes: u64,
    /// Transfers of each flow.
    pub iterations: u64,
    /// Of one turn.
    pub limit_s: u64,
    /// As the suite requests it.
    #[serde(default)]
    pub memory: FlowMemory,
    /// One flow for each, such as `rdmap113s0`.
    pub devices: Vec<String>,
    /// For each device the GPU behind its PCIe switch, for nodes that do not show it themselves.
    #[serde(default)]
    pub gpus: Vec<u32>,
}

/// What runs images where Slurm has no Pyxis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// By its daemon, which the user must be let use.
    Docker,
    /// As the user.
    Podman,
}

impl Runtime {
    /// All of them.
    pub const ALL: [Runtime; 2] = [Runtime::Docker, Runtime::Podman];

    /// As in inventories, and the program's own: `docker`.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Docker => "docker",
            Runtime::Podman => "podman",
        }
    }
}

/// The image that a step runs in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// Pyxis and Enroot, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// `--container-image`.
    pub image: String,
    /// `--container-mounts`, each as `OUTSIDE:INSIDE`.
    pub mounts: Vec<String>,
    /// `--container-mount-home`; otherwise `--no-container-mount-home`.
    pub mount_home: bool,
    /// `--container-remap-root`; otherwise `--no-container-remap-root`.
    pub remap_root: bool,
    /// The job's folder as the container sees it, where a script that lies there is run in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Exported variables that beat those of the image's own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Under this name the unpacked image is kept on a node and used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A line of a program's text that begins with this says that nothing real made the text.
pub const SIMULATED: &str = "# SIMULATED:";

/// The line that a script writes where its sampler has ended before the workload began; the exit status stands behind it.
pub const SAMPLER_ENDED: &str = logs::efa_counters::SAMPLER_ENDED;

/// What `container.sh` says begins so: the program did not begin.
pub const CONTAINER_SAYS: &str = "container.sh: ";
/// What `agent.sh` says begins so.
pub const AGENT_SAYS: &str = "agent.sh: ";
/// Behind it: there is no mpirun where it runs.
pub const AGENT_NO_MPIRUN: &str = "tool-missing mpirun: ";
/// With this `flows.sh` says that its tool is not on the node.
pub const EXIT_NO_TOOL: i32 = 3;
/// With this, that its tool refused every flow at once.
pub const EXIT_TOOL_REFUSED: i32 = 5;

/// The names of the files that a script leaves in its folder.
pub mod files {
    /// The script itself.
    pub const JOB: &str = "job.sh";
    /// Output of the workload; over ssh without mpirun each node has its own.
    pub const STDOUT: &str = "stdout";
    /// As `STDOUT`, for stderr.
    pub const STDERR: &str = "stderr";
    /// What the script itself prints; not over ssh.
    pub const BATCH_OUT: &str = "batch.out";
    /// As `BATCH_OUT`, for stderr.
    pub const BATCH_ERR: &str = "batch.err";
    /// Under Slurm: the variables that the script inherited from the shell that submitted it, as far as they matter.
    pub const ENVIRONMENT: &str = "environment.txt";
    /// The script's own exit code: written last, under a temporary name first, so that it is complete or absent.
    pub const EXIT_CODE: &str = "exit_code";
    /// On this machine: the session's id, should the answer to the launch be lost.
    pub const PID: &str = "pid";
    /// On this machine: the group, when it began, and since which start of the machine.
    pub const GROUP: &str = "group";
    /// Makes `INSPECTOR`.
    pub const INSPECTOR_SCRIPT: &str = "inspector.sh";
    /// What NCCL's Inspector recorded, of all ranks.
    pub const INSPECTOR: &str = "inspector.txt";
    /// Runs a program and reads the state of GPUs.
    pub const GPU_STATE_SCRIPT: &str = "gpu_state.sh";
    /// Measures what lies between two nodes.
    pub const LINKS_SCRIPT: &str = "links.sh";
    /// Asks Slurm for some of the GPUs of its job.
    pub const GPU_ALLOCATION_SCRIPT: &str = "gpu_allocation.sh";
    /// Runs a program and names the busiest processes beside it.
    pub const BUSY_SCRIPT: &str = "busy.sh";
    /// What torchrun starts where PyTorch runs a collective.
    pub const TORCH_COLLECTIVE: &str = "torch_collective.py";
    /// What Python runs where PyTorch loads the GPUs.
    pub const TORCH_BURN: &str = "torch_burn.py";
    /// What torchrun starts where PyTorch trains a small model.
    pub const TORCH_DDP: &str = "torch_ddp.py";
    /// Output of the samplers; over ssh it goes to `LOG`.
    pub const SAMPLER_LOG: &str = "sampler.log";
    /// Over ssh: runs containers.
    pub const CONTAINER: &str = "container.sh";
    /// Over ssh, by node: the digest of the image.
    pub const IMAGE: &str = "image";
    /// Over ssh, by node: the output of its script.
    pub const LOG: &str = "log";
    /// Which nodes ranks are started on, and how many on each: over ssh for mpirun, for srun where a topology orders them.
    pub const HOSTFILE: &str = "hostfile";
    /// Over ssh: there once anything of the job may have been started.
    pub const STARTED: &str = "started";
    /// Over ssh: starts and ends the script on a node.
    pub const SUPERVISOR: &str = "supervisor.sh";
    /// Its name in plans of older versions.
    pub const OLDER_SUPERVISOR: &str = "lease.sh";
    /// In pods: what mpirun calls in place of ssh, and what answers it on the other nodes.
    pub const AGENT: &str = "agent.sh";
    /// In the folder of an allocation: runs the scripts of its jobs.
    pub const ALLOCATION: &str = "allocation.sh";
    /// In the folder of an allocation: nothing more is run in it.
    pub const CLOSE: &str = "close";
    /// In the folder of a job that shares an allocation: it was begun.
    pub const BEGAN: &str = "began";
    /// In the folder of a job that shares an allocation: how it ended.
    pub const ENDED: &str = "ended";
    /// There too: it is asked to end by itself.
    pub const INTERRUPT: &str = "interrupt";
    /// There too: it is ended.
    pub const CANCEL: &str = "cancel";

    /// In the folder of an allocation: the number of the job whose turn is the `turn`th.
    pub fn turn(turn: u32) -> String {
        format!("turn.{turn}")
    }

    /// The file of one node, where every node has its own of that name.
    pub fn node_file(name: &str, node: &str) -> String {
        format!("{name}.{node}")
    }

    /// The state of one node's GPUs.
    pub fn gpu_state(node: &str) -> String {
        format!("gpu_state.{node}.txt")
    }

    /// Readings of the sampler on one node.
    pub fn counters(node: &str) -> String {
        format!("counters.{node}.txt")
    }

    /// The node whose readings a file of that name holds.
    pub fn node_of_counters(name: &str) -> Option<&str> {
        name.strip_prefix("counters.")?.strip_suffix(".txt")
    }

    /// stdout of the process on one GPU.
    pub fn gpu_out(gpu: u32, node: &str) -> String {
        format!("gpu{gpu}.{node}.out")
    }

    /// stderr of the process on one GPU.
    pub fn gpu_err(gpu: u32, node: &str) -> String {
        format!("gpu{gpu}.{node}.err")
    }

    /// What the client of one flow prints.
    pub fn flow_out(device: &str) -> String {
        format!("{device}.out")
    }
}

/// The scripts that are the same in every job, by the name under which they are put into its folder.
pub const SHARED: [(&str, &str); 17] = [
    (files::GPU_STATE_SCRIPT, GPU_STATE_SH),
    (files::LINKS_SCRIPT, LINKS_SH),
    (files::GPU_ALLOCATION_SCRIPT, GPU_ALLOCATION_SH),
    (files::BUSY_SCRIPT, BUSY_SH),
    (files::TORCH_COLLECTIVE, TORCH_COLLECTIVE_PY),
    (files::TORCH_BURN, TORCH_BURN_PY),
    (files::TORCH_DDP, TORCH_DDP_PY),
    ("counters.sh", COUNTERS_SH),
    (files::INSPECTOR_SCRIPT, INSPECTOR_SH),
    ("gpus.sh", GPUS_SH),
    ("flows.sh", FLOWS_SH),
    ("profile.sh", PROFILE_SH),
    (files::SUPERVISOR, SUPERVISOR_SH),
    (files::AGENT, AGENT_SH),
    (files::CONTAINER, CONTAINER_SH),
    (HOOK_FILE, HOOK_PY),
    (files::ALLOCATION, ALLOCATION_SH),
];

/// The hostfile of mpirun: the nodes of a job, each with slots for so many ranks.
pub fn hostfile(nodes: &[String], ranks_per_node: u32) -> String {
    nodes.iter().map(|node| format!("{node} slots={ranks_per_node}\n")).collect()
}

/// The same for srun, which takes tasks from it in its order.
pub fn task_list(nodes: &[String], tasks_per_node: u32) -> String {
    nodes.iter().map(|node| format!("{node}*{tasks_per_node}\n")).collect()
}

/// Nodes in another order than that of their names.
pub fn is_reordered(nodes: &[String]) -> bool {
    !nodes.is_sorted_by(|a, b| nodeset::compare(a, b).is_le())
}

/// A plan of an older version names the supervisor as that version did.
pub fn shared_text(name: &str) -> Option<&'static str> {
    let name = if name == files::OLDER_SUPERVISOR { files::SUPERVISOR } else { name };
    SHARED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
