//! The contents of NCCL logs, as tables in a fixed order. `tally` fills them.

use super::advice::Kind;
use super::call::Operation;
use crate::watchdog::{Reached, TimedOut};
use metric::finding::Finding;
use serde::Serialize;

/// The result of all logs together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NcclLog {
    /// All lines, those of other programs too.
    pub lines: u64,
    /// Lines of NCCL, those of other programs left out.
    pub of_nccl: u64,
    /// Lines of NCCL whose form is known, warnings among them.
    pub understood: u64,
    /// Lines that NCCL cut for their length.
    pub cut: u64,
    /// Lines of calls that count for nothing.
    pub garbled_calls: u64,
    /// Lines of calls of operations that are not known; they count for nothing.
    pub unknown_calls: u64,
    /// Their names as logged, with the lines of each.
    pub unknown_operations: Vec<Counted>,
    /// Of the lines that are not understood, how they look, digits as `#`.
    pub unknown: Vec<Counted>,
    /// Where no line is NCCL's, what the lines are instead.
    pub looks_like: Option<&'static str>,
    /// Distinct pairs of host and process id, without torn host names.
    pub processes: u64,
    /// Sorted, without torn host names.
    pub hosts: Vec<String>,
    /// Lines of warnings of each host.
    pub warned: Vec<Counted>,
    /// Of NCCL and CUDA, such as `2.26.2+cuda12.8`.
    pub versions: Vec<Counted>,
    /// CUDA driver versions as NCCL prints them, such as `12080`.
    pub drivers: Vec<Counted>,
    /// From `Using network`, such as `AWS Libfabric`.
    pub networks: Vec<Counted>,
    /// Of libfabric, such as `efa, fabric efa, 32 NICs`.
    pub providers: Vec<Counted>,
    /// Versions of the plugin and of libfabric, such as `aws-ofi-nccl 1.14.0`.
    pub plugins: Vec<Counted>,
    /// `NAME=VALUE`, from lines `set by environment to`.
    pub variables: Vec<Counted>,
    /// One for each operation that was called.
    pub operations: Vec<OfOperation>,
    /// Each bucket holds its lower edge and not its upper one.
    pub histogram: Vec<Bucket>,
    /// One for each operation, count and data type.
    pub calls: Vec<Calls>,
    /// Calls by the step of a training whose lines stand in the same stream.
    pub steps: Vec<OfStep>,
    /// One for each process, device and operation.
    pub gpus: Vec<OfGpu>,
    /// In the order in which they were first logged; at most 4096.
    pub communicators: Vec<OfCommunicator>,
    /// How many more there are, counted by their rank 0.
    pub communicators_beyond: u64,
    /// Groups of processes that communicators join, by how many processes each has; of one job there is one.
    pub worlds: Vec<u64>,
    /// One for each channel and order of ranks.
    pub rings: Vec<OfRing>,
    /// One for each rank and its place in a tree.
    pub trees: Vec<OfTree>,
    /// One for each combination of numbers.
    pub channels: Vec<OfChannels>,
    /// One for each host.
    pub nvls: Vec<OfNvls>,
    /// One for each host and what found the cards.
    pub nics: Vec<OfNics>,
    /// One for each host, kind and name.
    pub chosen: Vec<OfChoiceOfHost>,
    /// One for each host with connections over the network.
    pub net: Vec<OfNet>,
    /// One for each function and number of ranks.
    pub timings: Vec<OfTimings>,
    /// Interfaces by which ranks find each other, such as `eth0`.
    pub bootstraps: Vec<Counted>,
    /// One for each sender, receiver and transport, with GPUDirect RDMA or without.
    pub connections: Vec<OfConnection>,
    /// One for each operation and what carries it out.
    pub choices: Vec<OfChoice>,
    /// One for each text, digits aside, in the order of their first lines.
    pub warnings: Vec<Warning>,
    /// Time-outs that PyTorch's watchdog reports, at most 4096.
    pub timed_out: Vec<TimedOut>,
    /// How far ranks had come when they gave up.
    pub reached: Vec<Reached>,
    /// Whether ranks agree, and how they are connected.
    pub checks: Checks,
    /// Those of single lines first, then those of checks over all lines.
    pub findings: Vec<Finding>,
}

