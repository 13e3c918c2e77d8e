//! A number against a constant that the suite states: at least, at most, equal.

use super::{JudgedBound, Measured};
use crate::artefact::{PlannedAssertion, Status};

pub fn judge(assertion: &PlannedAssertion, measured: &Measured) -> Option<JudgedBound> {
    let bound = &assertion.bound;
    let (lower, upper) = match bound.equals {
        Some(value) => (Some(value), Some(value)),
        None => (bound.at_least, bound.at_most),
    };
    if lower.is_none() && upper.is_none() {
        return None;
    }
    let unit = assertion.unit;
    let expected = match (bound.equals, lower, upper) {
        (Some(value), ..) => unit.show(value),
        (_, Some(lower), Some(upper)) => format!("{} to {}", unit.show(lower), unit.show(upper)),
        (_, Some(lower), None) => format!("at least {}", unit.show(lower)),
        (_, None, Some(upper)) => format!("at most {}", unit.show(upper)),
        (_, None, None) => return None,
    };
    within(measured, lower, upper, expected)
}

/// All values against two bounds; the one furthest out is the one shown.
pub fn within(
    measured: &Measured,
    lower: Option<f64>,
    upper: Option<f64>,
    expected: String,
) -> Option<JudgedBound> {
    let distance = |value: f64| {
        let below = lower.map_or(f64::NEG_INFINITY, |lower| lower - value);
        let above = upper.map_or(f64::NEG_INFINITY, |upper| value - upper);
        below.max(above)
    };
    let (_, observed) = measured.values().max_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))?;
    let mut odd: Vec<String> = measured
        .values()
        .filter(|(name, value)| !name.is_empty() && distance(*value) > 0.0)
        .map(|(name, _)| name.to_owned())
        .collect();
    odd.dedup();
    let status = if distance(observed) > 0.0 { Status::Fail } else { Status::Pass };
    Some(JudgedBound { status, observed, lower, upper, odd, expected, next: None })
}
