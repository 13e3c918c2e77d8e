//! The figures of a kernel's runs, as summaries of nsys define them: the deviation with n - 1 and 0 for one run, the
//! median as the mean of the two in the middle, quartiles by linear interpolation.

/// In nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    pub count: u64,
    pub total: u128,
    pub mean: f64,
    pub median: f64,
    pub min: u64,
    pub max: u64,
    pub stddev: f64,
    pub q1: f64,
    pub q3: f64,
}

impl Stats {
    /// Nothing of no runs.
    pub fn of(durations: &[u64]) -> Option<Stats> {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let total: u128 = sorted.iter().map(|ns| u128::from(*ns)).sum();
        let n = sorted.len() as f64;
        let mean = total as f64 / n;
        // Over sorted values, so that the order of rows changes no digit.
        let squares: f64 = sorted.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
        let stddev = if sorted.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        Some(Stats {
            count: sorted.len() as u64,
            total,
            mean,
            median: quantile(&sorted, 0.5),
            min,
            max,
            stddev,
            q1: quantile(&sorted, 0.25),
            q3: quantile(&sorted, 0.75),
        })
    }
}

/// Of at least one value.
fn quantile(sorted: &[u64], p: f64) -> f64 {
    let at = (sorted.len() - 1) as f64 * p;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let (a, b) = (sorted[low] as f64, sorted[high] as f64);
    a + (b - a) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_definitions() {
        let stats = Stats::of(&[40, 10, 20, 30]).expect("four runs");
        assert_eq!((stats.count, stats.total, stats.min, stats.max), (4, 100, 10, 40));
        assert_eq!((stats.mean, stats.median, stats.q1, stats.q3), (25.0, 25.0, 17.5, 32.5));
        assert!((stats.stddev - 12.909_944_487_358_056).abs() < 1e-12);
    }

    #[test]
    fn one_run_deviates_by_nothing_and_no_run_has_no_figures() {
        let stats = Stats::of(&[7]).expect("one run");
        assert_eq!((stats.mean, stats.median, stats.stddev, stats.q1), (7.0, 7.0, 0.0, 7.0));
        assert_eq!(Stats::of(&[]), None);
    }
}
