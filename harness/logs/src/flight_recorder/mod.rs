//! Dumps of PyTorch's flight recorder, one of each rank, pickle or JSON: the first collective at which the ranks of a group
//! disagree, who never entered it, and who came with another type or size.
//!
//! The majority of a group is the reference, never the rank that was read first; where there is none, no rank is named.
//! A rank without a dump is that, and not missing.

mod collective;
mod compare;
mod dump;
mod findings;
mod groups;
mod mixed;
mod pickle;
#[cfg(test)]
mod tests;
mod tree;

use dump::{Dump, KnownRanks};
use metric::finding::Finding;
use serde::Serialize;
use std::collections::BTreeMap;

/// Of one dump, which has to be held whole.
pub const MOST_BYTES: usize = 64 << 20;

/// What all dumps say together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FlightLog {
    /// Those that could be read, by rank.
    pub dumps: Vec<DumpSummary>,
    /// Ranks of the job, as its groups name them.
    pub ranks: u64,
    /// Ranks of which no dump was given.
    pub without_dump: Vec<u64>,
    /// Ranks whose dump cannot be read.
    pub unreadable: Vec<u64>,
    /// By the time of the collective: the first is where it began.
    pub disagreements: Vec<Disagreement>,
    /// Such as `fr-rank-missing` and `fr-undecided`.
    pub findings: Vec<Finding>,
}

/// A dump that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DumpSummary {
    /// As passed to `Reader::read`.
    pub file: String,
    /// Global, from the end of the file's name.
    pub rank: u64,
    /// Such as `2.9`.
    pub version: String,
    /// Of NCCL or another library, where the dump says it.
    pub library: Option<String>,
    /// Collectives, sends and receives that were recorded.
    pub entries: u64,
    /// How many of them had not completed: a rank without any waits for no other.
    pub pending: u64,
}

/// The first collective of a group at which its ranks do not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Its name; groups of one name may have different ranks.
    pub group: String,
    /// What the program calls it.
    pub description: String,
    /// Number of its ranks.
    pub size: u64,
    /// Number of the collective in its group.
    pub sequence: u64,
    /// Such as `all_reduce`, as the reference calls it.
    pub operation: String,
    /// In what they differ.
    pub what: Difference,
    /// Those that differ from the reference.
    pub ranks: Vec<u64>,
    /// Those that are the reference: they entered, or agree with each other.
    pub others: Vec<u64>,
    /// Of which nothing is known here.
    pub unknown: Vec<u64>,
    /// Whether the reference is more than half of the group, so that it says who is at fault.
    pub is_decided: bool,
    /// What the ranks did instead, such as `all_gather, others all_reduce`.
    pub detail: String,
    /// Ranks that themselves wait for others, in another group.
    pub waiting_elsewhere: Vec<u64>,
    /// When the first rank enqueued it, by that rank's clock.
    pub created_ns: Option<u64>,
}

/// In what ranks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// They did not enter the collective.
    Missing,
    /// They called another collective.
    Type,
    /// They called it with another number of elements or another type of data.
    Size,
    /// Sizes that ranks send and receive do not add up.
    Total,
    /// Others completed it, and they did not.
    NotCompleted,
    /// All entered it and none completed it: no difference, and where a job hangs without one.
    Inside,
    /// All of which something is known entered it; of others nothing is known.
    Unknown,
}

/// Why a file is no dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotUnderstood {
    /// For people.
    pub reason: String,
}

/// Takes the dumps of one job, in any order.
#[derive(Debug, Default)]
pub struct Reader {
    known: KnownRanks,
    dumps: BTreeMap<u64, (String, Dump)>,
    unreadable: BTreeMap<u64, String>,
    /// Files of a rank that another file was read for.
    copies: Vec<(u64, String)>,
}

impl Reader {
    /// Reads a dump; the rank stands at the end of the file's name and nowhere else.
    pub fn read(&mut self, bytes: &[u8], file: &str) -> Result<(), NotUnderstood> {
        let Some(rank) = rank_of_name(file) else {
            let reason = "no rank at the end of the file's name, such as `nccl_trace_rank_7`".to_owned();
            return Err(NotUnderstood { reason });
        };
        let read = match bytes.len() > MOST_BYTES {
            true => {
                let most = MOST_BYTES >> 20;
                Err(NotUnderstood { reason: format!("larger than the limit of {most} MiB") })
            }
            false => dump::read(bytes, &mut self.known),
        };
        match read {
            Ok(_) if self.dumps.contains_key(&rank) => self.copies.push((rank, file.to_owned())),
            Ok(dump) => {
                self.dumps.insert(rank, (file.to_owned(), dump));
            }
            Err(why) => {
                self.unreadable.insert(rank, why.reason.clone());
                return Err(why);
            }
        }
        Ok(())
    }

    /// Collectives, sends and receives of all dumps that were read so far.
    pub fn entries(&self) -> usize {
        self.dumps.values().map(|(_, dump)| dump.entries.len()).sum()
    }

    /// What all of them say together.
    pub fn finish(self) -> FlightLog {
        let Reader { dumps, unreadable, copies, .. } = self;
        let mut log = FlightLog::default();
        for (rank, (file, dump)) in &dumps {
            log.dumps.push(DumpSummary {
                file: file.clone(),
                rank: *rank,
                version: dump.version.clone(),
                library: dump.library.clone(),
                entries: dump.entries.len() as u64,
                pending: dump.entries.iter().filter(|entry| collective::is_pending(entry)).count() as u64,
            });
        }
        log.unreadable = unreadable.keys().copied().filter(|rank| !dumps.contains_key(rank)).collect();
        let dumps: BTreeMap<u64, Dump> = dumps.into_iter().map(|(rank, (_, dump))| (rank, dump)).collect();
        let mixed = mixed::find(&dumps, &copies);
        let views = groups::views(&dumps);
        let mut all: Vec<u64> = views.iter().flat_map(|view| view.ranks.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        log.ranks = all.len() as u64;
        log.without_dump = all
            .into_iter()
            .filter(|rank| !dumps.contains_key(rank) && !log.unreadable.contains(rank))
            .collect();
        // Dumps of several jobs disagree without any fault.
        if mixed.is_empty() {
            log.disagreements = compare::disagreements(&views);
        }
        findings::add(&mut log, mixed, &unreadable, &dumps);
        log
    }
}

/// The digits at the end, without what says of which kind the file is.
fn rank_of_name(file: &str) -> Option<u64> {
    let mut name = file.rsplit('/').next().unwrap_or(file);
    for ending in [".gz", ".json", ".pickle", ".pkl", ".log"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name.get(digits..)?.parse().ok()
}
