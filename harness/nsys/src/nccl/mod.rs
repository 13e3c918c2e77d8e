//! Calls of NCCL from the ranges of its domain, each with its payload and the kernels that it launched. It looks at
//! one report; recipes combine those of several ranks.

mod communicators;
mod events;
mod fork;
mod function;
mod groups;
mod join;
pub mod payload;
mod read;
pub mod sequence;
#[cfg(test)]
mod tests;

pub use communicators::Communicator;
pub use events::is_of_nccl;
pub use function::{Function, Reduction};
pub use payload::{Payload, Refusal};

use crate::tables::{
    DIAGNOSTIC_EVENT, KERNEL, NVTX_EVENTS, NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS,
    NVTX_PAYLOAD_SCHEMA_ENTRIES, NVTX_PAYLOAD_SCHEMAS, RUNTIME, STRING_IDS, TableSpec,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The tables that `NcclCalls::read` looks at.
pub const TABLES: &[&TableSpec] = match TABLES_AND_DIAGNOSTICS {
    [of_calls @ .., _] => of_calls,
    [] => &[],
};

/// The same, and last the table in which nsys says what it lost.
pub const TABLES_AND_DIAGNOSTICS: &[&TableSpec] = &[
    &NVTX_EVENTS,
    &STRING_IDS,
    &NVTX_PAYLOAD_SCHEMAS,
    &NVTX_PAYLOAD_SCHEMA_ENTRIES,
    &NVTX_PAYLOAD_ENUMS,
    &NVTX_PAYLOAD_ENUM_ENTRIES,
    &RUNTIME,
    &KERNEL,
    &DIAGNOSTIC_EVENT,
];

/// Of one report. What was left out, and what could not be read, is said in notes of the trace.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclCalls {
    /// The earlier first, of those that begin together by thread.
    pub calls: Vec<Call>,
    /// Those of one call or one group stand together, the earlier first; behind them kernels of NCCL that no call of the
    /// report launched.
    pub kernels: Vec<Kernel>,
    /// In the order in which they were made.
    pub communicators: Vec<Communicator>,
    /// In the order in which they begin.
    pub groups: Vec<Group>,
    /// Of kernels.
    names: Vec<String>,
}

/// One call on one thread. `None` is what its payload does not record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// By the name of the NVTX range.
    pub function: Function,
    /// Start of the range, in nanoseconds of the session.
    pub start: i64,
    /// End of the range, in nanoseconds of the session.
    pub end: i64,
    /// The calling thread; `pid_of` and `tid_of` split it.
    pub global_tid: i64,
    /// As the payload counts them: see `total_bytes`.
    pub bytes: Option<u64>,
    /// Id of its communicator; not recorded before NCCL 2.25.
    pub communicator: Option<u64>,
    /// Of its communicator.
    pub ranks: Option<u32>,
    /// Within its communicator.
    pub rank: Option<u32>,
    /// Root rank, for functions that have one.
    pub root: Option<i32>,
    /// The other rank of a send or receive.
    pub peer: Option<i32>,
    /// For functions that reduce.
    pub reduction: Option<Reduction>,
    /// Which of `groups`.
    pub group: Option<u32>,
    /// Which of `kernels`; all calls of one group share what the group launched.
    pub kernels: Range<u32>,
}

/// Calls between an outermost `ncclGroupStart` and its `ncclGroupEnd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// From the begin of the one to the end of the other; of one that did not end, to the end of what is in it.
    pub start: i64,
    /// End of `ncclGroupEnd`, or of the last range of a group that did not end; nanoseconds.
    pub end: i64,
    /// The thread that made the calls.
    pub global_tid: i64,
    /// How many calls of a `Function` are in it; at least 1.
    pub calls: u32,
    /// Which of `NcclCalls::kernels` it launched.
    pub kernels: Range<u32>,
}

/// A kernel that was launched within a range of NCCL, or whose name begins with `nccl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Start on the GPU, in nanoseconds of the session.
    pub start: i64,
    /// End on the GPU, in nanoseconds of the session.
    pub end: i64,
    /// As `deviceId` in the table of kernels.
    pub device: i64,
    /// As `streamId` in the table of kernels.
    pub stream: i64,
    /// The call of CUDA that launched it, where that is in the report.
    pub launch_start: Option<i64>,
    /// End of that CUDA call; nanoseconds.
    pub launch_end: Option<i64>,
    /// The process it ran for.
    pub process: i64,
    name: u32,
}

impl Call {
    /// How long it took on its thread, which is not how long the transfer took.
    pub fn ns(&self) -> u64 {
        self.end.wrapping_sub(self.start) as u64
    }

    /// The whole message, what nccl-tests calls the size.
    pub fn total_bytes(&self) -> Option<u64> {
        self.function.total_bytes(self.bytes?, self.ranks)
    }
}

impl Kernel {
    /// One of which only the length is known.
    pub fn from_length(ns: i64) -> Kernel {
        Kernel {
            start: 0,
            end: ns,
            device: 0,
            stream: 0,
            launch_start: None,
            launch_end: None,
            process: 0,
            name: 0,
        }
    }

    /// Kernels of one report with one number have one name.
    pub fn name_number(&self) -> u32 {
        self.name
    }
}

impl NcclCalls {
    /// Calls of another source than a report, with their kernels, of which no more than the length may be known.
    pub fn from_records(calls: Vec<Call>, kernels: Vec<Kernel>) -> NcclCalls {
        NcclCalls { calls, kernels, ..NcclCalls::default() }
    }

    /// What the call, or the group it is in, launched; may be empty.
    pub fn kernels_of(&self, call: &Call) -> &[Kernel] {
        self.kernels.get(call.kernels.start as usize..call.kernels.end as usize).unwrap_or_default()
    }

    /// Kernels of NCCL that no call of the report launched: those of graphs, and those called for before the capture.
    pub fn kernels_of_none(&self) -> &[Kernel] {
        let owned = self.calls.iter().map(|call| call.kernels.end);
        let owned = owned.chain(self.groups.iter().map(|group| group.kernels.end)).max().unwrap_or(0);
        self.kernels.get(owned as usize..).unwrap_or_default()
    }

    /// Short name of the kernel function.
    pub fn name(&self, kernel: &Kernel) -> &str {
        self.names.get(kernel.name as usize).map(String::as_str).unwrap_or_default()
    }

    /// Of kernels, each at its number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether what it launched was launched for it alone.
    pub fn is_alone(&self, call: &Call) -> bool {
        let group = call.group.and_then(|group| self.groups.get(group as usize));
        group.is_none_or(|group| group.calls == 1 || group.kernels != call.kernels)
    }
}
