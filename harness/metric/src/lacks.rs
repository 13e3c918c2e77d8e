//! Numbers of a job that are missing, of low confidence, or not comparable, and why.

use crate::Dims;
use serde::{Deserialize, Serialize};

/// Numbers that stand there, and still say nothing: of other ranks than declared, of a table that is cut, or such as
/// contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotComparable {
    /// In a word.
    pub cause: String,
    /// For people: what was expected and what was found.
    pub why: String,
}

/// Some numbers of a job that cannot be compared with anything, as long as two accounts of the same thing contradict each
/// other: its other numbers stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contradiction {
    /// The names of their metrics.
    pub metrics: Vec<String>,
    /// Of which rows, as far as it is not about all.
    pub dims: Dims,
    /// In a word.
    pub cause: String,
    /// With both numbers.
    pub why: String,
}

/// Metrics of a node that no part of it can give, since what they are read from came with a later release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// The node's name.
    pub node: String,
    /// For people, with the release that has the source.
    pub why: String,
}

/// A report that was not read: it gives no number, and says nothing about its node.
pub const NOT_READ: &str = "report-not-read";
