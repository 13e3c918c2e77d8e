//! Tables of an export into a folder with one Parquet file per table.

use super::{Fault, type_of};
use crate::tables::ColumnSpec;
use polars::prelude::*;
use std::fs::File;
use std::path::Path;

pub(super) fn table(
    folder: &Path,
    name: &str,
    columns: &[&'static ColumnSpec],
) -> Result<Option<DataFrame>, Fault> {
    let path = folder.join(format!("{name}.parquet"));
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut reader = ParquetReader::new(file);
    let schema = reader.schema()?;
    let there = |column: &str| schema.iter_names().any(|name| name.as_str() == column);
    let mut wanted = Vec::new();
    for column in columns {
        if there(column.name) {
            wanted.push(column.name.to_owned());
        } else if column.required {
            return Err(Fault::NoColumn(column.name));
        }
    }
    let frame = reader.with_columns(Some(wanted)).finish()?;
    let columns: Result<Vec<Column>, Fault> = columns
        .iter()
        .map(|column| {
            let kind = type_of(column.kind);
            if !there(column.name) {
                return Ok(Column::full_null(column.name.into(), frame.height(), &kind));
            }
            // Narrower and unsigned numbers are widened; what does not fit is an error, not another number.
            Ok(frame.column(column.name)?.strict_cast(&kind)?)
        })
        .collect();
    Ok(Some(DataFrame::new(frame.height(), columns?)?))
}
