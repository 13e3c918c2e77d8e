//! What a person types: the verbs, and the flags of the default verb, which runs suites.
//! libtest-mimic's arguments are flattened in, so that its vocabulary works as everywhere.

mod accept;
mod access;
mod baseline;
mod bundle;
mod check;
mod clean;
mod columns;
mod compare;
mod field_kit;
mod history;
mod inventory;
mod isolate;
mod load;
mod logs;
mod no_answer;
mod preflight;
mod provision;
mod reached;
mod recipe;
mod rehearsal;
mod replay;
mod rerun;
mod resume;
mod run_suites;
mod stats;
mod stored;
mod sweep;
mod together;
mod verbs;

use crate::replay::From;
use crate::tasks::SLURM;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use cluster::reach::openssh;
use model::exit_code;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use store::Home;

const ABOUT: &str =
    "Tells whether the nodes of a GPU cluster are good, and which part is bad if they are not.";

/// The default verb.
#[derive(Debug, Clone, Parser)]
#[command(name = "harness", about = ABOUT, disable_help_subcommand = true)]
pub struct RunArgs {
    /// Suite to run, by name or path; may be repeated
    #[arg(long = "suite", value_name = "NAME|PATH")]
    pub suites: Vec<String>,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    pub inventory: String,
    /// Run on these nodes of the inventory only, such as `p5-[001-004]` or `@group`
    #[arg(long, value_name = "RANGE")]
    pub nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    pub exclude_nodes: Option<String>,
    /// Launch on all nodes, whatever they are and have
    #[arg(long)]
    pub no_probe: bool,
    /// Probe the nodes of a simulated cluster too, before anything is launched
    #[arg(long, conflicts_with = "no_probe")]
    pub probe: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    pub allow_busy: bool,
    /// Run inside this reservation of Slurm, whatever the inventory says
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Print the plan: scripts, exact argument lists, nodes, files, time; launch nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Override a value of the suite for this run; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub settings: Vec<(String, String)>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    pub sim_faults: Vec<String>,
    /// Write the JUnit report here too
    #[arg(long, value_name = "PATH")]
    pub junit: Option<PathBuf>,
    /// Write the summary here too
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
    /// Say more: in --dry-run, every job in full
    #[arg(short, long)]
    pub verbose: bool,
    /// Launch nothing more after this many failures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_fail: Option<u32>,
    /// Exit 3 where any number has nothing to be compared with
    #[arg(long)]
    pub strict: bool,
    /// With --max-fail: errors count as failures
    #[arg(long, requires = "max_fail")]
    pub errors: bool,
    /// Nodes that hung, were lost or crashed take part in later cases all the same
    #[arg(long)]
    pub keep_bad_nodes: bool,
    /// Where a suite is red: run on to find the part that makes it, as `harness isolate` does, or leave it at that
    #[arg(long, value_name = "WHAT", value_parser = ["isolate", "nothing"])]
    pub on_failure: Option<String>,
    /// End the whole run after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Recipes of your own beside those in `suites/recipes`: a file or a folder of them
    #[arg(long, value_name = "PATH", env = "HARNESS_RECIPE_PATH")]
    pub recipe_path: Option<PathBuf>,
    /// Connect to at most so many hosts by ssh at the same time, and launch so many jobs over ssh
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub ssh_fanout: u32,
    /// Read reports in tasks of the inventory's Slurm, one node's reports each, and join what they took: `slurm`
    #[arg(long, value_name = "PLACE", value_parser = [SLURM])]
    pub analyze_on: Option<String>,
    /// Take baselines from this folder instead of the project's own
    #[arg(long, value_name = "DIR")]
    pub baselines: Option<PathBuf>,
    /// A run that was made before: its id, the beginning of it, `latest`, its folder or its bundle
    #[arg(long, value_name = "ID|PATH")]
    pub run: Option<String>,
    /// With --run: go through it again from this stage, in a run of its own; needs no cluster
    #[arg(long, value_name = "STAGE")]
    pub from: Option<From>,
    /// With --from collect: ask the nodes for what is missing
    #[arg(long)]
    pub fetch: bool,
    /// With --run: go on where its process was ended
    #[arg(long)]
    pub resume: bool,
    /// Run again what this run failed or could not tell
    #[arg(long, value_name = "ID|PATH")]
    pub rerun: Option<String>,
    #[command(flatten)]
    pub libtest: libtest_mimic::Arguments,
}

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

/// A replay needs nothing of the project; all else does.
fn default_verb(args: RunArgs) -> i32 {
    match (&args.run, args.from) {
        (Some(id), Some(from)) => match home_or_here() {
            Some(home) => replay::replay(&home, id, from, &args),
            None => no_home(),
        },
        _ => run_suites::run(args),
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

fn settings(pairs: &[(String, String)]) -> BTreeMap<String, String> {
    pairs.iter().cloned().collect()
}
