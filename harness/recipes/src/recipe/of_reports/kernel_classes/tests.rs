//! Shares and bounds of small exports, in both profiles, and every rule that may be exceeded.

use crate::recipe::of_reports::Outcome;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::testing::{Made, PROCESS};
use nsys::tables::MEMCPY;

const NAMES: [&str; 7] = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)",
    "ncclSymkDevKernel_AllGather_LL()",
    "userbuffers_fp16_sum_inplace_gpu_rr_ag()",
    "void deep_ep::intranode::dispatch<8>(int*)",
    "sm90_gemm()",
    "CatArrayBatchedCopy()",
    "jacobi()",
];

/// Kernels as start, end and place of their name; calls as end and name.
fn made(kernels: &[(i64, i64, usize)], calls: &[(i64, &str)]) -> Made {
    let made = Made::begin();
    for (name, id) in NAMES.iter().zip((1..).step_by(2)) {
        let short = name.split(['(', '<']).next().unwrap_or_default();
        let short = short.rsplit("::").next().unwrap_or_default();
        made.string(id, name).string(id + 1, short);
    }
    for ((start, end, name), correlation) in kernels.iter().zip(1..) {
        made.kernel((*start, *end), correlation, 2 * *name as i64 + 1);
    }
    for ((end, name), id) in calls.iter().zip(100..) {
        made.string(id, name).call((0, *end), 7, id, id);
    }
    made
}

fn run(made: &Made, words: &[&str]) -> Outcome {
    surveyed("kernel_classes", words, &inputs(vec![made.path()]))
}

fn bound(made: &Made, words: &[&str]) -> String {
    texts(table(&run(made, words), "bottlenecks"), "Bottleneck").remove(0)
}

fn topics(made: &Made, words: &[&str]) -> Vec<String> {
    texts(table(&run(made, words), "recommendations"), "Topic")
}

#[test]
fn shares_are_by_sum_and_by_union() {
    let outcome = run(&made(&[(0, 60, 4), (30, 90, 4), (80, 110, 0), (200, 240, 6)], &[]), &[]);
    let classes = table(&outcome, "classes");
    assert_eq!(texts(classes, "Class")[..3], ["gemm", "other", "nccl"]);
    assert_eq!(integers(classes, "Time")[..3], [Some(120), Some(40), Some(30)]);
    assert_eq!(integers(classes, "Union")[..3], [Some(90), Some(40), Some(30)]);
    let shares = decimals(classes, "Union Share");
    assert_eq!(shares[0], Some(60.0), "of 150 at which any kernel ran");
    assert_eq!(shares[3..], [Some(0.0); 5], "none of a class is a measurement");
    assert_eq!(integers(table(&outcome, "gpu_classes"), "Device"), [Some(0); 8]);
    assert_eq!(integers(table(&outcome, "rank_classes"), "Rank"), [Some(0); 8]);
}

#[test]
fn symmetric_kernels_user_buffers_and_expert_parallelism_communicate() {
    let made = made(&[(0, 10, 1), (10, 20, 2), (20, 30, 3), (30, 60, 4)], &[(10, "cudaMalloc")]);
    let outcome = run(&made, &[]);
    assert_eq!(decimals(table(&outcome, "bottlenecks"), "Communication"), [Some(50.0)]);
    assert_eq!(bound(&made, &[]), "Communication Bound");
    let compat = run(&made, &["compat"]);
    assert_eq!(
        decimals(table(&compat, "bottlenecks"), "Communication"),
        [Some(0.0)],
        "the script knows none of them"
    );
    assert_eq!(texts(table(&compat, "classes"), "Class"), ["GEMM (Compute)", "Other"]);
}

