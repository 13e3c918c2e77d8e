//! A plan through its stages: on the simulated cluster of the run, or on the nodes of a real inventory.

use super::RunOptions;
use super::live_reports::LiveReports;
use super::past_events::PastEvents;
use super::planning::parse_faults;
use super::reached::{ReachScope, Reached, through_slurm};
use super::run_cluster;
use crate::own_recipes;
use crate::pipeline::{self, Finished, World};
use crate::report::{Mode, Progress, Report};
use crate::tasks::Cluster;
use cluster::reach::{Host, node_folder, shared_folder};
use cluster::run::Clock;
use config::inventory::{Inventory, Kind};
use model::artefact::Plan;
use sim::SimulatedReach;
use sim::journal::Entry;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;
use store::{self, Store, StoreError};
use tokio::runtime::{Builder, Runtime};

/// Drives the run; time stands still between events where it is `simulated`.
pub(crate) fn new_runtime(simulated: bool) -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(simulated).build();
    runtime.map_err(|error| error.to_string())
}

/// How the nodes of a real inventory are reached; simulated ones are made where the run is.
pub(crate) fn reached_by(inventory: &Inventory, scope: &ReachScope<'_>) -> Result<Option<Reached>, String> {
    match inventory.kind {
        Kind::Simulated => Ok(None),
        Kind::Real => Reached::new(inventory, scope).map(Some),
    }
}

/// The cluster whose nodes read the reports, where a person wants it so.
pub(super) fn analyze_on(inventory: &Inventory, options: &RunOptions) -> Result<Option<Cluster>, String> {
    options.analyze_on.as_ref().map(|place| Cluster::from_inventory(inventory, place, None)).transpose()
}

/// The simulated cluster of a run, as far as it had come. What it is asked to change is written into the run's folder.
pub(crate) async fn simulated_cluster(
    plan: &Plan,
    inventory: &Inventory,
    store: &Store,
    past: Option<&PastEvents>,
) -> Result<SimulatedReach, String> {
    let mut case_faults = BTreeMap::new();
    for case in &plan.cases {
        case_faults.insert(case.name.clone(), parse_faults(&case.sim_faults)?);
    }
    let reach = SimulatedReach::new(inventory, plan.seed, parse_faults(&plan.sim_faults)?, case_faults)?;
    let journal = store.clone();
    let write = move |entry: &Entry| journal.asked_of_simulation(entry).map_err(|error| error.to_string());
    let reach = reach.with_journal(Box::new(write));
    if let Some(past) = past {
        // Its jobs have gone on meanwhile, in simulated time.
        reach.restore(&past.entries, past.elapsed()).await?;
    }
    Ok(reach)
}

/// Goes through the stages of a new run, or of one that was ended and has a past.
pub(crate) fn execute(
    plan: &Plan,
    inventory: &Inventory,
    reached: Option<Reached>,
    store: &Store,
    options: &RunOptions,
    past: Option<&PastEvents>,
) -> Result<Finished, String> {
    execute_by(plan, inventory, reached, store, options, past, None)
}

/// A run that is a part of something larger: launched or gone on with, judged, and its reports written.
pub(crate) fn execute_and_write(
    plan: &Plan,
    inventory: &Inventory,
    store: &Store,
    options: &RunOptions,
    past: Option<&PastEvents>,
) -> Result<Finished, String> {
    let reached = reached_by(inventory, &ReachScope::from_plan(plan, options.ssh_fanout))?;
    let finished = execute(plan, inventory, reached, store, options, past)?;
    match pipeline::write_reports(plan, &finished, store).1.into_iter().next() {
        Some(error) => Err(error.to_string()),
        None => Ok(finished),
    }
}

