//! Distinct values with their counts: what summaries over many reports keep, so that medians and deviations are of all
//! values together, in whatever order reports were read. It grows with distinct values, not with rows.

use super::Stats;
use serde::{Deserialize, Serialize};

/// Distinct values with their counts, to which those of other reports are added.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Each value once, ascending, with its count.
    counted: Vec<(u64, u64)>,
    /// What is not counted in yet: ascending runs, one behind the other.
    pending: Vec<(u64, u64)>,
}

impl Tally {
    /// Counts each distinct value.
    pub(crate) fn from_values(values: &[u64]) -> Tally {
        let mut values = values.to_vec();
        values.sort_unstable();
        let counted = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        Tally { counted, pending: Vec::new() }
    }

    /// Values with how often each came, in any order.
    pub(crate) fn weighed(values: Vec<(u64, u64)>) -> Tally {
        let mut tally = Tally { counted: Vec::new(), pending: values };
        tally.count();
        tally
    }

    /// Takes in what another one has.
    pub(crate) fn add(&mut self, other: Tally) {
        self.pending.extend(other.counted);
        self.pending.extend(other.pending);
        // To wait for as many as are counted already keeps the whole work in proportion to the rows.
        if self.pending.len() >= self.counted.len() {
            self.count();
        }
    }

    /// Counts in what waits.
    fn count(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.counted);
        all.append(&mut self.pending);
        // This sort sees that runs are in order already, and merges them.
        all.sort();
        all.dedup_by(|next, before| {
            let same = next.0 == before.0;
            before.1 += if same { next.1 } else { 0 };
            same
        });
        all.shrink_to_fit();
        self.counted = all;
        self.pending = Vec::new();
    }

    /// Each value once, ascending, with how often it came.
    pub(crate) fn counted(&mut self) -> &[(u64, u64)] {
        self.count();
        &self.counted
    }

    /// The same figures as of the values themselves; nothing of none.
    pub(crate) fn stats(&mut self) -> Option<Stats> {
        self.count();
        let (min, max) = (self.counted.first()?.0, self.counted.last()?.0);
        let n: u64 = self.counted.iter().map(|(_, count)| count).sum();
        let total: u128 =
            self.counted.iter().map(|(value, count)| u128::from(*value) * u128::from(*count)).sum();
        Some(Stats {
            count: n,
            total,
            mean: total as f64 / n as f64,
            median: self.quantile(n, 1, 2),
            min,
            max,
            stddev: self.deviation(n, total),
            q1: self.quantile(n, 1, 4),
            q3: self.quantile(n, 3, 4),
        })
    }

    fn deviation(&self, n: u64, total: u128) -> f64 {
        let wide = u128::from(n);
        if n < 2 {
            return 0.0;
        }
        let squares = self.counted.iter().try_fold(0u128, |sum, (value, count)| {
            let square = u128::from(*value) * u128::from(*value);
            square.checked_mul(u128::from(*count)).and_then(|square| sum.checked_add(square))
        });
        let exact = squares
            .and_then(|squares| squares.checked_mul(wide))
            .zip(total.checked_mul(total))
            .map(|(scaled, square)| (scaled - square) as f64 / (wide * (wide - 1)) as f64);
        let variance = exact.unwrap_or_else(|| {
            let mean = total as f64 / n as f64;
            let squares =
                self.counted.iter().map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64);
            squares.sum::<f64>() / (n - 1) as f64
        });
        variance.sqrt()
    }

    fn quantile(&self, n: u64, part: u64, of: u64) -> f64 {
        let last = n - 1;
        let (low, rest) = (last / of * part + last % of * part / of, last % of * part % of);
        let (mut seen, mut values) = (0, self.counted.iter());
        while let Some((value, count)) = values.next() {
            seen += count;
            if seen > low {
                let next =
                    if seen > low + 1 { *value } else { values.next().map_or(*value, |(next, _)| *next) };
                let step = if rest > 0 { (next - value) as f64 * rest as f64 / of as f64 } else { 0.0 };
                return *value as f64 + step;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_figures_are_those_of_all_values_together_in_whatever_parts_they_come(
            parts in proptest::collection::vec(proptest::collection::vec(0u64..200, 0..3000), 1..8)
        ) {
            let mut tally = Tally::default();
            for part in &parts {
                tally.add(Tally::from_values(part));
            }
            proptest::prop_assert_eq!(tally.stats(), Stats::from_values(&parts.concat()));
        }
    }

    #[test]
    fn values_too_large_to_square_exactly_still_have_figures() {
        let mut tally = Tally::from_values(&[u64::MAX, 0, u64::MAX, 0]);
        let stats = tally.stats().expect("values");
        assert!((stats.stddev / u64::MAX as f64 - (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Tally::default().stats(), None);
    }
}
