//! The charts that summaries and some other recipes give beside their tables.

use super::Outcome;
use super::tests::{inputs, surveyed};
use crate::chart::{Bars, Boxes, Chart, Figure, Lines, Scale};
use crate::testing::Made;

fn chart<'a>(outcome: &'a Outcome, name: &str) -> &'a Chart {
    let found = outcome.charts.iter().find(|chart| chart.name == name);
    found.unwrap_or_else(|| panic!("no {name}: {:?}", outcome.charts))
}

fn bars<'a>(outcome: &'a Outcome, name: &str) -> &'a Bars {
    match &chart(outcome, name).figure {
        Figure::Bars(bars) => bars,
        other => panic!("{other:?}"),
    }
}

fn labelled(bars: &Bars) -> Vec<(&str, Option<f64>)> {
    bars.bars.iter().map(|bar| (bar.label.as_str(), bar.value)).collect()
}

fn boxes(outcome: &Outcome) -> &Boxes {
    match &chart(outcome, "spread").figure {
        Figure::Boxes(boxes) => boxes,
        other => panic!("{other:?}"),
    }
}

/// Kernels of this many names; the n-th runs twice, n and 3n long.
fn named(names: i64) -> Made {
    let made = Made::begin();
    for name in 1..=names {
        made.string(10 * name, &format!("kernel {name}")).string(10 * name + 1, "kernel");
        made.kernel((1000 * name, 1000 * name + name), 1, 10 * name);
        made.kernel((1000 * name + 500, 1000 * name + 500 + 3 * name), 2, 10 * name);
    }
    made
}

#[test]
fn a_summary_shows_its_ten_largest_groups_and_what_is_left() {
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![named(12).path()]));
    let totals = labelled(bars(&outcome, "totals"));
    assert_eq!(
        (totals.len(), totals[0], totals[9]),
        (11, ("kernel 12", Some(48.0)), ("kernel 3", Some(12.0)))
    );
    assert_eq!(totals[10], ("all others (2)", Some(12.0)));
    let boxes = boxes(&outcome);
    assert_eq!((boxes.boxes.len(), boxes.value.scale), (10, Scale::Log));
    let first = &boxes.boxes[0];
    assert_eq!((first.label.as_str(), first.count), ("kernel 12", 2));
    assert_eq!((first.min, first.q1, first.median, first.q3, first.max), (12.0, 18.0, 24.0, 30.0, 36.0));
}

#[test]
fn a_summary_of_few_groups_has_no_others_and_zeros_have_no_logarithm() {
    let made = named(2);
    made.string(30, "none").string(31, "none").kernel((5, 5), 1, 30);
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![made.path()]));
    let totals = [("kernel 2", Some(8.0)), ("kernel 1", Some(4.0)), ("none", Some(0.0))];
    assert_eq!(labelled(bars(&outcome, "totals")), totals);
    assert_eq!(boxes(&outcome).value.scale, Scale::Linear);
}

#[test]
fn a_summary_without_a_group_has_no_chart() {
    let made = Made::begin();
    made.range((0, 9), 3, "step");
    assert!(surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![made.path()])).charts.is_empty());
}

/// Computing from 0 to 60, communicating from 40 to 80, nothing until the fill from 90 to 100.
fn mixed() -> Made {
    let made = Made::begin();
    made.string(1, "gemm()")
        .string(2, "gemm")
        .string(3, "ncclDevKernel_AllReduce(x)")
        .string(4, "ncclDevKernel");
    made.kernel((0, 60), 1, 1).kernel((40, 80), 2, 3).fill((90, 100), 3);
    made
}

#[test]
fn where_time_went_is_seen_of_all_gpus_together_and_of_each() {
    let outcome = surveyed("breakdown", &[], &inputs(vec![mixed().path(), mixed().path()]));
    let shares = labelled(bars(&outcome, "shares"));
    let expected = [
        ("computing alone", Some(40.0)),
        ("computing beside communication", Some(20.0)),
        ("communicating alone", Some(20.0)),
        ("copying alone", Some(10.0)),
        ("idle", Some(10.0)),
    ];
    assert_eq!(shares, expected);
    assert_eq!(labelled(bars(&outcome, "idle")), [("rank 0", Some(10.0)), ("rank 1", Some(10.0))]);
    assert_eq!(labelled(bars(&outcome, "exposed")), [("rank 0", Some(20.0)), ("rank 1", Some(20.0))]);
}

#[test]
fn gpus_that_never_communicate_have_no_chart_of_it() {
    let outcome = surveyed("breakdown", &[], &inputs(vec![named(1).path()]));
    let names: Vec<&str> = outcome.charts.iter().map(|chart| &*chart.name).collect();
    assert_eq!(names, ["shares", "idle"]);
    assert!(surveyed("nccl_gpu_overlap_trace", &[], &inputs(vec![named(1).path()])).charts.is_empty());
}

#[test]
fn classes_overlap_and_steps_are_seen() {
    let made = mixed();
    let reports = inputs(vec![made.path()]);
    let outcome = surveyed("kernel_classes", &[], &reports);
    let classes = labelled(bars(&outcome, "classes"));
    assert_eq!(classes[..2], [("gemm", Some(60.0)), ("nccl", Some(40.0))]);
    let outcome = surveyed("nccl_gpu_overlap_trace", &[], &reports);
    assert_eq!(labelled(bars(&outcome, "exposed")), [("rank 0", Some(50.0))]);
    let made = Made::begin();
    for (at, number) in [7, 8, 9, 10].into_iter().enumerate() {
        let start = 1000 * at as i64;
        made.range((start, start + 900 + number), 3, &format!("step {number}"));
    }
    let outcome = surveyed("steps", &[], &inputs(vec![made.path()]));
    let Figure::Lines(Lines { lines, .. }) = &chart(&outcome, "steps").figure else { panic!("no lines") };
    let points = [(7.0, Some(907.0)), (8.0, Some(908.0)), (9.0, Some(909.0)), (10.0, Some(910.0))];
    assert_eq!((lines[0].label.as_str(), lines[0].points.as_slice()), ("rank 0", &points[..]));
}

#[test]
fn the_use_of_each_gpu_over_time_stands_beside_the_threshold() {
    let outcome = surveyed("gpu_time_util", &["chunks=5", "threshold=30"], &inputs(vec![mixed().path()]));
    let Figure::Lines(figure) = &chart(&outcome, "use").figure else { panic!("no lines") };
    // Chunks of 20: kernels side by side add up.
    let points = [
        (10.0, Some(100.0)),
        (30.0, Some(100.0)),
        (50.0, Some(200.0)),
        (70.0, Some(100.0)),
        (90.0, Some(50.0)),
    ];
    assert_eq!((figure.lines[0].label.as_str(), figure.lines[0].points.as_slice()), ("rank 0", &points[..]));
    assert_eq!(figure.marks.iter().map(|mark| mark.at).collect::<Vec<_>>(), [30.0]);
}
