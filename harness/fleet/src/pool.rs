//! How far healthy numbers scatter: the deviations of all nodes from their own past, counted in a histogram. A new deviation
//! is ranked among them, so that no distribution is assumed.

use serde::{Deserialize, Serialize};

/// Bins of a tenth of a standard deviation, from -20 to 20.
const BINS: usize = 400;
/// Counts are halved beyond this, so that what is old is forgotten.
const MOST: u32 = 1 << 16;
/// Of the pooled variance, in steps of its mean.
const SLOW: f64 = 512.0;
/// Deviations beyond so many standard deviations count as that many in the variance.
const CLIP: f64 = 4.0;
/// No number is taken to repeat itself better than this, as a logarithm.
const LEAST_SCALE: f64 = 0.002;

/// Deviations of one test, over all nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pool {
    /// By bin; empty at first.
    bins: Vec<u32>,
    total: u32,
    variance: f64,
    /// Of `variance`.
    seen: u32,
    /// By how much the nodes of the last round with enough others differed from their pasts together.
    pub(crate) shift: f64,
}

impl Pool {
    /// What was written makes sense.
    pub(crate) fn is_sound(&self) -> bool {
        (self.bins.is_empty() || self.bins.len() == BINS)
            && self.bins.iter().map(|count| u64::from(*count)).sum::<u64>() == u64::from(self.total)
            && self.variance.is_finite()
            && self.variance >= 0.0
            && self.shift.is_finite()
    }

    /// One standard deviation of a part with so many own deviations, whose squares add up to `squares`: its own as far as
    /// there are many, else that of all.
    pub(crate) fn scale(&self, n: u32, squares: f64) -> f64 {
        const PRIOR: f64 = 16.0;
        let own = f64::from(n.saturating_sub(1));
        ((PRIOR * self.variance + squares) / (PRIOR + own)).sqrt().max(LEAST_SCALE)
    }

    /// Takes the deviation of a healthy part for the pooled scale.
    pub(crate) fn widen(&mut self, deviation: f64) {
        let clip = (CLIP * self.variance.sqrt()).max(LEAST_SCALE);
        let bounded = if self.seen < 64 { deviation } else { deviation.clamp(-clip, clip) };
        self.seen = self.seen.saturating_add(1);
        let weight = 1.0 / f64::from(self.seen).min(SLOW);
        self.variance += weight * (bounded * bounded - self.variance);
    }

    /// How many of the deviations so far were at most this one, as a fraction that is never 0.
    pub(crate) fn rank(&self, deviation: f64) -> f64 {
        let at = bin(deviation);
        let below: u32 = match at < BINS / 2 {
            true => self.bins.iter().take(at + 1).sum(),
            false => self.total - self.bins.iter().skip(at + 1).sum::<u32>(),
        };
        (1.0 + f64::from(below)) / (1.0 + f64::from(self.total))
    }

    pub(crate) fn add(&mut self, deviation: f64) {
        if self.bins.is_empty() {
            self.bins = vec![0; BINS];
        }
        if self.total >= MOST {
            self.bins.iter_mut().for_each(|count| *count /= 2);
            self.total = self.bins.iter().sum();
        }
        if let Some(count) = self.bins.get_mut(bin(deviation)) {
            *count += 1;
            self.total += 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u32 {
        self.total
    }

    /// Whether a rank says something.
    pub(crate) fn is_ready(&self) -> bool {
        self.total >= 100
    }
}

fn bin(deviation: f64) -> usize {
    ((deviation * 10.0).floor() + (BINS / 2) as f64).clamp(0.0, (BINS - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_a_fraction_of_all_deviations_and_never_0() {
        let mut pool = Pool::default();
        assert!((pool.rank(-5.0) - 1.0).abs() < 1e-12, "nothing is known");
        for at in 0..1000 {
            pool.add(f64::from(at) / 100.0 - 5.0);
        }
        assert!(pool.is_sound() && pool.is_ready());
        assert!((pool.rank(0.0) - 0.5).abs() < 0.02, "{}", pool.rank(0.0));
        assert!((pool.rank(-20.0) - 1.0 / 1001.0).abs() < 1e-9);
        assert!((pool.rank(f64::INFINITY) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_old_is_forgotten_and_the_total_is_bounded() {
        let mut pool = Pool::default();
        (0..MOST * 3).for_each(|_| pool.add(0.0));
        assert!(pool.total <= MOST && pool.is_sound());
    }

    #[test]
    fn the_scale_of_a_part_is_its_own_where_it_was_measured_often() {
        let mut pool = Pool::default();
        (0..200).for_each(|at| pool.widen(if at % 2 == 0 { 0.01 } else { -0.01 }));
        assert!((pool.scale(1, 0.0) - 0.01).abs() < 1e-3);
        let noisy = pool.scale(1000, 999.0 * 0.05 * 0.05);
        assert!((noisy - 0.05).abs() < 2e-3, "{noisy}");
    }
}
