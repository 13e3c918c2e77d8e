//! What a red suite brings about where it wants to be isolated: planned with the run, chased after it, told in its reports.
//! How a culprit is found is left to `chase`.

use super::super::{RunArgs, load, run_suites};
use super::chase::{Chased, FEWEST, chase};
use super::rounds::Isolation;
use super::voice::{Voice, say};
use super::{IsolateArgs, fleet};
use crate::pipeline::Finished;
use base::nodeset;
use clap::Parser;
use cluster::interrupt;
use config::inventory::Inventory;
use config::suite::{OnFailure, Suite};
use libtest_mimic::FormatSetting;
use model::artefact::{
    Isolated, IsolationCost, Plan, PlannedCase, PlannedIsolation, Source, Status, WorkloadFacts,
};
use model::exit_code;
use std::path::Path;
use store::{Home, Store};
use verdict::isolate::outlook::{Played, outlook};
use verdict::isolate::round::{Asked, Probes, spans};

/// What each suite that wants it may add to the run, at worst.
pub(crate) fn planned(
    home: &Home,
    plan: &Plan,
    suites: &[Suite],
    inventory: &Inventory,
    sources: &[Source],
) -> Vec<PlannedIsolation> {
    let own_node_h = plan
        .cases
        .iter()
        .flat_map(|case| &case.jobs)
        .map(|job| job.nodes.len() as f64 * job.estimate_s as f64)
        .sum::<f64>()
        / 3600.0;
    let of_suite = |suite: &Suite| {
        let OnFailure::Isolate { budget_node_h } = suite.on_failure else { return None };
        let mut planned = PlannedIsolation {
            suite: suite.name.clone(),
            file: suite.file.clone(),
            case: String::new(),
            budget_node_h: budget_node_h.unwrap_or(own_node_h),
            budget_is_own: budget_node_h.is_some(),
            best: IsolationCost::default(),
            worst: IsolationCost::default(),
            refused: None,
        };
        match expected(home, plan, suite, inventory, sources) {
            Ok((case, best, worst)) => (planned.case, planned.best, planned.worst) = (case, best, worst),
            Err(why) => planned.refused = Some(why),
        }
        Some(planned)
    };
    let is_run = |suite: &&Suite| plan.cases.iter().any(|case| case.suite == suite.name);
    suites.iter().filter(is_run).filter_map(of_suite).collect()
}

fn expected(
    home: &Home,
    plan: &Plan,
    suite: &Suite,
    inventory: &Inventory,
    sources: &[Source],
) -> Result<(String, IsolationCost, IsolationCost), String> {
    if plan.nodes.len() < FEWEST {
        return Err(format!("{FEWEST} nodes at least are needed, there are: {}", nodeset::fold(&plan.nodes)));
    }
    let probes = Probes::of(suite, inventory, None)?;
    let (fleet, groups) = fleet::of(inventory, &plan.nodes);
    let case = probes.case.clone();
    let asked = Asked {
        suite: suite.name.clone(),
        inventory: inventory.name.clone(),
        case: case.clone(),
        nodes: plan.nodes.clone(),
        groups,
        budget: None,
        seed: plan.seed,
        sim_faults: plan.sim_faults.clone(),
        reservation: plan.reservation.clone(),
        brought_about_by: None,
    };
    let isolation = Isolation::new(home, inventory.clone(), probes, fleet, asked, sources.to_vec(), 1);
    let each_h = isolation.seconds_each().map_err(|diagnostics| diagnostics.join("; "))? / 3600.0;
    let cost = |played: &Played| IsolationCost {
        rounds: played.rounds as u64,
        runs: played.runs as u64,
        node_h: played.node_runs as f64 * each_h,
    };
    let outlook = outlook(&isolation.fleet);
    Ok((case, cost(&outlook.best), cost(&outlook.worst)))
}

