//! What an isolation names, and what it says where it cannot. Codes for people are given in `code`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of the fleet; nodes and groups by their number in `Fleet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// All of it alike.
    Node(usize),
    /// The node, and the GPU's index on it.
    Gpu(usize, usize),
    /// Between its GPUs.
    NvLink(usize),
    /// The node, and the NIC's index in the instance type's list.
    Nic(usize, usize),
    /// What all of its NICs go through.
    Port(usize),
    /// On that node, and in none of its parts by itself.
    Somewhere(usize),
    /// Between two topology groups.
    Link(usize, usize),
}

impl Place {
    /// The node that it lies on; `None` for a link.
    pub fn node(self) -> Option<usize> {
        match self {
            Place::Node(node)
            | Place::Gpu(node, _)
            | Place::NvLink(node)
            | Place::Nic(node, _)
            | Place::Port(node)
            | Place::Somewhere(node) => Some(node),
            Place::Link(..) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Node(_) | Place::Somewhere(_) => f.write_str("node"),
            Place::Gpu(_, gpu) => write!(f, "gpu{gpu}"),
            Place::NvLink(_) => f.write_str("nvlink"),
            Place::Nic(_, nic) => write!(f, "nic{nic}"),
            Place::Port(_) => f.write_str("port"),
            Place::Link(a, b) => write!(f, "link {a}-{b}"),
        }
    }
}

/// A part that is proven slow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The slow part.
    pub place: Place,
    /// The part of the healthy rate that is left.
    pub left: f64,
}

/// The result of an isolation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// Proven faults, sorted by place.
    pub named: Vec<Named>,
    /// Nodes that are slow by less than is looked for, or not surely.
    pub suspects: Vec<usize>,
    /// Nodes that reached their peers' rate with others, and are neither named nor suspects.
    #[serde(default)]
    pub good: Vec<usize>,
    /// Questions that stayed open, one line each; nodes and groups are numbers.
    pub open: Vec<String>,
    /// What a named fault may hide, one line each; nodes are numbers.
    pub notes: Vec<String>,
    /// The part of its rate that something must have lost to be found, by that `spread`.
    pub looked_for: f64,
    /// Relative standard deviation of runs on whole nodes, such as 0.03.
    pub spread: f64,
}

impl Conclusion {
    /// No suspect and no open question is left.
    pub fn is_certain(&self) -> bool {
        self.suspects.is_empty() && self.open.is_empty()
    }
}
