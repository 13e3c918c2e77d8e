//! What ran on the GPUs on behalf of ranges: an operation belongs to every range of its call's thread within which the
//! whole call lies, borders included. How ranges stand in one another is told in `nesting`.

use super::Trace;
use super::launches::Calls;
use super::nesting::{Stack, Thread};
use super::nvtx::{Ranges, Style};
use crate::source::nsys_export::ExportError;
use crate::tables::{GRAPH_TRACE, KERNEL, MEMCPY, MEMSET};
use std::collections::{BTreeMap, HashMap};

/// Operations on GPUs taken together: from the beginning of the first to the end of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub operations: u64,
    pub start: i64,
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

    pub fn within(&self, ranges: &Ranges, threads: &[Thread]) -> Result<Vec<Option<Work>>, ExportError> {
        let mut of_range = vec![None; ranges.len()];
        let by_thread = by_thread(&self.calls, threads, |call| self.work[call].operations > 0)?;
        let (starts, ends) = (self.calls.rows().ints("start")?, self.calls.rows().ints("end")?);
        for (thread, calls) in threads.iter().zip(by_thread) {
            let mut sums = Sums::until(thread.ranges.iter().map(|range| ranges.end[*range]).collect());
            let mut later = calls.len();
            // From the last beginning to the first: all calls that are in by then begin within the range, or behind it.
            for range in thread.ranges.iter().rev() {
                while later > 0 && starts[calls[later - 1] as usize] >= ranges.start[*range] {
                    later -= 1;
                    let call = calls[later] as usize;
                    sums.add(ends[call], self.work[call]);
                }
                let sum = sums.within(ranges.end[*range]);
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

/// Of each thread its calls among those that are wanted, the earlier first.
pub fn by_thread(
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
