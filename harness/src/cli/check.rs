//! `harness check`: every file of a project, read and linted.

use super::home;
use crate::check;
use crate::error::Error;
use base::text::count;
use clap::Args;
use model::exit_code;

const CODES: &str = "Exit codes: 0 no error, with or without warnings; 2 an error, or nothing to check.";

/// `harness check`
#[derive(Debug, Args)]
#[command(about = "Lint every suite, inventory and baseline, offline.", after_help = CODES)]
pub(super) struct CheckArgs {}

pub(super) fn run(_: &CheckArgs) -> Result<i32, Error> {
    let home = home()?;
    let report = check::check(home.path());
    if report.files.is_empty() && report.diagnostics.is_empty() {
        let why = "nothing to check: no `suites`, `inventory` or `baselines` in this folder";
        return Err(Error::Usage(why.to_owned()));
    }
    for diagnostic in &report.diagnostics {
        println!("{diagnostic}");
    }
    for (word, diagnostics) in [("warning", &report.warnings), ("note", &report.notes)] {
        diagnostics.iter().for_each(|diagnostic| println!("{word}: {diagnostic}"));
    }
    let more = |n: usize, word: &str| match n {
        0 => String::new(),
        n => format!(", {}", count(n, word)),
    };
    let (warnings, notes) = (more(report.warnings.len(), "warning"), more(report.notes.len(), "note"));
    let (files, errors) = (count(report.files.len(), "file"), count(report.diagnostics.len(), "error"));
    println!("{files}, {errors}{warnings}{notes}");
    Ok(if report.diagnostics.is_empty() { exit_code::PASSED } else { exit_code::USAGE })
}
