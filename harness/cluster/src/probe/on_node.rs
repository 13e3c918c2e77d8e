//! One command on one node, outside of the jobs of a plan: nodes are probed so. The launchers that can do it, by the
//! inventory's `reach`.

use crate::reach::{Host, Reach, Wait};
use config::inventory::{ReachBy, SshReach};
use model::artefact::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a launcher runs one command on one node.
pub(crate) trait OnNode {
    /// By node, what a queue reports of it before it is asked itself.
    fn states<'a>(&'a self, _reach: &'a dyn Reach) -> Wait<'a, BTreeMap<String, NodeState>> {
        Box::pin(async { BTreeMap::new() })
    }

    /// By node, what a server that keeps the nodes reports of it before it is asked itself.
    fn reported<'a>(&'a self, _nodes: &'a [String]) -> Wait<'a, BTreeMap<String, Reported>> {
        Box::pin(async { BTreeMap::new() })
    }

    /// How many minutes a command may ask for, where a queue counts them.
    fn minutes<'a>(&'a self, _reach: &'a dyn Reach) -> Wait<'a, u32> {
        Box::pin(async { 0 })
    }

    /// The host that runs it, and its arguments there.
    fn command(&self, node: &str, argv: Vec<String>, job: &NodeJob<'_>) -> (Host, Vec<String>);

    /// How long it is waited for, where a queue makes it wait; `boots` where its node is powered down.
    fn limit(&self, _boots: bool) -> Option<Duration> {
        None
    }

    /// Ends what still runs under that name.
    fn end<'a>(&'a self, _reach: &'a dyn Reach, _name: &'a str) -> Wait<'a, ()> {
        Box::pin(async {})
    }
}

/// What a queue reports of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub state: String,
    /// Why nothing starts on it, where nothing does.
    pub unusable: Option<String>,
    /// It is powered down, and boots for the job that comes to it.
    pub boots: bool,
    /// The GPUs that its GRES names, 0 where it names none; nothing where that is not reported.
    pub gres_gpus: Option<u32>,
}

/// What a server reports of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    pub facts: BTreeMap<String, Value>,
    /// Facts that it did not report, and why.
    pub unknown: BTreeMap<String, String>,
    /// Labels of its GPUs, to be compared with what the node reports of them itself.
    pub gpu_labels: Option<BTreeMap<String, String>>,
    /// Why no job on it can pass.
    pub unusable: Option<String>,
}

/// What a queue is asked for.
pub(crate) struct NodeJob<'a> {
    /// No other job has that name.
    pub name: &'a str,
    /// Of a node.
    pub gpus: u32,
    /// Its time limit.
    pub minutes: u32,
}

/// The launcher of an inventory.
pub(crate) fn on_node(reach: &ReachBy) -> &dyn OnNode {
    match reach {
        ReachBy::Slurm(slurm) => slurm,
        ReachBy::Ssh(ssh) => ssh,
        ReachBy::Kubernetes(pods) => pods,
        ReachBy::Local => &ThisMachine,
    }
}

impl OnNode for SshReach {
    fn command(&self, node: &str, argv: Vec<String>, _job: &NodeJob<'_>) -> (Host, Vec<String>) {
        (Host::Node(node.to_owned()), argv)
    }
}

struct ThisMachine;

impl OnNode for ThisMachine {
    fn command(&self, _node: &str, argv: Vec<String>, _job: &NodeJob<'_>) -> (Host, Vec<String>) {
        (Host::Here, argv)
    }
}
