//! Who a training that hangs waits for, by the dumps of its ranks. A node is named only where the dumps of all ranks separate it:
//! its ranks did not enter a collective, and each rank of all other nodes waits. Whatever else they show names no node.

use super::{Failure, FileRole, JobInput, Output, TrainingFinding, failure, node_of};
use crate::recipe::bytes_of;
use crate::recipe::rank_list::listed;
use crate::recipe::ras_hang::DESYNC;
use logs::flight_recorder::{Difference, Disagreement, FlightLog, Reader};
use metric::finding::Finding;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Cause: ranks called different collectives; it has no culprit.
const MISMATCH: &str = TrainingFinding::CollectiveMismatch.code();
/// Cause: the dumps do not show where it began; it has no culprit.
pub(super) const UNDECIDED: &str = TrainingFinding::HangUndecided.code();
/// Cause: all wait, and nothing contradicts that a node may be at fault.
pub(super) const TIMEOUT: &str = "collective-timeout";
/// Of all dumps together: those of 4096 ranks.
const MOST_ENTRIES: usize = 8 << 20;
/// Of a report of the request, which has a line for each rank of its node.
const MOST_LINES: usize = 4096;

/// What the dumps of a job show.
#[derive(Debug)]
pub(super) struct Hang {
    /// With the node, where the dumps separate one.
    pub failure: Failure,
    /// The ranks that all others wait for; none where the dumps do not show them.
    pub late: BTreeSet<u64>,
}

/// Nothing where no dump was left, or the job ended well.
pub(super) fn read(job: &JobInput, ranks: Option<u32>, output: &mut Output) -> Option<Hang> {
    let ranks = ranks.map(u64::from).filter(|_| job.exit_code != Some(0))?;
    let requests = Requests::read(job, output);
    let mut reader = Reader::default();
    for file in job.files_of(FileRole::FlightDump) {
        let Some(bytes) = bytes_of(file, output) else { continue };
        // What is left out is reported as missing.
        if reader.entries() > MOST_ENTRIES {
            break;
        }
        // Those that cannot be read are counted below.
        let _ = reader.read(&bytes, &file.shown);
    }
    let log = reader.finish();
    let lacking = Lacking::find(&log, ranks);
    let missing = lacking.describe(&requests, ranks);
    if log.dumps.is_empty() {
        let is_asked = requests.is_answered || !log.unreadable.is_empty();
        output.findings.extend(
            missing.filter(|_| is_asked).map(|why| Finding::new(TrainingFinding::NoDumps.code(), why)),
        );
        return None;
    }
    let hang = decide(job, &log, ranks, &requests, lacking.is_empty());
    let hang = hang.or_else(|| undecided(job, &log, ranks, &requests));
    let mut hang = hang.unwrap_or_else(|| Hang {
        failure: failure(TIMEOUT, None, "all ranks entered the same collectives".to_owned()),
        late: BTreeSet::new(),
    });
    if let Some(missing) = missing {
        // Whoever left no dump may be the one that all wait for: a node may be at fault, and the dumps do not show which.
        if hang.failure.cause == UNDECIDED {
            hang.failure.cause = TIMEOUT.to_owned();
        }
        hang.failure.evidence = format!("{}; {missing}", hang.failure.evidence);
    }
    Some(hang)
}

/// The ranks that did not come, where all others wait.
fn decide(
    job: &JobInput,
    log: &FlightLog,
    ranks: u64,
    requests: &Requests,
    is_complete: bool,
) -> Option<Hang> {
    // What some completed was entered by all: such dumps are of different times.
    let is_open = |it: &&Disagreement| it.is_decided || it.others.len() as u64 * 2 <= it.size;
    let missing = || log.disagreements.iter().filter(|it| it.what == Difference::Missing).filter(is_open);
    let late = |it: &Disagreement| {
        let late = it.ranks.iter().copied().filter(|rank| !it.waiting_elsewhere.contains(rank));
        late.collect::<BTreeSet<u64>>()
    };
    let culprits: BTreeSet<u64> = missing().flat_map(late).collect();
    // The communicator that is theirs first of all.
    let first = missing()
        .filter(|it| !late(it).is_empty())
        .max_by_key(|it| (it.is_decided, it.created_ns.map(Reverse)))?;
    let is_plain = log.disagreements.iter().all(|it| {
        let is_missing = it.what == Difference::Missing && is_open(&it);
        (is_missing || it.what == Difference::Inside) && it.unknown.is_empty()
    });
    let is_sound = log.findings.iter().all(|it| !matches!(it.code.as_str(), "fr-mixed-jobs" | "fr-garbled"));
    // A mismatch, a collective that some completed, or dumps of two jobs contradict it; half of all ranks may be ahead as well.
    if !is_plain || !is_sound || culprits.len() as u64 * 2 >= ranks {
        return None;
    }
    let waiting: BTreeSet<u64> =
        log.dumps.iter().filter(|dump| dump.pending > 0).map(|dump| dump.rank).collect();
    let separates = culprits.is_disjoint(&waiting) && (culprits.len() + waiting.len()) as u64 == ranks;
    let nodes: BTreeSet<Option<&String>> =
        culprits.iter().map(|rank| requests.node_of(job, ranks, *rank)).collect();
    let node = match nodes.into_iter().collect::<Vec<_>>().as_slice() {
        [one] if is_complete && separates => *one,
        _ => None,
    };
    let who = describe(job, ranks, requests, &culprits);
    let wait = match waiting.len() {
        1 => "1 rank waits".to_owned(),
        more => format!("{more} ranks wait"),
    };
    let evidence = format!("{who} did not enter {}; {wait}", collective(first));
    let cause = if node.is_some() { DESYNC } else { UNDECIDED };
    Some(Hang { failure: failure(cause, node, evidence), late: culprits })
}

