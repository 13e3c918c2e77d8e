//! `harness site`: its arguments.

use super::home;
use crate::error::Error;
use crate::memory;
use crate::site::{SiteRequest, write};
use clap::Args;
use std::path::PathBuf;

const ABOUT: &str = "Write a folder of stored runs as a site of static pages: nodes over time, trends, suspects, certificates.";

const CODES: &str = "\
The folder works offline and can be served from anywhere: its pages link to each other and to \
nothing else. Run it again to bring it up to date. Real, simulated and canary runs have pages of \
their own.

Exit codes: 0 written; 2 wrong usage, there is no run, --deliveries cannot be read, or the folder \
holds files that are not of a site.";

/// `harness site`
#[derive(Debug, Args)]
#[command(about = ABOUT, after_help = CODES)]
pub(super) struct SiteArgs {
    /// The folder of runs; by default the project's
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// The folder to write: a new or an empty one, or a site to bring up to date
    #[arg(long, value_name = "DIR", default_value = "site")]
    output: PathBuf,
    /// The folder of deliveries with their certificates; by default the project's
    #[arg(long, value_name = "DIR")]
    deliveries: Option<PathBuf>,
    /// How many of the newest runs have their page in the site
    #[arg(long, value_name = "N", default_value_t = 100)]
    pages: usize,
}

pub(super) fn run(args: SiteArgs) -> Result<i32, Error> {
    let home = home()?;
    memory::limit();
    let request = SiteRequest {
        is_runs_given: args.runs.is_some(),
        runs: args.runs.unwrap_or_else(|| home.path().join("runs")),
        is_deliveries_given: args.deliveries.is_some(),
        deliveries: args.deliveries.unwrap_or_else(|| home.path().join("deliveries")),
        output: args.output,
        pages: args.pages,
    };
    write(&request).map_err(Error::Usage)
}
