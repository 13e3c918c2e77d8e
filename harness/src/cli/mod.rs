//! What a person types: the verbs, and the flags of the default verb, which runs suites.
//! libtest-mimic's arguments are flattened in, so that its vocabulary works as everywhere.

mod accept;
mod access;
mod baseline;
mod bundle;
mod clean;
mod columns;
mod compare;
mod field_kit;
mod history;
mod inventory;
mod isolate;
mod load;
mod no_answer;
mod preflight;
mod provision;
mod reached;
mod recipe;
mod replay;
mod rerun;
mod resume;
mod run_suites;
mod stats;
mod stored;
mod sweep;
mod together;

use crate::inventory::Instances;
use crate::reach::openssh;
use crate::recipe::own::worker;
use crate::replay::From;
use crate::store::Home;
use crate::tasks::{SLURM, task};
use crate::{check, exit_code, lint, logs};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

const ABOUT: &str =
    "Tells whether the nodes of a GPU cluster are good, and which part is bad if they are not.";

const VERBS: &str = "\
Verbs (the first word; anything else there is a filter of assertion names):
  accept --nodes RANGE  say of new nodes whether they are good, stage by stage, with a certificate
  baseline propose --run ID...
                        what runs say the baselines should be; `review`: decide on it; `show`, `lint`, `diff`, `export`
  bundle --run ID       a run as one file, which opens on any machine
  check                 lint every suite, inventory and baseline, offline
  compare A B           what is worse in run B than in run A, and whether they can be compared
  explain CODE          what the code of a culprit means, and what to do next
  field-kit             check on a cluster what the harness assumes of it, and pack what was seen
  history METRIC        how a number went from run to run, and where it changed; `--suspects`: parts that were blamed
  inventory discover    write an inventory of the nodes that Slurm has
  inventory probe       ask the nodes what they are and have; `diff`: which are unlike the others
  isolate --suite S     find the part that makes a suite red, with as few runs as it takes
  clean --run ID        end what is left of a run, and show that nothing is
  lint script FILE...   mistakes in scripts and manifests that launch jobs; `lint function-trace`: in lists for nsys
  logs mpi FILE...      print what logs of MPI messages tell
  logs nccl FILE...     print the calls, communicators and networks that logs of NCCL tell of
  logs nccl-tests FILE  print what was read from the output of nccl-tests
  logs steps FILE       print the steps of a training, as its log tells them
  provision nsys        put an nsys that you have as a package onto a shared folder
  recipe NAME INPUT...  tables that recipes make of many profiler reports together
  stats INPUT...        tables of statistics of profiler reports
  sweep                 drawn suites with drawn faults on pretend clusters, one per seed

Settings (--set KEY=VALUE, or --set CASE.KEY=VALUE):
";

/// The default verb.
#[derive(Debug, Clone, Parser)]
#[command(name = "harness", about = ABOUT, version, disable_help_subcommand = true)]
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
    /// Probe the nodes of a pretend cluster too, before anything is launched
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
    /// Seed of the pretend cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A fault of the pretend cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
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

/// `harness check`
#[derive(Debug, Parser)]
#[command(name = "harness check", about = "Lint every suite, inventory and baseline, offline.")]
struct CheckArgs {}

/// `harness lint`
#[derive(Debug, Parser)]
#[command(name = "harness lint", about = "Mistakes in files for other programs, with their places.")]
struct LintArgs {
    #[command(subcommand)]
    asked: lint::Asked,
}

/// `harness logs`
#[derive(Debug, Parser)]
#[command(name = "harness logs", about = "Print what was read from logs.")]
struct LogsArgs {
    #[command(subcommand)]
    kind: LogKind,
}

#[derive(Debug, clap::Subcommand)]
enum LogKind {
    /// Logs of MPI messages, as a preloaded logger writes them: calls with their bytes, ranks, and what is odd
    Mpi(logs::mpi::Asked),
    /// Logs of NCCL (NCCL_DEBUG=INFO): calls with their bytes, communicators, networks, and what is odd
    Nccl(logs::nccl::Asked),
    /// Output of nccl-tests, text or JSON; `-` is standard input
    NcclTests {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// One JSON object per file
        #[arg(long)]
        json: bool,
        /// Exit with 1 where something was found
        #[arg(long)]
        fail_on_findings: bool,
    },
    /// Logs of trainings: the time, throughput and loss of each step, and what they tell
    Steps(logs::steps::Asked),
}

