//! Whom a job that stalls waits for, by NCCL's RAS: ranks that launched fewer operations than all others, or that give no
//! answer, alike in two reports. A node is named only where the addresses of the nodes place all of them on it, and never for
//! launching less where ranks do not meet between launches: a rank whose receive hangs launches less, too.

use super::rank_list::listed;
use super::{FileRole, JobInput, Output, bytes_of};
use logs::ras::{self, Absence, Communicator, Owner, Reader, Report};
use std::collections::{BTreeMap, BTreeSet};

/// Cause: a rank calls no collective any more.
pub(super) const DESYNC: &str = "desync";

/// Ranks that all others wait for.
#[derive(Debug, PartialEq)]
pub(super) struct Late {
    /// In their communicator.
    pub ranks: BTreeSet<u64>,
    /// Where all of them are, where that blames it.
    pub node: Option<String>,
    /// Who they are, and by what.
    pub evidence: String,
}

/// A rank that others wait for, as one report has it.
#[derive(Debug, Clone, PartialEq)]
struct Lag {
    communicator: String,
    rank: u64,
    owner: Owner,
    /// It gives no answer; else it launched less.
    is_silent: bool,
    why: String,
}

/// Findings of reports that contradict themselves.
const ODD: [&str; 3] = ["ras-contradicts", "ras-absurd", "ras-cut"];

/// What launching less than the others proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// Ranks meet before each launch: who launched less did not come.
    DidNotCome,
    /// Ranks launch ahead, each as far as what it received lets it.
    MayWait,
}

/// By the communicators of so many ranks. Where there are others, ranks may wait for each other there: then the reports show
/// nothing.
pub(super) fn read(job: &JobInput, size: Option<u32>, behind: Behind, output: &mut Output) -> Option<Late> {
    let size = size.map(u64::from).filter(|size| *size > 1 && job.exit_code != Some(0))?;
    // None for an address that several nodes have.
    let mut nodes: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut accounts = Vec::new();
    for file in job.files_of(FileRole::Ras) {
        let (Some(node), Some(bytes)) = (&file.node, bytes_of(file, output)) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let (addresses, reports) = ras::addresses(&text);
        for address in addresses {
            let known = nodes.entry(address.to_owned()).or_insert_with(|| Some(node.clone()));
            if known.as_ref() != Some(node) {
                *known = None;
            }
        }
        let mut reader = Reader::default();
        // Most nodes leave no report, only their addresses.
        if reader.read(reports.as_bytes(), &file.shown).is_ok() {
            let log = reader.finish();
            let is_odd = log.findings.iter().any(|it| ODD.contains(&it.code.as_str()));
            accounts.push(if is_odd { None } else { twice(&log.reports, size) });
        }
    }
    // Each report is of the whole job: those that differ prove nothing.
    let (first, others) = accounts.split_first()?;
    let lags = first.as_ref().filter(|_| others.iter().all(|other| other == first))?;
    let at = |lag: &Lag| nodes.get(lag.owner.node.as_ref()?).cloned().flatten();
    let all: BTreeSet<Option<String>> = lags.iter().map(at).collect();
    let place = match all.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(node)] => Some(node.clone()),
        _ => None,
    };
    let owners: BTreeSet<(u64, &Owner)> = lags.iter().map(|lag| (lag.rank, &lag.owner)).collect();
    let ranks: BTreeSet<u64> = lags.iter().map(|lag| lag.rank).collect();
    // Communicators side by side number their ranks alike.
    if owners.len() != ranks.len() {
        return None;
    }
    let evidence = describe(lags, &ranks, place.as_deref())?;
    let is_proof = behind == Behind::DidNotCome || lags.iter().all(|lag| lag.is_silent);
    Some(Late { ranks, node: place.filter(|_| is_proof), evidence })
}

/// What the last two reports have alike.
fn twice(reports: &[Report], size: u64) -> Option<Vec<Lag>> {
    let [.., before, after] = reports else { return None };
    let lags = late(after, size)?;
    (late(before, size)? == lags).then_some(lags)
}

fn late(report: &Report, size: u64) -> Option<Vec<Lag>> {
    let mut lags = Vec::new();
    for communicator in &report.communicators {
        if communicator.size != Some(size) {
            return None;
        }
        lags.extend(late_of(communicator, size)?);
    }
    // A text does not list those without a fault.
    let has_all = report.communicators_count == report.communicators.len() as u64;
    (report.has_end && has_all && !lags.is_empty()).then_some(lags)
}

/// Nothing where the report does not show who is late: not all are listed, no majority waits, or it is an error.
fn late_of(communicator: &Communicator, size: u64) -> Option<Vec<Lag>> {
    let lag = |rank: u64, owner: &Owner, is_silent: bool, why: String| {
        let (communicator, owner) = (communicator.hash.clone(), owner.clone());
        (rank < size).then_some(Lag { communicator, rank, owner, is_silent, why })
    };
    if !communicator.errors.is_empty()
        || communicator.statuses.len() > 1
        || communicator.missing.len() as u64 != communicator.missing_count
        || communicator.ranks.is_some_and(|ranks| ranks.saturating_add(communicator.missing_count) != size)
    {
        return None;
    }
    let mut lags = Vec::new();
    for missing in &communicator.missing {
        let why = match missing.why {
            Absence::Dead => "had no contact for 60 s",
            Absence::Unresponsive => "gave no answer",
            Absence::NoMember => return None,
        };
        lags.push(lag(missing.rank.rank, &missing.rank.owner, true, why.to_owned())?);
    }
    for counts in &communicator.differing {
        let most = counts.launched.last().filter(|most| most.ranks > size / 2)?;
        let counted =
            counts.launched.iter().map(|set| set.ranks).fold(communicator.missing_count, u64::saturating_add);
        let listed = || counts.launched.iter().flat_map(|set| &set.listed).map(|rank| rank.rank);
        if counted != size || listed().collect::<BTreeSet<_>>().len() != listed().count() {
            return None;
        }
        let operation = counts.operation.as_deref().unwrap_or("operations");
        for set in counts.launched.iter().filter(|set| set.launched < most.launched) {
            if set.listed.len() as u64 != set.ranks {
                return None;
            }
            for rank in &set.listed {
                let why =
                    format!("launched {} {operation}, {} others {}", set.launched, most.ranks, most.launched);
                lags.push(lag(rank.rank, &rank.owner, false, why)?);
            }
        }
    }
    let late: BTreeSet<u64> = lags.iter().map(|lag| lag.rank).collect();
    ((late.len() as u64) * 2 < size).then_some(lags)
}

/// `rank 11 (p5-002 GPU 3) launched 4710 AllReduce, 23 others 4711; NCCL RAS, twice`.
fn describe(lags: &[Lag], ranks: &BTreeSet<u64>, node: Option<&str>) -> Option<String> {
    let first = lags.first()?;
    let gpu = first.owner.gpu.as_deref().filter(|_| ranks.len() == 1);
    let place = match (node, gpu) {
        (Some(node), Some(gpu)) => format!(" ({node} GPU {gpu})"),
        (Some(node), None) => format!(" ({node})"),
        (None, _) => {
            let at = first.owner.node.as_ref().filter(|_| ranks.len() == 1);
            at.map(|at| format!(" (at {at})")).unwrap_or_default()
        }
    };
    Some(format!("{}{place} {}; NCCL RAS, twice", listed(ranks), first.why))
}

#[cfg(test)]
#[path = "ras_hang_tests.rs"]
mod tests;
