//! Tables of an export into a folder with one Parquet file per table.

use super::{Fault, source, type_of};
use crate::regular_file::{self, FileVersion};
use crate::safe_parquet::{self, check_columns, check_frame, copy_columns, guarded, unpacked_limit};
use crate::tables::{ColumnSpec, ColumnType};
use polars::prelude::*;
use polars_parquet::parquet::metadata::{FileMetadata, SchemaDescriptor};
use polars_parquet::parquet::schema::types::ParquetType;
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

fn read(folder: &Path, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, Fault> {
    let path = folder.join(format!("{name}.parquet"));
    let mut file = match regular_file::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let asked = |name: &str| columns.iter().any(|column| column.name == name);
    let is_brought = source::bring(&path, &asked).map_err(Fault::Broken)?;
    let before = file.metadata()?;
    let most = unpacked_limit(before.len());
    let metadata = safe_parquet::metadata(&mut file).map_err(Fault::Broken)?;
    let copied = copy_columns(&file, before.len(), &metadata, asked, most);
    let mut copied = copied.map_err(|refused| Fault::Broken(refused.why))?;
    // A source may bring other columns for another reader meanwhile.
    let unchanged = || match is_brought {
        true => Ok(()),
        false => FileVersion::from(&before).check(file.metadata()).map_err(Fault::Broken),
    };
    unchanged()?;
    check_columns(&mut copied, &metadata, asked, most).map_err(|refused| Fault::Broken(refused.why))?;
    let mut reader = ParquetReader::new(copied);
    let raw =
        |name: &str| columns.iter().any(|column| column.kind == ColumnType::Bytes && column.name == name);
    reader.set_metadata(Arc::new(with_bytes(metadata, raw)));
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
    unchanged()?;
    check_frame(&frame, most).map_err(|refused| Fault::Broken(refused.why))?;
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

/// What a file says of itself, in which these columns are bytes where it calls them texts. Exports call bytes a text that
/// is none, and no text is read that is not sound.
pub(super) fn with_bytes(metadata: FileMetadata, raw: impl Fn(&str) -> bool) -> FileMetadata {
    let mut fields = metadata.schema_descr.fields().to_vec();
    for field in &mut fields {
        if let ParquetType::PrimitiveType(column) = field
            && raw(&column.field_info.name)
        {
            (column.logical_type, column.converted_type) = (None, None);
        }
    }
    let schema_descr = SchemaDescriptor::new(PlSmallStr::from_static("schema"), fields);
    FileMetadata { schema_descr, ..metadata }
}
