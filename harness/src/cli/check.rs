//! `harness check`: every file of a project, read and linted.

use super::{home, no_home};
use crate::check;
use clap::Parser;
use model::exit_code;

/// `harness check`
#[derive(Debug, Parser)]
#[command(name = "harness check", about = "Lint every suite, inventory and baseline, offline.")]
pub(super) struct CheckArgs {}

pub(super) fn run(_: &CheckArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    let report = check::check(home.path());
    for diagnostic in &report.diagnostics {
        println!("{diagnostic}");
    }
    for (word, diagnostics) in [("warning", &report.warnings), ("note", &report.notes)] {
        diagnostics.iter().for_each(|diagnostic| println!("{word}: {diagnostic}"));
    }
    let count = |count: usize, word: &str| match count {
        0 => String::new(),
        1 => format!(", 1 {word}"),
        count => format!(", {count} {word}s"),
    };
    let (warnings, notes) = (count(report.warnings.len(), "warning"), count(report.notes.len(), "note"));
    let files = report.files.len();
    let diagnostics = report.diagnostics.len();
    println!("{files} files, {diagnostics} errors{warnings}{notes}");
    if diagnostics == 0 { exit_code::PASSED } else { exit_code::USAGE }
}
