//! Maps of shares of time, compared with counting moment by moment.

use crate::chart::{Figure, Heatmap};
use crate::recipe::of_reports::part_tests::both_ways;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::recipe::of_reports::{Input, Outcome, Survey, find};
use crate::report::Arguments;
use crate::testing::{Made, OTHER_PROCESS, PROCESS};
use nsys::tables::{GRAPH_TRACE, MPI_P2P, SESSION_START, TableSpec, UCP_SUBMIT};
use nsys::trace::Filter;
use proptest::prelude::*;
use rusqlite::types::Value;

/// Names of kernels: `ncclKernel`, `gemm`, and one that communicates by its class alone.
fn made() -> Made {
    let made = Made::begin();
    for (id, name) in [(1, "ncclDevKernel_X"), (3, "gemm"), (5, "deep_ep::intranode::dispatch")] {
        made.string(id, &format!("{name}()")).string(id + 1, name);
    }
    made
}

fn begun_at(made: &Made, utc_epoch_ns: i64) {
    made.put(&SESSION_START, &[("utcEpochNs", utc_epoch_ns.into())]);
}

fn call(made: &Made, spec: &TableSpec, process: i64, (start, end): (i64, Option<i64>)) {
    let end = end.map_or(Value::Null, Value::from);
    made.put(spec, &[("start", start.into()), ("end", end), ("globalTid", (process | 9).into())]);
}

fn filtered(name: &str, words: &[&str], inputs: &[Input], filter: &str) -> Outcome {
    let recipe = find(name).expect("there");
    let arguments = Arguments::read(recipe.name, recipe.arguments, words).expect("known");
    let filter = Filter::Time(filter.parse().expect("a span"));
    let survey_of =
        Survey { asked: &[(recipe, arguments)], inputs, filter: Some(&filter), jobs: 2, progress: &|_| {} };
    both_ways(&survey_of).remove(0)
}

fn map<'a>(outcome: &'a Outcome, name: &str) -> &'a Heatmap {
    let found = outcome.charts.iter().find(|chart| chart.name == name);
    match found.map(|chart| &chart.figure) {
        Some(Figure::Heatmap(map)) => map,
        other => panic!("{name}: {other:?}"),
    }
}

/// Of each bin the percentage of its moments that lie in a span.
fn counted(spans: &[(i64, i64)], edges: &[i64]) -> Vec<Option<f64>> {
    let share = |bin: &[i64]| {
        let held = (bin[0]..bin[1]).filter(|at| spans.iter().any(|(start, end)| (*start..*end).contains(at)));
        Some(100.0 * held.count() as f64 / (bin[1] - bin[0]) as f64)
    };
    edges.windows(2).map(share).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn cells_are_what_counting_moments_gives(
        drawn in proptest::collection::vec((0i64..200, 0i64..40, any::<bool>()), 1..12),
        bins in 1usize..9,
    ) {
        let made = made();
        for (at, (start, ns, communicates)) in drawn.iter().enumerate() {
            made.kernel((*start, start + ns), at as i64, if *communicates { 1 } else { 3 });
        }
        let spans = |which: Option<bool>| -> Vec<(i64, i64)> {
            let of = drawn.iter().filter(|(.., communicates)| which.is_none_or(|which| which == *communicates));
            of.map(|(start, ns, _)| (*start, start + ns)).collect()
        };
        let words = format!("bins={bins}");
        let outcome = surveyed("cuda_gpu_time_util_map", &[&words], &inputs(vec![made.path()]));
        let kernels = map(&outcome, "kernels");
        let (first, last) = (kernels.edges[0], kernels.edges[kernels.edges.len() - 1]);
        let all = spans(None);
        prop_assert_eq!(Some(first), all.iter().map(|span| span.0).min());
        prop_assert_eq!(Some(last.max(first + 1)), all.iter().map(|span| span.1.max(first + 1)).max());
        let window = (last - first) as usize;
        prop_assert_eq!(kernels.edges.len() - 1, bins.min(window));
        // A window of one moment is a nanosecond, of which nothing was recorded.
        if all.iter().any(|(start, end)| end > start) {
            prop_assert_eq!(&kernels.rows[0].values, &counted(&all, &kernels.edges));
            prop_assert_eq!(decimals(table(&outcome, "heatmap"), "Kernels"), kernels.rows[0].values.clone());
        }
        let outcome = surveyed("nccl_gpu_time_util_map", &[&words], &inputs(vec![made.path()]));
        if all.iter().any(|(start, end)| end > start) {
            let (one, two) = (spans(Some(true)), spans(Some(false)));
            let both: Vec<(i64, i64)> = one.iter()
                .flat_map(|a| two.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1)))).collect();
            for (name, spans) in [("communication", one), ("compute", two), ("overlap", both)] {
                let found = map(&outcome, name);
                prop_assert_eq!(&found.rows[0].values, &counted(&spans, &found.edges), "{}", name);
            }
        }
    }
}

