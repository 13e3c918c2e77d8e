//! Operations of small exports by GPU, cut to a filter, with and without CUDA graphs traced as a whole.

use super::*;
use crate::testing::{Made, PROCESS};
use nsys::trace::Filter;

fn busy(made: &Made, filter: Option<&str>) -> (Option<Busy>, Vec<String>) {
    let trace = made.trace();
    let trace = match filter {
        Some(span) => trace.filtered(&Filter::Time(span.parse().expect("a span"))).expect("filtered"),
        None => trace,
    };
    let busy = Busy::read(&trace).expect("read");
    (busy, trace.notes())
}

fn graph(made: &Made, (start, end): (i64, i64), correlation: i64) {
    let row = [
        ("start", start),
        ("end", end),
        ("deviceId", 0),
        ("correlationId", correlation),
        ("globalPid", PROCESS),
    ];
    let row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&GRAPH_TRACE, &row);
}

#[test]
fn every_moment_of_the_window_is_in_one_part() {
    let made = Made::begin();
    made.string(1, "ncclDevKernel_SendRecv()").string(2, "ncclDevKernel_SendRecv");
    made.string(3, "gemm()").string(4, "gemm");
    made.kernel((0, 10), 1, 1).kernel((5, 20), 2, 3).kernel((30, 40), 3, 3).fill((8, 33), 4).kernel(
        (9, 3),
        5,
        3,
    );
    let (busy, notes) = busy(&made, None);
    let busy = busy.expect("something ran");
    assert_eq!((busy.gpus.len(), busy.window, busy.rows), (1, (0, 40), 5));
    assert!(notes.iter().any(|note| note.contains("end before they begin, left out: 1")), "{notes:?}");
    let shares = Sets::from_operations(busy.gpus[0].operations.iter()).within(0, 50);
    let expected = Shares {
        window: 50,
        idle: 10,
        graphs_alone: 0,
        compute_alone: 7,
        communication_alone: 5,
        memory_alone: 10,
        compute_communication: 3,
        compute_memory: 10 + 3,
        communication_memory: 0,
        all_three: 2,
        has_graphs: false,
    };
    assert_eq!(shares, expected);
    assert_eq!((shares.compute(), shares.communication(), shares.memory()), (25, 10, 25));
    assert_eq!((shares.active(), shares.exposed()), (40, Some(5)));
}

#[test]
fn a_filter_by_time_cuts_and_finds_no_idle_time_where_nothing_was_recorded() {
    let made = Made::begin();
    made.string(1, "gemm()").string(2, "gemm");
    made.kernel((0, 10), 1, 1).kernel((20, 30), 2, 1).kernel((90, 100), 3, 1);
    let (within, _) = busy(&made, Some("5/25"));
    let within = within.expect("something ran");
    assert_eq!(within.window, (5, 25));
    assert_eq!(
        within.gpus[0].operations.iter().map(Operation::span).collect::<Vec<_>>(),
        [(5, 10), (20, 25)]
    );
    assert_eq!(busy(&made, Some("25/")).0.expect("ran").window, (25, 100));
    assert_eq!(busy(&made, Some("-7s/95")).0.expect("ran").window, (0, 95));
    assert!(busy(&made, Some("40/50")).0.is_none());
}

#[test]
fn what_ran_in_a_graph_that_was_traced_as_a_whole_is_not_known() {
    let made = Made::begin();
    made.string(1, "ncclDevKernel_SendRecv()").string(2, "ncclDevKernel_SendRecv").kernel((0, 10), 1, 1);
    graph(&made, (5, 30), 2);
    let (busy, notes) = busy(&made, None);
    let busy = busy.expect("something ran");
    assert!(busy.gpus[0].has_whole_graphs());
    assert!(notes.iter().any(|note| note.contains("1 CUDA graphs traced as a whole")), "{notes:?}");
    let shares = Sets::from_operations(busy.gpus[0].operations.iter()).within(0, 30);
    assert_eq!((shares.graphs_alone, shares.communication_alone, shares.idle), (20, 10, 0));
    assert_eq!(shares.exposed(), None);
}

#[test]
fn without_an_operation_there_is_nothing() {
    assert!(busy(Made::begin().string(1, "a"), None).0.is_none());
}
