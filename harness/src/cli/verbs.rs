//! The verbs: what the first argument can be, and what runs it.

use super::{
    accept, baseline, bundle, check, clean, compare, completions, explain, field_kit, history, inventory,
    isolate,
};
use super::{logs, page, parse, provision, recipe, stats, sweep, usage, watch};
use crate::error::{self, Error};
use crate::lint;
use crate::own_recipes::worker;
use crate::tasks::local;
use crate::tasks::task;
use base::suggest;
use clap::{Args, Command, Subcommand};
use std::ffi::OsString;
use std::io;

/// A verb and its arguments. Help lists the verbs in this order.
#[derive(Debug, Subcommand)]
enum Verb {
    Accept(accept::AcceptArgs),
    #[command(subcommand)]
    Baseline(baseline::BaselineVerb),
    Bundle(bundle::BundleArgs),
    Check(check::CheckArgs),
    Clean(clean::CleanArgs),
    Compare(compare::CompareArgs),
    Completions(completions::CompletionsArgs),
    Explain(explain::ExplainArgs),
    FieldKit(field_kit::FieldKitArgs),
    History(history::HistoryArgs),
    #[command(subcommand)]
    Inventory(inventory::InventoryVerb),
    Isolate(isolate::IsolateArgs),
    #[command(subcommand)]
    Lint(lint::LintCommand),
    #[command(subcommand)]
    Logs(logs::LogKind),
    #[command(subcommand)]
    Provision(provision::Package),
    Recipe(recipe::RecipeArgs),
    Stats(stats::StatsArgs),
    Sweep(sweep::SweepArgs),
    Watch(watch::WatchArgs),
    // The harness starts itself by these.
    #[command(name = worker::VERB, hide = true)]
    AnswerQuery(InternalArgs),
    #[command(name = task::VERB, hide = true)]
    AnalyzePart(InternalArgs),
    #[command(name = local::VERB, hide = true)]
    ReadReports(InternalArgs),
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
            Verb::Accept(args) => accept::run(args),
            Verb::Baseline(verb) => baseline::run(&verb),
            Verb::Bundle(args) => return bundle::run(&args),
            Verb::Check(args) => return check::run(&args),
            Verb::Clean(args) => clean::run(&args),
            Verb::Compare(args) => return compare::run(&args),
            Verb::Completions(args) => completions::run(&args, visible(&command()).cloned().collect()),
            Verb::Explain(args) => return explain::run(&args),
            Verb::FieldKit(args) => field_kit::run(&args),
            Verb::History(args) => return history::run(&args),
            Verb::Inventory(verb) => inventory::run(&verb),
            Verb::Isolate(args) => isolate::run(args),
            Verb::Lint(command) => lint::run(&command, &mut io::stdout(), &mut io::stderr()),
            Verb::Logs(kind) => logs::run(kind),
            Verb::Provision(package) => return provision::run(&package),
            Verb::Recipe(args) => recipe::run(&args),
            Verb::Stats(args) => stats::run(&args),
            Verb::Sweep(args) => return sweep::run(&args),
            Verb::Watch(args) => return watch::run(&args),
            Verb::AnswerQuery(args) => worker::serve(&args.texts()),
            Verb::AnalyzePart(args) => task::serve(&args.texts()),
            Verb::ReadReports(args) => local::serve(&args.texts()),
        };
        Ok(code)
    }
}

/// Runs the verb that is the first argument.
pub(super) fn run(args: Vec<OsString>) -> i32 {
    let command = command();
    let first = args.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    if command.find_subcommand(&*first).is_none() {
        return usage(&unknown(&first));
    }
    match parse::<Verb>(command.mut_subcommand(&*first, page), args) {
        Ok((verb, _)) => error::end(verb.run()),
        Err(code) => code,
    }
}

fn command() -> Command {
    Verb::augment_subcommands(Command::new("harness").bin_name("harness"))
}

fn unknown(word: &str) -> String {
    let command = command();
    let meant = match suggest::nearest(word, visible(&command).map(Command::get_name)) {
        Some(verb) => format!("did you mean `{verb}`?"),
        None => {
            "suites are run without a verb, `harness --suite NAME [FILTER]`; verbs: `harness help`".to_owned()
        }
    };
    format!("no verb `{}`; {meant}", word.escape_debug())
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

/// A line for each verb, or for each of its own verbs, laid out by clap for the width of the terminal.
pub(super) fn list() -> String {
    let command = command();
    let lines = visible(&command).flat_map(|verb| {
        let line = |name: String, about: &Command| {
            let about = about.get_about().map(ToString::to_string).unwrap_or_default();
            let sentence = about.split(". ").next().unwrap_or_default().trim_end_matches('.');
            Command::new(name).about(sentence.to_owned())
        };
        match verb.has_subcommands() {
            false => vec![line(verb.get_name().to_owned(), verb)],
            true => visible(verb)
                .map(|own| line(format!("{} {}", verb.get_name(), own.get_name()), own))
                .collect(),
        }
    });
    let mut command = Command::new("harness")
        .disable_help_subcommand(true)
        .help_template("{subcommands}")
        .subcommands(lines);
    command.render_help().to_string().trim_end().to_owned()
}
