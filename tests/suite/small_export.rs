//! Small exports of reports that tests write, in a folder of their own, and `harness stats` run in it.

use crate::project::{HARNESS, Project, Ran, ran};
use nsys::tables::{KernelRow, write};
use rusqlite::{Connection, params};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Start, end, name; of ranges the domain is the default one.
pub(crate) type Row<'a> = (i64, i64, &'a str);

/// What a report holds: kernels, calls of the API, ranges.
#[derive(Default, Clone, Copy)]
pub(crate) struct Report<'a> {
    pub kernels: &'a [Row<'a>],
    pub calls: &'a [Row<'a>],
    pub ranges: &'a [Row<'a>],
}

/// Two kernels of one name and one of another, three calls, two ranges; the second range has the last call in it.
pub(crate) const PLAIN: Report = Report {
    kernels: &[
        (1_000, 8_468, "gemm<float, 2>"),
        (10_000, 17_849, "gemm<float, 2>"),
        (20_000, 20_500, "copy"),
    ],
    calls: &[
        (0, 500, "cudaLaunchKernel_v7000"),
        (600, 1_000, "cudaLaunchKernel_v7000"),
        (15_000, 15_100, "cudaFree"),
    ],
    ranges: &[(0, 12_000, "first"), (14_000, 30_000, "second/half")],
};

pub(crate) struct ExportFolder {
    folder: Project,
}

impl ExportFolder {
    pub(crate) fn new() -> ExportFolder {
        ExportFolder { folder: Project::bare() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HARNESS);
        command.arg("stats").args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        // No test finds an nsys by chance.
        command.env("PATH", "/usr/bin:/bin");
        command
    }

    /// Any verb, in the same way.
    pub(crate) fn verb(&self, verb: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(HARNESS);
        command.arg(verb).args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin");
        ran(command.output().expect("the harness starts"))
    }

    pub(crate) fn stats(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("the harness starts"))
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// As if it had been written that many hours into some day.
    pub(crate) fn set_hour(&self, name: &str, hour: u64) {
        let file = File::options().append(true).open(self.path(name)).expect("there");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + hour * 3600))
            .expect("a time");
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn sqlite(&self, name: &str, report: Report) {
        sqlite(&self.path(name), report);
    }

    pub(crate) fn parquet(&self, name: &str, kernels: &[Row]) {
        parquet(&self.path(name), kernels);
    }
}

pub(crate) fn sqlite(path: &Path, report: Report) {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("made");
    }
    let _ = fs::remove_file(path);
    let mut db = Connection::open(path).expect("made");
    db.execute_batch(
        "CREATE TABLE StringIds (id INTEGER, value TEXT);
         CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.0');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
             streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
             correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
         CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, text TEXT,
             globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, eventId INTEGER);",
    )
    .expect("tables");
    let tid = (7i64 << 24) | 7;
    let rows = db.transaction().expect("begun");
    let mut strings = 0;
    let mut string = |text: &str| {
        strings += 1;
        rows.execute("INSERT INTO StringIds VALUES (?1, ?2)", params![strings, text]).expect("put");
        strings
    };
    for ((start, end, name), id) in report.kernels.iter().zip(1..) {
        let name = string(name);
        rows.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 1, 7, ?3, ?4, ?5, ?5)",
            params![start, end, id, 7i64 << 24, name],
        )
        .expect("put");
    }
    for ((start, end, name), id) in report.calls.iter().zip(1..) {
        let name = string(name);
        rows.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, ?5, 0)",
            params![start, end, tid, id, name],
        )
        .expect("put");
    }
    for (start, end, name) in report.ranges {
        rows.execute(
            "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, NULL, ?3, ?4, NULL, NULL, 0, NULL)",
            params![start, end, name, tid],
        )
        .expect("put");
    }
    rows.commit().expect("kept");
}

/// Kernels alone, as a folder of Parquet files.
pub(crate) fn parquet(folder: &Path, kernels: &[Row]) {
    fs::create_dir_all(folder).expect("made");
    let rows: Vec<KernelRow> = kernels
        .iter()
        .zip(1..)
        .map(|((start, end, _), id)| KernelRow {
            start: *start,
            end: *end,
            device_id: 0,
            context_id: 1,
            stream_id: 7,
            correlation_id: None,
            global_pid: None,
            short_name: id,
            demangled_name: id,
        })
        .collect();
    let names: Vec<(i64, String)> =
        kernels.iter().zip(1..).map(|((.., name), id)| (id, (*name).to_owned())).collect();
    for (table, bytes) in [
        ("CUPTI_ACTIVITY_KIND_KERNEL", write::kernels(&rows)),
        ("StringIds", write::strings(&names)),
        ("META_DATA_EXPORT", write::meta("3.20.0", "2025.3.1")),
    ] {
        fs::write(folder.join(format!("{table}.parquet")), bytes.expect("made")).expect("written");
    }
}
