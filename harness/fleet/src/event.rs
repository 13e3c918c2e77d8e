//! What a round of checks found.

use serde::{Deserialize, Serialize};

/// A number that fell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fall {
    /// The node's name.
    pub node: String,
    /// Such as `gpu3` or `rdmap113s0`; `node` for all of it.
    pub part: String,
    /// What was measured, such as `nvbandwidth.from_host`; or the code of what failed.
    pub test: String,
    /// By which part it is lower than its own past; 0 where it failed.
    pub lower_by: f64,
}

/// What is new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// It is checked again before anything is said of it.
    Suspected(Fall),
    /// It fell in checks of its own, beside nodes that did not.
    Alarm(Fall),
    /// A suspicion or an alarm is over.
    Cleared(Fall),
    /// An alarm that is one of many alike: no node is blamed.
    Withdrawn(Fall),
    /// An alarm is watched no longer: its node left the inventory, or its part is elsewhere. It was not cleared.
    Left(Fall),
    /// An alarm is back, with the node or the hardware that had it.
    Returned(Fall),
    /// The suite failed on nodes, and blames none of them.
    Unattributed {
        /// Their names.
        nodes: Vec<String>,
        /// What failed.
        why: String,
    },
    /// The suite failed in the last check of no node in that way.
    Attributed,
    /// Many nodes fell alike: no node is blamed.
    FleetFell {
        /// What was measured.
        test: String,
        /// How many are suspected of it.
        nodes: usize,
    },
    /// Other hardware has the name of a node: its past is that of the hardware.
    Replaced {
        /// The node's name.
        node: String,
        /// The parts that are new; none where all of it is.
        parts: Vec<String>,
    },
}
