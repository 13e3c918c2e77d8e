//! Kernels, copies and fills of memory and CUDA calls that a table holds twice, as where rows of an export were put in
//! again: one launch of one node is one row. Else a second row would double its time without a sign.
//!
//! Rows that are alike in some columns are compared in a few more at a time. Beside these, ten bytes of a row are held at
//! most, whatever stands in the table.

use super::Rows;
use crate::tables::{ColumnSpec, TableSpec};
use polars::prelude::*;
use std::cmp::Ordering;

/// Numbers of rows count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copies {
    first: usize,
    again: usize,
    count: usize,
}

impl std::fmt::Display for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Copies { first, again, count } = self;
        write!(f, "row {again} repeats row {first}, {count} such rows: export the report again")
    }
}

/// Rows that are alike in all columns that were compared: sets of two or more, one behind another.
pub(super) struct Alike {
    rows: Vec<u32>,
    /// Whether a set begins there; without any, all rows are one set.
    begins: Vec<bool>,
}

/// The column without which no row proves anything.
pub(super) const LAUNCH: &str = "correlationId";

/// Two launches differ in one of these nearly always: mostly no other column is read.
const FIRST: [&str; 4] = ["end", LAUNCH, "deviceId", "graphNodeId"];

/// So many columns are read at a time.
const AT_ONCE: usize = 4;

/// The columns of a table that were not compared yet, a few at a time.
pub(super) fn further(spec: &'static TableSpec, compared: &Rows) -> Vec<Vec<&'static ColumnSpec>> {
    let is_open = |column: &&ColumnSpec| compared.frame().column(column.name).is_err();
    let mut open: Vec<&'static ColumnSpec> = spec.columns.iter().filter(is_open).collect();
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    open.sort_by_key(|column| place(column.name));
    open.chunks(AT_ONCE).map(<[_]>::to_vec).collect()
}

/// Rows that are alike in all columns that were read; none where each is another.
pub(super) fn alike(rows: &Rows) -> Option<Alike> {
    let starts = rows.ints("start").ok()?;
    // Exports write them in this order, so that mostly one look is all.
    if starts.is_sorted_by(|before, after| before < after) {
        return None;
    }
    let all = (0..starts.len()).map_while(|row| u32::try_from(row).ok()).collect();
    Alike { rows: all, begins: Vec::new() }.narrowed(rows.frame(), starts)
}

impl Alike {
    /// Those that are alike in the columns of this frame, too, which is as long as their table. Without a launch to name,
    /// or a span of time, a row proves nothing: CUPTI writes start and end as 0 where it runs out of memory
    /// (<https://github.com/parca-dev/parcagpu/issues/23>).
    pub(super) fn narrowed(mut self, frame: &DataFrame, starts: &[i64]) -> Option<Alike> {
        let columns: PolarsResult<Vec<&Int64Chunked>> =
            frame.columns().iter().map(|column| column.i64()).collect();
        let columns = columns.ok()?;
        let read = |name: &str| columns.iter().find(|column| column.name().as_str() == name).copied();
        let (ends, launches, threads) = (read("end"), read(LAUNCH), read("globalTid"));
        let proves = |row: usize| {
            let lasts = ends.is_none_or(|ends| ends.get(row).is_some_and(|end| end > starts[row]));
            let is_launched =
                launches.is_none_or(|launches| launches.get(row).is_some_and(|launch| launch != 0));
            // Processes count their calls apart.
            lasts && is_launched && threads.is_none_or(|threads| threads.get(row).is_some())
        };
        let order = |one: &u32, other: &u32| {
            let (one, other) = (*one as usize, *other as usize);
            starts[one].cmp(&starts[other]).then_with(|| compare(&columns, one, other))
        };
        let mut found = Alike { rows: Vec::new(), begins: Vec::new() };
        let mut from = 0;
        while from < self.rows.len() {
            let behind = self.begins.get(from + 1..).unwrap_or_default();
            let length = behind.iter().position(|begins| *begins).map_or(self.rows.len() - from, |at| at + 1);
            let set = self.rows.get_mut(from..from + length).unwrap_or_default();
            set.sort_unstable_by(|one, other| order(one, other).then(one.cmp(other)));
            for same in set.chunk_by(|one, other| order(one, other) == Ordering::Equal) {
                // Of rows that are alike each proves something, or none does.
                if same.len() > 1 && proves(same[0] as usize) {
                    found.rows.extend_from_slice(same);
                    found.begins.extend((0..same.len()).map(|at| at == 0));
                }
            }
            from += length;
        }
        (!found.rows.is_empty()).then_some(found)
    }

    /// The first row of the file that repeats another, and how many there are beside the first of each set.
    pub(super) fn copies(&self) -> Option<Copies> {
        let sets = self.begins.iter().enumerate().filter(|(_, begins)| **begins);
        let pairs = sets.filter_map(|(at, _)| Some((*self.rows.get(at + 1)?, *self.rows.get(at)?)));
        let (again, first) = pairs.min()?;
        let count = self.begins.iter().filter(|begins| !**begins).count();
        Some(Copies { first: first as usize + 1, again: again as usize + 1, count })
    }
}

fn compare(columns: &[&Int64Chunked], one: usize, other: usize) -> Ordering {
    let mut orders = columns.iter().map(|column| column.get(one).cmp(&column.get(other)));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
