//! Whether a number that is out of its bounds is further out than the noise between runs; else how many more repeats are
//! needed to decide. Where the noise is unknown, the number is taken as it is.

use super::JudgedBound;
use config::bounds;
use model::artefact::Status;

/// A failure that its own interval does not support is none yet. `spread` is one standard deviation, in the metric's
/// unit, where it is declared or stands in the baseline; else it is computed from the runs.
pub(super) fn weigh(judged: &mut JudgedBound, spread: Option<f64>) {
    if judged.status != Status::Fail {
        return;
    }
    let Some(more) = needs_more(judged, spread) else { return };
    let runs = judged.runs.len().max(1) as u32;
    judged.status = Status::Inconclusive;
    judged.comparison.push_str(&format!("; too close to the bound: {more} more repeats are needed"));
    judged.next = Some(format!("set `repeats = {}` in the case", runs.saturating_add(more)));
}

fn needs_more(judged: &JudgedBound, spread: Option<f64>) -> Option<u32> {
    let below = judged.lower.map_or(f64::NEG_INFINITY, |lower| lower - judged.observed);
    let above = judged.upper.map_or(f64::NEG_INFINITY, |upper| judged.observed - upper);
    let beyond = below.max(above);
    let runs = judged.runs.len() as u32;
    if let Some(spread) = spread {
        return bounds::supports(beyond, spread, runs.max(1)).err();
    }
    let deviation = deviation(&judged.runs)?;
    match beyond > bounds::half_interval(deviation, runs) {
        true => None,
        false => Some(bounds::supports(beyond, deviation, runs).err().unwrap_or(1).max(1)),
    }
}

/// Of single runs about their mean; nothing where there are not two.
fn deviation(runs: &[f64]) -> Option<f64> {
    let n = runs.len();
    if n < 2 {
        return None;
    }
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (n - 1) as f64).sqrt())
}
