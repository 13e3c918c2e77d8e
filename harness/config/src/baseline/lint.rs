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

/// The same of an entry with the help of a pack, whose middle is that of two sites.
const BEYOND_SPREAD_WITH_PACK: f64 = 0.25;

/// A lower bound that was set by hand below this fraction of the median is as good as none.
const LEAST_SHARE: f64 = 0.5;

const NOT_COMPUTED: &str = "almost any number would pass: compute it with `harness baseline propose`";

/// What a run warns of, whose files need not have been checked: accepted bounds that almost any number meets.
pub fn too_wide(baselines: &Baselines) -> Vec<Diagnostic> {
    let entries = baselines.entries.iter().filter(|_| !baselines.simulated);
    let wide = entries.filter_map(|entry| {
        let why = why_too_wide(entry).or_else(|| why_no_bound(entry))?;
        let message = format!("{why}: `{} {}`", entry.metric, entry.key);
        Some(Diagnostic::at(&baselines.file, entry.line, 1, message).suggest(NOT_COMPUTED))
    });
    wide.collect()
}

fn why_no_bound(entry: &Baseline) -> Option<String> {
    let is_by_hand = entry.state == State::Accepted && entry.spread.is_none();
    let lower = entry.lower.filter(|_| is_by_hand && entry.better == Better::Higher)?;
    let share = lower / entry.median();
    (share < LEAST_SHARE)
        .then(|| format!("accepted `lower` at {share:.3} of the median without a measured spread"))
}

/// Why the bounds of an accepted baseline let pass what its own numbers do not.
fn why_too_wide(entry: &Baseline) -> Option<String> {
    let spread = entry.spread.filter(|_| entry.state == State::Accepted)?;
    let median = entry.median();
    if spread.relative >= 1.0 {
        return Some(format!("accepted with a spread of {:.1e} of the median", spread.relative));
    }
    let measured = Spread { relative: spread.relative, freedom: spread.freedom };
    let (worth, beyond) = match &entry.pack {
        Some(pack) => (pack.worth as u32, BEYOND_SPREAD_WITH_PACK * median),
        None => (entry.samples.len() as u32, BEYOND_SPREAD * median),
    };
    let allowed = bounds::bounds(median, worth, spread.judged, 0.0, measured);
    let show = |value: f64| entry.unit.show(value);
    if let Some(lower) = entry.lower.filter(|lower| *lower < allowed.lower - beyond) {
        return Some(format!(
            "`lower` is beyond what `spread` allows: {} < {}",
            show(lower),
            show(allowed.lower)
        ));
    }
    // Of numbers that are usually 0 any bound is far.
    let upper = entry.upper.filter(|upper| median > 0.0 && *upper > allowed.upper + beyond)?;
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
        if let Some(message) = why_too_wide(entry) {
            report(message, NOT_COMPUTED);
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

    fn read(keys: &str) -> Baselines {
        let text = format!(
            "instance = \"p5\"\n[[baseline]]\nmetric = \"nccl.busbw\"\nop = \"all_reduce\"\nsize = \"1GiB\"\nnodes = 1\nranks = 8\n\
             unit = \"GB/s\"\nstate = \"accepted\"\naccepted_by = \"a\"\nreason = \"b\"\nsource = \"c\"\n{keys}\n\
             samples = [470, 471, 472, 470, 473]\n"
        );
        let baselines = Baselines::read(&text, "baselines/p5.toml", &Catalogue::built_in());
        baselines.expect("no error")
    }

    fn messages(bounds: &str, spread: f64) -> Vec<String> {
        let baselines = read(&format!("{bounds}\nspread = {spread:?}\nfreedom = 20\njudged = 100"));
        assert_eq!(too_wide(&baselines), lint(&baselines), "a run warns of what is reported");
        lint(&baselines).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_run_warns_of_bounds_that_were_set_by_hand_far_below_what_was_measured() {
        let messages =
            |keys: &str| -> Vec<String> { too_wide(&read(keys)).iter().map(ToString::to_string).collect() };
        assert_eq!(messages("lower = 400"), [] as [String; 0]);
        let all = messages("lower = 0");
        assert!(all.len() == 1 && all[0].contains("accepted `lower` at 0.000 of the median"), "{all:?}");
        assert!(all[0].starts_with("baselines/p5.toml:2:1: "), "{all:?}");
    }

    #[test]
    fn accepted_bounds_that_almost_any_number_meets_are_reported() {
        assert_eq!(messages("lower = 440\nupper = 500", 0.01), [] as [String; 0]);
        let with_pack = "pack = \"6e392c79\"\npack_worth = 7.5\nlower = 380\nupper = 540";
        assert_eq!(messages(with_pack, 0.01), [] as [String; 0]);
        for (bounds, spread, why) in [
            ("lower = 0", 0.01, "`lower` is beyond what `spread` allows: 0"),
            ("lower = 1", 0.01, "`lower` is beyond"),
            ("lower = 440\nupper = 900", 0.01, "`upper` is beyond"),
            ("lower = 0", 1e300, "accepted with a spread of"),
            ("pack = \"6e392c79\"\npack_worth = 7.5\nlower = 0", 0.01, "`lower` is beyond"),
        ] {
            let all = messages(bounds, spread);
            assert_eq!(all.len(), 1, "{bounds}: {all:?}");
            assert!(all[0].contains(why), "{bounds}: {all:?}");
        }
    }
}
