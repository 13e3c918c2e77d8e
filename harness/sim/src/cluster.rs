//! The hardware that is simulated: nodes with their GPUs and NICs, taken from the inventory, and what ails them.
//! What an active fault does to a job is decided in `execution`.

use super::bad_facts;
use super::model::Model;
use super::traffic;
use base::nodeset;
use base::suggest::nearest;
use config::inventory::{FlowOp, Inventory, WorldSettings};
use model::artefact::Launcher;
use model::fault::{Fault, NodeFault};
use std::collections::{BTreeMap, BTreeSet};

/// The hardware of an inventory, and the faults to simulate on it.
pub struct Cluster {
    /// Decides every random draw.
    pub seed: u64,
    /// By name, as in the inventory.
    pub nodes: BTreeSet<String>,
    /// As AWS names its family: `p5`.
    pub instance: String,
    /// Of one node.
    pub gpus: u32,
    /// As the driver calls it.
    pub gpu_name: String,
    /// Of one GPU.
    pub peak_tflops: f64,
    /// Device names of one node, such as `rdmap113s0`, as the inventory lists them.
    pub nics: Vec<String>,
    /// Each NIC's part of a node's traffic.
    pub weights: Vec<f64>,
    /// Line rate of one NIC, in GB/s.
    pub line_gb_s: f64,
    /// The GPU behind the same PCIe switch as each NIC, and what such a switch moves to and from the host's memory.
    pub gpu_of_nic: Vec<u32>,
    /// In GB/s; without it, nothing of that kind limits flows.
    pub host_link_gb_s: Option<f64>,
    /// Data crosses the fabric by reads of the receiver, not by writes of the sender.
    pub reads: bool,
    /// How long a collective takes on sound hardware.
    pub model: Model,
    /// Nodes are reached one by one over ssh, and there is no Slurm.
    pub by_ssh: bool,
    /// How it differs from a stock cluster.
    pub world: WorldSettings,
    /// Nodes that are near each other.
    groups: Vec<Vec<String>>,
    /// The folder that all nodes see.
    shared: String,
    faults: Vec<NodeFault>,
    case_faults: BTreeMap<String, Vec<NodeFault>>,
}

impl Cluster {
    /// `faults` act in all cases, `case_faults` in the case of that name alone.
    pub fn new(
        inventory: &Inventory,
        seed: u64,
        faults: Vec<NodeFault>,
        case_faults: BTreeMap<String, Vec<NodeFault>>,
    ) -> Result<Cluster, String> {
        let instance = &inventory.instance;
        let names: Vec<&str> = instance.like.as_deref().into_iter().chain([instance.name.as_str()]).collect();
        let wire = instance.nic_line_rate_gb_s * instance.nics.len() as f64;
        let cluster = Cluster {
            seed,
            nodes: inventory.nodes.iter().cloned().collect(),
            instance: instance.name.trim_start_matches("sim-").to_owned(),
            gpus: instance.gpus,
            gpu_name: driver_name(&instance.gpu),
            // An unknown GPU is taken for the usual one.
            peak_tflops: instance.bf16_tflops.unwrap_or(989.0),
            weights: traffic::weights(seed, &instance.nics),
            nics: instance.nics.clone(),
            line_gb_s: instance.nic_line_rate_gb_s,
            gpu_of_nic: (0..instance.nics.len()).map(|nic| instance.gpu_of_nic(nic)).collect(),
            host_link_gb_s: instance.host_link_gb_s,
            reads: instance.flow_op == FlowOp::Read,
            model: Model::new(&names, wire, instance.nvlink_gb_s),
            shared: format!("{}/", inventory.paths.shared.trim_end_matches('/')),
            world: inventory.world.clone(),
            groups: inventory.groups.values().cloned().collect(),
            by_ssh: inventory.reach.launcher() == Launcher::Ssh,
            faults,
            case_faults,
        };
        for fault in cluster.faults.iter().chain(cluster.case_faults.values().flatten()) {
            cluster.check(fault)?;
        }
        Ok(cluster)
    }

