//! A new run: its plan listed, printed, or carried out on the nodes that are fit for it, in a folder of its own.

use super::execution::{analyze_on, end_unused, execute_by, new_runtime, reached_by};
use super::output::{print_quietly, report_error};
use super::planning::{self, Replanning, check_holds_no_secret, make_plan, make_plan_as, parse_faults};
use super::preflight::{self, Stopped};
use super::reached::{ReachScope, Reached};
use super::rehearsal::Rehearsal;
use super::{
    RunOptions, access, after_run, load, print_errors, publication, reports, run_cluster, webhook,
    writable_files,
};
use crate::filters::Filters;
use crate::report::{self, ListFormat};
use base::redact::Secrets;
use cluster::interrupt;
use config::envlint;
use config::inventory::{Inventory, Kind};
use libtest_mimic::FormatSetting;
use model::artefact::{Plan, Probe};
use model::exit_code;
use store::{Home, Named, Store, StoreError};

/// Plans the suites that the options name, and lists, prints or runs the plan.
pub(crate) fn plan_and_run(home: &Home, options: &RunOptions) -> i32 {
    plan_and_run_as(home, options, None)
}

/// The same under an id by which the caller finds the run.
pub(crate) fn plan_and_run_as(home: &Home, options: &RunOptions, run_id: Option<&str>) -> i32 {
    let catalogue = match planning::recipes_of_project(home, options) {
        Ok(catalogue) => catalogue,
        Err(diagnostics) => return print_errors(&diagnostics),
    };
    let (plan, inventory) = match make_plan_as(home, options, &catalogue, run_id) {
        Ok(made) => made,
        Err(diagnostics) => return print_errors(&diagnostics),
    };
    if !options.libtest.list && !options.dry_run {
        let faults = parse_faults(&plan.sim_faults).unwrap_or_default();
        let asked_facts: Vec<String> = inventory.probe.iter().map(|bound| bound.fact.clone()).collect();
        let rehearsal = Rehearsal {
            plans: std::slice::from_ref(&plan),
            placeable_on: None,
            is_probed: options.probe,
            asked_facts: &asked_facts,
            catalogue: &catalogue,
        };
        if let Some(code) = rehearsal.refused(&faults) {
            return code;
        }
    }
    run_plan(
        home,
        plan,
        &inventory,
        options,
        &Replanning { options, catalogue: &catalogue, choose: &|plan| plan },
    )
}

/// Lists, prints or runs a plan, as the options ask.
pub(crate) fn run_plan(
    home: &Home,
    plan: Plan,
    inventory: &Inventory,
    options: &RunOptions,
    replanning: &Replanning<'_>,
) -> i32 {
    let plan = plan::share(plan, inventory);
    let selected = plan.cases.iter().map(|case| case.assertions.len()).sum::<usize>();
    // nextest asks a second time for ignored tests alone; which are skipped is known only when they are planned.
    if options.libtest.list && options.libtest.ignored {
        return exit_code::PASSED;
    }
    if selected == 0 {
        // Only the plan of all cases has those that may have been meant.
        let all = RunOptions { filters: Filters::default(), ..options.clone() };
        let whole = make_plan(home, &all, replanning.catalogue).map_or(plan, |(whole, _)| whole);
        eprintln!("error: nothing selected: {}", options.nothing_selected(&whole));
        return exit_code::NOTHING_SELECTED;
    }
    if options.libtest.list {
        list(&plan, options);
        return exit_code::PASSED;
    }
    if options.dry_run {
        for unset in envlint::unset(inventory) {
            eprintln!(
                "warning: {}; add to `[environment]` of {}: `{}`",
                unset.message, inventory.file, unset.line
            );
        }
        // It asks no cluster.
        if inventory.leaves_gpu_request_open() && (inventory.kind == Kind::Real || !inventory.world.gres) {
            eprintln!(
                "note: jobs ask for GPUs by GRES below; whether Slurm has any is asked at the start, unless `gpus` of `[reach]` says it"
            );
        }
        print_quietly(&report::dry_run(&plan, &job::script::SHARED, options.verbose));
        return exit_code::PASSED;
    }
    launch(home, plan, inventory, options, replanning)
}

/// The folder of a run that is about to be launched.
fn begin(
    home: &Home,
    plan: &Plan,
    secrets: Secrets,
    probe: Option<&Probe>,
    latest: Option<&Named>,
) -> Result<Store, StoreError> {
    let store = Store::create(home, &plan.run_id)?.hiding(secrets).simulated(plan.simulated);
    match settle(&store, plan, probe) {
        Ok(()) => Ok(store),
        // A folder without a plan is no run that could be read or resumed.
        Err(error) => {
            remove_unlaunched(home, store, latest);
            Err(error)
        }
    }
}

fn settle(store: &Store, plan: &Plan, probe: Option<&Probe>) -> Result<(), StoreError> {
    if let Some(probe) = probe {
        store.write_json(&store.folder().join("probe.json"), probe)?;
    }
    store.write_json(&store.folder().join("plan.json"), plan)
}

/// Nothing was launched, and its pods were ended. The run that was the latest before is so again.
fn remove_unlaunched(home: &Home, store: Store, latest: Option<&Named>) {
    let id = store.id().to_owned();
    // Whoever holds it keeps it from being removed.
    drop(store);
    if let Err(error) = store::remove_run(home, &id) {
        eprintln!("warning: {error}");
    }
    if let Some(Named::Folder(folder)) = latest
        && let Some(id) = folder.file_name().and_then(|name| name.to_str())
    {
        match Store::open(home, id) {
            Ok(store) => store.is_latest(),
            Err(error) => eprintln!("warning: {error}"),
        }
    }
}

