//! From a good and a bad software stack to the one setting that makes the difference, in pairs of ordinary runs. Which
//! stacks a pair runs is decided in `verdict::bisect`; here they are launched, stored and reported.

mod bisection;
mod earlier;
mod measured;
mod messages;
mod runs;
mod session;
mod stacks;

pub(crate) use session::bisect;

use recipes::catalogue::Catalogue;
use std::path::PathBuf;

/// A bisection, or the one to go on with.
#[derive(Clone, Default)]
pub(crate) struct BisectRequest {
    /// By name or path, as is `inventory`; absent where `resume` is given.
    pub suite: Option<String>,
    pub inventory: String,
    pub nodes: Option<String>,
    pub exclude_nodes: Option<String>,
    pub case: Option<String>,
    pub metric: Option<String>,
    /// Settings of the two stacks.
    pub good: Vec<String>,
    pub bad: Vec<String>,
    /// A file of the stacks between them.
    pub between: Option<PathBuf>,
    /// As many as a bisection has by default, or as the resumed one had, where absent.
    pub pairs: Option<usize>,
    /// Node-hours.
    pub budget: Option<f64>,
    /// Runs that were there before are not counted.
    pub no_earlier_runs: bool,
    /// As in a run: nodes are probed first, simulated ones where `probe` asks for it.
    pub no_probe: bool,
    pub probe: bool,
    pub allow_busy: bool,
    pub reservation: Option<String>,
    /// Only print what it would cost.
    pub dry_run: bool,
    /// Any run of the bisection to go on with.
    pub resume: Option<String>,
    pub seed: u64,
    pub ssh_fanout: u32,
    /// The recipes that the suite is read with.
    pub catalogue: Catalogue,
}
