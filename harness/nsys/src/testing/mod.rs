//! Small exports that tests put together row by row, through the declarations of their tables.

use crate::tables::{self, ColumnType, TableSpec};
use crate::trace::{Trace, nvtx};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tempfile::TempDir;

pub mod exports;
pub mod nccl;

/// The process of every thread for which a test names no other.
pub const PROCESS: i64 = (1 << 48) | (40 << 24);
/// A second process on the same machine.
pub const OTHER_PROCESS: i64 = (1 << 48) | (41 << 24);

/// An export as SQLite in a temporary folder.
pub struct Made {
    folder: TempDir,
    db: Connection,
}

impl Made {
    /// An export without a table.
    pub fn begin() -> Made {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Connection::open(folder.path().join("r.sqlite")).expect("made");
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").expect("set");
        Made { folder, db }
    }

    /// One row; columns that it does not name are empty.
    pub fn put(&self, spec: &TableSpec, row: &[(&str, Value)]) -> &Made {
        let columns = spec.columns.iter().map(|column| {
            let kind = match column.kind {
                ColumnType::Integer => "INTEGER",
                ColumnType::Real => "REAL",
                ColumnType::Text => "TEXT",
                ColumnType::Bytes => "BLOB",
            };
            format!("\"{}\" {kind}", column.name)
        });
        let columns: Vec<String> = columns.collect();
        self.db
            .execute_batch(&format!("CREATE TABLE IF NOT EXISTS {} ({})", spec.name, columns.join(", ")))
            .expect("made");
        let names: Vec<String> = row.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let marks = vec!["?"; row.len()].join(", ");
        let text = format!("INSERT INTO {} ({}) VALUES ({marks})", spec.name, names.join(", "));
        self.db.execute(&text, params_from_iter(row.iter().map(|(_, value)| value))).expect("put");
        self
    }

    /// A text, and the number by which other tables name it.
    pub fn string(&self, id: i64, text: &str) -> &Made {
        self.put(&tables::STRING_IDS, &[("id", id.into()), ("value", text.to_owned().into())])
    }

    /// A call by the thread of this number, of the first process.
    pub fn call(&self, (start, end): (i64, i64), thread: i64, correlation: i64, name: i64) -> &Made {
        self.call_of(PROCESS, (start, end), thread, correlation, name)
    }

    /// The same of any process.
    pub fn call_of(
        &self,
        process: i64,
        (start, end): (i64, i64),
        thread: i64,
        correlation: i64,
        name: i64,
    ) -> &Made {
        self.put(
            &tables::RUNTIME,
            &[
                ("start", start.into()),
                ("end", end.into()),
                ("nameId", name.into()),
                ("globalTid", (process | thread).into()),
                ("correlationId", correlation.into()),
            ],
        )
    }

    /// A kernel of the first process on device 0; its short name has the number behind that of the whole one.
    pub fn kernel(&self, (start, end): (i64, i64), correlation: i64, name: i64) -> &Made {
        self.kernel_of(PROCESS, (start, end), correlation, name)
    }

    /// The same of any process.
    pub fn kernel_of(&self, process: i64, (start, end): (i64, i64), correlation: i64, name: i64) -> &Made {
        let numbers = [
            ("start", start),
            ("end", end),
            ("deviceId", 0),
            ("streamId", 7),
            ("demangledName", name),
            ("shortName", name + 1),
            ("correlationId", correlation),
            ("globalPid", process),
            ("gridX", 2),
            ("gridY", 1),
            ("gridZ", 1),
            ("blockX", 128),
            ("blockY", 1),
            ("blockZ", 1),
        ];
        let row: Vec<(&str, Value)> = numbers.iter().map(|(name, value)| (*name, (*value).into())).collect();
        self.put(&tables::KERNEL, &row)
    }

    /// A fill of memory of the first process.
    pub fn fill(&self, (start, end): (i64, i64), correlation: i64) -> &Made {
        let numbers = [
            ("start", start),
            ("end", end),
            ("bytes", 64),
            ("deviceId", 0),
            ("correlationId", correlation),
            ("globalPid", PROCESS),
        ];
        let row: Vec<(&str, Value)> = numbers.iter().map(|(name, value)| (*name, (*value).into())).collect();
        self.put(&tables::MEMSET, &row)
    }

    /// A push/pop range of the default domain, by the thread of this number.
    pub fn range(&self, (start, end): (i64, i64), thread: i64, text: &str) -> &Made {
        let own = [("start", start.into()), ("end", end.into()), ("text", text.to_owned().into())];
        self.event(nvtx::PUSH_POP, thread, &own)
    }

    /// A range of start/end style that ends on the thread of the second number.
    pub fn started(&self, (start, end): (i64, i64), threads: (i64, i64), text: &str) -> &Made {
        let own = [
            ("start", start.into()),
            ("end", end.into()),
            ("text", text.to_owned().into()),
            ("endGlobalTid", (PROCESS | threads.1).into()),
        ];
        self.event(nvtx::START_END, threads.0, &own)
    }

    /// Any event of the first process; what is not said is domain 0.
    pub fn event(&self, kind: i64, thread: i64, own: &[(&str, Value)]) -> &Made {
        let mut row = vec![("eventType", kind.into())];
        let common = [("globalTid", PROCESS | thread), ("domainId", 0), ("start", 0)];
        let missing = common.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        row.extend(missing.map(|(name, value)| (*name, (*value).into())));
        row.extend(own.iter().cloned());
        self.put(&tables::NVTX_EVENTS, &row)
    }

    /// Of the SQLite file.
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("r.sqlite")
    }

    /// Opened, with all rows so far.
    pub fn trace(&self) -> Trace {
        Trace::open(&self.folder.path().join("r.sqlite")).expect("opens")
    }
}
