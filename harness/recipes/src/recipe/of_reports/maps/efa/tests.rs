//! Counters of EFA, from events of reports and from captures.

use crate::chart::{Figure, Heatmap};
use crate::recipe::of_reports::Outcome;
use crate::recipe::of_reports::part_tests::both_ways;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::recipe::of_reports::{Survey, find};
use crate::report::Arguments;
use crate::testing::Made;
use logs::efa_counters::{Capture, Clock, Device, End, Phase, Reading, Reason, render};
use nsys::tables::{
    GENERIC_EVENT_DATA, GENERIC_EVENT_SOURCES, GENERIC_EVENT_TYPE_FIELDS, GENERIC_EVENT_TYPES,
    GENERIC_EVENTS, SESSION_START, SYSTEM_ENV,
};
use nsys::trace::Filter;

/// A report of a host: samples of one counter of each device, a hundred milliseconds apart.
fn report(host: Option<&str>, counter: &str, devices: &[(&str, &[i64])]) -> Made {
    let made = Made::begin();
    made.string(1, "AWS EFAs").string(2, counter);
    made.put(&GENERIC_EVENT_SOURCES, &[("sourceId", 7i64.into()), ("nameId", 1i64.into())]);
    let mut event = 0i64;
    for (at, (device, values)) in (0i64..).zip(devices) {
        made.string(10 + at, device);
        let kind = [("typeId", at), ("sourceId", 7), ("nameId", 10 + at)];
        made.put(&GENERIC_EVENT_TYPES, &kind.map(|(name, value)| (name, value.into())));
        let field = [("typeId", at), ("fieldIdx", 0), ("fieldNameId", 2)];
        made.put(&GENERIC_EVENT_TYPE_FIELDS, &field.map(|(name, value)| (name, value.into())));
        for (sample, value) in (0i64..).zip(*values) {
            event += 1;
            let row = [("timestamp", sample * 100_000_000), ("typeId", at), ("genericEventId", event)];
            made.put(&GENERIC_EVENTS, &row.map(|(name, value)| (name, value.into())));
            let row = [("genericEventId", event), ("fieldIdx", 0), ("uintVal", *value)];
            made.put(&GENERIC_EVENT_DATA, &row.map(|(name, value)| (name, value.into())));
        }
    }
    if let Some(host) = host {
        made.put(&SYSTEM_ENV, &[("name", "Hostname".to_owned().into()), ("value", host.to_owned().into())]);
    }
    made
}

/// Of one device: uptime in hundredths and the value of `tx_bytes`; the capture begins at 1,000 s of UTC.
fn capture(node: &str, readings: &[(u64, Option<u64>)]) -> String {
    let reading = |(cs, value): &(u64, Option<u64>)| Reading {
        phase: Phase::During,
        uptime_cs: *cs,
        device: 0,
        values: vec![*value, Some(3)],
    };
    let clock = Clock { wall_us: 1_000_000_000, uptime_cs: 500 };
    render(&Capture {
        file: String::new(),
        node: node.to_owned(),
        root: "/sys".to_owned(),
        interval_cs: 100,
        columns: vec!["tx_bytes".to_owned(), "rx_drops".to_owned()],
        begin: clock,
        devices: vec![Device { name: "rdmap79s0".to_owned(), lifespan_ms: None }],
        unreadable: Vec::new(),
        missing: Vec::new(),
        bad: Vec::new(),
        not_quiet: Vec::new(),
        readings: readings.iter().map(reading).collect(),
        end: Some(End { clock, cost_ms: 1, reason: Reason::Stop }),
    })
}

