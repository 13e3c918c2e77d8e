//! A run of an isolation: its aim, its nodes and its result. `weigh` compares the runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The nodes by number, and the topology group that each lies in: one for all, where groups are not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// By node number, the number of its topology group.
    pub groups: Vec<usize>,
    /// GPUs of each node.
    pub gpus: usize,
    /// NICs of each node.
    pub nics: usize,
}

impl Fleet {
    /// A fleet in one topology group.
    pub fn flat(nodes: usize, gpus: usize, nics: usize) -> Fleet {
        Fleet { groups: vec![0; nodes], gpus, nics }
    }

    /// Groups of equal size, one after the other.
    pub fn grouped(nodes: usize, groups: usize, gpus: usize, nics: usize) -> Fleet {
        let size = nodes.div_ceil(groups.max(1)).max(1);
        Fleet { groups: (0..nodes).map(|node| node / size).collect(), gpus, nics }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.groups.len()
    }

    /// The node's topology group; 0 for an unknown node.
    pub fn group(&self, node: usize) -> usize {
        self.groups.get(node).copied().unwrap_or_default()
    }

    /// The groups, in order.
    pub fn all_groups(&self) -> Vec<usize> {
        self.groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether these nodes lie in more than one topology group.
    pub(crate) fn spans(&self, nodes: &[usize]) -> bool {
        let mut groups = nodes.iter().map(|node| self.group(*node));
        let first = groups.next();
        groups.any(|group| Some(group) != first)
    }
}

/// What a run is to show. Runs with the same aim are repeats of each other, whoever else takes part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Whether these nodes are good together.
    Set(Vec<usize>),
    /// Whether this node is good with a good partner.
    Node(usize),
    /// Whether the links between these groups are.
    Groups(Vec<usize>),
    /// NVLink only: this node by itself.
    Inside(usize),
    /// Each of its GPUs by itself.
    Gpus(usize),
    /// Fabric only: each of its NICs with that of a good partner.
    Nics(usize),
    /// Good nodes, for the others to be compared with.
    Control,
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::Set(nodes) => write!(f, "nodes {nodes:?} together"),
            Aim::Node(node) => write!(f, "node {node} with a good partner"),
            Aim::Groups(groups) => write!(f, "links between groups {groups:?}"),
            Aim::Inside(node) => write!(f, "node {node} by itself"),
            Aim::Gpus(node) => write!(f, "the GPUs of node {node}"),
            Aim::Nics(node) => write!(f, "the NICs of node {node}"),
            Aim::Control => f.write_str("good nodes to compare with"),
        }
    }
}

/// Only runs of one shape are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A collective on so many nodes, within one group or across several.
    Together {
        /// Nodes of the run.
        nodes: usize,
        /// Whether they lie in more than one topology group.
        across: bool,
    },
    /// A collective within one node.
    Inside,
    /// Each GPU of a node alone; a value for each.
    Gpus,
    /// Flows between the NICs of two nodes; a value for each NIC.
    Nics,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Why the run is made.
    pub aim: Aim,
    /// Which runs it is compared with.
    pub shape: Shape,
    /// The node that the run is about comes first.
    pub nodes: Vec<usize>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// One number; of runs on GPUs or NICs one for each, in their order. What was not measured is no number.
    Values(Vec<Option<f64>>),
    /// The workload itself broke or hung.
    Broke,
    /// No result: the machinery failed.
    Unknown,
}

/// A run with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The run as it was decided.
    pub trial: Trial,
    /// What the run's folder shows of it.
    pub found: Found,
}