fn list(plan: &Plan, options: &RunOptions) {
    let format = match options.libtest.format {
        Some(FormatSetting::Json) => ListFormat::Json,
        Some(FormatSetting::Terse) => ListFormat::Terse,
        _ if options.libtest.quiet => ListFormat::Terse,
        _ => ListFormat::Pretty,
    };
    print_quietly(&report::list(plan, format));
}

fn launch(
    home: &Home,
    plan: Plan,
    inventory: &Inventory,
    options: &RunOptions,
    replanning: &Replanning<'_>,
) -> i32 {
    if options.inventory == RunOptions::default().inventory && inventory.kind == Kind::Simulated {
        let real = load::own_real_inventories(home);
        if !real.is_empty() {
            let choice = real.join(" or --inventory ");
            eprintln!(
                "note: inventory `{}` is a simulated cluster; for a real one: --inventory {choice}",
                options.inventory
            );
        }
    }
    // Before anything is launched.
    if let Some(why) = webhook::unsigned(options.webhook.as_ref()) {
        return print_errors(&[format!("--webhook-secret-env: {why}")]);
    }
    if let Some(why) = publication::refused(&plan) {
        return print_errors(&[why]);
    }
    if let Err(why) = reports::check_places(options) {
        return print_errors(&[why]);
    }
    if let Err(why) = reports::remove_old(options) {
        return report_error(&why);
    }
    if let Err(why) = analyze_on(inventory, options) {
        return print_errors(&[why]);
    }
    let secrets = match planning::resolve_secrets(&plan) {
        Ok(secrets) => secrets,
        Err(diagnostics) => return print_errors(&diagnostics),
    };
    if let Err(why) = check_holds_no_secret(&plan, &secrets) {
        return print_errors(&[why]);
    }
    // A simulated run starts nothing.
    if inventory.kind == Kind::Real {
        let files = plan.sources.iter().map(|source| home.path().join(&source.file));
        writable_files::warn(&files.collect::<Vec<_>>());
    }
    interrupt::watch();
    let reached = match reached_by(inventory, &ReachScope::from_plan(&plan, options.ssh_fanout)) {
        Ok(reached) => reached,
        Err(why) => return report_error(&why),
    };
    // Pods are made before anything is launched: a run that is killed meanwhile is found by its folder, and they by it.
    let latest = home.find_run("latest").ok();
    let early = match reached.as_ref().and_then(Reached::pods) {
        Some(_) => begin(home, &plan, secrets.clone(), None, latest.as_ref()).map(Some),
        None => Ok(None),
    };
    let early = match early {
        Ok(early) => early,
        Err(error) => return report_error(&error.to_string()),
    };
    if let Some(store) = &early {
        let settled = new_runtime(false)
            .and_then(|runtime| runtime.block_on(run_cluster::settle(store, inventory, true)));
        if let Err(why) = settled {
            let code = report_error(&why);
            early.into_iter().for_each(|store| remove_unlaunched(home, store, latest.as_ref()));
            return code;
        }
    }
    let wanted = preflight::is_wanted(inventory, options);
    let shared = &inventory.paths.shared;
    let checked =
        access::refused(&plan, shared, reached.as_ref(), options).and_then(|refused| match wanted {
            false => {
                preflight::unprobed(home, plan, inventory, reached.as_ref(), refused, options, replanning)
                    .map(|(plan, reported)| (plan, None, reported))
            }
            true => preflight::before(home, plan, inventory, reached.as_ref(), refused, options, replanning)
                .map(|checked| (checked.plan, Some(checked.probe), checked.reported)),
        });
    if checked.is_err() {
        end_unused(reached.as_ref());
    }
    let early = match early {
        Some(store) if checked.is_err() => {
            remove_unlaunched(home, store, latest.as_ref());
            None
        }
        early => early,
    };
    let (plan, probe, reported) = match checked {
        Ok(checked) => checked,
        Err(Stopped::Interrupted(code)) => {
            eprintln!("interrupted while nodes were probed: nothing was launched");
            return code;
        }
        Err(Stopped::NoAnswer(text)) => {
            super::no_answer::print(&text);
            return exit_code::INCONCLUSIVE;
        }
        Err(Stopped::Machinery(why)) => return report_error(&why),
    };
    let mut settled = inventory.clone();
    if let Some(gpus) = reported.gpus {
        settled.settle_gpu_request(gpus);
    }
    let inventory = &settled;
    // Those that were left out are in no allocation.
    let plan = plan::share(plan, inventory);
    let begun = match early {
        Some(store) => settle(&store, &plan, probe.as_ref()).map(|()| store),
        None => begin(home, &plan, secrets, probe.as_ref(), latest.as_ref()),
    };
    let store = match begun {
        Ok(store) => store,
        Err(error) => {
            end_unused(reached.as_ref());
            return report_error(&error.to_string());
        }
    };
    for why in report::skipped_of_plan(&plan) {
        eprintln!("note: {why}");
    }
    let planned_by = RunOptions { reported, ..replanning.options.clone() };
    let replanning = &Replanning { options: &planned_by, ..*replanning };
    let replan = |nodes: &[String]| preflight::on(home, &plan, nodes, replanning);
    let mut finished = match execute_by(&plan, inventory, reached, &store, options, None, Some(&replan)) {
        Ok(finished) => finished,
        Err(why) => return report_error(&why),
    };
    let plan = finished.amended.take().unwrap_or(plan);
    after_run::close(home, &plan, finished, &store, options, replanning.options)
}
