//! `harness bundle`: a stored run as one file.

use super::home;
use crate::bundle;
use crate::error::Error;
use crate::session::stored;
use base::text::count;
use clap::Args;
use model::exit_code;
use std::path::PathBuf;

const CODES: &str = "Exit codes: 0 written; 2 wrong usage, no such run, or the file cannot be written.";

/// `harness bundle`
#[derive(Debug, Args)]
#[command(about = "Pack a run into one file that opens on any machine.", after_help = CODES)]
pub(super) struct BundleArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(long, value_name = "ID|PATH")]
    run: String,
    /// The file to write; by default `<run id>.tar.gz` in this folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &BundleArgs) -> Result<i32, Error> {
    let home = home()?;
    let run = stored::open(&home, &args.run).map_err(|why| Error::Usage(format!("--run: {why}")))?;
    let id = &run.plan.run_id;
    let out = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{id}.tar.gz")));
    let files = bundle::pack(&run, &out).map_err(|error| Error::Usage(error.to_string()))?;
    println!("{} of {id}: {}", count(files, "file"), out.display());
    println!("to read it elsewhere: harness replay --run {} --from analyze", out.display());
    Ok(exit_code::PASSED)
}
