//! How ranges stand in one another and how they are projected, against tables of a real training run that another
//! implementation wrote: of its ranges nothing but begin, end, name, process, thread
//! and number is taken, and all else is rebuilt.

use crate::fact::Fact;
use lzma_rust2::XzReader;
use nsys::export::Export;
use nsys::tables::{ColumnSpec, ColumnType, TableSpec};
use nsys::trace::Trace;
use recipes::recipe::of_reports::{self, Input, Survey};
use recipes::report::{Arguments, find};
use recipes::result_table::{ResultTable, Values};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) const FACTS: &[Fact] = &[
    ("places_of_ranges_are_rebuilt_without_a_difference", places_of_ranges_are_rebuilt_without_a_difference),
    (
        "projections_have_the_rows_names_times_places_and_order_of_the_published_table",
        projections_have_the_rows_names_times_places_and_order_of_the_published_table,
    ),
    (
        "published_projections_lie_within_those_of_their_parents",
        published_projections_lie_within_those_of_their_parents,
    ),
];

const PROCESSES: [(&str, usize, usize); 2] =
    [("jax-pax-fsdp4-proc0", 27_891, 14_305), ("jax-pax-fsdp4-proc2", 27_885, 14_299)];

const fn column(name: &'static str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec { name, kind, required: true }
}

static PROJECTED: TableSpec = TableSpec {
    name: "nvtx_gpu_proj_trace__trace",
    older_name: None,
    columns: &[
        column("Name", ColumnType::Text),
        column("Projected Start", ColumnType::Integer),
        column("Projected Duration", ColumnType::Integer),
        column("Orig Start", ColumnType::Integer),
        column("Orig Duration", ColumnType::Integer),
        column("Style", ColumnType::Text),
        column("PID", ColumnType::Integer),
        column("TID", ColumnType::Integer),
        column("NumGPUOps", ColumnType::Integer),
        column("Lvl", ColumnType::Integer),
        column("NumChild", ColumnType::Integer),
        column("RangeId", ColumnType::Integer),
        column("ParentId", ColumnType::Integer),
        column("RangeStack", ColumnType::Text),
    ],
};

/// One line of theirs, by heading.
type Row = BTreeMap<String, String>;

fn folder(name: &str) -> PathBuf {
    crate::corpus::file(&format!("nsys-recipes/{name}"))
}

fn ranges(folder: &Path) -> Vec<Row> {
    let file = File::open(folder.join("report_nvtx_pushpop_trace.csv.xz")).expect("there");
    let mut text = String::new();
    XzReader::new(file, true).read_to_string(&mut text).expect("unpacked");
    let mut lines = text.lines();
    let heads = cells(lines.next().expect("headings"));
    lines.map(|line| heads.iter().cloned().zip(cells(line)).collect()).collect()
}

/// Of one line; no cell of these tables has a quote or the end of a line.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

/// Rows of theirs out of Parquet, as text.
fn projected(folder: &Path) -> Vec<Row> {
    let export = Export::open(folder).expect("opens");
    let rows = export.table(&PROJECTED).expect("read").expect("rows");
    let texts = |column: &ColumnSpec| -> Vec<String> {
        let texts = match column.kind {
            ColumnType::Text => {
                let all = rows.texts(column.name).expect("texts");
                all.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
            }
            _ => {
                let all = rows.maybe_ints(column.name).expect("numbers");
                all.iter().map(|number| number.map(|number| number.to_string())).collect()
            }
        };
        texts.into_iter().map(Option::unwrap_or_default).collect()
    };
    let columns: Vec<(&str, Vec<String>)> =
        PROJECTED.columns.iter().map(|column| (column.name, texts(column))).collect();
    let row = |at: usize| columns.iter().map(|(name, all)| ((*name).to_owned(), all[at].clone())).collect();
    (0..rows.len()).map(row).collect()
}

fn number(row: &Row, column: &str) -> i64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn thread(row: &Row) -> i64 {
    (1 << 48) | (number(row, "PID") << 24) | number(row, "TID")
}

const SCHEMA: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;
CREATE TABLE StringIds (id INTEGER, value TEXT);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
 domainId INTEGER, eventId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER, globalTid INTEGER,
 correlationId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, bytes INTEGER,
 correlationId INTEGER, globalPid INTEGER);";

/// The ranges alone, as a report would hold them, and nothing of how they stand in one another.
fn written(path: &Path, ranges: &[Row]) -> Connection {
    let db = Connection::open(path).expect("made");
    db.execute_batch(SCHEMA).expect("made");
    // In their tables a name stands behind its domain's.
    let parts = |row: &Row| {
        let (domain, name) = row["Name"].split_once(':').expect("a domain");
        (domain.to_owned(), name.to_owned())
    };
    let domains: BTreeSet<String> = ranges.iter().map(|row| parts(row).0).collect();
    let domains: Vec<String> = domains.into_iter().collect();
    for (id, domain) in domains.iter().enumerate() {
        db.execute(
            "INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, ?1, ?2, ?3, NULL)",
            (domain, thread(&ranges[0]), id as i64 + 1),
        )
        .expect("put");
    }
    // The last first: what a report's order of rows is must not matter.
    for row in ranges.iter().rev() {
        let (domain, name) = parts(row);
        let domain = domains.iter().position(|known| *known == domain).expect("known") as i64 + 1;
        db.execute(
            "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, ?3, ?4, ?5, ?6)",
            (
                number(row, "Start (ns)"),
                number(row, "End (ns)"),
                name,
                thread(row),
                domain,
                number(row, "RangeId"),
            ),
        )
        .expect("put");
    }
    db
}

