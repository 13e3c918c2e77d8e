//! Damage: some random changes of one seed. The same case of a reader is the same bytes on every machine.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Numbers that readers stumble over.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "-nan",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "0x7f",
    "00",
    "1.",
    "1e-320",
];
/// What separates, opens and closes.
const BYTES: &[u8] = b"\0\n\r\t\x1b \"'\\[]{}()<>|,;:=#-+.$%&/~\x7f\xc3\xff";
/// No input grows by more than this.
const GROWTH: usize = 64 << 10;

pub(crate) struct Mutation {
    random: ChaCha8Rng,
}

pub(crate) type Seeds = Vec<(String, Vec<u8>)>;

impl Mutation {
    pub(crate) fn new(reader: &str, case: u64) -> Mutation {
        let name = reader.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Mutation { random: ChaCha8Rng::seed_from_u64(name ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    pub(crate) fn mutated(mut self, seed: &[u8], all: &Seeds, is_text: bool) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        // Half of them have one change only, which a careful reader sees if anybody can.
        let changes = if self.random.random_bool(0.5) { 1 } else { self.random.random_range(2..8) };
        for _ in 0..changes {
            match self.random.random_range(0..if is_text { 12 } else { 7 }) {
                0 => self.flip(&mut bytes),
                1 => self.replace(&mut bytes),
                2 => self.cut_out(&mut bytes),
                3 => self.double(&mut bytes),
                4 => self.end_early(&mut bytes),
                5 => self.splice(&mut bytes, all),
                6 => self.insert(&mut bytes),
                7 => self.number(&mut bytes),
                8 | 9 => self.digit(&mut bytes),
                10 => self.swap_lines(&mut bytes),
                _ => self.drop_line(&mut bytes),
            }
        }
        bytes.truncate(seed.len() + GROWTH);
        bytes
    }

    fn at(&mut self, bytes: &[u8]) -> usize {
        self.random.random_range(0..bytes.len().max(1))
    }

    fn range(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let begin = self.at(bytes);
        let most = if self.random.random_bool(0.8) { 16 } else { 2048 };
        begin..(begin + self.random.random_range(1..=most)).min(bytes.len()).max(begin)
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        let (at, bit) = (self.at(bytes), self.random.random_range(0..8));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn replace(&mut self, bytes: &mut [u8]) {
        let (at, with) = (self.at(bytes), BYTES[self.random.random_range(0..BYTES.len())]);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
    }

    fn cut_out(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes);
        if !bytes.is_empty() {
            bytes.drain(range);
        }
    }

    fn double(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes);
        let again = bytes.get(range.clone()).unwrap_or_default().to_vec();
        bytes.splice(range.end..range.end, again);
    }

    fn end_early(&mut self, bytes: &mut Vec<u8>) {
        let at = self.at(bytes);
        bytes.truncate(at);
    }

    fn splice(&mut self, bytes: &mut Vec<u8>, all: &Seeds) {
        let other = &all[self.random.random_range(0..all.len())].1;
        let (to, from) = (self.range(bytes), self.range(other));
        if to.end <= bytes.len() && from.end <= other.len() {
            bytes.splice(to, other[from].iter().copied());
        }
    }

    fn insert(&mut self, bytes: &mut Vec<u8>) {
        let at = self.at(bytes).min(bytes.len());
        let times = if self.random.random_bool(0.9) { 1 } else { self.random.random_range(1..4096) };
        let byte = if self.random.random_bool(0.5) {
            BYTES[self.random.random_range(0..BYTES.len())]
        } else {
            (self.random.next_u32() & 0xff) as u8
        };
        bytes.splice(at..at, std::iter::repeat_n(byte, times));
    }

    /// Another number in the place of one that stands there.
    fn number(&mut self, bytes: &mut Vec<u8>) {
        let at = self.at(bytes);
        let Some(begin) = bytes.iter().skip(at).position(u8::is_ascii_digit).map(|more| at + more) else {
            return;
        };
        let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let end =
            bytes.iter().skip(begin).position(|byte| !is_part(byte)).map_or(bytes.len(), |more| begin + more);
        let with = NUMBERS[self.random.random_range(0..NUMBERS.len())];
        bytes.splice(begin..end, with.bytes());
    }

    fn digit(&mut self, bytes: &mut [u8]) {
        let at = self.at(bytes);
        let with = b'0' + self.random.random_range(0..10) as u8;
        if let Some(digit) = bytes.iter_mut().skip(at).find(|byte| byte.is_ascii_digit()) {
            *digit = with;
        }
    }

    fn swap_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() > 1 {
            let (one, other) =
                (self.random.random_range(0..lines.len()), self.random.random_range(0..lines.len()));
            lines.swap(one, other);
            *bytes = lines.concat();
        }
    }

    fn drop_line(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() > 1 {
            lines.remove(self.random.random_range(0..lines.len()));
            *bytes = lines.concat();
        }
    }
}
