//! What a person types: the verbs and their arguments, and which of them runs what.

mod accept;
mod baseline;
mod bisect;
mod bundle;
mod check;
mod clean;
mod columns;
mod compare;
mod completions;
mod diagnose;
mod duration;
mod explain;
mod fetch;
mod field_kit;
mod foreign_flags;
mod history;
mod hostile_arguments;
mod in_kubernetes;
mod init;
mod inventory;
mod isolate;
mod list;
mod logs;
mod man;
mod manifest;
mod named_run;
mod observe;
mod old_spellings;
mod overview;
mod predict;
mod provision;
mod prune_clock;
mod publish;
mod recipe;
mod replay;
mod requested_reports;
mod rerun;
mod resume;
mod retention;
mod rma;
mod run_page;
mod run_suites;
mod runs;
pub mod schema;
mod settings;
mod site;
mod stats;
mod sweep;
mod thread_variables;
mod together;
mod trace;
mod verbs;
mod version;
mod watch;
mod watch_fleet;

pub use baseline::read_pack;

use crate::error::{self, Error};
use crate::file_size_limit;
use crate::library::places;
use clap::{ArgMatches, Command, FromArgMatches};
use model::exit_code;
use std::ffi::OsString;
use store::{Home, trust};

/// The whole program but for ending the process.
pub fn main(args: Vec<OsString>) -> i32 {
    file_size_limit::make_it_an_error();
    let why = hostile_arguments::refused(&args)
        .or_else(|| hostile_arguments::refused_variable(std::env::vars_os()))
        .or_else(|| thread_variables::refused(std::env::vars_os()));
    if let Some(why) = why {
        return usage(&why);
    }
    let (mut args, warnings) = old_spellings::renew(args);
    for warning in warnings {
        eprintln!("warning: {warning}; the old spelling goes with the next release");
    }
    let first = args.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    match (first.as_str(), args.len()) {
        ("--version", _) => {
            println!("{}", version::long());
            exit_code::PASSED
        }
        ("-V", _) => {
            println!("{}", version::short());
            exit_code::PASSED
        }
        ("--help" | "-h" | "help", 2) => overview::print(),
        ("help", _) => {
            args.remove(1);
            args.push("--help".into());
            verbs::run(args)
        }
        (first, _) if first == "--run" || first.starts_with("--run=") => usage(
            "--run needs a verb: `harness runs show --run ID` shows a run, `replay` judges it again, `resume` goes on with \
             it, `rerun` repeats what failed",
        ),
        // What is no flag is a verb: libtest-mimic would take a mistyped one for a filter.
        (first, _) if !first.is_empty() && !first.starts_with('-') => verbs::run(args),
        _ => {
            args.insert(args.len().min(1), "run".into());
            verbs::run(args)
        }
    }
}

/// clap prints its own message with a suggestion; its exit code for usage is ours too.
fn parse<A: FromArgMatches>(mut command: Command, args: Vec<OsString>) -> Result<(A, ArgMatches), i32> {
    let matches = command
        .try_get_matches_from_mut(&args)
        .and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    matches.map_err(|error| {
        if !error.use_stderr() {
            crate::standard_output::note(error.print());
            return exit_code::PASSED;
        }
        let (verb, typed) = foreign_flags::typed_verb(&command, &args);
        eprint!("{}", foreign_flags::text(&foreign_flags::explained(error, verb), &typed));
        exit_code::USAGE
    })
}

/// Lays out the help of a verb. One that runs or judges suites says what can be set, and what its exit codes mean.
fn page(verb: Command) -> Command {
    // libtest-mimic's own template would take the place of ours.
    let verb = verb.help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}");
    let settings: Vec<String> =
        plan::settings().map(|setting| format!("  {:<20}  {}", setting.key, setting.about)).collect();
    match verb.get_name() {
        "run" | "plan" => verb.after_help(format!(
            "Settings (--set KEY=VALUE, or --set CASE.KEY=VALUE):\n{}\n\n{}",
            settings.join("\n"),
            exit_code::TABLE
        )),
        "list" => verb.after_help(None::<&str>),
        "rerun" | "resume" | "replay" => verb.after_help(exit_code::TABLE),
        _ => verb,
    }
}

/// The project: the nearest folder at or above this one that has suites and inventories, else this folder. One above that
/// others can change is passed over: its suites would start commands in the name of its user.
fn home() -> Result<Home, Error> {
    places::check().map_err(Error::Usage)?;
    let (home, distrusted) = project()?;
    if let Some(why) = distrusted {
        eprintln!("warning: the project above this folder is not used: {why}");
    }
    Ok(home)
}

/// The same, and why another folder above this one is not it.
fn project() -> Result<(Home, Option<String>), Error> {
    let here = std::env::current_dir().map_err(|error| Error::Usage(format!("this folder: {error}")))?;
    let Some(home) = Home::find(&here) else { return Ok((Home::bare(&here), None)) };
    if let Some(why) = trust::put_by_others(home.path(), &["suites", "inventory", "baselines"])
        .filter(|_| home.path() == here)
    {
        return Err(Error::Usage(format!(
            "this folder's project is not used: {why}; work in a folder of your own"
        )));
    }
    match trust::distrusted(home.path()).filter(|_| home.path() != here) {
        None => Ok((home, None)),
        Some(why) => Ok((Home::bare(&here), Some(why))),
    }
}

fn usage(why: &str) -> i32 {
    error::end(Err(Error::Usage(why.to_owned())))
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

fn node_hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours.is_finite() => Ok(hours),
        _ => Err("node-hours are a number above 0".to_owned()),
    }
}
