//! An inventory: which nodes there are, of which instance type, and how they are reached, as `inventory/*.toml` says
//! it. Instance types have files of their own (`instance.rs`); reaching the nodes is the business of `reach`.

mod extra;
pub mod instance;
mod probe;
mod read;
mod select;
mod world;

pub use instance::{FlowOp, Instance, Instances, Transport};
pub use world::WorldSettings;

use crate::diagnostic::Diagnostics;
use crate::facts::Requirement;
use job::profile::NsysVersion;
use job::script::GpuRequest;
use model::artefact::Launcher;
use std::collections::BTreeMap;

/// An inventory, from `inventory/NAME.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// The file's stem.
    pub name: String,
    /// As `kind` in the file.
    pub kind: Kind,
    /// The type of every node.
    pub instance: Instance,
    /// Each name once, in the order of the file.
    pub nodes: Vec<String>,
    /// `[groups]`, such as racks: `--nodes @rack1` selects one.
    pub groups: BTreeMap<String, Vec<String>>,
    /// `[reach]`; Slurm for a simulated cluster that has none.
    pub reach: ReachBy,
    /// `[paths]`, on the nodes.
    pub paths: Paths,
    /// `[container]`, which needs Pyxis; jobs run on the host where absent.
    pub container: Option<Container>,
    /// `[environment]` of every job; a case's own values win.
    pub environment: BTreeMap<String, String>,
    /// What makes the flows of `nic-pairs`; `fi_rma_bw` by default.
    pub nic_tool: NicTool,
    /// The release of nsys on the nodes: which switches it has is decided before anything is launched.
    pub nsys_version: Option<NsysVersion>,
    /// What every node must be and have, beside what its instance has.
    pub probe: Vec<Requirement>,
    /// How a simulated cluster differs from a stock one.
    pub world: WorldSettings,
    /// As messages show it: `inventory/default.toml`.
    pub file: String,
}

/// Whether there are machines behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A model, on a paused clock.
    Simulated,
    /// Real nodes, or this machine alone.
    Real,
}

/// How its nodes are reached and jobs start there: `reach.via`.
// There are few of them: a box would only be in the way.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq)]
pub enum ReachBy {
    /// By sbatch and srun.
    Slurm(SlurmReach),
    /// One by one over ssh, without a scheduler.
    Ssh(SshReach),
    /// This machine alone.
    Local,
}

impl ReachBy {
    /// What starts jobs there.
    pub fn launcher(&self) -> Launcher {
        match self {
            ReachBy::Slurm(_) => Launcher::Slurm,
            ReachBy::Ssh(_) => Launcher::Ssh,
            ReachBy::Local => Launcher::Local,
        }
    }
}

/// `[reach]` with `via = "slurm"`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlurmReach {
    /// `--partition`.
    pub partition: Option<String>,
    /// `--account`.
    pub account: Option<String>,
    /// `--reservation`; that of the command line replaces it.
    pub reservation: Option<String>,
    /// `--constraint`, with Slurm's operators on features.
    pub constraint: Option<String>,
    /// `--qos`.
    pub qos: Option<String>,
    /// Of a node; `0` is all of it.
    pub mem: Option<String>,
    /// How GPUs are asked for; by GRES, where it does not say.
    pub gpus: Option<GpuRequest>,
    /// Further arguments of sbatch, such as `--comment=acceptance`.
    pub sbatch: Vec<String>,
    /// Further arguments of each srun, in jobs and of the probe.
    pub srun: Vec<String>,
    /// Where Slurm's commands are called, over ssh; on this machine, where absent.
    pub login: Option<String>,
    /// A configuration file for the ssh to it.
    pub login_config: Option<String>,
    /// So many jobs of a run are in the queue or run at the same time; as many as nodes allow, where absent.
    pub most_jobs: Option<u32>,
    /// Jobs of a run that follow each other on the same nodes share an allocation of no more than so many seconds; each
    /// has one of its own, where absent.
    pub share: Option<u64>,
    /// What `srun --mpi` is given.
    pub mpi: String,
    /// `--exclusive`: whole nodes; so by default.
    pub exclusive: bool,
}

impl SlurmReach {
    /// As the inventory has it, or by GRES.
    pub fn gpu_request(&self) -> GpuRequest {
        self.gpus.unwrap_or_default()
    }

