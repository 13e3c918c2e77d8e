//! Which CUDA call launched which GPU work, matched by process and correlation id. Reports and the filter by ranges
//! share it; `projection` finds what lies within a range.

use super::{Trace, process_of};
use crate::export::{Export, ExportError, Rows};
use crate::tables::RUNTIME;
use std::collections::HashMap;

/// The calls of a whole report: a filter decides over what was launched, and not over the call.
pub struct Calls {
    rows: Rows,
    processes: HashMap<i64, Index>,
    /// Of each call the next one of its process and correlation; empty where every call has its own.
    next: Vec<u32>,
    backwards: usize,
}

/// One operation on a GPU and one call that it belongs to, as rows of their tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Row of the rows that were passed to `Calls::launches`.
    pub operation: u32,
    /// Row of `Calls::rows`.
    pub call: u32,
}

const NO_CALL: u32 = u32::MAX;

/// The first call of each correlation of one process.
enum Index {
    /// Correlations are counted up, so that a list of them has few holes.
    Listed { from: i64, first: Vec<u32> },
    /// Where they are not.
    Scattered(HashMap<i64, u32>),
}

/// A list may have this many places for each call.
const PLACES_PER_CALL: i128 = 8;

impl Index {
    fn new(least: i64, most: i64, calls: usize) -> Index {
        let places = i128::from(most) - i128::from(least) + 1;
        if places <= PLACES_PER_CALL * calls as i128 + 1024 {
            return Index::Listed { from: least, first: vec![NO_CALL; places as usize] };
        }
        Index::Scattered(HashMap::with_capacity(calls))
    }

    #[inline]
    fn first(&self, correlation: i64) -> Option<u32> {
        let call = match self {
            Index::Listed { from, first } => {
                usize::try_from(correlation.checked_sub(*from)?).ok().and_then(|at| first.get(at)).copied()
            }
            Index::Scattered(first) => first.get(&correlation).copied(),
        };
        call.filter(|call| *call != NO_CALL)
    }

    /// Puts a call before those that are there.
    fn put(&mut self, correlation: i64, call: u32) -> Option<u32> {
        let before = match self {
            // Only correlations that the list was made for are put.
            Index::Listed { from, first } => {
                std::mem::replace(&mut first[(correlation - *from) as usize], call)
            }
            Index::Scattered(first) => first.insert(correlation, call).unwrap_or(NO_CALL),
        };
        (before != NO_CALL).then_some(before)
    }
}

/// The columns that identify a call; others are asked for by name.
const NEEDED: [&str; 4] = ["start", "end", "globalTid", "correlationId"];

impl Calls {
    /// `None` where the report has no calls. Calls that end before they begin launched nothing; a note counts them.
    pub fn read(trace: &Trace, columns: &[&str]) -> Result<Option<Calls>, ExportError> {
        let calls = Calls::from_export(trace.export(), columns)?;
        if let Some(calls) = &calls {
            trace.note_backwards("CUDA calls", calls.backwards);
        }
        Ok(calls)
    }

    pub(super) fn from_export(export: &Export, columns: &[&str]) -> Result<Option<Calls>, ExportError> {
        let asked: Vec<&str> = NEEDED.iter().chain(columns).copied().collect();
        let Some(rows) = export.columns(&RUNTIME, &asked)? else { return Ok(None) };
        if u32::try_from(rows.len()).is_err() {
            let why = format!("more than 4294967295 rows: {}", rows.len());
            return Err(ExportError::Broken { table: RUNTIME.name, why });
        }
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let (tids, ids) = (rows.maybe_ints("globalTid")?, rows.maybe_ints("correlationId")?);
        let known = |row: usize| {
            let (process, id) = (process_of(tids.get(row)?), ids.get(row)?);
            (ends[row] >= starts[row]).then_some((process, id))
        };
        let mut spans = Spans::default();
        for row in 0..rows.len() {
            if let Some((process, id)) = known(row) {
                spans.take(process, id);
            }
        }
        let mut processes: HashMap<i64, Index> = spans.indexes();
        let mut next = Vec::new();
        // From the last call to the first, so that a chain of calls begins with the first one.
        let mut row = rows.len();
        while row > 0 {
            // One process after the other, looked up once where its calls stand together.
            let Some((process, _)) = known(row - 1) else {
                row -= 1;
                continue;
            };
            let Some(index) = processes.get_mut(&process) else {
                row -= 1;
                continue;
            };
            while let Some((_, id)) =
                row.checked_sub(1).and_then(known).filter(|(other, _)| *other == process)
            {
                row -= 1;
                if let Some(later) = index.put(id, row as u32) {
                    if next.is_empty() {
                        next = vec![NO_CALL; rows.len()];
                    }
                    next[row] = later;
                }
            }
        }
        let backwards = starts.iter().zip(ends).filter(|(start, end)| end < start).count();
        Ok(Some(Calls { rows, processes, next, backwards }))
    }

