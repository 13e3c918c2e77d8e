//! The collective operations that nccl-tests measures, and how each turns bytes and time into bandwidth.
//! Ceilings that a fabric puts on these figures are the linter's business (`harness::hardware_limits`).

use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the operations of nccl-tests, by the name of its program without `_perf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// `all_reduce`: every rank gets the reduction of all ranks' data.
    AllReduce,
    /// `all_gather`: every rank gets all ranks' data.
    AllGather,
    /// `reduce_scatter`: every rank gets one part of the reduction.
    ReduceScatter,
    /// `alltoall`: every rank sends a part to every other.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// `broadcast`: all ranks get the root's data.
    Broadcast,
    /// `reduce`: the root gets the reduction of all ranks' data.
    Reduce,
    /// `gather`: the root gets all ranks' data.
    Gather,
    /// `scatter`: every rank gets one part of the root's data.
    Scatter,
    /// `sendrecv`: every rank sends to the next in a ring.
    #[serde(rename = "sendrecv")]
    SendRecv,
    /// `hypercube`: an all-gather by exchanges along a hypercube.
    Hypercube,
}

impl Op {
    /// Every operation once.
    pub const ALL: [Op; 10] = [
        Op::AllReduce,
        Op::AllGather,
        Op::ReduceScatter,
        Op::AllToAll,
        Op::Broadcast,
        Op::Reduce,
        Op::Gather,
        Op::Scatter,
        Op::SendRecv,
        Op::Hypercube,
    ];

    /// As in suites, baselines and metrics: `all_reduce`.
    pub fn name(self) -> &'static str {
        match self {
            Op::AllReduce => "all_reduce",
            Op::AllGather => "all_gather",
            Op::ReduceScatter => "reduce_scatter",
            Op::AllToAll => "alltoall",
            Op::Broadcast => "broadcast",
            Op::Reduce => "reduce",
            Op::Gather => "gather",
            Op::Scatter => "scatter",
            Op::SendRecv => "sendrecv",
            Op::Hypercube => "hypercube",
        }
    }

    /// The file name of its nccl-tests program: `all_reduce_perf`.
    pub fn program(self) -> String {
        format!("{}_perf", self.name())
    }

    /// The inverse of `name`; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// busbw / algbw for `ranks` ranks. Zero for one rank of an operation that then moves nothing between ranks.
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks);
        match self {
            Op::AllReduce => 2.0 * (n - 1.0) / n,
            Op::AllGather | Op::ReduceScatter | Op::AllToAll | Op::Gather | Op::Scatter => (n - 1.0) / n,
            Op::Broadcast | Op::Reduce | Op::SendRecv | Op::Hypercube => 1.0,
        }
    }

    /// algbw in GB/s (10^9 bytes) of `size_bytes` moved in `time_us`. Only hypercube counts less than the size shown.
    pub fn algbw_gb_s(self, size_bytes: u64, ranks: u32, time_us: f64) -> f64 {
        let bytes = match self {
            Op::Hypercube => size_bytes as f64 * (f64::from(ranks) - 1.0) / f64::from(ranks),
            _ => size_bytes as f64,
        };
        bytes / (time_us * 1e3)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