/// The whole program but for ending the process.
pub fn main(args: Vec<OsString>) -> i32 {
    let verb = args.get(1).and_then(|word| word.to_str()).map(str::to_owned);
    match verb.as_deref() {
        Some("accept") => match parse::<accept::AcceptArgs>(verb_args(args)) {
            Ok(args) => accept::run(&args),
            Err(code) => code,
        },
        Some("baseline") => match parse::<baseline::BaselineArgs>(verb_args(args)) {
            Ok(args) => baseline::run(&args),
            Err(code) => code,
        },
        Some("bundle") => match parse::<bundle::BundleArgs>(verb_args(args)) {
            Ok(args) => bundle::run(&args),
            Err(code) => code,
        },
        Some("check") => match parse::<CheckArgs>(verb_args(args)) {
            Ok(CheckArgs {}) => run_check(),
            Err(code) => code,
        },
        Some("compare") => match parse::<compare::CompareArgs>(verb_args(args)) {
            Ok(args) => compare::run(&args),
            Err(code) => code,
        },
        Some("field-kit") => match parse::<field_kit::FieldKitArgs>(verb_args(args)) {
            Ok(args) => field_kit::run(&args),
            Err(code) => code,
        },
        Some("history") => match parse::<history::HistoryArgs>(verb_args(args)) {
            Ok(args) => history::run(&args),
            Err(code) => code,
        },
        Some("inventory") => match parse::<inventory::InventoryArgs>(verb_args(args)) {
            Ok(args) => inventory::run(&args),
            Err(code) => code,
        },
        Some("explain") => match parse::<isolate::ExplainArgs>(verb_args(args)) {
            Ok(args) => isolate::explain(&args),
            Err(code) => code,
        },
        Some("isolate") => match parse::<isolate::IsolateArgs>(verb_args(args)) {
            Ok(args) => isolate::run(&args),
            Err(code) => code,
        },
        Some("clean") => match parse::<clean::CleanArgs>(verb_args(args)) {
            Ok(args) => clean::run(&args),
            Err(code) => code,
        },
        Some("lint") => match parse::<LintArgs>(verb_args(args)) {
            Ok(LintArgs { asked }) => lint::run(&asked, &mut io::stdout(), &mut io::stderr()),
            Err(code) => code,
        },
        Some("logs") => match parse::<LogsArgs>(verb_args(args)) {
            Ok(LogsArgs { kind: LogKind::NcclTests { files, json, fail_on_findings } }) => {
                logs::nccl_tests::run(&files, json, fail_on_findings, &mut io::stdout(), &mut io::stderr())
            }
            Ok(LogsArgs { kind: LogKind::Mpi(args) }) => {
                logs::mpi::run(&args, &mut io::stdout(), &mut io::stderr())
            }
            Ok(LogsArgs { kind: LogKind::Nccl(args) }) => logs_nccl(args),
            Ok(LogsArgs { kind: LogKind::Steps(args) }) => {
                logs::steps::run(&args, &mut io::stdout(), &mut io::stderr())
            }
            Err(code) => code,
        },
        Some(worker::VERB) => {
            let words = args.iter().skip(2).map(|word| word.to_string_lossy().into_owned());
            worker::serve(&words.collect::<Vec<_>>())
        }
        Some(task::VERB) => {
            let words = args.iter().skip(2).map(|word| word.to_string_lossy().into_owned());
            task::serve(&words.collect::<Vec<_>>())
        }
        Some("provision") => match parse::<provision::ProvisionArgs>(verb_args(args)) {
            Ok(args) => provision::run(&args),
            Err(code) => code,
        },
        Some("recipe") => match parse::<recipe::RecipeArgs>(verb_args(args)) {
            Ok(args) => recipe::run(&args),
            Err(code) => code,
        },
        Some("stats") => match parse::<stats::StatsArgs>(verb_args(args)) {
            Ok(args) => stats::run(&args),
            Err(code) => code,
        },
        Some("sweep") => match parse::<sweep::SweepArgs>(verb_args(args)) {
            Ok(args) => sweep::run(&args),
            Err(code) => code,
        },
        _ => match parse_with_matches::<RunArgs>(args) {
            Ok((args, matches)) => {
                let why = refused(&args.libtest)
                    .or_else(|| together::refused(&args, &RunArgs::command(), &matches));
                match why {
                    Some(why) => usage(&why),
                    None => default_verb(args),
                }
            }
            Err(code) => code,
        },
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

/// The arguments without the verb, so that the verb's own parser sees them as its own.
fn verb_args(mut args: Vec<OsString>) -> Vec<OsString> {
    args.remove(1);
    args
}

/// clap prints its own message with a suggestion; its exit code for usage is ours too.
fn parse<A: Parser + CommandFactory + FromArgMatches>(args: Vec<OsString>) -> Result<A, i32> {
    parse_with_matches(args).map(|(args, _)| args)
}

fn parse_with_matches<A: Parser + CommandFactory + FromArgMatches>(
    args: Vec<OsString>,
) -> Result<(A, ArgMatches), i32> {
    let settings: Vec<String> = crate::plan::SETTINGS
        .iter()
        .map(|setting| format!("  {:<20}  {}", setting.key, setting.about))
        .collect();
    let all = format!("{VERBS}{}\n\n{}", settings.join("\n"), exit_code::TABLE);
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

fn run_check() -> i32 {
    let Some(home) = home() else { return no_home() };
    let report = check::check(home.path());
    for mistake in &report.mistakes {
        println!("{mistake}");
    }
    for (word, told) in [("warning", &report.warnings), ("note", &report.notes)] {
        told.iter().for_each(|told| println!("{word}: {told}"));
    }
    let count = |count: usize, word: &str| match count {
        0 => String::new(),
        1 => format!(", 1 {word}"),
        count => format!(", {count} {word}s"),
    };
    let (warnings, notes) = (count(report.warnings.len(), "warning"), count(report.notes.len(), "note"));
    let files = report.files.len();
    let mistakes = report.mistakes.len();
    println!("{files} files, {mistakes} mistakes{warnings}{notes}");
    if mistakes == 0 { exit_code::PASSED } else { exit_code::USAGE }
}

fn home() -> Option<Home> {
    Home::find(&std::env::current_dir().ok()?)
}

/// The project, or this folder: stored runs bring along all that is needed to look at them.
/// With the number of network cards of the instance that is named.
fn logs_nccl(mut args: logs::nccl::Asked) -> i32 {
    if let Some(name) = &args.instance {
        let Some(home) = home() else { return no_home() };
        let instances = match Instances::load(home.path()) {
            Ok(instances) => instances,
            Err(mistakes) => return usage(&mistakes.to_string()),
        };
        let Some(instance) = instances.get(name) else {
            let known: Vec<&str> = instances.names().collect();
            return usage(&format!("--instance: there are `{}`, not: `{name}`", known.join("`, `")));
        };
        args.nics = Some(instance.nics.len() as u64);
    }
    logs::nccl::run(&args, &mut io::stdout(), &mut io::stderr())
}

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
