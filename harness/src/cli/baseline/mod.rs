//! `harness baseline`: what runs say baselines should be, and what people decide of it.

mod files;
mod list;
mod propose;
mod review;

use super::{home, no_home};
use clap::{Parser, Subcommand};

/// `harness baseline`
#[derive(Debug, Parser)]
#[command(
    name = "harness baseline",
    about = "Propose baselines from runs, decide on them, and look at them.",
    long_about = "Propose baselines from runs, decide on them, and look at them.\n\n\
        Proposals lie beside the baselines as `baselines/<instance>.pending.toml` and judge nothing until somebody accepts them."
)]
pub(super) struct BaselineArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make proposals from independent runs
    Propose(propose::ProposeArgs),
    /// Decide on proposals: one by one at a terminal, or by `--accept` and `--reject`
    Review(review::ReviewArgs),
    /// Print the baselines of an instance, or of all
    Show(list::ShowArgs),
    /// Tell what is wrong in baselines, and in what suites ask of them
    Lint,
    /// Print what differs between two files of baselines
    Diff(list::DiffArgs),
    /// Print the baselines of an instance, or of all, for other programs
    Export(list::ExportArgs),
}

pub(super) fn run(args: &BaselineArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    match &args.verb {
        Verb::Propose(args) => propose::run(&home, args),
        Verb::Review(args) => review::run(&home, args),
        Verb::Show(args) => list::show(&home, args),
        Verb::Lint => list::lint(&home),
        Verb::Diff(args) => list::diff(&home, args),
        Verb::Export(args) => list::export(&home, args),
    }
}
