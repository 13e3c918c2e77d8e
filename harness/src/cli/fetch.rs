//! `harness fetch`: what was published, brought here.

use super::home;
use super::publish::{RequestArgs, ended};
use crate::error::Error;
use crate::memory;
use crate::publish;
use clap::Args;
use std::io;
use std::path::PathBuf;

const CODES: &str = "\
Exit codes: 0 complete; 2 refused: nothing was changed; 3 interrupted, the same command resumes it; \
130/143 ended by a signal.";

/// `harness fetch`
#[derive(Debug, Args)]
#[command(
    about = "Fetch what `harness publish` sent into a new folder, and check each digest.",
    after_help = CODES
)]
pub(super) struct FetchArgs {
    /// Where it was published
    #[arg(value_name = "URL")]
    url: String,
    /// The folder to make; by default `runs/ID` for a run; needed for any other folder
    #[arg(value_name = "DIR")]
    target: Option<PathBuf>,
    #[command(flatten)]
    requests: RequestArgs,
}

pub(super) fn run(args: &FetchArgs) -> Result<i32, Error> {
    memory::limit();
    let home = home()?;
    let patience = args.requests.patience();
    Ok(ended(publish::fetch(&home, &args.url, args.target.as_deref(), patience, &mut io::stdout())))
}
