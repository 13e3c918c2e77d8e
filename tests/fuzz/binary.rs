//! Readers of exported reports and of bundles.

use super::mutate::Seeds;
use super::readers::{Read, Reader};
use super::text;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::bundle;
use logs::flight_recorder;
use nsys::export::Export;
use nsys::tables::{KernelRow, LIST, write};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use store::Home;
use verdict::history::{index, past};

pub(crate) fn readers() -> Vec<Reader> {
    let reader = |name, cases, seeds, read| Reader { name, is_text: false, cases, seeds, read };
    vec![
        reader("parquet", 1_500, parquet_seeds, |bytes| export_in_folder(bytes, "parquet")),
        reader(
            "arrow-file",
            1_500,
            || vec![("strings".to_owned(), arrow_file())],
            |bytes| export_in_folder(bytes, "arrow"),
        ),
        reader("arrow-stream", 1_500, || vec![("strings".to_owned(), arrow_stream())], export_in_file),
        reader("sqlite", 1_500, || vec![("strings".to_owned(), sqlite())], export_in_file),
        reader(
            "flight-recorder",
            6_000,
            || text::folder("tests/fuzz/seeds/flight-recorder"),
            flight_recorder,
        ),
        reader("index-of-runs", 1_500, || vec![("index".to_owned(), index_of_runs())], read_index),
        reader("bundle", 600, || vec![("tar".to_owned(), bundled())], bundle_of_tar),
        reader("bundle-packed", 600, || vec![("tar.gz".to_owned(), packed(&bundled()))], bundle),
    ]
}

fn strings() -> Vec<(i64, String)> {
    (1..20).map(|id| (id, format!("kernel_{id}<float, {id}>"))).collect()
}

fn parquet_seeds() -> Seeds {
    let kernels: Vec<KernelRow> = (0..40)
        .map(|at| KernelRow {
            start: at * 1000,
            end: at * 1000 + 500,
            device_id: 0,
            context_id: 1,
            stream_id: 7,
            correlation_id: None,
            global_pid: None,
            short_name: at % 19 + 1,
            demangled_name: at % 19 + 1,
        })
        .collect();
    vec![
        ("CUPTI_ACTIVITY_KIND_KERNEL".to_owned(), write::kernels(&kernels).expect("written")),
        ("StringIds".to_owned(), write::strings(&strings()).expect("written")),
    ]
}

fn batch() -> RecordBatch {
    let (ids, texts): (Vec<i64>, Vec<String>) = strings().into_iter().unzip();
    let columns: Vec<(&str, arrow_array::ArrayRef)> =
        vec![("id", Arc::new(Int64Array::from(ids))), ("value", Arc::new(StringArray::from(texts)))];
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    // A stream says of which table it is.
    let named = HashMap::from([("table_name".to_owned(), "StringIds".to_owned())]);
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), named);
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect())
        .expect("a batch")
}

fn arrow_file() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch().schema()).expect("begun");
    writer.write(&batch()).and_then(|()| writer.finish()).expect("written");
    drop(writer);
    bytes
}

fn arrow_stream() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch().schema()).expect("begun");
    writer.write(&batch()).and_then(|()| writer.finish()).expect("written");
    drop(writer);
    bytes
}

fn sqlite() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.sqlite");
    let db = rusqlite::Connection::open(&path).expect("made");
    db.execute_batch(
        "PRAGMA page_size = 512; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);\
         CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);\
         INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.0');\
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, \
         streamId INTEGER, demangledName INTEGER, shortName INTEGER);",
    )
    .expect("tables");
    for (id, text) in strings() {
        db.execute("INSERT INTO StringIds VALUES (?1, ?2)", rusqlite::params![id, text]).expect("a row");
        let kernel = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 1, 7, ?3, ?3)";
        db.execute(kernel, rusqlite::params![id * 1000, id * 1000 + 500, id]).expect("a row");
    }
    drop(db);
    std::fs::read(path).expect("read")
}

/// Every declared table of an export is read or refused.
fn tables(path: &Path) -> Read {
    let Ok(export) = Export::open(path) else { return Read::Refused };
    let mut hasher = DefaultHasher::new();
    let mut any = false;
    for spec in LIST {
        match export.table(spec) {
            Err(_) => return Read::Refused,
            Ok(None) => {}
            Ok(Some(rows)) => {
                any = true;
                format!("{rows:?}").hash(&mut hasher);
            }
        }
    }
    if any { Read::Clean { figures: hasher.finish() } } else { Read::Refused }
}

