//! What ran on the GPUs on behalf of ranges: an operation belongs to every range of its call's thread within which the
//! whole call lies, borders included. How ranges nest is computed in `nesting`.

use super::Trace;
use super::launches::Calls;
use super::nesting::{Stack, Thread};
use super::nvtx::{Ranges, Style};
use crate::export::ExportError;
use crate::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// Operations on GPUs taken together: from the beginning of the first to the end of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// How many kernels, copies, fills and graphs.
    pub operations: u64,
    /// Start of the first, in nanoseconds of the session.
    pub start: i64,
    /// Latest end, in nanoseconds of the session.
    pub end: i64,
}

impl Work {
    const NONE: Work = Work { operations: 0, start: i64::MAX, end: i64::MIN };

    /// The distance of any two 64-bit numbers fits.
    pub fn ns(&self) -> u64 {
        self.end.wrapping_sub(self.start) as u64
    }

    fn add(&mut self, other: Work) {
        self.operations += other.operations;
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }
}

/// Of each call the innermost push/pop range within which it lies, where there is one.
pub fn innermost(
    calls: &Calls,
    ranges: &Ranges,
    threads: &[Thread],
) -> Result<Vec<Option<u32>>, ExportError> {
    let (starts, ends) = (calls.rows().ints("start")?, calls.rows().ints("end")?);
    let mut of_call = vec![None; calls.rows().len()];
    for (thread, calls) in threads.iter().zip(by_thread(calls, threads, |call| ends[call] >= starts[call])?) {
        let pushed = thread.ranges.iter().filter(|range| ranges.style[**range] == Style::PushPop);
        let (mut pushed, mut stack) = (pushed.peekable(), Stack::default());
        for call in calls {
            let (start, end) = (starts[call as usize], ends[call as usize]);
            while let Some(range) = pushed.next_if(|range| ranges.start[**range] <= start) {
                stack.push(*range, ranges.end[*range]);
            }
            of_call[call as usize] = stack.innermost(end).map(|range| range as u32);
        }
    }
    Ok(of_call)
}

/// Of each range what it launched; of one that launched nothing, nothing.
pub fn project(trace: &Trace, ranges: &Ranges, threads: &[Thread]) -> Result<Vec<Option<Work>>, ExportError> {
    match Launched::read(trace)? {
        Some(launched) => launched.within(ranges, threads),
        None => Ok(vec![None; ranges.len()]),
    }
}

/// The calls of a report, and of each what it launched.
pub struct Launched {
    calls: Calls,
    work: Vec<Work>,
}

impl Launched {
    /// `None` where the report has no calls.
    pub fn read(trace: &Trace) -> Result<Option<Launched>, ExportError> {
        let Some(calls) = Calls::read(trace, &[])? else { return Ok(None) };
        let mut work = vec![Work::NONE; calls.rows().len()];
        let tables =
            [(&KERNEL, "kernels"), (&MEMCPY, "copies"), (&MEMSET, "fills"), (&GRAPH_TRACE, "graphs")];
        for (table, what) in tables {
            let columns = ["start", "end", "correlationId", "globalPid"];
            let Some(operations) = trace.rows(table, &columns)? else { continue };
            let (starts, ends) = (operations.ints("start")?, operations.ints("end")?);
            for launch in calls.launches(trace, what, &operations)? {
                let row = launch.operation as usize;
                work[launch.call as usize].add(Work { operations: 1, start: starts[row], end: ends[row] });
            }
        }
        Ok(Some(Launched { calls, work }))
    }

    /// For each range what it launched; `None` where it launched nothing.
    pub fn within(&self, ranges: &Ranges, threads: &[Thread]) -> Result<Vec<Option<Work>>, ExportError> {
        let by_thread = by_thread(&self.calls, threads, |call| self.work[call].operations > 0)?;
        let (starts, ends) = (self.calls.rows().ints("start")?, self.calls.rows().ints("end")?);
        let launching = |call: u32| {
            let call = call as usize;
            Launching { start: starts[call], end: ends[call], work: self.work[call] }
        };
        let found = threads.par_iter().zip(by_thread).map(|(thread, calls)| {
            let calls = || calls.iter().map(|call| launching(*call));
            let spans = || thread.ranges.iter().map(|range| (ranges.start[*range], ranges.end[*range]));
            nested(spans(), calls()).unwrap_or_else(|| crossing(spans().collect(), calls().rev()))
        });
        let found: Vec<Vec<Work>> = found.collect();
        let mut of_range = vec![None; ranges.len()];
        for (thread, sums) in threads.iter().zip(found) {
            for (range, sum) in thread.ranges.iter().zip(sums) {
                of_range[*range] = (sum.operations > 0).then_some(sum);
            }
        }
        Ok(of_range)
    }

