//! What one process of the simulated training program does, seen by a profiler: a range for each step, computation on one
//! stream, collectives of three communicators beside it, copies in and out. When is decided in `training`.

use super::events::{Copied, Events, Node, Thread};
use super::payload::{Of, Payload, Reduction};
use super::{FIRST_KERNEL_S, ns};
use crate::training::{Compute, Doing, Placed, Program, Training, Who};

/// One process of the program.
pub(super) struct Process {
    pub rank: u32,
    pub device: i64,
    pub pid: u64,
    /// Of the world, of its node and of its place on all nodes.
    pub communicators: [u64; 3],
}

/// The kernels of a part and their shares of its time.
fn kernels(training: &Training, part: Compute) -> &'static [(&'static str, f64)] {
    match (training.program, part) {
        (_, Compute::Optimizer) => &[("multi_tensor_apply_kernel", 1.0)],
        (Program::Ddp, Compute::Forward) => &[
            ("ampere_sgemm_128x64_tn", 0.55),
            ("softmax_warp_forward", 0.1),
            ("vectorized_layer_norm_kernel", 0.15),
            ("elementwise_kernel", 0.2),
        ],
        (Program::Ddp, Compute::Backward) => &[
            ("ampere_sgemm_128x64_nn", 0.35),
            ("ampere_sgemm_128x128_nt", 0.35),
            ("softmax_warp_backward", 0.1),
            ("vectorized_elementwise_kernel", 0.2),
        ],
        (Program::Plain, part) => sm80(part),
        (_, Compute::Forward) if training.is_hopper => &[
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel", 0.4),
            ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1", 0.2),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64_warpgroupsize2x1x1_kernel", 0.25),
            ("rmsnorm_fwd_tuned_kernel", 0.05),
            ("vectorized_elementwise_kernel", 0.1),
        ],
        (_, Compute::Backward) if training.is_hopper => &[
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel", 0.33),
            ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_30_64x128x128_4x1x1", 0.22),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize256x128x64_warpgroupsize2x1x1_kernel", 0.3),
            ("rmsnorm_bwd_tuned_kernel", 0.05),
            ("vectorized_elementwise_kernel", 0.1),
        ],
        (_, part) => sm80(part),
    }
}