    /// What sbatch and srun are both given, by the names of their options.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("reservation", &self.reservation),
            ("constraint", &self.constraint),
            ("qos", &self.qos),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// `[reach]` with `via = "ssh"`.
#[derive(Debug, Clone, PartialEq)]
pub struct SshReach {
    /// `ssh -l`; left to ssh where absent.
    pub user: Option<String>,
    /// `ssh -p`; left to ssh where absent.
    pub port: Option<u16>,
    /// A configuration file for ssh.
    pub config: Option<String>,
    /// `mpirun` by default.
    pub start: SshStart,
    /// What was started on a node ends by itself when the harness has not looked for so long.
    pub heartbeat_timeout_s: u64,
}

/// How the ranks of nccl-tests come about without a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SshStart {
    /// One mpirun on the first node of a job, which reaches the others by ssh of its own.
    Mpirun,
    /// One process on each node, with its rank in the environment; then nothing connects nccl-tests.
    Processes,
}

/// `[paths]`: where programs and files lie on the nodes, from `/` on.
#[derive(Debug, Clone, PartialEq)]
pub struct Paths {
    /// A folder that all nodes see.
    pub shared: String,
    /// The folder with the programs of nccl-tests.
    pub nccl_tests: String,
    /// mpirun, where ssh starts jobs; looked for on the node, where absent.
    pub mpirun: Option<String>,
    /// For profiled jobs; the newest that a node has, where absent.
    pub nsys: Option<String>,
    /// The folder with Slurm's commands, where they are not on PATH.
    pub slurm: Option<String>,
    /// This program, where all nodes see it.
    pub harness: Option<String>,
    /// Where devices and their counters lie; `{host}` in it is the node's name.
    pub counters: String,
    /// Of training suites.
    pub samples: SamplePaths,
}

/// Where published training samples lie, each as its folder or its script; where they are published, where absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplePaths {
    /// The FSDP sample of awsome-distributed-training, or its `train.py`.
    pub fsdp: Option<String>,
    /// NeMo, or `megatron_gpt_pretraining.py` in it.
    pub nemo: Option<String>,
    /// Megatron-LM, or its `pretrain_gpt.py`.
    pub megatron: Option<String>,
    /// Hugging Face's transformers, or `run_clm.py` in it.
    pub ddp: Option<String>,
    /// The torchrun of the environment that they run in.
    pub torchrun: Option<String>,
}

/// `[container]`: the image that jobs run in.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// `--container-image` of srun.
    pub image: String,
    /// `--container-mounts` of srun, each `/source:/target`.
    pub mounts: Vec<String>,
    /// `--container-mount-home` of srun; not by default.
    pub mount_home: bool,
    /// `--container-remap-root` of srun; not by default.
    pub remap_root: bool,
    /// Unpacked once on each node for a run, and kept there under the run's name.
    pub reuse: bool,
}

/// The program that makes the flows of `nic-pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicTool {
    /// Of libfabric's fabtests.
    FiRmaBw,
    /// Of perftest; `ib_read_bw` where flows are reads.
    IbWriteBw,
}

impl NicTool {
    /// As in the file, and the program's own: `fi_rma_bw`.
    pub fn name(self) -> &'static str {
        match self {
            NicTool::FiRmaBw => "fi_rma_bw",
            NicTool::IbWriteBw => "ib_write_bw",
        }
    }
}

/// A name of Slurm or ssh: it becomes an argument, so it must be one word and no option.
fn is_word(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.,@+:".contains(c);
    !text.is_empty() && text.chars().all(allowed) && !text.starts_with('-')
}

impl Inventory {
    /// Reads an inventory, or reports every error in it.
    pub fn read(text: &str, file: &str, instances: &Instances) -> Result<Inventory, Diagnostics> {
        read::inventory(text, file, instances)
    }

    /// By its `kind`.
    pub fn is_simulated(&self) -> bool {
        self.kind == Kind::Simulated
    }

    /// Has jobs run inside another reservation of Slurm than the file says, or inside one at all.
    pub fn reserve(&mut self, name: &str) -> Result<(), String> {
        let ReachBy::Slurm(slurm) = &mut self.reach else {
            return Err(format!("only Slurm has reservations, inventory `{}` does not use Slurm", self.name));
        };
        if !is_word(name) {
            return Err(format!("not a reservation name: {name:?}"));
        }
        slurm.reservation = Some(name.to_owned());
        Ok(())
    }

    /// The nodes that `--nodes` and `--exclude-nodes` leave, in the inventory's order. `@group` stands for a group.
    pub fn select(&self, nodes: Option<&str>, exclude: Option<&str>) -> Result<Vec<String>, String> {
        select::select(self, nodes, exclude)
    }
}

#[cfg(test)]
mod tests;
