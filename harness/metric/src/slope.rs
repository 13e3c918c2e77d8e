//! Whether steps grow slower or faster over a run: the median of the slopes of all pairs (Theil and Sen), which a
//! fourth of the steps being odd ones does not move far, with its interval of 95 % from the variance of Kendall's
//! statistic.

use serde::{Deserialize, Serialize};

/// In nanoseconds per step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// Median over all pairs of steps.
    pub slope: f64,
    /// Between these it lies, 19 times of 20 where steps differ by chance alone.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
}

/// More steps than this are thinned out evenly: the pairs grow with the square of their number.
const MOST: usize = 1500;

/// Of steps by number and time; nothing of fewer than three different numbers.
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let step = points.len().div_ceil(MOST).max(1);
    let points: Vec<(f64, f64)> = points.iter().step_by(step).copied().collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (at, (x, y)) in points.iter().enumerate() {
        for (other_x, other_y) in &points[at + 1..] {
            if other_x != x {
                slopes.push((other_y - y) / (other_x - x));
            }
        }
    }
    if slopes.len() < 3 {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let (n, pairs) = (points.len() as f64, slopes.len() as f64);
    let spread = 1.96 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let place = |at: f64| slopes[(at.max(0.0) as usize).min(slopes.len() - 1)];
    let median = (slopes[(slopes.len() - 1) / 2] + slopes[slopes.len() / 2]) / 2.0;
    let low = place(((pairs - spread) / 2.0).floor());
    let high = place(((pairs + spread) / 2.0).ceil());
    Some(Slope { slope: median, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_its_slope_and_no_uncertainty() {
        let points: Vec<(f64, f64)> = (0..50).map(|x| (f64::from(x), 100.0 + 3.0 * f64::from(x))).collect();
        assert_eq!(slope(&points), Some(Slope { slope: 3.0, low: 3.0, high: 3.0 }));
    }

    #[test]
    fn a_few_wild_steps_do_not_move_it() {
        let mut points: Vec<(f64, f64)> = (0..40).map(|x| (f64::from(x), 1000.0 - f64::from(x))).collect();
        for at in [3, 17, 18, 31] {
            points[at].1 = 90_000.0;
        }
        let found = slope(&points).expect("many");
        assert!((found.slope + 1.0).abs() < 0.2 && found.low <= -1.0 && found.high >= -1.0, "{found:?}");
    }

    #[test]
    fn the_interval_of_steps_that_differ_by_chance_holds_zero() {
        let mut state = 7u64;
        let mut held = 0;
        for _ in 0..200 {
            let points: Vec<(f64, f64)> = (0..30)
                .map(|x| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (f64::from(x), (state >> 40) as f64)
                })
                .collect();
            let found = slope(&points).expect("many");
            held += u32::from(found.low <= 0.0 && found.high >= 0.0);
        }
        assert!((180..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn too_few_steps_have_none_and_very_many_are_thinned() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(slope(&[(4.0, 1.0); 9]), None, "of one number");
        let points: Vec<(f64, f64)> = (0..20_000).map(|x| (f64::from(x), 2.0 * f64::from(x))).collect();
        assert_eq!(slope(&points).map(|found| found.slope), Some(2.0));
    }
}
