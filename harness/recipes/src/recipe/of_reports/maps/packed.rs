//! Spans and samples of a report in few bytes, with nothing lost: maps keep them of every report until the last one is
//! read and the window is known. The caller knows what they are of.

use crate::spans::Spans;
use serde::{Deserialize, Serialize};

/// Whole numbers, seven bits to a byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Packed(Vec<u8>);

impl Packed {
    fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let mut bytes = self.0.iter();
        std::iter::from_fn(move || {
            let (mut number, mut shift) = (0u64, 0);
            for byte in bytes.by_ref() {
                number |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return Some(number);
                }
                shift += 7;
            }
            None
        })
    }
}

/// Small numbers of either sign are small ones without.
fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A set of moments: of each span its distance from the one before and its length, together some five bytes where
/// kernels follow one another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedSpans(Packed);

impl PackedSpans {
    pub(super) fn pack(spans: &Spans) -> PackedSpans {
        let (mut packed, mut last) = (Packed::default(), 0i64);
        for (start, end) in spans.as_slice() {
            packed.push(folded(start.wrapping_sub(last)));
            packed.push(end.wrapping_sub(*start) as u64);
            last = *end;
        }
        packed.0.shrink_to_fit();
        PackedSpans(packed)
    }

    /// Later by so much.
    pub(super) fn shifted(&self, by: i64) -> Spans {
        let (mut numbers, mut last) = (self.0.numbers(), 0i64);
        Spans::union(std::iter::from_fn(|| {
            let start = last.wrapping_add(unfolded(numbers.next()?));
            let end = start.wrapping_add(numbers.next()? as i64);
            last = end;
            Some((start.saturating_add(by), end.saturating_add(by)))
        }))
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.0.len()
    }
}

/// One value, over an interval or of a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub start: i64,
    pub end: i64,
    pub value: f64,
}

/// Samples in the order of time; among those of one time in the order of their values, so that sums are the same
/// whatever the order in which rows stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedSamples(Packed);

/// Whole numbers below this are held as such, all else bit by bit.
const WHOLE: f64 = (1u64 << 52) as f64;
const BITS: u64 = 1;

impl PackedSamples {
    pub(super) fn pack(mut samples: Vec<Sample>) -> PackedSamples {
        samples.sort_by(|a, b| (a.start, a.end).cmp(&(b.start, b.end)).then(a.value.total_cmp(&b.value)));
        let (mut packed, mut last) = (Packed::default(), 0i64);
        for Sample { start, end, value } in samples {
            packed.push(folded(start.wrapping_sub(last)));
            packed.push(folded(end.wrapping_sub(start)));
            if value.fract() == 0.0 && value.abs() < WHOLE {
                packed.push(folded(value as i64) << 1);
            } else {
                packed.push(BITS);
                packed.push(value.to_bits());
            }
            last = start;
        }
        packed.0.shrink_to_fit();
        PackedSamples(packed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        let (mut numbers, mut last) = (self.0.numbers(), 0i64);
        std::iter::from_fn(move || {
            let start = last.wrapping_add(unfolded(numbers.next()?));
            let end = start.wrapping_add(unfolded(numbers.next()?));
            last = start;
            let value = match numbers.next()? {
                BITS => f64::from_bits(numbers.next()?),
                whole => unfolded(whole >> 1) as f64,
            };
            Some(Sample { start, end, value })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_come_out_as_they_went_in(spans in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..20)) {
            let spans = Spans::union(spans);
            prop_assert_eq!(PackedSpans::pack(&spans).shifted(0), spans);
        }

        #[test]
        fn samples_come_out_in_the_order_of_time(
            samples in proptest::collection::vec((any::<i64>(), any::<i64>(), any::<f64>()), 0..20),
            whole in proptest::collection::vec((-50i64..50, 0i64..9, -300i32..300), 0..20),
        ) {
            let whole = whole.iter().map(|(start, ns, value)| (*start, start + ns, f64::from(*value)));
            let samples: Vec<Sample> = samples.iter().copied().chain(whole)
                .map(|(start, end, value)| Sample { start, end, value }).collect();
            let out: Vec<Sample> = PackedSamples::pack(samples.clone()).iter().collect();
            let key = |one: &Sample| (one.start, one.end, (one.value + 0.0).to_bits());
            let sorted = |mut all: Vec<(i64, i64, u64)>| { all.sort_unstable(); all };
            prop_assert_eq!(
                sorted(out.iter().map(key).collect()),
                sorted(samples.iter().map(key).collect())
            );
            prop_assert!(out.windows(2).all(|pair| (pair[0].start, pair[0].end) <= (pair[1].start, pair[1].end)));
        }
    }

    #[test]
    fn a_report_of_a_hundred_thousand_kernels_is_kept_in_half_a_megabyte() {
        // Kernels of 20 us to 1 ms, a few microseconds apart.
        let mut at = 5_000_000_000i64;
        let spans = Spans::union((0..100_000i64).map(|kernel| {
            let start = at + 2_000 + kernel % 7 * 900;
            at = start + 20_000 + kernel * 7_919 % 980_000;
            (start, at)
        }));
        let packed = PackedSpans::pack(&spans);
        assert_eq!(packed.shifted(0), spans);
        assert!(packed.bytes() < 550_000, "{}", packed.bytes());
    }
}
