//! Small exports whose time is counted by hand: GPUs, streams, steps, and the numbers of the older script beside them.

use crate::recipe::of_reports::Outcome;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::testing::{Made, OTHER_PROCESS, PROCESS};
use nsys::tables::{ANALYSIS_DETAILS, GRAPH_TRACE, KERNEL, MEMCPY};

const NCCL: i64 = 1;
const GEMM: i64 = 3;
const COPY: i64 = 5;

fn begun() -> Made {
    let made = Made::begin();
    for (id, whole, short) in [
        (
            NCCL,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)",
            "ncclDevKernel_AllReduce",
        ),
        (GEMM, "void gemm<float>(float*)", "gemm"),
        (COPY, "my_memcpy_kernel(int*)", "my_memcpy_kernel"),
    ] {
        made.string(id, whole).string(id + 1, short);
    }
    made
}

fn kernel(
    made: &Made,
    (process, device, stream): (i64, i64, i64),
    (start, end): (i64, i64),
    name: i64,
    id: i64,
) {
    let row = [
        ("start", start),
        ("end", end),
        ("deviceId", device),
        ("streamId", stream),
        ("demangledName", name),
        ("shortName", name + 1),
        ("correlationId", id),
        ("globalPid", process),
    ];
    let row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&KERNEL, &row);
}

fn session(made: &Made, start: i64, stop: i64) {
    made.put(&ANALYSIS_DETAILS, &[("startTime", start.into()), ("stopTime", stop.into())]);
}

fn run(made: &Made, words: &[&str]) -> Outcome {
    surveyed("breakdown", words, &inputs(vec![made.path()]))
}

const SECOND: i64 = 1_000_000_000;

/// Two GPUs of which one communicates while the other computes.
fn two_gpus() -> Made {
    let made = begun();
    kernel(&made, (PROCESS, 0, 7), (0, 2 * SECOND), NCCL, 1);
    kernel(&made, (PROCESS, 1, 7), (0, 2 * SECOND), GEMM, 2);
    kernel(&made, (PROCESS, 0, 8), (5 * SECOND, 6 * SECOND), GEMM, 3);
    kernel(&made, (PROCESS, 0, 8), (8 * SECOND, 9 * SECOND), COPY, 4);
    let copy = [
        ("start", 5 * SECOND + SECOND / 2),
        ("end", 7 * SECOND),
        ("bytes", 9),
        ("copyKind", 1),
        ("deviceId", 0),
        ("globalPid", PROCESS),
    ];
    let copy: Vec<_> = copy.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&MEMCPY, &copy);
    session(&made, 100, 100 + 10 * SECOND);
    made
}

#[test]
fn the_older_script_takes_two_gpus_for_one_and_the_tables_beside_it_do_not() {
    let outcome = run(&two_gpus(), &["compat"]);
    let text = table(&outcome, "compat");
    let lines: Vec<&str> = text.lines().expect("a text").collect();
    assert_eq!(
        lines,
        [
            "",
            "Distributed Training Metric         |    Duration (s)",
            "------------------------------------------------------------",
            "Total Session Time                  |       10.000000",
            "GPU Active (any work)               |        5.000000",
            "GPU Idle Time                       |        5.000000",
            "------------------------------------------------------------",
            "Compute (FLOP-ish kernels)          |        3.000000",
            "Communication (NCCL kernels)        |        2.000000",
            "Memory ops (memcpy/memset)          |        1.500000",
            "------------------------------------------------------------",
            "Compute ∩ Comm overlap              |        2.000000",
            "Compute ∩ Mem overlap               |        0.500000",
            "Comm ∩ Mem overlap                  |        0.000000",
            "------------------------------------------------------------",
            "Overall GPU Utilization: 50.00%",
        ]
    );
    let gpus = table(&outcome, "gpus");
    assert_eq!(integers(gpus, "Device"), [Some(0), Some(1)]);
    assert_eq!(integers(gpus, "Compute and Communication"), [Some(0), Some(0)]);
    assert_eq!(integers(gpus, "Exposed Communication"), [Some(2 * SECOND), Some(0)]);
    assert_eq!(integers(gpus, "Idle"), [Some(4 * SECOND), Some(7 * SECOND)]);
    assert_eq!(integers(gpus, "Session"), [Some(10 * SECOND); 2]);
    assert_eq!(
        decimals(gpus, "Exposed of Communication"),
        [Some(100.0), None],
        "nothing of nothing is no share"
    );
}