    /// What calls within no range launched, by thread: threads without ranges too, in the order of their numbers.
    pub fn outside(&self, ranges: &Ranges, threads: &[Thread]) -> Result<Vec<(i64, Work)>, ExportError> {
        let (starts, ends) = (self.calls.rows().ints("start")?, self.calls.rows().ints("end")?);
        let by_thread = by_thread(&self.calls, threads, |call| self.work[call].operations > 0)?;
        let mut inside = vec![false; starts.len()];
        for (thread, calls) in threads.iter().zip(by_thread) {
            let mut begun = thread.ranges.iter().peekable();
            let mut latest = None;
            for call in calls {
                let call = call as usize;
                while let Some(range) = begun.next_if(|range| ranges.start[**range] <= starts[call]) {
                    latest = latest.max(Some(ranges.end[*range]));
                }
                inside[call] = latest.is_some_and(|latest| latest >= ends[call]);
            }
        }
        let tids = self.calls.rows().maybe_ints("globalTid")?;
        let mut of_thread: BTreeMap<i64, Work> = BTreeMap::new();
        for (call, work) in
            self.work.iter().enumerate().filter(|(call, work)| work.operations > 0 && !inside[*call])
        {
            if let Some(tid) = tids.get(call) {
                of_thread.entry(tid).or_insert(Work::NONE).add(*work);
            }
        }
        Ok(of_thread.into_iter().collect())
    }
}

/// A call that launched something.
#[derive(Clone, Copy)]
struct Launching {
    start: i64,
    end: i64,
    work: Work,
}

/// What lies within ranges none of which only crosses another, as those of one style are; nothing where some does. Each
/// call is added to the innermost range alone, and each range to the one in which it stands. Both come by their
/// beginnings.
fn nested(
    spans: impl Iterator<Item = (i64, i64)>,
    mut calls: impl Iterator<Item = Launching>,
) -> Option<Vec<Work>> {
    const NOTHING: u32 = u32::MAX;
    let (mut sums, mut parents) = (Vec::with_capacity(spans.size_hint().0), Vec::new());
    let mut open: Vec<(u32, i64)> = Vec::new();
    let mut next = calls.next();
    // Where the last range ended at the very moment at which another began.
    let mut border = None;
    let put = |sums: &mut Vec<Work>, open: &[(u32, i64)], border: Option<i64>, call: Launching| {
        // A call that takes no time lies within both of the ranges that meet there.
        if border == Some(call.end) {
            return None;
        }
        // Ends never grow towards the top: the last that lasts until the call's end is the innermost.
        let lasting = open.partition_point(|(_, end)| *end >= call.end);
        if let Some((range, _)) = lasting.checked_sub(1).map(|at| open[at]) {
            sums[range as usize].add(call.work);
        }
        Some(())
    };
    for (start, end) in spans {
        while let Some(call) = next.filter(|call| call.start < start) {
            put(&mut sums, &open, border, call)?;
            next = calls.next();
        }
        while let Some((_, last)) = open.pop_if(|(_, other)| *other < end) {
            if last > start {
                return None;
            }
            if last == start {
                border = Some(start);
            }
        }
        parents.push(open.last().map_or(NOTHING, |(range, _)| *range));
        open.push((u32::try_from(sums.len()).ok()?, end));
        sums.push(Work::NONE);
    }
    while let Some(call) = next {
        put(&mut sums, &open, border, call)?;
        next = calls.next();
    }
    for range in (0..sums.len()).rev() {
        if parents[range] != NOTHING {
            let sum = sums[range];
            sums[parents[range] as usize].add(sum);
        }
    }
    Some(sums)
}

/// What lies within ranges however they cross; the last call first.
fn crossing(spans: Vec<(i64, i64)>, calls: impl Iterator<Item = Launching>) -> Vec<Work> {
    let mut sums = Sums::until(spans.iter().map(|(_, end)| *end).collect());
    let mut calls = calls.peekable();
    // From the last beginning to the first: all calls that are in by then begin within the range, or behind it.
    let within = |(start, end): &(i64, i64)| {
        while let Some(call) = calls.next_if(|call| call.start >= *start) {
            sums.add(call.end, call.work);
        }
        sums.within(*end)
    };
    let mut found: Vec<Work> = spans.iter().rev().map(within).collect();
    found.reverse();
    found
}