    /// What ails the nodes of a job of `case`, in the order given.
    pub fn faults_of<'a>(&'a self, case: &str, nodes: &'a [String]) -> impl Iterator<Item = &'a NodeFault> {
        let of_case = self.case_faults.get(case).map(Vec::as_slice).unwrap_or_default();
        self.faults.iter().chain(of_case).filter(|fault| self.stands_for(fault, nodes).is_some())
    }

    /// The node of a job that a fault shows on, by its place there. A link shows where there are nodes at both ends.
    pub(crate) fn stands_for(&self, fault: &NodeFault, nodes: &[String]) -> Option<usize> {
        let Fault::LinkSlow { other, .. } = &fault.fault else {
            return nodes.iter().position(|node| *node == fault.node);
        };
        let near = |end: &String| self.groups.iter().find(|group| group.contains(end));
        let (here, there) = (near(&fault.node)?, near(other)?);
        let is_across = here != there && nodes.iter().any(|node| there.contains(node));
        nodes.iter().position(|node| here.contains(node)).filter(|_| is_across)
    }

    /// Whether a fact is bad on some node, whichever.
    pub(crate) fn has_bad(&self, name: &str) -> bool {
        self.faults.iter().any(|fault| matches!(&fault.fault, Fault::BadFact { fact } if fact == name))
    }

    /// The case whose folder holds a path: the part after the run's id, which must change nothing.
    pub(crate) fn case_of<'a>(&self, path: &'a str) -> &'a str {
        path.strip_prefix(&self.shared).and_then(|rest| rest.split('/').nth(1)).unwrap_or_default()
    }

    /// Whether a node never answers, in the jobs of `case`.
    pub(crate) fn is_unreachable(&self, case: &str, node: &str) -> bool {
        let nodes = [node.to_owned()];
        self.faults_of(case, &nodes).any(|fault| fault.fault == Fault::HostUnreachable)
    }

    fn check(&self, NodeFault { node, fault }: &NodeFault) -> Result<(), String> {
        let launcher = if self.by_ssh { Launcher::Ssh } else { Launcher::Slurm };
        if !Fault::happens_on(fault.kind(), launcher) {
            return Err(format!("fault `{}` does not exist on nodes reached by {launcher}", fault.kind()));
        }
        let hint = |near: Option<&str>, there: String| match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {there}"),
        };
        if !self.nodes.contains(node) {
            let near = nearest(node, self.nodes.iter().map(String::as_str));
            let nodes: Vec<&String> = self.nodes.iter().collect();
            return Err(format!("fault on unknown node `{node}`; {}", hint(near, nodeset::fold(&nodes))));
        }
        if let Fault::LinkSlow { other, .. } = fault {
            let group = |end: &String| self.groups.iter().position(|group| group.contains(end));
            match (group(node), group(other)) {
                (Some(here), Some(there)) if here != there => {}
                _ => {
                    return Err(format!(
                        "link-slow needs two nodes of different `[groups]` of the inventory, not `{node}` and `{other}`"
                    ));
                }
            }
        }
        if let Some(device) = fault.device()
            && !self.nics.iter().any(|nic| nic == device)
        {
            let near = nearest(device, self.nics.iter().map(String::as_str));
            let there = nodeset::fold(&self.nics);
            return Err(format!("fault on unknown NIC `{device}`; {}", hint(near, there)));
        }
        if let Fault::BadFact { fact } = fault
            && !bad_facts::names().any(|name| name == fact)
        {
            let near = nearest(fact, bad_facts::names());
            let there = bad_facts::names().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "fault on fact `{fact}`, which a simulated node cannot have bad; {}",
                hint(near, there)
            ));
        }
        if let Some(gpu) = fault.gpu().filter(|gpu| *gpu >= self.gpus) {
            let last = self.gpus.saturating_sub(1);
            return Err(format!("fault on unknown GPU `{gpu}`; the last is `{last}`"));
        }
        Ok(())
    }
}

fn driver_name(gpu: &str) -> String {
    match gpu {
        "H100" => "NVIDIA H100 80GB HBM3".to_owned(),
        "A100" => "NVIDIA A100-SXM4-80GB".to_owned(),
        other if other.starts_with("NVIDIA") => other.to_owned(),
        other => format!("NVIDIA {other}"),
    }
}
