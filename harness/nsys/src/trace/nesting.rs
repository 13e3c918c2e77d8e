//! How push/pop ranges of one thread nest. All domains of a thread share one stack, and the parent of a range is the
//! innermost one that contains it, borders included.

use super::nvtx::{Ranges, Style};
use std::cmp::Reverse;
use std::fmt::Write;

/// The ranges of one thread that begin and end on it, both styles: the earlier first, of two with one beginning the
/// longer.
pub struct Thread {
    /// As in `Ranges::global_tid`.
    pub global_tid: i64,
    /// Rows of `Ranges`.
    pub ranges: Vec<usize>,
}

/// Threads by their numbers. Ranges that end on another thread than they began on belong to none.
pub fn threads(ranges: &Ranges) -> Vec<Thread> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|row| ranges.end_tid[*row].is_none()).collect();
    let tids = &ranges.global_tid;
    order.sort_by_key(|row| (tids[*row], ranges.start[*row], Reverse(ranges.end[*row]), *row));
    let of_thread = order.chunk_by(|a, b| tids[*a] == tids[*b]);
    of_thread.map(|rows| Thread { global_tid: tids[rows[0]], ranges: rows.to_vec() }).collect()
}

/// Where a push/pop range stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NestedPosition {
    /// In how many ranges; 0 for an outermost one.
    pub level: usize,
    /// The innermost range around it, as row of `Ranges`; `None` for an outermost one.
    pub parent: Option<usize>,
}

/// The ranges in which a moment may stand that comes no earlier than the last range that was pushed. Their ends never
/// grow towards the top: a range that ends before a later one that began behind it contains nothing that the later one
/// does not.
#[derive(Default)]
pub(crate) struct Stack {
    open: Vec<(usize, i64)>,
}

impl Stack {
    /// Adds a range that begins no earlier than the one before, and gives its place.
    pub(crate) fn push(&mut self, range: usize, end: i64) -> NestedPosition {
        while self.open.last().is_some_and(|(_, other)| *other < end) {
            self.open.pop();
        }
        let place =
            NestedPosition { level: self.open.len(), parent: self.open.last().map(|(range, _)| *range) };
        self.open.push((range, end));
        place
    }

    /// The innermost range that lasts until then.
    pub(crate) fn innermost(&self, until: i64) -> Option<usize> {
        let lasting = self.open.partition_point(|(_, end)| *end >= until);
        lasting.checked_sub(1).map(|at| self.open[at].0)
    }
}

/// Of each range of the report its place; ranges of the other style and those of two threads have none.
pub fn places(ranges: &Ranges, threads: &[Thread]) -> Vec<Option<NestedPosition>> {
    let mut places = vec![None; ranges.len()];
    for thread in threads {
        let mut stack = Stack::default();
        for row in &thread.ranges {
            if ranges.style[*row] == Style::PushPop {
                places[*row] = Some(stack.push(*row, ranges.end[*row]));
            }
        }
    }
    places
}

/// The ids of a range and of those in which it stands, the outermost first.
pub fn ids(ranges: &Ranges, places: &[Option<NestedPosition>], range: usize) -> Vec<i64> {
    let parent = |row: &usize| places[*row].and_then(|place| place.parent);
    let mut ids: Vec<i64> = std::iter::successors(Some(range), parent).map(|row| ranges.id[row]).collect();
    ids.reverse();
    ids
}

/// The same as `:1:5:7`.
pub fn path(ranges: &Ranges, places: &[Option<NestedPosition>], range: usize) -> String {
    let mut path = String::new();
    for id in ids(ranges, places, range) {
        // A string takes whatever is written to it.
        let _ = write!(path, ":{id}");
    }
    path
}
