//! Numbers that are peers of one another: how many others each has, and their median, without sorting them for each.

use metric::Dims;
use std::collections::BTreeMap;

/// Finite numbers, and whose they are.
pub(super) struct PeerGroup {
    sorted: Vec<f64>,
    /// Of each part its own numbers, sorted: they are no peers of it.
    own: BTreeMap<Dims, Vec<f64>>,
}

/// What the others of a group show.
#[derive(Debug, PartialEq)]
pub(super) struct Others {
    pub n: usize,
    pub median: f64,
}

impl PeerGroup {
    /// Sorts them once.
    pub(super) fn new(numbers: impl Iterator<Item = (Dims, f64)>) -> PeerGroup {
        let mut own: BTreeMap<Dims, Vec<f64>> = BTreeMap::new();
        let mut sorted = Vec::new();
        for (whose, value) in numbers {
            sorted.push(value);
            own.entry(whose).or_default().push(value);
        }
        sorted.sort_by(f64::total_cmp);
        own.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        PeerGroup { sorted, own }
    }

    /// All but those of this part; nothing where there are no others.
    pub(super) fn others(&self, whose: &Dims) -> Option<Others> {
        let left_out = self.places(whose);
        let n = self.sorted.len() - left_out.len();
        let nth = |rank: usize| {
            // Each one that is left out before it moves it on by one.
            let mut at = rank;
            for place in &left_out {
                if *place > at {
                    break;
                }
                at += 1;
            }
            self.sorted.get(at)
        };
        let (low, high) = (nth(n.checked_sub(1)? / 2)?, nth(n / 2)?);
        Some(Others { n, median: (low + high) / 2.0 })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// How many are above a limit, and the least of them.
    pub(super) fn above(&self, limit: f64) -> Option<(usize, f64)> {
        let at = self.sorted.partition_point(|value| *value <= limit);
        Some((self.len() - at, *self.sorted.get(at)?))
    }

    /// How many are below a limit, and the most of them.
    pub(super) fn below(&self, limit: f64) -> Option<(usize, f64)> {
        let n = self.sorted.partition_point(|value| *value < limit);
        Some((n, *self.sorted.get(n.checked_sub(1)?)?))
    }

    /// Where the numbers of this part stand among all, in ascending order; of equal ones the first stand for them.
    fn places(&self, whose: &Dims) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        for value in self.own.get(whose).into_iter().flatten() {
            let first = self.sorted.partition_point(|other| other.total_cmp(value).is_lt());
            places.push(places.last().map_or(first, |last| first.max(last + 1)));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metric::Dim;
    use proptest::prelude::*;

    fn part(name: u8) -> Dims {
        Dims::new().with(Dim::Node, name.to_string().as_str())
    }

    /// As the definition has it: all others, sorted, and the middle of them.
    fn by_definition(numbers: &[(Dims, f64)], whose: &Dims) -> Option<Others> {
        let mut values: Vec<f64> =
            numbers.iter().filter(|(other, _)| other != whose).map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let (low, high) = (values.get(n.checked_sub(1)? / 2)?, values.get(n / 2)?);
        Some(Others { n, median: (low + high) / 2.0 })
    }

    proptest! {
        /// Parts with several numbers, equal numbers, zeros of both signs, and parts that have none.
        #[test]
        fn others_are_those_of_the_definition(drawn in prop::collection::vec((0_u8..9, -4_i8..4, any::<bool>()), 0..60)) {
            let value = |small: i8, is_odd: bool| if is_odd { f64::from(small) * 0.1 } else { -f64::from(small) };
            let numbers: Vec<(Dims, f64)> =
                drawn.iter().map(|(name, small, is_odd)| (part(*name), value(*small, *is_odd))).collect();
            let group = PeerGroup::new(numbers.iter().cloned());
            for name in 0..10 {
                let (found, wanted) = (group.others(&part(name)), by_definition(&numbers, &part(name)));
                prop_assert_eq!(found.as_ref().map(|it| it.median.to_bits()), wanted.as_ref().map(|it| it.median.to_bits()));
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
