//! Formats the numbers of a page: short, integers exact, and empty where nothing was measured.

use recipes::result_table::Quantity;
use std::fmt::Write;

/// Between commas: `1,2.5,,4`.
pub(super) fn packed(values: impl IntoIterator<Item = Option<f64>>, quantity: Quantity) -> String {
    let mut packed = String::new();
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            packed.push(',');
        }
        push(&mut packed, value, decimals(quantity));
    }
    packed
}

/// The first, then by how much each is greater than the one before it; only for whole numbers, which stay exact.
pub(super) fn steps(values: &[f64]) -> Option<String> {
    if !values.iter().all(|value| is_whole(*value)) {
        return None;
    }
    let mut before = 0.0;
    let steps = values.iter().map(|value| Some(value - std::mem::replace(&mut before, *value)));
    Some(packed(steps, Quantity::Plain))
}

/// Up to here every whole number has a double of its own, and the difference of two has one too.
const EXACT: f64 = 4_503_599_627_370_496.0;

fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < EXACT
}

/// Decimal places of a fraction: no measurement is finer than a tenth of a nanosecond or byte.
fn decimals(quantity: Quantity) -> usize {
    match quantity {
        Quantity::Percent => 3,
        Quantity::Nanoseconds | Quantity::BareNanoseconds | Quantity::Bytes | Quantity::BytesPerSecond => 1,
        Quantity::Plain | Quantity::Fraction | Quantity::Verbatim => 6,
    }
}

fn push(packed: &mut String, value: Option<f64>, decimals: usize) {
    // What is no number was not measured.
    let Some(value) = value.filter(|value| value.is_finite()) else { return };
    if is_whole(value) {
        let _ = write!(packed, "{}", value as i64);
        return;
    }
    let digits = format!("{value:.decimals$}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if matches!(digits, "0" | "-0") {
        // What is small is not zero.
        let _ = write!(packed, "{value:.2e}");
    } else {
        packed.push_str(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_and_others_as_fine_as_is_measured() {
        let of = |value: f64, quantity| packed([Some(value)], quantity);
        for quantity in [Quantity::Plain, Quantity::Nanoseconds, Quantity::Percent, Quantity::Bytes] {
            assert_eq!(of(1_234_567_890_123.0, quantity), "1234567890123");
            assert_eq!(of(-7.0, quantity), "-7");
            assert_eq!(of(0.0, quantity), "0");
            assert_eq!(of(-0.0, quantity), "0");
        }
        assert_eq!(of(100.0 / 3.0, Quantity::Percent), "33.333");
        assert_eq!(of(99.9999, Quantity::Percent), "100");
        assert_eq!(of(2.5, Quantity::Nanoseconds), "2.5");
        assert_eq!(of(0.1 + 0.2, Quantity::Plain), "0.3");
        assert_eq!(of(1e300, Quantity::Plain).parse(), Ok(1e300));
    }

    #[test]
    fn what_was_not_measured_is_nothing_and_what_is_small_is_not_zero() {
        let values = [Some(1.0), None, Some(f64::NAN), Some(f64::INFINITY), Some(0.0)];
        assert_eq!(packed(values, Quantity::Percent), "1,,,,0");
        assert_eq!(packed([Some(0.000_04)], Quantity::Percent), "4.00e-5");
        assert_eq!(packed([Some(-0.000_04)], Quantity::Percent), "-4.00e-5");
        assert_eq!(packed([], Quantity::Percent), "");
    }

    #[test]
    fn steps_add_up_to_what_they_were() {
        let values = [5.0, 7.0, 1_700_000_000_000.0, 3.0];
        let steps = steps(&values).expect("whole");
        assert_eq!(steps, "5,2,1699999999993,-1699999999997");
        assert_eq!(super::steps(&[0.5]), None);
        assert_eq!(super::steps(&[f64::NAN]), None);
        assert_eq!(super::steps(&[]), Some(String::new()));
    }
}
