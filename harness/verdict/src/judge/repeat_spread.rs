//! Whether the repeats of a case vary no more than its suite declares: a fleet whose numbers jump from run to run is not
//! sound, however good their median is.

use super::{JudgedBound, Measured};
use config::bounds;
use model::artefact::{JudgedBy, PlannedAssertion, Status};

pub(super) fn judge(assertion: &PlannedAssertion, measured: &Measured) -> Option<JudgedBound> {
    let spread = assertion.bound.spread?;
    let several = measured.numbers().filter(|(_, number)| number.runs.len() > 1 && number.value != 0.0);
    let farthest = several.map(|(name, number)| (relative_range(&number.runs, number.value), name, number));
    let (range, name, number) = farthest.max_by(|a, b| a.0.total_cmp(&b.0))?;
    // Each pair of runs is a comparison of its own.
    let runs = number.runs.len() as u32;
    let pairs = runs * (runs - 1) / 2;
    let judged = spread.judged.max(1).saturating_mul(pairs);
    let most = bounds::factor(1, judged, f64::INFINITY) * spread.relative;
    let is_too_wide = range > most;
    let comparison = format!(
        "expected {runs} repeats within {:.1} % (declared spread {} %, {} numbers judged), got {:.1} %",
        most * 100.0,
        spread.relative * 100.0,
        spread.judged,
        range * 100.0
    );
    Some(JudgedBound {
        status: if is_too_wide { Status::Fail } else { Status::Pass },
        observed: number.value,
        runs: number.runs.clone(),
        lower: None,
        upper: None,
        odd: if is_too_wide && !name.is_empty() { vec![name.to_owned()] } else { Vec::new() },
        comparison,
        by: JudgedBy::Limit,
        next: is_too_wide.then(|| {
            "intermittent: check clocks, retransmits and other jobs on the fabric during the slow repeats"
                .to_owned()
        }),
    })
}

/// From the least to the most, as a fraction of the middle.
fn relative_range(runs: &[f64], middle: f64) -> f64 {
    let most = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
    (most - least) / middle.abs()
}
