//! The lines for a person: what began it first, then what cannot be decided, then what is missing of the dumps.

use super::dump::Dump;
use super::{Difference, Disagreement, FlightLog};
use crate::text::count;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Ranks that are listed one by one.
const LISTED: usize = 4;

pub(super) fn add(
    log: &mut FlightLog,
    mixed: Vec<Finding>,
    unreadable: &BTreeMap<u64, String>,
    dumps: &BTreeMap<u64, Dump>,
) {
    let mut found = mixed;
    culprits(&log.disagreements, &mut found);
    open(&log.disagreements, found.is_empty(), &mut found);
    for (rank, why) in unreadable {
        found.push(Finding::new("fr-unreadable", format!("rank {rank}: dump cannot be read: {why}")));
    }
    if !log.without_dump.is_empty() {
        let ranks = ranks(&log.without_dump);
        let message = format!("{ranks}: no dump: dead before it, of another folder, or still running");
        found.push(Finding::new("fr-no-dump", message));
    }
    let garbled: u64 = dumps.values().map(|dump| dump.garbled).sum();
    if garbled > 0 {
        let message = format!("entries without a group or a number, left out: {garbled}");
        found.push(Finding::new("fr-garbled", message));
    }
    let strangers = dumps
        .values()
        .flat_map(|dump| dump.entries.iter().filter(|entry| !dump.groups.contains_key(&entry.group)));
    let strangers = strangers.count();
    if strangers > 0 {
        let message = format!("entries of groups whose ranks the dump does not list, left out: {strangers}");
        found.push(Finding::new("fr-garbled", message));
    }
    log.findings = found;
}

/// `rank 3`, `ranks 3, 7`, `31 ranks`.
fn ranks(ranks: &[u64]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        [_, ..] if ranks.len() <= LISTED => {
            let numbers: Vec<String> = ranks.iter().map(u64::to_string).collect();
            format!("ranks {}", numbers.join(", "))
        }
        _ => format!("{} ranks", ranks.len()),
    }
}

/// `all_reduce #7 of group 0 (default_pg)`
fn collective(of: &Disagreement) -> String {
    let description = match of.description.as_str() {
        "" => String::new(),
        description => format!(" ({description})"),
    };
    format!("{} #{} of group {}{description}", of.operation, of.sequence, of.group)
}

/// Ranks that their group has proven to be late or odd, each with the first collective that shows it.
fn culprits(all: &[Disagreement], found: &mut Vec<Finding>) {
    let mut named: BTreeSet<u64> = BTreeSet::new();
    for of in all.iter().filter(|of| of.is_decided) {
        let new: Vec<u64> = of
            .ranks
            .iter()
            .copied()
            .filter(|rank| !of.waiting_elsewhere.contains(rank) && !named.contains(rank))
            .collect();
        if new.is_empty() {
            continue;
        }
        named.extend(&new);
        let (who, what) = (ranks(&new), collective(of));
        let (code, message) = match of.what {
            Difference::Missing => {
                let wait = if of.others.len() == 1 { "waits" } else { "wait" };
                ("fr-rank-missing", format!("{who} did not enter {what}; {} {wait}", ranks(&of.others)))
            }
            Difference::Type => ("fr-type-differs", format!("{who} called {}: {what}", of.detail)),
            _ => ("fr-size-differs", format!("{who} called with {}: {what}", of.detail)),
        };
        found.push(Finding::new(code, message));
    }
}

/// What the dumps show without saying who is at fault. Once a rank is named, ties that follow from it add nothing.
fn open(all: &[Disagreement], is_first: bool, found: &mut Vec<Finding>) {
    let mut sets: BTreeSet<(Difference, &[u64], &[u64])> = BTreeSet::new();
    // The largest group shows best which ranks are behind.
    let behind = all.iter().filter(|of| of.what == Difference::NotCompleted);
    let largest = behind.max_by_key(|of| of.ranks.len()).map(|of| of.ranks.iter().collect::<BTreeSet<_>>());
    let is_part = |of: &Disagreement| {
        let is_smaller = |largest: &BTreeSet<&u64>| {
            of.ranks.len() < largest.len() && of.ranks.iter().all(|rank| largest.contains(rank))
        };
        of.what == Difference::NotCompleted && largest.as_ref().is_some_and(is_smaller)
    };
    let first_inside = all.iter().find(|of| of.what == Difference::Inside).filter(|_| is_first);
    for of in all.iter().filter(|of| !is_part(of)) {
        let what = collective(of);
        let (code, message) = match of.what {
            Difference::NotCompleted => {
                let (who, others) = (ranks(&of.ranks), ranks(&of.others));
                ("fr-not-completed", format!("{who}: still in {what}, which {others} completed"))
            }
            Difference::Total => ("fr-size-differs", format!("{}: {what}; no culprit", of.detail)),
            Difference::Unknown => {
                let (who, others) = (ranks(&of.unknown), ranks(&of.others));
                ("fr-undecided", format!("{others} entered {what}; of {who} nothing is known"))
            }
            Difference::Inside if first_inside == Some(of) => {
                let size = count(of.size, "rank");
                ("fr-inside", format!("all {size} are in {what}: it hangs within, or still ran"))
            }
            Difference::Missing if !of.is_decided && is_first => {
                let (who, others) = (ranks(&of.ranks), ranks(&of.others));
                ("fr-undecided", format!("{who} did not enter {what}, {others} did; {}", of.detail))
            }
            Difference::Missing if is_first && of.waiting_elsewhere.len() == of.ranks.len() => {
                let who = ranks(&of.ranks);
                let wait = if of.ranks.len() == 1 { "waits" } else { "wait" };
                ("fr-undecided", format!("{who} did not enter {what}, and {wait} for others elsewhere"))
            }
            Difference::Type | Difference::Size if !of.is_decided => {
                ("fr-undecided", format!("{}: {what}; no majority, no culprit", of.detail))
            }
            _ => continue,
        };
        if sets.insert((of.what, &of.ranks, &of.unknown)) {
            found.push(Finding::new(code, message));
        }
    }
}
