//! The statistics that summaries give of a group, as nsys defines them: deviation with n - 1 and 0 for one value,
//! median as the mean of the two in the middle, quartiles by linear interpolation.

mod bins;
mod gathered;
mod grouped;
mod shape;
mod tally;

pub use bins::Edges;
pub use gathered::{Figure, FigureValue, Gathered, Keeps};
pub use grouped::Grouped;
pub(crate) use shape::modes;
pub use tally::Tally;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// In the unit of the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Number of values, at least one.
    pub count: u64,
    /// Sum of the values.
    pub total: u128,
    /// Arithmetic mean.
    pub mean: f64,
    /// Mean of the two middle values where their number is even.
    pub median: f64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Standard deviation with n - 1; 0 for one value.
    pub stddev: f64,
    /// Lower quartile, by linear interpolation.
    pub q1: f64,
    /// Upper quartile, by linear interpolation.
    pub q3: f64,
}

impl Stats {
    /// Nothing of no values.
    pub fn from_values(values: &[u64]) -> Option<Stats> {
        Stats::from_values_mut(&mut values.to_vec())
    }

    /// The same without a copy. The values are left in another order; the order in which they come changes no digit.
    pub(crate) fn from_values_mut(values: &mut [u64]) -> Option<Stats> {
        let n = values.len();
        let sums = Sums::from_values(values)?;
        let [q1, median, q3] = quartiles(values);
        Some(Stats {
            count: n as u64,
            total: sums.total,
            mean: sums.total as f64 / n as f64,
            median,
            min: sums.min,
            max: sums.max,
            stddev: deviation(values, &sums),
            q1,
            q3,
        })
    }
}

/// From so many values on the work is worth more than one core.
const MANY: usize = 1 << 17;

/// What one pass over the values gives.
#[derive(Clone, Copy)]
struct Sums {
    min: u64,
    max: u64,
    total: u128,
    /// Of the squares; nothing where it does not fit.
    squares: Option<u128>,
}

impl Sums {
    fn from_values(values: &[u64]) -> Option<Sums> {
        values.par_chunks(MANY).filter_map(Sums::from_chunk).reduce_with(Sums::and)
    }

    fn from_chunk(values: &[u64]) -> Option<Sums> {
        let (min, max) = (*values.iter().min()?, *values.iter().max()?);
        let total = values.iter().map(|value| u128::from(*value)).sum();
        let squares = if max < 1 << 32 {
            Some(values.iter().map(|value| u128::from(value * value)).sum())
        } else {
            let square = |value: &u64| u128::from(*value) * u128::from(*value);
            values.iter().try_fold(0u128, |sum, value| sum.checked_add(square(value)))
        };
        Some(Sums { min, max, total, squares })
    }

    fn and(self, other: Sums) -> Sums {
        Sums {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            total: self.total + other.total,
            squares: self.squares.zip(other.squares).and_then(|(a, b)| a.checked_add(b)),
        }
    }
}

/// With n - 1, from exact sums wherever these fit, so that equal values have none.
fn deviation(values: &mut [u64], sums: &Sums) -> f64 {
    let n = values.len() as u128;
    if n < 2 {
        return 0.0;
    }
    let exact = sums
        .squares
        .and_then(|squares| squares.checked_mul(n))
        .zip(sums.total.checked_mul(sums.total))
        .map(|(scaled, square)| (scaled - square) as f64 / (n * (n - 1)) as f64);
    let variance = exact.unwrap_or_else(|| {
        // Values of months, in nanoseconds. Sorted, so that their order changes no digit here either.
        values.sort_unstable();
        let mean = sums.total as f64 / n as f64;
        values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / (n - 1) as f64
    });
    variance.sqrt()
}

/// Where a quantile lies among `n` sorted values: at `(n - 1) * part / 4`, so many quarters behind the value of a place.
fn place(n: usize, part: usize) -> (usize, usize) {
    let last = n - 1;
    (last / 4 * part + last % 4 * part / 4, last % 4 * part % 4)
}

fn between(at: u64, next: u64, quarters: usize) -> f64 {
    at as f64 + (next - at) as f64 * quarters as f64 / 4.0
}

/// The three of at least one value: the middle first, then each side by itself.
fn quartiles(values: &mut [u64]) -> [f64; 3] {
    let n = values.len();
    let ((low, low_rest), (middle, middle_rest), (high, high_rest)) = (place(n, 1), place(n, 2), place(n, 3));
    let (left, at, right) = values.select_nth_unstable(middle);
    let at = *at;
    let next = right.iter().min().copied().unwrap_or(at);
    let median = between(at, next, middle_rest);
    let mut lower = move || {
        if low == middle {
            return between(at, next, low_rest);
        }
        let (_, value, rest) = left.select_nth_unstable(low);
        between(*value, rest.iter().min().copied().unwrap_or(at), low_rest)
    };
    let mut upper = move || {
        if high == middle {
            return between(at, next, high_rest);
        }
        let (_, value, rest) = right.select_nth_unstable(high - middle - 1);
        between(*value, rest.iter().min().copied().unwrap_or(*value), high_rest)
    };
    let (q1, q3) = if n >= MANY { rayon::join(lower, upper) } else { (lower(), upper()) };
    [q1, median, q3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_definitions() {
        let stats = Stats::from_values(&[40, 10, 20, 30]).expect("four values");
        assert_eq!((stats.count, stats.total, stats.min, stats.max), (4, 100, 10, 40));
        assert_eq!((stats.mean, stats.median, stats.q1, stats.q3), (25.0, 25.0, 17.5, 32.5));
        assert!((stats.stddev - 12.909_944_487_358_056).abs() < 1e-12);
    }

    #[test]
    fn published_deviations_are_with_one_less() {
        let rounded =
            |values: &[u64]| (Stats::from_values(values).expect("values").stddev * 10.0).round() / 10.0;
        assert_eq!(rounded(&[7468, 7849]), 269.4);
        assert_eq!(rounded(&[1466, 3583]), 1496.9);
        assert_eq!(rounded(&[334_351, 336_623, 491_302]), 89_967.0);
    }

    #[test]
    fn one_value_has_no_deviation_and_none_has_no_figures() {
        let stats = Stats::from_values(&[7]).expect("one value");
        assert_eq!((stats.stddev, stats.median, stats.q1, stats.q3), (0.0, 7.0, 7.0, 7.0));
        assert_eq!(Stats::from_values(&[]), None);
    }

    #[test]
    fn values_too_large_to_square_exactly_still_have_figures() {
        let stats = Stats::from_values(&[u64::MAX, 0, u64::MAX, 0]).expect("values");
        assert_eq!(stats.total, 2 * u128::from(u64::MAX));
        assert!((stats.stddev / u64::MAX as f64 - (1.0f64 / 3.0).sqrt()).abs() < 1e-12, "{}", stats.stddev);
        assert_eq!(Stats::from_values(&[u64::MAX; 3]).expect("values").stddev, 0.0);
    }

    proptest::proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in proptest::collection::vec(0u64..1000, 1..50)) {
            let stats = Stats::from_values(&values).expect("values");
            values.sort_unstable();
            for (part, seen) in [(0.25, stats.q1), (0.5, stats.median), (0.75, stats.q3)] {
                let at = (values.len() - 1) as f64 * part;
                let (low, high) = (values[at.floor() as usize] as f64, values[at.ceil() as usize] as f64);
                let expected = low + (high - low) * (at - at.floor());
                proptest::prop_assert!((seen - expected).abs() < 1e-9, "{seen} {expected}");
            }
        }
    }
}