/// Of each thread its calls among those that are wanted, the earlier first.
pub(crate) fn by_thread(
    calls: &Calls,
    threads: &[Thread],
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Vec<u32>>, ExportError> {
    let (starts, tids) = (calls.rows().ints("start")?, calls.rows().maybe_ints("globalTid")?);
    let numbers = threads.iter().enumerate().map(|(number, thread)| (thread.global_tid, number));
    let numbers: HashMap<i64, usize> = numbers.collect();
    let mut of_thread = vec![Vec::new(); threads.len()];
    let mut last: Option<(i64, Option<usize>)> = None;
    for call in 0..calls.rows().len() {
        let Some(tid) = tids.get(call).filter(|_| wanted(call)) else { continue };
        let number = match last {
            Some((known, number)) if known == tid => number,
            _ => numbers.get(&tid).copied(),
        };
        last = Some((tid, number));
        if let Some(number) = number {
            of_thread[number].push(call as u32);
        }
    }
    for calls in &mut of_thread {
        // Exports are nearly in this order already, which this sort turns to account.
        calls.sort_by_key(|call| starts[*call as usize]);
    }
    Ok(of_thread)
}

/// Sums of all that ends until some moment, for a fixed set of moments: to add and to ask take the logarithm of their
/// number, however ranges overlap.
struct Sums {
    moments: Vec<i64>,
    /// A binary indexed tree, from 1.
    tree: Vec<Work>,
}

impl Sums {
    fn until(mut moments: Vec<i64>) -> Sums {
        moments.sort_unstable();
        moments.dedup();
        Sums { tree: vec![Work::NONE; moments.len() + 1], moments }
    }

    fn add(&mut self, end: i64, work: Work) {
        let mut at = self.moments.partition_point(|moment| *moment < end) + 1;
        while let Some(sum) = self.tree.get_mut(at) {
            sum.add(work);
            at += at & at.wrapping_neg();
        }
    }

    fn within(&self, end: i64) -> Work {
        let mut at = self.moments.partition_point(|moment| *moment <= end);
        let mut sum = Work::NONE;
        while at > 0 {
            sum.add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn ranges_hold_the_calls_within_them_whether_they_nest_or_cross(
            spans in proptest::collection::vec((0i64..60, 0i64..40), 0..12),
            calls in proptest::collection::vec((0i64..90, 0i64..9), 0..40),
        ) {
            let mut spans: Vec<(i64, i64)> = spans.iter().map(|(start, ns)| (*start, start + ns)).collect();
            spans.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
            let mut calls: Vec<Launching> = calls
                .iter()
                .map(|(start, ns)| Launching {
                    start: *start,
                    end: start + ns,
                    work: Work { operations: 1, start: 10 * start, end: 10 * start + 3 * ns },
                })
                .collect();
            calls.sort_by_key(|call| call.start);
            let expected: Vec<Work> = spans
                .iter()
                .map(|(start, end)| {
                    let mut sum = Work::NONE;
                    let within = calls.iter().filter(|call| call.start >= *start && call.end <= *end);
                    within.for_each(|call| sum.add(call.work));
                    sum
                })
                .collect();
            proptest::prop_assert_eq!(&crossing(spans.clone(), calls.iter().rev().copied()), &expected);
            if let Some(found) = nested(spans.iter().copied(), calls.iter().copied()) {
                proptest::prop_assert_eq!(&found, &expected);
            }
            // The same with what crosses taken out, so that all that is left nests.
            let mut kept: Vec<(i64, i64)> = Vec::new();
            for span in &spans {
                if kept.iter().all(|other| other.1 < span.0 || span.1 <= other.1) {
                    kept.push(*span);
                }
            }
            let found = nested(kept.iter().copied(), calls.iter().copied());
            let expected = crossing(kept, calls.iter().rev().copied());
            proptest::prop_assert_eq!(found, Some(expected));
        }

        #[test]
        fn sums_are_those_of_all_that_ends_in_time(
            moments in proptest::collection::vec(-20i64..20, 0..30),
            added in proptest::collection::vec((-25i64..25, -100i64..100, 0i64..50), 0..60),
        ) {
            let mut sums = Sums::until(moments.clone());
            for (end, start, ns) in &added {
                sums.add(*end, Work { operations: 1, start: *start, end: start + ns });
            }
            for moment in moments {
                let within = || added.iter().filter(|(end, ..)| *end <= moment);
                let expected = Work {
                    operations: within().count() as u64,
                    start: within().map(|(_, start, _)| *start).min().unwrap_or(i64::MAX),
                    end: within().map(|(_, start, ns)| start + ns).max().unwrap_or(i64::MIN),
                };
                proptest::prop_assert_eq!(sums.within(moment), expected);
            }
        }
    }
}
