//! Dumps that are not of one job: a second job writes over the dumps of the first, rank by rank, and a folder may hold both.
//! Such dumps are not compared.

use super::collective::{needs_all, operation};
use super::dump::{Dump, Entry};
use crate::text::count;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// No time-out is that long: an entry that is older is of another job.
const APART_NS: u64 = 12 * 3600 * 1_000_000_000;
/// The clocks of two nodes differ by less.
const CLOCKS_NS: u64 = 60 * 1_000_000_000;

pub(super) fn find(dumps: &BTreeMap<u64, Dump>, copies: &[(u64, String)]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut find = |message: String| found.push(Finding::new("fr-mixed-jobs", message));
    if let Some((rank, file)) = copies.first() {
        find(format!("two dumps of rank {rank}, the second `{file}`: of two jobs or folders"));
    }
    let versions = sets(dumps, |dump| Some(dump.version.clone()));
    if versions.len() > 1 {
        find(format!("dumps of versions {}: of different jobs", listed(&versions)));
    }
    let libraries = sets(dumps, |dump| dump.library.clone());
    if libraries.len() > 1 {
        find(format!("dumps with NCCL {}: of different jobs", listed(&libraries)));
    }
    let worlds =
        sets(dumps, |dump| dump.groups.get("0").map(|group| count(group.ranks.len() as u64, "rank")));
    if worlds.len() > 1 {
        find(format!("default groups of {}: of different jobs", listed(&worlds)));
    }
    let is_stranger = |rank: u64, dump: &Dump| {
        !dump.groups.is_empty() && dump.groups.values().any(|group| !group.ranks.contains(&rank))
    };
    let strangers = dumps.iter().filter(|(rank, dump)| is_stranger(**rank, dump)).map(|(rank, _)| *rank);
    if let Some(rank) = strangers.clone().next() {
        let more = count(strangers.count() as u64, "dump");
        find(format!(
            "rank {rank} is in the name of a file and not in its groups: {more} so, of another job"
        ));
    }
    let newest = |dump: &Dump| dump.entries.iter().filter_map(|entry| entry.created_ns).max();
    let times = dumps.iter().filter_map(|(rank, dump)| Some((newest(dump)?, *rank)));
    if let (Some((first, old)), Some((last, new))) = (times.clone().min(), times.max())
        && last - first > APART_NS
    {
        let hours = (last - first) / 3_600_000_000_000;
        find(format!(
            "the newest entry of rank {old} is {hours} h older than that of rank {new}: another job"
        ));
    } else if let Some(message) = older_than_time_out(dumps) {
        find(message);
    }
    if let Some(message) = impossible_order(dumps) {
        find(message);
    }
    if let Some(message) = other_groups(dumps) {
        find(message);
    }
    found
}

/// Name, first rank and size of a group, and the number of a collective in it.
type Key<'a> = (&'a str, u64, usize, u64);
type GroupKey<'a> = (&'a str, u64, usize);

fn group_of<'a>(&(name, first, size, _): &Key<'a>) -> GroupKey<'a> {
    (name, first, size)
}

fn key<'a>(dump: &Dump, entry: &'a Entry) -> Option<Key<'a>> {
    let group = dump.groups.get(&entry.group)?;
    let first = group.ranks.first().copied().unwrap_or_default();
    Some((&*entry.group, first, group.ranks.len(), entry.sequence))
}

/// Of one collective: the first that was done, and the last that entered.
#[derive(Default)]
struct Ends<'a> {
    done: Option<(u64, u64)>,
    entered: Option<(u64, u64)>,
    operation: &'a str,
}

