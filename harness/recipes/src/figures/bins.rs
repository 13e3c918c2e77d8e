//! Histogram bins: edges at whole numbers, linear or logarithmic, and the number of values between two edges.

/// No chart and no table has more of them.
pub(crate) const MOST_BINS: u64 = 1000;

/// Ascending; a value on an edge is of the bin above it, one on the last edge of the last bin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges(Vec<u64>);

impl Edges {
    /// As far apart as whole numbers allow. Never more bins than there are distances of one.
    pub(crate) fn linear(least: u64, most: u64, bins: u64) -> Edges {
        let length = most - least.min(most);
        let bins = bins.clamp(1, MOST_BINS);
        let edge = |at: u64| least + (u128::from(length) * u128::from(at) / u128::from(bins)) as u64;
        Edges::new((0..=bins).map(edge), least)
    }

    /// Each the same multiple of the one before it, as near as whole numbers come to that. What is zero has no logarithm
    /// and a bin of its own, from 0 to 1.
    pub(crate) fn log(least: u64, most: u64, bins: u64) -> Edges {
        let bins = bins.clamp(1, MOST_BINS);
        let (from, to) = (least.max(1), most.max(1));
        let edge = |at: u64| match at {
            0 => from,
            at if at == bins => to,
            at => {
                let part = at as f64 / bins as f64;
                let edge = (from as f64) * (to as f64 / from as f64).powf(part);
                (edge.round() as u64).clamp(from, to)
            }
        };
        let zero = (least == 0).then_some(0);
        Edges::new(zero.into_iter().chain((0..=bins).map(edge)), least)
    }

    fn new(edges: impl Iterator<Item = u64>, least: u64) -> Edges {
        let mut edges: Vec<u64> = edges.collect();
        edges.dedup();
        if edges.len() < 2 {
            // One value alone: a bin needs two edges.
            edges = if least == u64::MAX { vec![least - 1, least] } else { vec![least, least + 1] };
        }
        Edges(edges)
    }

    /// The edges, one more than there are bins.
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The two edges of each bin.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// How many of these values, each with how often it came, lie in each bin. What lies outside is in none.
    pub(crate) fn count(&self, values: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
        let mut counts = vec![0; self.0.len() - 1];
        let last = counts.len() - 1;
        for (value, times) in values {
            let above = self.0.partition_point(|edge| *edge <= value);
            let bin = match above.checked_sub(1) {
                Some(bin) if bin > last => (Some(&value) == self.0.last()).then_some(last),
                bin => bin,
            };
            if let Some(bin) = bin {
                counts[bin] += times;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_even_by_distance_or_by_multiple() {
        assert_eq!(Edges::linear(10, 30, 4).as_slice(), [10, 15, 20, 25, 30]);
        assert_eq!(Edges::log(10, 100_000, 4).as_slice(), [10, 100, 1000, 10_000, 100_000]);
        assert_eq!(Edges::log(0, 1000, 3).as_slice(), [0, 1, 10, 100, 1000]);
    }

    #[test]
    fn there_are_no_more_bins_than_whole_numbers_and_always_one() {
        assert_eq!(Edges::linear(5, 7, 100).as_slice(), [5, 6, 7]);
        for edges in [Edges::linear(5, 5, 10), Edges::log(5, 5, 10)] {
            assert_eq!(edges.as_slice(), [5, 6]);
            assert_eq!(edges.count([(5, 3)]), [3]);
        }
        assert_eq!(Edges::log(0, 0, 10).count([(0, 2)]), [2]);
        assert_eq!(Edges::linear(u64::MAX, u64::MAX, 3).count([(u64::MAX, 1)]), [1]);
        assert_eq!(Edges::linear(0, 10, 0).as_slice(), [0, 10]);
        assert_eq!(Edges::linear(0, 1 << 40, u64::MAX).as_slice().len() as u64, MOST_BINS + 1);
    }

    #[test]
    fn a_value_on_an_edge_is_of_the_bin_above_it_and_the_last_one_of_the_last() {
        let edges = Edges::linear(10, 30, 2);
        assert_eq!(edges.count([(10, 1), (19, 1), (20, 1), (30, 5)]), [2, 6]);
        assert_eq!(edges.count([(9, 1), (31, 1)]), [0, 0], "what lies outside is not counted in");
    }

    proptest::proptest! {
        #[test]
        fn every_value_between_the_ends_is_in_one_bin(
            values in proptest::collection::vec(0u64..1 << 50, 1..50), bins in 0u64..200, log: bool,
        ) {
            let (least, most) = (*values.iter().min().expect("some"), *values.iter().max().expect("some"));
            let edges = if log { Edges::log(least, most, bins) } else { Edges::linear(least, most, bins) };
            let counts = edges.count(values.iter().map(|value| (*value, 1)));
            proptest::prop_assert_eq!(counts.iter().sum::<u64>(), values.len() as u64);
            proptest::prop_assert!(edges.as_slice().windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
