//! The verbs: what the first argument can be, and what runs it.

use super::run_suites::{self, MEANINGLESS, RunArgs, RunVerbArgs, WITHOUT_EFFECT};
use super::settings::Settings;
use super::{
    accept, baseline, bisect, bundle, check, clean, compare, completions, diagnose, explain, fetch,
    field_kit, history, init, inventory, isolate, list,
};
use super::{
    home, logs, man, manifest, observe, page, parse, predict, provision, publish, recipe, replay, rerun,
    resume, rma, runs, schema, site, stats, sweep,
};
use super::{named_run, project, run_page, together, trace, watch, watch_fleet};
use crate::diagnose::kept as diagnosis;
use crate::error::{self, Error};
use crate::lint;
use crate::own_recipes::worker;
use crate::session::{RunOptions, load};
use crate::tasks::local;
use crate::tasks::task;
use crate::trace::kept;
use base::suggest;
use clap::parser::ValueSource;
use clap::{Args, Command, Subcommand};
use std::ffi::OsString;
use std::io;

/// A verb and its arguments. `overview` says what each is for.
#[derive(Debug, Subcommand)]
enum Verb {
    Accept(accept::AcceptArgs),
    #[command(subcommand)]
    Baseline(baseline::BaselineVerb),
    Bisect(bisect::BisectArgs),
    Bundle(bundle::BundleArgs),
    Check(check::CheckArgs),
    Clean(clean::CleanArgs),
    Compare(compare::CompareArgs),
    Completions(completions::CompletionsArgs),
    Diagnose(diagnose::DiagnoseArgs),
    Explain(explain::ExplainArgs),
    Fetch(fetch::FetchArgs),
    FieldKit(field_kit::FieldKitArgs),
    History(history::HistoryArgs),
    Init(init::InitArgs),
    #[command(subcommand)]
    Inventory(inventory::InventoryVerb),
    Isolate(isolate::IsolateArgs),
    #[command(subcommand)]
    Lint(lint::LintCommand),
    List(list::ListArgs),
    #[command(subcommand)]
    Logs(logs::LogKind),
    Man(man::ManArgs),
    Manifest(manifest::ManifestArgs),
    Observe(observe::ObserveArgs),
    Page(run_page::PageArgs),
    Plan(PlanArgs),
    Predict(predict::PredictArgs),
    #[command(subcommand)]
    Provision(provision::Package),
    Publish(publish::PublishArgs),
    Recipe(recipe::RecipeArgs),
    Replay(replay::ReplayArgs),
    Rerun(rerun::RerunArgs),
    Resume(resume::ResumeArgs),
    Rma(rma::RmaArgs),
    Run(RunVerbArgs),
    #[command(subcommand)]
    Runs(runs::RunsVerb),
    Schema(schema::SchemaArgs),
    Site(site::SiteArgs),
    Stats(stats::StatsArgs),
    Sweep(sweep::SweepArgs),
    Trace(trace::TraceArgs),
    Watch(watch::WatchArgs),
    WatchFleet(watch_fleet::WatchFleetArgs),
    // The harness starts itself by these.
    #[command(name = worker::VERB, hide = true)]
    AnswerQuery(InternalArgs),
    #[command(name = task::VERB, hide = true)]
    AnalyzePart(InternalArgs),
    #[command(name = kept::VERB, hide = true)]
    CutExcerpt(InternalArgs),
    #[command(name = diagnosis::VERB, hide = true)]
    DiagnoseCase(InternalArgs),
    #[command(name = local::VERB, hide = true)]
    ReadReports(InternalArgs),
}

/// `harness plan`
#[derive(Debug, Args)]
#[command(
    about = "Print what a run would launch: scripts, argument lists, nodes, files, time; launch nothing."
)]
struct PlanArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// The arguments of a verb that no person types.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct InternalArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    all: Vec<OsString>,
}

impl InternalArgs {
    fn texts(&self) -> Vec<String> {
        self.all.iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }
}

