//! Whom a job that stalls waits for, by NCCL's RAS: ranks that launched fewer operations than all others, or that give no
//! answer, alike in two reports. A node is named only where the addresses of the nodes place all of them on it.

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
    /// Where all of them are.
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
    why: String,
}

/// By the communicators of so many ranks; those of fewer may wait for each other. Nothing where the reports do not show it.
pub(super) fn read(job: &JobInput, size: Option<u32>, output: &mut Output) -> Option<Late> {
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
            accounts.push(twice(&reader.finish().reports, size));
        }
    }
    // Each report is of the whole job: those that differ prove nothing.
    let (first, others) = accounts.split_first()?;
    let lags = first.as_ref().filter(|_| others.iter().all(|other| other == first))?;
    let at = |lag: &Lag| nodes.get(lag.owner.node.as_ref()?).cloned().flatten();
    let all: BTreeSet<Option<String>> = lags.iter().map(at).collect();
    let node = match all.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(node)] => Some(node.clone()),
        _ => None,
    };
    let ranks = lags.iter().map(|lag| lag.rank).collect();
    let evidence = describe(lags, &ranks, node.as_deref())?;
    Some(Late { ranks, node, evidence })
}

/// What the last two reports have alike.
fn twice(reports: &[Report], size: u64) -> Option<Vec<Lag>> {
    let [.., before, after] = reports else { return None };
    let lags = late(after, size)?;
    (late(before, size)? == lags).then_some(lags)
}

fn late(report: &Report, size: u64) -> Option<Vec<Lag>> {
    let mut lags = Vec::new();
    for communicator in report.communicators.iter().filter(|it| it.size == Some(size)) {
        lags.extend(late_of(communicator, size)?);
    }
    (report.has_end && !lags.is_empty()).then_some(lags)
}

/// Nothing where the report does not show who is late: not all are listed, no majority waits, or it is an error.
fn late_of(communicator: &Communicator, size: u64) -> Option<Vec<Lag>> {
    let lag = |rank: u64, owner: &Owner, why: String| {
        (rank < size).then(|| Lag {
            communicator: communicator.hash.clone(),
            rank,
            owner: owner.clone(),
            why,
        })
    };
    if !communicator.errors.is_empty()
        || communicator.statuses.len() > 1
        || communicator.missing.len() as u64 != communicator.missing_count
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
        lags.push(lag(missing.rank.rank, &missing.rank.owner, why.to_owned())?);
    }
    for counts in &communicator.differing {
        let most = counts.launched.last().filter(|most| most.ranks > size / 2)?;
        let operation = counts.operation.as_deref().unwrap_or("operations");
        for set in counts.launched.iter().filter(|set| set.launched < most.launched) {
            if set.listed.len() as u64 != set.ranks {
                return None;
            }
            for rank in &set.listed {
                let why =
                    format!("launched {} {operation}, {} others {}", set.launched, most.ranks, most.launched);
                lags.push(lag(rank.rank, &rank.owner, why)?);
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
