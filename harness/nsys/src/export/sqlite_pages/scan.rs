//! All rows of one table: its leaves are shared out to all cores, and each row is written to its place in the columns.

use super::super::Fault;
use super::columns::{ColumnBuffer, Filled, Share};
use super::file::{PageFile, VisitedPages};
use super::leaf::{ReadError, Reader};
use super::tree::{self, Branch};
use crate::regular_file::CHANGED;
use crate::tables::ColumnType;
use polars::prelude::*;
use rayon::prelude::*;

/// A column that is asked for, and is there.
pub(super) struct Wanted {
    pub name: &'static str,
    pub kind: ColumnType,
    pub from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The number of the row itself, which its record does not repeat.
    RowNumber,
    /// `real` where whole numbers stand for reals, which are stored so to save room.
    Field { at: usize, real: bool },
}

/// How much one core goes through at a time.
const PART_BYTES: usize = 2 << 20;
/// How much is read at a time: little enough that it is still near when its rows are read.
const RUN_BYTES: usize = 256 << 10;
/// Pages of other tables between two of this one are read along where they are no more than this.
const GAP_BYTES: usize = 32 << 10;

pub(super) fn table(file: &PageFile, root: u32, wanted: &[Wanted]) -> Result<DataFrame, Fault> {
    for counting in [Counting::ByNumbers, Counting::OfCells] {
        let visited = VisitedPages::new(file);
        let leaves = tree::leaves(file, root, &visited).map_err(Fault::Broken)?;
        let Some(counts) = counting.counts(file, &leaves) else { continue };
        if let Some(frame) = whole(file, &visited, &leaves, &counts, wanted)? {
            return Ok(frame);
        }
    }
    Err(Fault::Broken(trouble(file, root, wanted)))
}

/// How it is known where in the columns the rows of a page belong, before all others are read.
enum Counting {
    ByNumbers,
    OfCells,
}

impl Counting {
    /// The rows of each leaf, as far as can be said.
    fn counts(&self, file: &PageFile, leaves: &[Branch]) -> Option<Vec<usize>> {
        match self {
            Counting::ByNumbers => tree::expected(file, leaves),
            Counting::OfCells => leaves.par_iter().map(|leaf| tree::count(file, leaf.page).ok()).collect(),
        }
    }
}

/// `None` where some leaf cannot be read, or has not as many rows as it should.
fn whole(
    file: &PageFile,
    visited: &VisitedPages,
    leaves: &[Branch],
    counts: &[usize],
    wanted: &[Wanted],
) -> Result<Option<DataFrame>, Fault> {
    let length = (PART_BYTES / file.page_size).max(1);
    let rows_of_parts: Vec<usize> = counts.chunks(length).map(|counts| counts.iter().sum()).collect();
    let height = rows_of_parts.iter().sum();
    let mut columns: Vec<ColumnBuffer> =
        wanted.iter().map(|wanted| ColumnBuffer::new(wanted.kind, height)).collect();
    let mut shares: Vec<_> = columns.iter_mut().map(|column| column.shares(&rows_of_parts)).collect();
    let parts = leaves.chunks(length).zip(&rows_of_parts);
    let parts: Vec<(&[Branch], usize, Vec<Share>)> = parts
        .map(|(leaves, rows)| (leaves, *rows, shares.iter_mut().filter_map(Iterator::next).collect()))
        .collect();
    drop(shares);
    let read = parts.into_par_iter().map_init(Vec::new, |buffer, (leaves, rows, shares)| {
        part(file, leaves, Reader::new(file, visited, wanted, shares, rows), buffer)
    });
    let Ok(filled) = read.collect::<Result<Vec<Vec<Filled>>, ReadError>>() else { return Ok(None) };
    let mut of_columns: Vec<Vec<Filled>> = wanted.iter().map(|_| Vec::new()).collect();
    for filled in filled {
        for (all, filled) in of_columns.iter_mut().zip(filled) {
            all.push(filled);
        }
    }
    let finished = columns.into_par_iter().zip(of_columns).zip(wanted);
    let finished = finished.map(|((column, filled), wanted)| column.finish(wanted, filled));
    Ok(Some(DataFrame::new(height, finished.collect::<Result<_, _>>()?)?))
}

fn part(
    file: &PageFile,
    leaves: &[Branch],
    mut reader: Reader,
    buffer: &mut Vec<u8>,
) -> Result<Vec<Filled>, ReadError> {
    let mut rest = leaves;
    while let Some(first) = rest.first() {
        let (run, after) = rest.split_at(run(rest, file.page_size));
        let last = run.last().unwrap_or(first).page;
        let bytes = file.run(first.page, last - first.page + 1, buffer).map_err(ReadError::File)?;
        for leaf in run {
            let at = (leaf.page - first.page) as usize * file.page_size;
            reader.page(bytes.get(at..at + file.page_size).unwrap_or_default(), leaf.page)?;
        }
        rest = after;
    }
    reader.finish()
}

/// How many of the leaves, from the first on, lie so near to each other that one read serves them.
fn run(leaves: &[Branch], page_size: usize) -> usize {
    let far = |pages: u32, limit: usize| pages as usize > limit / page_size;
    let first = leaves.first().map_or(0, |first| first.page);
    let near = leaves.windows(2).take_while(|pair| match *pair {
        [before, next] => {
            next.page > before.page
                && !far(next.page - before.page - 1, GAP_BYTES)
                && !far(next.page - first + 1, RUN_BYTES)
        }
        _ => false,
    });
    near.count() + 1
}

/// What is wrong with a table that could not be read. It is re-read, leaf after leaf and row after row: which of two
/// rows came first to a page that both lead to depends on the cores, and a message may not.
fn trouble(file: &PageFile, root: u32, wanted: &[Wanted]) -> String {
    let visited = VisitedPages::new(file);
    let leaves = match tree::leaves(file, root, &visited) {
        Ok(leaves) => leaves,
        Err(why) => return why,
    };
    let mut rows = 0;
    let mut buffer = Vec::new();
    for leaf in leaves {
        let count = match tree::count(file, leaf.page) {
            Ok(count) => count,
            Err(why) => return why,
        };
        let mut columns: Vec<ColumnBuffer> =
            wanted.iter().map(|wanted| ColumnBuffer::new(wanted.kind, count)).collect();
        let counts = [count];
        let shares = columns.iter_mut().filter_map(|column| column.shares(&counts).next()).collect();
        let reader = Reader::new(file, &visited, wanted, shares, count).row_by_row();
        match part(file, &[leaf], reader, &mut buffer) {
            Ok(_) => rows += count,
            Err(ReadError::Row(row, why)) => return format!("row {}{why}", rows + row + 1),
            Err(ReadError::File(why)) => return why,
            Err(ReadError::Miscounted) => break,
        }
    }
    CHANGED.to_owned()
}
