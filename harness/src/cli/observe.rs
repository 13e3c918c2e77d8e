//! `harness observe`: its arguments.

use super::duration;
use crate::error::Error;
use crate::observe::{ObserveRequest, observe};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const CODES: &str = "\
It reads `*.log` and `*.jsonl` of the folder, writes nothing there and launches nothing. Each \
finding is reported once, after a restart too. Records name no NIC: a slow one shows as its process. \
Needs NCCL 2.30 or later with NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS.

Exit codes with --once: 0 nothing found; 1 a finding is new or lasts; 2 wrong usage; \
3 inconclusive, such as no file, no time of the GPU, ranks without records, too few calls.";

/// `harness observe`
#[derive(Debug, Args)]
#[command(about = "Report stragglers and sinking bandwidth of running jobs, from NCCL Inspector's files.", after_help = CODES)]
pub(super) struct ObserveArgs {
    /// The folder that the jobs' NCCL_INSPECTOR_DUMP_DIR names
    #[arg(long, value_name = "FOLDER")]
    dir: PathBuf,
    /// Keep the state here, so that a restart continues from it; for one folder of records
    #[arg(long, value_name = "FOLDER", env = "HARNESS_OBSERVE_STATE", default_value = "observe-state")]
    state: PathBuf,
    /// Look so often
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "60s", conflicts_with = "once")]
    every: u64,
    /// Look once, and exit
    #[arg(long)]
    once: bool,
    /// Add a line of JSON for each event here, instead of `events.jsonl` of the state's folder
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write metrics here, for node_exporter's textfile collector: a name that ends in `.prom`
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

pub(super) fn run(args: ObserveArgs) -> Result<i32, Error> {
    observe(&ObserveRequest {
        folder: args.dir,
        state: args.state,
        events: args.events,
        metrics: args.metrics,
        every: Duration::from_secs(args.every),
        once: args.once,
    })
}
