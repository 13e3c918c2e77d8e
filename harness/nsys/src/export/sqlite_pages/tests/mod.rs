//! Compares the page reader with SQLite: what both read is equal, row by row, and what is damaged is an error.

mod corpus;
mod damage;
mod equal;
mod fixtures;

use super::*;
use crate::tables::ColumnType;
use rusqlite::Connection;

/// A declared column, for as long as the tests run.
fn column(name: &str, kind: ColumnType, required: bool) -> &'static ColumnSpec {
    Box::leak(Box::new(ColumnSpec { name: Box::leak(name.to_owned().into_boxed_str()), kind, required }))
}

fn numbers(names: &[&str]) -> Vec<&'static ColumnSpec> {
    names.iter().map(|name| column(name, ColumnType::Integer, true)).collect()
}

fn with_message(read: Result<Option<DataFrame>, Fault>) -> Result<Option<DataFrame>, String> {
    read.map_err(|fault| match fault {
        Fault::NoColumn(column) => format!("no column: {column}"),
        Fault::Broken(why) => why,
    })
}

fn pages(path: &Path) -> Pages {
    match open(path) {
        Ok(Opened::Plain(pages)) => pages,
        Ok(Opened::NotPlain(why)) => panic!("not plain: {why}"),
        Err(why) => panic!("{why}"),
    }
}

/// Reads the table in both ways and gives what both found.
fn both(path: &Path, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, String> {
    let own = with_message(pages(path).table(name, columns));
    let engine =
        sqlite::open(path).and_then(|connection| with_message(sqlite::table(&connection, name, columns)));
    match (&own, &engine) {
        (Ok(Some(own)), Ok(Some(engine))) => {
            assert_eq!((own.height(), own.schema()), (engine.height(), engine.schema()), "{name}");
            for (own, engine) in own.columns().iter().zip(engine.columns()) {
                assert!(own.equals_missing(engine), "{name}: {}: {own:?} and {engine:?}", own.name());
            }
        }
        _ => assert_eq!(own.as_ref().err(), engine.as_ref().err(), "{name}"),
    }
    assert_eq!(own.as_ref().map(Option::is_some), engine.as_ref().map(Option::is_some), "{name}");
    own
}

/// A database in its folder, made by these statements; the page size has to come first.
fn database(page_size: u32, statements: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.sqlite");
    let db = Connection::open(&path).expect("made");
    db.execute_batch(&format!("PRAGMA page_size={page_size}; BEGIN; {statements}; COMMIT;")).expect("made");
    (folder, path)
}

/// Statements for a table `t` with a number `a` from 1 to `rows` and a text `b` of this length.
fn counted(rows: u32, text: u32) -> String {
    format!(
        "CREATE TABLE t(a INTEGER, b TEXT);\
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO t SELECT i, substr(hex(zeroblob({text})), 1, {text}) FROM n"
    )
}
