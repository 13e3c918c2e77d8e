//! Seeded noise. What a job is drawn depends on the seed, the case and the job's name alone, never on the order of
//! requests or on the run id: so the same seed gives the same bytes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub struct Noise(ChaCha8Rng);

impl Noise {
    /// A stream of its own for each list of words.
    pub fn of(seed: u64, words: &[&str]) -> Noise {
        // FNV-1a: stable over platforms and versions, which the standard library's hasher does not promise.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        seed.to_le_bytes().into_iter().for_each(&mut eat);
        for word in words {
            word.bytes().for_each(&mut eat);
            eat(0xff);
        }
        Noise(ChaCha8Rng::seed_from_u64(hash))
    }

    /// Between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.random_range(0..limit.max(1))
    }

    /// A factor around 1, lognormal: rates scatter by fractions of themselves.
    pub fn factor(&mut self, sd: f64) -> f64 {
        // Twelve uniforms make a good enough bell, and no logarithm of zero.
        let bell: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (bell * sd).exp()
    }
}
