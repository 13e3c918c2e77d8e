//! A number against a constant that the suite states: at least, at most, equal.

use super::{JudgedBound, Measured, support};
use model::artefact::{JudgedBy, PlannedAssertion, Status};

pub(super) fn judge(assertion: &PlannedAssertion, measured: &Measured) -> Option<JudgedBound> {
    let bound = &assertion.bound;
    let (lower, upper) = match bound.equals {
        Some(value) => (Some(value), Some(value)),
        None => (bound.at_least, bound.at_most),
    };
    if lower.is_none() && upper.is_none() {
        return None;
    }
    let unit = assertion.unit;
    let range = match (bound.equals, lower, upper) {
        (Some(value), ..) => unit.show(value),
        (_, Some(lower), Some(upper)) => format!("{} to {}", unit.show(lower), unit.show(upper)),
        (_, Some(lower), None) => format!("at least {}", unit.show(lower)),
        (_, None, Some(upper)) => format!("at most {}", unit.show(upper)),
        (_, None, None) => return None,
    };
    let mut comparison = format!("expected {range}");
    let Some(spread) = bound.spread else {
        let mut judged = within(measured, lower, upper, comparison)?;
        support::weigh(&mut judged, None);
        return Some(judged);
    };
    let Some(allows) = spread.allows else {
        let mut judged = within(measured, lower, upper, comparison)?;
        let deviation = spread.relative * judged.observed.abs();
        support::weigh(&mut judged, Some(deviation));
        return Some(judged);
    };
    // A comparison within one run: what its two numbers vary by is added to the bound, for all that are judged at once.
    comparison.push_str(&format!(
        ", widened by {} for a spread of {} % over {} numbers",
        unit.show(allows),
        spread.relative * 100.0,
        spread.judged
    ));
    let lower = lower.map(|lower| (lower - allows).max(0.0));
    within(measured, lower, upper.map(|upper| upper + allows), comparison)
}

/// All values against two bounds; the one furthest out is the one shown.
pub(super) fn within(
    measured: &Measured,
    lower: Option<f64>,
    upper: Option<f64>,
    comparison: String,
) -> Option<JudgedBound> {
    let distance = |value: f64| {
        let below = lower.map_or(f64::NEG_INFINITY, |lower| lower - value);
        let above = upper.map_or(f64::NEG_INFINITY, |upper| value - upper);
        below.max(above)
    };
    let (_, number) =
        measured.numbers().max_by(|a, b| distance(a.1.value).total_cmp(&distance(b.1.value)))?;
    let mut odd: Vec<String> = measured
        .values()
        .filter(|(name, value)| !name.is_empty() && distance(*value) > 0.0)
        .map(|(name, _)| name.to_owned())
        .collect();
    odd.dedup();
    let status = if distance(number.value) > 0.0 { Status::Fail } else { Status::Pass };
    let (observed, runs) = (number.value, number.runs.clone());
    Some(JudgedBound {
        status,
        observed,
        runs,
        lower,
        upper,
        odd,
        comparison,
        next: None,
        by: JudgedBy::Limit,
    })
}
