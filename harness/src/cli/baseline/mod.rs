//! `harness baseline`: proposals from runs, and the decisions of people on them.

mod files;
mod list;
mod packs;
mod propose;
mod review;
mod signature;

use super::home;
use crate::error::Error;
use clap::Subcommand;

/// `harness baseline`
#[derive(Debug, Subcommand)]
#[command(
    about = "Propose, review and show baselines.",
    long_about = "Propose, review and show baselines.\n\n\
        Proposals are stored as `baselines/<instance>.pending.toml` and judge nothing until they are accepted."
)]
pub(super) enum BaselineVerb {
    /// Make proposals from independent runs
    Propose(propose::ProposeArgs),
    /// Accept or reject proposals: one by one at a terminal, or with `--accept` and `--reject`
    Review(review::ReviewArgs),
    /// Accept proposals by name: the same as `review --accept PART`
    Accept(review::AcceptArgs),
    /// Print the baselines of an instance, or of all
    Show(list::ShowArgs),
    /// Report errors in baselines, and in the baselines that suites require
    Lint,
    /// Print the differences between two files of baselines
    Diff(list::DiffArgs),
    /// Print the baselines of an instance, or of all, for other programs; or make a pack of them for other sites
    Export(list::ExportArgs),
    /// Take the pack of another site, which helps `propose`
    Import(packs::ImportArgs),
}

pub(super) fn run(verb: &BaselineVerb) -> Result<i32, Error> {
    let home = home()?;
    Ok(match verb {
        BaselineVerb::Propose(args) => propose::run(&home, args),
        BaselineVerb::Review(args) => review::run(&home, args),
        BaselineVerb::Accept(args) => review::accept(&home, args),
        BaselineVerb::Show(args) => list::show(&home, args),
        BaselineVerb::Lint => list::lint(&home),
        BaselineVerb::Diff(args) => list::diff(&home, args),
        BaselineVerb::Export(args) => list::export(&home, args),
        BaselineVerb::Import(args) => packs::import(&home, args),
    })
}