#[test]
fn a_report_is_not_measured_where_it_was_not_recording() {
    // One second of the first is the second's zero; both ran one kernel of half a second.
    let (early, late) = (made(), made());
    early.kernel((0, 500), 1, 3);
    begun_at(&early, 10_000);
    late.kernel((500, 1_000), 1, 3).call((250, 260), 3, 1, 3);
    begun_at(&late, 11_000);
    let inputs = inputs(vec![early.path(), late.path()]);
    let outcome = surveyed("cuda_gpu_time_util_map", &["bins=4"], &inputs);
    let found = map(&outcome, "kernels");
    assert_eq!(found.edges, [0, 500, 1_000, 1_500, 2_000]);
    assert_eq!(found.rows[0].values, [Some(100.0), None, None, None]);
    // From its call on it was idle, and before that it was not recorded.
    assert_eq!(found.rows[1].values, [None, None, Some(0.0), Some(100.0)]);
    assert_eq!((found.rows[1].rank, found.rows[1].label.as_str()), (Some(1), "rank 1, GPU 0"));
    let heatmap = table(&outcome, "heatmap");
    assert_eq!(integers(heatmap, "Measured")[4..], [0, 0, 250, 500].map(Some));
    let totals = table(&outcome, "totals");
    assert_eq!(integers(totals, "Measured"), [Some(500), Some(750)]);
    assert_eq!(integers(totals, "Kernels Time"), [Some(500), Some(500)]);
    let outcome = surveyed("cuda_gpu_time_util_map", &["bins=2", "no-shift"], &inputs);
    assert_eq!(map(&outcome, "kernels").rows[1].values, [Some(0.0), Some(100.0)]);
}

