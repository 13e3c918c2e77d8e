//! Puts slices into lanes within which they nest or follow each other: a trace viewer shows no others.

use super::slices::{Merged, Slice};

/// More are no row that a person reads; what would need one is counted.
const MOST_LANES: usize = 8;

/// The lanes of a first fit, each in the order of begins, what contains before what is contained; and what fits into none.
pub(super) fn lay(mut slices: Vec<Slice>) -> (Vec<Vec<Slice>>, Vec<Merged>) {
    slices.sort_by(|a, b| {
        (a.start, std::cmp::Reverse(a.ns), &a.name).cmp(&(b.start, std::cmp::Reverse(b.ns), &b.name))
    });
    // Of each lane the ends of what is open, the innermost last.
    let mut lanes: Vec<(Vec<i64>, Vec<Slice>)> = Vec::new();
    let mut crossing: Option<Merged> = None;
    for slice in slices {
        let count = lanes.len();
        let end = slice.start.saturating_add_unsigned(slice.ns);
        let fits = lanes.iter_mut().find(|(open, _)| {
            let within = open.iter().rev().find(|open| **open > slice.start);
            within.is_none_or(|open| *open >= end)
        });
        match fits {
            Some((open, lane)) => {
                open.retain(|open| *open > slice.start);
                open.push(end);
                lane.push(slice);
            }
            None if count < MOST_LANES => lanes.push((vec![end], vec![slice])),
            None => {
                let all = crossing.get_or_insert(Merged { start: slice.start, ns: 0, count: 0, total_ns: 0 });
                all.ns = all.ns.max(end.saturating_sub(all.start).max(0) as u64);
                all.count += 1;
                all.total_ns = all.total_ns.saturating_add(slice.ns);
            }
        }
    }
    (lanes.into_iter().map(|(_, lane)| lane).collect(), crossing.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::super::slices::SliceKind;
    use super::*;

    #[test]
    fn what_crosses_is_in_another_lane_and_what_nests_or_follows_is_not() {
        let slice = |(start, end): (i64, i64)| Slice {
            kind: SliceKind::Compute,
            start,
            ns: end.abs_diff(start),
            name: String::new(),
            whole_ns: None,
            bytes: None,
            communicator: None,
        };
        let spans = |lanes: Vec<Vec<Slice>>| -> Vec<Vec<(i64, i64)>> {
            let span = |slice: &Slice| (slice.start, slice.start + slice.ns as i64);
            lanes.iter().map(|lane| lane.iter().map(span).collect()).collect()
        };
        let lay = |all: &[(i64, i64)]| spans(super::lay(all.iter().copied().map(slice).collect()).0);
        assert_eq!(lay(&[(5, 8), (0, 10), (10, 12)]), [vec![(0, 10), (5, 8), (10, 12)]]);
        assert_eq!(lay(&[(0, 10), (5, 15), (6, 9)]), [vec![(0, 10), (6, 9)], vec![(5, 15)]]);
        assert_eq!(lay(&[(0, 10), (0, 10), (3, 3)]), [vec![(0, 10), (0, 10), (3, 3)]]);
        assert!(lay(&[]).is_empty());
        let many = (0..20).map(|at| slice((at, at + 100))).collect();
        let (lanes, crossing) = super::lay(many);
        assert_eq!(lanes.len(), MOST_LANES);
        assert_eq!(crossing, [Merged { start: 8, ns: 111, count: 12, total_ns: 1_200 }], "counted, not lost");
    }
}