fn export_in_folder(bytes: &[u8], extension: &str) -> Read {
    let folder = tempfile::tempdir_in(memory()).expect("a folder");
    // Which table it is, its columns say; another name reads no table at all.
    for name in ["CUPTI_ACTIVITY_KIND_KERNEL", "StringIds"] {
        std::fs::write(folder.path().join(format!("{name}.{extension}")), bytes).expect("written");
        let read = tables(folder.path());
        if !matches!(read, Read::Refused) {
            return read;
        }
        std::fs::remove_file(folder.path().join(format!("{name}.{extension}"))).expect("removed");
    }
    Read::Refused
}

fn export_in_file(bytes: &[u8]) -> Read {
    let mut file = tempfile::NamedTempFile::new_in(memory()).expect("a file");
    file.write_all(bytes).expect("written");
    tables(file.path())
}

/// Beside a peer whose dump is sound.
fn flight_recorder(bytes: &[u8]) -> Read {
    let mut reader = flight_recorder::Reader::default();
    let peer = include_bytes!("seeds/flight-recorder/dump.pickle");
    reader.read(peer, "dump_1").expect("a dump");
    if reader.read(bytes, "dump_0").is_err() {
        return Read::Refused;
    }
    let log = reader.finish();
    if log.findings.is_empty() { text::clean(&log) } else { Read::Findings }
}

/// Files of one case live for a moment: not on a disk where there is memory for them.
fn memory() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory } else { Path::new("/tmp") }
}

/// An index of a run that is not there.
fn index_of_runs() -> Vec<u8> {
    let outline = r#"{"id":"r","made":"2026-01-01 00:00:00","ended":null,"exit":[0,0],"partial":[],"culprits":[],"plan":0,"cases":[0],"hardware":0}"#;
    let rows = [
        vec!["format", "", "", concat!("1 ", env!("CARGO_PKG_VERSION"))],
        vec!["plan", "", "", "{}"],
        vec!["case", "", "", "{}"],
        vec!["hardware", "", "", "{}"],
        vec!["run", "r", "0123456789abcdef", outline],
    ];
    recipes::text_rows::to_parquet(&["kind", "name", "stamp", "text"], &rows).expect("written")
}

/// Whatever lies in the place of the index, the run beside it is listed by its own files.
fn read_index(bytes: &[u8]) -> Read {
    let runs = tempfile::tempdir_in(memory()).expect("a folder");
    let path = runs.path().join(index::INDEX);
    store::write_private_by(&path, &mut |file| file.write_all(bytes)).expect("written");
    std::fs::create_dir(runs.path().join("r")).expect("made");
    let listed = past::outlines(runs.path(), None).expect("a folder of runs");
    if !listed.past.runs.is_empty() || listed.past.passed.len() != 1 {
        return Read::Contradicts(format!("{:?}", listed.past));
    }
    if listed.notes.is_empty() { Read::Clean { figures: 0 } } else { Read::Refused }
}

/// A stored run as an archive.
fn bundled() -> Vec<u8> {
    let run = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/runs/format-1"));
    let plan: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("plan.json")).expect("a plan")).expect("JSON");
    let id = plan["run_id"].as_str().expect("an id");
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_dir_all(id, run).expect("packed");
    builder.into_inner().expect("packed")
}

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(tar).expect("packed");
    encoder.finish().expect("packed")
}

/// Damage within the archive, behind a checksum that fits.
fn bundle_of_tar(bytes: &[u8]) -> Read {
    bundle(&packed(bytes))
}

fn bundle(bytes: &[u8]) -> Read {
    let folder = tempfile::tempdir_in(memory()).expect("a folder");
    let file = folder.path().join("x.tar.gz");
    std::fs::write(&file, bytes).expect("written");
    let home = folder.path().join("home");
    let read = match bundle::open(&Home::bare(&home), &file) {
        Err(_) => Read::Refused,
        Ok(run) => {
            let mut hasher = DefaultHasher::new();
            for name in ["plan.json", "run.json", "summary.json"] {
                std::fs::read(run.join(name)).ok().hash(&mut hasher);
            }
            Read::Clean { figures: hasher.finish() }
        }
    };
    let mut beside = std::fs::read_dir(folder.path()).expect("listed").flatten();
    match beside.find(|entry| entry.file_name() != "home" && entry.file_name() != "x.tar.gz") {
        Some(entry) => Read::Contradicts(format!("{} was written beside the run", entry.path().display())),
        None => read,
    }
}
