//! The verbs: what the first argument is, and what runs it.

use super::{
    accept, baseline, bundle, check, clean, compare, explain, field_kit, history, inventory, isolate,
};
use super::{logs, parse, provision, recipe, stats, sweep};
use crate::lint;
use crate::own_recipes::worker;
use crate::tasks::local;
use crate::tasks::task;
use base::suggest;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::io;

pub(super) const HELP: &str = "\
Verbs (the first argument; filters of assertion names come behind the flags):
  accept --nodes RANGE  validate new nodes stage by stage, with a certificate
  baseline propose --run ID...
                        propose baselines from runs; also `review`, `show`, `lint`, `diff`, `export`
  bundle --run ID       pack a run into one file that opens on any machine
  check                 lint every suite, inventory and baseline, offline
  compare A B           show what is worse in run B than in run A
  explain CODE          explain the code of a culprit, and what to do next
  field-kit             check which assumptions of the harness hold on a cluster, and pack the evidence
  history METRIC        show how a metric changed from run to run; `--suspects`: parts that were blamed
  inventory discover    write an inventory of the nodes that Slurm has
  inventory probe       ask the nodes for their hardware and software; `diff`: show which differ
  isolate --suite S     find the part that makes a suite red, with as few runs as possible
  clean --run ID        remove the leftovers of a run, and verify that none remain
  lint script FILE...   find errors in scripts and manifests that launch jobs; `lint function-trace`: in lists for nsys
  logs efa FILE...      print the counters of EFA devices that `rdma statistic` or `hw_counters` show
  logs mpi FILE...      print the calls and ranks of logs of MPI messages
  logs nccl FILE...     print the calls, communicators and networks of NCCL logs
  logs nccl-tests FILE  print the tables of nccl-tests output
  logs steps FILE       print the steps that a training log reports
  provision nsys        install an nsys package into a shared folder
  recipe NAME INPUT...  compute tables from many profiler reports together
  stats INPUT...        print tables of statistics of profiler reports
  sweep                 run random suites with random faults on simulated clusters, one per seed

Settings (--set KEY=VALUE, or --set CASE.KEY=VALUE):
";

type Run = fn(Vec<OsString>) -> i32;

const VERBS: &[(&str, Run)] = &[
    ("accept", |args| verb::<accept::AcceptArgs>(args, accept::run)),
    ("baseline", |args| verb::<baseline::BaselineArgs>(args, |args| baseline::run(&args))),
    ("bundle", |args| verb::<bundle::BundleArgs>(args, |args| bundle::run(&args))),
    ("check", |args| verb::<check::CheckArgs>(args, |args| check::run(&args))),
    ("clean", |args| verb::<clean::CleanArgs>(args, |args| clean::run(&args))),
    ("compare", |args| verb::<compare::CompareArgs>(args, |args| compare::run(&args))),
    ("explain", |args| verb::<explain::ExplainArgs>(args, |args| explain::run(&args))),
    ("field-kit", |args| verb::<field_kit::FieldKitArgs>(args, |args| field_kit::run(&args))),
    ("history", |args| verb::<history::HistoryArgs>(args, |args| history::run(&args))),
    ("inventory", |args| verb::<inventory::InventoryArgs>(args, |args| inventory::run(&args))),
    ("isolate", |args| verb::<isolate::IsolateArgs>(args, isolate::run)),
    ("lint", |args| {
        verb::<LintArgs>(args, |args| lint::run(&args.command, &mut io::stdout(), &mut io::stderr()))
    }),
    ("logs", |args| verb(args, logs::run)),
    ("provision", |args| verb::<provision::ProvisionArgs>(args, |args| provision::run(&args))),
    ("recipe", |args| verb::<recipe::RecipeArgs>(args, |args| recipe::run(&args))),
    ("stats", |args| verb::<stats::StatsArgs>(args, |args| stats::run(&args))),
    ("sweep", |args| verb::<sweep::SweepArgs>(args, |args| sweep::run(&args))),
    // The harness starts itself by these.
    (worker::VERB, |args| worker::serve(&words(&args))),
    (task::VERB, |args| task::serve(&words(&args))),
    (local::VERB, |args| local::serve(&words(&args))),
];

/// `harness lint`
#[derive(Debug, Parser)]
#[command(name = "harness lint", about = "Errors in files for other programs, with their places.")]
struct LintArgs {
    #[command(subcommand)]
    command: lint::LintCommand,
}

/// What a command line asks for.
pub(super) enum Found {
    Verb(Run),
    /// Help, by the arguments that ask for it.
    Help(Vec<OsString>),
    Version,
    Refused(String),
    /// No verb: suites are run.
    Suites,
}

pub(super) fn find(args: &[OsString]) -> Found {
    let Some(first) = args.get(1).map(|first| first.to_string_lossy().into_owned()) else {
        return Found::Suites;
    };
    let known = |name: &str| VERBS.iter().find(|(verb, _)| *verb == name).map(|(_, run)| *run);
    match first.as_str() {
        "--version" | "-V" => Found::Version,
        "help" => {
            let verb = args.get(2).filter(|verb| known(&verb.to_string_lossy()).is_some());
            match (verb, args.get(2)) {
                (None, Some(other)) => refused(&other.to_string_lossy()),
                (verb, _) => {
                    let program = args.first().cloned().unwrap_or_default();
                    Found::Help(
                        [Some(program), verb.cloned(), Some("--help".into())].into_iter().flatten().collect(),
                    )
                }
            }
        }
        first if first.starts_with('-') => Found::Suites,
        first => known(first).map_or_else(|| refused(first), Found::Verb),
    }
}

fn refused(word: &str) -> Found {
    let public = VERBS
        .iter()
        .map(|(verb, _)| *verb)
        .filter(|verb| ![worker::VERB, task::VERB, local::VERB].contains(verb));
    let meant = match suggest::nearest(word, public) {
        Some(verb) => format!("did you mean `{verb}`?"),
        None => {
            "suites are run without a verb, `harness --suite NAME [FILTER]`; verbs: `harness help`".to_owned()
        }
    };
    Found::Refused(format!("no verb `{}`; {meant}", word.escape_debug()))
}

/// Parses the arguments behind the verb, and runs it.
fn verb<A: Parser + CommandFactory + FromArgMatches>(
    mut args: Vec<OsString>,
    run: impl FnOnce(A) -> i32,
) -> i32 {
    // The usage line names the verb.
    let name = args.remove(1);
    if let Some(program) = args.first_mut() {
        *program = format!("harness {}", name.to_string_lossy()).into();
    }
    match parse(args) {
        Ok(args) => run(args),
        Err(code) => code,
    }
}

fn words(args: &[OsString]) -> Vec<String> {
    args.iter().skip(2).map(|word| word.to_string_lossy().into_owned()).collect()
}
