//! `harness rma`: its arguments.

use super::home;
use crate::error::Error;
use crate::memory;
use crate::rma::{RmaRequest, collect};
use clap::Args;
use std::path::PathBuf;
use verdict::history::past::RunKind;

const ABOUT: &str =
    "Collect the evidence about a node, GPU or NIC for its vendor, in one folder without names and secrets.";

const CODES: &str = "\
The hardware is followed by what probes have read, over nodes and names; runs of other hardware \
under the same name are left out. In the folder other nodes are `peer-1`, `peer-2`; secrets, users, \
addresses and paths are taken out. What cannot be sanitised is left out and listed.

Exit codes: 0 written; 2 wrong usage, or nothing or several things match; 3 no run blames it, or the \
folder would hold a name or a secret: nothing is written.";

/// `harness rma`
#[derive(Debug, Args)]
#[command(about = ABOUT, after_help = CODES)]
pub(super) struct RmaArgs {
    /// A node's name, `NODE:PART` such as `p5-002:gpu3`, or an identifier that a probe has read: instance id or serial of the
    /// machine, UUID or serial of a GPU, GUID of a NIC
    #[arg(value_name = "NODE|SERIAL")]
    hardware: String,
    /// The folder to write, which must not exist; by default `rma-NAME-UTC` in this folder
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The folder of runs; by default the project's
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// The folder of deliveries with their certificates and runs; by default the project's
    #[arg(long, value_name = "DIR")]
    deliveries: Option<PathBuf>,
    /// Only of this inventory, where several have a node with this name
    #[arg(long, value_name = "NAME")]
    inventory: Option<String>,
    /// Only runs of this kind
    #[arg(long, value_name = "KIND", value_parser = [RunKind::Real.name(), RunKind::Simulated.name()])]
    kind: Option<String>,
    /// Write the folder even if no run blames it, with the files of every run that it was in
    #[arg(long)]
    all: bool,
    /// Keep the names of other nodes, for a vendor that knows them
    #[arg(long)]
    keep_names: bool,
}

pub(super) fn run(args: RmaArgs) -> Result<i32, Error> {
    let home = home()?;
    memory::limit();
    let request = RmaRequest {
        word: args.hardware,
        is_runs_given: args.runs.is_some(),
        runs: args.runs.unwrap_or_else(|| home.path().join("runs")),
        deliveries: args.deliveries.unwrap_or_else(|| home.path().join("deliveries")),
        inventory: args.inventory,
        kind: args.kind.and_then(|name| RunKind::ALL.into_iter().find(|kind| kind.name() == name)),
        output: args.output,
        keep_names: args.keep_names,
        all: args.all,
    };
    collect(&home, &request)
}
