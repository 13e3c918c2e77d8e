//! `harness baseline`: proposals from runs, and the decisions of people on them.

mod files;
mod list;
mod packs;
mod propose;
mod review;
mod signature;

pub use packs::read_pack;

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
    #[command(after_help = "Exit codes: 0 proposals are written; 2 wrong usage; 3 no run is usable for one.")]
    Propose(propose::ProposeArgs),
    /// Accept or reject proposals: one by one at a terminal, or with `--accept` and `--reject`
    #[command(
        after_help = "Exit codes: 0 done; 2 wrong usage, or no proposal matches; 3 a proposal could not be accepted."
    )]
    Review(review::ReviewArgs),
    /// Accept proposals by name: the same as `review --accept PART`
    #[command(
        after_help = "Exit codes: 0 done; 2 wrong usage, or no proposal matches; 3 a proposal could not be accepted."
    )]
    Accept(review::AcceptArgs),
    /// Print the baselines of an instance, or of all
    #[command(after_help = "Exit codes: 0 shown; 2 wrong usage; 4 no baseline contains what --only says.")]
    Show(list::ShowArgs),
    /// Report errors in baselines, and in the baselines that suites require
    #[command(after_help = "Exit codes: 0 no error; 2 an error.")]
    Lint,
    /// Print the differences between two files of baselines
    #[command(after_help = "Exit codes: 0 no difference; 1 differences; 2 wrong usage.")]
    Diff(list::DiffArgs),
    /// Print the baselines of an instance, or of all, for other programs; or make a pack of them for other sites
    #[command(after_help = "Exit codes: 0 written; 2 wrong usage.")]
    Export(list::ExportArgs),
    /// Take the pack of another site, which helps `propose`
    #[command(after_help = "Exit codes: 0 imported; 2 wrong usage, or the pack is refused.")]
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
