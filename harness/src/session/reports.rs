//! The reports of a run: written, printed, and the exit code that follows from both.

use super::RunOptions;
use super::output::{print_quietly, report_error};
use crate::pipeline::{self, Finished};
use crate::report::{self, Report, Unprinted};
use libtest_mimic::{ColorSetting, FormatSetting};
use model::artefact::{Plan, Summary};
use model::exit_code;
use std::io::{self, IsTerminal};
use store::{self, Store};
use verdict::history::{past, suspects};

/// Writes and prints the reports of a run; gives the exit code.
pub(crate) fn close(plan: &Plan, finished: &Finished, store: &Store, options: &RunOptions) -> i32 {
    let code = write(plan, finished, store, options);
    print(plan, finished, &blamed_before(&finished.summary, store), options);
    code
}

/// Writes the reports; gives the exit code, which one that cannot be written makes no better.
pub(super) fn write(plan: &Plan, finished: &Finished, store: &Store, options: &RunOptions) -> i32 {
    let (written, errors) = pipeline::write_reports(plan, finished, store);
    let mut code = finished.summary.exit_code;
    for error in errors {
        code = exit_code::graver(code, report_error(&error.to_string()));
    }
    for (name, path) in [("junit.xml", &options.junit), ("summary.json", &options.json)] {
        let Some(path) = path else { continue };
        // What is not in the run's folder was reported above.
        let Some((_, bytes)) = written.iter().find(|(file, _)| *file == name) else { continue };
        if let Err(error) = store::write_whole(path, bytes) {
            code = exit_code::graver(code, report_error(&error.to_string()));
        }
    }
    code
}

/// So many runs are looked through for those that blamed the same parts.
const LOOKED_THROUGH: usize = 30;

/// What other runs reported of the parts that this one blames.
fn blamed_before(summary: &Summary, store: &Store) -> Vec<String> {
    if summary.culprits.is_empty() {
        return Vec::new();
    }
    let folder = store.folder();
    let but = [Some(summary.run_id.as_str()), summary.parent.as_deref()];
    let past = folder.parent().map(|runs| past::newest(runs, LOOKED_THROUGH, &but)).unwrap_or_default();
    suspects::before(&past, summary.simulated, &summary.inventory, &summary.culprits)
}

fn print(plan: &Plan, finished: &Finished, before: &[String], options: &RunOptions) {
    let report = Report { plan, cases: &finished.cases, summary: &finished.summary };
    let color = match options.libtest.color {
        Some(ColorSetting::Always) => true,
        Some(ColorSetting::Never) => false,
        _ => wants_color(
            io::stdout().is_terminal(),
            &|name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0"),
            std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
        ),
    };
    if options.libtest.format == Some(FormatSetting::Json) {
        let lines: String = report::json::events(&report).map(|line| line + "\n").collect();
        print_quietly(&lines);
        return;
    }
    if let Some(text) = report::broken(&report) {
        return print_quietly(&text);
    }
    let mut face = options.libtest.clone();
    // The plan was selected already; a case that others come after is shown though no filter names it.
    face.filter = None;
    face.skip = Vec::new();
    face.color = Some(if color { ColorSetting::Always } else { ColorSetting::Never });
    match report::face(&report, face) {
        Ok(_) => print_quietly(&report::closing(&report, before, color)),
        Err(Unprinted::Closed) => {}
        Err(error) => eprintln!("error: {error}"),
    }
}

/// The conventions: `NO_COLOR` wins, then `CLICOLOR_FORCE`, then what stdout is.
fn wants_color(is_terminal: bool, is_set: &dyn Fn(&str) -> bool, is_dumb: bool) -> bool {
    !is_set("NO_COLOR") && (is_set("CLICOLOR_FORCE") || (is_terminal && !is_dumb))
}