/// No rank is done before all have entered: a dump that says so was left by an earlier run.
fn impossible_order(dumps: &BTreeMap<u64, Dump>) -> Option<String> {
    let mut all: BTreeMap<Key<'_>, Ends<'_>> = BTreeMap::new();
    for (rank, dump) in dumps {
        for (key, entry) in entries(dump) {
            let Some(entry) = entry.filter(|entry| waits_for_all(operation(&entry.name))) else { continue };
            let ends = all.entry(key).or_default();
            let done = entry.completed_ns.map(|ns| (ns, *rank));
            ends.done = ends.done.into_iter().chain(done).min();
            ends.entered = ends.entered.max(entry.created_ns.map(|ns| (ns, *rank)));
            ends.operation = operation(&entry.name);
        }
    }
    let of_one = all.iter().find_map(|(key, ends)| {
        let (early, late) = (ends.done?, ends.entered?);
        is_impossible(early, late).then(|| message(ends, key, early, late, "it"))
    });
    of_one.or_else(|| impossible_sequence(&all, &restarted(dumps)))
}

/// A group's collectives follow each other: before one is done, all ranks have entered those before it, too.
fn impossible_sequence(
    all: &BTreeMap<Key<'_>, Ends<'_>>,
    restarted: &BTreeSet<GroupKey<'_>>,
) -> Option<String> {
    // From the last collective of each group to its first: the earliest that was done so far.
    let mut earliest: Option<(&Key<'_>, &Ends<'_>, (u64, u64))> = None;
    for (key, ends) in all.iter().rev().filter(|(key, _)| !restarted.contains(&group_of(key))) {
        earliest = earliest.filter(|(later, ..)| group_of(later) == group_of(key));
        if let (Some((later, of, early)), Some(late)) = (earliest, ends.entered)
            && is_impossible(early, late)
        {
            return Some(message(of, later, early, late, &format!("#{}", key.3)));
        }
        if let Some(done) = ends.done
            && earliest.is_none_or(|(.., early)| done < early)
        {
            earliest = Some((key, ends, done));
        }
    }
    None
}

/// Groups whose numbers go back in some dump: of a second communicator, which says nothing of the first.
fn restarted(dumps: &BTreeMap<u64, Dump>) -> BTreeSet<GroupKey<'_>> {
    let mut found = BTreeSet::new();
    for dump in dumps.values() {
        let mut last: BTreeMap<GroupKey<'_>, u64> = BTreeMap::new();
        for entry in dump.entries.iter().filter(|entry| !entry.is_p2p) {
            let Some(key) = key(dump, entry) else { continue };
            let before = last.insert(group_of(&key), entry.sequence);
            if before.is_some_and(|before| before > entry.sequence) {
                found.insert(group_of(&key));
            }
        }
    }
    found
}

fn is_impossible((done, _): (u64, u64), (entered, _): (u64, u64)) -> bool {
    entered.saturating_sub(done) > CLOCKS_NS
}

fn message(
    ends: &Ends<'_>,
    (group, .., sequence): &Key<'_>,
    (done, early): (u64, u64),
    (entered, late): (u64, u64),
    what: &str,
) -> String {
    let apart = entered.saturating_sub(done) / 1_000_000_000;
    let operation = ends.operation;
    format!(
        "rank {early} completed {operation} #{sequence} of group {group} {apart} s before rank {late} entered {what}: \
         another job, or a clock is off"
    )
}