#[test]
fn the_first_bound_that_is_exceeded_counts() {
    let waiting: &[(i64, &str)] = &[(70, "cudaStreamSynchronize_v3020"), (30, "cudaLaunchKernel_v7000")];
    let busy: &[(i64, &str)] = &[(10, "cudaStreamSynchronize_v3020"), (90, "cudaLaunchKernel_v7000")];
    for (kernels, calls, words, expected) in [
        (&[(0, 41, 0), (41, 100, 4)][..], waiting, &[][..], "Communication Bound"),
        (&[(0, 40, 0), (40, 100, 4)], waiting, &[], "Synchronization Bound"),
        (&[(0, 29, 0), (29, 100, 4)], busy, &[], "Compute Bound"),
        (&[(0, 21, 5), (21, 60, 6), (60, 100, 4)], busy, &[], "Memory Transfer Bound"),
        (&[(0, 20, 5), (20, 60, 6), (60, 100, 4)], busy, &[], "Mixed / Balanced"),
        (&[(0, 40, 0), (40, 100, 4)], busy, &["communication=39"], "Communication Bound"),
        (&[(0, 100, 6)], busy, &["sync=9"], "Synchronization Bound"),
        (&[(0, 40, 6), (40, 100, 4)], busy, &["compute=59"], "Compute Bound"),
        (&[(0, 20, 5), (20, 100, 6)], busy, &["memory=19"], "Memory Transfer Bound"),
    ] {
        let made = made(kernels, calls);
        assert_eq!(bound(&made, words), expected, "{kernels:?} {words:?}");
        let compat: Vec<&str> = ["compat"].iter().chain(words).copied().collect();
        assert_eq!(bound(&made, &compat), expected, "{kernels:?} {words:?}, in the script's profile");
    }
}

#[test]
fn without_calls_the_bottleneck_is_unknown() {
    let quiet = made(&[(0, 100, 4)], &[]);
    assert_eq!(bound(&quiet, &[]), "not known");
    assert_eq!(decimals(table(&run(&quiet, &[]), "bottlenecks"), "Synchronisation"), [None]);
    assert_eq!(bound(&quiet, &["compat"]), "Compute Bound", "the script takes them for none");
    assert_eq!(bound(&made(&[(0, 50, 4), (50, 100, 0)], &[]), &[]), "Communication Bound");
}

#[test]
fn advice_comes_with_its_number() {
    let made_of =
        |kernels: &[(i64, i64, usize)]| made(kernels, &[(55, "cudaDeviceSynchronize"), (45, "cudaMalloc")]);
    assert_eq!(topics(&made_of(&[(0, 30, 0), (30, 100, 4)]), &[]), ["synchronisation"]);
    let both = made_of(&[(0, 31, 0), (31, 100, 4)]);
    assert_eq!(topics(&both, &[]), ["communication", "synchronisation"]);
    assert_eq!(topics(&both, &["advise-communication=31", "advise-sync=55"]), [] as [&str; 0]);
    let copy = [
        ("start", 0),
        ("end", 9),
        ("bytes", 50_000_000_001),
        ("copyKind", 1),
        ("deviceId", 0),
        ("globalPid", PROCESS),
    ];
    let copy: Vec<_> = copy.iter().map(|(name, value)| (*name, (*value).into())).collect();
    both.put(&MEMCPY, &copy);
    assert_eq!(topics(&both, &["compat"]), ["communication", "transfers", "synchronisation"]);
    assert_eq!(topics(&both, &["advise-transfers=60000"]).len(), 2);
    // Of 51 runs one lasts long.
    let mut kernels: Vec<(i64, i64, usize)> = (0..50).map(|at| (at * 100, at * 100 + 10, 4)).collect();
    kernels.push((9000, 9090, 4));
    assert_eq!(topics(&made(&kernels, &[(9, "cudaMalloc")]), &[]), ["spread"]);
    assert_eq!(topics(&made(&kernels, &[(9, "cudaMalloc")]), &["advise-runs=51"]), [] as [&str; 0]);
    assert_eq!(topics(&made(&kernels, &[(9, "cudaMalloc")]), &["advise-spread=100"]), [] as [&str; 0]);
}

#[test]
fn several_reports_have_a_bound_of_all_and_one_each() {
    let calls: &[(i64, &str)] = &[(10, "cudaMalloc")];
    let (one, two) = (made(&[(0, 100, 0)], calls), made(&[(0, 100, 4)], calls));
    let outcome = surveyed("kernel_classes", &[], &inputs(vec![one.path(), two.path()]));
    let bounds = table(&outcome, "bottlenecks");
    assert_eq!(integers(bounds, "Rank"), [None, Some(0), Some(1)]);
    assert_eq!(decimals(bounds, "Communication"), [Some(50.0), Some(100.0), Some(0.0)]);
    assert_eq!(decimals(table(&outcome, "classes"), "Time Share")[..2], [Some(50.0), Some(50.0)]);
}

#[test]
fn without_a_kernel_there_is_no_class_and_no_bound() {
    let made = made(&[], &[(10, "cudaMalloc")]);
    made.fill((0, 10), 1);
    assert!(run(&made, &["compat"]).tables.is_empty());
}
