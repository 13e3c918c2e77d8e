//! Steps over several reports: ranges, capture ranges, kernels, graphs, and reports that have none.

use super::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::testing::{Made, PROCESS};
use nsys::tables::GRAPH_TRACE;

/// Ranges of these numbers, 1000 ns apart and 900 long, the last one longer.
fn ranged(numbers: &[i64]) -> Made {
    let made = Made::begin();
    for (at, number) in numbers.iter().enumerate() {
        let start = 1000 * at as i64;
        let more = if at + 1 == numbers.len() { 60 } else { 0 };
        made.range((start, start + 900 + more), 3, &format!("step {number}"));
        made.range((start + 10, start + 400), 3, "forward");
    }
    made
}

#[test]
fn steps_of_each_rank_stand_beside_those_that_were_asked_for() {
    let (whole, short) = (ranged(&[70, 71, 72, 73, 74, 75]), ranged(&[70, 71, 73, 74]));
    let outcome = surveyed("steps", &["window=70..75"], &inputs(vec![whole.path(), short.path()]));
    let stats = table(&outcome, "stats");
    assert_eq!(texts(stats, "Source"), ["ranges", "ranges"]);
    assert_eq!(texts(stats, "By"), [":step #", ":step #"]);
    assert_eq!(integers(stats, "Steps"), [Some(6), Some(4)]);
    assert_eq!(decimals(stats, "Med"), [Some(900.0), Some(900.0)]);
    assert_eq!(integers(stats, "Max"), [Some(960), Some(960)]);
    assert_eq!(texts(stats, "As Asked"), ["yes", "no"]);
    assert_eq!(texts(stats, "Missing"), ["", "72, 75"]);
    let steps = table(&outcome, "steps");
    assert_eq!(integers(steps, "Number")[6..], [70, 71, 73, 74].map(Some));
    assert_eq!(integers(steps, "Time")[9], Some(960));
    let across = table(&outcome, "across");
    assert_eq!(integers(across, "Ranks"), [2, 2, 1, 2, 2, 1].map(Some));
    assert_eq!(integers(across, "Slowest Rank")[4], Some(1));
    for expected in [
        "steps: ranks disagree on the number of steps: 4 on ranks 1; 6 on ranks 0",
        "steps: window 70..75 on ranks 1: 6 steps requested, 4 found, missing: 72, 75",
        "r1: steps: missing step numbers: 72",
    ] {
        assert!(outcome.notes.iter().any(|note| note == expected), "{expected}: {:?}", outcome.notes);
    }
}

/// Kernels of steps that are 10,000 ns apart, of four names, each launched by a call; a graph's kernels share one.
fn ran(steps: i64, of_graph: bool) -> Made {
    let made = Made::begin();
    for (id, name) in [(1, "cudaGraphLaunch_v10000"), (10, "embed"), (12, "gemm"), (14, "norm"), (16, "adam")]
    {
        made.string(id, name).string(id + 1, name);
    }
    for step in 0..steps {
        let start = 10_000 * step + 17 * (step % 3);
        for (at, name) in [10, 12, 14, 12, 12, 14, 12, 16].into_iter().enumerate() {
            let at = at as i64;
            let id = if of_graph { step } else { step * 8 + at };
            if at == 0 || !of_graph {
                made.call((start + at, start + at + 1), 3, id, 1);
            }
            made.kernel((start + 1000 * at, start + 1000 * at + 900), id, name);
        }
    }
    made
}

#[test]
fn without_ranges_the_order_of_kernels_gives_steps_also_of_graphs() {
    for of_graph in [false, true] {
        let made = ran(9, of_graph);
        let outcome = surveyed("steps", &["window=1..9"], &inputs(vec![made.path()]));
        let stats = table(&outcome, "stats");
        assert_eq!(
            (texts(stats, "Source"), texts(stats, "By")),
            (vec!["kernels".into()], vec!["embed".into()])
        );
        assert_eq!((integers(stats, "Steps"), texts(stats, "As Asked")), (vec![Some(9)], vec!["yes".into()]));
        assert_eq!(decimals(stats, "Confidence"), [Some(100.0)]);
        let steps = table(&outcome, "steps");
        assert_eq!(integers(steps, "Start")[1], Some(10_017));
        assert_eq!(integers(steps, "Time")[8], None, "unknown, since the next one did not begin");
    }
}

