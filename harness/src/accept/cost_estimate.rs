//! What an acceptance will cost, before it starts: the first run of each stage where all is well, and what would come
//! on top where something is not.

use super::acceptance_session::{AcceptanceSession, Sets};
use super::soak_windows::window_suite;
use crate::report::{estimate_s, node_hours};
use config::suite::Suite;
use model::artefact::{PlannedBaseline, PlannedCase};
use std::collections::BTreeSet;
use verdict::accept::repeats::MOST_REPEATS;
use verdict::accept::stages::Stage;
use verdict::isolate::cost_estimate::cost_estimate;
use verdict::isolate::{Fleet, Next, next};

pub(crate) struct CostEstimate {
    pub stages: Vec<OfStage>,
    pub best: Cost,
    pub worst: Cost,
}

pub(crate) struct OfStage {
    pub stage: Stage,
    pub jobs: usize,
    pub node_hours: f64,
    pub seconds: u64,
    /// Of a soak, each of which is a run.
    pub windows: usize,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub runs: usize,
    pub node_hours: f64,
}

/// The most is every stage made twice on all nodes, both repeats of what has baselines, and two isolations, each of two faults
/// among much noise.
pub(crate) fn estimate(accepting: &AcceptanceSession) -> CostEstimate {
    let mut cost_estimate =
        CostEstimate { stages: Vec::new(), best: Cost::default(), worst: Cost::default() };
    let isolation = isolation(accepting);
    for (stage, suite) in &accepting.suites {
        let (suite, nodes, sets) = accepting.first_of(*stage, suite);
        let Ok(plan) = accepting.plan(&suite, "none", nodes, sets) else { continue };
        let windows = accepting.soak_of(*stage).map_or(1, |soak| soak.windows() as usize);
        let hours = plan.cases.iter().map(node_hours).sum::<f64>() * windows as f64;
        cost_estimate.stages.push(OfStage {
            stage: *stage,
            jobs: plan.cases.iter().map(|case| case.jobs.len()).sum::<usize>() * windows,
            node_hours: hours,
            seconds: plan.cases.iter().map(estimate_s).sum::<u64>() * windows as u64,
            windows,
        });
        cost_estimate.best.runs += windows;
        cost_estimate.best.node_hours += hours;
        cost_estimate.worst.runs += 2 * windows;
        cost_estimate.worst.node_hours += 2.0 * hours;
        let repeated = repeated_node_hours(&plan.cases);
        if *stage != Stage::Soak && repeated > 0.0 {
            cost_estimate.worst.runs += MOST_REPEATS;
            cost_estimate.worst.node_hours += MOST_REPEATS as f64 * repeated;
        }
        if matches!(stage, Stage::Groups | Stage::All) {
            cost_estimate.worst.runs += isolation.runs;
            cost_estimate.worst.node_hours += isolation.node_hours;
        }
    }
    cost_estimate
}

/// Of the cases that a narrow miss would repeat.
fn repeated_node_hours(cases: &[PlannedCase]) -> f64 {
    let has_bounds = |case: &&PlannedCase| {
        case.assertions.iter().any(|assertion| {
            let baseline = &assertion.bound.baseline;
            matches!(baseline, Some(PlannedBaseline::Provisional(_) | PlannedBaseline::Accepted(_)))
        })
    };
    cases.iter().filter(has_bounds).map(node_hours).sum()
}

fn isolation(accepting: &AcceptanceSession) -> Cost {
    let asked = &accepting.delivery.record.asked;
    let instance = &accepting.delivery.inventory.instance;
    let nodes: Vec<String> = asked.nodes.iter().chain(&asked.partners).cloned().collect();
    let fleet = Fleet::flat(nodes.len(), instance.gpus as usize, instance.nics.len());
    let (Some(probes), Next::Round(trials)) = (&accepting.probes, next(&fleet, &[], 0)) else {
        return Cost::default();
    };
    let (suite, sets, _) = probes.round(&nodes, &trials);
    let of_round: usize = trials.iter().map(|trial| trial.nodes.len()).sum();
    let Ok(plan) = accepting.plan(&suite, "none", nodes, sets) else { return Cost::default() };
    let each = plan.cases.iter().map(node_hours).sum::<f64>() / of_round.max(1) as f64;
    let worst = cost_estimate(&fleet).worst;
    Cost { runs: worst.rounds, node_hours: worst.node_runs as f64 * each }
}

impl AcceptanceSession {
    /// The first run of a stage, were all nodes to come so far.
    pub(crate) fn first_of(&self, stage: Stage, suite: &Suite) -> (Suite, Vec<String>, Sets) {
        let nodes = self.delivery.record.asked.nodes.clone();
        match (stage, self.soak_of(stage)) {
            (Stage::Single, _) => return (suite.clone(), nodes, Sets::new()),
            (_, Some(soak)) => return (window_suite(suite, soak, 0), nodes, Sets::new()),
            _ => {}
        }
        let (suite, sets) = self.place(stage, suite, &nodes);
        let used: BTreeSet<&String> = sets.values().flatten().flat_map(|job| &job.nodes).collect();
        let used = used.into_iter().cloned().collect::<Vec<_>>();
        // Too few for any set of it: that is reported when the stage is reached.
        let used = if used.is_empty() { nodes } else { used };
        (suite, used, sets)
    }
}
