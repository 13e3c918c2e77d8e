//! The default verb: from arguments to a plan, from the plan to a run, from the run to what is printed.

use super::access;
use super::isolate::after;
use super::preflight::{self, Again, Stopped};
use super::reached::{Reached, through_slurm};
use super::rehearsal;
use super::{RunArgs, home, load, no_home, settings, usage};
use crate::own_recipes;
use crate::pipeline::{self, Finished, World};
use crate::report::{self, ListFormat, Mode, Progress, Report, Unprinted};
use crate::tasks::Cluster;
use base::redact::Secrets;
use cluster::interrupt;
use cluster::reach::shared_folder;
use cluster::run::{Clock, History};
use config::diagnostic::Diagnostic;
use config::envlint;
use config::inventory::Kind;
use config::physics;
use config::suite::{Case, OnFailure};
use libtest_mimic::{ColorSetting, FormatSetting};
use model::artefact::{Plan, Summary};
use model::exit_code;
use model::fault::NodeFault;
use plan::{self, Request, Selection};
use sim::SimulatedReach;
use sim::journal::Entry;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use store::{self, Home, Store};
use verdict::history::{past, suspects};
use verdict::isolate;
use verdict::unjudged;

pub(super) fn run(args: RunArgs) -> i32 {
    let Some(home) = home() else { return no_home() };
    if let (Some(id), true) = (&args.run, args.resume) {
        return super::resume::resume(&home, id, &args);
    }
    if let Some(id) = &args.rerun {
        return super::rerun::rerun(&home, id, &args);
    }
    if args.suites.is_empty() {
        let names = load::names(&home, "suites").join(", ");
        return usage(&format!("which suite? --suite NAME; there are: {names}"));
    }
    let (plan, inventory) = match make_plan(&home, &args) {
        Ok(made) => made,
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("error: {diagnostic}");
            }
            return exit_code::USAGE;
        }
    };
    if !args.libtest.list && !args.dry_run {
        let unseen = rehearsal::unseen(&plan, &faults(&plan.sim_faults).unwrap_or_default(), &args);
        if !unseen.is_empty() {
            return unseen.iter().map(|why| machinery(why)).fold(exit_code::INCONCLUSIVE, exit_code::graver);
        }
    }
    go(&home, plan, &inventory, &args, &Again { args: &args, choose: &|plan| plan })
}

