//! Tables of an Arrow export: a folder with one file per table, or one file with a stream per table. Every length in a
//! file is checked against the file size before it is used.

mod messages;
#[cfg(test)]
mod tests;

use super::{Fault, type_of};
use crate::guarded::guarded;
use crate::regular_file::{self, FileVersion};
use crate::tables::{ColumnSpec, ColumnType};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use messages::Stream;
use polars::prelude::{Column, DataFrame};
use std::collections::BTreeSet;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Either may be of another report.
const TWICE: &str = "a table stands in the file twice: two exports in one";

/// One file with the streams of all tables.
pub(super) struct Streams {
    path: PathBuf,
    /// As it was when it was opened.
    version: FileVersion,
    /// Tables by name; one without a name cannot be asked for.
    tables: Vec<(String, Stream)>,
}

impl Streams {
    pub(super) fn open(path: &Path) -> Result<Streams, String> {
        let version = version(path)?;
        let streams = messages::streams(path)?;
        let tables: Vec<(String, Stream)> =
            streams.into_iter().filter_map(|stream| Some((stream.table.clone()?, stream))).collect();
        let names: BTreeSet<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() < tables.len() {
            return Err(TWICE.to_owned());
        }
        if tables.is_empty() {
            return Err("Arrow stream without `table_name` in any schema".to_owned());
        }
        Ok(Streams { path: path.to_owned(), version, tables })
    }

    pub(super) fn table(
        &self,
        name: &str,
        columns: &[&'static ColumnSpec],
    ) -> Result<Option<DataFrame>, Fault> {
        match self.tables.iter().find(|(table, _)| table == name) {
            Some((_, stream)) => read(&self.path, self.version, stream, columns).map(Some),
            None => Ok(None),
        }
    }
}

/// Whether a folder's files are of this form.
pub(super) fn is_of_form(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "arrow")
}

/// Whether a file begins as a stream of Arrow does.
pub(super) fn begins_a_stream(head: &[u8]) -> bool {
    head.starts_with(&messages::CONTINUATION)
}