impl Verb {
    fn run(self) -> Result<i32, Error> {
        let code = match self {
            Verb::Accept(args) => return accept::run(args),
            Verb::Baseline(verb) => return baseline::run(&verb),
            Verb::Bisect(args) => return bisect::run(args),
            Verb::Bundle(args) => return bundle::run(&args),
            Verb::Check(args) => return check::run(&args),
            Verb::Clean(args) => return clean::run(&args),
            Verb::Compare(args) => return compare::run(&args),
            Verb::Completions(args) => completions::run(&args, visible(&command()).cloned().collect()),
            Verb::Diagnose(args) => return diagnose::run(&args),
            Verb::Explain(args) => return explain::run(&args),
            Verb::Fetch(args) => return fetch::run(&args),
            Verb::FieldKit(args) => return field_kit::run(&args),
            Verb::History(args) => return history::run(&args),
            Verb::Init(args) => return init::run(&args),
            Verb::Inventory(verb) => return inventory::run(&verb),
            Verb::Isolate(args) => return isolate::run(args),
            Verb::List(args) => return list::run(args),
            Verb::Lint(command) => lint::run(&command, &mut io::stdout(), &mut io::stderr()),
            Verb::Logs(kind) => return logs::run(kind),
            Verb::Man(args) => return man::run(&args, program(), visible(&command()).cloned().collect()),
            Verb::Manifest(args) => return manifest::run(args),
            Verb::Observe(args) => return observe::run(args),
            Verb::Page(args) => return run_page::run(&args),
            Verb::Plan(args) => {
                let options = RunOptions { dry_run: true, ..args.run.into_options() };
                run_suites::run(&home()?, &options)
            }
            Verb::Predict(args) => return predict::run(&args),
            Verb::Provision(package) => return provision::run(&package),
            Verb::Publish(args) => return publish::run(&args),
            Verb::Recipe(args) => return recipe::run(&args),
            Verb::Replay(args) => return replay::run(args),
            Verb::Rerun(args) => return rerun::run(args),
            Verb::Resume(args) => return resume::run(args),
            Verb::Rma(args) => return rma::run(args),
            Verb::Run(args) => run_suites::run_or_attach(&home()?, args),
            Verb::Runs(verb) => return runs::run(&verb),
            Verb::Schema(args) => return schema::run(&args),
            Verb::Site(args) => return site::run(args),
            Verb::Stats(args) => stats::run(&args),
            Verb::Sweep(args) => return sweep::run(&args),
            Verb::Trace(args) => return trace::run(&args),
            Verb::Watch(args) => return watch::run(&args),
            Verb::WatchFleet(args) => return watch_fleet::run(args),
            Verb::AnswerQuery(args) => worker::serve(&args.texts()),
            Verb::AnalyzePart(args) => task::serve(&args.texts()),
            Verb::CutExcerpt(args) => kept::serve(&args.texts()),
            Verb::DiagnoseCase(args) => diagnosis::serve(&args.texts()),
            Verb::ReadReports(args) => local::serve(&args.texts()),
        };
        Ok(code)
    }
}

/// Runs the verb that is the first argument.
pub(super) fn run(args: Vec<OsString>) -> i32 {
    match parsed(args) {
        Ok(verb) => error::end(verb.run()),
        Err(Refused::Printed(code)) => code,
        Err(Refused::Error(error)) => error::end(Err(error)),
    }
}

/// Why a verb does not run.
enum Refused {
    /// clap has printed it.
    Printed(i32),
    Error(Error),
}

fn parsed(args: Vec<OsString>) -> Result<Verb, Refused> {
    let command = command();
    let args = named_run::as_declared(args, &command);
    let first = args.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    if command.find_subcommand(&*first).is_none() {
        return Err(Refused::Error(Error::Usage(unknown(&first))));
    }
    let settings = match command.find_subcommand(&*first).is_some_and(Settings::concern) {
        true => project().and_then(|(home, _)| Settings::load(home.path())).map_err(Refused::Error)?,
        false => Settings::default(),
    };
    let prepared = |verb| settings.apply(together::without_refused(page(libtest_words(verb))));
    let command = command.mut_subcommand(&*first, prepared);
    let (mut verb, matches) = parse::<Verb>(command.clone(), args).map_err(Refused::Printed)?;
    let of_verb = command.find_subcommand(&*first).zip(matches.subcommand_matches(&first));
    if let (Verb::Isolate(args), Some((_, matches))) = (&mut verb, of_verb) {
        args.is_inventory_typed = matches.value_source("inventory") == Some(ValueSource::CommandLine);
    }
    let why = of_verb.and_then(|(verb, matches)| {
        let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let is_run = verb.get_arguments().any(|argument| argument.get_id() == MEANINGLESS[0]);
        let odd = MEANINGLESS.iter().find(|id| is_run && given(id))?;
        let flag = verb.get_arguments().find(|argument| argument.get_id() == odd)?;
        let name = flag.get_long().map_or_else(|| "-Z".to_owned(), |long| format!("--{long}"));
        Some(format!("`{name}` means nothing here; see `harness help {first}`"))
    });
    match why.or_else(|| of_verb.and_then(|(verb, matches)| together::refused(verb, matches))) {
        Some(why) => Err(Refused::Error(Error::Usage(why))),
        None => Ok(verb),
    }
}

