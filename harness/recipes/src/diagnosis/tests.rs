//! Small exports in which one thing limits the work, each beside one in which nothing does.

use super::{Diagnosis, diagnose, started_apart};
use crate::recipe::of_reports::Input;
use crate::testing::nccl::{call, communicator, domain};
use crate::testing::{Made, PROCESS};
use nsys::tables::{
    DIAGNOSTIC_EVENT, GPU_METRICS, GRAPH_TRACE, KERNEL, MEMCPY, SESSION_START, TARGET_INFO_GPU_METRICS,
};

const NCCL: i64 = 1;
const GEMM: i64 = 3;
const OTHER: i64 = 5;
const THIRD: i64 = 7;
const LAUNCH: i64 = 9;
const SYNC: i64 = 10;
const COPY: i64 = 11;
const MS: i64 = 1_000_000;

fn begun() -> Made {
    let made = Made::begin();
    for (id, text) in [
        (NCCL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"),
        (NCCL + 1, "ncclDevKernel_AllReduce"),
        (GEMM, "void gemm<float>(float*)"),
        (GEMM + 1, "gemm"),
        (OTHER, "void other<float>(float*)"),
        (OTHER + 1, "other"),
        (THIRD, "void third<float>(float*)"),
        (THIRD + 1, "third"),
        (LAUNCH, "cudaLaunchKernel_v7000"),
        (SYNC, "cudaStreamSynchronize_v3020"),
        (COPY, "cudaMemcpy_v3020"),
    ] {
        made.string(id, text);
    }
    made
}

/// A kernel of device 0, in milliseconds, without its launch.
fn kernel(made: &Made, stream: i64, (start, end): (i64, i64), name: i64) {
    let row = [
        ("start", start * MS),
        ("end", end * MS),
        ("deviceId", 0),
        ("streamId", stream),
        ("demangledName", name),
        ("shortName", name + 1),
        ("globalPid", PROCESS),
    ];
    let row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&KERNEL, &row);
}

/// Three kernels of which none takes half of the time, without a gap.
fn healthy() -> Made {
    let made = begun();
    for step in 0..10 {
        kernel(&made, 7, (step * 20, step * 20 + 8), GEMM);
        kernel(&made, 7, (step * 20 + 8, step * 20 + 15), OTHER);
        kernel(&made, 7, (step * 20 + 15, step * 20 + 20), THIRD);
    }
    made
}

fn diagnosed(made: &[&Made]) -> Diagnosis {
    diagnose(&inputs(made), 1, &|_| {}).expect("diagnosed")
}

fn inputs(made: &[&Made]) -> Vec<Input> {
    let input = |(at, made): (usize, &&Made)| Input { shown: format!("r{at}"), path: made.path(), side: 0 };
    made.iter().enumerate().map(input).collect()
}

fn codes(diagnosis: &Diagnosis) -> Vec<(&'static str, f64)> {
    diagnosis.findings.iter().map(|one| (one.code, (one.share * 1000.0).round() / 1000.0)).collect()
}

#[test]
fn a_gpu_that_computes_all_the_time_has_no_finding() {
    let diagnosis = diagnosed(&[&healthy()]);
    assert_eq!(codes(&diagnosis), []);
    assert_eq!((diagnosis.gpus, diagnosis.window_ns), (1, 200e6));
    assert!(diagnosis.notes.is_empty() && diagnosis.unreadable.is_empty());
}

#[test]
fn communication_alone_on_the_stream_of_compute_is_found_with_its_time() {
    let made = healthy();
    kernel(&made, 7, (200, 220), NCCL);
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), [("exposed-communication", 0.091), ("communication-on-compute-stream", 0.091)]);
    assert!(
        found.findings[0].evidence[0].contains("20.0 ms of its 220 ms (9.1 %)"),
        "{:?}",
        found.findings[0]
    );
    // Beside compute, and on a stream of its own, it costs nothing.
    let made = healthy();
    kernel(&made, 8, (100, 120), NCCL);
    assert_eq!(codes(&diagnosed(&[&made])), []);
}