/// As `execute`, where cases can be planned again on fewer nodes.
pub(super) fn execute_by(
    plan: &Plan,
    inventory: &Inventory,
    reached: Option<Reached>,
    store: &Store,
    options: &RunOptions,
    past: Option<&PastEvents>,
    replan: Option<pipeline::Replan<'_>>,
) -> Result<Finished, String> {
    let mode = if options.libtest.quiet {
        Mode::Silent
    } else {
        Mode::Auto { is_terminal: io::stderr().is_terminal() }
    };
    let prepared = analyze_on(inventory, options).and_then(|on| {
        let catalogue = own_recipes::catalogue_of_plan(&plan.recipes)?;
        Ok((on, catalogue, new_runtime(inventory.kind == Kind::Simulated)?))
    });
    let (on, catalogue, runtime) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => {
            // What runs for a run that is to go on is its own.
            end_unused(reached.as_ref().filter(|_| past.is_none()));
            return Err(why);
        }
    };
    let mut progress = Progress::new(mode).whole_lines(options.verbose);
    let at_once = options.ssh_fanout as usize;
    let history = past.map(|past| &past.history);
    let reports = LiveReports::new(store, options);
    let report = |so_far: &Report<'_>| reports.report(so_far);
    let on_case: Option<pipeline::OnCase<'_>> = Some(&report);
    let finished = runtime.block_on(async {
        let Some(reached) = reached else {
            let clock = Clock::starting_at(SimulatedReach::epoch_unix_s(plan.seed) as f64);
            let reach = simulated_cluster(plan, inventory, store, past).await?;
            let release: pipeline::Release = &|folder| reach.release(folder);
            let calls = through_slurm(inventory, &reach);
            let world = World {
                reach: &calls,
                clock,
                release,
                history,
                on: None,
                catalogue: &catalogue,
                replan,
                at_once,
                on_case,
            };
            let finished = pipeline::run(plan, world, store, &mut progress).await;
            // A run that could not go on leaves jobs for the one that resumes it.
            let finished = finished.map_err(|error| unfinished(&plan.run_id, &error))?;
            check_invariants(&reach)?;
            return Ok(finished);
        };
        reached.begin().await;
        let is_new = past.is_none();
        let prepared = match run_cluster::settle(store, inventory, is_new).await {
            Ok(()) => prepare_folder(&reached, inventory, plan, is_new).await,
            Err(why) => Err(why),
        };
        if let Err(why) = prepared {
            match past {
                None => reached.end().await,
                Some(_) => reached.disconnect().await,
            }
            return Err(why);
        }
        let now = store::wall_clock_s();
        let clock = match history.and_then(|history| history.began) {
            Some(began) => {
                Clock::going_on(began, Duration::try_from_secs_f64(now - began).unwrap_or_default())
            }
            None => Clock::starting_at(now),
        };
        let (reach, on) = (reached.reach(), on.as_ref());
        let world = World {
            reach,
            clock,
            release: &|_| (),
            history,
            on,
            catalogue: &catalogue,
            replan,
            at_once,
            on_case,
        };
        let finished = pipeline::run(plan, world, store, &mut progress).await;
        match &finished {
            Ok(_) => reached.end().await,
            Err(_) => reached.disconnect().await,
        }
        finished.map_err(|error| unfinished(&plan.run_id, &error))
    });
    progress.done();
    finished.map(|finished| Finished { streamed: reports.has_begun(), ..finished })
}

/// Its jobs may run still: such as where the disk of this machine is full.
fn unfinished(run: &str, error: &StoreError) -> String {
    format!(
        "{error}; the run has not ended: correct this, then `harness resume --run {run}`, or end its jobs: `harness clean \
         --run {run}`"
    )
}

/// Nothing was launched: connections and pods that were made for it end.
pub(super) fn end_unused(reached: Option<&Reached>) {
    if let (Some(reached), Ok(runtime)) = (reached, new_runtime(false)) {
        runtime.block_on(reached.end());
    }
}

/// The shared folder is checked, and a new run's own is made there, before anything is launched.
async fn prepare_folder(
    reached: &Reached,
    inventory: &Inventory,
    plan: &Plan,
    is_new: bool,
) -> Result<(), String> {
    let (shared, run) = (&inventory.paths.shared, &plan.run_id);
    let hosts: Vec<Host> = match reached {
        Reached::Processes(_) | Reached::Slurm(_) if is_new => return shared_folder::make_run(shared, run),
        Reached::Processes(_) | Reached::Slurm(_) => return shared_folder::check_run(shared, run),
        Reached::Login(_) => vec![Host::Here],
        Reached::Ssh(_) | Reached::Pods(_) => plan.nodes.iter().cloned().map(Host::Node).collect(),
    };
    let redactor = store::redactor();
    node_folder::prepare(&reached.clean(&redactor), &hosts, shared, run, is_new).await
}

/// Whether the simulated cluster was used as a real one may be.
pub(crate) fn check_invariants(reach: &SimulatedReach) -> Result<(), String> {
    match reach.violations().as_slice() {
        [] => Ok(()),
        broken => Err(format!("the simulated cluster detected a violation: {}", broken.join("; "))),
    }
}