/// Why a command line is refused, without clap's own reasons.
#[cfg(test)]
pub(super) fn refusal(args: Vec<OsString>) -> Option<String> {
    match parsed(args) {
        Ok(_) => None,
        Err(Refused::Error(why)) => Some(why.to_string()),
        Err(Refused::Printed(code)) => Some(format!("printed, exit {code}")),
    }
}

/// libtest-mimic's flags as they are offered: those without a meaning are accepted and not shown.
fn libtest_words(verb: Command) -> Command {
    if !verb.get_arguments().any(|argument| argument.get_id() == MEANINGLESS[0]) {
        return verb;
    }
    verb.mut_args(|argument| match argument.get_id().as_str() {
        "format" => argument
            .value_parser(run_suites::format)
            .value_name("FORMAT")
            .hide_possible_values(true)
            .help("text, terse or json")
            .long_help(None::<&str>),
        "filter" => argument.help("Only assertions whose name contains this").long_help(None::<&str>),
        "list" => argument.help("List the assertions; launch nothing"),
        "exact" => argument.help("FILTER is a whole name, not a part of one"),
        "quiet" => argument.help("No line for each assertion").long_help(None::<&str>),
        "skip" => argument
            .help("Leave out assertions whose name contains this; may be repeated")
            .long_help(None::<&str>),
        "color" => argument
            .value_name("WHEN")
            .hide_possible_values(true)
            .help("auto (on a terminal), always or never")
            .long_help(None::<&str>),
        id if MEANINGLESS.contains(&id) || WITHOUT_EFFECT.contains(&id) => argument.hide(true),
        _ => argument,
    })
}

fn program() -> Command {
    Command::new("harness").bin_name("harness").version(env!("CARGO_PKG_VERSION"))
}

pub(super) fn command() -> Command {
    Verb::augment_subcommands(Command::new("harness").bin_name("harness"))
}

/// The names of the verbs that people type.
#[cfg(test)]
pub(super) fn names() -> Vec<String> {
    visible(&command()).map(|verb| verb.get_name().to_owned()).collect()
}

/// What users of other programs type for one of ours.
const ALIKE: [(&str, &str); 21] = [
    ("bench", "run"),
    ("cancel", "clean"),
    ("diff", "compare"),
    ("doctor", "inventory probe"),
    ("download", "fetch"),
    ("drain", "isolate --drain"),
    ("dry-run", "plan"),
    ("kill", "clean"),
    ("ls", "list"),
    ("new", "init"),
    ("probe", "inventory probe"),
    ("report", "runs show"),
    ("rm", "runs prune"),
    ("show", "runs show"),
    ("status", "runs list"),
    ("stop", "clean"),
    ("test", "run"),
    ("undrain", "isolate --resume-drained"),
    ("upload", "publish"),
    ("validate", "check"),
    ("version", "--version"),
];

fn unknown(word: &str) -> String {
    let command = command();
    // A slip of one letter first: `rnu` is `run`, though it is more like `runs`.
    let near = suggest::within(word, visible(&command).map(Command::get_name), 1)
        .or_else(|| suggest::nearest(word, visible(&command).map(Command::get_name)));
    let suites = home().map(|home| load::names(&home, "suites")).unwrap_or_default();
    let alike = ALIKE.iter().find(|(other, _)| *other == word);
    let meant = match (alike, near) {
        (Some((_, verb)), _) => format!("did you mean `harness {verb}`?"),
        (None, _) if suites.iter().any(|suite| suite == word) => {
            format!("it is a suite: `harness --suite {word}`")
        }
        (None, Some(verb)) => format!("did you mean `{verb}`?"),
        (None, None) => "`harness help` lists them".to_owned(),
    };
    format!("no verb `{}`; {meant}", word.escape_debug())
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}
