//! What the simulated profiler writes of NCCL is what the reader of such reports makes of it.

use super::observed::{PAIR, Report, profiled};
use super::*;
use nsys::nccl::{Call, Function, NcclCalls};
use nsys::trace::Trace;

/// What the third of four ranks left, two on each node.
async fn calls(line: &str, seed: u64) -> NcclCalls {
    let bench = Bench::new("p5", PAIR, seed, &[]);
    let step = profiled(&format!("/opt/nccl-tests/build/{line}"), Some("pmix"), 2, &[]);
    assert_eq!(bench.run("c", "j", PAIR, step).await, "COMPLETED");
    let report = Report::read(&bench, 2, "p5-002").await;
    let trace = Trace::open(report.path()).expect("an export");
    NcclCalls::read(&trace).expect("sound tables").expect("calls of NCCL")
}

fn calls_of(all: &NcclCalls, function: Function) -> Vec<&Call> {
    all.calls.iter().filter(|call| call.function == function).collect()
}

#[test]
fn calls_are_read_back_with_their_sizes_ranks_and_kernels() {
    on_paused_clock(async {
        for (op, function, bytes, total) in [
            ("all_reduce", Function::AllReduce, 4 << 20, 4 << 20),
            ("all_gather", Function::AllGather, 1 << 20, 4 << 20),
            ("reduce_scatter", Function::ReduceScatter, 1 << 20, 4 << 20),
            ("broadcast", Function::Broadcast, 4 << 20, 4 << 20),
            ("reduce", Function::Reduce, 4 << 20, 4 << 20),
        ] {
            let all = calls(&format!("{op}_perf -b 4M -e 4M -n 3 -w 2"), 5).await;
            let own = calls_of(&all, function);
            assert_eq!(own.len(), 2 + 2 * (1 + 3 + 1), "{op}");
            for call in own {
                assert_eq!((call.bytes, call.total_bytes()), (Some(bytes), Some(total)), "{op}");
                assert_eq!((call.ranks, call.rank, call.group), (Some(4), Some(2), None));
                assert_eq!(all.kernels_of(call).len(), 1);
            }
            assert!(all.kernels_of_none().is_empty());
        }
    });
}

#[test]
fn payloads_say_the_same_in_each_form() {
    on_paused_clock(async {
        // Clusters differ in the forms of payloads: of these one has JSON alone, one bytes alone and one both.
        let mut calls_by_version = Vec::new();
        for seed in 1..=12 {
            let all = calls("reduce_perf -b 4M -e 4M -n 3 -w 0 -o max", seed).await;
            let says = |call: &&Call| (call.bytes, call.ranks, call.rank, call.root, call.reduction);
            calls_by_version.push(calls_of(&all, Function::Reduce).iter().map(says).collect::<Vec<_>>());
        }
        assert!(
            calls_by_version[0].iter().all(|says| says.0.is_some() && says.4.is_some()),
            "{calls_by_version:?}"
        );
        assert!(calls_by_version.iter().all(|says| *says == calls_by_version[0]), "{calls_by_version:?}");
    });
}

#[test]
fn groups_are_read_back_with_the_kernel_that_their_end_launched() {
    on_paused_clock(async {
        let all = calls("alltoall_perf -b 4M -e 4M -n 3 -w 0", 5).await;
        assert_eq!(all.groups.len(), 2 * (1 + 3 + 1));
        assert!(all.groups.iter().all(|group| (group.calls, group.kernels.len()) == (8, 1)));
        let peers: Vec<Option<i32>> =
            calls_of(&all, Function::Send).iter().take(4).map(|call| call.peer).collect();
        assert_eq!(peers, [Some(0), Some(1), Some(2), Some(3)]);

        let all = calls("all_reduce_perf -b 4M -e 4M -n 3 -w 0 -g 2", 5).await;
        let grouped = all.groups.iter().filter(|group| !group.kernels.is_empty());
        assert!(grouped.clone().all(|group| (group.calls, group.kernels.len()) == (2, 2)));
        assert_eq!(grouped.count(), 2 * (1 + 3 + 1));
    });
}

#[test]
fn kernels_of_graphs_belong_to_no_call_and_recorded_calls_launch_none() {
    on_paused_clock(async {
        let all = calls("all_reduce_perf -b 4M -e 4M -n 3 -w 0 -G 2", 5).await;
        let launching =
            calls_of(&all, Function::AllReduce).iter().filter(|call| !call.kernels.is_empty()).count();
        assert_eq!((launching, all.kernels_of_none().len()), (2, 2 * (3 * 2 + 1)));
    });
}
