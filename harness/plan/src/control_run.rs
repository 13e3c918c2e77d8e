//! The jobs that stand beside those of a case: its repeats, the same without the profiler and NCCL's Inspector, and
//! second attempts. Which of
//! them are launched is decided in `run`, and how their numbers are judged in `judge`.

use super::placement::Placed;
use super::{Context, evidence, jobs};
use config::suite::Case;
use model::artefact::{AGAIN, ControlRun, PlannedAssertion, PlannedJob};
use std::collections::BTreeSet;

/// The first jobs with all others; each assertion reads the repeats of what it reads.
pub(crate) fn with(
    context: &Context,
    case: &Case,
    placed: &[Placed],
    first: Vec<PlannedJob>,
    assertions: &mut [PlannedAssertion],
) -> Result<Vec<PlannedJob>, String> {
    let rounds = placed.iter().map(|placed| placed.round).max().unwrap_or_default();
    let mut all = first;
    let mut runs: Vec<Placed> = placed.to_vec();
    let firsts: BTreeSet<&str> = placed.iter().map(|placed| placed.name.as_str()).collect();
    for repeat in 2..=case.repeats {
        let named = |name: &str| format!("{name}.r{repeat}");
        let again = renamed(placed, &named, rounds * (repeat - 1));
        for (mut job, of) in jobs::jobs(context, case, &again)?.into_iter().zip(placed) {
            job.control_run = Some(ControlRun::Repeat { of: of.name.clone() });
            all.push(job);
        }
        for assertion in assertions.iter_mut() {
            let more: Vec<String> = assertion
                .jobs
                .iter()
                .filter(|job| firsts.contains(job.as_str()))
                .map(|job| named(job))
                .collect();
            assertion.jobs.extend(more);
        }
        runs.extend(again);
    }
    if let Some(cost_at_most) = cost_at_most(case) {
        let bare = bare(case);
        // NCCL's log has nothing to leave off, and so has a job without evidence.
        let recorded = runs.iter().zip(&all).filter(|(_, job)| job.is_recorded());
        let recorded: Vec<Placed> = recorded.map(|(placed, _)| placed.clone()).collect();
        let control_runs = renamed(&recorded, &|name| format!("{name}.bare"), rounds * case.repeats);
        for (mut job, of) in jobs::jobs(context, &bare, &control_runs)?.into_iter().zip(&recorded) {
            job.control_run = Some(ControlRun::Bare { of: of.name.clone(), cost_at_most });
            all.push(job);
        }
    }
    if case.retry_infrastructure {
        let second = second_attempts(context, case, &all)?;
        all.extend(second);
    }
    Ok(all)
}

/// What the profiler and NCCL's Inspector may cost of rates and times, where each job runs without them as well.
pub(crate) fn cost_at_most(case: &Case) -> Option<f64> {
    let profile = case.profile.as_ref();
    profile.and_then(|profile| profile.unprofiled_control_run).or(case.evidence.control_run)
}

/// With nothing beside the program that costs it time.
fn bare(case: &Case) -> Case {
    evidence::with_source(case, None)
}

/// The same nodes under other names, in later rounds.
fn renamed(placed: &[Placed], name: &dyn Fn(&str) -> String, later: u32) -> Vec<Placed> {
    let one = |placed: &Placed| Placed {
        name: name(&placed.name),
        nodes: placed.nodes.clone(),
        round: placed.round + later,
    };
    placed.iter().map(one).collect()
}

/// Each in a folder of its own, so that nothing of the first is taken for what the second measured.
fn second_attempts(context: &Context, case: &Case, all: &[PlannedJob]) -> Result<Vec<PlannedJob>, String> {
    let bare = bare(case);
    let mut second = Vec::new();
    for first in all {
        let placed =
            Placed { name: format!("{}{AGAIN}", first.name), nodes: first.nodes.clone(), round: first.round };
        let case = if first.is_bare() { &bare } else { case };
        for job in jobs::jobs(context, case, &[placed])? {
            second.push(PlannedJob {
                control_run: first.control_run.clone(),
                again_of: Some(first.name.clone()),
                ..job
            });
        }
    }
    Ok(second)
}
