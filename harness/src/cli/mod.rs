//! What a person types: the verbs and their arguments, and which of them runs what.

mod accept;
mod baseline;
mod bundle;
mod check;
mod clean;
mod columns;
mod compare;
mod completions;
mod explain;
mod field_kit;
mod history;
mod inventory;
mod isolate;
mod logs;
mod provision;
mod recipe;
mod replay;
mod rerun;
mod resume;
mod run_suites;
mod stats;
mod sweep;
mod together;
mod verbs;

use crate::error::{self, Error};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use model::exit_code;
use run_suites::RunArgs;
use std::ffi::OsString;
use store::Home;

/// The whole program but for ending the process.
pub fn main(mut args: Vec<OsString>) -> i32 {
    match args.get(1).map(|first| first.to_string_lossy()).as_deref() {
        Some("--version" | "-V") => {
            println!("harness {}", env!("CARGO_PKG_VERSION"));
            exit_code::PASSED
        }
        Some("help") => {
            args.remove(1);
            args.truncate(2);
            args.push("--help".into());
            if args.len() > 2 { verbs::run(args) } else { suites(args) }
        }
        // What is no flag is a verb: libtest-mimic would take a mistyped one for a filter.
        Some(first) if !first.starts_with('-') => verbs::run(args),
        _ => suites(args),
    }
}

fn suites(args: Vec<OsString>) -> i32 {
    // In place of what libtest-mimic says there.
    let command = page(RunArgs::command().after_help(None::<&str>));
    let (args, matches) = match parse::<RunArgs>(command, args) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    match refused(&args.libtest).or_else(|| together::refused(&args, &RunArgs::command(), &matches)) {
        Some(why) => usage(&why),
        None => default_verb(args),
    }
}

/// A new run, or what is to be done with a stored one. A replay needs nothing of the project; all else does.
fn default_verb(args: RunArgs) -> i32 {
    let (run, from, resume, rerun) = (args.run.clone(), args.from, args.resume, args.rerun.clone());
    if let (Some(id), Some(from)) = (&run, from) {
        return match home_or_here() {
            Some(home) => replay::replay(&home, id, from, args.fetch, &args.into_options()),
            None => no_home(),
        };
    }
    let Some(home) = home() else { return no_home() };
    let options = args.into_options();
    match (&run, &rerun) {
        (Some(id), _) if resume => resume::resume(&home, id, &options),
        (_, Some(id)) => rerun::rerun(&home, id, &options),
        _ => run_suites::run(&home, &options),
    }
}

/// clap prints its own message with a suggestion; its exit code for usage is ours too.
fn parse<A: FromArgMatches>(command: Command, args: Vec<OsString>) -> Result<(A, ArgMatches), i32> {
    let matches =
        command.try_get_matches_from(args).and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    matches.map_err(|error| {
        let _ = error.print();
        if error.use_stderr() { exit_code::USAGE } else { exit_code::PASSED }
    })
}

/// Lays out the help of a command. One that has no exit codes and words of its own gets those of the program.
fn page(command: Command) -> Command {
    // libtest-mimic's own template would take the place of ours.
    let command =
        command.help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}");
    if command.get_after_help().is_some() {
        return command;
    }
    let settings: Vec<String> =
        plan::settings().map(|setting| format!("  {:<20}  {}", setting.key, setting.about)).collect();
    command.after_help(format!(
        "Verbs (the first argument; filters of assertion names come behind the flags):\n{}\n\n\
         Settings (--set KEY=VALUE, or --set CASE.KEY=VALUE):\n{}\n\n{}",
        verbs::list(),
        settings.join("\n"),
        exit_code::TABLE
    ))
}

/// What libtest-mimic offers and means nothing here: verdicts are known before it is called.
fn refused(args: &libtest_mimic::Arguments) -> Option<String> {
    let flag = if args.bench {
        "--bench"
    } else if args.test_threads.is_some() {
        "--test-threads"
    } else if args.logfile.is_some() {
        "--logfile"
    } else if args.unstable_flags.is_some() {
        "-Z"
    } else {
        return None;
    };
    Some(format!("`{flag}` means nothing here; see --help"))
}

fn home() -> Option<Home> {
    Home::find(&std::env::current_dir().ok()?)
}

/// The project, or this folder: stored runs bring along all that is needed to look at them.
fn home_or_here() -> Option<Home> {
    let here = std::env::current_dir().ok()?;
    Some(Home::find(&here).unwrap_or_else(|| Home::bare(&here)))
}

fn no_home() -> i32 {
    error::end(Err(Error::NoProject))
}

fn usage(why: &str) -> i32 {
    error::end(Err(Error::Usage(why.to_owned())))
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("written as KEY=VALUE".to_owned()),
    }
}

fn node_hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours.is_finite() => Ok(hours),
        _ => Err("node-hours are a number above 0".to_owned()),
    }
}