/// From a folder: one file per table.
pub(super) fn table_of_folder(
    folder: &Path,
    name: &str,
    columns: &[&'static ColumnSpec],
) -> Result<Option<DataFrame>, Fault> {
    let path = folder.join(format!("{name}.arrow"));
    if !path.try_exists()? {
        return Ok(None);
    }
    let version = version(&path).map_err(Fault::Broken)?;
    let streams = messages::streams(&path).map_err(Fault::Broken)?;
    match streams.as_slice() {
        [stream] => read(&path, version, stream, columns).map(Some),
        [] => Err(Fault::Broken("no Arrow schema".to_owned())),
        _ => Err(Fault::Broken(TWICE.to_owned())),
    }
}

/// The library that decodes batches trusts what schemas say of them, and ends where they lie: here that is an error.
fn read(
    path: &Path,
    version: FileVersion,
    stream: &Stream,
    columns: &[&'static ColumnSpec],
) -> Result<DataFrame, Fault> {
    let decoded = guarded(|| decode(path, stream, columns));
    let broken = || Err(Fault::Broken("record batches do not match the schema".to_owned()));
    let frame = decoded.unwrap_or_else(broken)?;
    version.check(std::fs::metadata(path)).map_err(Fault::Broken)?;
    Ok(frame)
}

fn version(path: &Path) -> Result<FileVersion, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    Ok(FileVersion::from(&metadata))
}

fn decode(path: &Path, stream: &Stream, columns: &[&'static ColumnSpec]) -> Result<DataFrame, Fault> {
    let raw: Vec<&str> =
        columns.iter().filter(|column| column.kind == ColumnType::Bytes).map(|column| column.name).collect();
    let (head, begin) = messages::schema_with_bytes(path, stream, &raw).map_err(Fault::Broken)?;
    let open = || -> std::io::Result<_> {
        let mut file = regular_file::open(path)?;
        file.seek(SeekFrom::Start(begin))?;
        let rest = file.take(stream.end.saturating_sub(begin));
        Ok(BufReader::with_capacity(1 << 16, head.as_slice().chain(rest)))
    };
    let schema = StreamReader::try_new(open()?, None)?.schema();
    let places: Vec<Option<usize>> = columns
        .iter()
        .map(|column| schema.fields().iter().position(|field| field.name() == column.name))
        .collect();
    if let Some((column, _)) =
        columns.iter().zip(&places).find(|(column, at)| at.is_none() && column.required)
    {
        return Err(Fault::NoColumn(column.name));
    }
    let mut wanted: Vec<usize> = places.iter().flatten().copied().collect();
    wanted.sort_unstable();
    let mut values: Vec<Values> = columns.iter().map(|column| Values::new(column.kind)).collect();
    let mut height = 0;
    for batch in StreamReader::try_new(open()?, Some(wanted.clone()))? {
        let batch: RecordBatch = batch?;
        for ((column, place), values) in columns.iter().zip(&places).zip(&mut values) {
            let Some(place) = place else {
                values.append_empty(batch.num_rows());
                continue;
            };
            let at = wanted.binary_search(place).unwrap_or_default();
            let in_column = |why: String| Fault::Broken(format!("column `{}`: {why}", column.name));
            values.append(batch.column(at).as_ref()).map_err(in_column)?;
        }
        height += batch.num_rows();
    }
    let read = columns.iter().zip(values).map(|(column, values)| values.column(column)).collect();
    Ok(DataFrame::new(height, read)?)
}

enum Values {
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Appends a column of one of these types, each value made fit.
macro_rules! numbers {
    ($array:expr, $all:expr, $($kind:ty => $fit:expr),+) => {
        $(if let Some(numbers) = $array.as_primitive_opt::<$kind>() {
            $all.extend(numbers.iter().map(|value| value.map($fit)));
            return Ok(());
        })+
    };
}

impl Values {
    fn new(kind: ColumnType) -> Values {
        match kind {
            ColumnType::Integer => Values::Integers(Vec::new()),
            ColumnType::Real => Values::Reals(Vec::new()),
            ColumnType::Text => Values::Texts(Vec::new()),
            ColumnType::Bytes => Values::Bytes(Vec::new()),
        }
    }

    fn append(&mut self, array: &dyn Array) -> Result<(), String> {
        match self {
            Values::Integers(all) => {
                // Of 64 bits without a sign the same bits: so they stand in SQLite too.
                numbers!(array, all,
                    Int64Type => |value| value, UInt64Type => |value| value as i64,
                    Int32Type => i64::from, UInt32Type => i64::from, Int16Type => i64::from,
                    UInt16Type => i64::from, Int8Type => i64::from, UInt8Type => i64::from);
                if let Some(flags) = array.as_boolean_opt() {
                    all.extend(flags.iter().map(|flag| flag.map(i64::from)));
                    return Ok(());
                }
            }
            Values::Reals(all) => {
                numbers!(array, all,
                Float64Type => |value| value, Float32Type => f64::from, Int64Type => |value| value as f64,
                Int32Type => f64::from, UInt32Type => f64::from);
            }
            Values::Bytes(all) => {
                if let Some(bytes) = array.as_binary_opt::<i32>() {
                    all.extend(bytes.iter().map(|bytes| bytes.map(<[u8]>::to_vec)));
                    return Ok(());
                }
                if let Some(bytes) = array.as_binary_opt::<i64>() {
                    all.extend(bytes.iter().map(|bytes| bytes.map(<[u8]>::to_vec)));
                    return Ok(());
                }
            }
            Values::Texts(all) => {
                if let Some(texts) = array.as_string_opt::<i32>() {
                    all.extend(texts.iter().map(|text| text.map(str::to_owned)));
                    return Ok(());
                }
                if let Some(texts) = array.as_string_opt::<i64>() {
                    all.extend(texts.iter().map(|text| text.map(str::to_owned)));
                    return Ok(());
                }
                if let Some(bytes) = array.as_binary_opt::<i32>() {
                    all.extend(bytes.iter().map(|bytes| bytes.map(lossy)));
                    return Ok(());
                }
                if let Some(bytes) = array.as_binary_opt::<i64>() {
                    all.extend(bytes.iter().map(|bytes| bytes.map(lossy)));
                    return Ok(());
                }
                numbers!(array, all, Int64Type => |value| value.to_string(), Int32Type => |value| value.to_string());
            }
        }
        if matches!(array.data_type(), arrow_schema::DataType::Null) {
            self.append_empty(array.len());
            return Ok(());
        }
        Err(format!("unexpected type {}", array.data_type()))
    }

    fn append_empty(&mut self, rows: usize) {
        match self {
            Values::Integers(all) => all.extend(std::iter::repeat_n(None, rows)),
            Values::Reals(all) => all.extend(std::iter::repeat_n(None, rows)),
            Values::Texts(all) => all.extend(std::iter::repeat_n(None, rows)),
            Values::Bytes(all) => all.extend(std::iter::repeat_n(None, rows)),
        }
    }

    fn column(self, column: &ColumnSpec) -> Column {
        let name = column.name.into();
        match self {
            Values::Integers(all) => Column::new(name, all),
            Values::Reals(all) => Column::new(name, all),
            Values::Texts(all) if all.iter().all(Option::is_none) => {
                Column::full_null(name, all.len(), &type_of(column.kind))
            }
            Values::Texts(all) => Column::new(name, all),
            Values::Bytes(all) if all.iter().all(Option::is_none) => {
                Column::full_null(name, all.len(), &type_of(column.kind))
            }
            Values::Bytes(all) => Column::new(name, all),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
