//! Exports whose files contradict each other or themselves: kernels twice, a file of another report, a lost file.

use super::Export;
use crate::loss::loss;
use crate::tables::write::{Columns, diagnostics, kernels};
use crate::tables::{KERNEL, KernelRow, MEMCPY, MEMSET, PROCESSES, RUNTIME};
use crate::testing::{Made, OTHER_PROCESS, PROCESS, exports};
use rusqlite::types::Value;
use std::fs;

fn row(start: i64, end: i64, correlation: i64) -> KernelRow {
    KernelRow {
        start,
        end,
        device_id: 0,
        context_id: 1,
        stream_id: 7,
        correlation_id: Some(correlation),
        global_pid: Some(PROCESS),
        short_name: 1,
        demangled_name: 1,
    }
}

/// Of which only these columns are asked for, as recipes do.
fn read(export: &Export) -> Result<usize, String> {
    let rows = export.columns(&KERNEL, &["start", "end", "shortName"]).map_err(|error| error.to_string())?;
    Ok(rows.expect("rows").len())
}

#[test]
fn kernels_that_are_there_twice_are_refused_with_their_rows() {
    let expected = "table `CUPTI_ACTIVITY_KIND_KERNEL` cannot be read: row 3 repeats row 1, 2 such rows: export \
                    the report again";
    let made = Made::begin();
    made.kernel((0, 10), 1, 1).kernel((20, 30), 2, 1).kernel((0, 10), 1, 1).kernel((20, 30), 2, 1);
    let export = Export::open(&made.path()).expect("opens");
    assert_eq!(read(&export), Err(expected.to_owned()));
    assert_eq!(read(&export), Err(expected.to_owned()), "and whenever they are asked for");
    let folder = tempfile::tempdir().expect("a folder");
    let path = exports::parquet(folder.path(), &[(0, 10, "a")], &[]);
    let rows = [row(0, 10, 1), row(20, 30, 2)];
    let table = path.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    fs::write(&table, kernels(&[rows.clone(), rows].concat()).expect("written")).expect("written");
    assert_eq!(read(&Export::open(&path).expect("opens")), Err(expected.to_owned()));
}

#[test]
fn kernels_that_merely_look_alike_are_no_copies() {
    let made = Made::begin();
    // Two launches, the same on another GPU, two nodes of a graph, and two of which CUPTI has no times.
    for (start, end, device, correlation, node) in [
        (0, 10, 0, 1, None),
        (0, 10, 0, 2, None),
        (0, 10, 1, 1, None),
        (5, 9, 0, 3, Some(1)),
        (5, 9, 0, 3, Some(2)),
        (0, 0, 0, 4, None),
        (0, 0, 0, 4, None),
    ] {
        let numbers = [
            ("start", Some(start)),
            ("end", Some(end)),
            ("deviceId", Some(device)),
            ("streamId", Some(7)),
            ("demangledName", Some(1)),
            ("shortName", Some(1)),
            ("correlationId", Some(correlation)),
            ("graphNodeId", node),
        ];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, Value::Integer(number?))));
        made.put(&KERNEL, &numbers.collect::<Vec<_>>());
    }
    assert_eq!(read(&Export::open(&made.path()).expect("opens")), Ok(7));
}

/// Where all columns were read at once, one that cannot be read hid the copies.
#[test]
fn kernels_that_are_there_twice_are_refused_also_where_a_column_cannot_be_read() {
    let made = Made::begin();
    let put = |start: i64, launch: i64| {
        let numbers = [("start", start), ("end", start + 10), ("deviceId", 0), ("streamId", 7)];
        let mut row: Vec<(&str, Value)> =
            numbers.into_iter().map(|(name, number)| (name, Value::Integer(number))).collect();
        row.extend(
            [("demangledName", 1), ("shortName", 1), ("correlationId", launch)]
                .map(|(name, number)| (name, Value::Integer(number))),
        );
        row.push(("gridX", Value::Text("x".to_owned())));
        made.put(&KERNEL, &row);
    };
    [(0, 1), (20, 2), (0, 3)].into_iter().for_each(|(start, launch)| put(start, launch));
    assert_eq!(read(&Export::open(&made.path()).expect("opens")), Ok(3));
    [(20, 2), (0, 3), (0, 3)].into_iter().for_each(|(start, launch)| put(start, launch));
    let refused = read(&Export::open(&made.path()).expect("opens")).expect_err("refused");
    assert!(refused.contains("row 4 repeats row 2, 3 such rows"), "{refused}");
}

#[test]
fn kernels_of_another_report_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = exports::parquet(folder.path(), &[(0, 10, "a")], &[]);
    let table = path.join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    fs::write(table, kernels(&[row(0, 10, 1)]).expect("written")).expect("written");
    let listed = |processes: &[i64]| {
        let rows = Columns::new(&PROCESSES, processes.len()).numbers("globalPid", processes.iter().copied());
        fs::write(path.join("PROCESSES.parquet"), rows.bytes().expect("written")).expect("written");
        read(&Export::open(&path).expect("opens"))
    };
    assert_eq!(listed(&[OTHER_PROCESS, PROCESS]), Ok(1));
    assert_eq!(listed(&[]), Ok(1));
    let refused = listed(&[OTHER_PROCESS]).expect_err("refused");
    assert!(
        refused
            .ends_with("`PROCESSES` lists none of its processes: a file of another report, export it again")
    );
}

