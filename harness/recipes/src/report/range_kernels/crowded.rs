//! Kernels within many ranges of one name at once, such as concurrent requests: each kernel is weighted by the number
//! of its ranges, so that the work does not grow with that number.

use super::{Launched, Within};
use crate::figures::Keeps;
use std::collections::BTreeMap;

/// The same as to look at each kernel once for each of its ranges; spans in the order of their beginnings.
pub(super) fn within<K: Keeps>(launched: &[Launched], spans: &[(i64, i64)]) -> Vec<Within<K>> {
    let mut begun = Begun::new(spans);
    let mut next = 0;
    let mut of_name: BTreeMap<u32, OfName> = BTreeMap::new();
    for one in launched {
        while let Some((_, end)) = spans.get(next).filter(|(start, _)| *start <= one.call.0) {
            begun.add(*end);
            next += 1;
        }
        let weight = begun.until(one.call.1);
        if weight > 0 {
            let of_name = of_name.entry(one.name).or_default();
            of_name.calls.push(one.call);
            of_name.ns.push((one.ns, weight));
        }
    }
    let found = of_name.into_iter().filter_map(|(name, of_name)| {
        let ranges = of_name.ranges(spans);
        Some(Within { name, ranges, kept: K::from_weighed(of_name.ns)? })
    });
    found.collect()
}

#[derive(Default)]
struct OfName {
    calls: Vec<(i64, i64)>,
    /// Durations of kernels, with the number of ranges of each.
    ns: Vec<(u64, u64)>,
}

impl OfName {
    /// In how many of the ranges some call lies.
    fn ranges(&self, spans: &[(i64, i64)]) -> u64 {
        // Of the calls from here on the earliest end.
        let mut earliest = vec![i64::MAX; self.calls.len()];
        let mut least = i64::MAX;
        for (earliest, call) in earliest.iter_mut().zip(&self.calls).rev() {
            least = least.min(call.1);
            *earliest = least;
        }
        let has = |(start, end): &&(i64, i64)| {
            let from = self.calls.partition_point(|call| call.0 < *start);
            earliest.get(from).is_some_and(|earliest| earliest <= end)
        };
        spans.iter().filter(has).count() as u64
    }
}

/// The ends of the ranges that have begun, counted in a binary indexed tree.
struct Begun {
    ends: Vec<i64>,
    tree: Vec<u64>,
    all: u64,
}

impl Begun {
    fn new(spans: &[(i64, i64)]) -> Begun {
        let mut ends: Vec<i64> = spans.iter().map(|(_, end)| *end).collect();
        ends.sort_unstable();
        ends.dedup();
        Begun { tree: vec![0; ends.len() + 1], ends, all: 0 }
    }

    fn add(&mut self, end: i64) {
        self.all += 1;
        let mut at = self.ends.partition_point(|other| *other < end) + 1;
        while let Some(count) = self.tree.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many last until then.
    fn until(&self, moment: i64) -> u64 {
        let mut at = self.ends.partition_point(|end| *end < moment);
        let mut over = 0;
        while at > 0 {
            over += self.tree[at];
            at &= at - 1;
        }
        self.all - over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Stats;

    proptest::proptest! {
        #[test]
        fn weighed_kernels_have_the_figures_of_all_pairs(
            spans in proptest::collection::vec((0i64..40, 0i64..40), 0..30),
            calls in proptest::collection::vec((0i64..60, 0i64..9, 0u32..3, 0u64..50), 0..40),
        ) {
            let mut spans: Vec<(i64, i64)> = spans.iter().map(|(start, ns)| (*start, start + ns)).collect();
            spans.sort_unstable();
            let call = |(start, ns, name, lasted): &(i64, i64, u32, u64)| Launched {
                call: (*start, start + ns),
                name: *name,
                ns: *lasted,
            };
            let mut launched: Vec<Launched> = calls.iter().map(call).collect();
            launched.sort_by_key(|one| one.call.0);
            let mut expected = Vec::new();
            for name in 0..3 {
                let (mut ranges, mut all) = (0, Vec::new());
                for (start, end) in &spans {
                    let inside = launched.iter().filter(|one| one.name == name);
                    let inside = inside.filter(|one| one.call.0 >= *start && one.call.1 <= *end);
                    let ns: Vec<u64> = inside.map(|one| one.ns).collect();
                    ranges += u64::from(!ns.is_empty());
                    all.extend(ns);
                }
                expected.extend(Stats::from_values(&all).map(|kept| Within { name, ranges, kept }));
            }
            proptest::prop_assert_eq!(within::<Stats>(&launched, &spans), expected.as_slice());
            let mut either = super::super::within::<Stats>(&launched, &spans);
            either.sort_by_key(|one| one.name);
            proptest::prop_assert_eq!(either, expected);
        }
    }
}
