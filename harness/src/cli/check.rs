//! `harness check`: every file of a project, read and linted.

use super::home;
use crate::check;
use crate::diagnostic_lines::{LEVELS, line};
use crate::error::Error;
use base::text::count;
use clap::Args;
use model::exit_code;

const CODES: &str = "Exit codes: 0 no error, with or without warnings; 2 an error, or nothing to check.";

/// `harness check`
#[derive(Debug, Args)]
#[command(about = "Lint every suite, inventory and baseline, offline.", after_help = CODES)]
pub(super) struct CheckArgs {
    /// text, or json: one object a line for each error, warning and note
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: &CheckArgs) -> Result<i32, Error> {
    let home = home()?;
    let report = check::check(home.path());
    if report.files.is_empty() && report.diagnostics.is_empty() {
        let why = "nothing to check: no `suites`, `inventory` or `baselines` in this folder";
        return Err(Error::Usage(why.to_owned()));
    }
    let as_json = args.format == "json";
    let groups = [&report.diagnostics, &report.warnings, &report.notes];
    for ((level, prefix), diagnostics) in LEVELS.into_iter().zip(groups) {
        for diagnostic in diagnostics {
            match as_json {
                true => println!("{}", line(level, diagnostic)),
                false => println!("{prefix}{diagnostic}"),
            }
        }
    }
    let code = if report.diagnostics.is_empty() { exit_code::PASSED } else { exit_code::USAGE };
    if as_json {
        return Ok(code);
    }
    let more = |n: usize, word: &str| match n {
        0 => String::new(),
        n => format!(", {}", count(n, word)),
    };
    let (warnings, notes) = (more(report.warnings.len(), "warning"), more(report.notes.len(), "note"));
    let (files, errors) = (count(report.files.len(), "file"), count(report.diagnostics.len(), "error"));
    println!("{files}, {errors}{warnings}{notes}");
    Ok(code)
}
