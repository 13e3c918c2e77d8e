//! Every recipe writes the tables and columns that it declares, each with a description: shown on a report that holds a
//! row or more of every table that recipes read.

use super::columns::COLUMNS;
use super::tests::inputs;
use super::*;
use crate::report::Takes;
use crate::testing::{Made as Report, PROCESS, nccl};
use nsys::tables::{self, ColumnType};
use nsys::trace::nvtx;
use rusqlite::types::Value;
use std::collections::BTreeSet;

#[test]
fn every_table_and_column_of_a_recipe_has_a_description() {
    assert!(COLUMNS.is_sorted(), "in the order of their names");
    for recipe in LIST {
        for table in recipe.output_tables() {
            let place = format!("{}/{}", recipe.name, table.name);
            assert!(!table.about.is_empty() && !table.columns.is_empty(), "{place}");
            let blank: Vec<_> = table.columns.iter().filter(|(_, about)| about.is_empty()).collect();
            assert!(blank.is_empty(), "{place}: {blank:?}");
        }
    }
}

/// By the name of a column, for the row of this number.
fn cell(column: &tables::ColumnSpec, row: i64) -> Value {
    let at = 1_000 + row * 1_000;
    match (column.name, column.kind) {
        ("start" | "startTime" | "timestamp", _) => at.into(),
        ("end" | "stopTime", _) => (at + 500).into(),
        ("globalTid" | "endGlobalTid", _) => (PROCESS | 3).into(),
        ("globalPid", _) => PROCESS.into(),
        ("eventType", _) => nvtx::PUSH_POP.into(),
        ("correlationId" | "nameId" | "textId" | "demangledName" | "shortName", _) => (row + 1).into(),
        // A whole call of the C library.
        ("eventClass", _) => 27.into(),
        ("unit", _) => "bytes/ms".to_owned().into(),
        ("metricName", _) => "SMs Active".to_owned().into(),
        ("name", _) => format!("Bytes sent {row}").into(),
        (_, ColumnType::Text) => format!("text {row}").into(),
        (_, ColumnType::Real) => 1.5.into(),
        (_, ColumnType::Bytes) => Value::Null,
        (_, ColumnType::Integer) => row.into(),
    }
}

