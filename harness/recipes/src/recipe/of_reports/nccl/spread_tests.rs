//! Times of calls by size beside what nccl-tests printed of them, over small reports.

use crate::chart::{Chart, Figure, Histogram};
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::recipe::of_reports::{Input, Outcome};
use crate::testing::Made;
use crate::testing::nccl::{call, communicator, domain};
use std::path::PathBuf;

const GIB: u64 = 1 << 30;

fn made(ranks: u32) -> Made {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernelExC_v11060")
        .string(2, "ncclDevKernel_AllReduce")
        .string(3, "ncclDevKernel");
    domain(&made);
    communicator(&made, 0, 7, ranks, 0);
    made
}

/// Calls of these sizes with kernels of these times, one behind the other.
fn with_calls(calls: &[(u64, i64)]) -> Made {
    let made = made(2);
    for (at, (bytes, ns)) in calls.iter().enumerate() {
        let start = 100 + 1_000_000_000 * at as i64;
        call(&made, start, "ncclAllReduce", (7, *bytes), (start + 10, start + 10 + ns), at as i64 + 1);
    }
    made
}

fn survey_messages(words: &[&str], inputs: &[Input]) -> Outcome {
    let outcome = surveyed("nccl_msg", words, inputs);
    assert!(outcome.unreadable.is_empty(), "{:?}", outcome.unreadable);
    outcome
}

fn histogram(chart: &Chart) -> &Histogram {
    match &chart.figure {
        Figure::Histogram(figure) => figure,
        other => panic!("{other:?}"),
    }
}

/// Numbers from 0 to 1 that look drawn.
fn drawn(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// As a published figure of 1 GiB and 2 GiB has them: a mean that no single call is near to.
fn three_modes() -> Vec<(u64, i64)> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut calls = Vec::new();
    for (bytes, modes) in [(64 << 20, [3e6; 3]), (GIB, [27e6, 47e6, 90e6]), (2 * GIB, [55e6, 95e6, 190e6])] {
        for at in 0..120 {
            let normal: f64 = (0..12).map(|_| drawn(&mut state)).sum::<f64>() - 6.0;
            calls.push((bytes, (modes[at % 3] * (1.0 + 0.02 * normal)) as i64));
        }
    }
    calls
}

#[test]
fn three_ways_to_run_are_seen_in_the_figure_that_a_mean_hides() {
    let calls = three_modes();
    let outcome = survey_messages(&["mean=1G@53361+2G@92866"], &inputs(vec![with_calls(&calls).path()]));
    assert_eq!(integers(table(&outcome, "sizes"), "Modes"), [Some(1), Some(3), Some(3)]);
    assert_eq!(decimals(table(&outcome, "sizes"), "Printed"), [None, Some(53_361_000.0), Some(92_866_000.0)]);
    let titles: Vec<&str> = outcome.charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(
        titles,
        ["Times of ncclAllReduce of 1 GiB on 2 ranks", "Times of ncclAllReduce of 2 GiB on 2 ranks"]
    );
    for (chart, (bytes, mean)) in outcome.charts.iter().zip([(GIB, 53_361_000.0), (2 * GIB, 92_866_000.0)]) {
        let figure = histogram(chart);
        let times: Vec<u64> = calls.iter().filter(|call| call.0 == bytes).map(|call| call.1 as u64).collect();
        assert_eq!(figure.marks.iter().map(|mark| mark.at).collect::<Vec<_>>(), [mean]);
        assert_eq!((figure.series.len(), figure.series[0].counts.iter().sum::<u64>()), (1, 120));
        assert_eq!(figure.edges.len(), 101);
        // Each bin by asking every call.
        for (bin, count) in figure.series[0].counts.iter().enumerate() {
            let (lower, upper) = (figure.edges[bin] as u64, figure.edges[bin + 1] as u64);
            let is_last = bin == 99;
            let within = |ns: &&u64| **ns >= lower && (**ns < upper || (is_last && **ns == upper));
            assert_eq!(*count, times.iter().filter(within).count() as u64, "{bin}");
        }
        for expected in
            ["120 calls took ", ", with 3 peaks at ", ". The largest of 3 sizes, others with `sizes`"]
        {
            assert!(chart.about.contains(expected), "{}", chart.about);
        }
    }
    assert!(outcome.charts[0].about.contains("nccl-tests printed 53.361 ms, longer than 67 % of the calls"));
    let spread = table(&outcome, "spread");
    assert_eq!(spread.height(), 200);
    assert_eq!(integers(spread, "Count").iter().flatten().sum::<i64>(), 240);
    let sum: f64 = decimals(spread, "Probability").iter().flatten().sum();
    assert!((sum - 2.0).abs() < 1e-9);
}

