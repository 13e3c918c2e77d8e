//! Which functions of NCCL a rank of nccl-tests calls for one operation, with which sizes and peers, in which groups,
//! and the kernel that comes of each group. `nccl_tests` decides when they are called.

use super::payload::{Of, Payload, Reduction};
use crate::options::Options;
use metric::op::Op;

/// What becomes one kernel on the rank's GPU.
pub(super) struct Part {
    /// Of the operation's time.
    pub fraction: f64,
    pub is_group: bool,
    pub calls: Vec<(&'static str, Payload)>,
}

/// A rank within its communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub communicator: u64,
    pub rank: u32,
    pub ranks: u32,
}

/// The parts of one operation, one after the other, as this rank makes them.
pub(super) fn parts(options: &Options, count: u64, me: Member) -> Vec<Part> {
    let bytes = count * options.element_bytes();
    let reduction = Reduction::from_name(&options.redop);
    let single = |function, of| {
        let calls = vec![(function, Payload::new(me.communicator, of))];
        vec![Part { fraction: 1.0, is_group: false, calls }]
    };
    let send = |peer, bytes| ("ncclSend", Payload::new(me.communicator, Of::Peer { bytes, peer }));
    let receive = |peer, bytes| ("ncclRecv", Payload::new(me.communicator, Of::Peer { bytes, peer }));
    let group = |fraction, calls| Part { fraction, is_group: true, calls };
    let all = 0..me.ranks;
    let is_root = me.rank == ROOT;
    match options.op {
        Op::AllReduce => single("ncclAllReduce", Of::Reduced { bytes, reduction }),
        Op::AllGather => single("ncclAllGather", Of::Sized { bytes }),
        Op::ReduceScatter => single("ncclReduceScatter", Of::Reduced { bytes, reduction }),
        Op::Broadcast => single("ncclBroadcast", Of::Rooted { bytes, root: ROOT }),
        Op::Reduce => single("ncclReduce", Of::ReducedRooted { bytes, root: ROOT, reduction }),
        Op::AllToAll => {
            vec![group(1.0, all.flat_map(|peer| [send(peer, bytes), receive(peer, bytes)]).collect())]
        }
        Op::Gather => {
            let mut calls = vec![send(ROOT, bytes)];
            calls.extend(all.filter(|_| is_root).map(|peer| receive(peer, bytes)));
            vec![group(1.0, calls)]
        }
        Op::Scatter => {
            let mut calls: Vec<_> = all.filter(|_| is_root).map(|peer| send(peer, bytes)).collect();
            calls.push(receive(ROOT, bytes));
            vec![group(1.0, calls)]
        }
        Op::SendRecv => {
            let (next, last) = ((me.rank + 1) % me.ranks, (me.rank + me.ranks - 1) % me.ranks);
            vec![group(1.0, vec![send(next, bytes), receive(last, bytes)])]
        }
        Op::Hypercube => {
            // Each step passes on all that the steps before it brought.
            let steps = std::iter::successors(Some(1u32), |step| step.checked_mul(2));
            let steps: Vec<u32> = steps.take_while(|step| *step < me.ranks).collect();
            let sum: u32 = steps.iter().sum();
            let of_step = |step: &u32| {
                let (peer, bytes) = (me.rank ^ step, bytes * u64::from(*step));
                group(f64::from(*step) / f64::from(sum), vec![send(peer, bytes), receive(peer, bytes)])
            };
            steps.iter().map(of_step).collect()
        }
    }
}

/// What nccl-tests take by default.
const ROOT: u32 = 0;

/// NCCL compiles few kernels and names them for their first member: the name has neither algorithm nor protocol.
pub(super) fn kernel(op: Op) -> &'static str {
    match op {
        Op::AllReduce => "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        Op::AllGather => "ncclDevKernel_AllGather_RING_LL",
        Op::ReduceScatter => "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
        Op::Broadcast => "ncclDevKernel_Broadcast_RING_LL",
        Op::Reduce => "ncclDevKernel_Reduce_Sum_f32_RING_LL",
        Op::AllToAll | Op::Gather | Op::Scatter | Op::SendRecv | Op::Hypercube => "ncclDevKernel_SendRecv",
    }
}
