//! Tables of an export into a folder with one Parquet file per table.

use super::{Fault, type_of};
use crate::tables::{ColumnSpec, Kind};
use polars::prelude::*;
use polars_parquet::parquet::metadata::{FileMetadata, SchemaDescriptor};
use polars_parquet::parquet::schema::types::ParquetType;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Whether a folder's files are of this form.
pub(super) fn is_of_form(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

pub(super) fn table(
    folder: &Path,
    name: &str,
    columns: &[&'static ColumnSpec],
) -> Result<Option<DataFrame>, Fault> {
    guarded(|| read(folder, name, columns)).unwrap_or_else(|why| Err(Fault::Broken(why)))
}

/// The library that decodes Parquet trusts what files say of themselves, and panics where they lie. A file that one node
/// left broken is an error of that file, and not the end of the whole run.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    let broken = "its bytes are not as its footer says: damaged Parquet, fetch or export it again";
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| broken.to_owned())
}

fn read(folder: &Path, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, Fault> {
    let path = folder.join(format!("{name}.parquet"));
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut reader = ParquetReader::new(file);
    let raw = |name: &str| columns.iter().any(|column| column.kind == Kind::Bytes && column.name == name);
    if let Some(metadata) = with_bytes(reader.get_metadata()?, raw) {
        reader.set_metadata(Arc::new(metadata));
    }
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
            let read = frame.column(column.name)?;
            match (read.dtype(), &kind) {
                // Of 64 bits without a sign the same bits: so they stand in SQLite too.
                (DataType::UInt64, DataType::Int64) => {
                    let bits = read.u64()?.iter().map(|value| value.map(|value| value as i64));
                    Ok(Column::new(column.name.into(), bits.collect::<Vec<_>>()))
                }
                // Texts that are declared as mere bytes.
                (DataType::Binary, DataType::String) => {
                    let texts = read.binary()?.iter().map(|bytes| bytes.map(String::from_utf8_lossy));
                    Ok(Column::new(column.name.into(), texts.collect::<Vec<_>>()))
                }
                // Narrower numbers are widened; what does not fit is an error, not another number.
                _ => Ok(read.strict_cast(&kind)?),
            }
        })
        .collect();
    Ok(Some(DataFrame::new(frame.height(), columns?)?))
}

/// What a file says of itself, in which these columns are bytes where it calls them texts; `None` where it calls none of
/// them so. Exports call bytes a text that is none, and no text is read that is not sound.
pub(super) fn with_bytes(metadata: &FileMetadata, raw: impl Fn(&str) -> bool) -> Option<FileMetadata> {
    let mut fields = metadata.schema_descr.fields().to_vec();
    let mut any = false;
    for field in &mut fields {
        if let ParquetType::PrimitiveType(column) = field
            && raw(&column.field_info.name)
        {
            any = true;
            (column.logical_type, column.converted_type) = (None, None);
        }
    }
    if !any {
        return None;
    }
    let schema_descr = SchemaDescriptor::new(PlSmallStr::from_static("schema"), fields);
    // A second schema that some writers put beside it would call them texts again.
    Some(FileMetadata { schema_descr, key_value_metadata: None, ..metadata.clone() })
}
