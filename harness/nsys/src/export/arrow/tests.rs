//! Arrow exports that are sound, of several types, truncated, damaged or not Arrow.

use super::*;
use crate::export::Export;
use crate::tables::{DIAGNOSTIC_EVENT, KERNEL, STRING_IDS};
use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray, UInt64Array};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

fn batch(table: &str, columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let named = HashMap::from([("table_name".to_owned(), table.to_owned())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, named));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).expect("a batch")
}

fn kernels() -> RecordBatch {
    let of = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    batch(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        vec![
            ("start", of(&[0, 20, -5])),
            ("end", of(&[10, 25, 41])),
            ("deviceId", Arc::new(Int32Array::from(vec![0, 1, 2])) as ArrayRef),
            ("streamId", Arc::new(UInt64Array::from(vec![7, 8, u64::MAX])) as ArrayRef),
            ("demangledName", of(&[1, 2, 1])),
            ("shortName", of(&[1, 2, 1])),
            ("correlationId", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as ArrayRef),
        ],
    )
}

fn strings() -> RecordBatch {
    batch(
        "StringIds",
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
            ("value", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        ],
    )
}

fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).expect("begun");
    writer.write(batch).expect("written");
    writer.finish().expect("ended");
    drop(writer);
    bytes
}

fn check(export: &Export) {
    let rows = export.table(&KERNEL).expect("read").expect("there");
    assert_eq!(rows.ints("start").expect("numbers"), [0, 20, -5]);
    assert_eq!(rows.ints("deviceId").expect("numbers"), [0, 1, 2]);
    assert_eq!(rows.ints("streamId").expect("numbers"), [7, 8, -1], "the same bits as in SQLite");
    let ids: Vec<Option<i64>> = rows.maybe_ints("correlationId").expect("numbers").iter().collect();
    assert_eq!(ids, [Some(1), None, Some(3)]);
    assert_eq!(rows.maybe_ints("gridX").expect("absent, and may be").get(0), None);
    let rows = export.table(&STRING_IDS).expect("read").expect("there");
    assert_eq!(rows.texts("value").expect("texts").get(1), Some("b"));
    assert!(export.table(&DIAGNOSTIC_EVENT).expect("read").is_none());
}

#[test]
fn one_file_of_streams_and_a_folder_of_either_kind_give_the_same_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = folder.path().join("r.arrows");
    std::fs::write(&one, [stream(&kernels()), stream(&strings())].concat()).expect("written");
    check(&Export::open(&one).expect("opens"));
    let many = folder.path().join("r_arwdir");
    std::fs::create_dir_all(&many).expect("made");
    std::fs::write(many.join("CUPTI_ACTIVITY_KIND_KERNEL.arrow"), stream(&kernels())).expect("written");
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &strings().schema()).expect("begun");
    writer.write(&strings()).expect("written");
    writer.finish().expect("ended");
    drop(writer);
    std::fs::write(many.join("StringIds.arrow"), bytes).expect("written");
    check(&Export::open(&many).expect("opens"));
}

#[test]
fn kernels_that_are_there_twice_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &kernels().schema()).expect("begun");
    writer.write(&kernels()).expect("written");
    writer.write(&kernels()).expect("written");
    writer.finish().expect("ended");
    drop(writer);
    std::fs::write(&path, [bytes, stream(&strings())].concat()).expect("written");
    let error = Export::open(&path).expect("opens").table(&KERNEL).expect_err("refused").to_string();
    assert!(error.contains("repeats row"), "{error}");
}

#[test]
fn a_missing_column_and_a_wrong_type_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let texts = Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let lacking = batch("StringIds", vec![("value", Arc::clone(&texts))]);
    std::fs::write(&path, stream(&lacking)).expect("written");
    let error = Export::open(&path).expect("opens").table(&STRING_IDS).expect_err("no id").to_string();
    assert!(error.contains("has no column `id`"), "{error}");
    let wrong = batch("StringIds", vec![("id", Arc::clone(&texts)), ("value", texts)]);
    std::fs::write(&path, stream(&wrong)).expect("written");
    let error = Export::open(&path).expect("opens").table(&STRING_IDS).expect_err("a text").to_string();
    assert!(error.contains("column `id`: unexpected type"), "{error}");
}

