//! What an isolation is asked for, and what comes of it.

use recipes::catalogue::Catalogue;
use verdict::isolate::evidence::EvidenceLine;

/// An isolation of a suite, or the one to go on with.
#[derive(Clone, Default)]
pub(crate) struct IsolationRequest {
    /// By name or path, as is `inventory`; absent where `resume` is given.
    pub suite: Option<String>,
    pub inventory: String,
    pub nodes: Option<String>,
    pub exclude_nodes: Option<String>,
    /// Node-hours.
    pub budget: Option<f64>,
    pub case: Option<String>,
    /// The run whose evidence is looked at first; else the newest of that suite and inventory.
    pub run: Option<String>,
    pub no_evidence: bool,
    /// As in a run: nodes are probed first, simulated ones where `probe` asks for it.
    pub no_probe: bool,
    pub probe: bool,
    pub allow_busy: bool,
    pub reservation: Option<String>,
    pub drain: Option<DrainRequest>,
    /// Only print what it would cost.
    pub dry_run: bool,
    /// Any run of the isolation to go on with.
    pub resume: Option<String>,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub ssh_fanout: u32,
    /// The run that brought it about.
    pub caused_by: Option<String>,
    /// The recipes that the suite is read with.
    pub catalogue: Catalogue,
}

/// That culprits are to be drained, and whether the user is asked first.
#[derive(Debug, Clone)]
pub(crate) struct DrainRequest {
    pub at_most: Option<u32>,
    /// Drain without asking.
    pub yes: bool,
    /// The command that makes the same request without asking.
    pub command: String,
}

#[derive(Debug, Default)]
pub(crate) struct IsolationOutcome {
    pub code: i32,
    pub culprits: Vec<EvidenceLine>,
    /// The ids of its rounds.
    pub rounds: Vec<String>,
    pub node_hours: f64,
}
