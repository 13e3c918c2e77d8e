//! Sets of time spans, in whole nanoseconds: unions, intersections and partitions by one pass over sorted spans. What
//! the spans mean is up to the caller.

/// Half-open spans that neither overlap nor touch, in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    apart: Vec<(i64, i64)>,
}

impl Spans {
    /// The union of spans in whatever order; a span that does not end behind its beginning has no moment.
    pub(crate) fn union(spans: impl IntoIterator<Item = (i64, i64)>) -> Spans {
        let mut spans: Vec<(i64, i64)> = spans.into_iter().filter(|(start, end)| end > start).collect();
        spans.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::new();
        for (start, end) in spans {
            match apart.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => apart.push((start, end)),
            }
        }
        Spans { apart }
    }

    /// One span; none where `end` is not later than `start`.
    pub(crate) fn one(start: i64, end: i64) -> Spans {
        Spans::union([(start, end)])
    }

    /// Spans that lie apart fit between the least and the greatest moment, and so does their sum.
    pub(crate) fn ns(&self) -> u64 {
        self.apart.iter().map(|span| length(*span)).sum()
    }

    /// Start and end of each span, in the order of time.
    pub(crate) fn as_slice(&self) -> &[(i64, i64)] {
        &self.apart
    }

    /// From the first beginning to the last end.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        Some((self.apart.first()?.0, self.apart.last()?.1))
    }

    /// Union: all moments in either set.
    pub(crate) fn or(&self, other: &Spans) -> Spans {
        Spans::union(self.apart.iter().chain(&other.apart).copied())
    }

    /// Intersection: all moments in both sets.
    pub(crate) fn and(&self, other: &Spans) -> Spans {
        let (mut mine, mut theirs) = (self.apart.iter().peekable(), other.apart.iter().peekable());
        let mut apart = Vec::new();
        while let (Some(one), Some(two)) = (mine.peek(), theirs.peek()) {
            let (start, end) = (one.0.max(two.0), one.1.min(two.1));
            if start < end {
                apart.push((start, end));
            }
            // What ends first reaches nothing that comes later.
            if one.1 < two.1 {
                mine.next()
            } else {
                theirs.next()
            };
        }
        Spans { apart }
    }

    /// Difference: all moments in this set and not in `other`.
    pub(crate) fn without(&self, other: &Spans) -> Spans {
        let mut apart = Vec::new();
        let mut taken = other.apart.iter().peekable();
        for (start, end) in &self.apart {
            let mut from = *start;
            while taken.next_if(|span| span.1 <= from).is_some() {}
            while let Some(span) = taken.peek().filter(|span| span.0 < *end) {
                if from < span.0 {
                    apart.push((from, span.0));
                }
                from = span.1;
                // One that reaches beyond this span may reach the next one.
                if from >= *end {
                    break;
                }
                taken.next();
            }
            if from < *end {
                apart.push((from, *end));
            }
        }
        Spans { apart }
    }

    /// Measures how much of any span is in this set, without walking the set each time.
    pub(crate) fn ruler(&self) -> Ruler<'_> {
        let mut before = Vec::with_capacity(self.apart.len());
        let mut sum = 0;
        for span in &self.apart {
            before.push(sum);
            sum += length(*span);
        }
        Ruler { apart: &self.apart, before, sum }
    }
}

/// See `Spans::ruler`.
pub(crate) struct Ruler<'a> {
    apart: &'a [(i64, i64)],
    /// Of each span the sum of those before it.
    before: Vec<u64>,
    sum: u64,
}

impl Ruler<'_> {
    /// Nanoseconds of the set from `start` to `end`; 0 where `end` is not later.
    pub(crate) fn within(&self, start: i64, end: i64) -> u64 {
        if end <= start { 0 } else { self.until(end) - self.until(start) }
    }

    fn until(&self, moment: i64) -> u64 {
        let reached = self.apart.partition_point(|span| span.1 <= moment);
        match self.apart.get(reached) {
            None => self.sum,
            Some(span) if span.0 >= moment => self.before[reached],
            Some(span) => self.before[reached] + length((span.0, moment)),
        }
    }
}

/// How long each combination of sets lasts within the window: at place `mask` stands what lies in the sets whose bits it
/// has and in no other, at place 0 what lies in none. All places together are the window.
pub(crate) fn partition<const N: usize>(sets: [&Spans; N], window: &Spans) -> Vec<u64> {
    let mut parts = vec![0u64; 1 << N];
    for (start, end) in &window.apart {
        let mut passed = sets.map(|set| passed_at(set, *start));
        let mut last = *start;
        while last < *end {
            let edges = sets.iter().zip(&passed).filter_map(|(set, passed)| edge(set, *passed));
            let next = edges.fold(*end, i64::min);
            let inside = passed.iter().enumerate().filter(|(_, passed)| is_inside(**passed));
            let mask: usize = inside.map(|(set, _)| 1 << set).sum();
            parts[mask] += length((last, next));
            for (set, passed) in sets.iter().zip(&mut passed) {
                *passed += usize::from(edge(set, *passed) == Some(next));
            }
            last = next;
        }
    }
    parts
}

