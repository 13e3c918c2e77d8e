//! Calls by operation and class of size, with the time that they took on their threads, which is not the time of the
//! transfer; and with that of their kernels.

use super::messages::{Message, Messages};
use crate::recipe::of_reports::ReportRecipe;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::nccl::Function;
use std::collections::BTreeMap;

/// Borders of classes, ascending; a class has its lower border.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Buckets {
    borders: Vec<(u64, String)>,
}

#[derive(Clone, Default)]
struct Sum {
    count: i64,
    ns: u128,
    least: Option<u64>,
    most: Option<u64>,
    alone: u128,
    kernels: u128,
}

impl Sum {
    fn take(&mut self, message: &Message) {
        let ns = message.call.ns();
        let alone = message.ns();
        self.add(Sum {
            count: 1,
            ns: ns.into(),
            least: Some(ns),
            most: Some(ns),
            alone: alone.is_some().into(),
            kernels: alone.unwrap_or_default().into(),
        });
    }

    fn add(&mut self, more: Sum) {
        self.count += more.count;
        self.ns += more.ns;
        self.least = self.least.into_iter().chain(more.least).min();
        self.most = self.most.max(more.most);
        self.alone += more.alone;
        self.kernels += more.kernels;
    }
}

impl Buckets {
    /// `64K+1M+16M`: binary units, as in nccl-tests.
    pub(super) fn read(text: &str) -> Result<Buckets, String> {
        let mut borders: Vec<(u64, String)> = Vec::new();
        for word in text.split('+') {
            let bytes = bytes(word)
                .ok_or_else(|| format!("has the border `{word}`, which is not a size such as `64K`"))?;
            if borders.last().is_some_and(|(before, _)| *before >= bytes) {
                return Err(format!("has borders that do not ascend: `{text}`"));
            }
            borders.push((bytes, format_size(bytes)));
        }
        Ok(Buckets { borders })
    }

    /// Which class a size is in, from 0.
    pub(super) fn class_of(&self, bytes: u64) -> usize {
        self.borders.partition_point(|(border, _)| *border <= bytes)
    }

    pub(super) fn name(&self, class: usize) -> String {
        let border = |at: usize| self.borders.get(at).map(|(_, shown)| shown.as_str());
        match (class.checked_sub(1).and_then(border), border(class)) {
            (None, Some(upper)) => format!("msg < {upper}"),
            (Some(lower), Some(upper)) => format!("{lower} <= msg < {upper}"),
            (Some(lower), None) => format!("msg >= {lower}"),
            (None, None) => String::new(),
        }
    }

    pub(super) fn result_table(&self, recipe: &ReportRecipe<'static>, messages: &Messages) -> ResultTable {
        let mut of_keys = vec![Sum::default(); messages.keys.len()];
        for message in &messages.all {
            of_keys[message.key as usize].take(message);
        }
        // Sizes that were not recorded are the last class of each operation.
        let mut sums: BTreeMap<(Function, usize), Sum> = BTreeMap::new();
        for (key, sum) in messages.keys.iter().zip(of_keys) {
            let class = key.bytes.map_or(usize::MAX, |bytes| self.class_of(bytes));
            sums.entry((key.function, class)).or_default().add(sum);
        }
        let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
        let whole = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let name = |class: usize| match class {
            usize::MAX => "not recorded".to_owned(),
            class => self.name(class),
        };
        let columns = vec![
            Column::texts("Op", sums.keys().map(|(function, _)| function.name())),
            Column::texts("Bucket", sums.keys().map(|(_, class)| name(*class))),
            Column::integers("Inst", plain, sums.values().map(|sum| sum.count)),
            Column::maybe_integers("Sum", time, sums.values().map(|sum| i64::try_from(sum.ns).ok())),
            Column::decimals("Avg", time, sums.values().map(|sum| sum.ns as f64 / sum.count as f64)),
            Column::maybe_integers("Min", time, sums.values().map(|sum| whole(sum.least))),
            Column::maybe_integers("Max", time, sums.values().map(|sum| whole(sum.most))),
            Column::maybe_decimals(
                "Kernel Avg",
                time,
                sums.values().map(|sum| (sum.alone > 0).then(|| sum.kernels as f64 / sum.alone as f64)),
            ),
        ];
        ResultTable::new(recipe.name, "NCCL Calls by Class of Size", columns)
    }
}

const UNITS: [(char, u32); 3] = [('K', 10), ('M', 20), ('G', 30)];

/// A size such as `64K`, in binary units, as nccl-tests takes it.
pub(super) fn bytes(word: &str) -> Option<u64> {
    let unit = UNITS.iter().find(|(unit, _)| word.ends_with([*unit, unit.to_ascii_lowercase()]));
    let (digits, bits) = match unit {
        Some((_, bits)) => (&word[..word.len() - 1], *bits),
        None => (word, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << bits).filter(|bytes| *bytes > 0)
}

pub(super) fn format_size(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, bits)| bytes.is_multiple_of(1 << bits));
    match unit {
        Some((unit, bits)) => format!("{}{unit}B", bytes >> bits),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_lower_border_and_not_its_upper_one() {
        let buckets = Buckets::read("64K+1M+16M").expect("borders");
        let named = |bytes| buckets.name(buckets.class_of(bytes));
        assert_eq!(named(0), "msg < 64KB");
        assert_eq!(named(65_535), "msg < 64KB");
        assert_eq!(named(65_536), "64KB <= msg < 1MB");
        assert_eq!(named((1 << 20) - 1), "64KB <= msg < 1MB");
        assert_eq!(named(1 << 20), "1MB <= msg < 16MB");
        assert_eq!(named((16 << 20) - 1), "1MB <= msg < 16MB");
        assert_eq!(named(16 << 20), "msg >= 16MB");
        assert_eq!(named(u64::MAX), "msg >= 16MB");
        assert_eq!(Buckets::read("1000").map(|one| one.name(1)), Ok("msg >= 1000B".to_owned()));
    }

    #[test]
    fn borders_that_are_none_are_refused() {
        for text in ["", "64K+", "1M+64K", "1M+1M", "0", "-1K", "64X", "99999999999G"] {
            assert!(Buckets::read(text).is_err(), "{text}");
        }
    }
}