#[test]
fn the_parts_of_every_row_add_up_to_its_window() {
    let outcome = run(&two_gpus(), &[]);
    let parts = [
        "Idle",
        "Compute Alone",
        "Communication Alone",
        "Memory Alone",
        "Compute and Communication",
        "Compute and Memory",
        "Communication and Memory",
        "All Three",
        "Graphs Alone",
    ];
    for name in ["gpus", "streams"] {
        let result_table = table(&outcome, name);
        let windows = integers(result_table, "Window");
        let parts = parts.map(|part| integers(result_table, part));
        for (row, window) in windows.iter().enumerate() {
            let sum: i64 = parts.iter().filter_map(|part| part[row]).sum();
            assert_eq!(Some(sum), *window, "{name} {row}");
        }
    }
    let streams = table(&outcome, "streams");
    assert_eq!(integers(streams, "Stream"), [None, Some(7), Some(8), Some(7)]);
    assert_eq!(integers(streams, "Active"), [1_500_000_000, 2 * SECOND, 2 * SECOND, 2 * SECOND].map(Some));
    assert!(outcome.tables.iter().all(|(name, _)| !name.starts_with("compat")));
}

#[test]
fn a_step_has_what_its_calls_launched_and_all_that_ran_beside_it() {
    let made = begun();
    made.string(9, "cudaLaunchKernel");
    // The second step's kernel is launched by another thread; what begins within no step is in none of its own.
    made.range((0, 100), 7, "step").range((200, 300), 7, "step").range((210, 220), 8, "step");
    for (id, thread, start) in [(1, 7, 10), (2, 8, 205), (3, 7, 150), (4, 7, 90)] {
        made.call((start, start + 5), thread, id, 9);
    }
    kernel(&made, (PROCESS, 0, 7), (1000, 1100), NCCL, 1);
    kernel(&made, (PROCESS, 0, 8), (1200, 1300), GEMM, 4);
    kernel(&made, (PROCESS, 0, 8), (1350, 1450), GEMM, 3);
    kernel(&made, (PROCESS, 0, 7), (1400, 1500), NCCL, 2);
    kernel(&made, (OTHER_PROCESS, 0, 7), (1000, 1500), GEMM, 1);
    let outcome = run(&made, &["step=step"]);
    let steps = table(&outcome, "steps");
    assert_eq!(integers(steps, "PID"), [Some(40), Some(40)], "the other process has no step");
    assert_eq!(integers(steps, "Step"), [Some(0), Some(1)]);
    assert_eq!(integers(steps, "Start"), [Some(1000), Some(1400)]);
    assert_eq!(integers(steps, "Window"), [Some(300), Some(100)]);
    assert_eq!(integers(steps, "Idle"), [Some(100), Some(0)]);
    assert_eq!(integers(steps, "Exposed Communication"), [Some(100), Some(50)]);
    assert!(
        outcome.notes.iter().any(|note| note.ends_with("not counted as steps: 1")),
        "{:?}",
        outcome.notes
    );
    let outcome = run(&made, &["step=nothing"]);
    assert_eq!(table(&outcome, "steps").height(), 0);
    assert!(
        outcome.notes.iter().any(|note| note.ends_with("no range is named `nothing`")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn without_a_session_length_the_script_s_numbers_are_missing() {
    let made = begun();
    kernel(&made, (PROCESS, 0, 7), (0, 10), GEMM, 1);
    let outcome = run(&made, &["compat"]);
    assert_eq!(integers(table(&outcome, "gpus"), "Session"), [None]);
    assert!(outcome.tables.iter().all(|(name, _)| !name.starts_with("compat")));
    assert!(
        outcome.notes.iter().any(|note| note.contains("no length of the session")),
        "{:?}",
        outcome.notes
    );
    let made = begun();
    made.fill((0, 10), 1);
    session(&made, 0, 100);
    let outcome = run(&made, &["compat"]);
    assert_eq!(integers(table(&outcome, "gpus"), "Memory Alone"), [Some(10)]);
    assert!(
        outcome.notes.iter().any(|note| note.contains("none of the ten numbers: no kernels")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn exposed_communication_beside_a_whole_graph_is_not_known() {
    let made = begun();
    kernel(&made, (PROCESS, 0, 7), (0, 10), NCCL, 1);
    let graph = [("start", 5), ("end", 30), ("deviceId", 0), ("globalPid", PROCESS)];
    let graph: Vec<_> = graph.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&GRAPH_TRACE, &graph);
    let outcome = run(&made, &[]);
    let gpus = table(&outcome, "gpus");
    assert_eq!(integers(gpus, "Exposed Communication"), [None]);
    assert_eq!(decimals(gpus, "Exposed of Window"), [None]);
    assert_eq!(integers(gpus, "Graphs Alone"), [Some(20)]);
}

#[test]
fn texts_of_several_reports_stand_behind_their_names() {
    let (one, two) = (two_gpus(), two_gpus());
    let outcome = surveyed("breakdown", &["compat"], &inputs(vec![one.path(), two.path()]));
    let lines = texts(table(&outcome, "compat"), "Text");
    assert_eq!((lines.len(), lines[0].as_str(), lines[17].as_str()), (34, "r0", "r1"));
    assert_eq!(integers(table(&outcome, "compat_numbers"), "Active"), [Some(5 * SECOND); 2]);
}

#[test]
fn without_anything_on_a_gpu_there_is_no_table() {
    assert!(run(&begun(), &["compat"]).tables.is_empty());
}
