//! What comparable runs before measured of a number: a small line with this run at its end, and their least and most.

use metric::unit::Unit;
use recipes::result_table::escaped;

/// Of the drawing, in points.
const WIDE: f64 = 66.0;
const HIGH: f64 = 14.0;
/// What the height stands for at least, as a fraction of the value: noise looks like noise.
const LEAST_SPAN: f64 = 0.05;

/// The cell of one number; `earlier` has the oldest first.
pub(super) fn cell(earlier: &[f64], observed: Option<f64>, unit: Unit) -> String {
    if earlier.is_empty() {
        return String::new();
    }
    let (low, high) = range(earlier);
    let text = match low == high {
        true => unit.show(low),
        false => format!("{} to {}", unit.show(low), unit.show(high)),
    };
    format!("{}<span class=\"of\">{} (n = {})</span>", line(earlier, observed), escaped(&text), earlier.len())
}

fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

fn line(earlier: &[f64], observed: Option<f64>) -> String {
    let observed = observed.filter(|value| value.is_finite());
    let all: Vec<f64> = earlier.iter().copied().chain(observed).collect();
    let (low, high) = range(&all);
    let middle = f64::midpoint(low, high);
    let span = (high - low).max(middle.abs() * LEAST_SPAN);
    if all.len() < 2 || !span.is_finite() || span <= 0.0 {
        return String::new();
    }
    let x = |at: usize| 2.0 + at as f64 * (WIDE - 4.0) / (all.len() - 1) as f64;
    let y = |value: f64| HIGH / 2.0 - (value - middle) / span * (HIGH - 4.0);
    let mut path = String::new();
    for (at, value) in all.iter().enumerate() {
        let step = if at == 0 { 'M' } else { 'L' };
        path.push_str(&format!("{step}{:.0} {:.0}", x(at), y(*value)));
    }
    let own = observed
        .map(|value| format!("<circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"2\"/>", x(all.len() - 1), y(value)))
        .unwrap_or_default();
    format!(
        "<svg class=\"past\" viewBox=\"0 0 {WIDE} {HIGH}\" aria-hidden=\"true\"><path d=\"{path}\"/>{own}</svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_numbers_are_a_line_with_this_one_at_its_end() {
        let cell = cell(&[12.0, 11.0], Some(10.0), Unit::GigabytesPerSecond);
        assert!(
            cell.contains("<path d=\"M2 2L33 7L64 12\"/><circle cx=\"64\" cy=\"12\" r=\"2\"/>"),
            "{cell}"
        );
        assert!(cell.ends_with("<span class=\"of\">11.00 GB/s to 12.00 GB/s (n = 2)</span>"), "{cell}");
    }

    #[test]
    fn without_earlier_numbers_there_is_nothing_and_noise_is_no_cliff() {
        assert_eq!(cell(&[], Some(1.0), Unit::GigabytesPerSecond), "");
        let flat = cell(&[12.0, 12.001], Some(12.0), Unit::GigabytesPerSecond);
        assert!(flat.contains("M2 7L33 7L64 7"), "{flat}");
        // A number that was not measured now has no point of its own, and one alone no line.
        assert!(!cell(&[12.0, 11.0], None, Unit::GigabytesPerSecond).contains("circle"));
        assert!(!cell(&[12.0], None, Unit::GigabytesPerSecond).contains("svg"));
        assert!(!cell(&[0.0], Some(0.0), Unit::Count).contains("svg"));
        assert!(!cell(&[f64::MAX], Some(-f64::MAX), Unit::GigabytesPerSecond).contains("NaN"));
    }
}