/// What their projections report operations, turned back into operations: as many as each range has beyond those of its
/// children, in one call that fills the range, from the projection's begin to its end.
fn operations(db: &Connection, projected: &[Row]) {
    let mut of_children: BTreeMap<&str, i64> = BTreeMap::new();
    for row in projected {
        *of_children.entry(&row["ParentId"]).or_default() += number(row, "NumGPUOps");
    }
    for (at, row) in projected.iter().enumerate() {
        let id = row["RangeId"].as_str();
        let children = if id.is_empty() { 0 } else { of_children.get(id).copied().unwrap_or(0) };
        let own = number(row, "NumGPUOps") - children;
        let call = if id.is_empty() {
            (1, 2)
        } else {
            let start = number(row, "Orig Start");
            (start, start + number(row, "Orig Duration"))
        };
        let (thread, correlation) = (thread(row), at as i64 + 1);
        if own > 0 {
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 1, ?3, ?4)",
                (call.0, call.1, thread, correlation),
            )
            .expect("put");
        }
        let start = number(row, "Projected Start");
        for operation in 0..own {
            let end = if operation == 0 { start + number(row, "Projected Duration") } else { start };
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?1, ?2, 0, 4, ?3, ?4)",
                (start, end, correlation, thread & !0xff_ffff),
            )
            .expect("put");
        }
    }
}

/// A row of ours in theirs' words.
fn cell(result_table: &ResultTable, column: &str, row: usize) -> String {
    match &result_table.column(column).unwrap_or_else(|| panic!("no {column}")).values {
        Values::Integers(all) => all.get(row).map(|number| number.to_string()).unwrap_or_default(),
        Values::Texts(all) => all.get(row).unwrap_or_default().to_owned(),
        other => panic!("{column}: {other:?}"),
    }
}

fn places_of_ranges_are_rebuilt_without_a_difference() {
    for (name, count, _) in PROCESSES {
        let folder = folder(name);
        let ranges = ranges(&folder);
        assert_eq!(ranges.len(), count, "{name}");
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("r.sqlite");
        written(&path, &ranges).execute_batch("COMMIT").expect("written");
        let report = find("nvtx_pushpop_trace").expect("there");
        let trace = Trace::open(&path).expect("opens");
        let result_table = (report.run)(&trace, &Arguments::default()).expect("read").expect("rows");
        assert_eq!(result_table.height(), count, "{name}");
        for (at, row) in ranges.iter().enumerate() {
            for column in ["Name", "PID", "TID", "Lvl", "NumChild", "RangeId", "ParentId", "RangeStack"] {
                // Theirs are of a table whose empty numbers made all others of a column fractions.
                let theirs = row[column].trim_end_matches(".0");
                assert_eq!(cell(&result_table, column, at), theirs, "{name}: row {at}: {column}");
            }
            for (ours, theirs) in
                [("Start", "Start (ns)"), ("Duration", "Duration (ns)"), ("DurChild", "DurChild (ns)")]
            {
                assert_eq!(cell(&result_table, ours, at), row[theirs], "{name}: row {at}: {ours}");
            }
        }
        assert_eq!(trace.notes(), Vec::<String>::new());
    }
}

fn projections_have_the_rows_names_times_places_and_order_of_the_published_table() {
    for (name, _, count) in PROCESSES {
        let folder = folder(name);
        let projected = projected(&folder);
        assert_eq!(projected.len(), count, "{name}");
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("r.sqlite");
        let db = written(&path, &ranges(&folder));
        operations(&db, &projected);
        db.execute_batch("COMMIT").expect("written");
        let recipe = of_reports::find("nvtx_gpu_proj_trace").expect("there");
        let inputs = [Input { path, shown: name.to_owned(), side: 0 }];
        let asked = [(recipe, Arguments::default())];
        let survey = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 1, progress: &|_| {} };
        let outcome = of_reports::survey(&survey).expect("threads").remove(0);
        assert!(outcome.notes.is_empty() && outcome.unreadable.is_empty(), "{:?}", outcome.notes);
        let (_, trace) = outcome.tables.iter().find(|(table, _)| *table == "trace").expect("a trace");
        assert_eq!(trace.height(), count, "{name}");
        for (at, row) in projected.iter().enumerate() {
            for column in PROJECTED.columns {
                let ours = cell(trace, column.name, at);
                assert_eq!(ours, row[column.name], "{name}: row {at}: {}", column.name);
            }
        }
    }
}

/// What holds of their projected times, which cannot be computed again without their operations.
fn published_projections_lie_within_those_of_their_parents() {
    for (name, ..) in PROCESSES {
        let folder = folder(name);
        let projected = projected(&folder);
        let span = |row: &Row| {
            let start = number(row, "Projected Start");
            (start, start + number(row, "Projected Duration"))
        };
        let by_id: BTreeMap<&str, &Row> =
            projected.iter().map(|row| (row["RangeId"].as_str(), row)).collect();
        let mut held = 0;
        for row in projected.iter().filter(|row| !row["ParentId"].is_empty()) {
            let parent = by_id[row["ParentId"].as_str()];
            let (own, outer) = (span(row), span(parent));
            assert!(outer.0 <= own.0 && own.1 <= outer.1, "{name}: {row:?}");
            assert!(number(row, "NumGPUOps") <= number(parent, "NumGPUOps"), "{name}: {row:?}");
            held += 1;
        }
        assert!(held > 10_000, "{name}: {held}");
        assert!(projected.is_sorted_by_key(|row| number(row, "Projected Start")), "{name}");
    }
}