#[test]
fn operation_and_sizes_are_arguments_and_unknown_ones_are_noted() {
    let made = with_calls(&[(1024, 100), (2048, 300), (4096, 500)]);
    let calls = inputs(vec![made.path()]);
    let outcome = survey_messages(&["op=all_reduce", "sizes=1K+4K", "bins=1"], &calls);
    assert_eq!(integers(table(&outcome, "spread"), "Size"), [Some(1024), Some(4096)]);
    assert_eq!(integers(table(&outcome, "spread"), "Lower"), [Some(100), Some(500)]);
    for (word, expected) in [
        ("op=all_gather", "`op`: no call of `all_gather` has a time; operations with times: ncclAllReduce"),
        ("sizes=1X", "`sizes`: `1X` is not a size such as `1G`"),
        (
            "sizes=8K",
            "`sizes`: no timed call of `ncclAllReduce` has size `8K`; the largest are 4KB, 2KB, 1KB",
        ),
    ] {
        let outcome = survey_messages(&[word], &calls);
        assert!(outcome.charts.is_empty());
        assert!(outcome.notes.iter().any(|note| note.ends_with(expected)), "{:?}", outcome.notes);
    }
    for word in ["mean=1K", "mean=1K@", "mean=1K@-3", "mean=1K@nan", "mean=@3", "mean=1K@3/"] {
        let outcome = survey_messages(&[word], &calls);
        assert!(outcome.notes[0].contains("is not a size with microseconds"), "{word}: {:?}", outcome.notes);
        assert!(outcome.charts.iter().all(|chart| histogram(chart).marks.is_empty()));
    }
}

#[test]
fn calls_without_a_time_of_their_own_make_no_chart() {
    let made = made(2);
    crate::testing::nccl::range(
        &made,
        (100, 108),
        3,
        "ncclAllReduce",
        Some(&crate::testing::nccl::json(7, 64)),
    );
    let outcome = survey_messages(&[], &inputs(vec![made.path()]));
    assert!(outcome.charts.is_empty());
    assert!(outcome.tables.iter().all(|(name, _)| *name != "spread"));
}

/// The output of nccl-tests for two sizes with three iterations.
const STDOUT: &str = "\
# nccl-tests version 2.17.8 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 3 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid     40 on         n1 device  0 [0000:53:00] NVIDIA H100
#  Rank  1 Group  0 Pid     41 on         n1 device  1 [0000:64:00] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    21.50    0.00    0.00       0    20.50    0.00    0.00       0
          16             4     float     sum      -1    31.25    0.00    0.00       0    30.50    0.00    0.00       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0005
#
# Collective test concluded: all_reduce_perf
#
";

