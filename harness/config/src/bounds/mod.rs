//! How far a new number may lie from those measured before, so that healthy parts are red in at most one suite of a
//! hundred. `baseline` defines baselines, and `judge` what a number outside its bounds means.

mod foreign;
mod measured;
mod outliers;
mod pool;
mod student;

pub use foreign::{Foreign, Helped, Residual, SharedKey};
pub use measured::{Measured, spread};
pub use outliers::{DEVIATIONS_OF_MAD, Sorted, kept, mad, median};
pub use pool::{KeySpread, Pool};

/// Of a hundred suites of healthy parts, at most one may be red, however many numbers each of them judges.
pub(crate) const RED_SUITES: f64 = 0.01;

/// How much the numbers of one key vary, as a fraction of their middle, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// One standard deviation, as a fraction of the middle.
    pub relative: f64,
    /// Degrees of freedom: infinite where it is declared rather than measured.
    pub freedom: f64,
}

/// The two sides of what a new number may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// At least 0.
    pub lower: f64,
    /// Infinite where the spread is unknown.
    pub upper: f64,
}

/// k(n, m): how many spreads a single new number may lie from the middle of `n` independent runs, where `m` numbers are
/// judged at once. The quantile is shared out between the two sides and over all judged numbers; the root adds how
/// badly the middle of few runs is known.
pub fn factor(n: u32, judged: u32, freedom: f64) -> f64 {
    let outside = RED_SUITES / (2.0 * f64::from(judged.max(1)));
    student::upper_quantile(outside, freedom) * (1.0 + variance_of_median(n)).sqrt()
}

/// Prediction bounds for one new number: the half-width is the larger of what the floor and what the measured spread
/// ask for. The floor is declared and not estimated, so that no few samples make it wider.
pub fn bounds(middle: f64, n: u32, judged: u32, floor: f64, spread: Spread) -> Bounds {
    let measured = match spread.freedom > 0.0 {
        true => factor(n, judged, spread.freedom) * spread.relative,
        // Nothing is known of how much it varies: nothing is out of bounds.
        false => f64::INFINITY,
    };
    let half = measured.max(factor(n, judged, f64::INFINITY) * floor);
    // The upper side on a logarithmic scale, for a bandwidth's factors multiply; the wider of the two on either side.
    Bounds { lower: (middle * (1.0 - half)).max(0.0), upper: middle * half.exp() }
}

/// Of two estimates of the spread of one key, the one that allows less where so many numbers are judged at once: the
/// other is larger because less is known of it.
pub fn narrower(a: Spread, b: Spread, judged: u32) -> Spread {
    let width = |spread: Spread| match spread.freedom > 0.0 {
        true => factor(1, judged, spread.freedom) * spread.relative,
        false => f64::INFINITY,
    };
    if width(b) < width(a) { b } else { a }
}

/// How far two runs may lie apart, as a fraction, where a run varies by what is declared: 99 of 100 do not.
pub fn two_runs(floor: f64) -> f64 {
    student::upper_quantile(RED_SUITES / 2.0, f64::INFINITY) * std::f64::consts::SQRT_2 * floor
}

/// How far the middles of two sets of numbers may lie apart, as a fraction, where so many pairs are compared at once:
/// each side with how many numbers it has and how much they vary. Infinite where that is not known.
pub fn between(a: (u32, Spread), b: (u32, Spread), pairs: u32) -> f64 {
    let part = |(n, spread): (u32, Spread)| spread.relative.powi(2) * variance_of_median(n);
    let (of_a, of_b) = (part(a), part(b));
    if !(a.1.freedom > 0.0 && b.1.freedom > 0.0) {
        return f64::INFINITY;
    }
    let freedom = (of_a + of_b).powi(2) / (of_a.powi(2) / a.1.freedom + of_b.powi(2) / b.1.freedom);
    let freedom = if freedom.is_finite() { freedom } else { a.1.freedom + b.1.freedom };
    let outside = RED_SUITES / (2.0 * f64::from(pairs.max(1)));
    student::upper_quantile(outside, freedom) * (of_a + of_b).sqrt()
}

/// How much the bounds for so many numbers are to be widened where more are judged at once.
pub fn widening(n: u32, freedom: f64, stated: u32, judged: u32) -> f64 {
    if judged <= stated { 1.0 } else { factor(n, judged, freedom) / factor(n, stated, freedom) }
}

/// One-sided, 95 %: how far the truth may lie on the near side of an estimate that has so much spread.
const SUPPORT: f64 = 1.645;

/// Whether the near end of an estimate's interval lies beyond the bound too, and else how many numbers more it takes for
/// that if they come out alike.
pub fn supports(beyond: f64, spread: f64, repeats: u32) -> Result<(), u32> {
    if beyond <= 0.0 {
        return Err(0);
    }
    let needed = (SUPPORT * spread / beyond).powi(2).ceil();
    if needed <= f64::from(repeats) { Ok(()) } else { Err((needed - f64::from(repeats)).min(1e6) as u32) }
}

/// One-sided, 95 %: how far the truth may lie on the near side of the median of so many runs, whose deviation is known by
/// themselves alone.
pub fn half_interval(deviation: f64, runs: u32) -> f64 {
    let freedom = f64::from(runs.saturating_sub(1));
    student::upper_quantile(0.05, freedom) * deviation * variance_of_median(runs).sqrt()
}

/// How much further one new number may lie from the median of `n` others than from a middle that is known exactly.
pub fn against_median_of(n: u32) -> f64 {
    (1.0 + variance_of_median(n)).sqrt()
}

/// Of the median of n normal numbers, in units of one number's variance: exact for one, within 2 % for any more.
fn variance_of_median(n: u32) -> f64 {
    use std::f64::consts::FRAC_PI_2;
    FRAC_PI_2 / (f64::from(n.max(1)) + FRAC_PI_2 - 1.0)
}

#[cfg(test)]
mod tests;
