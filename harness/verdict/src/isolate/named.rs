//! What an isolation names, and what it says where it cannot. Codes for people are given in `code`.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// All of it alike.
    Node(usize),
    Gpu(usize, usize),
    /// Between its GPUs.
    NvLink(usize),
    Nic(usize, usize),
    /// What all of its NICs go through.
    Port(usize),
    /// On that node, and in none of its parts by itself.
    Somewhere(usize),
    /// Between two topology groups.
    Link(usize, usize),
}

impl Place {
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

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Named {
    pub place: Place,
    /// The part of the healthy rate that is left.
    pub left: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    pub named: Vec<Named>,
    /// Nodes that are slow by less than is looked for, or not surely.
    pub suspects: Vec<usize>,
    pub open: Vec<String>,
    pub notes: Vec<String>,
    /// The part of its rate that something must have lost to be found, by that `spread`.
    pub looked_for: f64,
    pub spread: f64,
}

impl Conclusion {
    pub fn is_certain(&self) -> bool {
        self.suspects.is_empty() && self.open.is_empty()
    }
}
