//! Random numbers of generated fleets: the same from the same seed.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a fault costs.
const FAULTS: (f64, f64) = (0.2, 0.9);

/// One stream of them.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    pub(crate) fn new(seed: u64, judged: u32, n: u32) -> Draws {
        let mut key = [0; 32];
        for (lane, bytes) in key.chunks_exact_mut(8).zip([seed, u64::from(judged), u64::from(n), 7]) {
            lane.copy_from_slice(&bytes.to_le_bytes());
        }
        Draws(ChaCha8Rng::from_seed(key))
    }

    pub(crate) fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    /// Lognormal about 1, with its tails.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        let (a, b) = (1.0 - self.fraction(), self.fraction());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        (deviation * normal).exp()
    }

    pub(crate) fn fault(&mut self) -> f64 {
        1.0 - self.between(FAULTS.0, FAULTS.1)
    }
}
