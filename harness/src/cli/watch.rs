//! `harness watch`: its arguments.

use super::home;
use crate::error::Error;
use crate::session::reports::stdout_wants_color;
use crate::watch::{WatchRequest, watch};
use clap::Args;

/// `harness watch`
#[derive(Debug, Args)]
#[command(
    about = "Show a run that goes on, or that is over, from another terminal.",
    after_help = "It reads the run's folder and changes nothing. Exit codes: those of the run, once it is over; 0 with --once \
                  while it goes on; 2 no such run."
)]
pub(super) struct WatchArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Print what is known now, and end
    #[arg(long)]
    once: bool,
}

pub(super) fn run(args: &WatchArgs) -> Result<i32, Error> {
    let home = home()?;
    let request = WatchRequest { run: &args.run, once: args.once, color: stdout_wants_color(None) };
    watch(&home, &request).map_err(Error::Usage)
}