    /// Every CUDA call of the report, whatever the filter.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The calls of one correlation, in the order of their rows.
    pub fn with_correlation(&self, process: i64, correlation: i64) -> impl Iterator<Item = usize> + '_ {
        self.chain(self.processes.get(&process), correlation)
    }

    fn chain<'a>(&'a self, index: Option<&Index>, correlation: i64) -> impl Iterator<Item = usize> + 'a {
        let first = index.and_then(|index| index.first(correlation));
        let calls = std::iter::successors(first, |call| {
            self.next.get(*call as usize).copied().filter(|next| *next != NO_CALL)
        });
        calls.map(|call| call as usize)
    }

    /// Every operation with every call of its correlation, in the order of the operations. Operations without a call and
    /// operations that end before they begin have none; notes count them as `what`.
    pub fn launches(&self, trace: &Trace, what: &str, operations: &Rows) -> Result<Vec<Launch>, ExportError> {
        let (starts, ends) = (operations.ints("start")?, operations.ints("end")?);
        let (pids, ids) = (operations.maybe_ints("globalPid")?, operations.maybe_ints("correlationId")?);
        let most = MOST_PER_ROW * (operations.len() + self.rows.len());
        let mut launches = Vec::with_capacity(operations.len());
        let (mut backwards, mut lost) = (0, 0);
        let mut of_last: Option<(i64, Option<&Index>)> = None;
        for row in 0..operations.len() {
            if ends[row] < starts[row] {
                backwards += 1;
                continue;
            }
            let before = launches.len();
            if let (Some(pid), Some(id)) = (pids.get(row), ids.get(row)) {
                let index = match of_last {
                    Some((last, index)) if last == pid => index,
                    _ => self.processes.get(&pid),
                };
                of_last = Some((pid, index));
                for call in self.chain(index, id) {
                    launches.push(Launch { operation: row as u32, call: call as u32 });
                }
            }
            lost += usize::from(launches.len() == before);
            if launches.len() > most {
                let why = format!(
                    "too many {what} and calls share correlation {}",
                    ids.get(row).unwrap_or_default()
                );
                return Err(ExportError::Broken { table: RUNTIME.name, why });
            }
        }
        trace.note_backwards(what, backwards);
        if lost > 0 {
            trace.note(format!("{what}: rows whose call is not in the report, left out: {lost}"));
        }
        Ok(launches)
    }
}

/// A sound report has hardly more launches than rows; one in which all share a number has the product of both.
const MOST_PER_ROW: usize = 16;

/// Of each process its least and its greatest correlation, and how many calls it has.
#[derive(Default)]
struct Spans {
    of_process: HashMap<i64, usize>,
    spans: Vec<(i64, i64, i64, usize)>,
    last: usize,
}

impl Spans {
    fn take(&mut self, process: i64, id: i64) {
        if self.spans.get(self.last).is_none_or(|span| span.0 != process) {
            let fresh = self.spans.len();
            self.last = *self.of_process.entry(process).or_insert(fresh);
            if self.last == fresh {
                self.spans.push((process, id, id, 0));
            }
        }
        let (_, least, most, calls) = &mut self.spans[self.last];
        (*least, *most, *calls) = ((*least).min(id), (*most).max(id), *calls + 1);
    }

    fn indexes(self) -> HashMap<i64, Index> {
        self.spans
            .into_iter()
            .map(|(process, least, most, n)| (process, Index::new(least, most, n)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::KERNEL;
    use crate::testing::{Made, PROCESS};

    fn launches(made: &Made) -> Result<Vec<(u32, u32)>, ExportError> {
        let trace = made.trace();
        let calls = Calls::read(&trace, &[]).expect("read").expect("calls");
        let kernels = trace.export().columns(&KERNEL, &["start", "end", "correlationId", "globalPid"]);
        let launches = calls.launches(&trace, "kernels", &kernels.expect("read").expect("kernels"))?;
        Ok(launches.iter().map(|launch| (launch.operation, launch.call)).collect())
    }

    #[test]
    fn correlations_meet_whether_they_are_counted_up_or_scattered() {
        for ids in [[1, 2, 3, 4], [i64::MIN, -1, 0, i64::MAX], [7, 8, 8, 7], [0, 1 << 40, 5, 1 << 40]] {
            let made = Made::begin();
            for (start, id) in (0..).zip(ids) {
                made.call((start, start + 1), 3, id, 1);
            }
            for (start, id) in (5..).zip(ids.iter().rev().chain(&[i64::MIN + 1, i64::MAX - 1, 9])) {
                made.kernel((start, start + 1), *id, 1);
            }
            let mut expected = Vec::new();
            for (kernel, id) in ids.iter().rev().enumerate() {
                let calls = (0u32..4).filter(|call| ids[*call as usize] == *id);
                expected.extend(calls.map(|call| (kernel as u32, call)));
            }
            assert_eq!(launches(&made).expect("few"), expected, "{ids:?}");
        }
    }

    #[test]
    fn rows_without_a_correlation_or_a_process_meet_nothing() {
        let made = Made::begin();
        let [start, end, name] = ["start", "end", "nameId"].map(|column| (column, 1i64.into()));
        made.put(&RUNTIME, &[start.clone(), end.clone(), name.clone(), ("correlationId", 1i64.into())]);
        made.put(&RUNTIME, &[start, end, name, ("globalTid", PROCESS.into())]);
        made.kernel((5, 6), 1, 1);
        assert_eq!(launches(&made), Ok(Vec::new()));
    }

    #[test]
    fn a_number_that_everything_shares_is_an_error_and_no_endless_work() {
        let made = Made::begin();
        for _ in 0..200 {
            made.call((0, 1), 3, 0, 1).kernel((5, 6), 0, 1);
        }
        let error = launches(&made).expect_err("40,000 pairs").to_string();
        assert!(error.contains("too many kernels and calls share correlation 0"), "{error}");
    }
}
