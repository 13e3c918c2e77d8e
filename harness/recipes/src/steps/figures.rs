//! How long steps took, and how much they differ.

use super::Step;
use crate::figures::Stats;
use metric::quantile::quantile;
use metric::slope::{Slope, slope};
use serde::{Deserialize, Serialize};

/// Times of whole steps, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Count, total, mean and the like of the times.
    pub stats: Stats,
    /// The deviation as a fraction of the mean; nothing of one step or of steps without time.
    pub cv: Option<f64>,
    /// 5th percentile, by linear interpolation.
    pub p5: f64,
    /// 95th percentile, by linear interpolation.
    pub p95: f64,
    /// Growth of the time per step; `None` with fewer than 3 steps.
    pub slope: Option<Slope>,
}

/// Of whole steps whose end is known; nothing of none. The slope goes by the steps' own numbers where all have one and
/// none twice, else by their order.
pub fn figures(steps: &[&Step]) -> Option<Figures> {
    let whole: Vec<(usize, &&Step)> =
        steps.iter().enumerate().filter(|(_, step)| step.is_whole() && step.has_end).collect();
    let mut times: Vec<u64> = whole.iter().map(|(_, step)| step.ns()).collect();
    let numbers: Option<Vec<u64>> = whole.iter().map(|(_, step)| step.number).collect();
    let numbers = numbers.filter(|numbers| numbers.is_sorted_by(|a, b| a < b));
    let place = |at: usize| numbers.as_ref().map_or(whole[at].0 as f64, |numbers| numbers[at] as f64);
    let points: Vec<(f64, f64)> = times.iter().enumerate().map(|(at, ns)| (place(at), *ns as f64)).collect();
    let slope = slope(&points);
    let stats = Stats::from_values_mut(&mut times)?;
    times.sort_unstable();
    let cv = (stats.count > 1 && stats.mean > 0.0).then(|| stats.stddev / stats.mean);
    let (p5, p95) = (quantile(&times, 0.05)?, quantile(&times, 0.95)?);
    Some(Figures { cv, p5, p95, slope, stats })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(start: i64, ns: i64, alike: Option<f64>) -> Step {
        Step { number: None, start, end: start + ns, alike, has_end: true }
    }

    #[test]
    fn figures_are_of_whole_steps() {
        let steps = [
            step(0, 10, None),
            step(10, 20, Some(1.0)),
            step(30, 9000, Some(0.2)),
            step(9030, 30, Some(0.9)),
        ];
        let figures = figures(&steps.iter().collect::<Vec<_>>()).expect("three");
        assert_eq!((figures.stats.count, figures.stats.median, figures.stats.max), (3, 20.0, 30));
        assert_eq!(figures.cv, Some(0.5));
        assert_eq!((figures.p5, figures.p95), (11.0, 29.0));
    }

    #[test]
    fn the_slope_goes_by_numbers_and_not_by_places_where_steps_have_numbers() {
        let steps: Vec<Step> = [0u64, 1, 2, 13, 14]
            .iter()
            .map(|number| Step { number: Some(*number), ..step(0, 100 + 5 * *number as i64, None) })
            .collect();
        let found = figures(&steps.iter().collect::<Vec<_>>()).expect("five");
        assert_eq!(found.slope.map(|slope| slope.slope), Some(5.0));
    }

    #[test]
    fn no_whole_step_has_no_figures_and_one_has_no_spread() {
        assert_eq!(figures(&[&step(0, 5, Some(0.1))]), None);
        let one = figures(&[&step(0, 5, None)]).expect("one");
        assert_eq!((one.cv, one.slope), (None, None));
    }
}
