//! Programs under a profiler for tests of the simulated cluster, and what their reports hold, read as recipes read it.

use super::*;
use job::profile::nsys::Arguments;
use job::profile::{NsysVersion, Ranks};
use job::script::Profile;
use nsys::export::{Export, Rows};
use nsys::tables;
use std::io::Write;

pub(super) const PAIR: &str = "p5-[001-002]";
pub(super) const TABLES: [&str; 11] = [
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
    "StringIds",
    "NVTX_PAYLOAD_SCHEMAS",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
    "NVTX_PAYLOAD_ENUMS",
    "NVTX_PAYLOAD_ENUM_ENTRIES",
    "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_SYSTEM_ENV",
];

/// A program under nsys on every task of two nodes.
pub(super) fn profiled(line: &str, mpi: Option<&str>, tasks_per_node: u32, words: &[&str]) -> Step {
    let every = ["--trace=cuda,nvtx"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    let profile = Profile {
        nsys: "find".to_owned(),
        version: NsysVersion::new(2025, 3),
        tasks: tasks_per_node * 2,
        ranks: Ranks::All,
        node_ranks: Ranks::None,
        name: "c.j".to_owned(),
        export: "parquetdir".to_owned(),
        tables: TABLES.map(str::to_owned).to_vec(),
        words: Arguments { every, once_per_node: Vec::new() },
        window: None,
    };
    Step::Run(Run {
        argv: line.split(' ').map(str::to_owned).collect(),
        tasks_per_node,
        mpi: mpi.map(str::to_owned),
        container: None,
        profile: Some(profile),
    })
}

pub(super) struct Call {
    pub process: i64,
    pub name: String,
    pub start: i64,
    pub end: i64,
    pub correlation: i64,
}

pub(super) struct Kernel {
    pub process: i64,
    pub name: String,
    pub start: i64,
    pub end: i64,
    pub device: i64,
    pub stream: i64,
    pub correlation: i64,
    pub node: Option<i64>,
}

pub(super) struct Range {
    pub name: String,
    pub start: i64,
    pub end: i64,
    pub json: Option<serde_json::Value>,
}

/// One rank's report.
pub(super) struct Observed {
    pub kernels: Vec<Kernel>,
    pub graphs: usize,
    pub calls: Vec<Call>,
    pub ranges: Vec<Range>,
    pub utc_ns: i64,
    pub host: String,
}

/// The tables of a report in a folder, which goes when this does.
pub(super) struct Report {
    _files: Vec<tempfile::NamedTempFile>,
    export: tempfile::TempDir,
    _folder: tempfile::TempDir,
}

impl Report {
    pub(super) async fn read(bench: &Bench, rank: u32, node: &str) -> Report {
        let folder = tempfile::tempdir().expect("a folder");
        let mut named = tempfile::Builder::new();
        let export = named.prefix("r_pqtdir").rand_bytes(0).tempdir_in(folder.path()).expect("made");
        let mut files = Vec::new();
        for table in TABLES {
            let name = format!("c.j.step0.try0.rank{rank}.{node}_pqtdir/{table}.parquet");
            if let Some(bytes) = bench.get("c", "j", &name).await {
                let mut named = tempfile::Builder::new();
                let file = named.prefix(table).suffix(".parquet").rand_bytes(0).tempfile_in(export.path());
                let mut file = file.expect("made");
                file.write_all(&bytes).expect("written");
                files.push(file);
            }
        }
        Report { _files: files, export, _folder: folder }
    }

    pub(super) fn path(&self) -> &std::path::Path {
        self.export.path()
    }
}

impl Observed {
    pub(super) async fn read(bench: &Bench, rank: u32, node: &str) -> Observed {
        let report = Report::read(bench, rank, node).await;
        let export = Export::open(report.path()).expect("an export");
        let strings = read(&export, &tables::STRING_IDS).expect("strings");
        let names: BTreeMap<i64, String> = (strings.ints("id").expect("ids").iter().enumerate())
            .map(|(row, id)| (*id, text(&strings, "value", row).expect("a string")))
            .collect();
        let name = |id: i64| names[&id].clone();
        let kernels = read(&export, &tables::KERNEL).map_or(Vec::new(), |rows| {
            let int = |column, row: usize| rows.ints(column).expect("numbers")[row];
            let maybe = |column, row| rows.maybe_ints(column).expect("numbers").get(row);
            let kernel = |row| Kernel {
                process: maybe("globalPid", row).expect("a process") >> 24,
                name: name(int("shortName", row)),
                start: int("start", row),
                end: int("end", row),
                device: int("deviceId", row),
                stream: int("streamId", row),
                correlation: maybe("correlationId", row).expect("a number"),
                node: maybe("graphNodeId", row),
            };
            (0..rows.len()).map(kernel).collect()
        });
        let rows = read(&export, &tables::RUNTIME).expect("calls");
        let int = |column, row: usize| rows.ints(column).expect("numbers")[row];
        let call = |row| Call {
            process: rows.maybe_ints("globalTid").expect("numbers").get(row).expect("a thread") >> 24,
            name: name(int("nameId", row)),
            start: int("start", row),
            end: int("end", row),
            correlation: rows.maybe_ints("correlationId").expect("numbers").get(row).expect("a number"),
        };
        let calls = (0..rows.len()).map(call).collect();
        let rows = read(&export, &tables::NVTX_EVENTS).expect("ranges");
        let maybe = |column, row| rows.maybe_ints(column).expect("numbers").get(row);
        let is_range = |row: &usize| rows.ints("eventType").expect("types")[*row] == 59;
        let range = |row| Range {
            name: maybe("textId", row).map(name).or_else(|| text(&rows, "text", row)).expect("a name"),
            start: rows.ints("start").expect("numbers")[row],
            end: maybe("end", row).expect("an end"),
            json: text(&rows, "jsonText", row).map(|text| serde_json::from_str(&text).expect("JSON")),
        };
        let ranges = (0..rows.len()).filter(is_range).map(range).collect();
        let session = read(&export, &tables::SESSION_START).expect("a session");
        let environment = read(&export, &tables::SYSTEM_ENV).expect("an environment");
        Observed {
            kernels,
            graphs: read(&export, &tables::GRAPH_TRACE).map_or(0, |rows| rows.len()),
            calls,
            ranges,
            utc_ns: session.maybe_ints("utcEpochNs").expect("numbers").get(0).expect("a moment"),
            host: text(&environment, "value", 0).expect("a host"),
        }
    }

    pub(super) fn collectives(&self) -> Vec<&Kernel> {
        self.kernels.iter().filter(|kernel| kernel.name.starts_with("nccl")).collect()
    }

    pub(super) fn launch(&self, kernel: &Kernel) -> &Call {
        let mut calls = self
            .calls
            .iter()
            .filter(|call| (call.process, call.correlation) == (kernel.process, kernel.correlation));
        let call = calls.next().unwrap_or_else(|| panic!("no call launched {}", kernel.name));
        assert!(calls.next().is_none());
        call
    }

    pub(super) fn payload(&self, function: &str, key: &str) -> Vec<u64> {
        let ranges = self.ranges.iter().filter(|range| range.name == function);
        ranges.map(|range| range.json.as_ref().expect("a payload")[key].as_u64().expect("a number")).collect()
    }
}

fn read(export: &Export, spec: &'static tables::TableSpec) -> Option<Rows> {
    export.table(spec).expect("a sound table")
}

fn text(rows: &Rows, column: &str, row: usize) -> Option<String> {
    rows.texts(column).expect("texts").get(row).map(str::to_owned)
}
