//! What a log of NCCL tells, as tables in a stated order. How they come about is `tally`'s business.

use super::call::Operation;
use super::watchdog::TimedOut;
use crate::finding::Finding;
use serde::Serialize;

/// What logs tell together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NcclLog {
    pub lines: u64,
    /// Lines of NCCL, those of other programs left out.
    pub of_nccl: u64,
    pub understood: u64,
    /// Lines that NCCL cut for their length.
    pub cut: u64,
    /// Lines of calls that count for nothing.
    pub garbled_calls: u64,
    /// Lines of calls of operations that are not known; they count for nothing.
    pub unknown_calls: u64,
    pub unknown_operations: Vec<Counted>,
    /// Of the lines that are not understood, how they look, digits as `#`.
    pub unknown: Vec<Counted>,
    pub processes: u64,
    pub hosts: Vec<String>,
    pub versions: Vec<Counted>,
    pub drivers: Vec<Counted>,
    pub networks: Vec<Counted>,
    pub providers: Vec<Counted>,
    pub plugins: Vec<Counted>,
    pub variables: Vec<Counted>,
    pub operations: Vec<OfOperation>,
    /// Each bucket holds its lower edge and not its upper one.
    pub histogram: Vec<Bucket>,
    pub calls: Vec<Calls>,
    pub gpus: Vec<OfGpu>,
    pub communicators: Vec<OfCommunicator>,
    pub communicators_beyond: u64,
    pub connections: Vec<OfConnection>,
    pub choices: Vec<OfChoice>,
    pub warnings: Vec<Warning>,
    pub timed_out: Vec<TimedOut>,
    pub findings: Vec<Finding>,
}

/// A text and how many lines say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub text: String,
    pub lines: u64,
}

/// Bytes are those that the lines name: of a rank, or of one peer of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfOperation {
    pub operation: Operation,
    pub calls: u64,
    /// Calls of no element, which are among the calls.
    pub empty: u64,
    /// Calls whose bytes are not known, which are among the calls and in no other number.
    pub unsized_calls: u64,
    pub min_bytes: Option<u64>,
    pub mean_bytes: Option<f64>,
    pub max_bytes: Option<u64>,
    /// Nothing where it is beyond 64 bits.
    pub total_bytes: Option<u64>,
    /// What all peers of a line's rank make of it: bytes times ranks where a line names one peer's.
    pub message_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bucket {
    pub operation: Operation,
    pub from_bytes: u64,
    /// Nothing for the last.
    pub below_bytes: Option<u64>,
    pub calls: u64,
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Calls {
    pub operation: Operation,
    pub count: u64,
    pub datatype: u64,
    /// Of one call.
    pub bytes: Option<u64>,
    pub calls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfGpu {
    pub host: String,
    pub pid: u64,
    /// Of its process; nothing where no line tells.
    pub device: Option<u64>,
    pub operation: Operation,
    pub calls: u64,
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfCommunicator {
    /// In hexadecimal; logs up to 2.17 tell none.
    pub id: Option<String>,
    pub nranks: u64,
    /// Ranks that the logs hold.
    pub ranks_seen: u64,
    pub ranks_complete: u64,
    pub hosts: Vec<String>,
    /// Collective calls, of the rank that made the fewest and of the one that made the most.
    pub fewest_calls: u64,
    pub most_calls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfConnection {
    pub from: u64,
    pub to: u64,
    pub transport: String,
    pub gdrdma: bool,
    pub lines: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChoice {
    pub operation: Option<String>,
    pub by: String,
    pub lines: u64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub text: String,
    /// Of the first.
    pub host: Option<String>,
    pub line: u64,
    pub file: String,
    pub lines: u64,
}
