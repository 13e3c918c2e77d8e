//! The values of one column, as they are gathered from some pages: numbers beside each other, texts in one buffer.

use super::record::Cell;
use crate::tables::Kind;
use polars::prelude::*;

pub(super) enum Values {
    Integers(Vec<i64>, Holes),
    Reals(Vec<f64>, Holes),
    Texts(StringChunkedBuilder),
}

/// The rows without a value: most columns have none, and then nothing is kept for it.
#[derive(Default)]
pub(super) struct Holes(Vec<usize>);

impl Values {
    pub fn of(kind: Kind) -> Values {
        match kind {
            Kind::Integer => Values::Integers(Vec::new(), Holes::default()),
            Kind::Real => Values::Reals(Vec::new(), Holes::default()),
            Kind::Text => Values::Texts(StringChunkedBuilder::new(PlSmallStr::EMPTY, 0)),
        }
    }

    pub fn reserve(&mut self, rows: usize) {
        match self {
            Values::Integers(all, _) => all.reserve(rows),
            Values::Reals(all, _) => all.reserve(rows),
            Values::Texts(_) => {}
        }
    }

    /// Says what is wrong where the value is not of the column's type.
    pub fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        match (self, cell) {
            (Values::Integers(all, _), Cell::Integer(number)) => all.push(number),
            (Values::Integers(all, holes), Cell::Null) => {
                holes.0.push(all.len());
                all.push(0);
            }
            (Values::Reals(all, _), Cell::Real(number)) => all.push(number),
            (Values::Reals(all, _), Cell::Integer(number)) => all.push(number as f64),
            (Values::Reals(all, holes), Cell::Null) => {
                holes.0.push(all.len());
                all.push(0.0);
            }
            (Values::Texts(all), Cell::Text(bytes) | Cell::Blob(bytes)) => {
                all.append_value(String::from_utf8_lossy(bytes));
            }
            // Values of a name-and-value table may be stored as numbers.
            (Values::Texts(all), Cell::Integer(number)) => all.append_value(number.to_string()),
            (Values::Texts(all), Cell::Real(number)) => all.append_value(number.to_string()),
            (Values::Texts(all), Cell::Null) => all.append_null(),
            (_, other) => return Err(format!("not of its column's type: {}", other.kind())),
        }
        Ok(())
    }

    pub fn finish(self, name: &str) -> Column {
        let name = PlSmallStr::from(name);
        match self {
            Values::Integers(all, holes) => {
                let found: Int64Chunked = match holes.0.len() {
                    0 => Int64Chunked::from_vec(name, all),
                    count if count == all.len() => Int64Chunked::full_null(name, count),
                    _ => holes.apart(all).collect::<Int64Chunked>().with_name(name),
                };
                found.into_column()
            }
            Values::Reals(all, holes) => {
                let found: Float64Chunked = match holes.0.len() {
                    0 => Float64Chunked::from_vec(name, all),
                    count if count == all.len() => Float64Chunked::full_null(name, count),
                    _ => holes.apart(all).collect::<Float64Chunked>().with_name(name),
                };
                found.into_column()
            }
            Values::Texts(all) => all.finish().with_name(name).into_column(),
        }
    }
}

impl Holes {
    /// All values in their order, `None` for each hole.
    fn apart<T>(self, all: Vec<T>) -> impl Iterator<Item = Option<T>> {
        let mut holes = self.0.into_iter().peekable();
        all.into_iter().enumerate().map(move |(at, value)| match holes.next_if_eq(&at) {
            Some(_) => None,
            None => Some(value),
        })
    }
}
