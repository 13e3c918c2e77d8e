//! Projections and launches over several reports.

use super::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::result_table::Values;
use crate::testing::Made;

/// Two steps, the second one with a part; a kernel outside all ranges on the thread of the ranges and one on another.
fn one() -> Made {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernel_v7000").string(2, "gemm").string(3, "gemm");
    made.range((0, 100), 3, "step").range((200, 300), 3, "step").range((210, 240), 3, "part");
    made.call((10, 20), 3, 1, 1).kernel((500, 600), 1, 2);
    made.call((220, 230), 3, 2, 1).kernel((800, 830), 2, 2);
    made.call((400, 401), 3, 3, 1).kernel((402, 410), 3, 2);
    made.call((10, 20), 4, 4, 1).kernel((520, 530), 4, 2);
    made
}

fn other() -> Made {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernel_v7000").string(2, "gemm").string(3, "gemm");
    made.range((0, 100), 5, "step").call((10, 20), 5, 1, 1).kernel((15, 1015), 1, 2);
    made
}

#[test]
fn projections_are_summed_over_all_reports_and_of_each() {
    let (one, other) = (one(), other());
    let outcome = surveyed("nvtx_gpu_proj_sum", &[], &inputs(vec![one.path(), other.path()]));
    let all = table(&outcome, "all_stats");
    assert_eq!(texts(all, "Range"), [":step", ":part"]);
    assert_eq!(integers(all, "Total Proj Time"), [Some(1130), Some(30)]);
    assert_eq!(integers(all, "Range Instances"), [Some(3), Some(1)]);
    assert_eq!(decimals(all, "Proj Med"), [Some(100.0), Some(30.0)], "of 30, 100 and 1000");
    assert_eq!(integers(all, "Total GPU Ops"), [Some(3), Some(1)]);
    assert_eq!(decimals(all, "Avg Range Lvl"), [Some(0.0), Some(1.0)]);
    assert_eq!(decimals(all, "Avg Num Child"), [Some(1.0 / 3.0), Some(0.0)]);
    let ranks = table(&outcome, "rank_stats");
    assert_eq!(integers(ranks, "Rank"), [Some(0), Some(0), Some(1)]);
    assert_eq!(integers(ranks, "Total Proj Time"), [Some(130), Some(30), Some(1000)]);
    assert_eq!(integers(table(&outcome, "files"), "Rows"), [Some(3), Some(1)]);
}

#[test]
fn the_order_in_which_reports_come_changes_no_figure_of_all() {
    let (one, other) = (one(), other());
    for name in ["nvtx_gpu_proj_sum", "nvtx_kern_sum", "cuda_kern_exec_sum"] {
        let forth = surveyed(name, &[], &inputs(vec![one.path(), other.path()]));
        let back = surveyed(name, &[], &inputs(vec![other.path(), one.path()]));
        assert_eq!(table(&forth, "all_stats"), table(&back, "all_stats"), "{name}");
    }
}

#[test]
fn each_projection_is_a_row_and_what_was_launched_outside_is_one_of_its_thread() {
    let (one, other) = (one(), other());
    let outcome = surveyed("nvtx_gpu_proj_trace", &[], &inputs(vec![one.path(), other.path()]));
    let trace = table(&outcome, "trace");
    assert_eq!(integers(trace, "Rank"), [0, 0, 0, 0, 0, 1].map(Some));
    assert_eq!(texts(trace, "Name"), ["", ":step", "", ":step", ":part", ":step"]);
    assert_eq!(integers(trace, "TID"), [3, 3, 4, 3, 3, 5].map(Some));
    assert_eq!(integers(trace, "Projected Start"), [402, 500, 520, 800, 800, 15].map(Some));
    assert_eq!(integers(trace, "Projected End"), [410, 600, 530, 830, 830, 1015].map(Some));
    let id = [None, Some(1), None, Some(2), Some(3), Some(1)];
    assert_eq!(integers(trace, "RangeId"), id);
    assert_eq!(integers(trace, "Orig Start"), [None, Some(0), None, Some(200), Some(210), Some(0)]);
    assert_eq!(integers(trace, "ParentId"), [None, None, None, None, Some(2), None]);
    assert_eq!(texts(trace, "RangeStack"), ["", ":1", "", ":2", ":2:3", ":1"]);
    assert_eq!(texts(trace, "Style")[..2], ["", "PushPop"]);
    assert_eq!(integers(trace, "NumChild"), [0, 0, 0, 1, 0, 0].map(Some));
}

#[test]
fn the_newer_columns_have_ranges_alone_and_stacks_as_lists() {
    let one = one();
    let outcome = surveyed("nvtx_gpu_proj_trace", &["compat"], &inputs(vec![one.path()]));
    let trace = table(&outcome, "trace");
    let names: Vec<&str> = trace.columns.iter().map(|column| column.name.as_str()).collect();
    let expected = "Rank|Text|Start|End|Children Count|Range ID|Parent ID|PID|Range Stack|Stack Level|TID";
    assert_eq!(names.join("|"), expected);
    assert_eq!(texts(trace, "Text"), [":step", ":step", ":part"]);
    assert_eq!(integers(trace, "End"), [600, 830, 830].map(Some));
    let Some(Values::Lists(stacks)) = trace.column("Range Stack").map(|column| &column.values) else {
        panic!("no lists")
    };
    let stacks: Vec<&[i64]> = stacks.iter().flatten().map(|list| list.numbers()).collect();
    assert_eq!(stacks, [&[1][..], &[2], &[2, 3]]);
}

#[test]
fn kernels_of_ranges_and_launches_are_separate_by_thread_within_one_report_only() {
    let (one, other) = (one(), other());
    let both = inputs(vec![one.path(), other.path()]);
    let outcome = surveyed("nvtx_kern_sum", &["base"], &both);
    let all = table(&outcome, "all_stats");
    assert!(all.column("TID").is_none());
    assert_eq!(texts(all, "NVTX Range"), [":step", ":part"]);
    assert_eq!(integers(all, "NVTX Inst"), [Some(3), Some(1)]);
    assert_eq!(integers(all, "Total Time"), [Some(1130), Some(30)]);
    assert_eq!(integers(table(&outcome, "rank_stats"), "TID"), [Some(3), Some(3), Some(5)]);
    let outcome = surveyed("cuda_kern_exec_sum", &[], &both);
    let all = table(&outcome, "all_stats");
    assert_eq!((integers(all, "Count"), integers(all, "QCount")), (vec![Some(5)], vec![Some(4)]));
    assert_eq!(integers(all, "KMax"), [Some(1000)]);
    let ranks = table(&outcome, "rank_stats");
    assert_eq!(integers(ranks, "TID"), [Some(3), Some(4), Some(5)], "of each report the largest total first");
    assert_eq!(decimals(ranks, "QAvg")[2], None, "a kernel that began before its call ended did not wait");
}

#[test]
fn reports_without_ranges_that_launched_something_are_an_answer_and_those_without_tables_are_none() {
    let idle = Made::begin();
    idle.range((0, 100), 3, "step");
    let outcome = surveyed("nvtx_gpu_proj_sum", &[], &inputs(vec![idle.path()]));
    assert_eq!(table(&outcome, "all_stats").height(), 0);
    assert!(outcome.notes.iter().any(|note| note.ends_with("looked at 1 rows, found none")));
    let empty = Made::begin();
    empty.string(1, "a");
    assert!(surveyed("nvtx_gpu_proj_sum", &[], &inputs(vec![empty.path()])).tables.is_empty());
}
