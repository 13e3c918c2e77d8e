//! What is wrong in baselines that can be read: bounds that no measurement stands behind, and such as are narrower than
//! what was measured. What the hardware makes impossible is told by `physics`.

use super::{Baselines, State};
use crate::bounds::{self, DEVIATIONS_OF_MAD};
use crate::diagnostic::Diagnostic;
use metric::unit::Better;

/// Bounds nearer than so many deviations are left by healthy numbers every other day.
const NEAREST: f64 = 2.0;

pub fn lint(baselines: &Baselines) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    // What the simulated cluster measures is known to the digit, and its bounds are the model's.
    if baselines.simulated {
        return diagnostics;
    }
    for entry in &baselines.entries {
        let mut told = |message: String, suggestion: &str| {
            let message = format!("{message}: `{} {}`", entry.metric, entry.key);
            diagnostics.push(Diagnostic::at(&baselines.file, entry.line, 1, message).suggest(suggestion));
        };
        let median = entry.median();
        if entry.state == State::Accepted && entry.spread.is_none() {
            let share = entry.lower.or(entry.upper).map(|bound| bound / median);
            if let Some(share) = share.filter(|share| share.is_finite()) {
                told(
                    format!(
                        "an accepted bound of {share:.3} of the median that no measured spread stands behind"
                    ),
                    "let `harness baseline propose` make it from runs, or write `state = \"provisional\"`",
                );
            }
        }
        if entry.state == State::Provisional
            && entry.runs.is_empty()
            && entry.floor.is_none()
            && entry.better == Better::Higher
        {
            told(
                "a published baseline without a floor".to_owned(),
                "write `floor`, the lowest of three published systems or 60 % of the lowest figure, and `floor_source`",
            );
        }
        if entry.state == State::Accepted && !baselines.is_pending() && entry.accepted_by.is_none() {
            told("accepted by nobody".to_owned(), "name who did, and why: `accepted_by` and `reason`");
        }
        let Some(mad) = bounds::mad(&entry.samples).filter(|_| entry.samples.len() >= 3) else { continue };
        let nearest = entry
            .lower
            .map(|lower| median - lower)
            .into_iter()
            .chain(entry.upper.map(|upper| upper - median))
            .min_by(f64::total_cmp);
        if nearest.is_some_and(|nearest| nearest < NEAREST * DEVIATIONS_OF_MAD * mad) {
            told(
                "a bound nearer than what its own samples vary".to_owned(),
                "healthy nodes will be out of it: let `harness baseline propose` make it",
            );
        }
    }
    diagnostics
}
