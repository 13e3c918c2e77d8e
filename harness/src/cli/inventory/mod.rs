//! `harness inventory`: describes clusters by asking their schedulers and nodes.

mod discover;
mod probe;

use super::{home, home_or_here, no_home};
use clap::Subcommand;

/// `harness inventory`
#[derive(Debug, Subcommand)]
#[command(about = "Describe clusters by asking their schedulers and nodes.")]
pub(super) enum InventoryVerb {
    /// Write an inventory of the nodes of a Slurm partition; nodes that take no jobs are named and excluded
    Discover(discover::DiscoverArgs),
    /// Probe the hardware and software of every node, and show which nodes cannot pass
    Probe(probe::ProbeArgs),
    /// Show which nodes differ from the others, or from a golden node, and how
    Diff(probe::DiffArgs),
}

pub(super) fn run(verb: &InventoryVerb) -> i32 {
    // What is written belongs into a project; what is asked needs none.
    let found = if matches!(verb, InventoryVerb::Discover(_)) { home() } else { home_or_here() };
    let Some(home) = found else { return no_home() };
    match verb {
        InventoryVerb::Discover(args) => discover::discover(&home, args),
        InventoryVerb::Probe(args) => probe::probe(&home, args),
        InventoryVerb::Diff(args) => probe::diff(&home, args),
    }
}