/// A text and how many lines say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// As logged, at most 300 characters.
    pub text: String,
    /// How many lines have this text.
    pub lines: u64,
}

/// Bytes are those that the lines name: of a rank, or of one peer of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfOperation {
    /// Called at least once.
    pub operation: Operation,
    /// Lines of calls: each rank logs its own.
    pub calls: u64,
    /// Calls of no element, which are among the calls.
    pub empty: u64,
    /// Calls whose bytes are not known, which are among the calls and in no other number.
    pub unsized_calls: u64,
    /// Of the smallest call; None where no call has a known size.
    pub min_bytes: Option<u64>,
    /// Of the calls of known size; None where there is none.
    pub mean_bytes: Option<f64>,
    /// Of the largest call; None where no call has a known size.
    pub max_bytes: Option<u64>,
    /// Nothing where it is beyond 64 bits.
    pub total_bytes: Option<u64>,
    /// What all peers of a line's rank make of it: bytes times ranks where a line names one peer's.
    pub message_bytes: Option<u64>,
    /// What must leave the GPUs of the lines' ranks at least, over NVLink and network together. Of logs of all ranks it
    /// is what the calls move.
    pub wire_bytes: Option<u64>,
}

/// Calls of one operation whose bytes lie in one range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Of all these calls.
    pub operation: Operation,
    /// The lower edge; 0 for the first.
    pub from_bytes: u64,
    /// Nothing for the last.
    pub below_bytes: Option<u64>,
    /// Never 0: empty buckets are left out.
    pub calls: u64,
    /// The sum of these calls; None beyond 64 bits.
    pub bytes: Option<u64>,
}

/// Calls of one operation with one count and data type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Of all these calls.
    pub operation: Operation,
    /// Elements, as logged.
    pub count: u64,
    /// NCCL's number of the type, which `type_name` names.
    pub datatype: u64,
    /// Of one call.
    pub bytes: Option<u64>,
    /// How many there are, of all ranks.
    pub calls: u64,
}

/// Calls of one operation by one GPU of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfGpu {
    /// Host name at the front of its lines.
    pub host: String,
    /// Process id on the host.
    pub pid: u64,
    /// Of its process; none where no line reports it.
    pub device: Option<u64>,
    /// Of all these calls.
    pub operation: Operation,
    /// How many calls this GPU made.
    pub calls: u64,
    /// The sum of calls of known size; None beyond 64 bits.
    pub bytes: Option<u64>,
}

/// One communicator, as its ranks log it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfCommunicator {
    /// In hexadecimal; logs up to 2.17 have none.
    pub id: Option<String>,
    /// Ranks that it has by its own lines.
    pub nranks: u64,
    /// Ranks that the logs hold.
    pub ranks_seen: u64,
    /// Ranks that logged `Init COMPLETE`.
    pub ranks_complete: u64,
    /// Of the ranks that the logs hold, sorted.
    pub hosts: Vec<String>,
    /// Collective calls of the rank that made the fewest.
    pub fewest_calls: u64,
    /// Collective calls of the rank that made the most.
    pub most_calls: u64,
}

/// Calls since the line of the step before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfStep {
    /// Its number in the log of the training.
    pub step: u64,
    /// Of the step's own line, which ends it.
    pub line: u64,
    /// Of all these calls.
    pub operation: Operation,
    /// Calls of all ranks whose lines stand in the stream.
    pub calls: u64,
    /// The sum of calls of known size; None beyond 64 bits.
    pub bytes: Option<u64>,
}

/// The ranks of a ring in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfRing {
    /// NCCL's number of the channel.
    pub channel: u64,
    /// At most the first 4096.
    pub ranks: Vec<u64>,
    /// Lines with this order: each rank may log it.
    pub lines: u64,
}

/// A rank's place in a tree; `-1` is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfTree {
    /// Whether it is one of NVLS, from `NVLS Trees`.
    pub nvls: bool,
    /// NCCL's number of the channel.
    pub channel: u64,
    /// The rank whose place it is.
    pub rank: i64,
    /// Its parents, to which it passes data.
    pub above: Vec<i64>,
    /// Its children, from which it gathers data.
    pub below: Vec<i64>,
    /// How many lines log this place.
    pub lines: u64,
}

