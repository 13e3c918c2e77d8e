//! Who is to blame for a run that went badly, as artefacts hold it. Who that is, is decided in `judge`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The guilty part, or those among which it must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Culprit {
    /// A part at fault.
    Culprit {
        /// The node that has it.
        node: String,
        /// A device name, `gpuN`, `fabric` or `node`.
        part: String,
        /// The measurement or report that names it.
        evidence: String,
        /// Which page `harness explain` has for it; runs of earlier versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// One of these nodes is at fault, and nothing separates them.
    Suspects {
        /// As in the inventory.
        nodes: Vec<String>,
        /// What was observed on them together.
        evidence: String,
    },
    /// No culprit: all parts are equally low.
    Fleet {
        /// What all of them have in common.
        evidence: String,
    },
}

impl Culprit {
    /// The nodes that it names or suspects.
    pub fn nodes(&self) -> Vec<&str> {
        match self {
            Culprit::Culprit { node, .. } => vec![node],
            Culprit::Suspects { nodes, .. } => nodes.iter().map(String::as_str).collect(),
            Culprit::Fleet { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Culprit::Culprit { node, part, evidence, code } => {
                write!(f, "culprit {node} {part}: {evidence}")?;
                code.as_ref().map_or(Ok(()), |code| write!(f, " ({code})"))
            }
            Culprit::Suspects { nodes, evidence } => {
                write!(f, "suspects {}: {evidence}; needs another partner", nodes.join(" "))
            }
            Culprit::Fleet { evidence } => write!(f, "no culprit: {evidence}"),
        }
    }
}
