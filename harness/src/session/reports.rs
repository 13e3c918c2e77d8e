//! The reports of a run: written, printed, and the exit code that follows from both.

use super::RunOptions;
use super::attachments;
use super::output::{print_quietly, report_error};
use super::{github, webhook};
use crate::panics;
use crate::pipeline::{self, Finished};
use crate::report::{self, Ending, JunitTarget, Report, ReportError, RequestedReport, Unprinted, narrow};
use libtest_mimic::{ColorSetting, FormatSetting};
use model::artefact::{Plan, Summary};
use model::exit_code;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;
use store::{self, Store};
use verdict::history::past::{self, RunKind};
use verdict::history::suspects;

/// Writes and prints the reports of a run; gives the exit code.
pub(super) fn close(plan: &Plan, finished: &Finished, store: &Store, options: &RunOptions) -> i32 {
    let code = write(plan, finished, store, options);
    // What is printed ends with the code that the process ends with.
    let printed = Summary { exit_code: code, ..finished.summary.clone() };
    let report = Report::new(plan, &finished.cases, &printed);
    github::annotate(&report, store.redactor(), options);
    print(&report, finished.streamed, &blamed_before(plan, &printed, store), options);
    code
}

/// The same of a run that nothing follows, with its summary for GitHub and a webhook.
pub(crate) fn close_alone(plan: &Plan, finished: &Finished, store: &Store, options: &RunOptions) -> i32 {
    let code = close(plan, finished, store, options);
    let report = Report::new(plan, &finished.cases, &finished.summary);
    github::add_summary(&report, store.redactor());
    webhook::send(&report, store.redactor(), options.webhook.as_ref());
    code
}

/// Writes the reports; gives the exit code, which one that cannot be written makes no better.
pub(super) fn write(plan: &Plan, finished: &Finished, store: &Store, options: &RunOptions) -> i32 {
    let (written, errors) = pipeline::write_reports(plan, finished, store);
    let mut code = finished.summary.exit_code;
    let cluster = store::cluster_of(&store.folder()).ok().flatten();
    let report =
        Report { cluster: cluster.as_ref(), ..Report::new(plan, &finished.cases, &finished.summary) };
    for error in errors {
        code = exit_code::graver(code, report_error(&error.to_string()));
    }
    if let (Some(path), Some((_, bytes))) =
        (&options.json, written.iter().find(|(file, _)| *file == "summary.json"))
        && let Err(error) = store::write_output(path, bytes)
    {
        code = exit_code::graver(code, report_error(&error.to_string()));
    }
    if let Some(path) = &options.junit
        && let Err(why) = write_junit(&report, path, store, options)
    {
        code = exit_code::graver(code, report_error(&why));
    }
    for requested in &options.requested {
        if let Err(why) = write_requested(&report, requested, store) {
            code = exit_code::graver(code, report_error(&why));
        }
    }
    code
}

/// Where a report cannot go is said before anything is launched.
pub(crate) fn check_places(options: &RunOptions) -> Result<(), String> {
    let own = [("junit", options.junit.as_ref()), ("json", options.json.as_ref())];
    let own = own.into_iter().filter_map(|(flag, path)| Some((flag, path?)));
    let requested = options.requested.iter().map(|report| (report.format.flag, &report.path));
    let mut seen: BTreeMap<&Path, &str> = BTreeMap::new();
    for (flag, path) in own.chain(requested) {
        let is_read = path.extension().is_some_and(|it| it == "prom") || store::is_stream(path);
        if flag == "prometheus" && !is_read {
            let path = path.display();
            return Err(format!(
                "--prometheus {path}: does not end in .prom: node_exporter would not read it"
            ));
        }
        store::check_output(path)
            .map_err(|error| format!("--{flag}: cannot write `{}`: {error}", path.display()))?;
        if let Some(other) = seen.insert(path, flag).filter(|_| !store::is_stream(path)) {
            return Err(format!("--{other} and --{flag} name the same file: `{}`", path.display()));
        }
    }
    Ok(())
}

