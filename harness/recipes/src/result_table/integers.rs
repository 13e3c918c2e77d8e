//! The whole numbers of a column in little room: traces have millions of rows, and in most of their columns few values,
//! or such as lie near to those of the rows around them. The column knows what they count.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Rows of one block: few enough to stay in cache while the next column is made.
pub(crate) const BLOCK: usize = 2048;

/// `None` is a cell without a value.
#[derive(Clone, Default)]
pub struct Integers {
    blocks: Vec<Block>,
}

#[derive(Clone)]
struct Block {
    /// How many rows the column has up to the end of the block.
    end: usize,
    /// How many of them are its own.
    rows: usize,
    numbers: Numbers,
}

/// A code is 0 where there is no value, else by one more than the value lies above the least of its block.
#[derive(Clone)]
enum Numbers {
    Same(Option<i64>),
    Bytes(i64, Box<[u8]>),
    Shorts(i64, Box<[u16]>),
    Words(i64, Box<[u32]>),
    /// Without a code.
    Apart(Box<[Option<i64>]>),
}

impl Numbers {
    fn encode(values: &[Option<i64>]) -> Numbers {
        let (mut least, mut most, mut holes) = (i64::MAX, i64::MIN, 0);
        for value in values {
            match value {
                Some(value) => (least, most) = (least.min(*value), most.max(*value)),
                None => holes += 1,
            }
        }
        if holes == values.len() {
            return Numbers::Same(None);
        }
        let code = |value: &Option<i64>| value.map_or(0, |value| value.wrapping_sub(least) as u64 + 1);
        match most.abs_diff(least) {
            0 if holes == 0 => Numbers::Same(Some(least)),
            0..0xff => Numbers::Bytes(least, values.iter().map(|value| code(value) as u8).collect()),
            0xff..0xffff => Numbers::Shorts(least, values.iter().map(|value| code(value) as u16).collect()),
            0xffff..0xffff_ffff => {
                Numbers::Words(least, values.iter().map(|value| code(value) as u32).collect())
            }
            _ => Numbers::Apart(values.into()),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Option<i64> {
        let of = |least: i64, code: u64| code.checked_sub(1).map(|above| least.wrapping_add(above as i64));
        match self {
            Numbers::Same(value) => *value,
            Numbers::Bytes(least, codes) => of(*least, u64::from(*codes.get(at)?)),
            Numbers::Shorts(least, codes) => of(*least, u64::from(*codes.get(at)?)),
            Numbers::Words(least, codes) => of(*least, u64::from(*codes.get(at)?)),
            Numbers::Apart(values) => *values.get(at)?,
        }
    }
}

impl Integers {
    /// Number of rows, those without a value included.
    pub(crate) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.end)
    }

    /// Nothing beyond the last row too.
    pub fn get(&self, row: usize) -> Option<i64> {
        let block = self.blocks.get(self.blocks.partition_point(|block| block.end <= row))?;
        block.numbers.get(row + block.rows - block.end)
    }

    /// One item per row, `None` where it has no value.
    pub fn iter(&self) -> Iter<'_> {
        Iter { blocks: self.blocks.iter(), block: None, at: 0, left: self.len() }
    }

    /// Puts the rows of another column below.
    pub(crate) fn append(&mut self, more: Integers) {
        let rows = self.len();
        self.blocks.extend(more.blocks.into_iter().map(|block| Block { end: rows + block.end, ..block }));
    }

    fn push(&mut self, values: &[Option<i64>]) {
        let block =
            Block { end: self.len() + values.len(), rows: values.len(), numbers: Numbers::encode(values) };
        self.blocks.push(block);
    }
}

/// As plain numbers: their encoding is chosen again where they are read.
impl Serialize for Integers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'a> Deserialize<'a> for Integers {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Integers, D::Error> {
        Ok(Vec::<Option<i64>>::deserialize(from)?.into_iter().collect())
    }
}

impl FromIterator<Option<i64>> for Integers {
    fn from_iter<I: IntoIterator<Item = Option<i64>>>(values: I) -> Integers {
        let mut values = values.into_iter();
        let mut all = Integers::default();
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.extend(values.by_ref().take(BLOCK));
            if block.is_empty() {
                return all;
            }
            all.push(&block);
            block.clear();
        }
    }
}

/// Columns of the same values are equal, whatever blocks they stand in.
impl PartialEq for Integers {
    fn eq(&self, other: &Integers) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Integers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The values in their order.
pub struct Iter<'a> {
    blocks: std::slice::Iter<'a, Block>,
    block: Option<&'a Block>,
    at: usize,
    left: usize,
}

impl Iterator for Iter<'_> {
    type Item = Option<i64>;

    #[inline]
    fn next(&mut self) -> Option<Option<i64>> {
        while self.block.is_none_or(|block| self.at == block.rows) {
            (self.block, self.at) = (Some(self.blocks.next()?), 0);
        }
        let value = self.block?.numbers.get(self.at);
        (self.at, self.left) = (self.at + 1, self.left - 1);
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_kept(values: &[Option<i64>]) {
        let all: Integers = values.iter().copied().collect();
        assert_eq!(all.len(), values.len());
        assert_eq!(all.iter().collect::<Vec<_>>(), values);
        assert_eq!((0..values.len()).map(|row| all.get(row)).collect::<Vec<_>>(), values);
        assert_eq!(all.get(values.len()), None);
    }

    #[test]
    fn numbers_of_every_width_are_kept_at_the_borders_of_each() {
        is_kept(&[]);
        is_kept(&[None]);
        is_kept(&[Some(i64::MIN), Some(i64::MAX)]);
        is_kept(&[Some(i64::MIN), None, Some(i64::MAX), Some(0)]);
        for width in [8, 16, 32, 63] {
            for off in -2..=2 {
                let most = ((1i128 << width) + off).min(i64::MAX.into()) as i64;
                for least in [0, -1, i64::MIN, i64::MAX - most] {
                    let most = least.wrapping_add(most);
                    is_kept(&[Some(least), Some(most)]);
                    is_kept(&[Some(least), None, Some(most), Some(least)]);
                }
            }
        }
    }

    #[test]
    fn what_is_below_another_column_stands_behind_it_and_equals_what_was_made_at_once() {
        let values = |range: std::ops::Range<i64>| range.map(|n| (n % 7 > 0).then_some(n * n));
        let all: Integers = values(0..3 * BLOCK as i64 + 5).collect();
        let mut parts = Integers::default();
        for (from, to) in [(0, 3), (3, 3), (3, 2 * BLOCK as i64), (2 * BLOCK as i64, 3 * BLOCK as i64 + 5)] {
            parts.append(values(from..to).collect());
        }
        assert_eq!(parts, all);
        assert_eq!(parts.get(BLOCK + 1), all.get(BLOCK + 1));
        assert_eq!(parts.iter().len(), all.len());
        parts.append([None].into_iter().collect());
        assert_ne!(parts, all);
    }

    #[test]
    fn a_million_rows_of_one_value_take_no_room_for_each() {
        let all: Integers = std::iter::repeat_n(Some(7), 1_000_000).collect();
        assert!(all.blocks.iter().all(|block| matches!(block.numbers, Numbers::Same(Some(7)))));
        assert_eq!((all.len(), all.get(999_999)), (1_000_000, Some(7)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_is_put_in_comes_out(
            values in proptest::collection::vec(proptest::option::of(any::<i64>()), 0..50),
            near in proptest::collection::vec(proptest::option::of(-200i64..70_000), 0..5000),
        ) {
            is_kept(&values);
            is_kept(&near);
        }
    }
}