fn map<'a>(outcome: &'a Outcome, name: &str) -> &'a Heatmap {
    match outcome.charts.iter().find(|chart| chart.name == name).map(|chart| &chart.figure) {
        Some(Figure::Heatmap(map)) => map,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_sample_covers_the_time_since_the_one_before_it() {
    let made = report(
        Some("a"),
        "rdma_write_bytes per second",
        &[("rdmap100s0:1", &[9, 40, 60]), ("rdmap79s0:1", &[7, 0, 10])],
    );
    let outcome = surveyed("network_map_aws", &["bins=2"], &inputs(vec![made.path()]));
    let found = map(&outcome, "rdma_write_bytes");
    let labels: Vec<&str> = found.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["a, rdmap79s0", "a, rdmap100s0"], "in the order of numbers");
    assert_eq!(found.rows[0].values, [Some(0.0), Some(10.0)]);
    assert_eq!(found.rows[1].values, [Some(40.0), Some(60.0)]);
    let totals = table(&outcome, "totals");
    assert_eq!(decimals(totals, "Mean"), [Some(5.0), Some(50.0)]);
    assert_eq!(texts(totals, "From"), ["nsys", "nsys"]);
    // In its other modes the same numbers are others.
    let of = |mode: &str| surveyed("network_map_aws", &["bins=1", mode], &inputs(vec![made.path()]));
    assert_eq!(decimals(table(&of("delta"), "totals"), "Mean"), [Some(50.0), Some(500.0)]);
    let total = of("total");
    assert_eq!(decimals(table(&total, "totals"), "Mean"), [Some(100.0), Some(255.0)]);
    assert!(
        total.notes.iter().any(|note| note.ends_with("not measured: rdmap79s0 rdma_write_bytes")),
        "{:?}",
        total.notes
    );
}

#[test]
fn saturated_samplers_are_noted_with_device_and_counter() {
    let most = i64::from(i32::MAX);
    let made =
        report(None, "rdma_read_bytes", &[("rdmap16s27:1", &[most, most, 5]), ("rdmap32s27:1", &[1, 2, 3])]);
    let outcome = surveyed("network_map_aws", &[], &inputs(vec![made.path()]));
    assert_eq!(integers(table(&outcome, "totals"), "Saturated"), [Some(2), Some(0)]);
    assert_eq!(texts(table(&outcome, "totals"), "Host"), ["rank 0", "rank 0"]);
    let note = outcome.notes.iter().find(|note| note.contains("samplers of 2024")).expect("a note");
    assert!(
        note.contains("rdma_read_bytes: saturated at 2147483647") && note.ends_with("on: rdmap16s27"),
        "{note}"
    );
}

#[test]
fn one_report_per_host_is_used_and_a_note_says_which() {
    let one = report(Some("a"), "tx_bytes", &[("rdmap79s0", &[0, 5])]);
    let again = report(Some("a"), "tx_bytes", &[("rdmap79s0", &[0, 7])]);
    let other = report(Some("b"), "tx_bytes", &[("rdmap79s0", &[0, 9])]);
    let outcome =
        surveyed("network_map_aws", &["bins=1"], &inputs(vec![one.path(), again.path(), other.path()]));
    assert_eq!(decimals(table(&outcome, "totals"), "Mean"), [Some(5.0), Some(9.0)]);
    assert!(
        outcome.notes.iter().any(|note| note == "several sources of one host, a: using r0; left out: 1"),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn a_capture_beside_a_report_comes_first_and_counters_never_go_backwards() {
    let made = report(Some("a"), "tx_bytes", &[("rdmap79s0", &[0, 77])]);
    made.put(&SESSION_START, &[("utcEpochNs", 1_000_000_000_000i64.into())]);
    let readings = [
        (500, Some(1_000_000)),
        (500, Some(1_000_001)),
        (600, Some(1_000_400)),
        (700, None),
        (800, Some(1_001_200)),
        (900, Some(7)),
        (1_000, Some(107)),
    ];
    let folder = made.path().parent().expect("a folder").to_owned();
    std::fs::write(folder.join("counters.a.txt"), capture("a", &readings)).expect("written");
    std::fs::write(folder.join("counters.b.txt"), "harness-counters 2\n").expect("written");
    let outcome = surveyed("network_map_aws", &["bins=5"], &inputs(vec![made.path()]));
    let second = 1_000_000_000;
    let found = map(&outcome, "tx_bytes");
    assert_eq!(found.edges, [0, second, 2 * second, 3 * second, 4 * second, 5 * second]);
    assert_eq!(found.rows[0].values, [Some(400.0), Some(400.0), Some(400.0), None, Some(100.0)]);
    assert_eq!(texts(table(&outcome, "totals"), "From"), ["sampler"; 2]);
    let has_note = |what: &str| {
        assert!(outcome.notes.iter().any(|note| note.contains(what)), "{what}: {:?}", outcome.notes)
    };
    has_note("counters fell, so these intervals are not measured: rdmap79s0 tx_bytes");
    has_note("at rest on every device, only in the totals: rx_drops");
    has_note("counters.b.txt");
    has_note("several sources of one host, a");
}

#[test]
fn a_device_called_like_a_capture_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counters.a.txt");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
    assert_eq!(super::captured(&path).why_not.as_deref(), Some("not a regular file"));
}

#[test]
fn a_capture_may_be_named_itself_and_is_laid_beside_others_by_its_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counters.a.txt");
    std::fs::write(&path, capture("a", &[(500, Some(0)), (600, Some(50))])).expect("written");
    let later = report(Some("b"), "tx_bytes", &[("rdmap79s0", &[0, 9])]);
    later.put(&SESSION_START, &[("utcEpochNs", 1_001_900_000_000i64.into())]);
    let outcome = surveyed("network_map_aws", &["bins=2"], &inputs(vec![path.clone(), later.path()]));
    let found = map(&outcome, "tx_bytes");
    assert_eq!(found.edges, [0, 1_000_000_000, 2_000_000_000]);
    assert_eq!(found.rows[0].values, [Some(50.0), None]);
    assert_eq!(found.rows[1].values, [None, Some(9.0)]);
    // To any other recipe it is a report without data.
    let other = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![path]));
    assert!(other.tables.is_empty() && other.unreadable.is_empty());
}

