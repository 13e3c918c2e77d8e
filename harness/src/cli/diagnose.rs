//! `harness diagnose`: its arguments.

use super::home;
use crate::diagnose::{self, Order, ReportSet};
use crate::error::Error;
use crate::memory;
use crate::publish::RemoteInputs;
use crate::session::stored;
use crate::stats::Exporting;
use base::text::show;
use clap::Args;
use model::exit_code;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use store::Home;

const ABOUT: &str = "What limits the work in profiler reports: ranked findings with evidence and advice.";

const LONG_ABOUT: &str = "\
What limits the work in profiler reports: ranked findings with evidence and advice.

Each finding has the part of the time that could be won at most, what shows it, what to change, and the recipe that \
prints its numbers. An input is what `harness recipe` takes, or a run: its id, the beginning of it, `latest` or its \
folder; then each case with reports is diagnosed by itself.

Exits 0 if anything was diagnosed, 3 if no report has work of a GPU, 2 if an input cannot be read.";

/// `harness diagnose`
#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT)]
pub(super) struct DiagnoseArgs {
    /// Report, export or folder of them; or a run
    #[arg(value_name = "INPUT|RUN", required = true)]
    inputs: Vec<PathBuf>,
    /// How many reports are open at once; by default the number of cores
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Export reports again, even if an export exists
    #[arg(long)]
    force_export: bool,
    /// Read exports that are older than their reports
    #[arg(long)]
    stale_ok: bool,
    /// The nsys that exports reports; else the one on PATH
    #[arg(long, value_name = "PATH")]
    nsys: Option<PathBuf>,
    /// How it is printed, for people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

pub(super) fn run(args: &DiagnoseArgs) -> Result<i32, Error> {
    if let Some(log) = args.inputs.iter().find(|path| is_log(path)) {
        let log = show(&log.display().to_string());
        return Err(Error::Usage(format!(
            "`{log}` is text, not a profiler report; a log of a training: `harness logs steps {log}`; others: `harness help logs`"
        )));
    }
    let names = RemoteInputs::open(&args.inputs)?;
    let sets = match names.paths.as_slice() {
        [one] => report_sets(&home()?, one)?.unwrap_or_else(|| vec![(None, vec![one.clone()])]),
        several => vec![(None, several.to_vec())],
    };
    if sets.is_empty() {
        eprintln!("error: no case of this run was profiled: a case asks for it by `profile`");
        return Ok(exit_code::INCONCLUSIVE);
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let order = Order {
        sets,
        names,
        exporting: Exporting { again: args.force_export, stale_ok: args.stale_ok, nsys: args.nsys.clone() },
        jobs: args.jobs.map_or(cores, NonZeroUsize::get),
        as_json: args.format == "json",
    };
    memory::limit();
    Ok(diagnose::run(&order, &mut io::stdout(), &mut io::stderr()))
}

/// Endings of what programs print.
const LOGS: [&str; 4] = ["err", "log", "out", "txt"];
/// The beginning of a file that is looked at, in bytes.
const BEGINNING: u64 = 4096;

/// Whether it is a file that has the name and the letters of a log: databases have NUL at their beginning.
fn is_log(path: &Path) -> bool {
    let is_named = path.extension().is_some_and(|ending| LOGS.iter().any(|log| ending == *log));
    if !is_named || !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut begin));
    read.is_ok() && !begin.is_empty() && !begin.contains(&0)
}

/// The reports of each case of a run; `None` where the word names none.
fn report_sets(home: &Home, word: &Path) -> Result<Option<Vec<ReportSet>>, Error> {
    let Some(text) = word.to_str() else { return Ok(None) };
    let is_folder_of_run = word.join("plan.json").is_file();
    if word.exists() && !is_folder_of_run {
        return Ok(None);
    }
    // A name that is neither may be that of a file in another folder.
    let run = stored::open(home, text).map_err(|why| match why.starts_with("no run") {
        true => Error::Usage(format!("no file `{}`, and {why}", show(text))),
        false => Error::Usage(why),
    })?;
    let cases = run.plan.cases.iter().map(|case| {
        let raw = run.folder().join("cases").join(&case.name).join("raw");
        let folders = case.jobs.iter().map(|job| raw.join(&job.name)).filter(|folder| folder.is_dir());
        (Some(case.name.clone()), folders.collect())
    });
    let has_report = |(_, raw): &ReportSet| !nsys::report_file::find(raw).reports.is_empty();
    Ok(Some(cases.filter(has_report).collect()))
}
