//! The columns of one table while its rows are read: numbers at their place in one buffer shared out among the
//! readers, texts in pieces that are concatenated.

use super::record::{Cell, Spot};
use super::repeated_texts::RepeatedTexts;
use super::scan::Wanted;
use super::shapes::Shaped;
use crate::export::type_of;
use crate::tables::ColumnType;
use polars::prelude::*;

/// One column as a whole.
pub(super) enum ColumnBuffer {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts,
    Bytes,
}

/// Some neighbouring rows of it.
pub(super) struct Share<'w> {
    values: Values<'w>,
    /// The rows without a value, counted from the share's first: most columns have none.
    holes: Vec<usize>,
}

enum Values<'w> {
    Integers(&'w mut [i64]),
    Reals(&'w mut [f64]),
    Texts(RepeatedTexts),
    Bytes(BinaryChunkedBuilder),
}

/// A share whose rows are read.
pub(super) struct Filled {
    rows: usize,
    holes: Vec<usize>,
    piece: Piece,
}

/// What does not stand in the long row.
enum Piece {
    None,
    Texts(PolarsResult<StringChunked>),
    Bytes(BinaryChunked),
}

impl ColumnBuffer {
    pub(super) fn new(kind: ColumnType, rows: usize) -> ColumnBuffer {
        match kind {
            ColumnType::Integer => ColumnBuffer::Integers(vec![0; rows]),
            ColumnType::Real => ColumnBuffer::Reals(vec![0.0; rows]),
            ColumnType::Text => ColumnBuffer::Texts,
            ColumnType::Bytes => ColumnBuffer::Bytes,
        }
    }

    /// One share after the other, of so many rows each.
    pub(super) fn shares<'w>(&'w mut self, counts: &'w [usize]) -> Box<dyn Iterator<Item = Share<'w>> + 'w> {
        let share = |values| Share { values, holes: Vec::new() };
        match self {
            ColumnBuffer::Integers(all) => Box::new(pieces(all, counts).map(Values::Integers).map(share)),
            ColumnBuffer::Reals(all) => Box::new(pieces(all, counts).map(Values::Reals).map(share)),
            ColumnBuffer::Texts => {
                Box::new(counts.iter().map(move |rows| share(Values::Texts(RepeatedTexts::new(*rows)))))
            }
            ColumnBuffer::Bytes => {
                Box::new(counts.iter().map(move |rows| {
                    share(Values::Bytes(BinaryChunkedBuilder::new(PlSmallStr::EMPTY, *rows)))
                }))
            }
        }
    }

    /// The whole column, from all its shares in their order.
    pub(super) fn finish(self, wanted: &Wanted, filled: Vec<Filled>) -> PolarsResult<Column> {
        let name = PlSmallStr::from(wanted.name);
        let rows = filled.iter().map(|filled| filled.rows).sum();
        let missing: usize = filled.iter().map(|filled| filled.holes.len()).sum();
        if missing == rows {
            return Ok(Column::full_null(name, rows, &type_of(wanted.kind)));
        }
        Ok(match self {
            ColumnBuffer::Integers(all) if missing == 0 => Int64Chunked::from_vec(name, all).into_column(),
            ColumnBuffer::Integers(all) => {
                apart(all, &filled).collect::<Int64Chunked>().with_name(name).into_column()
            }
            ColumnBuffer::Reals(all) if missing == 0 => Float64Chunked::from_vec(name, all).into_column(),
            ColumnBuffer::Reals(all) => {
                apart(all, &filled).collect::<Float64Chunked>().with_name(name).into_column()
            }
            ColumnBuffer::Texts => {
                let mut joined = StringChunked::full_null(name, 0);
                for filled in filled {
                    if let Piece::Texts(texts) = filled.piece {
                        joined.append_owned(texts?)?;
                    }
                }
                joined.rechunk().into_owned().into_column()
            }
            ColumnBuffer::Bytes => {
                let mut joined = BinaryChunked::full_null(name, 0);
                for filled in filled {
                    if let Piece::Bytes(bytes) = filled.piece {
                        joined.append_owned(bytes)?;
                    }
                }
                joined.rechunk().into_owned().into_column()
            }
        })
    }
}