/// Chases what the run showed to be out of bounds, writes it into the run's reports, and gives the run's own exit code: that
/// of the suites, whatever was found. `like` is how the run's files are called.
pub(crate) fn close(
    home: &Home,
    plan: &Plan,
    mut finished: Finished,
    store: &Store,
    args: &RunArgs,
    like: &RunArgs,
) -> i32 {
    let code = run_suites::close(plan, &finished, store, args);
    if finished.summary.interrupted.is_some() {
        return code;
    }
    let voice = match args.libtest.format {
        Some(FormatSetting::Json) => Voice::Err,
        _ => Voice::Out,
    };
    let mut isolated = Vec::new();
    for planned in &plan.isolations {
        let Some(case) = red(plan, &finished, &planned.suite) else { continue };
        if interrupt::asked().is_some() {
            break;
        }
        say!(voice, "");
        match one(home, plan, planned, case, voice, like) {
            Ok(chased) => isolated.push(told(planned, &chased)),
            Err(why) => say!(voice, "not isolated: {why}"),
        }
    }
    if isolated.is_empty() {
        return code;
    }
    finished.summary.isolations = isolated;
    let code = exit_code::graver(code, run_suites::write(plan, &finished, store, args));
    if let Err(error) = store.is_latest() {
        eprintln!("error: {error}");
    }
    say!(voice, "the run's own exit code stays: {code}");
    interrupt::asked().unwrap_or(code)
}

/// A case of the suite that was measured and is out of bounds, and that further runs of collectives can look into.
fn red<'a>(plan: &'a Plan, finished: &Finished, suite: &str) -> Option<&'a PlannedCase> {
    let is_red = |case: &&PlannedCase| {
        finished.cases.iter().any(|verdicts| {
            verdicts.suite == case.suite
                && verdicts.case == case.name
                && verdicts.verdicts.iter().any(|verdict| verdict.status == Status::Fail)
        })
    };
    let of_fabric = |case: &&PlannedCase| {
        matches!(case.workload, WorkloadFacts::NcclTests { .. } | WorkloadFacts::NicPairs { .. })
    };
    plan.cases.iter().filter(|case| case.suite == suite).filter(of_fabric).find(is_red)
}

fn one(
    home: &Home,
    plan: &Plan,
    planned: &PlannedIsolation,
    red: &PlannedCase,
    voice: Voice,
    like: &RunArgs,
) -> Result<Chased, String> {
    if let Some(why) = &planned.refused {
        return Err(why.clone());
    }
    let suite = given(like, &planned.suite)?;
    let loaded = load::load(home, std::slice::from_ref(&suite), &like.inventory, None);
    let loaded = loaded.map_err(|diagnostics| diagnostics.join("; "))?;
    // What is red itself is what is run again, where it can be.
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    let own = cases.filter(|case| spans(case)).find(|case| case.name == red.name);
    let case = own.map_or(&planned.case, |case| &case.name);
    let left: Vec<String> = plan
        .nodes
        .iter()
        .filter(|node| !plan.left_out.iter().any(|left| left.node == **node))
        .cloned()
        .collect();
    let (nodes, budget) = (nodeset::fold(&left), planned.budget_node_h.to_string());
    let (seed, fanout) = (plan.seed.to_string(), like.ssh_fanout.to_string());
    let mut words = vec!["harness", "--suite", &suite, "--inventory", &like.inventory, "--nodes", &nodes];
    words.extend(["--budget", &budget, "--case", case, "--run", &plan.run_id]);
    words.extend(["--seed", &seed, "--ssh-fanout", &fanout]);
    for fault in &plan.sim_faults {
        words.extend(["--sim-fault", fault]);
    }
    if let Some(name) = &plan.reservation {
        words.extend(["--reservation", name]);
    }
    let args = IsolateArgs::try_parse_from(words).map_err(|why| why.to_string())?;
    chase(home, &args, voice, Some(&plan.run_id)).map_err(|diagnostics| diagnostics.join("; "))
}

/// How the suite was called.
fn given(like: &RunArgs, suite: &str) -> Result<String, String> {
    let is = |given: &&String| Path::new(given).file_stem().is_some_and(|stem| stem == suite);
    let found = like.suites.iter().find(is).cloned();
    found.ok_or_else(|| format!("the file of the suite is not known any more: `{suite}`"))
}

fn told(planned: &PlannedIsolation, chased: &Chased) -> Isolated {
    let end = match chased.code {
        exit_code::PASSED => "no culprit",
        exit_code::FAILED => "culprits",
        exit_code::INTERRUPTED | exit_code::TERMINATED => "interrupted",
        _ => "could not tell",
    };
    Isolated {
        suite: planned.suite.clone(),
        end: end.to_owned(),
        culprits: chased.culprits.iter().map(ToString::to_string).collect(),
        rounds: chased.rounds.clone(),
        node_hours: chased.node_hours,
    }
}