#[test]
fn without_every_start_time_reports_are_not_aligned_and_a_note_says_so() {
    let (one, two) = (made(), made());
    one.kernel((0, 10), 1, 3);
    begun_at(&one, 10_000);
    two.kernel((0, 20), 1, 3);
    let outcome = surveyed("cuda_gpu_time_util_map", &["bins=1"], &inputs(vec![one.path(), two.path()]));
    assert_eq!(map(&outcome, "kernels").edges, [0, 20]);
    assert!(
        outcome.notes.iter().any(|note| note.ends_with("one lacks its start time: r1")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn a_filter_by_time_is_the_window_and_cuts_kernels() {
    let made = made();
    made.kernel((0, 40), 1, 3).kernel((60, 100), 2, 3);
    let outcome = filtered("cuda_gpu_time_util_map", &["bins=2"], &inputs(vec![made.path()]), "30/70");
    let found = map(&outcome, "kernels");
    assert_eq!(
        (found.edges.as_slice(), found.rows[0].values.as_slice()),
        (&[30, 50, 70][..], &[Some(50.0); 2][..])
    );
    let outcome = filtered("cuda_gpu_time_util_map", &["bins=1"], &inputs(vec![made.path()]), "80/100000");
    assert_eq!(map(&outcome, "kernels").edges, [80, 100], "not recorded behind that");
    let outcome = filtered("cuda_gpu_time_util_map", &[], &inputs(vec![made.path()]), "45/50");
    assert!(outcome.tables.is_empty());
}

#[test]
fn graphs_traced_as_a_whole_count_as_unknown_kernels() {
    let made = made();
    made.kernel((0, 10), 1, 1);
    let graph = [("start", 20i64), ("end", 40), ("deviceId", 0), ("globalPid", PROCESS), ("graphId", 1)];
    made.put(&GRAPH_TRACE, &graph.map(|(name, value)| (name, value.into())));
    let outcome = surveyed("cuda_gpu_time_util_map", &["bins=4"], &inputs(vec![made.path()]));
    let (all, none) = (Some(100.0), Some(0.0));
    assert_eq!(map(&outcome, "kernels").rows[0].values, [all, none, all, all]);
    let outcome = surveyed("nccl_gpu_time_util_map", &["bins=4"], &inputs(vec![made.path()]));
    assert_eq!(map(&outcome, "communication").rows[0].values, [all, none, None, None]);
    assert_eq!(integers(table(&outcome, "totals"), "Measured"), [Some(20)]);
}

#[test]
fn communication_is_by_name_or_by_class_and_the_difference_is_noted() {
    let made = made();
    made.kernel((0, 10), 1, 1).kernel((10, 30), 2, 5).kernel((20, 40), 3, 3);
    let of = |words: &[&str]| surveyed("nccl_gpu_time_util_map", words, &inputs(vec![made.path()]));
    let by_name = of(&["bins=4"]);
    assert_eq!(decimals(table(&by_name, "totals"), "Communication"), [Some(25.0)]);
    assert!(
        by_name.notes.iter().any(|note| note.ends_with("(`classes` changes that): 1")),
        "{:?}",
        by_name.notes
    );
    let by_class = of(&["bins=4", "classes"]);
    assert_eq!(decimals(table(&by_class, "totals"), "Communication"), [Some(75.0)]);
    assert_eq!(decimals(table(&by_class, "totals"), "Overlap"), [Some(25.0)]);
    assert!(by_class.notes.is_empty(), "{:?}", by_class.notes);
}

#[test]
fn calls_stand_beside_the_gpus_of_their_process() {
    for (name, spec, heading) in
        [("mpi_gpu_time_util_map", &MPI_P2P, "MPI"), ("ucx_gpu_time_util_map", &UCP_SUBMIT, "UCX")]
    {
        let made = made();
        made.kernel_of(PROCESS, (0, 50), 1, 3).kernel_of(OTHER_PROCESS, (50, 100), 1, 3);
        call(&made, spec, PROCESS, (40, Some(60)));
        call(&made, spec, PROCESS, (50, Some(70)));
        call(&made, spec, PROCESS, (90, None));
        call(&made, spec, 1 << 24, (0, Some(100)));
        let outcome = surveyed(name, &["bins=1"], &inputs(vec![made.path()]));
        let totals = table(&outcome, "totals");
        assert_eq!(integers(totals, "PID"), [1, 40, 41].map(Some));
        assert_eq!(decimals(totals, heading), [Some(100.0), Some(30.0), Some(0.0)]);
        assert_eq!(decimals(totals, "Kernels"), [None, Some(50.0), Some(50.0)]);
        assert_eq!(decimals(totals, "Overlap"), [None, Some(10.0), Some(0.0)]);
        assert_eq!(integers(totals, "Device"), [None, Some(0), Some(0)]);
        let labels: Vec<&str> = map(&outcome, "kernels").rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["rank 0, PID 1", "rank 0, PID 40, GPU 0", "rank 0, PID 41, GPU 0"]);
        assert!(
            outcome.notes.iter().any(|note| note.contains("without an end, left out: 1")),
            "{:?}",
            outcome.notes
        );
    }
}

#[test]
fn a_gpu_without_its_process_has_all_calls_beside_it() {
    let made = made();
    let row = [("start", 0i64), ("end", 10), ("deviceId", 0), ("demangledName", 3), ("shortName", 4)];
    made.put(&nsys::tables::KERNEL, &row.map(|(name, value)| (name, value.into())));
    call(&made, &MPI_P2P, PROCESS, (0, Some(5)));
    call(&made, &MPI_P2P, OTHER_PROCESS, (4, Some(8)));
    let outcome = surveyed("mpi_gpu_time_util_map", &["bins=1"], &inputs(vec![made.path()]));
    assert_eq!(decimals(table(&outcome, "totals"), "MPI"), [Some(80.0)]);
}

#[test]
fn without_what_it_is_about_a_map_has_no_data() {
    let made = made();
    made.fill((0, 10), 1);
    let none = Made::begin();
    for name in
        ["cuda_gpu_time_util_map", "nccl_gpu_time_util_map", "mpi_gpu_time_util_map", "ucx_gpu_time_util_map"]
    {
        for report in [&made, none.string(1, "a")] {
            let outcome = surveyed(name, &[], &inputs(vec![report.path()]));
            assert!(outcome.tables.is_empty() && outcome.charts.is_empty(), "{name}");
            assert!(outcome.unreadable.is_empty(), "{name}: {:?}", outcome.unreadable);
        }
    }
    made.kernel((0, 10), 1, 3);
    let outcome = surveyed("mpi_gpu_time_util_map", &[], &inputs(vec![made.path()]));
    assert!(outcome.notes[0].contains("looked at 1 rows, found none"), "{:?}", outcome.notes);
    let with = surveyed("nccl_gpu_time_util_map", &[], &inputs(vec![made.path(), none.path()]));
    assert_eq!(texts(table(&with, "files"), "Status"), ["ok", "no data"]);
}