/// How many edges of a set come no later than that moment.
fn passed_at(set: &Spans, moment: i64) -> usize {
    let ended = set.apart.partition_point(|span| span.1 <= moment);
    2 * ended + usize::from(set.apart.get(ended).is_some_and(|span| span.0 <= moment))
}

/// Beginnings and ends in turn: no two of them are one moment, as spans that touch are one.
fn edge(set: &Spans, at: usize) -> Option<i64> {
    set.apart.get(at / 2).map(|span| if is_inside(at) { span.1 } else { span.0 })
}

/// Behind a beginning and before its end.
fn is_inside(passed: usize) -> bool {
    passed % 2 == 1
}

/// The distance of any two 64-bit numbers fits.
fn length((start, end): (i64, i64)) -> u64 {
    end.wrapping_sub(start) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn() -> impl Strategy<Value = Vec<(i64, i64)>> {
        proptest::collection::vec((-40i64..40, -2i64..15), 0..20)
            .prop_map(|all| all.into_iter().map(|(start, ns)| (start, start + ns)).collect())
    }

    fn holds(spans: &[(i64, i64)], moment: i64) -> bool {
        spans.iter().any(|(start, end)| (*start..*end).contains(&moment))
    }

    /// Every moment that may lie in a drawn span.
    const MOMENTS: std::ops::Range<i64> = -45..60;

    #[test]
    fn what_touches_is_one_span_and_what_has_no_moment_is_none() {
        let spans = Spans::union([(5, 5), (9, 3), (10, 20), (20, 30), (12, 13), (40, 41)]);
        assert_eq!(spans.as_slice(), [(10, 30), (40, 41)]);
        assert_eq!((spans.ns(), spans.bounds()), (21, Some((10, 41))));
        assert_eq!(Spans::union([(5, 5)]).as_slice(), []);
        assert_eq!(Spans::default().bounds(), None);
    }

    #[test]
    fn the_whole_of_time_has_a_length() {
        let all = Spans::one(i64::MIN, i64::MAX);
        assert_eq!((all.ns(), all.ruler().within(i64::MIN, i64::MAX)), (u64::MAX, u64::MAX));
        assert_eq!(partition([&all], &all), [0, u64::MAX]);
        assert_eq!(all.without(&Spans::one(0, 1)).as_slice(), [(i64::MIN, 0), (1, i64::MAX)]);
    }

    #[test]
    fn many_spans_are_gone_through_once() {
        let many =
            |shift: i64| Spans::union((0..200_000).rev().map(|at| (at * 10 + shift, at * 10 + shift + 6)));
        let (one, two) = (many(0), many(3));
        assert_eq!(
            (one.and(&two).ns(), one.without(&two).ns(), one.or(&two).ns()),
            (600_000, 600_000, 1_800_000)
        );
        assert_eq!(partition([&one, &two], &Spans::one(0, 2_000_000)), [200_000, 600_000, 600_000, 600_000]);
    }

    proptest! {
        #[test]
        fn sets_are_those_of_their_moments(one in drawn(), two in drawn(), three in drawn(), window in drawn()) {
            let [a, b, c, w] = [&one, &two, &three, &window].map(|spans| Spans::union(spans.iter().copied()));
            for (set, expected) in [
                (a.clone(), &(|moment| holds(&one, moment)) as &dyn Fn(i64) -> bool),
                (a.or(&b), &|moment| holds(&one, moment) || holds(&two, moment)),
                (a.and(&b), &|moment| holds(&one, moment) && holds(&two, moment)),
                (a.without(&b), &|moment| holds(&one, moment) && !holds(&two, moment)),
            ] {
                prop_assert!(set.as_slice().iter().all(|(start, end)| start < end));
                prop_assert!(set.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0));
                let seen: Vec<i64> = MOMENTS.filter(|moment| holds(set.as_slice(), *moment)).collect();
                prop_assert_eq!(&seen, &MOMENTS.filter(|moment| expected(*moment)).collect::<Vec<i64>>());
                prop_assert_eq!(set.ns(), seen.len() as u64);
            }
            let mut parts = vec![0; 8];
            for moment in MOMENTS.filter(|moment| holds(&window, *moment)) {
                let bit = |set: &[(i64, i64)], of: usize| if holds(set, moment) { of } else { 0 };
                parts[bit(&one, 1) + bit(&two, 2) + bit(&three, 4)] += 1;
            }
            prop_assert_eq!(partition([&a, &b, &c], &w), parts);
        }

        #[test]
        fn a_ruler_measures_the_intersection(set in drawn(), start in -45i64..60, ns in -3i64..40) {
            let set = Spans::union(set);
            let expected = set.and(&Spans::one(start, start + ns)).ns();
            prop_assert_eq!(set.ruler().within(start, start + ns), expected);
        }
    }
}
