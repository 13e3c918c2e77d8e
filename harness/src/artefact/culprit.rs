//! Who is to blame for a run that went badly, as artefacts hold it. Who that is, is decided in `judge`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The guilty part, or those among which it must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Culprit {
    Culprit {
        node: String,
        /// A device name, `gpuN` or `node`.
        part: String,
        evidence: String,
    },
    Suspects {
        nodes: Vec<String>,
        evidence: String,
    },
    /// A line that blames nobody: all parts are low alike.
    Fleet {
        evidence: String,
    },
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Culprit::Culprit { node, part, evidence } => write!(f, "culprit {node} {part}: {evidence}"),
            Culprit::Suspects { nodes, evidence } => {
                write!(f, "suspects {}: {evidence}; needs another partner", nodes.join(" "))
            }
            Culprit::Fleet { evidence } => write!(f, "no culprit: {evidence}"),
        }
    }
}
