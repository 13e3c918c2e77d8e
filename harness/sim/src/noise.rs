//! Numbers that look measured and are the same for the same seed: every random draw of the simulated cluster starts here.
//! What the draws are used for is described where they are used.

use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A stream of draws that depends on the seed and on `words` alone: never on a run's id, nor on the order of jobs.
pub fn stream(seed: u64, words: &[&str]) -> Noise {
    let mut key = [0; 32];
    for (lane, bytes) in key.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&digest(seed ^ (lane as u64) << 56, words).to_le_bytes());
    }
    Noise(ChaCha8Rng::from_seed(key))
}

/// A stream of random draws; see `stream`.
pub struct Noise(ChaCha8Rng);

impl Noise {
    /// A stream of its own that depends on this one's next draw, which this one has drawn anyway: it stays as it was.
    pub(crate) fn fork(&self) -> Noise {
        let mut copy = Noise(self.0.clone());
        stream(copy.whole(), &["fork"])
    }

    /// Any 64-bit number.
    pub fn whole(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From 0 up to, and without, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.whole() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` up to, and without, `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    /// A factor near 1, lognormal, without a limit on how far it may lie from it.
    pub(crate) fn unbounded_factor(&mut self, deviation: f64) -> f64 {
        (deviation * self.normal()).exp()
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.fraction(), self.fraction());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// A factor near 1, lognormal. Draws beyond three deviations are cut off, so that no unlucky seed makes a healthy
    /// part look broken.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        (deviation * self.normal().clamp(-3.0, 3.0)).exp()
    }
}

/// A number made of the seed and the words.
pub fn digest(seed: u64, words: &[&str]) -> u64 {
    // FNV-1a with the seed as its start, then a finish that spreads the last bytes over all bits.
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for word in words {
        for byte in word.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_give_the_same_draws_and_others_give_others() {
        let draws = |seed, words: &[&str]| {
            let mut noise = stream(seed, words);
            (0..4).map(|_| noise.whole()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, &["a", "b"]), draws(1, &["a", "b"]));
        assert_ne!(draws(1, &["a", "b"]), draws(2, &["a", "b"]));
        assert_ne!(draws(1, &["a", "b"]), draws(1, &["ab", ""]));
    }

    #[test]
    fn factors_lie_round_one_and_never_far_from_it() {
        let mut noise = stream(7, &["factors"]);
        let all: Vec<f64> = (0..4000).map(|_| noise.factor(0.01)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 1.0).abs() < 0.001, "{mean}");
        assert!(all.iter().all(|factor| (0.97..=1.031).contains(factor)));
    }
}
