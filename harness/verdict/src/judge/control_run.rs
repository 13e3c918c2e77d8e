//! The overhead of the profiler, or of NCCL's Inspector, on a rate or a time, by the same job without it; and which of the two is
//! judged.

use super::case_index::CaseIndex;
use super::gate::{self, Gate};
use super::{CaseData, Measured, subject};
use metric::unit::{Better, Unit};
use model::artefact::{PlannedAssertion, PlannedJob, Status, Verdict};
use std::collections::BTreeMap;

/// Whose numbers an assertion is judged by.
pub(super) enum Chosen {
    /// Its own jobs'.
    Own,
    /// Those of the jobs without it, and why, as a message ends with it.
    Bare(Vec<String>, String),
    /// The overhead is unknown: the verdict says so.
    Unknown,
}

pub(super) fn choose(
    data: &CaseData,
    index: &CaseIndex,
    gates: &BTreeMap<&str, Gate>,
    assertion: &PlannedAssertion,
    verdict: &mut Verdict,
) -> Chosen {
    let Some((control_runs, most)) = control_runs(data, index, assertion) else { return Chosen::Own };
    let of_controls = PlannedAssertion { jobs: control_runs.clone(), ..assertion.clone() };
    let recorder = recorder(index, assertion);
    let (overhead, other) = match recorder {
        NSYS => ("profiling", "the profiler"),
        other => (other, other),
    };
    let unknown = |verdict: &mut Verdict, why: &str| {
        verdict.status = Status::Inconclusive;
        verdict.cause = Some("profiling-cost".to_owned());
        verdict.message = format!("{}: {overhead} overhead unknown: {why}", subject(assertion));
        verdict.next = Some(format!("see the job without {other}, then rerun the case"));
        Chosen::Unknown
    };
    if let Some((_, _, why, _)) = gate::shut(gates, &of_controls, false) {
        return unknown(verdict, &why);
    }
    let profiled = Measured::select(data.metrics, assertion, &assertion.jobs);
    let bare = Measured::select(data.metrics, assertion, &control_runs);
    if !profiled.missing.is_empty() || profiled.parts.is_empty() {
        // A missing number is reported as that of any other job.
        return Chosen::Own;
    }
    let Some(cost) = cost(&profiled, &bare, assertion.better) else {
        return unknown(verdict, &format!("the job without {other} has no such number"));
    };
    if cost <= most {
        return Chosen::Own;
    }
    let costs = if recorder == BOTH { "cost" } else { "costs" };
    let (cost, most) = (cost * 100.0, most * 100.0);
    let reason =
        format!("judged by the run without {recorder}: {recorder} {costs} {cost:.1} %, limit {most} %");
    Chosen::Bare(control_runs, reason)
}

const NSYS: &str = "nsys";
const INSPECTOR: &str = "NCCL Inspector";
const BOTH: &str = "nsys and NCCL Inspector";

/// What the control runs leave off.
fn recorder(index: &CaseIndex, assertion: &PlannedAssertion) -> &'static str {
    let jobs = || assertion.jobs.iter().filter_map(|job| index.planned(job));
    match (jobs().any(|job| job.profile.is_some()), jobs().any(PlannedJob::is_inspected)) {
        (false, true) => INSPECTOR,
        (true, true) => BOTH,
        _ => NSYS,
    }
}

/// The jobs without it that stand beside all of the assertion's; nothing where there are none, or where the number is one that
/// only a profiler or Inspector can measure.
fn control_runs(
    data: &CaseData,
    index: &CaseIndex,
    assertion: &PlannedAssertion,
) -> Option<(Vec<String>, f64)> {
    let is_pace = !matches!(assertion.unit, Unit::Count | Unit::Bytes | Unit::Ratio);
    if !is_pace
        || assertion.better == Better::Neither
        || gate::is_of_recording(data.catalogue, &assertion.metric)
    {
        return None;
    }
    // A job that neither of them records is its own control run.
    let alone = |job: &String| {
        let planned = index.planned(job).filter(|planned| !planned.is_recorded())?;
        Some((planned.name.as_str(), f64::INFINITY))
    };
    let all: Option<Vec<(&str, f64)>> =
        assertion.jobs.iter().map(|job| index.control_run(job).or_else(|| alone(job))).collect();
    let all = all?;
    let most = all.iter().map(|(_, most)| *most).fold(f64::INFINITY, f64::min);
    if most.is_infinite() {
        return None;
    }
    Some((all.into_iter().map(|(name, _)| name.to_owned()).collect(), most))
}

/// The largest over all parts, as a fraction of what the program reaches by itself: below nothing where it was faster
/// with the profiler. Nothing where a number has none beside it.
fn cost(profiled: &Measured, bare: &Measured, better: Better) -> Option<f64> {
    let alone = |name: &str| bare.values().find(|(other, _)| *other == name).map(|(_, value)| value);
    let mut worst = f64::NEG_INFINITY;
    for (name, value) in profiled.values() {
        let left = match better {
            Better::Lower => alone(name)? / value,
            Better::Higher | Better::Neither => value / alone(name)?,
        };
        if !left.is_finite() {
            return None;
        }
        worst = worst.max(1.0 - left);
    }
    worst.is_finite().then_some(worst)
}
