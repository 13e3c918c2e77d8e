//! `harness inventory`: what clusters are, asked of their schedulers and of their nodes.

mod discover;
mod probe;

use super::{home, home_or_here, no_home};
use clap::{Parser, Subcommand};

/// `harness inventory`
#[derive(Debug, Parser)]
#[command(
    name = "harness inventory",
    about = "What clusters are, asked of their schedulers and of their nodes."
)]
pub(super) struct InventoryArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write an inventory of the nodes of a Slurm partition; those that take no jobs are named and left out
    Discover(discover::DiscoverArgs),
    /// Ask every node what it is and has, and tell which of them cannot pass
    Probe(probe::ProbeArgs),
    /// Tell which nodes are unlike the others, or unlike a golden one, and in what
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
