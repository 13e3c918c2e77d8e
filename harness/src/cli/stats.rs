//! `harness stats`: the tables of statistics of exported reports, with the options of nsys.

use crate::memory;
use crate::publish::RemoteInputs;
use crate::stats::{self, Exporting, Order};
use base::suggest::nearest;
use clap::Args;
use model::exit_code;
use nsys::trace::Filter;
use recipes::report;
use recipes::result_table::{Headings, Look, TimeUnit};
use std::io::{self, IsTerminal};
use std::path::PathBuf;

const ABOUT: &str = "Tables of statistics of profiler reports.";

// A paragraph a line: the parser breaks it as wide as the terminal is.
const LONG_ABOUT: &str = "\
Tables of statistics of profiler reports.

An input is an export (a folder of Parquet or Arrow files, a file of SQLite or of Arrow streams), a `.nsys-rep` beside \
which an export stands or that your own nsys can export, a folder with such files, or `folder:n` for the first n of it. \
Each report is read once. Stdout holds only the tables.

Times are shown in --timeunit where a heading has a unit; bare headings (Start, Duration) stay in nanoseconds. With \
--headings 2022 the columns Average, Minimum, Maximum and StdDev have the unit of Total Time. Sizes are in MB of 10^6.

Exits 0 if there is a table, 3 if no input has data for any report or memory is short, 2 on a usage error or if a file \
cannot be read or written.";

/// `harness stats`
#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT)]
pub(super) struct StatsArgs {
    #[arg(value_name = "INPUT", required_unless_present_any = ["help_reports", "help_formats"])]
    inputs: Vec<PathBuf>,
    /// Report with its arguments; a list between commas, or repeated
    #[arg(short, long = "report", value_name = "NAME[:ARG...]")]
    reports: Vec<String>,
    /// Format of each report with its options: column, table, csv, tsv, json, htable, hdoc; `.` is column on a terminal
    /// and csv elsewhere. The last one is repeated
    #[arg(short, long = "format", value_name = "NAME[:OPTION...]")]
    formats: Vec<String>,
    /// Where each report goes: `-` is stdout, `.` a file beside the input, `DIR/` a file in that folder, anything else
    /// the beginning of the file's name. The last one is repeated
    #[arg(short, long = "output", value_name = "WHERE", allow_hyphen_values = true)]
    outputs: Vec<String>,
    /// Unit of times: nsec, usec, msec or seconds
    #[arg(long, value_name = "UNIT", default_value = "nsec", value_parser = time_unit)]
    timeunit: TimeUnit,
    /// Column headings: of current releases, or of those of 2022
    #[arg(long, value_name = "today|2022", default_value = "today", value_parser = headings)]
    headings: Headings,
    /// Use only rows in this time span, in nanoseconds or with a unit
    #[arg(long, value_name = "[START]/[END]", allow_hyphen_values = true, conflicts_with = "filter_nvtx")]
    filter_time: Option<String>,
    /// Use only rows in NVTX ranges of this name
    #[arg(long, value_name = "RANGE[@DOMAIN][/INDEX]")]
    filter_nvtx: Option<String>,
    /// Replace existing files
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    force_overwrite: bool,
    /// Export reports again, even if an export exists
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    force_export: bool,
    /// Read exports that are older than their reports
    #[arg(long)]
    stale_ok: bool,
    /// The nsys that exports reports; else the one on PATH
    #[arg(long, value_name = "PATH")]
    nsys: Option<PathBuf>,
    /// Print only tables, skipped tables, notes and errors
    #[arg(short, long)]
    quiet: bool,
    /// List the reports, or describe one
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    help_reports: Option<Option<String>>,
    /// List the formats, or describe one
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    help_formats: Option<Option<String>>,
}

pub(super) fn run(args: &StatsArgs) -> i32 {
    let mut manual = Vec::new();
    if let Some(name) = &args.help_reports {
        manual.push(stats::help_reports(name.as_deref()));
    }
    if let Some(name) = &args.help_formats {
        manual.push(stats::help_formats(name.as_deref()));
    }
    if !manual.is_empty() {
        return match manual.into_iter().collect::<Result<Vec<String>, String>>() {
            Ok(texts) => {
                crate::standard_output::print(texts.join("\n").as_bytes());
                exit_code::PASSED
            }
            Err(why) => diagnostics(&[why]),
        };
    }
    match order(args) {
        Ok(order) => {
            memory::limit();
            stats::stats(&order, &mut io::stdout(), &mut io::stderr())
        }
        Err(why) => diagnostics(&why),
    }
}

/// All errors at once.
fn order(args: &StatsArgs) -> Result<Order, Vec<String>> {
    let mut errors = Vec::new();
    let asked =
        stats::parse_requests(&args.reports, &args.formats, &args.outputs).unwrap_or_else(|diagnostics| {
            errors.extend(diagnostics);
            Vec::new()
        });
    // `-r` left out: what the other inputs hold was not what was asked for.
    let is_report = |input: &&PathBuf| input.to_str().is_some_and(|it| report::find(it).is_some());
    if let Some(name) = args.inputs.iter().filter(is_report).find(|input| !input.exists()) {
        errors.push(format!("{0} is a report and no input: write `-r {0}`", name.display()));
    }
    let mut filter = None;
    if let Some(text) = &args.filter_time {
        match text.parse() {
            Ok(span) => filter = Some(Filter::Time(span)),
            Err(error) => errors.push(format!("--filter-time: {error}")),
        }
    }
    if let Some(text) = &args.filter_nvtx {
        match text.parse() {
            Ok(range) => filter = Some(Filter::Range(range)),
            Err(error) => errors.push(format!("--filter-nvtx: {error}")),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let inputs = RemoteInputs::open(&args.inputs).map_err(|why| vec![why.to_string()])?;
    Ok(Order {
        inputs,
        asked,
        look: Look { headings: args.headings, unit: args.timeunit },
        filter,
        range: args.filter_nvtx.clone(),
        exporting: Exporting { again: args.force_export, stale_ok: args.stale_ok, nsys: args.nsys.clone() },
        overwrite: args.force_overwrite,
        quiet: args.quiet,
        is_terminal: io::stdout().is_terminal(),
    })
}

fn diagnostics(why: &[String]) -> i32 {
    for why in why {
        eprintln!("error: {why}");
    }
    exit_code::USAGE
}

pub(super) fn time_unit(text: &str) -> Result<TimeUnit, String> {
    TimeUnit::find(text).ok_or_else(|| one_of(text, &["nsec", "usec", "msec", "seconds"]))
}

fn headings(text: &str) -> Result<Headings, String> {
    match text {
        "today" => Ok(Headings::Today),
        "2022" => Ok(Headings::Of2022),
        _ => Err(one_of(text, &["today", "2022"])),
    }
}

fn one_of(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("{near}known: `{}`", known.join("`, `"))
}
