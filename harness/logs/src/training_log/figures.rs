//! Statistics of a series of values: median, variation, confidence interval, and outliers.

use metric::slope::{Slope, slope};
use metric::warmup;
use serde::Serialize;

/// Of the values behind the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Finite values behind the warm-up.
    pub n: usize,
    /// In the unit of the values.
    pub mean: f64,
    /// In the unit of the values.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The deviation as a fraction of the mean; none for one value.
    pub cv: Option<f64>,
    /// In which the median of further values lies 19 times of 20; none of fewer than six, which are too few.
    pub interval: Option<(f64, f64)>,
    /// Change per step, with its own interval; nothing of fewer than six.
    pub slope: Option<(f64, f64, f64)>,
    /// So many of the first were left out, because they took longer than the later ones.
    pub warm_up: usize,
    /// Steps whose value is farther from the median than five times the usual deviation, and than 5 %.
    pub outliers: Vec<(u64, f64)>,
}

/// Of steps and their values, in order; nothing of none. What is not finite counts for no figure.
pub fn figures(points: &[(u64, f64)], has_warm_up: bool) -> Option<Figures> {
    let points: Vec<(u64, f64)> = points.iter().copied().filter(|(_, value)| value.is_finite()).collect();
    let warm_up = if has_warm_up { warm_up(&points) } else { 0 };
    let points = &points[warm_up..];
    let mut sorted: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len();
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let median = middle(&sorted);
    let deviation =
        (sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1).max(1) as f64).sqrt();
    let mut away: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
    away.sort_by(f64::total_cmp);
    let border = (5.0 * OF_NORMAL * middle(&away)).max(0.05 * median.abs());
    let outliers = points.iter().copied().filter(|(_, value)| (value - median).abs() > border).collect();
    let line: Vec<(f64, f64)> = points.iter().map(|(step, value)| (*step as f64, *value)).collect();
    let is_enough = n >= LEAST;
    Some(Figures {
        n,
        mean,
        median,
        min,
        max,
        cv: (n > 1 && mean != 0.0).then(|| deviation / mean.abs()),
        interval: interval(&sorted),
        slope: slope(&line).filter(|_| is_enough).map(|Slope { slope, low, high }| (slope, low, high)),
        warm_up,
        outliers,
    })
}

/// Fewer values give neither an interval nor a slope.
const LEAST: usize = 6;

/// The median distance from the median is this part of the deviation, where values are spread normally: one in so many.
const OF_NORMAL: f64 = 1.4826;

/// Values are taken for times, of which the first may be long.
fn warm_up(points: &[(u64, f64)]) -> usize {
    let as_ns = |value: f64| (value * 1e9).clamp(0.0, u64::MAX as f64) as u64;
    let times: Vec<u64> = points.iter().map(|(_, value)| as_ns(*value)).collect();
    warmup::found(&times).unwrap_or(0)
}

fn middle(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// Between two of the values themselves: how many of them lie below a median is drawn like coins, whatever they are
/// spread like.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    let below = match n {
        ..LEAST => return None,
        // Where the sum of coins is as good as normal.
        201.. => (n as f64 / 2.0 - 1.96 * (n as f64).sqrt() / 2.0).floor() as usize,
        _ => {
            let mut chance = 0.5_f64.powi(n as i32);
            let mut sum = 0.0;
            let mut below = 0;
            while sum + chance <= 0.025 {
                sum += chance;
                chance *= (n - below) as f64 / (below + 1) as f64;
                below += 1;
            }
            below
        }
    };
    Some((sorted[below.saturating_sub(1)], sorted[n - below.max(1)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64]) -> Vec<(u64, f64)> {
        values.iter().enumerate().map(|(at, value)| (at as u64 + 1, *value)).collect()
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_the_tables() {
        // Order statistics of the 95 % interval of a median, from tables: 1 to 6 of 6, 2 to 9 of 10, 6 to 15 of 20, 40
        // to 61 of 100.
        for (n, low, high) in [(6, 1, 6), (10, 2, 9), (20, 6, 15), (100, 40, 61)] {
            let sorted: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(interval(&sorted), Some((f64::from(low), f64::from(high))), "of {n}");
        }
        assert_eq!(interval(&[1.0; 5]), None);
    }

    #[test]
    fn both_ways_to_the_interval_meet() {
        let sorted = |n: u32| (1..=n).map(f64::from).collect::<Vec<f64>>();
        let (low, high) = interval(&sorted(200)).expect("many");
        let (next_low, next_high) = interval(&sorted(202)).expect("many");
        assert!(
            (low - next_low).abs() <= 2.0 && (high - next_high).abs() <= 3.0,
            "{low} {high} {next_low} {next_high}"
        );
    }

    #[test]
    fn a_warm_up_is_left_out_and_an_odd_step_is_named() {
        let mut values = vec![9.0, 2.0];
        values.extend((0..30).map(|at| 1.0 + 0.001 * f64::from(at % 3)));
        values[20] = 1.5;
        let figures = figures(&row(&values), true).expect("many");
        assert_eq!((figures.warm_up, figures.n), (2, 30));
        assert_eq!(figures.outliers, [(21, 1.5)]);
        assert!((figures.median - 1.001).abs() < 1e-12, "{figures:?}");
    }

    #[test]
    fn what_is_not_finite_counts_for_no_figure_and_nothing_has_none() {
        let found = figures(&row(&[1.0, f64::NAN, 3.0]), false).expect("two");
        assert_eq!((found.n, found.mean, found.interval, found.slope), (2, 2.0, None, None));
        assert_eq!(figures(&row(&[f64::NAN]), false), None);
        assert_eq!(figures(&[], true), None);
        assert_eq!(figures(&row(&[5.0]), true).and_then(|figures| figures.cv), None);
    }

    #[test]
    fn a_drift_has_a_slope() {
        let values: Vec<f64> = (0..50).map(|at| 1.0 + 0.01 * f64::from(at)).collect();
        let (slope, low, high) =
            figures(&row(&values), false).and_then(|figures| figures.slope).expect("many");
        assert!((slope - 0.01).abs() < 1e-9 && low > 0.0 && high < 0.02, "{slope} {low} {high}");
    }
}