/// Reports of an earlier run must not be taken for those of this one, however it ends. Other files are left alone.
pub(super) fn remove_old(options: &RunOptions) -> Result<(), String> {
    let requested = options.requested.iter().filter_map(|report| Some((&report.path, report.format.begins?)));
    let copies = [
        (&options.junit, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites "),
        (&options.json, "{\n  \"format\": "),
    ];
    let copies = copies.into_iter().filter_map(|(path, begins)| Some((path.as_ref()?, begins)));
    for (path, begins) in copies.chain(requested) {
        store::remove_earlier(path, begins)
            .map_err(|error| format!("cannot remove the earlier report `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// The JUnit report where a reader wants it, with attachments that are found from there.
fn write_junit(report: &Report, path: &Path, store: &Store, options: &RunOptions) -> Result<(), String> {
    let document =
        report::junit_for(report, &junit_target(path, store, options)).map_err(|error| error.to_string())?;
    let document = store.redactor().bytes(&document).bytes;
    store::write_output(path, &document).map_err(|error| error.to_string())
}

/// A report in a format that has a flag of its own.
fn write_requested(report: &Report, requested: &RequestedReport, store: &Store) -> Result<(), String> {
    let RequestedReport { format, path } = requested;
    let rendered = panics::caught(format.flag, || (format.render)(report));
    let rendered = rendered.unwrap_or_else(|why| Err(ReportError(format!("internal error: {why}"))));
    let rendered = rendered.map_err(|error| format!("--{}: {error}", format.flag))?;
    store::write_output(path, &store.redactor().bytes(&rendered).bytes).map_err(|error| error.to_string())
}

/// Who reads that report, and where the run's folder is for them.
pub(super) fn junit_target(path: &Path, store: &Store, options: &RunOptions) -> JunitTarget {
    let flavor = options.junit_flavor;
    JunitTarget { flavor, folder: attachments::folder(flavor, path, &store.folder()) }
}

/// So many runs are looked through for those that blamed the same parts.
const LOOKED_THROUGH: usize = 30;

/// What other runs reported of the parts that this one blames.
fn blamed_before(plan: &Plan, summary: &Summary, store: &Store) -> Vec<String> {
    if summary.culprits.is_empty() || RunKind::from_plan(plan) == RunKind::Canary {
        return Vec::new();
    }
    let folder = store.folder();
    let but = [Some(summary.run_id.as_str()), summary.parent.as_deref()];
    let past = folder.parent().map(|runs| past::newest(runs, LOOKED_THROUGH, &but)).unwrap_or_default();
    suspects::before(&past, summary.simulated, &summary.inventory, &summary.culprits)
}

fn print(report: &Report, is_streamed: bool, before: &[String], options: &RunOptions) {
    let color = stdout_wants_color(options.libtest.color);
    if options.libtest.format == Some(FormatSetting::Json) {
        let lines: String = match is_streamed {
            true => report::json::ended(report).map(|line| line + "\n").collect(),
            false => report::json::events(report).map(|line| line + "\n").collect(),
        };
        print_quietly(&lines);
        return;
    }
    let junit = options.junit.as_ref().map(|path| path.display().to_string());
    if let Some(text) = report::broken(report, junit.as_deref()) {
        return print_quietly(&narrow::fit(&text, io::stdout()));
    }
    let ending = Ending { before, junit: junit.as_deref(), color, verbose: options.verbose };
    let closing = narrow::fit(&report::closing(report, ending), io::stdout());
    if options.libtest.format.is_none() {
        let cases = match options.libtest.quiet {
            true => String::new(),
            false => report::case_lines(report, options.verbose, color) + "\n",
        };
        return print_quietly(&(cases + &closing));
    }
    let mut face = options.libtest.clone();
    // The plan was selected already; a case that others come after is shown though no filter names it.
    face.filter = None;
    face.skip = Vec::new();
    face.color = Some(if color { ColorSetting::Always } else { ColorSetting::Never });
    match report::face(report, face) {
        Ok(_) => print_quietly(&closing),
        Err(Unprinted::Closed) => {}
        Err(error) => eprintln!("error: {error}"),
    }
}

/// Whether what is printed on stdout has colours.
pub(crate) fn stdout_wants_color(asked: Option<ColorSetting>) -> bool {
    match asked {
        Some(ColorSetting::Always) => true,
        Some(ColorSetting::Never) => false,
        _ => wants_color(
            io::stdout().is_terminal(),
            &|name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0"),
            std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
        ),
    }
}

/// The conventions: `NO_COLOR` wins, then `CLICOLOR_FORCE`, then what stdout is.
fn wants_color(is_terminal: bool, is_set: &dyn Fn(&str) -> bool, is_dumb: bool) -> bool {
    !is_set("NO_COLOR") && (is_set("CLICOLOR_FORCE") || (is_terminal && !is_dumb))
}
