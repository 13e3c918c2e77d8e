//! `harness inventory`: describes clusters by asking their schedulers and nodes.

mod discover;
mod probe;

use super::{home, home_or_here, no_home};
use clap::{Parser, Subcommand};

/// `harness inventory`
#[derive(Debug, Parser)]
#[command(name = "harness inventory", about = "Describe clusters by asking their schedulers and nodes.")]
pub(super) struct InventoryArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write an inventory of the nodes of a Slurm partition; nodes that take no jobs are named and excluded
    Discover(discover::DiscoverArgs),
    /// Probe the hardware and software of every node, and show which nodes cannot pass
    Probe(probe::ProbeArgs),
    /// Show which nodes differ from the others, or from a golden node, and how
    Diff(probe::DiffArgs),
}

pub(super) fn run(args: &InventoryArgs) -> i32 {
    // What is written belongs into a project; what is asked needs none.
    let found = if matches!(args.verb, Verb::Discover(_)) { home() } else { home_or_here() };
    let Some(home) = found else { return no_home() };
    match &args.verb {
        Verb::Discover(args) => discover::discover(&home, args),
        Verb::Probe(args) => probe::probe(&home, args),
        Verb::Diff(args) => probe::diff(&home, args),
    }
}