#[test]
fn impossible_rates_are_skipped_with_a_note_and_a_lone_sample_measures_nothing() {
    let made = report(None, "tx_bytes", &[("rdmap79s0", &[5])]);
    let outcome = surveyed("network_map_aws", &[], &inputs(vec![made.path()]));
    assert_eq!(decimals(table(&outcome, "totals"), "Mean"), [None]);
    let made = report(None, "novel_bytes", &[("rdmap79s0", &[5, 6])]);
    assert!(surveyed("network_map_aws", &[], &inputs(vec![made.path()])).tables.is_empty());
    let made = report(None, "tx_bytes", &[("eth0", &[5, 6])]);
    let outcome = surveyed("network_map_aws", &[], &inputs(vec![made.path()]));
    assert!(outcome.notes[0].contains("looked at 2 rows, found none"), "{:?}", outcome.notes);
    let cut = "harness-counters 1\nnode a\nroot /\ninterval_s 1.00\ncolumns tx_bytes\nbegin wall=1.000000 uptime=1.00\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counters.a.txt");
    std::fs::write(&path, cut).expect("written");
    let outcome = surveyed("network_map_aws", &[], &inputs(vec![path]));
    assert!(outcome.tables.iter().all(|(name, result_table)| *name == "files" || result_table.height() == 0));
    assert!(
        outcome.notes.iter().any(|note| note.ends_with("counters.a.txt: it has no reading")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn a_filter_by_time_uses_the_clock_of_the_report_beside_a_capture() {
    let made = report(Some("b"), "tx_bytes", &[("rdmap79s0", &[0, 77])]);
    // The report begins a second behind the capture.
    made.put(&SESSION_START, &[("utcEpochNs", 1_001_000_000_000i64.into())]);
    let folder = made.path().parent().expect("a folder").to_owned();
    let readings = [(500, Some(0)), (600, Some(100)), (700, Some(300)), (800, Some(700))];
    std::fs::write(folder.join("counters.a.txt"), capture("a", &readings)).expect("written");
    let of = |filter: &str| {
        let recipe = find("network_map_aws").expect("there");
        let arguments = Arguments::read(recipe.name, recipe.arguments, &["bins=1"]).expect("known");
        let filter = Filter::Time(filter.parse().expect("a span"));
        let (asked, inputs) = ([(recipe, arguments)], inputs(vec![made.path()]));
        let survey_of =
            Survey { asked: &asked, inputs: &inputs, filter: Some(&filter), jobs: 1, progress: &|_| {} };
        both_ways(&survey_of).remove(0)
    };
    let outcome = of("0s/1s");
    assert_eq!(texts(table(&outcome, "heatmap"), "Host"), ["a", "b"]);
    assert_eq!(decimals(table(&outcome, "heatmap"), "Mean"), [Some(200.0), Some(77.0)]);
    let outcome = of("5s/6s");
    assert!(outcome.notes.iter().any(|note| note.ends_with("outside of the requested time")));
    assert!(outcome.charts.is_empty());
}