/// Counters of a NIC of EFA, as events whose fields have a table.
fn efa(report: &Report) {
    report.string(90, "AWS EFAs").string(91, "rdma_write_bytes per second").string(92, "rdmap79s0");
    let numbers = |spec: &TableSpec, row: &[(&'static str, i64)]| {
        let row: Vec<(&str, Value)> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
        report.put(spec, &row);
    };
    numbers(&tables::GENERIC_EVENT_SOURCES, &[("sourceId", 7), ("nameId", 90)]);
    numbers(&tables::GENERIC_EVENT_TYPES, &[("typeId", 0), ("sourceId", 7), ("nameId", 92)]);
    numbers(&tables::GENERIC_EVENT_TYPE_FIELDS, &[("typeId", 0), ("fieldIdx", 0), ("fieldNameId", 91)]);
    for event in 0..4 {
        let at = event * 100_000_000;
        numbers(&tables::GENERIC_EVENTS, &[("timestamp", at), ("typeId", 0), ("genericEventId", event)]);
        numbers(&tables::GENERIC_EVENT_DATA, &[("genericEventId", event), ("fieldIdx", 0), ("uintVal", 9)]);
    }
}

/// Requests of the plugin for EFA, and what LTTng wrote beside the report.
fn plugin(report: &Report) {
    report.event(
        nvtx::DOMAIN,
        0,
        &[("domainId", 6.into()), ("text", "aws-ofi-nccl dev 2_0".to_owned().into())],
    );
    let request = [("start", 10.into()), ("end", 25.into()), ("domainId", 6.into())];
    let name = [("text", "Send_write_seg".to_owned().into()), ("endGlobalTid", (PROCESS | 9).into())];
    report.event(nvtx::START_END, 3, &[&request[..], &name[..]].concat());
    let line = "[1.5] h nccl_ofi_plugin:Send_write_segment_start: { dev = 2, rail_id = 0, size = 3000 }\n";
    std::fs::write(report.path().with_file_name("r.lttng.txt"), line).expect("written");
}

/// A communicator of two ranks, each with a kernel of its own work before each collective.
fn collectives(report: &Report, rank: u32) {
    const MS: i64 = 1_000_000;
    report.string(80, "cudaLaunchKernel").string(81, "ncclDevKernel_AllReduce").string(82, "ncclDevKernel");
    nccl::domain(report);
    nccl::communicator(report, 5_000, 7, 2, rank);
    for step in 0..20 {
        let (start, number) = (10 * MS + step * 100 * MS, 1_000 + 10 * step);
        report.call((start, start + 5), 3, number, 80).kernel((start, start + 60 * MS), number, 2);
        let own = (step * 7 + i64::from(rank) * 3) % 11 * 10_000;
        let collective = (start + 80 * MS + own, start + 90 * MS);
        nccl::range(
            report,
            (collective.0 - 50, collective.0 - 42),
            3,
            "ncclAllReduce",
            Some(&nccl::json(7, 1024)),
        );
        report.call((collective.0 - 48, collective.0 - 44), 3, number + 1, 80);
        report.kernel(collective, number + 1, 81);
        report.range((start, start + 95 * MS), 3, &format!("step {step}"));
        report.range((start, start + 95 * MS), 4, "batch");
    }
}

/// A report with rows of every table.
fn full(rank: u32) -> Report {
    let report = Report::begin();
    let epoch = 1_760_000_000_000_000_000i64.into();
    report.put(&tables::SESSION_START, &[("utcEpochNs", epoch)]);
    let host = [("name", "Hostname".to_owned().into()), ("value", format!("n{rank}").into())];
    report.put(&tables::SYSTEM_ENV, &host);
    let own = [tables::SESSION_START.name, tables::SYSTEM_ENV.name, tables::MPI_RANKS.name];
    let is_own = |name: &str| own.contains(&name) || name.starts_with("GENERIC_");
    for spec in tables::LIST.into_iter().filter(|spec| !is_own(spec.name)) {
        for row in 0..3 {
            let cells = spec.columns.iter().map(|column| (column.name, cell(column, row)));
            report.put(spec, &cells.collect::<Vec<_>>());
        }
    }
    efa(&report);
    plugin(&report);
    collectives(&report, rank);
    report
}

#[test]
fn every_recipe_writes_the_tables_and_columns_that_it_declares() {
    let reports = [full(0), full(1)];
    let inputs = inputs(reports.iter().map(Report::path).collect());
    let mut written: BTreeSet<(&str, &str, String)> = BTreeSet::new();
    for recipe in LIST {
        let each = recipe.arguments.iter().filter(|argument| matches!(argument.takes, Takes::Nothing));
        let mut given: Vec<Vec<String>> = each.map(|argument| vec![argument.name.to_string()]).collect();
        given.push(Vec::new());
        given.extend(["window=0..2", "step=step", "range=batch"].map(|word| vec![word.to_owned()]));
        for words in given {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let Ok(arguments) = Arguments::read(recipe.name, recipe.arguments, &words) else { continue };
            let asked = [(*recipe, arguments)];
            let of = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 1, progress: &|_| {} };
            for outcome in survey(&of).expect("threads") {
                for (table, made) in &outcome.tables {
                    let columns =
                        made.columns.iter().map(|column| (recipe.name, *table, column.name.clone()));
                    written.extend(columns);
                }
            }
        }
    }
    // What a recipe writes and does not declare ends a survey in a test: `undeclared`.
    let mut only_declared = Vec::new();
    for recipe in LIST {
        for table in recipe.output_tables() {
            let of_report = |name: &str| name.starts_with('{');
            let columns = table.columns.iter().map(|(name, _)| name.clone()).filter(|name| !of_report(name));
            let columns = columns.map(|name| (recipe.name, table.name, name));
            only_declared.extend(columns.filter(|column| !written.contains(column)));
        }
    }
    assert!(only_declared.is_empty(), "{only_declared:#?}");
}