fn sm80(part: Compute) -> &'static [(&'static str, f64)] {
    match part {
        Compute::Forward => &[
            ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_64x4_tn_align8", 0.45),
            ("flash_fwd_kernel", 0.2),
            ("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn_align8", 0.25),
            ("vectorized_elementwise_kernel", 0.1),
        ],
        Compute::Backward => &[
            ("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nn_align8", 0.35),
            ("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 0.25),
            ("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nt_align8", 0.3),
            ("vectorized_elementwise_kernel", 0.1),
        ],
        Compute::Optimizer => &[("multi_tensor_apply_kernel", 1.0)],
    }
}

fn graph_of(part: Compute) -> i64 {
    match part {
        Compute::Forward => 1,
        Compute::Backward => 2,
        Compute::Optimizer => 3,
    }
}

/// Graphs of collectives have numbers of their own.
const REPLAYED: i64 = 100;
const COMPUTE_STREAM: i64 = 7;
const TO_DEVICE: i64 = 1;
const TO_HOST: i64 = 2;
const BATCH_BYTES: u64 = 1 << 20;

fn stream(who: Who) -> i64 {
    match who {
        Who::World => 20,
        Who::Node => 24,
        Who::Across => 28,
    }
}

/// What one process shows of all that was placed for it, in order.
pub(super) fn events(training: &Training, process: &Process, placed: &[Placed]) -> Events {
    let mut thread = Thread::new(process.pid, "python");
    let origin = ns(FIRST_KERNEL_S);
    joins(training, process, &mut thread, origin);
    let by_graphs = training.by_graphs.get(process.rank as usize).is_some_and(|by_graphs| *by_graphs);
    for one in placed {
        let (launch, start, end) = (origin + one.launch, origin + one.start, origin + one.end);
        match one.doing {
            Doing::Step => {
                thread.range(format!("step {}", one.step), start, end);
                let returns = thread.events.calls.last().map_or(start, |call| call.end);
                thread.call("cudaStreamSynchronize_v3020", returns + 1_000, end - 500);
            }
            Doing::CopyIn | Doing::CopyOut => {
                let correlation = thread.call("cudaMemcpyAsync_v3020", launch, launch + 3_500);
                let (kind, bytes) =
                    if one.doing == Doing::CopyIn { (TO_DEVICE, BATCH_BYTES) } else { (TO_HOST, 4) };
                let (device, global_pid) = (process.device, thread.global_pid);
                let stream = COMPUTE_STREAM;
                thread.events.copies.push(Copied {
                    start,
                    end,
                    bytes,
                    kind,
                    device,
                    stream,
                    correlation,
                    global_pid,
                });
            }
            Doing::Compute(part) => {
                let kernels = kernels(training, part);
                compute(process, kernels, graph_of(part), by_graphs, (launch, start, end), &mut thread);
            }
            Doing::Collective(collective) => {
                let communicator = process.communicators[collective.who as usize];
                let (bytes, reduction) = (collective.bytes, Reduction::from_name("sum"));
                let (of, kernel) = match collective.function {
                    "ncclAllGather" => (Of::Sized { bytes }, "ncclDevKernel_AllGather_RING_LL"),
                    "ncclReduceScatter" => {
                        (Of::Reduced { bytes, reduction }, "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL")
                    }
                    _ if training.program == Program::Ddp => {
                        (Of::Reduced { bytes, reduction }, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
                    }
                    _ => (Of::Reduced { bytes, reduction }, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
                };
                let place = (process.device, stream(collective.who));
                if training.is_replayed(process.rank, one.step) {
                    let correlation = thread.call("cudaGraphLaunch_v10000", launch + 6_000, launch + 11_000);
                    let node = Node { graph: REPLAYED + stream(collective.who), number: 1 };
                    thread.kernel(kernel, (start, end), place, correlation, Some(node));
                    continue;
                }
                let payload = Some(Payload::new(communicator, of));
                thread.nccl(collective.function, (launch, launch + 12_000), payload);
                let correlation = thread.call("cudaLaunchKernelExC_v11060", launch + 6_000, launch + 11_000);
                thread.kernel(kernel, (start, end), place, correlation, None);
            }
        }
    }
    thread.events
}

/// Kernels one behind the other, each launched by a call of its own or all by one graph.
fn compute(
    process: &Process,
    kernels: &[(&'static str, f64)],
    graph: i64,
    by_graphs: bool,
    span: (i64, i64, i64),
    thread: &mut Thread,
) {
    let (launch, start, end) = span;
    let place = (process.device, COMPUTE_STREAM);
    let by_graph = by_graphs.then(|| thread.call("cudaGraphLaunch_v10000", launch, launch + 6_000));
    let (mut from, mut now) = (start, launch);
    for (number, (name, share)) in (1..).zip(kernels) {
        let (correlation, node) = match by_graph {
            Some(correlation) => (correlation, Some(Node { graph, number })),
            None => (thread.call("cudaLaunchKernel_v7000", now, now + 3_000), None),
        };
        let to =
            if number as usize == kernels.len() { end } else { from + ((end - start) as f64 * share) as i64 };
        thread.kernel(*name, (from, to - 800), place, correlation, node);
        (from, now) = (to, now + 5_000);
    }
}

fn joins(training: &Training, process: &Process, thread: &mut Thread, origin: i64) {
    let mut now = origin - 2_500_000_000;
    for who in Who::ALL {
        let (rank, ranks) = who.member(process.rank, training.ranks_per_node, training.nodes);
        if ranks > 1 {
            let of = Of::Rank { ranks, rank, device: process.device };
            let payload = Payload::new(process.communicators[who as usize], of);
            thread.nccl("ncclCommInitRankConfig", (now, now + 600_000_000), Some(payload));
        }
        now += 700_000_000;
    }
}
