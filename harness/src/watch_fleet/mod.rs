//! `harness watch-fleet`: idle nodes are checked for months, by ordinary runs that everybody's jobs may push aside. Which node
//! is next, and when a fall is an alarm, is decided in the crate `fleet`; here checks are launched, kept and reported.

mod check;
mod clock;
mod exposition;
mod messages;
mod place;
mod priority;
mod queue;
mod readings;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use session::watch_fleet;

use recipes::catalogue::Catalogue;
use std::path::PathBuf;
use std::time::Duration;

/// What a person wants.
#[derive(Clone)]
pub(crate) struct WatchFleetRequest {
    /// By name or path, as is `inventory`.
    pub suite: String,
    /// Of the suite; all of them where none is named.
    pub cases: Vec<String>,
    pub inventory: String,
    /// Node-hours of checks, as a fraction of those of the inventory.
    pub budget: f64,
    /// Between two rounds.
    pub every: Duration,
    /// So many rounds; without end where absent.
    pub rounds: Option<u64>,
    /// Only print what would be checked.
    pub dry_run: bool,
    /// All nodes are taken for idle where the cluster cannot be asked.
    pub assume_idle: bool,
    /// Nodes with an alarm are drained, at most so many as this says or the usual share.
    pub drain: Option<Option<u32>>,
    /// For node_exporter.
    pub metrics: Option<PathBuf>,
    pub no_probe: bool,
    pub probe: bool,
    pub seed: u64,
    pub sim_faults: Vec<String>,
    pub ssh_fanout: u32,
    /// The recipes that the suite is read with.
    pub catalogue: Catalogue,
}
