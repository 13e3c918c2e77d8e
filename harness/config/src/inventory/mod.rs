//! An inventory: which nodes there are, of which instance type, and how they are reached, as `inventory/*.toml` says
//! it. Instance types have files of their own (`instance.rs`); reaching the nodes is the business of `reach`.

pub(crate) mod form;
mod gres;
mod hardware;
pub mod instance;
mod launcher;
mod read;
mod select;
mod stack;
mod topology;
mod world;

pub use gres::GresReport;
pub use hardware::DeliveredHardware;
pub use instance::{FlowOp, Instance, Instances, Transport};
pub use launcher::{
    JobNeeds, JobSite, KubernetesReach, LaunchPlanner, ReachBy, SlurmReach, SshReach, SshStart, Toleration,
    is_object_name,
};
pub use stack::Stack;
pub use topology::{Topology, TopologyFile};
pub use world::WorldSettings;

use crate::diagnostic::Diagnostics;
use crate::facts::Requirement;
use base::nodeset;
use job::profile::NsysVersion;
use job::script::Runtime;
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
    /// `[topology]`: where it is read from.
    pub topology: Option<TopologyFile>,
    /// What that file says of the nodes: ranks are numbered along it. By name where absent.
    pub network: Option<Topology>,
    /// `[reach]`; Slurm for a simulated cluster that has none.
    pub reach: ReachBy,
    /// `[paths]`, on the nodes.
    pub paths: Paths,
    /// `[container]`: by Pyxis under Slurm, by docker or podman over ssh; jobs run on the host where absent.
    pub container: Option<Container>,
    /// `[environment]` of every job; a case's own values win.
    pub environment: BTreeMap<String, String>,
    /// `[publish]`: where every run is published below its id.
    pub publish: Option<String>,
    /// What makes the flows of `nic-pairs`; `fi_rma_bw` by default.
    pub nic_tool: NicTool,
    /// The release of nsys on the nodes: which switches it has is decided before anything is launched.
    pub nsys_version: Option<NsysVersion>,
    /// What every node must be and have, beside what its instance has.
    pub probe: Vec<Requirement>,
    /// `[[hardware]]`: the numbers of nodes as they were delivered.
    pub hardware: BTreeMap<String, DeliveredHardware>,
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

/// `[paths]`: where programs and files lie on the nodes, from `/` on.
#[derive(Debug, Clone, PartialEq)]
pub struct Paths {
    /// A folder that all nodes see.
    pub shared: String,
    /// The folder with the programs of nccl-tests.
    pub nccl_tests: String,
    /// mpirun, where ssh or kubectl starts jobs; looked for on the node, where absent.
    pub mpirun: Option<String>,
    /// The library of NCCL's Inspector; NCCL looks for it, where absent.
    pub nccl_inspector: Option<String>,
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
    /// By Pyxis, where absent.
    pub runtime: Option<Runtime>,
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

    /// Whether the profile's device names only stand in for those of the nodes, which nothing has reported yet.
    pub fn lacks_device_names(&self) -> bool {
        !self.is_simulated() && !self.instance.device_names_seen
    }

    /// The lines that name the devices; `nics` are those of the nodes, where they are known.
    pub fn device_names_to_write(&self, nics: Option<&[String]>) -> String {
        let (nics, name) = (nics.map_or("...".to_owned(), nodeset::fold), &self.instance.name);
        format!("write `nics = \"{nics}\"` and `device_names_seen = true` into the profile of `{name}`")
    }

    /// Has jobs run inside another reservation of Slurm than the file says, or inside one at all.
    pub fn reserve(&mut self, name: &str) -> Result<(), String> {
        let Some(slurm) = self.reach.slurm_mut() else {
            return Err(format!("only Slurm has reservations, inventory `{}` does not use Slurm", self.name));
        };
        if !is_word(name) {
            return Err(format!("not a reservation name: {name:?}"));
        }
        slurm.reservation = Some(name.to_owned());
        Ok(())
    }

    /// Lets pods of Kubernetes run on nodes with these taints, too; other schedulers have none.
    pub fn bear_taints(&mut self, keys: &[&str]) {
        if let ReachBy::Kubernetes(pods) = &mut self.reach {
            pods.bear(keys);
        }
    }

    /// Sorts the nodes of a job as its ranks are numbered: by the topology where it is known, else by name.
    pub fn sort_for_ranks(&self, nodes: &mut [String]) {
        match &self.network {
            Some(network) => network.sort(nodes),
            None => nodeset::sort(nodes),
        }
    }

    /// The nodes that `--nodes` and `--exclude-nodes` leave, in the order of the topology where it is known, else the
    /// inventory's. `@group` stands for a group.
    pub fn select(&self, nodes: Option<&str>, exclude: Option<&str>) -> Result<Vec<String>, String> {
        select::select(self, nodes, exclude)
    }
}

#[cfg(test)]
mod tests;