/// Numbers of channels, from `24 coll channels, 0 collnet channels, ...`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChannels {
    /// For collectives.
    pub coll: u64,
    /// For CollNet; None where the line has no such number.
    pub collnet: Option<u64>,
    /// For NVLS; None where the line has no such number.
    pub nvls: Option<u64>,
    /// For sends and receives.
    pub p2p: u64,
    /// For sends and receives with one peer.
    pub per_peer: u64,
    /// How many lines log these numbers.
    pub lines: u64,
}

/// Lines of a host that say whether NVLink SHARP is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNvls {
    /// Host name at the front of its lines.
    pub host: String,
    /// Lines `NVLS multicast support is available on dev ...`.
    pub available: u64,
    /// Lines `NVLS multicast support is not available on dev ...`.
    pub not_available: u64,
}

/// Network cards that the processes of a host found: the fewest and the most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNics {
    /// Host name at the front of their lines.
    pub host: String,
    /// A provider such as `efa`, or `NET/IB` or `NET/Socket`.
    pub by: String,
    /// Of the process that found the fewest.
    pub least: u64,
    /// Of the process that found the most.
    pub most: u64,
}

/// Which network or provider the processes of a host use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChoiceOfHost {
    /// Host name at the front of their lines.
    pub host: String,
    /// `network` or `provider`.
    pub what: &'static str,
    /// Such as `AWS Libfabric` or `efa`, at most 100 characters.
    pub name: String,
    /// How many lines name it.
    pub lines: u64,
}

/// Network connections logged by a host: those with GPUDirect RDMA, and the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfNet {
    /// Host name at the front of their lines.
    pub host: String,
    /// Lines of connections with GPUDirect RDMA.
    pub gdrdma: u64,
    /// Lines of connections through host memory.
    pub not_gdrdma: u64,
}

/// How long communicators took to begin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfTimings {
    /// The call that began them; None where lines do not name it.
    pub function: Option<String>,
    /// Ranks of each of these communicators.
    pub nranks: u64,
    /// One for each rank and communicator.
    pub lines: u64,
    /// Mean over the lines, in seconds.
    pub mean_s: f64,
    /// The longest of all lines, in seconds.
    pub slowest_s: f64,
    /// The rank that took longest.
    pub slowest_rank: u64,
    /// The host of that rank.
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
    /// Those of which one has no log, or torn lines that may hide a difference.
    #[serde(skip)]
    pub pairs_not_compared: u64,
    /// Of these pairs, those that send and receive unequally.
    pub unmatched: u64,
    /// Pairs of ranks that the network joins.
    pub net_pairs: u64,
    /// Of these pairs, those that go through host memory.
    pub not_gdrdma: u64,
}

/// What connects two ranks, by lines `Channel 00/0 : 1[0] -> 2[0] via ...`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfConnection {
    /// The rank that sends, before the arrow.
    pub from: u64,
    /// The rank that receives, behind the arrow.
    pub to: u64,
    /// Kind and name, such as `NET/AWS Libfabric` or `P2P/CUMEM`.
    pub transport: String,
    /// Whether the NIC accesses GPU memory itself (GPUDirect RDMA).
    pub gdrdma: bool,
    /// One for each channel and end that is logged.
    pub lines: u64,
}

/// By what calls of one operation are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfChoice {
    /// None up to NCCL 2.22, which does not log it.
    pub operation: Option<String>,
    /// Algorithm and protocol, such as `RING SIMPLE`, or a kernel.
    pub by: String,
    /// How many lines log this choice.
    pub lines: u64,
    /// Of the smallest call with this choice.
    pub min_bytes: u64,
    /// Of the largest call with this choice.
    pub max_bytes: u64,
}

/// Warnings of NCCL whose texts differ only in digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Of the first, at most 400 characters.
    pub text: String,
    /// What it means, and what to do.
    pub kind: Option<&'static Kind>,
    /// Of the first.
    pub host: Option<String>,
    /// Of the first, one-based.
    pub line: u64,
    /// Of the first, as passed to the reader.
    pub file: String,
    /// How many lines have such a text.
    pub lines: u64,
}
