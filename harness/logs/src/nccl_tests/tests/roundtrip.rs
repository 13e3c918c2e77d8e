//! What is printed is read as what it was.

use super::super::*;
use super::{codes, only, text};
use proptest::prelude::*;

fn half() -> impl Strategy<Value = Half> {
    let figure = || prop_oneof![0.0..10.0, 10.0..1000.0, 1e3..1e5, 1e5..1e9];
    let wrong = prop_oneof![
        Just(Wrong::NotChecked),
        (0_u64..20).prop_map(|n| Wrong::Count(n as f64)),
        (0_u64..1 << 40).prop_map(|n| Wrong::Count(n as f64)),
    ];
    (figure(), figure(), figure(), wrong).prop_map(|(t, a, b, w)| stable(t, a, b, w))
}

/// Printed twice: a number just below a power of ten gains a digit where it is rounded, and loses a decimal only when it is
/// printed again.
fn stable(time_us: f64, algbw_gb_s: f64, busbw_gb_s: f64, wrong: Wrong) -> Half {
    let once = Half::printed(time_us, algbw_gb_s, busbw_gb_s, wrong).expect("figures");
    Half::printed(once.time_us, once.algbw_gb_s, once.busbw_gb_s, once.wrong).expect("figures")
}

#[test]
fn a_number_just_below_a_power_of_ten_is_stable_once_it_is_printed_twice() {
    let once = Half::printed(0.0, 0.0, 999.9999, Wrong::NotChecked).expect("figures");
    assert_eq!((once.busbw_gb_s, once.rounding.busbw_gb_s), (1000.0, 0.005));
    let twice = stable(0.0, 0.0, 999.9999, Wrong::NotChecked);
    assert_eq!((twice.busbw_gb_s, twice.rounding.busbw_gb_s), (1000.0, 0.05));
    assert_eq!(stable(0.0, 0.0, twice.busbw_gb_s, Wrong::NotChecked), twice);
}

fn row() -> impl Strategy<Value = Row> {
    let dtype = prop::sample::select(vec!["int8", "uint64", "half", "float", "double", "bfloat16", "f8e4m3"]);
    let redop = prop::sample::select(vec![None, Some("sum"), Some("mulsum"), Some("avg")]);
    (0_u64..1 << 40, any::<u32>(), dtype, redop, prop::option::of(0_i64..64), half(), half()).prop_map(
        |(size_bytes, count, dtype, redop, root, out, inside)| Row {
            size_bytes,
            count: count.into(),
            dtype: dtype.to_owned(),
            redop: redop.map(str::to_owned),
            root,
            out_of_place: Some(out),
            in_place: Some(inside),
            timestamp: None,
            line: 0,
        },
    )
}

fn run() -> impl Strategy<Value = NcclRun> {
    let op = prop::sample::select(Op::ALL.to_vec());
    (op, prop::collection::vec(row(), 1..12), 1_u32..20, any::<(bool, bool, bool)>(), 0.0..1e3).prop_map(
        |(op, mut rows, ranks, (stamps, iterations, ok), average): (Op, Vec<Row>, u32, _, f64)| {
            // A sweep ascends.
            rows.sort_by_key(|row| row.size_bytes);
            rows.dedup_by_key(|row| row.size_bytes);
            for row in &mut rows {
                row.timestamp = stamps.then(|| "2025-01-31 12:00:00".to_owned());
                for half in [&mut row.out_of_place, &mut row.in_place].into_iter().flatten() {
                    let statistics = IterStats { min_us: 1.25, max_us: 12345.5, p99_us: 99.5, cv_pct: 3.5 };
                    half.iterations = iterations.then_some(statistics);
                }
            }
            let rank = |rank| RankLine {
                rank,
                group: Some(0),
                pid: 1000 + u64::from(rank),
                host: format!("node-{}", rank / 8),
                device: rank % 8,
                bus_id: "0000:17:00".to_owned(),
                name: "NVIDIA Test GPU".to_owned(),
            };
            let count = if ok { 0 } else { 7 };
            let failure = (!ok).then(|| Failure {
                class: FailureClass::OutOfBounds,
                cause: format!("values out of bounds: {count}"),
                line: 0,
                node: None,
            });
            NcclRun {
                program: Some(op.program()),
                op: Some(op),
                format: Format::WideText,
                nccl_tests_version: Some("2.17.6".to_owned()),
                pytorch_version: None,
                nccl_version: Some(if stamps { "2.26.2+cuda12.8" } else { "2.26.2" }.to_owned()),
                parameters: Some(Parameters {
                    threads: Some(1),
                    gpus_per_thread: Some(1),
                    min_bytes: Some(8),
                    max_bytes: Some(1 << 34),
                    step: Some(if ok { Step::Factor(2) } else { Step::Bytes(1 << 20) }),
                    warmup: Some(5),
                    iterations: Some(100),
                    agg_iterations: Some(1),
                    validation: Some(1),
                    graph: Some(0),
                }),
                ranks: (0..ranks).map(rank).collect(),
                rows,
                refused_rows: 0,
                cpu_time: false,
                out_of_bounds: Some(OutOfBounds { count, ok }),
                average_busbw_gb_s: super::super::cell::general(average).parse().ok(),
                concluded: true,
                odd_closing: None,
                has_start: true,
                has_end: true,
                failure,
            }
        },
    )
}

/// Nothing of the lines is known before printing.
fn without_lines(mut run: NcclRun) -> NcclRun {
    for row in &mut run.rows {
        row.line = 0;
    }
    if let Some(failure) = &mut run.failure {
        failure.line = 0;
    }
    run
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_what_it_was(run in run()) {
        let printed = render(&run);
        let read = text(&printed);
        prop_assert_eq!(codes(&read), Vec::<&str>::new());
        prop_assert_eq!(without_lines(only(&read).clone()), run, "{}", printed);
    }
}

#[test]
fn the_fixture_is_printed_as_it_stands() {
    let whole = super::WHOLE;
    assert_eq!(render(only(&text(whole))), whole);
}
