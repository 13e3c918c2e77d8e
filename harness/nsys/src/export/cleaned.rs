//! A Parquet table with some of its texts replaced; the caller decides which.

use super::parquet_folder::with_bytes;
use crate::safe_parquet::{self, Refused, check_columns, check_frame, guarded};
use polars::io::mmap::MmapBytesReader;
use polars::prelude::*;
use polars_parquet::parquet::schema::types::{ParquetType, PhysicalType};
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The replacement of a text, where it has one.
pub(super) type Clean<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// What the texts of a table may unpack to. They are looked through by the process that knows of all nodes, which must not
/// end for what one of them left: fewer bytes than readers take, who have a process to themselves.
const TEXTS: u64 = 256 << 20;
/// The same of a table that is rewritten.
const REWRITTEN: u64 = 512 << 20;

/// The rewritten file, where any of its texts is to be replaced; and how many are. A file that is no table is an error:
/// whether anything stands in it is not known. Nothing else may write the file meanwhile.
pub fn cleaned(file: &File, clean: Clean<'_>) -> Result<Option<(Vec<u8>, u64)>, Refused> {
    guarded(|| read(&|| file.try_clone(), clean, [TEXTS, REWRITTEN])).map_err(Refused::from)?
}

fn read<R: MmapBytesReader>(
    file: &dyn Fn() -> io::Result<R>,
    clean: Clean<'_>,
    [texts_limit, whole_limit]: [u64; 2],
) -> Result<Option<(Vec<u8>, u64)>, Refused> {
    let failed = |error: PolarsError| error.to_string();
    let again = || file().map_err(|error| error.to_string());
    let mut file = again()?;
    let metadata = safe_parquet::metadata(&mut file)?;
    let texts: Vec<String> = metadata.schema_descr.fields().iter().filter_map(text).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    let is_text = |name: &str| texts.iter().any(|text| text == name);
    check_columns(&mut file, &metadata, is_text, texts_limit)?;
    let open = || {
        let mut reader = ParquetReader::new(again()?);
        // What is called a text need not be one.
        reader.set_metadata(Arc::new(with_bytes(metadata.clone(), is_text)));
        Ok::<_, String>(reader)
    };
    let frame = open()?.with_columns(Some(texts.clone())).finish().map_err(failed)?;
    check_frame(&frame, texts_limit)?;
    let mut count = 0;
    let mut others = Vec::new();
    for column in frame.columns() {
        let values = column.binary().map_err(failed)?;
        // Mostly there is none: texts are copied where one of them is.
        let mut replaced: Vec<(usize, Vec<u8>)> = Vec::new();
        for (row, value) in values.iter().enumerate() {
            replaced.extend(value.and_then(clean).map(|other| (row, other)));
        }
        if replaced.is_empty() {
            continue;
        }
        count += replaced.len() as u64;
        let mut replaced = replaced.into_iter().peekable();
        let name = column.name().clone();
        let column: BinaryChunked = values
            .iter()
            .enumerate()
            .map(|(row, value)| match replaced.next_if(|(at, _)| *at == row) {
                Some((_, other)) => Some(Cow::Owned(other)),
                None => value.map(Cow::Borrowed),
            })
            .collect();
        others.push(column.with_name(name).into_column());
    }
    if others.is_empty() {
        return Ok(None);
    }
    check_columns(&mut file, &metadata, |_| true, whole_limit)?;
    let mut whole = open()?.finish().map_err(failed)?;
    check_frame(&whole, whole_limit)?;
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
    fn cleaned(bytes: &[u8], clean: Clean<'_>) -> Result<Option<(Vec<u8>, u64)>, Refused> {
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
        assert!(read(&file, &hide, [64 << 20; 2]).is_ok());
        let refused = read(&file, &hide, [8 << 20; 2]).expect_err("12 MiB");
        assert!(refused.is_too_large && refused.why.contains("unpacks to more than 8 MiB"), "{refused:?}");
        // A table in which nothing is replaced is not unpacked as a whole.
        assert_eq!(read(&file, &|_| None, [64 << 20, 0]), Ok(None));
        let all = |text: &[u8]| Some(text[..4].to_vec());
        assert!(read(&file, &all, [64 << 20, 0]).is_err_and(|refused| refused.is_too_large));
    }

    #[test]
    fn a_file_that_is_no_table_is_an_error() {
        let refused = cleaned(b"PAR1 and nothing else", &hide).expect_err("no table");
        assert!(!refused.is_too_large, "{refused:?}");
        let bytes = table();
        assert!(cleaned(&bytes[..bytes.len() - 20], &hide).is_err());
    }
}