/// Lists, shows or runs a plan, as the arguments ask.
pub(super) fn go(
    home: &Home,
    plan: Plan,
    inventory: &config::inventory::Inventory,
    args: &RunArgs,
    again: &Again<'_>,
) -> i32 {
    let plan = plan::share(plan, inventory);
    let selected = plan.cases.iter().map(|case| case.assertions.len()).sum::<usize>();
    if args.libtest.list {
        let format = match args.libtest.format {
            Some(FormatSetting::Json) => ListFormat::Json,
            Some(FormatSetting::Terse) => ListFormat::Terse,
            _ if args.libtest.quiet => ListFormat::Terse,
            _ => ListFormat::Pretty,
        };
        // nextest asks a second time for ignored tests alone; which are skipped is known only when they are planned.
        let listed = if args.libtest.ignored { String::new() } else { report::list(&plan, format) };
        print_quietly(&listed);
        return exit_code::PASSED;
    }
    if selected == 0 {
        eprintln!("error: nothing selected: no assertion has such a name; --list names them all");
        return exit_code::NOTHING_SELECTED;
    }
    if args.dry_run {
        for unset in envlint::unset(inventory) {
            eprintln!(
                "warning: {}; add to `[environment]` of {}: `{}`",
                unset.message, inventory.file, unset.line
            );
        }
        print_quietly(&report::dry_run(&plan, &job::script::SHARED, args.verbose));
        return exit_code::PASSED;
    }
    // Before anything is launched.
    if let Err(why) = analyze_on(inventory, args) {
        return usage(&why);
    }
    let secrets = match secrets(&plan) {
        Ok(secrets) => secrets,
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("error: {diagnostic}");
            }
            return exit_code::USAGE;
        }
    };
    if let Err(why) = holds_none(&plan, &secrets) {
        return usage(&why);
    }
    interrupt::watch();
    let reached = match reached_by(inventory, plan.seed, args) {
        Ok(reached) => reached,
        Err(why) => return machinery(&why),
    };
    let wanted = preflight::is_wanted(inventory, args);
    let checked = access::refused(&plan, reached.as_ref(), args).and_then(|refused| match wanted {
        false => Ok((preflight::without(home, plan, refused, again)?, None)),
        true => preflight::before(home, plan, inventory, reached.as_ref(), refused, args, again)
            .map(|(fewer, probe)| (fewer, Some(probe))),
    });
    let (plan, probe) = match checked {
        // Those that were left out are in no allocation.
        Ok((fewer, probe)) => (plan::share(fewer, inventory), probe),
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted while nodes were probed: nothing was launched");
            return code;
        }
        Err(Stopped::NoAnswer(text)) => {
            eprint!("{text}");
            return exit_code::INCONCLUSIVE;
        }
        Err(Stopped::Machinery(why)) => return machinery(&why),
    };
    let store = match Store::create(home, &plan.run_id)
        .map(|store| store.hiding(secrets).simulated(plan.simulated))
    {
        Ok(store) => store,
        Err(error) => return machinery(&error.to_string()),
    };
    let probed = probe.map_or(Ok(()), |probe| store.write_json(&store.folder().join("probe.json"), &probe));
    if let Err(error) = probed.and_then(|()| store.write_json(&store.folder().join("plan.json"), &plan)) {
        return machinery(&error.to_string());
    }
    if let (open @ 1.., all) = unjudged::planned(&plan) {
        eprintln!("note: {}", unjudged::line(open, all, plan.nodes.len()));
    }
    let replan = |nodes: &[String]| preflight::on(home, &plan, nodes, again);
    let mut finished = match execute_by(&plan, inventory, reached, &store, args, None, Some(&replan)) {
        Ok(finished) => finished,
        Err(why) => return machinery(&why),
    };
    let plan = finished.amended.take().unwrap_or(plan);
    after::close(home, &plan, finished, &store, args, again.args)
}

/// How the nodes of a real inventory are reached; simulated ones are made where the run is.
pub(super) fn reached_by(
    inventory: &config::inventory::Inventory,
    seed: u64,
    args: &RunArgs,
) -> Result<Option<Reached>, String> {
    match inventory.kind {
        Kind::Simulated => Ok(None),
        Kind::Real => Reached::of(inventory, seed, args.ssh_fanout as usize).map(Some),
    }
}

/// The values that the plan's jobs are given beside what the plan holds.
pub(super) fn secrets(plan: &Plan) -> Result<Secrets, Vec<String>> {
    let jobs = plan.cases.iter().flat_map(|case| &case.jobs);
    let names = jobs.flat_map(|job| &job.secrets).map(|secret| secret.from.as_str());
    Secrets::resolve(names, &|name| std::env::var(name).ok())
}

/// A plan is obeyed to the letter, by whoever goes on with it too: it is written as it is, or not at all.
fn holds_none(plan: &Plan, secrets: &Secrets) -> Result<(), String> {
    let value = serde_json::to_value(plan).map_err(|error| error.to_string())?;
    match store::redactor().and(secrets).first_within(&value) {
        None => Ok(()),
        Some((place, what)) => Err(format!(
            "the plan would hold a secret in `{place}`, name its variable instead, `env:NAME`: `{what}`"
        )),
    }
}

/// Writes and prints what a run came to; gives the exit code.
pub(super) fn close(plan: &Plan, finished: &Finished, store: &Store, args: &RunArgs) -> i32 {
    let code = write(plan, finished, store, args);
    print(plan, finished, &before(&finished.summary, store), args);
    code
}

