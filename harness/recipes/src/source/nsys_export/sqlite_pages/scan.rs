//! All rows of one table: its leaves are shared out to all cores, and what each finds is put together in their order.

use super::super::Fault;
use super::file::{PageFile, Seen};
use super::leaf::{Reader, Trouble};
use super::tree;
use crate::source::nsys_export::type_of;
use crate::tables::Kind;
use polars::prelude::*;
use rayon::prelude::*;

/// A column that is asked for.
pub(super) struct Wanted {
    pub name: &'static str,
    pub kind: Kind,
    pub from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The table has none of this name.
    Nowhere,
    /// The number of the row itself, which its record does not repeat.
    RowNumber,
    /// `real` where whole numbers stand for reals, which are stored so to save room.
    Field { at: usize, real: bool },
}

/// How much is read at a time.
const RUN_BYTES: usize = 1 << 20;
/// Pages of other tables between two of this one are read along where they are no more than this.
const GAP_BYTES: usize = 32 * 1024;

pub(super) fn table(file: &PageFile, root: u32, wanted: &[Wanted]) -> Result<DataFrame, Fault> {
    let seen = Seen::new(file);
    let leaves = tree::leaves(file, root, &seen).map_err(Fault::Broken)?;
    let tasks = leaves.par_chunks((RUN_BYTES / file.page_size).max(1));
    // All are waited for: the first to fail in time need not be the first in the table.
    let parts: Vec<Result<Part, Trouble>> =
        tasks.map_init(Vec::new, |buffer, leaves| part(file, &seen, leaves, wanted, buffer)).collect();
    let parts: Result<Vec<Part>, Trouble> = parts.into_iter().collect();
    let Ok(parts) = parts else { return Err(Fault::Broken(trouble(file, root, wanted))) };
    let height = parts.iter().map(|part| part.rows).sum();
    let mut of_columns: Vec<Vec<Column>> = wanted.iter().map(|_| Vec::new()).collect();
    for part in parts {
        for (all, column) in of_columns.iter_mut().zip(part.columns) {
            all.push(column);
        }
    }
    let joined = of_columns.into_par_iter().zip(wanted).map(|(parts, wanted)| join(parts, wanted, height));
    Ok(DataFrame::new(height, joined.collect::<Result<_, _>>()?)?)
}

/// What some neighbouring leaves hold.
struct Part {
    rows: usize,
    columns: Vec<Column>,
}

fn part(
    file: &PageFile,
    seen: &Seen,
    leaves: &[u32],
    wanted: &[Wanted],
    buffer: &mut Vec<u8>,
) -> Result<Part, Trouble> {
    let mut reader = Reader::new(file, seen, wanted);
    let mut rest = leaves;
    while let Some(first) = rest.first() {
        let (run, after) = rest.split_at(run(rest, file.page_size));
        let last = run.last().unwrap_or(first);
        let bytes = file.run(*first, last - first + 1, buffer).map_err(Trouble::File)?;
        for leaf in run {
            let at = (leaf - first) as usize * file.page_size;
            reader.page(bytes.get(at..at + file.page_size).unwrap_or_default(), *leaf)?;
            if reader.rows > 0 && leaves.first() == Some(leaf) {
                // Leaves of one table have about as many rows each.
                reader.reserve(reader.rows * (leaves.len() - 1));
            }
        }
        rest = after;
    }
    let columns = reader.values.into_iter().zip(wanted).map(|(values, wanted)| values.finish(wanted.name));
    Ok(Part { rows: reader.rows, columns: columns.collect() })
}

/// How many of the leaves, from the first on, lie so near to each other that one read serves them.
fn run(leaves: &[u32], page_size: usize) -> usize {
    let far = |pages: u32, limit: usize| pages as usize > limit / page_size;
    let first = leaves.first().copied().unwrap_or_default();
    let near = leaves.windows(2).take_while(|pair| match *pair {
        [before, next] => {
            next > before && !far(next - before - 1, GAP_BYTES) && !far(next - first + 1, RUN_BYTES)
        }
        _ => false,
    });
    near.count() + 1
}

fn join(parts: Vec<Column>, wanted: &Wanted, height: usize) -> PolarsResult<Column> {
    if wanted.from == From::Nowhere {
        return Ok(Column::full_null(wanted.name.into(), height, &type_of(wanted.kind)));
    }
    let mut parts = parts.into_iter();
    let Some(mut joined) = parts.next() else {
        return Ok(Column::new_empty(wanted.name.into(), &type_of(wanted.kind)));
    };
    for part in parts {
        joined.append_owned(part)?;
    }
    Ok(joined.rechunk())
}

/// What is wrong with a table that could not be read. It is read once more, row after row: which of two rows came first
/// to a page that both lead to depends on the cores, and a message may not.
fn trouble(file: &PageFile, root: u32, wanted: &[Wanted]) -> String {
    let seen = Seen::new(file);
    let leaves = match tree::leaves(file, root, &seen) {
        Ok(leaves) => leaves,
        Err(why) => return why,
    };
    let mut rows = 0;
    let mut buffer = Vec::new();
    for leaf in leaves {
        match part(file, &seen, &[leaf], wanted, &mut buffer) {
            Ok(part) => rows += part.rows,
            Err(Trouble::File(why)) => return why,
            Err(Trouble::Row(row, why)) => return format!("row {}{why}", rows + row + 1),
        }
    }
    "it was changed while it was read".to_owned()
}
