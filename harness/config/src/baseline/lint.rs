//! Errors of baselines that can be read: bounds without a measurement, and bounds within the noise of their samples.
//! Bounds beyond the hardware limits are reported by `hardware_limits`.

use super::{Baselines, State};
use crate::bounds::{self, DEVIATIONS_OF_MAD};
use crate::diagnostic::Diagnostic;
use metric::unit::Better;

/// Healthy numbers leave bounds nearer than so many deviations every other day.
const NEAREST: f64 = 2.0;

/// What `harness check` reports of baselines that could be read; nothing of simulated ones.
pub fn lint(baselines: &Baselines) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    // What the simulated cluster measures is known to the digit, and its bounds are the model's.
    if baselines.simulated {
        return diagnostics;
    }
    for entry in &baselines.entries {
        let mut report = |message: String, suggestion: &str| {
            let message = format!("{message}: `{} {}`", entry.metric, entry.key);
            diagnostics.push(Diagnostic::at(&baselines.file, entry.line, 1, message).suggest(suggestion));
        };
        let median = entry.median();
        if entry.state == State::Accepted && entry.spread.is_none() {
            let share = entry.lower.or(entry.upper).map(|bound| bound / median);
            if let Some(share) = share.filter(|share| share.is_finite()) {
                report(
                    format!("accepted bound at {share:.3} of the median without a measured spread"),
                    "compute it from runs with `harness baseline propose`, or write `state = \"provisional\"`",
                );
            }
        }
        if entry.state == State::Provisional
            && entry.runs.is_empty()
            && entry.floor.is_none()
            && entry.better == Better::Higher
        {
            report(
                "published baseline without `floor`".to_owned(),
                "add `floor`, the lowest of three published systems or 60 % of the lowest figure, and `floor_source`",
            );
        }
        if entry.state == State::Accepted && !baselines.is_pending() && entry.accepted_by.is_none() {
            report("accepted baseline without `accepted_by`".to_owned(), "add `accepted_by` and `reason`");
        }
        let Some(mad) = bounds::mad(&entry.samples).filter(|_| entry.samples.len() >= 3) else { continue };
        let nearest = entry
            .lower
            .map(|lower| median - lower)
            .into_iter()
            .chain(entry.upper.map(|upper| upper - median))
            .min_by(f64::total_cmp);
        if nearest.is_some_and(|nearest| nearest < NEAREST * DEVIATIONS_OF_MAD * mad) {
            report(
                "bound within the noise of its own samples".to_owned(),
                "healthy nodes would fail: compute it with `harness baseline propose`",
            );
        }
    }
    diagnostics
}