/// Writes the reports; gives the exit code, which one that cannot be written makes no better.
pub(super) fn write(plan: &Plan, finished: &Finished, store: &Store, args: &RunArgs) -> i32 {
    let (written, errors) = pipeline::write_reports(plan, finished, store);
    let mut code = finished.summary.exit_code;
    for error in errors {
        code = exit_code::graver(code, machinery(&error.to_string()));
    }
    for (name, path) in [("junit.xml", &args.junit), ("summary.json", &args.json)] {
        let Some(path) = path else { continue };
        // What is not in the run's folder was reported above.
        let Some((_, bytes)) = written.iter().find(|(file, _)| *file == name) else { continue };
        if let Err(error) = store::write_whole(path, bytes) {
            code = exit_code::graver(code, machinery(&error.to_string()));
        }
    }
    code
}

/// The plan and the inventory that it is for; or all that is wrong, in one go.
pub(super) fn make_plan(
    home: &Home,
    args: &RunArgs,
) -> Result<(Plan, config::inventory::Inventory), Vec<String>> {
    own_recipes::load(Some(home.path()), args.recipe_path.as_deref())
        .map_err(|diagnostics| told(&diagnostics))?;
    make_plan_as(home, args, None)
}

/// The same for a run that may have its id already. Users' recipes are known by then.
pub(super) fn make_plan_as(
    home: &Home,
    args: &RunArgs,
    run_id: Option<&str>,
) -> Result<(Plan, config::inventory::Inventory), Vec<String>> {
    let mut loaded = load::load(home, &args.suites, &args.inventory, args.baselines.as_deref())?;
    let mut diagnostics = Vec::new();
    let settings = settings(&args.settings);
    if let Err(more) = plan::apply_settings(&mut loaded.suites, &settings) {
        diagnostics.extend(more);
    }
    if let Some(name) = &args.reservation
        && let Err(why) = loaded.inventory.reserve(name)
    {
        diagnostics.push(format!("--reservation: {why}"));
    }
    let nodes = loaded.inventory.select(args.nodes.as_deref(), args.exclude_nodes.as_deref());
    let nodes = nodes.unwrap_or_else(|why| {
        diagnostics.push(why);
        Vec::new()
    });
    for suite in &loaded.suites {
        if loaded.inventory.instance.fits(&suite.instance) {
            let found = physics::lint(suite, &loaded.inventory.instance, loaded.baselines.as_ref());
            diagnostics.extend(found.iter().map(ToString::to_string));
        }
    }
    for suite in &mut loaded.suites {
        match (args.on_failure.as_deref(), suite.on_failure) {
            (Some("isolate"), OnFailure::Nothing) => {
                suite.on_failure = OnFailure::Isolate { budget_node_h: None };
            }
            (Some("nothing"), _) => suite.on_failure = OnFailure::Nothing,
            _ => {}
        }
        diagnostics.extend(isolate::round::lint(suite).map(|diagnostic| diagnostic.to_string()));
    }
    for text in &args.sim_faults {
        let checked = NodeFault::parse(text).and_then(|fault| check_fault(&loaded.inventory, fault));
        if let Err(why) = checked {
            diagnostics.push(format!("--sim-fault: {why}"));
        }
    }
    for suite in &loaded.suites {
        for case in &suite.cases {
            for fault in &case.sim_faults {
                if let Err(why) = check_fault(&loaded.inventory, fault.clone()) {
                    diagnostics.push(format!("{}:{}: case `{}`: {why}", suite.file, case.line, case.name));
                }
            }
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let names: Vec<&str> = loaded.suites.iter().map(|suite| suite.name.as_str()).collect();
    let request = Request {
        run_id: run_id.map_or_else(|| store::new_run_id(&names.join("+")), str::to_owned),
        seed: args.seed,
        nodes,
        settings,
        sim_faults: args.sim_faults.clone(),
        limit_s: args.timeout,
        max_fail: args.max_fail,
        reservation: args.reservation.clone(),
        sources: loaded.sources.clone(),
        recipes: own_recipes::planned(
            loaded.suites.iter().flat_map(|suite| &suite.cases).flat_map(recipes_of),
        ),
        sets: BTreeMap::new(),
    };
    let plan = plan::plan(&loaded.suites, &loaded.inventory, loaded.baselines.as_ref(), request)?;
    let selection = Selection {
        only: None,
        filter: args.libtest.filter.clone(),
        exact: args.libtest.exact,
        skip: args.libtest.skip.clone(),
    };
    let mut plan = plan::select(plan, &selection);
    plan.strict = args.strict;
    plan.max_fail_errors = args.errors;
    plan.keep_bad_nodes = args.keep_bad_nodes;
    plan.isolations = after::planned(home, &plan, &loaded.suites, &loaded.inventory, &loaded.sources);
    Ok((plan, loaded.inventory))
}

fn recipes_of(case: &Case) -> impl Iterator<Item = &str> {
    case.recipes.iter().map(String::as_str)
}

pub(super) fn told(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// Whether the simulated cluster has the node and the part that a fault names. A real cluster has no faults at all, which
/// the plan says.
pub(super) fn check_fault(inventory: &config::inventory::Inventory, fault: NodeFault) -> Result<(), String> {
    match inventory.kind {
        Kind::Simulated => sim::check_fault(inventory, fault),
        Kind::Real => Ok(()),
    }
}

pub(super) fn faults(texts: &[String]) -> Result<Vec<NodeFault>, String> {
    texts.iter().map(|text| NodeFault::parse(text)).collect()
}

/// What a process that was ended had done of a run.
pub(super) struct Past {
    pub history: History,
    /// What the simulated cluster was asked.
    pub entries: Vec<Entry>,
}

impl Past {
    /// How long the run had gone on, as far as it told.
    fn elapsed(&self) -> Duration {
        let told = match (self.history.began, self.history.last) {
            (Some(began), Some(last)) => Duration::try_from_secs_f64(last - began).unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let asked = self.entries.last().map_or(0, Entry::at_us);
        told.max(Duration::from_micros(asked))
    }
}

/// The cluster whose nodes read the reports, where a person wants it so.
fn analyze_on(inventory: &config::inventory::Inventory, args: &RunArgs) -> Result<Option<Cluster>, String> {
    args.analyze_on.as_ref().map(|_| Cluster::of(inventory, None)).transpose()
}

/// The simulated cluster of a run, as far as it had come. What it is asked to change is written into the run's folder.
pub(super) async fn simulated_cluster(
    plan: &Plan,
    inventory: &config::inventory::Inventory,
    store: &Store,
    past: Option<&Past>,
) -> Result<SimulatedReach, String> {
    let mut case_faults = BTreeMap::new();
    for case in &plan.cases {
        case_faults.insert(case.name.clone(), faults(&case.sim_faults)?);
    }
    let reach = SimulatedReach::new(inventory, plan.seed, faults(&plan.sim_faults)?, case_faults)?;
    let journal = store.clone();
    let write = move |entry: &Entry| journal.asked_of_simulation(entry).map_err(|error| error.to_string());
    let reach = reach.with_journal(Box::new(write));
    if let Some(past) = past {
        // Its jobs have gone on meanwhile, in simulated time.
        reach.restore(&past.entries, past.elapsed()).await?;
    }
    Ok(reach)
}

pub(super) fn execute(
    plan: &Plan,
    inventory: &config::inventory::Inventory,
    reached: Option<Reached>,
    store: &Store,
    args: &RunArgs,
    past: Option<&Past>,
) -> Result<Finished, String> {
    execute_by(plan, inventory, reached, store, args, past, None)
}

/// The same, where cases can be planned again on fewer nodes.
fn execute_by(
    plan: &Plan,
    inventory: &config::inventory::Inventory,
    reached: Option<Reached>,
    store: &Store,
    args: &RunArgs,
    past: Option<&Past>,
    replan: Option<pipeline::Replan<'_>>,
) -> Result<Finished, String> {
    let mode = if args.libtest.quiet {
        Mode::Silent
    } else {
        Mode::Auto { is_terminal: io::stderr().is_terminal() }
    };
    let on = analyze_on(inventory, args)?;
    let mut progress = Progress::new(mode);
    let at_once = args.ssh_fanout as usize;
    let simulated = inventory.kind == Kind::Simulated;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(simulated)
        .build()
        .map_err(|error| error.to_string())?;
    let finished = runtime.block_on(async {
        let Some(reached) = reached else {
            let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(plan.seed) as f64);
            let reach = simulated_cluster(plan, inventory, store, past).await?;
            let release: pipeline::Release = &|folder| reach.release(folder);
            let history = past.map(|past| &past.history);
            let calls = through_slurm(inventory, &reach);
            let world = World { reach: &calls, clock, release, history, on: None, replan, at_once };
            let finished = pipeline::run(plan, world, store, &mut progress).await;
            let broken = reach.violations();
            if !broken.is_empty() {
                return Err(format!("the simulated cluster saw what must not be: {}", broken.join("; ")));
            }
            return finished.map_err(|error| error.to_string());
        };
        if reached.runs_here() {
            let shared = &inventory.paths.shared;
            match past {
                None => shared_folder::make_run(shared, &plan.run_id)?,
                Some(_) => shared_folder::check_run(shared, &plan.run_id)?,
            }
        }
        let now = store::wall_clock_s();
        let history = past.map(|past| &past.history);
        let clock = match history.and_then(|history| history.began) {
            Some(began) => {
                Clock::going_on(began, Duration::try_from_secs_f64(now - began).unwrap_or_default())
            }
            None => Clock::starting_at(now),
        };
        reached.begin().await;
        let (reach, on) = (reached.reach(), on.as_ref());
        let world = World { reach, clock, release: &|_| (), history, on, replan, at_once };
        let finished = pipeline::run(plan, world, store, &mut progress).await;
        reached.end().await;
        finished.map_err(|error| error.to_string())
    });
    progress.done();
    finished
}

/// So many runs are looked through for those that blamed the same parts.
const LOOKED_THROUGH: usize = 30;

/// What runs beside this one said of the parts that it blames.
fn before(summary: &Summary, store: &Store) -> Vec<String> {
    if summary.culprits.is_empty() {
        return Vec::new();
    }
    let folder = store.folder();
    let but = [Some(summary.run_id.as_str()), summary.parent.as_deref()];
    let past = folder.parent().map(|runs| past::newest(runs, LOOKED_THROUGH, &but)).unwrap_or_default();
    suspects::before(&past, summary.simulated, &summary.inventory, &summary.culprits)
}

fn print(plan: &Plan, finished: &Finished, before: &[String], args: &RunArgs) {
    let report = Report { plan, cases: &finished.cases, summary: &finished.summary };
    let color = match args.libtest.color {
        Some(ColorSetting::Always) => true,
        Some(ColorSetting::Never) => false,
        _ => wants_color(
            io::stdout().is_terminal(),
            &|name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0"),
            std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
        ),
    };
    if args.libtest.format == Some(FormatSetting::Json) {
        let lines: String = report::json::events(&report).map(|line| line + "\n").collect();
        print_quietly(&lines);
        return;
    }
    if let Some(text) = report::broken(&report) {
        return print_quietly(&text);
    }
    let mut face = args.libtest.clone();
    // The plan was selected already; a case that others come after is shown though no filter names it.
    face.filter = None;
    face.skip = Vec::new();
    face.color = Some(if color { ColorSetting::Always } else { ColorSetting::Never });
    match report::face(&report, face) {
        Ok(_) => print_quietly(&report::closing(&report, before, color)),
        Err(Unprinted::Closed) => {}
        Err(error) => eprintln!("error: {error}"),
    }
}

/// The conventions: `NO_COLOR` wins, then `CLICOLOR_FORCE`, then what stdout is.
fn wants_color(is_terminal: bool, is_set: &dyn Fn(&str) -> bool, is_dumb: bool) -> bool {
    !is_set("NO_COLOR") && (is_set("CLICOLOR_FORCE") || (is_terminal && !is_dumb))
}

/// Prints, and minds no reader that has gone away: the reports are written by then.
fn print_quietly(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub(super) fn machinery(why: &str) -> i32 {
    eprintln!("error: {why}");
    exit_code::INCONCLUSIVE
}