/// The calls of such a run, in a folder of its own with what was printed; each takes a microsecond more than the one
/// before.
fn run(stdout: Option<&str>, skipped: Option<usize>) -> (tempfile::TempDir, PathBuf) {
    let made = made(2);
    let mut sizes = vec![8u64, 16];
    for bytes in [8, 16] {
        sizes.extend([bytes; 2 * (1 + 3 + 1)]);
    }
    for (at, bytes) in sizes.into_iter().enumerate().filter(|(at, _)| Some(*at) != skipped) {
        let start = 1_000_000 * (1 + at as i64);
        let kernel = (start + 10, start + 10 + 1000 * (10 + at as i64));
        call(&made, start, "ncclAllReduce", (7, bytes), kernel, at as i64 + 1);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.sqlite");
    std::fs::copy(made.path(), &path).expect("copied");
    if let Some(stdout) = stdout {
        std::fs::write(folder.path().join("stdout"), stdout).expect("written");
    }
    (folder, path)
}

#[test]
fn the_output_beside_reports_gives_timed_calls_and_their_means() {
    let (_folder, path) = run(Some(STDOUT), None);
    let outcome = survey_messages(&["bins=2"], &inputs(vec![path]));
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    let sizes = table(&outcome, "sizes");
    let placements = ["", "out of place", "in place", "", "out of place", "in place"];
    assert_eq!(texts(sizes, "Placement"), placements);
    assert_eq!(integers(sizes, "Count"), [0, 3, 3, 0, 3, 3].map(Some));
    let printed = [None, Some(21_500.0), Some(20_500.0), None, Some(31_250.0), Some(30_500.0)];
    assert_eq!(decimals(sizes, "Printed"), printed);
    let titles: Vec<&str> = outcome.charts.iter().map(|chart| chart.title.as_str()).collect();
    let size = "Times of ncclAllReduce of";
    let expected = [
        format!("{size} 8 B on 2 ranks, out of place"),
        format!("{size} 8 B on 2 ranks, in place"),
        format!("{size} 16 B on 2 ranks, out of place"),
        format!("{size} 16 B on 2 ranks, in place"),
    ];
    assert_eq!(titles, expected);
    // Out of place the timed calls of 16 bytes are the fourteenth to the sixteenth of all; both placements of a size have
    // the same bins.
    let (out, into) = (histogram(&outcome.charts[2]), histogram(&outcome.charts[3]));
    assert_eq!((&out.edges, &into.edges), (&vec![23_000.0, 26_500.0, 30_000.0], &out.edges));
    assert_eq!((&out.series[0].counts, &into.series[0].counts), (&vec![3, 0], &vec![0, 3]));
    for (figure, label, at) in
        [(out, "nccl-tests, out of place", 31_250.0), (into, "nccl-tests, in place", 30_500.0)]
    {
        let marks: Vec<(&str, f64)> =
            figure.marks.iter().map(|mark| (mark.label.as_str(), mark.at)).collect();
        assert_eq!(marks, [(label, at)]);
    }
    let about = &outcome.charts[2].about;
    assert!(about.contains("Warm-up, synchronisation and check calls of this size, left out: 5"), "{about}");
}

#[test]
fn there_are_no_more_charts_than_a_page_has_room_for_and_the_table_has_all() {
    let calls: Vec<(u64, i64)> = (1..=18).map(|size| (1024 * size, 100)).collect();
    let made = with_calls(&calls);
    let sizes: Vec<String> = (1..=18).map(|size| format!("{size}K")).collect();
    let outcome =
        survey_messages(&[&format!("sizes={}", sizes.join("+")), "bins=1"], &inputs(vec![made.path()]));
    assert_eq!((outcome.charts.len(), table(&outcome, "spread").height()), (16, 18));
    assert!(outcome.notes[0].ends_with("sizes and placements without one: 2"), "{:?}", outcome.notes);
}

#[test]
fn calls_that_do_not_match_the_output_all_count_with_a_note() {
    let (_folder, path) = run(Some(STDOUT), Some(6));
    let outcome = survey_messages(&[], &inputs(vec![path]));
    assert_eq!(integers(table(&outcome, "sizes"), "Count"), [Some(10), Some(11)]);
    let expected = "so all count, warm-up and checks too: call 12: 16 bytes, expected 8";
    assert!(outcome.notes[0].ends_with(expected), "{:?}", outcome.notes);
    // The means stand beside them all the same, and have their own marks.
    assert_eq!(histogram(&outcome.charts[1]).marks.len(), 2);
}

#[test]
fn a_given_warm_up_or_iterations_count_instead_of_what_was_printed() {
    let (_folder, path) = run(Some(STDOUT), None);
    let inputs = inputs(vec![path]);
    assert_eq!(
        integers(table(&survey_messages(&["warmup=1"], &inputs), "sizes"), "Count"),
        [Some(10), Some(10)]
    );
    let outcome = survey_messages(&["iterations=2"], &inputs);
    assert!(outcome.notes[0].contains("do not match the given `iterations`"), "{:?}", outcome.notes);
}

#[test]
fn other_outputs_are_named_or_left_alone() {
    let nothing = |outcome: &Outcome| {
        assert!(outcome.charts.iter().all(|chart| histogram(chart).marks.is_empty()));
        assert_eq!(integers(table(outcome, "sizes"), "Count"), [Some(11), Some(11)]);
    };
    let (_one, path) = run(Some("epoch 1, loss 0.3\n"), None);
    let outcome = survey_messages(&[], &inputs(vec![path]));
    assert!(outcome.notes.is_empty(), "what another program printed is no error here: {:?}", outcome.notes);
    nothing(&outcome);
    let (_two, path) = run(Some(&format!("{STDOUT}{STDOUT}")), None);
    let outcome = survey_messages(&[], &inputs(vec![path]));
    assert!(outcome.notes[0].contains("2 tables, expected 1"), "{:?}", outcome.notes);
    nothing(&outcome);
    let (three, path) = run(None, None);
    let other = three.path().join("slurm-17.out");
    let asked = format!("printed={}", other.display());
    let outcome = survey_messages(&[&asked], &inputs(vec![path.clone()]));
    assert!(outcome.notes[0].contains("slurm-17.out: no times of nccl-tests"), "{:?}", outcome.notes);
    nothing(&outcome);
    std::fs::write(&other, STDOUT).expect("written");
    let outcome = survey_messages(&[&asked], &inputs(vec![path]));
    assert_eq!(integers(table(&outcome, "sizes"), "Count"), [0, 3, 3, 0, 3, 3].map(Some));
    assert_eq!(histogram(&outcome.charts[0]).marks.len(), 1);
}

#[test]
fn messages() {
    let made = with_calls(&[(1024, 100), (2048, 300), (4096, 500)]);
    let calls = inputs(vec![made.path()]);
    let words =
        ["op=all_gather", "sizes=1X", "sizes=8K", "mean=1K", "buckets=1M+64K", "buckets=64X", "iterations=2"];
    let mut notes: Vec<String> =
        words.iter().flat_map(|word| survey_messages(&[word], &calls).notes).collect();
    let (_other, path) = run(Some(STDOUT), Some(6));
    notes.extend(survey_messages(&[], &inputs(vec![path])).notes);
    let (_twice, path) = run(Some(&format!("{STDOUT}{STDOUT}")), None);
    let noted = survey_messages(&[], &inputs(vec![path])).notes;
    // The folder of the output is a new one each time.
    notes.extend(noted.iter().map(|note| note.split("stdout").last().unwrap_or_default().to_owned()));
    insta::assert_snapshot!(notes.join("\n"));
}
