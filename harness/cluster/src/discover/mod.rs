//! Which nodes a scheduler has, asked once and written into an inventory: plans and lists read that file only. Nodes that
//! take no jobs are named with the scheduler's reasons and left out.

mod demands;
mod json;
pub mod kubernetes;
#[cfg(test)]
mod message_tests;
mod queries;
mod render;
mod selection;
#[cfg(test)]
mod tests;
mod text;

pub use render::render;

use crate::reach::Reach;
use crate::reach::slurm_state::StateSet;
use base::nodeset;
use base::text::count;
use config::inventory::Instances;
use job::script::GpuRequest;
use std::collections::{BTreeMap, BTreeSet};

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// `--partition`: only its nodes are asked for.
    pub partition: String,
    /// A node must have all of them.
    pub features: Vec<String>,
    /// `--reservation`: only nodes of it; None for all of the partition.
    pub reservation: Option<String>,
    /// A profile, or EC2's name of an instance type; what Slurm says of the nodes, where absent.
    pub instance: Option<String>,
}

/// A node as Slurm reports it, in whichever format.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    name: String,
    state: StateSet,
    features: BTreeSet<String>,
    /// Nothing where its GRES names no GPU.
    gpus: Option<u32>,
    /// The profile of the MIG instances that stand for GPUs there.
    mig: Option<String>,
    /// GPUs that Slurm gives to no job; nothing where it names none, and in releases whose text does not say.
    gpus_drained: Option<u32>,
    instance_type: Option<String>,
    reason: Option<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reason {
    text: String,
    by: Option<String>,
    since: Option<String>,
}

/// What Slurm reports, as far as an inventory is written from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    /// As it calls itself.
    pub slurm: String,
    /// The profile that the nodes match, such as `p5`.
    pub instance: String,
    /// In natural order.
    pub nodes: Vec<String>,
    /// Features that some of the nodes have, and not all of them.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Nodes that take no jobs, or do not match the profile.
    pub left_out: Vec<LeftOut>,
    /// How GPUs are asked for here: by GRES, where its nodes have some.
    pub gpus: GpuRequest,
    /// A QOS that the partition demands and the user has.
    pub qos: Option<String>,
    /// Memory to ask for, where Slurm shares it out.
    pub mem: Option<String>,
    /// What srun wires ranks together with; nothing where it did not say.
    pub mpi: Option<String>,
    /// What `scontrol show topology` printed, where Slurm has a topology.
    pub topology: Option<String>,
    /// Nodes that are powered down, and boot for the first job on them.
    pub boot: Vec<String>,
    /// What a person should know beside it.
    pub notes: Vec<String>,
}

/// A node that is not written into the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// As the scheduler names it.
    pub node: String,
    /// Its state and the scheduler's reason, or how it differs from the profile.
    pub why: String,
}

/// Why there is no inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// What was asked for does not exist, or too little was said.
    InvalidRequest(String),
    /// The scheduler gave no answer that can be used.
    NoAnswer(String),
    /// There are nodes, and none of them takes jobs.
    NoUsableNode(Vec<LeftOut>),
}

/// The partition of jobs that name none; why not, where Slurm gives no answer.
pub async fn default_partition(reach: &dyn Reach) -> Result<Option<String>, String> {
    queries::default_partition(reach).await
}

/// Asks Slurm's commands on this machine. Nothing is changed there.
pub async fn discover(
    reach: &dyn Reach,
    request: &Request,
    instances: &Instances,
) -> Result<Discovered, Failure> {
    let slurm = queries::version(reach).await?;
    let reserved = match &request.reservation {
        Some(name) => Some(queries::reservation(reach, name).await?),
        None => None,
    };
    let nodes = queries::nodes(reach, &slurm, &request.partition).await?;
    if nodes.is_empty() {
        return Err(queries::no_nodes(reach, &request.partition).await);
    }
    let mut found = selection::select(nodes, reserved, request, instances, slurm.version)?;
    let config = queries::config(reach).await;
    if !found.boot.is_empty() {
        let took = demands::value(&config, "ResumeTimeout").filter(|time| (1..40).contains(&time.len()));
        let took = took.map(|time| format!(", which may take {time} (ResumeTimeout)")).unwrap_or_default();
        let (n, nodes) = (count(found.boot.len(), "node"), nodeset::fold(&found.boot));
        found.notes.push(format!("{n} powered down, the first job on each boots it{took}: {nodes}"));
    }
    let demands = demands::demands(reach, &request.partition, &config).await;
    (found.qos, found.mem) = (demands.qos, demands.mem);
    found.notes.extend(demands.notes);
    found.topology = queries::topology(reach).await;
    found.mpi = queries::mpi(reach).await;
    if let Some(mpi) = found.mpi.as_deref().filter(|mpi| *mpi != "pmix") {
        found.notes.push(format!(
            "srun has no pmix plugin, which MPI programs of nccl-tests usually need; wrote mpi = \"{mpi}\""
        ));
    }
    Ok(found)
}