/// Sixty milliseconds of compute, and then a hundred calls of so many bytes that nothing hides.
fn calls_of(bytes: u64) -> Made {
    let made = Made::begin();
    for (id, text) in [
        (1, "cudaLaunchKernelExC_v11060"),
        (2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"),
        (3, "ncclDevKernel_AllReduce"),
        (20, "void gemm<float>(float*)"),
        (21, "gemm"),
        (22, "void other<float>(float*)"),
        (23, "other"),
        (24, "void third<float>(float*)"),
        (25, "third"),
    ] {
        made.string(id, text);
    }
    domain(&made);
    communicator(&made, 0, 0xabc, 2, 0);
    for step in 0..3 {
        kernel(&made, 9, (step * 20, step * 20 + 20), 20 + step * 2);
    }
    for at in 0..100 {
        let start = 60 * MS + at * 100_000;
        call(&made, start - 50_000, "ncclAllReduce", (0xabc, bytes), (start, start + 100_000), at + 1);
    }
    made
}

#[test]
fn small_messages_are_found_with_their_sizes_and_large_ones_are_not() {
    let found = diagnosed(&[&calls_of(1000)]);
    let small = found.findings.iter().find(|one| one.code == "small-messages").expect("found");
    assert_eq!((small.share * 1000.0).round(), 143.0, "{small:?}");
    assert_eq!(
        small.evidence,
        ["ncclAllReduce of 1000 bytes on 2 ranks: 100 calls of 100 us without waiting"]
    );
    let found = diagnosed(&[&calls_of(100 << 20)]);
    assert!(found.findings.iter().all(|one| one.code != "small-messages"), "{:?}", found.findings);
    assert!(found.findings.iter().any(|one| one.code == "exposed-communication"), "{:?}", found.findings);
}

/// Samples of two GPUs: how many of the multiprocessors were active, and their clocks in Hz.
fn clocks(made: &Made, gpus: [(i64, i64); 3]) {
    for (gpu, (active, mhz)) in gpus.into_iter().enumerate() {
        let kind = 256 + i64::try_from(gpu).expect("few");
        for (id, name, value) in
            [(1, "SMs Active [Throughput %]", active), (2, "GPC Clock Frequency [MHz]", mhz * 1_000_000)]
        {
            made.put(
                &TARGET_INFO_GPU_METRICS,
                &[("typeId", kind.into()), ("metricId", id.into()), ("metricName", name.to_owned().into())],
            );
            for at in [0, 100 * MS, 200 * MS] {
                let row = [("timestamp", at), ("typeId", kind), ("metricId", id), ("value", value)];
                made.put(&GPU_METRICS, &row.map(|(name, value)| (name, value.into())));
            }
        }
    }
}

#[test]
fn a_clock_below_that_of_other_busy_gpus_is_found_and_that_of_an_idle_gpu_is_not() {
    let of = |gpus| {
        let made = healthy();
        clocks(&made, gpus);
        diagnosed(&[&made])
    };
    let found = of([(90, 1980), (90, 1980), (90, 1485)]);
    assert_eq!(codes(&found), [("low-clock", 0.25)]);
    let evidence = &found.findings[0].evidence[0];
    assert!(
        evidence.contains("GPU 2")
            && evidence.ends_with(": 1485 MHz on average, 1485 at most; median of 3 busy GPUs: 1980"),
        "{evidence}"
    );
    assert_eq!(codes(&of([(90, 1980), (90, 1980), (1, 345)])), [], "it has nothing to do");
    assert_eq!(codes(&of([(90, 1980), (90, 1960), (90, 1950)])), []);
}

#[test]
fn an_idle_gpu_is_found_with_its_longest_gap() {
    let made = healthy();
    kernel(&made, 7, (260, 270), GEMM);
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), [("idle-gpus", 0.222)]);
    assert!(found.findings[0].evidence[1].contains("the longest has 60.0 ms"), "{:?}", found.findings[0]);
}

#[test]
fn kernels_that_are_shorter_than_their_launches_are_found_in_place_of_the_idle_time() {
    let made = begun();
    for step in 0..100 {
        // A call of 20 us, and a kernel of 4 us when it ends.
        let begin = step * 30_000;
        made.call((begin, begin + 20_000), 1, step + 1, LAUNCH);
        let name = [GEMM, OTHER, THIRD][step as usize % 3];
        made.kernel((begin + 20_000, begin + 24_000), step + 1, name);
    }
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), [("launch-bound", 0.866)]);
    assert!(found.findings[0].evidence[0].starts_with("100 of 100 launches"), "{:?}", found.findings[0]);
}

#[test]
fn a_host_that_waits_is_found_only_where_gpus_wait_too() {
    let waits = |idle: i64| {
        let made = healthy();
        kernel(&made, 7, (200 + idle, 210 + idle), GEMM);
        kernel(&made, 7, (210 + idle, 220 + idle), OTHER);
        made.call((0, 150 * MS), 1, 900, SYNC);
        codes(&diagnosed(&[&made]))
    };
    assert_eq!(waits(0), []);
    assert_eq!(waits(80), [("idle-gpus", 0.267), ("host-waits", 0.267)]);
}

