//! Tables as the engine holds them, to and from bytes and tables. Results hold whole numbers, numbers and texts only.

use super::Columns;
use crate::result_table::{Column as TableColumn, Quantity, ResultTable, Values};
use nsys::export::type_of;
use nsys::safe_parquet::{UNPACKED, check_frame, guarded};
use nsys::tables::ColumnType;
use polars::prelude::*;
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Error, Serialize, Serializer};
use std::io::Cursor;
use std::sync::Arc;

pub(super) fn to_bytes(mut frame: DataFrame) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Uncompressed)
        .finish(&mut frame)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<DataFrame, String> {
    let read = || ParquetReader::new(Cursor::new(bytes)).finish().map_err(|error| error.to_string());
    let frame = guarded(read).unwrap_or_else(Err)?;
    check_frame(&frame, UNPACKED)?;
    Ok(frame)
}

/// A table that goes from one process to another.
pub(super) struct Handed(pub DataFrame);

impl Serialize for Handed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to_bytes(self.0.clone()).map_err(S::Error::custom)?.serialize(to)
    }
}

impl<'a> Deserialize<'a> for Handed {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Handed, D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        from_bytes(bytes).map(Handed).map_err(de::Error::custom)
    }
}

pub(super) fn empty(columns: &Columns) -> DataFrame {
    let fields = columns.iter().map(|(name, kind)| Field::new(name.as_str().into(), type_of(*kind)));
    DataFrame::empty_with_schema(&Schema::from_iter(fields))
}

/// The columns of a result that is plain.
pub(super) fn columns_of(frame: &DataFrame) -> Result<Columns, String> {
    let kind = |column: &Column| match column.dtype() {
        DataType::Int64 => Ok(ColumnType::Integer),
        DataType::Float64 => Ok(ColumnType::Real),
        DataType::String => Ok(ColumnType::Text),
        other => Err(format!("result column `{}` holds {other}, expected numbers or texts", column.name())),
    };
    frame.columns().iter().map(|column| Ok((column.name().to_string(), kind(column)?))).collect()
}

/// Whole numbers of all widths in one, truth as a word; what is neither number nor text is refused.
pub(super) fn plain(frame: DataFrame) -> Result<DataFrame, String> {
    let height = frame.height();
    let columns = frame.columns().iter().map(|column| {
        let message = |error: PolarsError| format!("column `{}`: {error}", column.name());
        let of = match column.dtype() {
            kind if kind.is_integer() => DataType::Int64,
            kind if kind.is_float() => DataType::Float64,
            DataType::String => return Ok(column.clone()),
            DataType::Boolean => DataType::String,
            other => {
                return Err(format!(
                    "result column `{}` holds {other}, expected numbers or texts",
                    column.name()
                ));
            }
        };
        column.strict_cast(&of).map_err(message)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    DataFrame::new(height, columns).map_err(|error| error.to_string())
}

/// These columns of a table; one that it lacks is empty.
pub(super) fn from_result_table(result_table: &ResultTable, columns: &Columns) -> Result<DataFrame, String> {
    let height = result_table.height();
    let of = |(name, kind): &(String, ColumnType)| {
        let name: PlSmallStr = name.as_str().into();
        let found = result_table.column(&name).map(|column| match &column.values {
            Values::Integers(all) => Int64Chunked::from_iter_options(name.clone(), all.iter()).into_column(),
            Values::Decimals(all) => Column::new(name.clone(), all),
            Values::Texts(all) => StringChunked::from_iter_options(name.clone(), all.iter()).into_column(),
            Values::Lists(all) => {
                let texts = all.iter().map(|list| list.as_ref().map(|list| list.text()));
                StringChunked::from_iter_options(name.clone(), texts).into_column()
            }
        });
        match found {
            Some(column) => column.cast(&type_of(*kind)).map_err(|error| error.to_string()),
            None => Ok(Column::full_null(name, height, &type_of(*kind))),
        }
    };
    let columns = columns.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    DataFrame::new(height, columns).map_err(|error| error.to_string())
}

/// A result as a table to show. What is no finite number is an empty cell; how many there were comes back beside it.
pub(super) fn to_result_table(
    frame: &DataFrame,
    (name, title): (&str, &str),
    quantities: &[(String, Quantity)],
) -> Result<(ResultTable, u64), String> {
    let mut odd = 0;
    let mut columns = Vec::new();
    for column in frame.columns() {
        let quantity =
            quantities.iter().find(|(of, _)| of == column.name()).map_or(Quantity::Plain, |(_, one)| *one);
        let message = |error: PolarsError| error.to_string();
        let values = match column.dtype() {
            DataType::Int64 => Values::Integers(column.i64().map_err(message)?.iter().collect()),
            DataType::Float64 => {
                let all: Vec<Option<f64>> = column.f64().map_err(message)?.iter().collect();
                odd += all.iter().flatten().filter(|value| !value.is_finite()).count() as u64;
                Values::Decimals(
                    all.into_iter().map(|value| value.filter(|value| value.is_finite())).collect(),
                )
            }
            DataType::String => {
                let all = column.str().map_err(message)?.iter();
                Values::Texts(all.map(|text| text.map(Arc::from)).collect())
            }
            other => return Err(format!("column `{}` cannot be shown: {other}", column.name())),
        };
        columns.push(TableColumn { name: column.name().to_string(), quantity, values });
    }
    Ok((ResultTable::new(name.to_owned(), title.to_owned(), columns), odd))
}

/// Results of reports below each other, behind the rank and the host of each.
pub(super) fn below_each_other<'a>(
    parts: impl Iterator<Item = (i64, Option<&'a str>, &'a DataFrame)>,
    columns: &Columns,
) -> Result<DataFrame, String> {
    let message = |error: PolarsError| error.to_string();
    let mut all: Option<DataFrame> = None;
    for (rank, host, part) in parts {
        let height = part.height();
        let mut own = vec![
            Column::new(super::RANK.into(), vec![rank; height]),
            StringChunked::from_iter_options(super::HOST.into(), (0..height).map(|_| host)).into_column(),
        ];
        own.extend(part.columns().iter().cloned());
        let part = DataFrame::new(height, own).map_err(message)?;
        match &mut all {
            Some(all) => {
                all.vstack_mut(&part).map_err(message)?;
            }
            None => all = Some(part),
        }
    }
    let mut all = all.unwrap_or_else(|| empty(&super::seen_across(columns)));
    all.rechunk_mut();
    Ok(all)
}