#[test]
fn graphs_that_were_traced_as_a_whole_are_steps_where_they_come_evenly() {
    let made = Made::begin();
    for at in 0..12i64 {
        let numbers = [
            ("start", at * 5000 + at % 2),
            ("end", at * 5000 + 4000),
            ("deviceId", 0),
            ("streamId", 7),
            ("graphId", 3),
            ("globalPid", PROCESS),
        ];
        let row: Vec<_> = numbers.iter().map(|(name, value)| (*name, i64::into(*value))).collect();
        made.put(&GRAPH_TRACE, &row);
    }
    let outcome = surveyed("steps", &[], &inputs(vec![made.path()]));
    let stats = table(&outcome, "stats");
    assert_eq!(
        (texts(stats, "By"), integers(stats, "Steps")),
        (vec!["[CUDA graph 3]".to_owned()], vec![Some(12)])
    );
}

#[test]
fn captures_are_steps_where_there_are_several_or_where_they_are_asked_for() {
    let made = Made::begin();
    made.string(1, "cudaProfilerStart_v4000")
        .string(2, "cudaProfilerStop_v4000")
        .string(3, "cuProfilerStart");
    for at in 0..4i64 {
        made.call((at * 100, at * 100 + 5), 3, at * 3, 1).call(
            (at * 100 + 1, at * 100 + 2),
            3,
            at * 3 + 1,
            3,
        );
        made.call((at * 100 + 80, at * 100 + 90), 3, at * 3 + 2, 2);
    }
    let outcome = surveyed("steps", &[], &inputs(vec![made.path()]));
    let steps = table(&outcome, "steps");
    assert_eq!(integers(steps, "Start"), [5, 105, 205, 305].map(Some));
    assert_eq!(integers(steps, "Time"), [Some(75); 4]);
    let once = Made::begin();
    once.string(1, "cudaProfilerStart").string(2, "cudaProfilerStop");
    once.call((0, 5), 3, 1, 1).call((80, 90), 3, 2, 2);
    let inputs = inputs(vec![once.path()]);
    assert!(surveyed("steps", &[], &inputs).tables.is_empty());
    assert_eq!(integers(table(&surveyed("steps", &["capture"], &inputs), "steps"), "Time"), [Some(75)]);
}

#[test]
fn where_nothing_repeats_it_is_said_what_was_looked_at_and_no_step_is_guessed() {
    let made = Made::begin();
    for at in 0..60i64 {
        let name = 10 + at * at * 7 % 41;
        made.string(name, &format!("k{name}")).kernel((at * 100, at * 100 + 50), at, name);
        made.call((at * 100, at * 100 + 1), 3, at, 1);
    }
    made.range((0, 100), 3, "setup").range((200, 5000), 3, "work");
    let outcome = surveyed("steps", &[], &inputs(vec![made.path()]));
    assert!(outcome.tables.is_empty());
    for expected in ["r0: steps: ranges: none repeat", "r0: steps: capture: too few", "r0: steps: kernels: "]
    {
        assert!(
            outcome.notes.iter().any(|note| note.starts_with(expected)),
            "{expected}: {:?}",
            outcome.notes
        );
    }
    let outcome = surveyed("steps", &["range=step"], &inputs(vec![made.path()]));
    assert!(outcome.notes.iter().any(|note| note.contains("no range named `step`")), "{:?}", outcome.notes);
}

#[test]
fn a_warm_up_can_be_left_out_and_a_slope_is_given() {
    let made = Made::begin();
    for at in 0..20i64 {
        let long = if at < 2 { 90_000 } else { 50_000 + 100 * at };
        made.range((at * 100_000, at * 100_000 + long), 3, &format!("iteration {at}"));
    }
    let inputs = inputs(vec![made.path()]);
    let outcome = surveyed("steps", &["skip=2"], &inputs);
    let stats = table(&outcome, "stats");
    assert_eq!(integers(stats, "Max"), [Some(51_900)]);
    assert_eq!(decimals(stats, "Slope"), [Some(100.0)]);
    assert_eq!(
        (decimals(stats, "Slope Low"), decimals(stats, "Slope High")),
        (vec![Some(100.0)], vec![Some(100.0)])
    );
    assert_eq!(integers(stats, "Steps"), [Some(20)], "found are all of them");
}
