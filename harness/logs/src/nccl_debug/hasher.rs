//! A quick hash for keys that are small numbers: a log asks its maps several times for each of its calls. What is
//! hashed is bounded in number, so that no choice of keys makes a map slow without end.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Mixed<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mix(u64);

/// An odd number whose bits look drawn: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    /// The upper bits are the mixed ones, and a map looks at both ends.
    fn finish(&self) -> u64 {
        self.0 ^ self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    #[test]
    fn numbers_that_are_near_each_other_are_far_apart_in_both_ends_of_their_hash() {
        let hashes: Vec<u64> =
            (0..10_000_u64).map(|n| BuildHasherDefault::<Mix>::default().hash_one((n, n * 4096))).collect();
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 48).collect();
        assert!(low.len() > 8_000 && high.len() > 8_000, "{} {}", low.len(), high.len());
        let of_bytes = |text: &str| BuildHasherDefault::<Mix>::default().hash_one(text);
        assert_ne!(of_bytes("a:1:2 [0] "), of_bytes("a:1:2 [1] "));
    }
}