#[test]
fn a_folder_that_lost_its_diagnostics_is_refused_where_loss_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = exports::parquet(folder.path(), &[(0, 10, "a")], &[]);
    let export = Export::open(&path).expect("opens");
    assert_eq!(loss(&export), Ok(None), "older releases export none");
    fs::write(path.join("ENUM_DIAGNOSTIC_SEVERITY_LEVEL.parquet"), "labels").expect("written");
    let refused = loss(&export).expect_err("refused").to_string();
    assert!(
        refused.starts_with("table `DIAGNOSTIC_EVENT` cannot be read: it is absent or empty"),
        "{refused}"
    );
    let started = diagnostics(&[(1, "Profiling has started.".to_owned())]).expect("written");
    fs::write(path.join("DIAGNOSTIC_EVENT.parquet"), started).expect("written");
    assert_eq!(loss(&export), Ok(None));
}

#[test]
fn a_folder_with_a_table_in_both_forms_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = exports::parquet(folder.path(), &[(0, 10, "a")], &[]);
    fs::write(path.join("notes.arrow"), "of another program").expect("written");
    assert_eq!(read(&Export::open(&path).expect("opens")), Ok(1));
    fs::write(path.join("CUPTI_ACTIVITY_KIND_KERNEL.arrow"), "of another report").expect("written");
    let refused = Export::open(&path).map(|_| ()).expect_err("refused").to_string();
    assert!(
        refused.contains("table `CUPTI_ACTIVITY_KIND_KERNEL` is there as .parquet and as .arrow"),
        "{refused}"
    );
}

#[test]
fn copies_and_fills_of_memory_that_are_there_twice_are_refused() {
    for spec in [&MEMCPY, &MEMSET] {
        let made = Made::begin();
        let put = |start: i64, correlation: i64, node: i64| {
            let mut row = vec![("start", start), ("end", start + 5), ("bytes", 64), ("deviceId", 0)];
            row.extend([("correlationId", correlation), ("graphNodeId", node)]);
            if *spec == MEMCPY {
                row.push(("copyKind", 1));
            }
            let row: Vec<(&str, Value)> =
                row.into_iter().map(|(name, number)| (name, Value::Integer(number))).collect();
            made.put(spec, &row);
        };
        let read = || {
            let export = Export::open(&made.path()).expect("opens");
            let rows = export.columns(spec, &["start", "end", "bytes"]).map_err(|error| error.to_string())?;
            Ok::<usize, String>(rows.expect("rows").len())
        };
        // Two nodes of a graph share a launch.
        put(0, 1, 1);
        put(0, 1, 2);
        assert_eq!(read(), Ok(2));
        put(0, 1, 1);
        let refused = read().expect_err("refused");
        assert!(refused.contains("row 3 repeats row 1, 1 such rows"), "{refused}");
    }
}

#[test]
fn the_first_repeated_row_of_a_file_is_named_whatever_its_start() {
    let made = Made::begin();
    made.kernel((20, 30), 2, 1).kernel((20, 30), 2, 1).kernel((0, 10), 1, 1).kernel((0, 10), 1, 1);
    made.kernel((20, 30), 2, 1);
    let refused = read(&Export::open(&made.path()).expect("opens")).expect_err("refused");
    assert!(refused.contains("row 2 repeats row 1, 3 such rows"), "{refused}");
}

#[test]
fn cuda_calls_that_are_there_twice_are_refused() {
    let made = Made::begin();
    let put = |correlation: i64, thread: Option<i64>| {
        let mut row = vec![("start", 0), ("end", 5), ("nameId", 1), ("correlationId", correlation)];
        row.extend(thread.map(|thread| ("globalTid", thread)));
        let row: Vec<(&str, Value)> =
            row.into_iter().map(|(name, number)| (name, Value::Integer(number))).collect();
        made.put(&RUNTIME, &row);
    };
    let read = || {
        let export = Export::open(&made.path()).expect("opens");
        let rows = export.columns(&RUNTIME, &["start", "end"]).map_err(|error| error.to_string())?;
        Ok::<usize, String>(rows.expect("rows").len())
    };
    // Other threads, other calls, and two of which the export does not say whose they are.
    put(1, Some(PROCESS));
    put(1, Some(OTHER_PROCESS));
    put(2, Some(PROCESS));
    put(1, None);
    put(1, None);
    assert_eq!(read(), Ok(5));
    put(2, Some(PROCESS));
    let refused = read().expect_err("refused");
    assert!(refused.contains("row 6 repeats row 3, 1 such rows"), "{refused}");
}
