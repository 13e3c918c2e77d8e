//! Tables of an export into one SQLite file.

use super::Fault;
use crate::tables::{ColumnSpec, ColumnType};
use polars::prelude::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Opens a finished file without writing anything, not even beside it. Where a file of changes lies beside it, the engine
/// is to look at that too: rows that are only there would be missing silently.
pub(super) fn open(path: &Path) -> Result<Connection, String> {
    let how = if changes_beside(path).is_some() { "mode=ro" } else { "immutable=1" };
    let shown: String = path.to_string_lossy().chars().flat_map(escaped).collect();
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(format!("file:{shown}?{how}"), flags)
        .map_err(|error| error.to_string())?;
    // Pages of the list of tables that lead to one page again and again would be read for ever.
    let mut calls = 0;
    let is_enough = move || {
        calls += 1;
        calls > MOST_CALLS
    };
    connection.progress_handler(STEPS_PER_CALL, Some(is_enough)).map_err(|error| error.to_string())?;
    // The first question reads the head of the file: one that is truncated or no database fails here.
    let asked = connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()));
    asked.map_err(|error| error.to_string())?;
    connection.progress_handler(0, None::<fn() -> bool>).map_err(|error| error.to_string())?;
    Ok(connection)
}

/// Ten million steps of the engine in all: an export has some hundred tables, each of which takes some ten steps.
const STEPS_PER_CALL: i32 = 10_000;
const MOST_CALLS: u32 = 1_000;

/// The ending of a file of changes beside an export, which a finished one does not have.
pub(super) fn changes_beside(path: &Path) -> Option<&'static str> {
    ["-wal", "-journal"].into_iter().find(|end| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        std::fs::metadata(&beside).is_ok_and(|beside| beside.len() > 0)
    })
}

pub(super) fn names(connection: &Connection) -> Result<Vec<String>, String> {
    let asked = "SELECT name FROM sqlite_master WHERE type = 'table'";
    let mut query = connection.prepare(asked).map_err(|error| error.to_string())?;
    let names = query.query_map([], |row| row.get(0)).map_err(|error| error.to_string())?;
    names.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// What has a meaning of its own in a URI.
fn escaped(c: char) -> Vec<char> {
    match c {
        '%' | '?' | '#' => format!("%{:02x}", c as u32).chars().collect(),
        c => vec![c],
    }
}

pub(super) fn table(
    connection: &Connection,
    name: &str,
    columns: &[&'static ColumnSpec],
) -> Result<Option<DataFrame>, Fault> {
    let found = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let tables: i64 = connection.query_row(found, [name], |row| row.get(0))?;
    if tables == 0 {
        return Ok(None);
    }
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let there: Vec<String> =
        statement.query_map([name], |row| row.get::<_, String>(0))?.collect::<Result<_, _>>()?;
    let mut wanted = Vec::new();
    for column in columns {
        match there.iter().any(|name| name == column.name) {
            true => wanted.push(format!("\"{}\"", column.name)),
            false if column.required => return Err(Fault::NoColumn(column.name)),
            false => wanted.push("NULL".to_owned()),
        }
    }
    // Names of tables and columns are ours, from the declarations. An index is left aside, as its order is another.
    let select = format!("SELECT {} FROM \"{name}\" NOT INDEXED", wanted.join(", "));
    let mut statement = connection.prepare(&select)?;
    let mut values: Vec<Values> = columns.iter().map(|column| Values::new(column.kind)).collect();
    let mut room = Room::new(connection)?;
    let mut rows = statement.query([])?;
    let mut height = 0;
    while let Some(row) = rows.next()? {
        room.take_row().map_err(Fault::Broken)?;
        for (at, values) in values.iter_mut().enumerate() {
            let value = row.get_ref(at)?;
            room.take_text(value).map_err(Fault::Broken)?;
            values.push(value).map_err(|why| {
                Fault::Broken(format!("row {}, column `{}`: {why}", height + 1, columns[at].name))
            })?;
        }
        height += 1;
    }
    let read = columns.iter().zip(values).map(|(column, values)| values.column(column.name)).collect();
    Ok(Some(DataFrame::new(height, read)?))
}

/// What a file of its length can hold. The engine reads a page as often as others lead to it, and repeats the value that
/// a column has by default for every row: a small file could fill any memory.
struct Room {
    bytes: u64,
    rows: u64,
    text: u64,
}

impl Room {
    /// A row takes up four bytes at least, and the pointer to it two.
    const BYTES_OF_ROW: u64 = 6;
    /// A short text by default is longer than what stands for it, and UTF-16 becomes longer as UTF-8.
    const TEXT_PER_BYTE: u64 = 4;

    fn new(connection: &Connection) -> Result<Room, Fault> {
        let length = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let bytes: i64 = connection.query_row(length, [], |row| row.get(0))?;
        let bytes = u64::try_from(bytes).unwrap_or_default();
        let text = bytes.saturating_mul(Room::TEXT_PER_BYTE);
        Ok(Room { bytes, rows: bytes / Room::BYTES_OF_ROW, text })
    }

    fn take_row(&mut self) -> Result<(), String> {
        let left = self.rows.checked_sub(1);
        self.rows = left.ok_or_else(|| format!("more rows than fit into {} bytes", self.bytes))?;
        Ok(())
    }

    fn take_text(&mut self, value: ValueRef<'_>) -> Result<(), String> {
        let (ValueRef::Text(text) | ValueRef::Blob(text)) = value else { return Ok(()) };
        let left = self.text.checked_sub(text.len() as u64);
        let most = Room::TEXT_PER_BYTE;
        self.text =
            left.ok_or_else(|| format!("more than {most} times its {} bytes of texts", self.bytes))?;
        Ok(())
    }
}

enum Values {
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
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

    fn push(&mut self, value: ValueRef<'_>) -> Result<(), String> {
        match (self, value) {
            (Values::Integers(all), ValueRef::Integer(number)) => all.push(Some(number)),
            (Values::Integers(all), ValueRef::Null) => all.push(None),
            (Values::Reals(all), ValueRef::Real(number)) => all.push(Some(number)),
            (Values::Reals(all), ValueRef::Integer(number)) => all.push(Some(number as f64)),
            (Values::Reals(all), ValueRef::Null) => all.push(None),
            (Values::Texts(all), ValueRef::Text(text) | ValueRef::Blob(text)) => {
                all.push(Some(String::from_utf8_lossy(text).into_owned()))
            }
            // Values of a name-and-value table may be stored as numbers.
            (Values::Texts(all), ValueRef::Integer(number)) => all.push(Some(number.to_string())),
            (Values::Texts(all), ValueRef::Real(number)) => all.push(Some(number.to_string())),
            (Values::Texts(all), ValueRef::Null) => all.push(None),
            (Values::Bytes(all), ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                all.push(Some(bytes.to_vec()))
            }
            (Values::Bytes(all), ValueRef::Null) => all.push(None),
            (_, other) => return Err(format!("unexpected type {}", other.data_type())),
        }
        Ok(())
    }

    fn column(self, name: &str) -> Column {
        match self {
            Values::Integers(all) => Column::new(name.into(), all),
            Values::Reals(all) => Column::new(name.into(), all),
            Values::Texts(all) => Column::new(name.into(), all),
            Values::Bytes(all) => Column::new(name.into(), all),
        }
    }
}
