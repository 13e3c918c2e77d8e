//! What an acceptance is asked for.

use std::path::PathBuf;

/// An acceptance of new nodes, or the one to go on with.
#[derive(Debug, Clone)]
pub(crate) struct AcceptRequest {
    /// Absent where `resume` is given.
    pub nodes: Option<String>,
    /// By name or path, as is `inventory`; that of the instance where absent.
    pub suite: Option<String>,
    pub inventory: String,
    /// Nodes that are known to be good, or `none`.
    pub partners: Option<String>,
    /// Seconds of the soak instead of those of the suite; 0 for none.
    pub soak_s: Option<u32>,
    /// Node-hours.
    pub budget: Option<f64>,
    /// The folder of the delivery.
    pub out: Option<PathBuf>,
    /// Make a copy for the vendor too.
    pub sanitise: bool,
    /// A node on which a case was skipped is not decided.
    pub strict: bool,
    pub allow_busy: bool,
    /// Only print what it would cost.
    pub dry_run: bool,
    /// The folder of the delivery to go on with.
    pub resume: Option<PathBuf>,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub ssh_fanout: u32,
}
