//! The isolation of a suite that failed, as part of the run that it failed in: planned with it, made after it, and in its
//! reports. How a faulty component is isolated stands in `isolation_session`.

use super::fleet;
use super::isolation_session::{FEWEST, isolate};
use super::request::{IsolationOutcome, IsolationRequest};
use super::rounds::Isolation;
use crate::own_recipes;
use crate::session::load;
use crate::session::options::{AfterRun, FailedSuite, RunOptions};
use crate::session::output::Output;
use base::nodeset;
use config::inventory::Inventory;
use config::suite::{OnFailure, Suite};
use model::artefact::{Isolated, IsolationCost, Plan, PlannedIsolation, Source};
use model::exit_code;
use std::path::Path;
use store::Home;
use verdict::isolate::cost_estimate::{Played, cost_estimate};
use verdict::isolate::round::{IsolationScope, Probes, spans};

#[derive(Debug)]
pub(crate) struct IsolateAfterRun;

impl AfterRun for IsolateAfterRun {
    fn plan(
        &self,
        home: &Home,
        plan: &Plan,
        suites: &[Suite],
        inventory: &Inventory,
        sources: &[Source],
    ) -> Vec<PlannedIsolation> {
        let of_suite = |suite: &Suite| {
            let OnFailure::Isolate { budget_node_h } = suite.on_failure else { return None };
            let mut planned = PlannedIsolation {
                suite: suite.name.clone(),
                file: suite.file.clone(),
                case: String::new(),
                // As much again as the run itself.
                budget_node_h: budget_node_h.unwrap_or(plan.node_seconds() / 3600.0),
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

    fn isolate(
        &self,
        home: &Home,
        failed: &FailedSuite<'_>,
        options: &RunOptions,
        output: Output,
    ) -> Result<Isolated, String> {
        if let Some(why) = &failed.planned.refused {
            return Err(why.clone());
        }
        let request = request(home, failed, options).map_err(|diagnostics| diagnostics.join("; "))?;
        let outcome = isolate(home, &request, output).map_err(|diagnostics| diagnostics.join("; "))?;
        Ok(report(failed.planned, &outcome))
    }
}

/// The case that is run again, and what that takes at least and at most.
fn expected(
    home: &Home,
    plan: &Plan,
    suite: &Suite,
    inventory: &Inventory,
    sources: &[Source],
) -> Result<(String, IsolationCost, IsolationCost), String> {
    if plan.nodes.len() < FEWEST {
        return Err(format!("at least {FEWEST} nodes are needed; selected: {}", nodeset::fold(&plan.nodes)));
    }
    let probes = Probes::choose(suite, inventory, None)?;
    let (fleet, groups) = fleet::number(inventory, &plan.nodes);
    let case = probes.case.clone();
    let asked = IsolationScope {
        suite: suite.name.clone(),
        inventory: inventory.name.clone(),
        case: case.clone(),
        nodes: plan.nodes.clone(),
        left_out: Vec::new(),
        groups,
        budget: None,
        seed: plan.seed,
        sim_faults: plan.sim_faults.clone(),
        reservation: plan.reservation.clone(),
        brought_about_by: None,
        unexplained: None,
    };
    let isolation = Isolation::new(home, inventory.clone(), probes, fleet, asked, sources.to_vec(), 1);
    let first = isolation.first_round().map_err(|diagnostics| diagnostics.join("; "))?;
    let each_h = first.map_or(0.0, |(_, each_s)| each_s) / 3600.0;
    let cost = |played: &Played| IsolationCost {
        rounds: played.rounds as u64,
        runs: played.runs as u64,
        node_h: played.node_runs as f64 * each_h,
    };
    let cost_estimate = cost_estimate(&isolation.fleet);
    Ok((case, cost(&cost_estimate.best), cost(&cost_estimate.worst)))
}

fn request(
    home: &Home,
    failed: &FailedSuite<'_>,
    options: &RunOptions,
) -> Result<IsolationRequest, Vec<String>> {
    let (plan, planned) = (failed.plan, failed.planned);
    let suite = suite_path(options, &planned.suite).map_err(|why| vec![why])?;
    let catalogue = own_recipes::catalogue_of_plan(&plan.recipes).map_err(|why| vec![why])?;
    let loaded = load::load(home, std::slice::from_ref(&suite), &options.inventory, None, &catalogue)?;
    // The failed case itself is run again, where it can be.
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    let own = cases.filter(|case| spans(case)).find(|case| case.name == failed.case.name);
    let case = own.map_or(&planned.case, |case| &case.name);
    let is_left_out = |node: &str| plan.left_out.iter().any(|left| left.node == node);
    let nodes: Vec<String> = plan.nodes.iter().filter(|node| !is_left_out(node)).cloned().collect();
    Ok(IsolationRequest {
        suite: Some(suite),
        inventory: options.inventory.clone(),
        nodes: Some(nodeset::fold(&nodes)),
        budget: Some(planned.budget_node_h),
        case: Some(case.clone()),
        run: Some(plan.run_id.clone()),
        // The run itself has probed them.
        no_probe: true,
        reservation: plan.reservation.clone(),
        seed: plan.seed,
        sim_faults: plan.sim_faults.clone(),
        ssh_fanout: options.ssh_fanout,
        caused_by: Some(plan.run_id.clone()),
        catalogue,
        ..IsolationRequest::default()
    })
}

/// The suite as the user named it.
fn suite_path(options: &RunOptions, suite: &str) -> Result<String, String> {
    let is_named = |path: &&String| Path::new(path).file_stem().is_some_and(|stem| stem == suite);
    let found = options.suites.iter().find(is_named).cloned();
    found.ok_or_else(|| format!("the file of suite `{suite}` is unknown"))
}

fn report(planned: &PlannedIsolation, outcome: &IsolationOutcome) -> Isolated {
    let end = match outcome.code {
        exit_code::PASSED => "no culprit",
        exit_code::FAILED => "culprits",
        exit_code::INTERRUPTED | exit_code::TERMINATED => "interrupted",
        _ => "could not tell",
    };
    Isolated {
        suite: planned.suite.clone(),
        end: end.to_owned(),
        culprits: outcome.culprits.iter().map(ToString::to_string).collect(),
        rounds: outcome.rounds.clone(),
        node_hours: outcome.node_hours,
    }
}
