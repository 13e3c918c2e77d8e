//! Where a figure may lie, as exactly as its printed digits show it: figures that follow from one another are compared so,
//! and rounding is never taken for a contradiction.

/// The bounds belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub(crate) fn around(value: f64, half_width: f64) -> Range {
        // The figures themselves carry the error of a few operations on doubles.
        let slack = half_width * (1.0 + 1e-6) + value.abs() * 1e-9;
        Range { low: (value - slack).max(0.0), high: value + slack }
    }

    /// Of a printed number: half a unit of its last digit to either side. Nothing of what is no finite number.
    pub(crate) fn printed(text: &str) -> Option<Range> {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let last = exponent.saturating_sub(i32::try_from(decimals).unwrap_or(i32::MAX));
        Some(Range::around(value, 0.5 * 10_f64.powi(last)))
    }

    pub(crate) fn meets(self, other: Range) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    pub(crate) fn and(self, other: Range) -> Range {
        Range { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// Of figures that are not below 0.
    pub(crate) fn times(self, other: Range) -> Range {
        Range { low: self.low * other.low, high: self.high * other.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_lies_within_half_a_unit_of_its_last_digit() {
        for (text, low, high) in [
            ("10.38", 10.375, 10.385),
            ("101", 100.5, 101.5),
            ("0.000001", 0.000_000_5, 0.000_001_5),
            ("1.5e3", 1450.0, 1550.0),
            ("0", 0.0, 0.5),
        ] {
            let Some(range) = Range::printed(text) else { panic!("{text} is no number") };
            assert!(
                (range.low - low).abs() <= 1e-5 * high && (range.high - high).abs() <= 1e-5 * high,
                "{text}"
            );
        }
        for text in ["", "nan", "inf", "1e999", "1e99999999999", "x"] {
            assert_eq!(Range::printed(text), None, "{text}");
        }
    }
}
