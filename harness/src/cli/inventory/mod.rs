//! `harness inventory`: describes clusters by asking their schedulers and nodes.

mod discover;
mod probe;
mod role;

use super::home;
use crate::error::Error;
use clap::Subcommand;
use store::Home;

/// `harness inventory`
#[derive(Debug, Subcommand)]
#[command(about = "Describe clusters by asking their schedulers and nodes.")]
pub(super) enum InventoryVerb {
    /// Write an inventory of the nodes of Slurm or Kubernetes; nodes that take no jobs are named and excluded
    #[command(after_help = "Exit codes: 0 written; 2 wrong usage; 3 no answer; 4 no node takes jobs.")]
    Discover(discover::DiscoverArgs),
    /// Probe the hardware and software of every node, and show which nodes cannot pass
    #[command(
        after_help = "Exit codes: 0 all nodes can pass; 1 some cannot; 2 wrong usage; 3 a node gave no answer."
    )]
    Probe(probe::ProbeArgs),
    /// Show which nodes differ from the others, or from a golden node, and how
    #[command(
        after_help = "Exit codes: 0 no difference; 1 differences; 2 wrong usage; 3 a node gave no answer, or there is nothing to compare with."
    )]
    Diff(probe::DiffArgs),
    /// Print what the harness must be allowed in Kubernetes, as YAML
    #[command(after_help = "Exit codes: 0 printed; 2 wrong usage.")]
    Role(role::RoleArgs),
}

pub(super) fn run(verb: &InventoryVerb) -> Result<i32, Error> {
    let home = home()?;
    Ok(match verb {
        InventoryVerb::Discover(args) => discover::discover(&home, args),
        InventoryVerb::Probe(args) => probe::probe(&home, args),
        InventoryVerb::Diff(args) => probe::diff(&home, args),
        InventoryVerb::Role(args) => role::role(args),
    })
}

/// The partition of jobs that name none, by Slurm; why not, where it gives no answer.
pub(super) fn default_partition() -> Result<Option<String>, String> {
    discover::default_partition()
}

/// Writes the inventory of a partition, as `discover` does with nothing but that.
pub(super) fn discover_into(home: &Home, partition: &str, file: &str) -> i32 {
    discover::discover(home, &discover::DiscoverArgs::with_partition(partition, file))
}
