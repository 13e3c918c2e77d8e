//! A part against its peers: the same number of all other parts of the same kind in the case.

use super::measured::{Number, without_job};
use super::{CaseData, JudgedBound, Measured};
use crate::artefact::{PlannedAssertion, Status};
use recipes::metric::{Dim, Dims, Metric, Query};
use recipes::unit::Better;
use std::collections::BTreeSet;

pub fn judge(data: &CaseData, assertion: &PlannedAssertion, measured: &Measured) -> Option<JudgedBound> {
    let tolerance = assertion.bound.within_peers?;
    // With the profiler and without it is no difference between parts.
    let bare = data.case.jobs.iter().filter(|job| job.is_bare()).map(|job| job.name.as_str()).collect();
    let mut worst: Option<JudgedBound> = None;
    let mut odd = Vec::new();
    for (name, numbers) in &measured.parts {
        for number in numbers {
            let judged = judge_number(data, &bare, assertion, number, tolerance);
            if judged.status == Status::Fail && !name.is_empty() {
                odd.push(name.clone());
            }
            if worst.as_ref().is_none_or(|worst| super::gravity(worst.status) < super::gravity(judged.status))
            {
                worst = Some(judged);
            }
        }
    }
    let mut worst = worst?;
    odd.dedup();
    worst.odd = odd;
    Some(worst)
}

fn judge_number(
    data: &CaseData,
    bare: &BTreeSet<&str>,
    assertion: &PlannedAssertion,
    number: &Number,
    tolerance: f64,
) -> JudgedBound {
    let Number { dims, value, runs } = number;
    let (value, own) = (*value, without_job(dims));
    let mut alike = Dims::new();
    for (dim, fixed) in dims.iter() {
        // What tells parts from each other is left open; what tells questions from each other is kept.
        if !matches!(dim, Dim::Node | Dim::Nic | Dim::Gpu | Dim::Job | Dim::Peer | Dim::Round) {
            alike.set(dim, fixed.clone());
        }
    }
    let query = Query { metric: assertion.metric.clone(), dims: alike };
    let is_bare = |dims: &Dims| dims.word(Dim::Job).is_some_and(|job| bare.contains(job));
    let alike = is_bare(dims);
    // Nor is one run's of the same part from the next.
    let is_peer = |row: &&Metric| {
        if runs.is_empty() { row.dims != **dims } else { without_job(&row.dims) != own }
    };
    let mut peers: Vec<f64> = data
        .metrics
        .select(&query)
        .into_iter()
        .filter(|row| is_peer(row) && is_bare(&row.dims) == alike)
        .map(|row| row.value)
        .collect();
    peers.sort_by(f64::total_cmp);
    let unit = assertion.unit;
    let Some(median) = median(&peers) else {
        return JudgedBound {
            status: Status::Inconclusive,
            observed: value,
            runs: runs.clone(),
            lower: None,
            upper: None,
            odd: Vec::new(),
            expected: "peers to hold it against, and there are none".to_owned(),
            next: None,
        };
    };
    let (lower, upper) = match assertion.better {
        Better::Higher => (Some(median * (1.0 - tolerance)), None),
        Better::Lower => (None, Some(median * (1.0 + tolerance))),
        Better::Neither => (Some(median * (1.0 - tolerance)), Some(median * (1.0 + tolerance))),
    };
    let out = lower.is_some_and(|lower| value < lower) || upper.is_some_and(|upper| value > upper);
    JudgedBound {
        status: if out { Status::Fail } else { Status::Pass },
        observed: value,
        runs: runs.clone(),
        lower,
        upper,
        odd: Vec::new(),
        expected: format!(
            "within {:.0} % of the other {}, at {}",
            tolerance * 100.0,
            peers.len(),
            unit.show(median)
        ),
        next: None,
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let (low, high) = (sorted.get(n.checked_sub(1)? / 2)?, sorted.get(n / 2)?);
    Some((low + high) / 2.0)
}
