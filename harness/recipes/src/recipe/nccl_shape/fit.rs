//! The robust line of latency and bandwidth through a sweep: time = latency + bytes x slope. The caller chooses the
//! sizes and judges the distances.

/// Fewer points than this lie on some line whatever they are.
pub(crate) const FEWEST: usize = 4;
/// Lines are tried through at most this many points: a sweep in small steps has a thousand.
const ENDS: usize = 48;

/// Time over bytes, as `FittedLine::through` fits it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FittedLine {
    /// Microseconds at zero bytes; never negative.
    pub latency_us: f64,
    /// The slope; above zero.
    pub us_per_byte: f64,
}

impl FittedLine {
    /// The line whose relative distances to all points are least in sum: one size that is far off does not draw it.
    /// Neither latency nor slope is below nothing. Points are bytes and microseconds.
    pub(crate) fn through(points: &[(u64, f64)]) -> Option<FittedLine> {
        if points.len() < FEWEST {
            return None;
        }
        let step = points.len().div_ceil(ENDS);
        let ends: Vec<(f64, f64)> = points
            .iter()
            .step_by(step)
            .chain(points.last())
            .map(|(bytes, us)| (*bytes as f64, *us))
            .collect();
        let through_origin =
            ends.iter().map(|(bytes, us)| FittedLine { latency_us: 0.0, us_per_byte: us / bytes });
        let pairs = ends.iter().enumerate().flat_map(|(at, a)| ends[at + 1..].iter().map(move |b| (a, b)));
        let through_two = pairs.filter(|(a, b)| b.0 > a.0).map(|(a, b)| {
            let us_per_byte = (b.1 - a.1) / (b.0 - a.0);
            FittedLine { latency_us: a.1 - us_per_byte * a.0, us_per_byte }
        });
        through_origin
            .chain(through_two)
            .filter(|line| line.latency_us >= 0.0 && line.us_per_byte > 0.0 && line.us_per_byte.is_finite())
            .min_by(|a, b| a.off(points).total_cmp(&b.off(points)))
    }

    /// Predicted microseconds for this many bytes.
    pub(crate) fn us(&self, bytes: u64) -> f64 {
        self.latency_us + self.us_per_byte * bytes as f64
    }

    /// How far a time lies from the line, as a fraction of what the line says.
    pub(crate) fn distance(&self, bytes: u64, us: f64) -> f64 {
        (us / self.us(bytes) - 1.0).abs()
    }

    fn off(&self, points: &[(u64, f64)]) -> f64 {
        points.iter().map(|(bytes, us)| self.distance(*bytes, *us)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(us: impl Fn(u64) -> f64) -> Vec<(u64, f64)> {
        (26..34).map(|power| (1u64 << power, us(1 << power))).collect()
    }

    #[test]
    fn the_fit_finds_latency_and_slope() {
        let line = FittedLine::through(&sweep(|bytes| 120.0 + bytes as f64 * 0.004)).expect("a line");
        assert!(
            (line.latency_us - 120.0).abs() < 1e-6 && (line.us_per_byte - 0.004).abs() < 1e-12,
            "{line:?}"
        );
    }

    #[test]
    fn the_fit_ignores_an_outlier() {
        let mut points = sweep(|bytes| 120.0 + bytes as f64 * 0.004);
        points[5].1 *= 2.0;
        let line = FittedLine::through(&points).expect("a line");
        assert!((line.us_per_byte - 0.004).abs() < 1e-12, "{line:?}");
        assert!((line.distance(points[5].0, points[5].1) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn latency_and_slope_are_never_negative() {
        // The bandwidth falls with the size: the line through it would begin below nothing.
        let line = FittedLine::through(&sweep(|bytes| (bytes as f64).powf(1.1))).expect("a line");
        assert!(line.latency_us >= 0.0 && line.us_per_byte > 0.0, "{line:?}");
        assert!(FittedLine::through(&sweep(|_| 5.0)).is_some_and(|line| line.us_per_byte > 0.0));
        assert_eq!(FittedLine::through(&sweep(|bytes| bytes as f64)[..FEWEST - 1]), None);
    }

    #[test]
    fn a_sweep_of_a_thousand_sizes_has_a_fit() {
        let points: Vec<(u64, f64)> =
            (1..=1000u64).map(|n| (n << 26, 50.0 + (n << 26) as f64 * 0.01)).collect();
        let line = FittedLine::through(&points).expect("a line");
        assert!((line.us_per_byte - 0.01).abs() < 1e-9, "{line:?}");
    }
}