/// A rank waits for another no longer than its time-out. Where all that it still holds is newer than the last entry of a
/// rank of its group by more than that, the other dump was left by an earlier run, whatever numbers stand in both.
fn older_than_time_out(dumps: &BTreeMap<u64, Dump>) -> Option<String> {
    let times = |dump: &Dump| {
        let mut times = dump.entries.iter().filter_map(|entry| entry.created_ns);
        let first = times.next()?;
        Some(times.fold((first, first), |(old, new), ns| (old.min(ns), new.max(ns))))
    };
    let spans: BTreeMap<u64, (u64, u64)> =
        dumps.iter().filter_map(|(rank, dump)| Some((*rank, times(dump)?))).collect();
    // Mostly one look is all.
    let first_end = spans.values().map(|(_, newest)| *newest).min()?;
    for (rank, dump) in dumps {
        let Some((oldest, _)) =
            spans.get(rank).filter(|(oldest, _)| *oldest > first_end.saturating_add(CLOCKS_NS))
        else {
            continue;
        };
        let time_out = dump.entries.iter().filter_map(|entry| entry.timeout_ms).max();
        let time_out = time_out.map_or(APART_NS, |ms| ms.saturating_mul(1_000_000)).max(CLOCKS_NS);
        let is_stale = |other: &&u64| {
            let newest = spans.get(*other).map(|(_, newest)| *newest);
            newest.is_some_and(|newest| newest.saturating_add(time_out).saturating_add(CLOCKS_NS) < *oldest)
        };
        let used: BTreeSet<&str> = dump.entries.iter().map(|entry| &*entry.group).collect();
        let groups = dump.groups.iter().filter(|(name, _)| used.contains(&***name));
        let stale = groups.flat_map(|(_, group)| group.ranks.iter()).find(is_stale);
        if let Some((other, (_, newest))) = stale.and_then(|other| spans.get_key_value(other)) {
            let minutes = (oldest - newest) / 60_000_000_000;
            return Some(format!(
                "the newest entry of rank {other} is {minutes} min older than all of rank {rank}, longer than a \
                 time-out: another job, or a clock is off"
            ));
        }
    }
    None
}

/// The ranks that a group has by the list of a rank, and this rank.
type OwnedList<'a> = (&'a Rc<[u64]>, u64);

/// A name is one group of a rank, and all that it lists have the same list: else they are of different jobs, or made their
/// groups in another order.
fn other_groups(dumps: &BTreeMap<u64, Dump>) -> Option<String> {
    let mut lists: BTreeMap<&str, Vec<OwnedList<'_>>> = BTreeMap::new();
    for (rank, dump) in dumps {
        for (name, group) in dump.groups.iter().filter(|(name, _)| !name.is_empty()) {
            let known = lists.entry(&**name).or_default();
            if known.iter().all(|(ranks, _)| !is_same(ranks, &group.ranks)) {
                known.push((&group.ranks, *rank));
            }
        }
    }
    for (name, lists) in &lists {
        for (ranks, owner) in lists {
            let is_other = |rank: &&u64| {
                let own = dumps.get(*rank).and_then(|dump| dump.groups.get(*name));
                own.is_some_and(|own| !is_same(ranks, &own.ranks))
            };
            if let Some(rank) = ranks.iter().find(is_other) {
                return Some(format!(
                    "ranks {owner} and {rank} list other ranks for group {name}: of different jobs"
                ));
            }
        }
    }
    None
}

/// Equal lists are mostly one in memory.
fn is_same(one: &Rc<[u64]>, other: &Rc<[u64]>) -> bool {
    Rc::ptr_eq(one, other) || one == other
}

/// A rank that exchanges nothing may be done with an all_to_all at once.
fn waits_for_all(operation: &str) -> bool {
    needs_all(operation) && operation != "all_to_all"
}

/// The entry of each collective; none where several have its number, as in a batch or where a group was made again.
fn entries(dump: &Dump) -> BTreeMap<Key<'_>, Option<&Entry>> {
    let mut all = BTreeMap::new();
    for entry in dump.entries.iter().filter(|entry| !entry.is_p2p) {
        let Some(key) = key(dump, entry) else { continue };
        all.entry(key).and_modify(|known| *known = None).or_insert(Some(entry));
    }
    all
}

/// How many dumps have each value.
fn sets(dumps: &BTreeMap<u64, Dump>, value: impl Fn(&Dump) -> Option<String>) -> BTreeMap<String, u64> {
    let mut sets = BTreeMap::new();
    dumps.values().filter_map(value).for_each(|value| *sets.entry(value).or_default() += 1);
    sets
}

fn listed(sets: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = sets.iter().map(|(value, dumps)| format!("{value} ({dumps})")).collect();
    all.join(", ")
}
