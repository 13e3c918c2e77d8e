//! Reports of NCCL's RAS, as `ncclras` or port 28028 gives them: text of 2.24 and later, JSON of 2.28.7 and later, and
//! the events of `MONITOR`. What one report says of a communicator is held in one form, whichever of them it came in.
//!
//! RAS counts operations that the host launched. Counts differ by one or two in a healthy job, and are equal where all
//! ranks hang within the last one: a single report proves neither.

mod findings;
mod json;
mod lines;
mod mend;
#[cfg(test)]
mod tests;
mod text;

use metric::finding::Finding;
use serde::Serialize;

/// Of one file, which has to be held whole.
pub const MOST_BYTES: usize = 64 << 20;
/// Beyond this a number of ranks is of memory that NCCL had not set.
const MOST_RANKS: u64 = 1 << 20;

/// The result of all files.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RasLog {
    /// In the order of the files.
    pub reports: Vec<Report>,
    /// Of `MONITOR`.
    pub events: Vec<Event>,
    /// Such as `ras-rank-missing` and `ras-rank-behind`.
    pub findings: Vec<Finding>,
}

/// What one `STATUS` gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// As passed to `Reader::read`.
    pub file: String,
    /// `json`, else text.
    pub is_json: bool,
    /// Such as `2.28.9`.
    pub nccl_version: Option<String>,
    /// Local time of the node, without a zone; texts have none.
    pub time: Option<String>,
    /// How long RAS collected.
    pub collection_s: Option<f64>,
    /// Peers that did not answer while it did.
    pub timeouts: u64,
    /// Whether the report has its last part.
    pub has_end: bool,
    /// Of the whole job, where the report counts them.
    pub processes: Option<u64>,
    /// Processes that did not answer.
    pub silent: Processes,
    /// Processes that were given up: 60 s without contact.
    pub dead: Processes,
    /// How many there are, those without a fault too.
    pub communicators_count: u64,
    /// JSON lists all, a text those with a fault.
    pub communicators: Vec<Communicator>,
    /// Errors of groups in the table of a text, such as `INCOMPLETE`, which no communicator below it repeats.
    pub unexplained: Vec<String>,
}

/// Processes of the job, of which a text lists only a few.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Processes {
    /// All of them.
    pub count: u64,
    /// Those that are named.
    pub listed: Vec<Owner>,
}

/// Which process a rank belongs to, as far as RAS knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Owner {
    /// An address of the bootstrap network, no host name.
    pub node: Option<String>,
    /// On that node.
    pub pid: Option<u64>,
    /// Such as `5` or `3 (NVML 5)`.
    pub gpu: Option<String>,
}

/// A rank and its process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RankOwner {
    /// In the communicator.
    pub rank: u64,
    /// Nothing is known of it where RAS lost the process.
    #[serde(flatten)]
    pub owner: Owner,
}

/// A communicator of a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Communicator {
    /// `0x` and hex without leading zeros, as in NCCL's log and Inspector.
    pub hash: String,
    /// With the hash it is unique; JSON only.
    pub secondary_hash: Option<String>,
    /// Number of ranks.
    pub size: Option<u64>,
    /// Ranks whose data is there.
    pub ranks: Option<u64>,
    /// Ranks without data, listed or not.
    pub missing_count: u64,
    /// Ranks without data.
    pub missing: Vec<MissingRank>,
    /// Of each operation that ranks launched differently often.
    pub differing: Vec<OperationCounts>,
    /// Errors of ranks.
    pub errors: Vec<RankErrors>,
    /// Such as `RUNNING` and `ABORT`, where ranks differ.
    pub statuses: Vec<StatusOfRanks>,
}

/// A rank of which a report has no data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingRank {
    /// Which it is.
    #[serde(flatten)]
    pub rank: RankOwner,
    /// Why its data is missing.
    pub why: Absence,
}

/// Why a report has no data of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// Its process did not answer.
    Unresponsive,
    /// Its process was given up.
    Dead,
    /// Its process answered, and is no member: normal at the start and the end.
    NoMember,
}

/// How many operations of one type the ranks launched, where they differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OperationCounts {
    /// Such as `AllReduce`; texts of 2.24 and 2.25 do not name it.
    pub operation: Option<String>,
    /// By the number launched, ascending.
    pub launched: Vec<RanksAtCount>,
}

/// Ranks that launched equally many operations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RanksAtCount {
    /// Operations launched by each.
    pub launched: u64,
    /// How many ranks.
    pub ranks: u64,
    /// A text lists small sets only.
    pub listed: Vec<RankOwner>,
}

/// Ranks with the same error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RankErrors {
    /// `initialization` or `asynchronous`.
    pub phase: String,
    /// As RAS names or numbers it.
    pub error: String,
    /// How many ranks.
    pub ranks: u64,
    /// A text lists small sets only.
    pub listed: Vec<RankOwner>,
}

/// Ranks with the same status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusOfRanks {
    /// Such as `ABORT`.
    pub status: String,
    /// How many ranks.
    pub ranks: u64,
    /// A text lists small sets only.
    pub listed: Vec<RankOwner>,
}

/// An event of `MONITOR`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Local time of the node, without a zone.
    pub time: Option<String>,
    /// Such as `PEER_DEAD`.
    pub event: String,
    /// Whom it concerns.
    pub peer: Owner,
    /// What RAS adds.
    pub details: Option<String>,
}

/// Why a file is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotUnderstood {
    /// For people.
    pub reason: String,
}

/// The addresses that a node put before its reports, a line each, and the reports.
pub fn addresses(text: &str) -> (Vec<&str>, &str) {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(line) = rest.strip_prefix("address ") {
        let (address, behind) = line.split_once('\n').unwrap_or((line, ""));
        all.push(address.trim_end());
        rest = behind;
    }
    (all, rest)
}

/// Takes one file after another: reports of one job, in the order in which they were made.
#[derive(Debug, Default)]
pub struct Reader {
    log: RasLog,
}

impl Reader {
    /// Reads a file, which may hold several reports and events.
    pub fn read(&mut self, bytes: &[u8], file: &str) -> Result<(), NotUnderstood> {
        if bytes.len() > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(NotUnderstood { reason: format!("larger than the limit of {most} MiB") });
        }
        let text = String::from_utf8_lossy(bytes);
        let (_, text) = addresses(&text);
        let found = match json::begin(text) {
            Some(json) => json::read(json, file)?,
            None => {
                let text = lines::unwrapped(text);
                json::begin(&text)
                    .map_or_else(|| Ok(text::read(&text, file)), |json| json::read(json, file))?
            }
        };
        if found.reports.is_empty() && found.events.is_empty() && found.findings.is_empty() {
            let reason = match text.trim() {
                "" => "the file is empty",
                text if text.contains(" NCCL DIAG ") => {
                    "diagnostics of NCCL RAS, which are not read; ask `ncclras` for the status without diagnostics"
                }
                text if text.contains("BUSY: diagnostics already in progress") => {
                    "RAS was busy with diagnostics and gave no report; ask again"
                }
                _ => "no report of NCCL RAS; expected the output of `ncclras`, text or JSON",
            };
            return Err(NotUnderstood { reason: reason.to_owned() });
        }
        self.log.reports.extend(found.reports);
        self.log.events.extend(found.events);
        self.log.findings.extend(found.findings);
        Ok(())
    }

    /// The result of all files.
    pub fn finish(self) -> RasLog {
        let mut log = self.log;
        findings::add(&mut log);
        log
    }
}

/// As NCCL's log and Inspector have it; nothing where it is no hash.
fn hash(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok().map(|hash| format!("{hash:#x}"))
}
