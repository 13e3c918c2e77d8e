//! What a person types: the verbs and their arguments, and which of them runs what.

mod accept;
mod baseline;
mod bundle;
mod check;
mod clean;
mod columns;
mod compare;
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

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use model::exit_code;
use run_suites::RunArgs;
use std::ffi::OsString;
use store::Home;

/// The whole program but for ending the process.
pub fn main(args: Vec<OsString>) -> i32 {
    match verbs::find(&args) {
        verbs::Found::Verb(run) => run(args),
        verbs::Found::Help(args) => main(args),
        verbs::Found::Version => {
            println!("harness {}", env!("CARGO_PKG_VERSION"));
            exit_code::PASSED
        }
        verbs::Found::Refused(why) => usage(&why),
        verbs::Found::Suites => suites(args),
    }
}

fn suites(args: Vec<OsString>) -> i32 {
    let (args, matches) = match parse_with_matches::<RunArgs>(args) {
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
fn parse<A: Parser + CommandFactory + FromArgMatches>(args: Vec<OsString>) -> Result<A, i32> {
    parse_with_matches(args).map(|(args, _)| args)
}

fn parse_with_matches<A: Parser + CommandFactory + FromArgMatches>(
    args: Vec<OsString>,
) -> Result<(A, ArgMatches), i32> {
    let settings: Vec<String> =
        plan::SETTINGS.iter().map(|setting| format!("  {:<20}  {}", setting.key, setting.about)).collect();
    let all = format!("{}{}\n\n{}", verbs::HELP, settings.join("\n"), exit_code::TABLE);
    // A verb that has codes and words of its own says these; what the default verb has of the kind is libtest-mimic's.
    let own = A::command().get_after_help().map(ToString::to_string);
    let after = own.filter(|_| A::command().get_name() != RunArgs::command().get_name()).unwrap_or(all);
    let command = A::command()
        // libtest-mimic's own template would take the place of ours.
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}")
        .after_help(after);
    let matches =
        command.try_get_matches_from(args).and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    matches.map_err(|error| {
        let _ = error.print();
        if error.use_stderr() { exit_code::USAGE } else { exit_code::PASSED }
    })
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
    usage("no `suites` and `inventory` here or above: run it inside the project's folder")
}

fn usage(why: &str) -> i32 {
    eprintln!("error: {why}");
    exit_code::USAGE
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
