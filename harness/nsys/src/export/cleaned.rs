//! A Parquet table with some of its texts replaced; the caller decides which.

use super::parquet_folder::with_bytes;
use crate::safe_parquet::{self, UNPACKED, check_columns, check_texts, guarded};
use polars::io::mmap::MmapBytesReader;
use polars::prelude::*;
use polars_parquet::parquet::schema::types::{ParquetType, PhysicalType};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The replacement of a text, where it has one.
pub(super) type Clean<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// The rewritten file, where any of its texts is to be replaced; and how many are. A file that is no table is an error:
/// whether anything stands in it is not known. Nothing else may write the file meanwhile.
pub fn cleaned(file: &File, clean: Clean<'_>) -> Result<Option<(Vec<u8>, u64)>, String> {
    guarded(|| read(&|| file.try_clone(), clean, UNPACKED))?
}

fn read<R: MmapBytesReader>(
    file: &dyn Fn() -> io::Result<R>,
    clean: Clean<'_>,
    most: u64,
) -> Result<Option<(Vec<u8>, u64)>, String> {
    let failed = |error: PolarsError| error.to_string();
    let again = || file().map_err(|error| error.to_string());
    let mut file = again()?;
    let metadata = safe_parquet::metadata(&mut file)?;
    let texts: Vec<String> = metadata.schema_descr.fields().iter().filter_map(text).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    let is_text = |name: &str| texts.iter().any(|text| text == name);
    check_columns(&mut file, &metadata, is_text, most)?;
    let open = || {
        let mut reader = ParquetReader::new(again()?);
        // What is called a text need not be one.
        reader.set_metadata(Arc::new(with_bytes(metadata.clone(), is_text)));
        Ok::<_, String>(reader)
    };
    let frame = open()?.with_columns(Some(texts.clone())).finish().map_err(failed)?;
    check_texts(&frame, most)?;
    let mut count = 0;
    let mut others = Vec::new();
    for column in frame.columns() {
        let before = count;
        let values = column.binary().map_err(failed)?;
        let values: Vec<Option<Vec<u8>>> = values
            .iter()
            .map(|value| {
                let value = value?;
                let other = clean(value);
                count += u64::from(other.is_some());
                Some(other.unwrap_or_else(|| value.to_vec()))
            })
            .collect();
        if count > before {
            others.push(Column::new(column.name().clone(), values));
        }
    }
    if others.is_empty() {
        return Ok(None);
    }
    check_columns(&mut file, &metadata, |_| true, most)?;
    let mut whole = open()?.finish().map_err(failed)?;
    for other in others {
        whole.with_column(other).map_err(failed)?;
    }
    let names: Vec<PlSmallStr> = whole.get_column_names_owned();
    for name in names {
        let column = whole.column(&name).map_err(failed)?;
        if column.dtype() == &DataType::Binary
            && let Ok(text) = column.strict_cast(&DataType::String)
        {
            whole.with_column(text).map_err(failed)?;
        }
    }
    let mut written = Vec::new();
    ParquetWriter::new(&mut written)
        .with_compression(ParquetCompression::Snappy)
        .finish(&mut whole)
        .map_err(failed)?;
    Ok(Some((written, count)))
}

fn text(field: &ParquetType) -> Option<String> {
    match field {
        ParquetType::PrimitiveType(column) if column.physical_type == PhysicalType::ByteArray => {
            Some(column.field_info.name.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};

    /// Of a file that holds these bytes.
    fn cleaned(bytes: &[u8], clean: Clean<'_>) -> Result<Option<(Vec<u8>, u64)>, String> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        super::cleaned(&file, clean)
    }

    fn table() -> Vec<u8> {
        let texts = ["a", "the secret", "b"];
        let bytes: [Option<&[u8]>; 3] = [Some(b"\xff\x00"), None, Some(b"the secret")];
        let columns = vec![
            Column::new("id".into(), [1i64, 2, 3]),
            Column::new("text".into(), texts),
            Column::new("raw".into(), bytes.to_vec()),
        ];
        let mut frame = DataFrame::new(3, columns).expect("a frame");
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).expect("written");
        bytes
    }

    fn hide(text: &[u8]) -> Option<Vec<u8>> {
        (text == b"the secret").then(|| b"hidden".to_vec())
    }

    #[test]
    fn only_the_texts_that_are_meant_are_others_and_a_file_without_them_stays_as_it_is() {
        let bytes = table();
        assert_eq!(cleaned(&bytes, &|_| None), Ok(None));
        let (clean, count) = cleaned(&bytes, &hide).expect("read").expect("others");
        assert_eq!(count, 2);
        let frame = ParquetReader::new(Cursor::new(&clean)).finish().expect("a table");
        let texts: Vec<_> = frame.column("text").expect("there").str().expect("texts").iter().collect();
        assert_eq!(texts, [Some("a"), Some("hidden"), Some("b")]);
        let raw: Vec<_> = frame.column("raw").expect("there").binary().expect("bytes").iter().collect();
        assert_eq!(raw, [Some(b"\xff\x00".as_slice()), None, Some(b"hidden")]);
        let ids: Vec<_> = frame.column("id").expect("there").i64().expect("numbers").iter().collect();
        assert_eq!(ids, [Some(1), Some(2), Some(3)]);
        assert_eq!(cleaned(&clean, &hide), Ok(None));
    }

    /// Each byte of the footer in turn: some of these files have the library panic.
    #[test]
    fn a_damaged_footer_is_an_error_and_never_a_panic() {
        let whole = table();
        for at in whole.len() - 600..whole.len() - 8 {
            for spoilt in [0, 0x15, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = spoilt;
                let _ = cleaned(&bytes, &hide);
            }
        }
    }

    #[test]
    fn texts_that_unpack_to_more_than_the_limit_are_an_error_before_they_are_copied() {
        let text = "HF_TOKEN=secret ".repeat(4 << 10);
        let rows: Vec<(i64, String)> = (0..200).map(|id| (id, text.clone())).collect();
        let bytes = crate::tables::write::strings(&rows).expect("written");
        assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
        let file = || Ok(Cursor::new(bytes.as_slice()));
        assert!(read(&file, &hide, 64 << 20).is_ok());
        let why = read(&file, &hide, 8 << 20).expect_err("12 MiB");
        assert!(why.contains("unpacks to more than 8 MiB"), "{why}");
    }

    #[test]
    fn a_file_that_is_no_table_is_an_error() {
        assert!(cleaned(b"PAR1 and nothing else", &hide).is_err());
        let bytes = table();
        assert!(cleaned(&bytes[..bytes.len() - 20], &hide).is_err());
    }
}
