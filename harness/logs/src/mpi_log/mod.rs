//! Logs of MPI messages, as the small logger writes them that people preload: `[12.5] MPI_Send: world_rank=0 ...
//! bytes=8 ...`. The same tables as of logs of NCCL; what other programs print is passed over.

mod line;
mod tally;
#[cfg(test)]
mod tests;

pub use line::Operation;

use super::stream::Pieces;
use super::text::{count, plain};
use line::Unread;
use metric::finding::Finding;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use tally::Tally;

/// The result of all logs. Bytes are those that a rank gives; of a receive those for which it has room.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MpiLog {
    /// All lines, those of other programs too.
    pub lines: u64,
    /// Lines of the logger.
    pub of_mpi: u64,
    /// Lines of the logger that were read.
    pub understood: u64,
    /// Lines of the logger that cannot be read; they count for nothing.
    pub garbled: u64,
    /// Calls that the logger is not known to write, by name, with the lines of each.
    pub unknown: BTreeMap<String, u64>,
    /// Its number of ranks; None where no collective was logged.
    pub largest_communicator: Option<u64>,
    /// One for each operation that was called.
    pub operations: Vec<OfOperation>,
    /// Each bucket holds its lower edge and not its upper one.
    pub histogram: Vec<Bucket>,
    /// One for each operation and size.
    pub calls: Vec<Calls>,
    /// One for each rank and operation.
    pub ranks: Vec<OfRank>,
    /// Such as `mpi-ranks-missing` and `mpi-unpaired`.
    pub findings: Vec<Finding>,
}

/// All calls of one operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfOperation {
    /// Called at least once.
    pub operation: Operation,
    /// Of all ranks: each rank logs its own.
    pub calls: u64,
    /// Calls of no byte, which are among the calls.
    pub empty: u64,
    /// Of the smallest call.
    pub min_bytes: u64,
    /// Of one call.
    pub mean_bytes: f64,
    /// Of the largest call.
    pub max_bytes: u64,
    /// Nothing where it is beyond 64 bits.
    pub total_bytes: Option<u64>,
    /// For which there is room, where the logger prints both.
    pub receive_bytes: Option<u64>,
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

/// Calls of one operation and one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Of all these calls.
    pub operation: Operation,
    /// Of one call.
    pub bytes: u64,
    /// How many there are, of all ranks.
    pub calls: u64,
}

/// Calls of one operation by one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfRank {
    /// The rank in `MPI_COMM_WORLD` (`world_rank`).
    pub rank: u64,
    /// Of all these calls.
    pub operation: Operation,
    /// How many calls this rank made.
    pub calls: u64,
    /// The sum of these calls; None beyond 64 bits.
    pub bytes: Option<u64>,
}

/// At most this many lines that cannot be read are listed one by one.
const MOST_LISTED: u64 = 3;
const MOST_UNKNOWN: usize = 64;

/// Takes one stream after another: logs of the ranks of one job.
#[derive(Debug)]
pub struct Reader {
    log: MpiLog,
    tally: Tally,
}

impl Reader {
    /// Edges in any order; zero and copies are none.
    pub fn new(edges: &[u64]) -> Reader {
        let mut edges: Vec<u64> = edges.iter().copied().filter(|edge| *edge > 0).collect();
        edges.sort_unstable();
        edges.dedup();
        Reader { log: MpiLog::default(), tally: Tally::new(edges) }
    }

    /// Reads to the end. Where the stream breaks off, what was read before counts.
    pub fn read(&mut self, from: impl BufRead, file: &str) -> io::Result<()> {
        let mut pieces = Pieces::new(from);
        let read = loop {
            let piece = match pieces.next_piece() {
                Ok(Some(piece)) => piece,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            let plain = plain(&piece.text, line::begins);
            let Some(parsed) = line::parse(&plain.text) else { continue };
            self.log.of_mpi += 1;
            match parsed {
                // A pointer may go on where the file ends, and nothing depends on it.
                Ok(line) => {
                    self.log.understood += 1;
                    self.tally.line(&line, piece.line);
                }
                Err(Unread::Unknown(name)) => {
                    if self.log.unknown.len() < MOST_UNKNOWN || self.log.unknown.contains_key(&name) {
                        *self.log.unknown.entry(name).or_default() += 1;
                    }
                }
                Err(Unread::Garbled(what)) => {
                    self.log.garbled += 1;
                    if self.log.garbled <= MOST_LISTED {
                        let ends = if piece.ended { "" } else { "; the file ends mid-line" };
                        let why = format!("skipped a call line: cannot read `{what}`{ends}");
                        let finding = Finding::new("mpi-garbled", why).file(file).line(piece.line);
                        self.log.findings.push(finding);
                    }
                }
            }
        };
        self.log.lines += pieces.lines();
        read
    }

    /// The result of all streams.
    pub fn finish(self) -> MpiLog {
        let Reader { mut log, tally } = self;
        if log.garbled > MOST_LISTED {
            let more = count(log.garbled - MOST_LISTED, "more call line");
            let why = format!("{more} could not be read");
            log.findings.push(Finding::new("mpi-garbled", why));
        }
        if let Some((name, lines)) = log.unknown.iter().next() {
            let lines = count(*lines, "line");
            let why = format!("skipped calls of unknown operations, for example `MPI_{name}` in {lines}");
            log.findings.push(Finding::new("mpi-unknown", why));
        }
        tally.finish(&mut log);
        log
    }
}
