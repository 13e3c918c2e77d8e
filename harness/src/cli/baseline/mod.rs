//! `harness baseline`: proposals from runs, and the decisions of people on them.

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
    about = "Propose, review and show baselines.",
    long_about = "Propose, review and show baselines.\n\n\
        Proposals are stored as `baselines/<instance>.pending.toml` and judge nothing until they are accepted."
)]
pub(super) struct BaselineArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make proposals from independent runs
    Propose(propose::ProposeArgs),
    /// Accept or reject proposals: one by one at a terminal, or with `--accept` and `--reject`
    Review(review::ReviewArgs),
    /// Print the baselines of an instance, or of all
    Show(list::ShowArgs),
    /// Report errors in baselines, and in the baselines that suites require
    Lint,
    /// Print the differences between two files of baselines
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
