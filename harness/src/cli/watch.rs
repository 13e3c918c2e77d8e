//! `harness watch`: its arguments.

use super::home;
use crate::error::Error;
use crate::session::reports::stdout_wants_color;
use crate::watch::{WatchRequest, watch};
use clap::Args;

/// `harness watch`
#[derive(Debug, Args)]
#[command(
    about = "Show a running or finished run from another terminal.",
    after_help = "It reads the run's folder and changes nothing. Exit codes: those of the run, once it has ended; 0 with --once \
                  while it is running; 2 no such run."
)]
pub(super) struct WatchArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Print the current state and exit
    #[arg(long)]
    once: bool,
    /// Serve the run's page to browsers on this machine while it is running, and print its address
    #[arg(long, conflicts_with = "once")]
    web: bool,
    /// The port of the page; by default any that is free
    #[arg(long, value_name = "N", requires = "web", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

pub(super) fn run(args: &WatchArgs) -> Result<i32, Error> {
    let home = home()?;
    let web = args.web.then_some(args.port);
    let request = WatchRequest { run: &args.run, once: args.once, color: stdout_wants_color(None), web };
    watch(&home, &request).map_err(Error::Usage)
}
