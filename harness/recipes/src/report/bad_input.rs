//! Input that no sound report has, and what each must lead to: figures of what is sound, a note that counts what was
//! left out, or an error that says why.

use super::{Arguments, find};
use crate::result_table::{ResultTable, Values};
use crate::testing::Made;
use nsys::export::ExportError;
use nsys::tables;
use nsys::trace::Trace;
use rusqlite::types::Value;

fn run(name: &str, trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    (find(name).expect("a report").run)(trace, &Arguments::default())
}

fn result_table(name: &str, trace: &Trace) -> ResultTable {
    run(name, trace).expect("read").expect("a table")
}

fn integers(result_table: &ResultTable, column: &str) -> Vec<Option<i64>> {
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Integers(values)) => values.iter().collect(),
        other => panic!("{column}: {other:?}"),
    }
}

fn texts(result_table: &ResultTable, column: &str) -> Vec<String> {
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Texts(values)) => {
            values.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn rows_that_end_before_they_begin_are_left_out_and_counted() {
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((10, 20), 1, 1).kernel((30, 25), 2, 1);
    let trace = made.trace();
    let table = result_table("cuda_gpu_kern_sum", &trace);
    assert_eq!(
        (integers(&table, "Instances"), integers(&table, "Total Time")),
        (vec![Some(1)], vec![Some(10)])
    );
    assert_eq!(trace.notes(), ["kernels: rows that end before they begin, left out: 1"]);
    // Where nothing sound is left there is no table, and never one of zeroes.
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((30, 25), 2, 1);
    assert!(run("cuda_gpu_kern_sum", &made.trace()).expect("read").is_none());
}

#[test]
fn one_row_has_no_deviation_and_times_before_zero_are_times() {
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((-50, -20), 1, 1);
    let table = result_table("cuda_gpu_kern_sum", &made.trace());
    assert_eq!(integers(&table, "Total Time"), [Some(30)]);
    let Some(Values::Decimals(deviation)) = table.column("StdDev").map(|column| &column.values) else {
        panic!()
    };
    assert_eq!(*deviation, [Some(0.0)]);
}

#[test]
fn sums_beyond_64_bits_are_refused_and_not_wrapped() {
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((i64::MIN, i64::MAX - 1), 1, 1);
    let error = run("cuda_gpu_kern_sum", &made.trace()).expect_err("too large").to_string();
    assert!(error.contains("does not fit into 64 bits"), "{error}");
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((0, i64::MAX - 1), 1, 1);
    assert_eq!(
        integers(&result_table("cuda_gpu_kern_sum", &made.trace()), "Total Time"),
        [Some(i64::MAX - 1)]
    );
}

#[test]
fn an_end_at_the_last_of_all_numbers_is_none() {
    let made = Made::begin();
    made.string(1, "a").string(2, "s").kernel((0, 5), 1, 1).kernel((5, i64::MAX), 1, 1);
    let error = run("cuda_gpu_kern_sum", &made.trace()).expect_err("no end").to_string();
    assert!(error.contains("row 2 has no `end`"), "{error}");
    let made = Made::begin();
    made.range((0, 10), 7, "closed").range((5, i64::MAX), 7, "step 3");
    let trace = made.trace();
    assert_eq!(texts(&result_table("nvtx_sum", &trace), "Range"), [":closed"]);
    assert_eq!(trace.notes(), ["NVTX: ranges without an end, left out: 1"]);
}

#[test]
fn an_id_without_a_string_is_shown_as_such() {
    let made = Made::begin();
    made.string(1, "first").string(2, "s").kernel((0, 5), 1, 1).kernel((5, 9), 2, 77);
    assert_eq!(texts(&result_table("cuda_gpu_kern_sum", &made.trace()), "Name"), ["first", "[no string 77]"]);
}

#[test]
fn bytes_that_are_no_text_and_control_characters_in_names_are_kept_as_data() {
    let made = Made::begin();
    made.put(&tables::STRING_IDS, &[("id", 1.into()), ("value", Value::Blob(b"a\0\xffz".to_vec()))]);
    made.string(2, "s").kernel((0, 5), 1, 1);
    let name = texts(&result_table("cuda_gpu_kern_sum", &made.trace()), "Name");
    assert!(name[0].starts_with("a\0") && name[0].ends_with('z'), "{name:?}");
}

#[test]
fn a_gpu_is_named_by_the_number_that_cuda_gives_it() {
    let made = Made::begin();
    let gpu = |id: i64, cuda: i64, name: &str| {
        made.put(
            &tables::TARGET_INFO_GPU,
            &[("id", id.into()), ("cuDevice", cuda.into()), ("name", name.to_owned().into())],
        );
    };
    gpu(0, 3, "other");
    gpu(3, 0, "this");
    made.string(1, "a").string(2, "s").kernel((0, 5), 1, 1);
    assert_eq!(texts(&result_table("cuda_gpu_trace", &made.trace()), "Device"), ["this (0)"]);
}

#[test]
fn ranges_still_open_are_left_out_and_counted() {
    let made = Made::begin();
    made.range((0, 10), 7, "closed");
    made.event(nsys::trace::nvtx::PUSH_POP, 7, &[("start", 5.into()), ("text", "open".to_owned().into())]);
    let trace = made.trace();
    assert_eq!(texts(&result_table("nvtx_sum", &trace), "Range"), [":closed"]);
    assert_eq!(trace.notes(), ["NVTX: ranges without an end, left out: 1"]);
}

#[test]
fn a_table_without_a_row_is_no_data() {
    let made = Made::begin();
    made.string(1, "a");
    let trace = made.trace();
    for report in super::LIST {
        assert!(run(report.name, &trace).expect("read").is_none(), "{}", report.name);
    }
}

#[test]
fn waits_of_a_nic_above_the_threshold_have_rows_and_a_table_may_be_empty() {
    let made = Made::begin();
    let name = |text: &str| Value::from(text.to_owned());
    let metric = [
        ("metricsListId", 1.into()),
        ("metricsIdx", 2.into()),
        ("name", name("IB: Send waits")),
        ("unit", name("ticks/ms")),
    ];
    made.put(&tables::TARGET_INFO_NETWORK_METRICS, &metric);
    made.put(
        &tables::TARGET_INFO_NIC_INFO,
        &[("GUID", (-1).into()), ("nicId", 0.into()), ("name", name("mlx5_0"))],
    );
    made.put(&tables::NIC_ID_MAP, &[("nicId", 0.into()), ("globalId", 900.into())]);
    for (start, index, value) in [(0, 2, 10_000), (10, 2, 10_001), (20, 1, 99_999)] {
        let ids = [("globalId", 900.into()), ("metricsListId", 1.into()), ("metricsIdx", index.into())];
        let times = [("start", start.into()), ("end", (start + 10).into()), ("value", value.into())];
        made.put(&tables::NET_NIC_METRIC, &[ids, times].concat());
    }
    let trace = made.trace();
    let table = result_table("network_congestion", &trace);
    assert_eq!(
        (integers(&table, "Start"), integers(&table, "Send wait rate")),
        (vec![Some(10)], vec![Some(10_001)])
    );
    assert_eq!(
        (texts(&table, "GUID"), texts(&table, "Name")),
        (vec!["0xffffffffffffffff".to_owned()], vec!["mlx5_0".to_owned()])
    );
    let report = find("network_congestion").expect("a report");
    let high = Arguments::read(report.name, report.arguments, &["ticks_threshold=50000"]).expect("a number");
    assert_eq!((report.run)(&trace, &high).expect("read").map(|result_table| result_table.height()), Some(0));
}
