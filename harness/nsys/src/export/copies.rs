//! Kernels, copies and fills of memory that a table holds twice, as where rows of an export were put in again: one launch
//! of one node is one row. Else a second row would double its time without a sign.

use super::Rows;
use polars::prelude::*;
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};

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
    let (ends, launches) = (read("end"), read("correlationId"));
    let proves = |row: usize| {
        let lasts = ends.is_none_or(|ends| ends.get(row).is_some_and(|end| end > starts[row]));
        lasts && launches.is_none_or(|launches| launches.get(row).is_some_and(|launch| launch != 0))
    };
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_key(|row| starts[*row]);
    let mut copies: Option<Copies> = None;
    for group in order.chunk_by(|one, other| starts[*one] == starts[*other]).filter(|group| group.len() > 1) {
        let mut known: HashMap<u64, usize> = HashMap::new();
        for row in group.iter().copied().filter(|row| proves(*row)) {
            let mut hasher = DefaultHasher::new();
            columns.iter().for_each(|column| column.get(row).hash(&mut hasher));
            match known.entry(hasher.finish()) {
                Entry::Vacant(place) => {
                    place.insert(row);
                }
                Entry::Occupied(place) => {
                    let first = *place.get();
                    if columns.iter().all(|column| column.get(row) == column.get(first)) {
                        let found = Copies { first: first + 1, again: row + 1, count: 0 };
                        copies.get_or_insert(found).count += 1;
                    }
                }
            }
        }
    }
    copies
}
