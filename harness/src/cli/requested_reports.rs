//! A flag for each report that a run can be asked for; the formats say which there are.

use crate::report::{FORMATS, RequestedReport};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::PathBuf;

/// Those that were asked for.
#[derive(Debug, Clone)]
pub(super) struct RequestedReports(pub Vec<RequestedReport>);

impl Args for RequestedReports {
    fn augment_args(command: Command) -> Command {
        command.args(FORMATS.iter().map(|format| {
            Arg::new(format.flag)
                .long(format.flag)
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help(format.about)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        RequestedReports::augment_args(command)
    }
}

impl FromArgMatches for RequestedReports {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RequestedReports, clap::Error> {
        let asked = FORMATS.iter().filter_map(|format| {
            let path = matches.try_get_one::<PathBuf>(format.flag).ok().flatten()?.clone();
            Some(RequestedReport { format, path })
        });
        Ok(RequestedReports(asked.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RequestedReports::from_arg_matches(matches)?;
        Ok(())
    }
}
