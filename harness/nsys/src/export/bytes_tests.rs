//! Columns of binary data, in every form of an export, also where the form declares them as text.

use super::Export;
use crate::tables::NVTX_EVENTS;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};
use polars::prelude::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No text: these bytes stand alone in no encoding of one.
const BYTES: [u8; 12] = [0, 0xff, 0xfe, 0x80, 1, 2, 3, 0xc0, 0, 0, 0, 0x7f];
/// Stands in a text where these bytes are to be.
const PLACE: &str = "\u{1}PLACEHOLD\u{2}\u{3}";

fn check(path: &Path) {
    let export = Export::open(path).expect("opens");
    let rows = export.columns(&NVTX_EVENTS, &["start", "binaryData"]).expect("read").expect("there");
    let bytes: Vec<Option<&[u8]>> = rows.bytes("binaryData").expect("bytes").iter().collect();
    assert_eq!(bytes, [Some(BYTES.as_slice()), None, Some(b"text".as_slice())], "{}", path.display());
    assert_eq!(rows.ints("start").expect("numbers"), [1, 2, 3]);
    // Who does not ask for it is not troubled by it.
    assert!(export.columns(&NVTX_EVENTS, &["start"]).expect("read").is_some());
}

/// Puts the bytes where the text that stands for them was written.
fn replaced(mut file: Vec<u8>) -> Vec<u8> {
    let place = PLACE.as_bytes();
    assert_eq!(place.len(), BYTES.len());
    let found: Vec<usize> =
        (0..file.len() - place.len()).filter(|at| file[*at..].starts_with(place)).collect();
    assert!(!found.is_empty());
    for at in found {
        file[at..at + BYTES.len()].copy_from_slice(&BYTES);
    }
    file
}

#[test]
fn sqlite_has_them_as_bytes_or_as_text_for_the_pages_and_for_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.sqlite");
    let db = rusqlite::Connection::open(&path).expect("made");
    db.execute_batch(
        "CREATE TABLE NVTX_EVENTS (start INTEGER, eventType INTEGER, binaryData TEXT);\
         INSERT INTO NVTX_EVENTS VALUES (1, 59, X'00fffe80010203c00000007f'), (2, 59, NULL), (3, 59, 'text')",
    )
    .expect("written");
    drop(db);
    check(&path);
    std::fs::write(folder.path().join("r.sqlite-wal"), "none").expect("written");
    check(&path);
}

fn parquet(folder: &Path, column: Column) -> PathBuf {
    let mut frame = DataFrame::new(
        3,
        vec![Column::new("start".into(), [1i64, 2, 3]), Column::new("eventType".into(), [59i64; 3]), column],
    )
    .expect("a table");
    let mut bytes = Vec::new();
    let writer = ParquetWriter::new(&mut bytes).with_compression(ParquetCompression::Uncompressed);
    writer.finish(&mut frame).expect("written");
    let path = folder.join("r_pqtdir");
    std::fs::create_dir_all(&path).expect("made");
    let is_text = frame.column("binaryData").expect("there").dtype() == &DataType::String;
    let bytes = if is_text { replaced(bytes) } else { bytes };
    std::fs::write(path.join("NVTX_EVENTS.parquet"), bytes).expect("written");
    path
}

#[test]
fn parquet_has_them_as_bytes_or_as_a_text_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = Column::new("binaryData".into(), [Some(PLACE), None, Some("text")]);
    check(&parquet(folder.path(), text));
    let bytes = Column::new("binaryData".into(), [Some(BYTES.as_slice()), None, Some(b"text".as_slice())]);
    check(&parquet(folder.path(), bytes));
}

fn arrow(folder: &Path, column: ArrayRef, is_text: bool) -> PathBuf {
    let columns: [(&str, ArrayRef); 3] = [
        ("start", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("eventType", Arc::new(Int64Array::from(vec![59; 3]))),
        ("binaryData", column),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let named = HashMap::from([("table_name".to_owned(), "NVTX_EVENTS".to_owned())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, named));
    let batch = RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect());
    let batch = batch.expect("a batch");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).expect("begun");
    writer.write(&batch).expect("written");
    writer.finish().expect("ended");
    drop(writer);
    let path = folder.join("r.arrows");
    std::fs::write(&path, if is_text { replaced(bytes) } else { bytes }).expect("written");
    path
}

#[test]
fn arrow_has_them_as_bytes_or_as_a_text_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = StringArray::from(vec![Some(PLACE), None, Some("text")]);
    check(&arrow(folder.path(), Arc::new(texts), true));
    let bytes = BinaryArray::from(vec![Some(BYTES.as_slice()), None, Some(b"text".as_slice())]);
    check(&arrow(folder.path(), Arc::new(bytes), false));
}

#[test]
fn an_export_without_the_column_has_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.sqlite");
    let db = rusqlite::Connection::open(&path).expect("made");
    db.execute_batch(
        "CREATE TABLE NVTX_EVENTS (start INTEGER, eventType INTEGER); INSERT INTO NVTX_EVENTS VALUES (1, 59)",
    )
    .expect("written");
    drop(db);
    let rows = Export::open(&path).expect("opens").table(&NVTX_EVENTS).expect("read").expect("there");
    assert_eq!(rows.bytes("binaryData").expect("bytes").get(0), None);
}
