//! The spread of one metric, pooled over its keys: few runs of one key show little of its noise, many
//! keys together say much. How far a key is drawn to the others hangs on how alike they are, and on how many runs it
//! has itself: the pool is worth its own degrees of freedom, and fades as those of the key grow.

use super::Spread;
use statrs::function::gamma::digamma;

/// Fewer keys than this do not show how alike they are.
pub(super) const FEWEST_KEYS: usize = 5;

/// From so many runs on, a key may vary less than the others of its metric do.
pub(super) const ENOUGH_ALONE: u32 = 20;

/// The squared error of a variance is this times its square, over n: of logarithms of variances of three numbers each,
/// whose tails are heavy. More numbers have less.
const EXCESS: f64 = 4.4;

/// What one key measured of its own spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeySpread {
    /// The standard deviation of what is left without outliers, as a fraction of the middle.
    pub relative: f64,
    /// Degrees of freedom; fractional where two spreads were added.
    pub freedom: f64,
}

/// What is known of the spread of any key of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// Squared and relative.
    variance: f64,
    freedom: f64,
    /// All degrees of freedom that went in: no key can know its spread better.
    total: f64,
}

impl KeySpread {
    /// Of independent numbers; nothing where there are fewer than two, or their middle is zero.
    pub fn from_values(values: &[f64]) -> Option<KeySpread> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let relative = (squares / (n - 1.0)).sqrt() / mean.abs();
        (values.len() > 1 && relative.is_finite()).then_some(KeySpread { relative, freedom: n - 1.0 })
    }

    /// Two spreads that come on top of each other, such as from run to run and from node to node, with the degrees of
    /// freedom of their sum (Welch and Satterthwaite).
    pub(crate) fn and(self, other: KeySpread) -> KeySpread {
        let (a, b) = (self.relative.powi(2), other.relative.powi(2));
        let freedom = (a + b).powi(2) / (a * a / self.freedom + b * b / other.freedom);
        let freedom = if freedom.is_finite() { freedom } else { self.freedom + other.freedom };
        KeySpread { relative: (a + b).sqrt(), freedom }
    }
}

impl Pool {
    /// From the keys of one metric: the variance that they scatter about, and how many degrees of freedom it is worth,
    /// by the mean and the variance of the logarithms of their variances (Smyth 2004). `least` keeps a key whose few
    /// numbers happen to be equal from having no logarithm.
    pub fn fit(keys: &[KeySpread], least: f64) -> Option<Pool> {
        Pool::fit_unless_alike(keys, least, 0.0)
    }

    /// The same, where keys count as alike until they differ by so many standard errors more than few numbers do.
    pub(super) fn fit_unless_alike(keys: &[KeySpread], least: f64, errors: f64) -> Option<Pool> {
        let keys: Vec<&KeySpread> = keys.iter().filter(|key| key.freedom >= 1.0).collect();
        if keys.len() < FEWEST_KEYS {
            return None;
        }
        let n = keys.len() as f64;
        let total: f64 = keys.iter().map(|key| key.freedom).sum();
        let (mean, scatter) = logarithms(keys.iter().copied(), least);
        let own = keys.iter().map(|key| trigamma(key.freedom / 2.0)).sum::<f64>() / n;
        let more = scatter - own * (1.0 + errors * (EXCESS / n).sqrt());
        let (variance, freedom) = if more > 0.0 {
            let half = inverse_trigamma(more);
            ((mean + digamma(half) - half.ln()).exp(), 2.0 * half)
        } else {
            // They differ by no more than few numbers do.
            let weighed = keys.iter().map(|key| key.freedom * key.relative.powi(2)).sum::<f64>();
            (weighed / total, total)
        };
        Some(Pool { variance, freedom: freedom.min(total), total })
    }

    /// The spread of a key that measured `own` itself in `n` runs, or nothing yet. Few runs may lie close by chance, and
    /// in one mode of several: with few, no key is believed to vary less than the others do.
    pub fn spread(&self, own: Option<KeySpread>, n: u32) -> Spread {
        let (own, freedom) = own.map_or((0.0, 0.0), |own| (own.relative.powi(2), own.freedom));
        let sum = self.freedom + freedom;
        let variance = (self.freedom * self.variance + freedom * own) / sum;
        let least = if n < ENOUGH_ALONE { self.variance } else { 0.0 };
        Spread { relative: variance.max(least).sqrt(), freedom: sum.min(self.total) }
    }
}

/// Mean and variance of the logarithms of the keys' variances, each without what few numbers draw it down by.
pub(super) fn logarithms<'a>(keys: impl Iterator<Item = &'a KeySpread>, least: f64) -> (f64, f64) {
    let centred: Vec<f64> = keys
        .map(|key| {
            let half = key.freedom / 2.0;
            2.0 * key.relative.max(least).ln() - digamma(half) + half.ln()
        })
        .collect();
    let n = centred.len() as f64;
    let mean = centred.iter().sum::<f64>() / n;
    (mean, centred.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// The second derivative of the logarithm of the gamma function: shifted up until its series holds.
pub(super) fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = square * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0)));
    sum + 1.0 / x + square / 2.0 + series / x
}

/// By halving, on a logarithmic scale: it falls as its argument grows.
pub(super) fn inverse_trigamma(y: f64) -> f64 {
    let (mut low, mut high) = (1e-3, 1e7);
    for _ in 0..200 {
        let middle = f64::sqrt(low * high);
        if trigamma(middle) > y { low = middle } else { high = middle }
    }
    f64::sqrt(low * high)
}
