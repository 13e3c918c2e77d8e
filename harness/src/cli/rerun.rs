//! `harness rerun`: a new run of what failed or was inconclusive in a stored one, on the same suites, nodes and settings.

use super::run_suites::RunArgs;
use super::{home, usage};
use crate::error::Error;
use crate::filters::Filters;
use crate::library::Library;
use crate::own_recipes;
use crate::session::planning::{Replanning, make_plan, to_lines};
use crate::session::{RunOptions, load, print_errors, run_plan, stored};
use base::nodeset;
use base::text::count;
use clap::Args;
use model::artefact::Plan;
use model::exit_code;
use plan::{self, Selection};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::path::Path;
use store::{Home, Stored, is_inside};
use verdict::pending;

/// `harness rerun`
#[derive(Debug, Args)]
#[command(about = "Repeat what failed or was inconclusive in a run, on the same suites, nodes and settings.")]
pub(super) struct RerunArgs {
    /// The run: its id, the beginning of it, `latest`, its folder or its bundle
    #[arg(long, value_name = "ID|PATH", default_value = "latest")]
    run: String,
    /// Only print the plan
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    options: RunArgs,
}

pub(super) fn run(args: RerunArgs) -> Result<i32, Error> {
    let options = RunOptions { dry_run: args.dry_run, ..args.options.into_options() };
    let home = home()?;
    if let Some(word) = options.libtest.filter.as_deref()
        && (word == "latest" || home.path().join("runs").join(word).join("plan.json").is_file())
    {
        let why = format!("`{word}` names a run: write --run {word}; a word alone selects assertions");
        return Err(Error::Usage(why));
    }
    Ok(rerun(&home, &args.run, &options))
}

fn rerun(home: &Home, id: &str, options: &RunOptions) -> i32 {
    let owing = stored::open_own(home, id).and_then(|parent| Ok((pending_of(&parent)?, parent)));
    let (pending, parent) = match owing {
        Ok(owing) => owing,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    let id = &parent.plan.run_id;
    if pending.is_empty() {
        eprintln!("error: nothing is pending: every assertion of the run has passed: `{id}`");
        return exit_code::NOTHING_SELECTED;
    }
    let like = match like(home, &parent.plan, options) {
        Ok(like) => like,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    let mut catalogue = match recipes_gone(home, &parent.plan) {
        Ok(catalogue) => catalogue,
        Err(why) => return usage(&format!("--run: {why}")),
    };
    if let Err(diagnostics) = own_recipes::load_into(
        &mut catalogue,
        Some(&Library::for_project(home.path())),
        like.recipe_path.as_deref(),
    ) {
        return print_errors(&to_lines(&diagnostics));
    }
    let (mut plan, inventory) = match make_plan(home, &like, &catalogue) {
        Ok(made) => made,
        Err(diagnostics) => return print_errors(&diagnostics),
    };
    print_changes(&parent.plan, &plan);
    let names: BTreeSet<&str> =
        plan.cases.iter().flat_map(|case| &case.assertions).map(|one| one.name.as_str()).collect();
    let gone: Vec<&String> = pending.iter().filter(|name| !names.contains(name.as_str())).collect();
    if let Some(first) = gone.first() {
        eprintln!("pending, and no suite asks for it any more: {}, first `{first}`", gone.len());
    }
    plan.parent = Some(id.clone());
    let mut only: BTreeSet<String> = pending.iter().cloned().collect();
    if let Some(chosen) = options.filters.select(&plan) {
        only.retain(|name| chosen.contains(name));
    }
    let selection = Selection {
        only: Some(only),
        filter: options.libtest.filter.clone(),
        exact: options.libtest.exact,
        skip: options.libtest.skip.clone(),
    };
    plan.pending = pending;
    let plan = plan::select(plan, &selection);
    if plan.cases.is_empty() {
        let pending = count(plan.pending.len(), "pending assertion");
        eprintln!("error: nothing selected of {pending}: {}", options.nothing_selected(&plan));
        return exit_code::NOTHING_SELECTED;
    }
    let choose = |plan| plan::select(plan, &selection);
    run_plan(
        home,
        plan,
        &inventory,
        options,
        &Replanning { options: &like, catalogue: &catalogue, choose: &choose },
    )
}

fn pending_of(parent: &Stored) -> Result<Vec<String>, String> {
    let verdicts = parent.plan.cases.iter().map(|case| parent.verdict(&case.name));
    let verdicts = verdicts.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(pending::pending(&parent.plan, &verdicts))
}

/// The arguments that would plan the parent again, whole.
fn like(home: &Home, parent: &Plan, options: &RunOptions) -> Result<RunOptions, String> {
    // Suites are read first, in their order, then the inventory; each is noted when it was read.
    let mut sources = parent.sources.iter();
    let mut path = |what: &str, name: &str| -> Result<String, String> {
        let file = sources.next().map(|source| source.file.as_str()).unwrap_or_default();
        // A plan may come from elsewhere: what it names lies in this project, or nowhere.
        if !is_inside(file) {
            return Err(format!("a source of the run's plan leads out of the project: {file:?}"));
        }
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        let found = load::argument(home, file).filter(|_| stem == Some(name));
        found.ok_or_else(|| {
            format!(
                "the {what} of the run is not in this project any more; put it back, or start a new run: `{name}`"
            )
        })
    };
    let suites = parent.suites.iter().map(|name| path("suite", name)).collect::<Result<Vec<_>, _>>()?;
    let inventory = path("inventory", &parent.inventory)?;
    let mut libtest = options.libtest.clone();
    libtest.filter = None;
    libtest.exact = false;
    libtest.skip = Vec::new();
    Ok(RunOptions {
        suites,
        inventory,
        nodes: Some(nodeset::fold(&parent.nodes)),
        exclude_nodes: None,
        settings: parent.settings.clone().into_iter().collect(),
        seed: parent.seed,
        sim_faults: parent.sim_faults.clone(),
        reservation: options.reservation.clone().or_else(|| parent.reservation.clone()),
        timeout: options.timeout.or(parent.limit_s),
        max_fail: options.max_fail.or(parent.max_fail),
        strict: options.strict || parent.strict,
        errors: options.errors || (options.max_fail.is_none() && parent.max_fail_errors),
        keep_bad_nodes: options.keep_bad_nodes || parent.keep_bad_nodes,
        filters: Filters::default(),
        libtest,
        ..options.clone()
    })
}

/// Recipes whose files are not where they were, as the run's plan holds them.
fn recipes_gone(home: &Home, parent: &Plan) -> Result<Catalogue, String> {
    let library = Library::for_project(home.path());
    let is_gone = |file: &str| library.named(file).is_none() && !home.path().join(file).is_file();
    let gone: Vec<_> = parent.recipes.iter().filter(|recipe| is_gone(&recipe.file)).cloned().collect();
    for recipe in &gone {
        eprintln!("moved or deleted since; the copy in the run's plan is used: {}", recipe.file);
    }
    own_recipes::catalogue_of_plan(&gone)
}

/// What was read is not always what the parent read.
fn print_changes(parent: &Plan, plan: &Plan) {
    for source in &plan.sources {
        let was = parent.sources.iter().find(|was| was.file == source.file);
        if was.is_none_or(|was| was.sha256 != source.sha256) {
            eprintln!("changed since the run that this one repeats: {}", source.file);
        }
    }
    for recipe in &plan.recipes {
        let was = parent.recipes.iter().find(|was| was.name == recipe.name);
        if was.is_none_or(|was| was.sha256 != recipe.sha256) {
            eprintln!("changed since the run that this one repeats: {}", recipe.file);
        }
    }
}