/// What the reader of the dumps reports first; it blames no node.
fn undecided(job: &JobInput, log: &FlightLog, ranks: u64, requests: &Requests) -> Option<Hang> {
    let first = log.findings.first()?;
    let (cause, odd) = match first.code.as_str() {
        "fr-type-differs" | "fr-size-differs" => (MISMATCH, odd_call(job, log, ranks, requests)),
        "fr-inside" => (TIMEOUT, None),
        _ => (UNDECIDED, None),
    };
    let evidence = odd.unwrap_or_else(|| first.message.clone());
    Some(Hang { failure: failure(cause, None, evidence), late: BTreeSet::new() })
}

/// Who called something else than most ranks, and where it runs: the program is at fault, not the node.
fn odd_call(job: &JobInput, log: &FlightLog, ranks: u64, requests: &Requests) -> Option<String> {
    let is_proven =
        |it: &&Disagreement| it.is_decided && matches!(it.what, Difference::Type | Difference::Size);
    let odd = log.disagreements.iter().find(is_proven)?;
    let who = describe(job, ranks, requests, &odd.ranks.iter().copied().collect());
    let called = if odd.what == Difference::Size { "called with" } else { "called" };
    Some(format!("{who} {called} {}: {}", odd.detail, collective(odd)))
}

/// `all_gather #4711 of communicator tp-3`.
fn collective(it: &Disagreement) -> String {
    let name = if it.description.is_empty() { &it.group } else { &it.description };
    format!("{} #{} of communicator {name}", it.operation, it.sequence)
}

/// `rank 11 (p5-002 GPU 3)`, `ranks 8-15 (p5-002)`.
fn describe(job: &JobInput, ranks: u64, requests: &Requests, who: &BTreeSet<u64>) -> String {
    let nodes: BTreeSet<Option<&String>> =
        who.iter().map(|rank| requests.node_of(job, ranks, *rank)).collect();
    let node = match nodes.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(node)] => Some(*node),
        _ => None,
    };
    let per_node = ranks / (job.nodes.len() as u64).max(1);
    match (who.iter().collect::<Vec<_>>().as_slice(), node) {
        ([rank], Some(node)) => match rank.checked_rem(per_node) {
            Some(gpu) => format!("rank {rank} ({node} GPU {gpu})"),
            None => format!("rank {rank} ({node})"),
        },
        (_, Some(node)) => format!("{} ({node})", listed(who)),
        (_, None) => listed(who),
    }
}

/// Ranks of which nothing is known.
struct Lacking {
    without_dump: BTreeSet<u64>,
    unreadable: BTreeSet<u64>,
}

impl Lacking {
    fn find(log: &FlightLog, ranks: u64) -> Lacking {
        let unreadable: BTreeSet<u64> = log.unreadable.iter().copied().collect();
        let known: BTreeSet<u64> = log.dumps.iter().map(|dump| dump.rank).collect();
        let lacks = |rank: &u64| !known.contains(rank) && !unreadable.contains(rank);
        Lacking { without_dump: (0..ranks).filter(lacks).collect(), unreadable }
    }

    fn is_empty(&self) -> bool {
        self.without_dump.is_empty() && self.unreadable.is_empty()
    }

    fn describe(&self, requests: &Requests, ranks: u64) -> Option<String> {
        let (asked, other): (BTreeSet<u64>, BTreeSet<u64>) =
            self.without_dump.iter().partition(|rank| requests.nodes.contains_key(*rank));
        let mut parts = Vec::new();
        if !asked.is_empty() {
            parts.push(format!("no dump of {}, which took the request", listed(&asked)));
        }
        if other.len() as u64 == ranks {
            parts.push("no rank took the request for a dump".to_owned());
        } else if !other.is_empty() {
            let why = if requests.is_answered { ", which the request did not reach" } else { "" };
            parts.push(format!("no dump of {}{why}", listed(&other)));
        }
        if !self.unreadable.is_empty() {
            parts.push(format!("dump of {} cannot be read", listed(&self.unreadable)));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// What the nodes report of the request for dumps: which ranks are theirs.
#[derive(Debug, Default)]
struct Requests {
    /// None for a rank that several nodes report.
    nodes: BTreeMap<u64, Option<String>>,
    is_answered: bool,
}

impl Requests {
    fn read(job: &JobInput, output: &mut Output) -> Requests {
        let mut all = Requests::default();
        for file in job.files_of(FileRole::FlightRequest) {
            let (Some(node), Some(bytes)) = (&file.node, bytes_of(file, output)) else { continue };
            all.is_answered = true;
            let text = String::from_utf8_lossy(&bytes);
            let ranks = text.lines().take(MOST_LINES).filter_map(|line| line.strip_prefix("rank "));
            for rank in ranks.filter_map(|rest| rest.split(' ').next()?.parse().ok()) {
                let known = all.nodes.entry(rank).or_insert_with(|| Some(node.clone()));
                if known.as_ref() != Some(node) {
                    *known = None;
                }
            }
        }
        all
    }

    /// Where ranks were asked, a rank is where it took the request. Dumps that nothing asked for are numbered node by node.
    fn node_of<'a>(&'a self, job: &'a JobInput, ranks: u64, rank: u64) -> Option<&'a String> {
        match self.is_answered {
            true => self.nodes.get(&rank)?.as_ref(),
            false => node_of(job, u32::try_from(ranks).ok(), rank),
        }
    }
}

#[cfg(test)]
#[path = "hang_tests.rs"]
mod tests;