fn pieces<'w, T>(all: &'w mut [T], counts: &'w [usize]) -> impl Iterator<Item = &'w mut [T]> {
    counts.iter().scan(all, |rest, count| {
        let (piece, after) = std::mem::take(rest).split_at_mut_checked(*count)?;
        *rest = after;
        Some(piece)
    })
}

/// All values in their order, `None` for each hole.
fn apart<T>(all: Vec<T>, filled: &[Filled]) -> impl Iterator<Item = Option<T>> {
    let begins = filled.iter().scan(0, |begin, filled| Some(std::mem::replace(begin, *begin + filled.rows)));
    let holes =
        filled.iter().zip(begins).flat_map(|(filled, begin)| filled.holes.iter().map(move |at| begin + at));
    let mut holes = holes.peekable();
    all.into_iter().enumerate().map(move |(at, value)| match holes.next_if_eq(&at) {
        Some(_) => None,
        None => Some(value),
    })
}

impl Share<'_> {
    /// The values of neighbouring rows from one page: those of one field, whose spots stand in the same place for each
    /// shape. Where one is not as it should be, says which row it is in.
    pub(super) fn put_all(
        &mut self,
        first: usize,
        page: &[u8],
        rows: &[Shaped],
        spots: &[Spot],
    ) -> Result<(), (usize, String)> {
        let nothing = |row| (row, "no value".to_owned());
        let cell = |row, shaped: &Shaped| {
            let record = page.get(shaped.begin as usize..).unwrap_or_default();
            let cell = spots.get(shaped.spots as usize).and_then(|spot| spot.cell(record));
            cell.ok_or_else(|| nothing(row))
        };
        let Values::Integers(all) = &mut self.values else {
            let mut rows = (first..).zip(rows);
            return rows
                .try_for_each(|(row, shaped)| self.put(row, cell(row, shaped)?).map_err(|why| (row, why)));
        };
        let places = all.get_mut(first..).unwrap_or_default();
        for (place, (row, shaped)) in places.iter_mut().zip((first..).zip(rows)) {
            let spot = spots.get(shaped.spots as usize);
            match spot.and_then(|spot| spot.integer(page, shaped.begin)) {
                Some(number) => *place = number,
                None => match cell(row, shaped)? {
                    Cell::Integer(number) => *place = number,
                    Cell::Null => self.holes.push(row),
                    other => return Err((row, not_of_type(other))),
                },
            }
        }
        Ok(())
    }

    /// Says what is wrong where the value is not of the column's type. Rows come in their order.
    pub(super) fn put(&mut self, row: usize, cell: Cell<'_>) -> Result<(), String> {
        match (&mut self.values, cell) {
            (Values::Texts(all), Cell::Null) => {
                self.holes.push(row);
                all.push_none();
            }
            (Values::Bytes(all), Cell::Null) => {
                self.holes.push(row);
                all.append_null();
            }
            (_, Cell::Null) => self.holes.push(row),
            (Values::Integers(all), Cell::Integer(number)) => set(all, row, number),
            (Values::Reals(all), Cell::Real(number)) => set(all, row, number),
            (Values::Reals(all), Cell::Integer(number)) => set(all, row, number as f64),
            (Values::Texts(all), Cell::Text(bytes) | Cell::Blob(bytes)) => {
                all.push(bytes);
            }
            (Values::Bytes(all), Cell::Text(bytes) | Cell::Blob(bytes)) => all.append_value(bytes),
            // Values of a name-and-value table may be stored as numbers.
            (Values::Texts(all), Cell::Integer(number)) => all.push(number.to_string().as_bytes()),
            (Values::Texts(all), Cell::Real(number)) => all.push(number.to_string().as_bytes()),
            (_, other) => return Err(not_of_type(other)),
        }
        Ok(())
    }

    pub(super) fn filled(self, rows: usize) -> Filled {
        let piece = match self.values {
            Values::Texts(all) => Piece::Texts(all.finish()),
            Values::Bytes(all) => Piece::Bytes(all.finish()),
            Values::Integers(_) | Values::Reals(_) => Piece::None,
        };
        Filled { rows, holes: self.holes, piece }
    }
}

fn not_of_type(cell: Cell<'_>) -> String {
    format!("unexpected type {}", cell.kind())
}

fn set<T>(all: &mut [T], row: usize, value: T) {
    if let Some(place) = all.get_mut(row) {
        *place = value;
    }
}
