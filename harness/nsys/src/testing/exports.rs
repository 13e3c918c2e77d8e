//! Small exports for tests, in both forms.

use crate::tables::{KernelRow, write};
use std::fs;
use std::path::{Path, PathBuf};

/// One kernel as a test says it: start, end, name.
pub type Kernel<'a> = (i64, i64, &'a str);

/// Their names by number, and a row for each, all on one stream.
pub(crate) fn rows(kernels: &[Kernel]) -> (Vec<(i64, String)>, Vec<KernelRow>) {
    let mut names: Vec<&str> = kernels.iter().map(|(.., name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let id = |name: &str| names.iter().position(|known| *known == name).unwrap_or_default() as i64 + 1;
    let rows = kernels.iter().map(|(start, end, name)| KernelRow {
        start: *start,
        end: *end,
        device_id: 0,
        context_id: 1,
        stream_id: 7,
        correlation_id: None,
        global_pid: None,
        short_name: id(name),
        demangled_name: id(name),
    });
    let rows = rows.collect();
    (names.iter().map(|name| (id(name), (*name).to_owned())).collect(), rows)
}

/// A folder of Parquet files, lazy as exports are: no table without a row.
pub fn parquet(folder: &Path, kernels: &[Kernel], diagnostics: &[(i64, &str)]) -> PathBuf {
    let export = folder.join("r_pqtdir");
    fs::create_dir_all(&export).expect("made");
    let (names, rows) = rows(kernels);
    let put = |name: &str, bytes: Result<Vec<u8>, String>| {
        fs::write(export.join(format!("{name}.parquet")), bytes.expect("written")).expect("written");
    };
    if !rows.is_empty() {
        put("CUPTI_ACTIVITY_KIND_KERNEL", write::kernels(&rows));
    }
    put("StringIds", write::strings(&names));
    if !diagnostics.is_empty() {
        let rows: Vec<(i64, String)> =
            diagnostics.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
        put("DIAGNOSTIC_EVENT", write::diagnostics(&rows));
    }
    put("META_DATA_EXPORT", write::meta("3.20.0", "2025.3.1"));
    export
}

/// The same in one SQLite file, in the older layout's names where `old`.
pub fn sqlite(folder: &Path, kernels: &[Kernel], diagnostics: &[(i64, &str)], old: bool) -> PathBuf {
    let path = folder.join("r.sqlite");
    let _ = fs::remove_file(&path);
    let db = rusqlite::Connection::open(&path).expect("made");
    let meta = if old { "EXPORT_META_DATA" } else { "META_DATA_EXPORT" };
    let version = if old { "2.9.1" } else { "3.20.0" };
    db.execute_batch(&format!(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, \
         demangledName INTEGER, shortName INTEGER, gridX INTEGER);\
         CREATE TABLE StringIds (id INTEGER, value TEXT);\
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT);\
         CREATE TABLE {meta} (name TEXT, value TEXT);\
         INSERT INTO {meta} VALUES ('EXPORT_SCHEMA_VERSION', '{version}'), ('EXPORT_PRODUCT_VERSION', '2025.3.1');"
    ))
    .expect("made");
    let (names, rows) = rows(kernels);
    for (id, name) in names {
        db.execute("INSERT INTO StringIds VALUES (?1, ?2)", (id, name)).expect("put");
    }
    for row in rows {
        let values = (row.start, row.end, row.short_name);
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 7, ?3, ?3, 1)", values)
            .expect("put");
    }
    for (severity, text) in diagnostics {
        db.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (-5, ?1, ?2)", (severity, text)).expect("put");
    }
    path
}