#[test]
fn what_is_cut_off_is_an_error_wherever_it_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let whole = [stream(&kernels()), stream(&strings())].concat();
    let ends = [stream(&kernels()).len(), stream(&kernels()).len() - 8, whole.len() - 8];
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("cut");
        let read = Export::open(&path).and_then(|export| {
            export.table(&KERNEL).and_then(|rows| export.table(&STRING_IDS).map(|texts| (rows, texts)))
        });
        // Between two messages a stream may end, and what is behind it is then not there.
        assert!(
            read.is_err() || ends.contains(&length) || read.is_ok_and(|(_, texts)| texts.is_none()),
            "{length}"
        );
    }
}

#[test]
fn a_file_that_is_replaced_after_it_was_opened_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, other] = ["r.arrows", "other"].map(|name| folder.path().join(name));
    for path in [&path, &other] {
        std::fs::write(path, stream(&kernels())).expect("written");
    }
    let export = Export::open(&path).expect("opens");
    assert!(export.table(&KERNEL).is_ok());
    std::fs::rename(&other, &path).expect("replaced");
    let error = export.table(&KERNEL).expect_err("another file").to_string();
    assert!(error.ends_with("the file changed while it was read"), "{error}");
}

#[test]
fn a_file_that_lost_its_end_or_holds_two_exports_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        Export::open(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    let whole = [stream(&kernels()), stream(&strings())].concat();
    assert_eq!(open(&whole), Ok(()));
    // The rows of a further batch may have stood where the mark of the last stream is lacking.
    let error = open(&whole[..whole.len() - 8]).expect_err("no mark");
    assert!(error.contains("truncated"), "{error}");
    let error = open(&[whole.clone(), stream(&strings())].concat()).expect_err("twice");
    assert!(error.contains("a table stands in the file twice"), "{error}");
    let many = folder.path().join("r_arwdir");
    std::fs::create_dir_all(&many).expect("made");
    let table = |bytes: &[u8]| {
        std::fs::write(many.join("StringIds.arrow"), bytes).expect("written");
        let read = Export::open(&many).and_then(|export| export.table(&STRING_IDS));
        read.map(|rows| rows.is_some()).map_err(|error| error.to_string())
    };
    let error = table(&[stream(&strings()), stream(&strings())].concat()).expect_err("twice");
    assert!(error.contains("a table stands in the file twice"), "{error}");
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &strings().schema()).expect("begun");
    writer.write(&strings()).expect("written");
    writer.finish().expect("ended");
    drop(writer);
    assert_eq!(table(&bytes), Ok(true));
    let error = table(&bytes[..bytes.len() - 1]).expect_err("no end");
    assert!(error.contains("truncated"), "{error}");
}

#[test]
fn damaged_bytes_are_an_error_or_other_numbers_and_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let whole = [stream(&kernels()), stream(&strings())].concat();
    for at in 0..whole.len() {
        for with in [0x01, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = with;
            std::fs::write(&path, &bytes).expect("written");
            if let Ok(export) = Export::open(&path) {
                let _ = export.table(&KERNEL);
                let _ = export.table(&STRING_IDS);
            }
        }
    }
}

#[test]
fn messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.arrows");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        let read = Export::open(&path).and_then(|export| export.table(&STRING_IDS));
        read.expect_err("damaged").to_string()
    };
    let whole = stream(&strings());
    let texts = Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let bare = Schema::new(vec![Field::new("id", texts.data_type().clone(), true)]);
    let unnamed = RecordBatch::try_new(Arc::new(bare), vec![Arc::clone(&texts)]).expect("a batch");
    let messages = [
        read(&whole[..20]),
        read(&whole[8..].iter().fold(whole[..8].to_vec(), |mut all, byte| {
            all.push(byte ^ 0x80);
            all
        })),
        read(&stream(&unnamed)),
        read(&stream(&batch("StringIds", vec![("value", Arc::clone(&texts))]))),
        read(&stream(&batch("StringIds", vec![("id", Arc::clone(&texts)), ("value", texts)]))),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
