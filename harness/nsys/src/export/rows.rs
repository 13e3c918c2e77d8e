//! The rows of one table, column by column, as recipes read them.

use super::ExportError;
use crate::tables::{ColumnSpec, TableSpec};
use polars::prelude::*;

/// At least one row, of the columns that were asked for.
#[derive(Debug)]
pub struct Rows {
    spec: &'static TableSpec,
    frame: DataFrame,
    /// Where only some rows were kept: which of the table's.
    kept: Option<Vec<usize>>,
}

impl Rows {
    pub(super) fn new(spec: &'static TableSpec, mut frame: DataFrame) -> Rows {
        // One piece per column, so that a loop over it is a loop over one slice.
        frame.rechunk_mut();
        Rows { spec, frame, kept: None }
    }

    /// How many there are; never none.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.frame.height()
    }

    /// The number of a row in its table, from 1, also where others were left out.
    pub(crate) fn number(&self, row: usize) -> i64 {
        self.kept.as_ref().map_or(row, |kept| kept[row]) as i64 + 1
    }

    /// The rows marked so; `None` where none is left.
    pub(crate) fn keeping(self, marked: &[bool]) -> Result<Option<Rows>, ExportError> {
        let mask = BooleanChunked::from_slice(PlSmallStr::EMPTY, marked);
        let mut frame = self.frame.filter(&mask).map_err(|error| self.broken(error.to_string()))?;
        frame.rechunk_mut();
        let numbers = marked.iter().enumerate().filter(|(_, kept)| **kept);
        let kept = numbers.map(|(row, _)| self.number(row) as usize - 1).collect();
        Ok((frame.height() > 0).then_some(Rows { spec: self.spec, frame, kept: Some(kept) }))
    }

    /// The requested columns as a polars frame, one chunk per column.
    pub fn frame(&self) -> &DataFrame {
        &self.frame
    }

    /// Numbers of a column that has one in every row.
    pub fn ints(&self, column: &str) -> Result<&[i64], ExportError> {
        let values = self.column(column)?.i64().map_err(|error| self.broken(error.to_string()))?;
        if let Some(hole) = values.first_null() {
            return Err(self.broken(format!("row {} has no `{column}`", hole + 1)));
        }
        values.cont_slice().map_err(|error| self.broken(error.to_string()))
    }

    /// Numbers of a column that some rows lack.
    pub fn maybe_ints(&self, column: &str) -> Result<MaybeInts<'_>, ExportError> {
        let values = self.column(column)?.i64().map_err(|error| self.broken(error.to_string()))?;
        Ok(match values.cont_slice() {
            Ok(all) => MaybeInts::All(all),
            Err(_) => MaybeInts::Some(values),
        })
    }

    /// Values of a `ColumnType::Real` column, `None` in rows without one.
    pub fn maybe_reals(&self, column: &str) -> Result<Vec<Option<f64>>, ExportError> {
        let values = self.column(column)?.f64().map_err(|error| self.broken(error.to_string()))?;
        Ok(values.iter().collect())
    }

    /// Values of a `ColumnType::Text` column; rows may lack one.
    pub fn texts(&self, column: &str) -> Result<&StringChunked, ExportError> {
        self.column(column)?.str().map_err(|error| self.broken(error.to_string()))
    }

    /// Values of a `ColumnType::Bytes` column; rows may lack one.
    pub(crate) fn bytes(&self, column: &str) -> Result<&BinaryChunked, ExportError> {
        self.column(column)?.binary().map_err(|error| self.broken(error.to_string()))
    }

    fn column(&self, column: &str) -> Result<&Column, ExportError> {
        self.frame.column(column).map_err(|error| self.broken(error.to_string()))
    }

    fn broken(&self, why: String) -> ExportError {
        ExportError::Broken { table: self.spec.name, why }
    }
}

/// A column of numbers with or without holes.
pub enum MaybeInts<'a> {
    /// Every row has a value.
    All(&'a [i64]),
    /// At least one row has none.
    Some(&'a Int64Chunked),
}

impl MaybeInts<'_> {
    /// Loops over rows ask this of every row: without holes it is a look into a slice.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        match self {
            MaybeInts::All(values) => values.get(row).copied(),
            MaybeInts::Some(values) => values.get(row),
        }
    }

    /// Values of all rows in order, `None` where a row has none.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Option<i64>> + '_> {
        match self {
            MaybeInts::All(values) => Box::new(values.iter().map(|value| Some(*value))),
            MaybeInts::Some(values) => Box::new(values.iter()),
        }
    }
}

/// An `end` at the last of all 64-bit numbers is one that was never written, and no row that lasts for 292 years.
pub(super) fn without_endless(mut frame: DataFrame) -> DataFrame {
    const NEVER: i64 = i64::MAX;
    let Ok(ends) = frame.column("end").and_then(|column| column.i64()) else { return frame };
    if ends.max() == Some(NEVER) {
        let ends: Int64Chunked = ends.iter().map(|end| end.filter(|end| *end != NEVER)).collect();
        let replaced = frame.with_column(ends.with_name("end".into()).into_column());
        debug_assert!(replaced.is_ok(), "a column as long as the others");
    }
    frame
}

/// The declared columns of these names, in the order of the declaration.
pub(super) fn chosen(spec: &'static TableSpec, names: &[&str]) -> Vec<&'static ColumnSpec> {
    debug_assert!(
        names.iter().all(|name| spec.columns.iter().any(|column| column.name == *name)),
        "{names:?}"
    );
    spec.columns.iter().filter(|column| names.contains(&column.name)).collect()
}
