//! Kernels, copies and fills of memory and CUDA calls that a table holds twice, as where rows of an export were put in
//! again: one launch of one node is one row. Else a second row would double its time without a sign.

use super::Rows;
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

/// Rows that are alike in all columns that were read. Without a launch to name, or a span of time, a row proves nothing:
/// CUPTI writes start and end as 0 where it runs out of memory (<https://github.com/parca-dev/parcagpu/issues/23>).
pub(super) fn find(rows: &Rows) -> Option<Copies> {
    let starts = rows.ints("start").ok()?;
    // Exports write them in this order, so that mostly one look is all.
    if starts.is_sorted_by(|before, after| before < after) {
        return None;
    }
    let columns: PolarsResult<Vec<&Int64Chunked>> =
        rows.frame().columns().iter().map(|column| column.i64()).collect();
    let columns = columns.ok()?;
    let read = |name: &str| columns.iter().find(|column| column.name().as_str() == name).copied();
    let (ends, launches, threads) = (read("end"), read("correlationId"), read("globalTid"));
    let proves = |row: usize| {
        let lasts = ends.is_none_or(|ends| ends.get(row).is_some_and(|end| end > starts[row]));
        let is_launched = launches.is_none_or(|launches| launches.get(row).is_some_and(|launch| launch != 0));
        // Processes count their calls apart.
        lasts && is_launched && threads.is_none_or(|threads| threads.get(row).is_some())
    };
    let compare = |one: usize, other: usize| {
        let mut differences = columns.iter().map(|column| column.get(one).cmp(&column.get(other)));
        let by_start = starts[one].cmp(&starts[other]);
        by_start.then_with(|| differences.find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
    };
    // Four bytes a row and sorted in place: a table made to have all rows alike takes no more room than another.
    let count = u32::try_from(starts.len()).ok()?;
    let mut order: Vec<u32> = (0..count).filter(|row| proves(*row as usize)).collect();
    order.sort_unstable_by(|one, other| compare(*one as usize, *other as usize).then(one.cmp(other)));
    let mut copies: Option<Copies> = None;
    for alike in order.chunk_by(|one, other| compare(*one as usize, *other as usize).is_eq()) {
        let [first, again, ..] = alike else { continue };
        let found = Copies { first: *first as usize + 1, again: *again as usize + 1, count: alike.len() - 1 };
        let before = copies.map_or(0, |copies| copies.count);
        let earliest = copies.filter(|copies| copies.again < found.again).unwrap_or(found);
        copies = Some(Copies { count: before + found.count, ..earliest });
    }
    copies
}
