//! The contents of NCCL logs, as tables in a fixed order. `tally` fills them.

use super::advice::Kind;
use super::call::Operation;
use super::watchdog::{Reached, TimedOut};
use metric::finding::Finding;
use serde::Serialize;

/// The result of all logs together.
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
    /// Where no line is NCCL's, what the lines are instead.
    pub looks_like: Option<&'static str>,
    pub processes: u64,
    pub hosts: Vec<String>,
    /// Lines of warnings of each host.
    pub warned: Vec<Counted>,
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
    /// Calls by the step of a training whose lines stand in the same stream.
    pub steps: Vec<OfStep>,
    pub gpus: Vec<OfGpu>,
    pub communicators: Vec<OfCommunicator>,
    pub communicators_beyond: u64,
    /// Groups of processes that communicators join, by how many processes each has; of one job there is one.
    pub worlds: Vec<u64>,
    pub rings: Vec<OfRing>,
    pub trees: Vec<OfTree>,
    pub channels: Vec<OfChannels>,
    pub nvls: Vec<OfNvls>,
    pub nics: Vec<OfNics>,
    pub chosen: Vec<OfChoiceOfHost>,
    pub net: Vec<OfNet>,
    pub timings: Vec<OfTimings>,
    pub bootstraps: Vec<Counted>,
    pub connections: Vec<OfConnection>,
    pub choices: Vec<OfChoice>,
    pub warnings: Vec<Warning>,
    pub timed_out: Vec<TimedOut>,
    /// How far ranks had come when they gave up.
    pub reached: Vec<Reached>,
    pub checks: Checks,
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
    /// What must leave the GPUs of the lines' ranks at least, over NVLink and network together. Of logs of all ranks it
    /// is what the calls move.
    pub wire_bytes: Option<u64>,
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
    /// Of its process; none where no line reports it.
    pub device: Option<u64>,
    pub operation: Operation,
    pub calls: u64,
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfCommunicator {
    /// In hexadecimal; logs up to 2.17 have none.
    pub id: Option<String>,
    pub nranks: u64,
    /// Ranks that the logs hold.
    pub ranks_seen: u64,
    pub ranks_complete: u64,
    pub hosts: Vec<String>,
    /// Collective calls of the rank that made the fewest.
    pub fewest_calls: u64,
    pub most_calls: u64,
}

/// Calls since the line of the step before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfStep {
    pub step: u64,
    /// Of the step's own line, which ends it.
    pub line: u64,
    pub operation: Operation,
    pub calls: u64,
    pub bytes: Option<u64>,
}

/// The ranks of a ring in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfRing {
    pub channel: u64,
    pub ranks: Vec<u64>,
    pub lines: u64,
}

/// A rank's place in a tree; `-1` is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfTree {
    pub nvls: bool,
    pub channel: u64,
    pub rank: i64,
    pub above: Vec<i64>,
    pub below: Vec<i64>,
    pub lines: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChannels {
    pub coll: u64,
    pub collnet: Option<u64>,
    pub nvls: Option<u64>,
    pub p2p: u64,
    pub per_peer: u64,
    pub lines: u64,
}

/// Lines of a host that say whether NVLink SHARP is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNvls {
    pub host: String,
    pub available: u64,
    pub not_available: u64,
}

/// Network cards that the processes of a host found: the fewest and the most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNics {
    pub host: String,
    pub by: String,
    pub least: u64,
    pub most: u64,
}

/// Which network or provider the processes of a host use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChoiceOfHost {
    pub host: String,
    /// `network` or `provider`.
    pub what: &'static str,
    pub name: String,
    pub lines: u64,
}

/// Network connections logged by a host: those with GPUDirect RDMA, and the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNet {
    pub host: String,
    pub gdrdma: u64,
    pub not_gdrdma: u64,
}

/// How long communicators took to begin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfTimings {
    pub function: Option<String>,
    pub nranks: u64,
    pub lines: u64,
    pub mean_s: f64,
    pub slowest_s: f64,
    pub slowest_rank: u64,
    pub slowest_host: String,
    /// Each the longest of any rank.
    pub longest_parts_s: Vec<(String, f64)>,
}

/// What was compared, and what came of it: a number is there only where something was compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checks {
    /// Communicators of which all ranks' calls are there and were compared to their end.
    pub compared: u64,
    /// Those that could not be: for ranks that are missing, torn lines, or their number.
    pub not_compared: u64,
    /// Of those compared, the ones whose ranks did not call the same, or not as much.
    pub mismatches: u64,
    /// Pairs of ranks whose logs are both whole.
    pub pairs: u64,
    pub unmatched: u64,
    /// Pairs of ranks that the network joins.
    pub net_pairs: u64,
    pub not_gdrdma: u64,
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
    /// What it means, and what to do.
    pub kind: Option<&'static Kind>,
    /// Of the first.
    pub host: Option<String>,
    pub line: u64,
    pub file: String,
    pub lines: u64,
}