#[test]
fn synchronous_copies_are_found_with_their_bytes_and_in_place_of_copies_alone() {
    let made = healthy();
    made.call((200 * MS, 231 * MS), 1, 900, COPY);
    let row = [
        ("start", 200 * MS),
        ("end", 230 * MS),
        ("bytes", 262_144_000),
        ("copyKind", 2),
        ("srcKind", 2),
        ("dstKind", 0),
        ("deviceId", 0),
        ("streamId", 7),
        ("correlationId", 900),
        ("globalPid", PROCESS),
    ];
    let row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&MEMCPY, &row);
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), [("synchronous-copies", 0.13)]);
    assert!(found.findings[0].evidence[1].contains("30.0 ms of 262.1 MB"), "{:?}", found.findings[0]);
}

#[test]
fn reports_that_were_not_recorded_together_are_not_compared() {
    let at = |utc_ns: i64, stretch: i64| {
        let made = healthy();
        made.put(&SESSION_START, &[("utcEpochNs", utc_ns.into())]);
        if stretch > 0 {
            kernel(&made, 8, (0, stretch), GEMM);
            kernel(&made, 9, (0, stretch), OTHER);
        }
        made
    };
    let day = 86_400 * 1_000 * MS;
    let (first, same, later) = (at(day, 0), at(day + MS, 400), at(2 * day, 400));
    assert_eq!(codes(&diagnosed(&[&first, &same])), [("uneven-gpus", 0.5)]);
    let apart = diagnosed(&[&first, &later]);
    assert_eq!(codes(&apart), []);
    let why = apart.apart.expect("a reason");
    assert!(why.starts_with("these reports are not of one run: r1 begins 86"), "{why}");
}

#[test]
fn reports_that_were_started_more_than_a_day_apart_are_not_of_one_run() {
    let at = |utc_s: i64| {
        let made = healthy();
        made.put(&SESSION_START, &[("utcEpochNs", (utc_s * 1_000 * MS).into())]);
        made
    };
    let (first, same_day, later) = (at(1_000), at(1_000 + 86_400), at(1_000 + 86_401));
    let without = healthy();
    assert_eq!(started_apart(&inputs(&[&first, &same_day, &without])), None);
    let why = started_apart(&inputs(&[&first, &without, &later])).expect("a reason");
    assert!(why.starts_with("these reports are not of one run: r2 was started 86"), "{why}");
    assert!(why.ends_with(" after r0; give those of one run alone"), "{why}");
    assert_eq!(started_apart(&inputs(&[&later])), None);
    let (least, most) = (healthy(), healthy());
    least.put(&SESSION_START, &[("utcEpochNs", i64::MIN.into())]);
    most.put(&SESSION_START, &[("utcEpochNs", i64::MAX.into())]);
    assert!(started_apart(&inputs(&[&least, &most])).is_some(), "no overflow");
}

#[test]
fn lost_events_are_said_first() {
    let made = healthy();
    let lost = "Not all CUDA events might have been collected.";
    made.put(
        &DIAGNOSTIC_EVENT,
        &[("severity", 3.into()), ("source", 2.into()), ("text", lost.to_owned().into())],
    );
    let notes = diagnosed(&[&made]).notes;
    assert!(notes.first().is_some_and(|note| note.contains(lost)), "{notes:?}");
}

#[test]
fn a_benchmark_of_communication_has_no_advice_for_trainings_and_says_so() {
    let made = begun();
    made.string(13, "void prepareInput2<__half>(__half*)");
    made.string(14, "prepareInput2");
    for at in 0..5 {
        kernel(&made, 7, (at * 40, at * 40 + 20), NCCL);
        kernel(&made, 7, (at * 40 + 20, at * 40 + 22), 13);
    }
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), []);
    assert!(
        found.notes.iter().any(|note| note.starts_with("a benchmark of communication")),
        "{:?}",
        found.notes
    );
    // One kernel of a model, and it is none.
    kernel(&made, 7, (200, 201), GEMM);
    let found = diagnosed(&[&made]);
    assert!(codes(&found).iter().any(|(code, _)| *code == "exposed-communication"), "{found:?}");
    assert!(!found.notes.iter().any(|note| note.contains("benchmark")), "{:?}", found.notes);
}

#[test]
fn overlap_that_cannot_be_known_is_said() {
    let made = healthy();
    let graph = [("start", 0), ("end", 200 * MS), ("deviceId", 0), ("graphId", 1), ("globalPid", PROCESS)];
    let graph: Vec<_> = graph.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(&GRAPH_TRACE, &graph);
    let notes = diagnosed(&[&made]).notes;
    assert!(notes.iter().any(|note| note.contains("unknown on 1 of 1 GPUs")), "{notes:?}");
}

#[test]
fn a_kernel_that_takes_half_of_the_time_is_named() {
    let made = healthy();
    kernel(&made, 7, (200, 260), GEMM);
    let found = diagnosed(&[&made]);
    assert_eq!(codes(&found), [("hot-kernel", 0.538)]);
    assert!(found.findings[0].evidence[0].contains("gemm"), "{:?}", found.findings[0]);
}
