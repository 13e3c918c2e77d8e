//! Each projected range as a row: as the table of statistics has it, with what was launched outside all ranges, and in
//! the columns that releases from 2024.5 on give. `projection` chooses the ranges.

use super::projection::Projected;
use super::pushpop::shallow_enough;
use super::summary::fitting;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::trace::nesting::{NestedPosition, ids, path};
use nsys::trace::projection::Work;
use nsys::trace::{Trace, pid_of, tid_of};

const NAME: &str = "nvtx_gpu_proj_trace";
const TITLE: &str = "NVTX GPU Projection Trace";

/// The ranges alone, in the columns of the table of statistics.
pub(super) fn published(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let Some(all) = Projected::read(trace)? else { return Ok(None) };
    let entries = Entries::new(&all, false)?;
    result_table(entries.older()?)
}

/// The same with the end of each projection, and with one nameless row for each thread that launched something outside
/// all its ranges.
pub(crate) fn with_rest(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let Some(all) = Projected::read(trace)? else { return Ok(None) };
    let entries = Entries::new(&all, true)?;
    let mut columns = entries.older()?;
    let ends = Column::integers("Projected End", Quantity::Nanoseconds, entries.work().map(|work| work.end));
    columns.insert(3, ends);
    result_table(columns)
}

/// The ranges alone, in the newer columns.
pub(crate) fn newer(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let Some(all) = Projected::read(trace)? else { return Ok(None) };
    result_table(Entries::new(&all, false)?.newer())
}

fn result_table(columns: Vec<Column>) -> Result<Option<ResultTable>, ExportError> {
    let result_table = ResultTable::new(NAME, TITLE, columns);
    Ok((result_table.height() > 0).then_some(result_table))
}

/// Rows to be, in their order.
struct Entries<'a> {
    all: &'a Projected,
    /// The range, if it is one; its thread, and what was launched.
    rows: Vec<(Option<usize>, i64, Work)>,
}

impl Entries<'_> {
    fn new(all: &Projected, with_rest: bool) -> Result<Entries<'_>, ExportError> {
        let tids = &all.ranges.global_tid;
        let mut rows: Vec<_> = all.work.iter().map(|(row, work)| (Some(*row), tids[*row], *work)).collect();
        if with_rest {
            rows.extend(all.outside()?.into_iter().map(|(tid, work)| (None, tid, work)));
            // The ranges are in their order already; of one beginning what has no range comes first.
            rows.sort_by_key(|(row, _, work)| (work.start, row.is_some()));
        }
        let levels = rows.iter().filter_map(|(row, ..)| Some(all.places[(*row)?]?.level));
        shallow_enough(NAME, levels)?;
        Ok(Entries { all, rows })
    }

    fn work(&self) -> impl Iterator<Item = Work> + '_ {
        self.rows.iter().map(|(.., work)| *work)
    }

    /// Of each row the values of its range.
    fn ranges<'a, T: 'a>(&'a self, value: impl Fn(usize) -> T + 'a) -> impl Iterator<Item = Option<T>> + 'a {
        self.rows.iter().map(move |(row, ..)| row.map(&value))
    }

    /// And of its place: start/end ranges have none.
    fn places<'a, T: 'a>(
        &'a self,
        value: impl Fn(NestedPosition) -> Option<T> + 'a,
    ) -> impl Iterator<Item = Option<T>> + 'a {
        self.rows.iter().map(move |(row, ..)| self.all.places[(*row)?].and_then(&value))
    }

    fn integers<'a>(&'a self, name: &str, value: impl Fn(usize) -> i64 + 'a) -> Column {
        Column::maybe_integers(name, Quantity::Plain, self.ranges(value))
    }

    fn levels(&self, name: &str) -> Column {
        Column::maybe_integers(name, Quantity::Plain, self.places(|place| Some(place.level as i64)))
    }

    fn parents(&self, name: &str) -> Column {
        let ids = &self.all.ranges.id;
        let parents = self.places(|place| place.parent.map(|parent| ids[parent]));
        Column::maybe_integers(name, Quantity::Plain, parents)
    }

    fn thread_column(&self, name: &str, value: fn(i64) -> i64) -> Column {
        Column::integers(name, Quantity::Plain, self.rows.iter().map(|(_, tid, _)| value(*tid)))
    }

    fn names(&self, name: &str) -> Column {
        Column::maybe_texts(name, self.ranges(|row| self.all.ranges.label(row)))
    }

    fn older(&self) -> Result<Vec<Column>, ExportError> {
        let (all, time) = (self.all, Quantity::Nanoseconds);
        let ranges = &all.ranges;
        let long: Result<Vec<i64>, _> = self.work().map(|work| fitting(NAME, work.ns())).collect();
        let lasted = self.ranges(|row| fitting(NAME, ranges.ns(row))).map(Option::transpose);
        let lasted: Vec<Option<i64>> = lasted.collect::<Result<_, ExportError>>()?;
        let stack = |row: usize| all.places[row].map(|_| path(ranges, &all.places, row));
        // What was launched outside has no children either, and that is known.
        let children = self.rows.iter().map(|(row, ..)| row.map_or(0, |row| all.children[row]));
        Ok(vec![
            self.names("Name"),
            Column::integers("Projected Start", time, self.work().map(|work| work.start)),
            Column::integers("Projected Duration", time, long?),
            Column::maybe_integers("Orig Start", time, self.ranges(|row| ranges.start[row])),
            Column::maybe_integers("Orig Duration", time, lasted),
            Column::maybe_texts("Style", self.ranges(|row| ranges.style[row].name())),
            self.thread_column("PID", pid_of),
            self.thread_column("TID", tid_of),
            Column::integers("NumGPUOps", Quantity::Plain, self.work().map(|work| work.operations as i64)),
            self.levels("Lvl"),
            Column::integers("NumChild", Quantity::Plain, children),
            self.integers("RangeId", |row| ranges.id[row]),
            self.parents("ParentId"),
            Column::maybe_texts("RangeStack", self.ranges(stack).map(Option::flatten)),
        ])
    }

    fn newer(&self) -> Vec<Column> {
        let (all, time) = (self.all, Quantity::Nanoseconds);
        let ranges = &all.ranges;
        let stack = |row: usize| all.places[row].map(|_| ids(ranges, &all.places, row));
        vec![
            self.names("Text"),
            Column::integers("Start", time, self.work().map(|work| work.start)),
            Column::integers("End", time, self.work().map(|work| work.end)),
            self.integers("Children Count", |row| all.children[row]),
            self.integers("Range ID", |row| ranges.id[row]),
            self.parents("Parent ID"),
            self.thread_column("PID", pid_of),
            Column::maybe_lists("Range Stack", self.ranges(stack).map(Option::flatten)),
            self.levels("Stack Level"),
            self.thread_column("TID", tid_of),
        ]
    }
}
