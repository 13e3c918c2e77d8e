//! Errors of baselines that can be read: bounds without a measurement, and bounds within the noise of their samples.
//! Bounds beyond the hardware limits are reported by `hardware_limits`.

use super::{Baseline, Baselines, State};
use crate::bounds::{self, DEVIATIONS_OF_MAD, Spread};
use crate::diagnostic::Diagnostic;
use metric::unit::Better;

/// Healthy numbers leave bounds nearer than so many deviations every other day.
const NEAREST: f64 = 2.0;

/// So far may a bound lie beyond what its spread allows, as a fraction of the median: the middle may be of other runs.
const BEYOND_SPREAD: f64 = 0.1;

/// Why the bounds of an accepted baseline let pass what its own numbers do not.
fn why_too_wide(entry: &Baseline) -> Option<String> {
    let spread = entry.spread.filter(|_| entry.state == State::Accepted)?;
    let median = entry.median();
    if spread.relative >= 1.0 {
        return Some(format!("accepted with a spread of {:.1e} of the median", spread.relative));
    }
    let measured = Spread { relative: spread.relative, freedom: spread.freedom };
    let allowed = bounds::bounds(median, entry.samples.len() as u32, spread.judged, 0.0, measured);
    let show = |value: f64| entry.unit.show(value);
    if let Some(lower) = entry.lower.filter(|lower| *lower < allowed.lower - BEYOND_SPREAD * median) {
        return Some(format!(
            "`lower` is beyond what `spread` allows: {} < {}",
            show(lower),
            show(allowed.lower)
        ));
    }
    // Of numbers that are usually 0 any bound is far.
    let upper =
        entry.upper.filter(|upper| median > 0.0 && *upper > allowed.upper + BEYOND_SPREAD * median)?;
    Some(format!("`upper` is beyond what `spread` allows: {} > {}", show(upper), show(allowed.upper)))
}

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
        if let Some(message) = entry.pack.is_none().then(|| why_too_wide(entry)).flatten() {
            report(message, "almost any number would pass: compute it with `harness baseline propose`");
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

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::catalogue::Catalogue;

    fn messages(bounds: &str, spread: f64) -> Vec<String> {
        let text = format!(
            "instance = \"p5\"\n[[baseline]]\nmetric = \"nccl.busbw\"\nop = \"all_reduce\"\nsize = \"1GiB\"\nnodes = 1\nranks = 8\n\
             unit = \"GB/s\"\nstate = \"accepted\"\naccepted_by = \"a\"\nreason = \"b\"\nsource = \"c\"\n{bounds}\n\
             spread = {spread:?}\nfreedom = 20\njudged = 100\nsamples = [470, 471, 472, 470, 473]\n"
        );
        let baselines = Baselines::read(&text, "baselines/p5.toml", &Catalogue::built_in());
        lint(&baselines.expect("no error")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn accepted_bounds_that_almost_any_number_meets_are_reported() {
        assert_eq!(messages("lower = 440\nupper = 500", 0.01), [] as [String; 0]);
        for (bounds, spread, why) in [
            ("lower = 0", 0.01, "`lower` is beyond what `spread` allows: 0"),
            ("lower = 1", 0.01, "`lower` is beyond"),
            ("lower = 440\nupper = 900", 0.01, "`upper` is beyond"),
            ("lower = 0", 1e300, "accepted with a spread of"),
        ] {
            let all = messages(bounds, spread);
            assert_eq!(all.len(), 1, "{bounds}: {all:?}");
            assert!(all[0].contains(why), "{bounds}: {all:?}");
        }
    }
}
