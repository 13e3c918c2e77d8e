//! `harness bundle`: a stored run as one file.

use super::{home_or_here, no_home, usage};
use crate::bundle;
use crate::session::stored;
use base::text::count;
use clap::Args;
use model::exit_code;
use std::path::PathBuf;

/// `harness bundle`
#[derive(Debug, Args)]
#[command(about = "Pack a run into one file that opens on any machine.")]
pub(super) struct BundleArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(long, value_name = "ID|PATH")]
    run: String,
    /// The file to write; by default `<run id>.tar.gz` in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &BundleArgs) -> i32 {
    let Some(home) = home_or_here() else { return no_home() };
    let run = match stored::open(&home, &args.run) {
        Ok(run) => run,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    let id = &run.plan.run_id;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{id}.tar.gz")));
    match bundle::pack(&run, &out) {
        Ok(files) => {
            println!("{} of {id}: {}", count(files, "file"), out.display());
            println!("to read it elsewhere: harness --run {} --from analyze", out.display());
            exit_code::PASSED
        }
        Err(error) => usage(&error.to_string()),
    }
}
