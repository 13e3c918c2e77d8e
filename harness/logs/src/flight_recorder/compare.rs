//! The first collective of each group at which its ranks do not agree.

use super::collective::{common_side, needs_all, operation};
use super::dump::Entry;
use super::groups::{GroupView, Member};
use super::{Difference, Disagreement};
use std::collections::{BTreeMap, BTreeSet};

/// What a rank called, as far as it must be the same on all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    /// Several where they were coalesced.
    operations: Vec<String>,
    elements: Option<u64>,
    dtype: Option<String>,
}

pub(super) fn disagreements(views: &[GroupView<'_>]) -> Vec<Disagreement> {
    let mut all = Vec::new();
    for view in views {
        let missing = view.missing();
        let before = missing.as_ref().map_or(u64::MAX, |it| it.sequence);
        // What comes behind a collective that ranks called differently follows from it.
        let first = view.differing().filter(|it| it.sequence <= before).or(missing);
        all.extend(first.or_else(|| view.unknown()).or_else(|| view.inside()));
        all.extend(view.not_completed());
    }
    waiting_elsewhere(views, &mut all);
    all.sort_by_key(|it| (it.created_ns.unwrap_or(u64::MAX), it.what));
    all
}

impl Call {
    fn from_entries(entries: &[&Entry]) -> Call {
        let mut ordered = entries.to_vec();
        ordered.sort_by_key(|entry| entry.op);
        let operations = ordered.iter().map(|entry| operation(&entry.name).to_owned()).collect();
        let side = match ordered.as_slice() {
            [one] => common_side(operation(&one.name), one),
            _ => None,
        };
        let dtype = side.and_then(|side| side.dtype.as_deref()).map(str::to_owned);
        Call { operations, elements: side.and_then(|side| side.elements), dtype }
    }

    fn operation(&self) -> String {
        match self.operations.as_slice() {
            [one] => one.clone(),
            [first, .., last] => format!("{first}..{last}"),
            [] => String::new(),
        }
    }

    fn size(&self) -> String {
        let elements = self.elements.map_or_else(|| "unknown".to_owned(), |elements| elements.to_string());
        format!("{elements} {}", self.dtype.as_deref().unwrap_or("elements"))
    }
}

impl GroupView<'_> {
    fn disagreement(&self, what: Difference, sequence: u64, operation: String) -> Disagreement {
        let at = self.members.values().filter_map(|member| member.collectives.get(&sequence)).flatten();
        Disagreement {
            group: self.name.to_string(),
            description: self.desc.to_string(),
            size: self.ranks.len() as u64,
            sequence,
            operation,
            what,
            ranks: Vec::new(),
            others: Vec::new(),
            unknown: self.unknown_ranks(),
            is_decided: false,
            detail: String::new(),
            waiting_elsewhere: Vec::new(),
            created_ns: at.filter_map(|entry| entry.created_ns).min(),
        }
    }

    fn unknown_ranks(&self) -> Vec<u64> {
        let known = |rank: &u64| self.members.get(rank).is_some_and(|member| member.entered.is_some());
        self.ranks.iter().copied().filter(|rank| !known(rank)).collect()
    }

    fn by_entered(&self, wanted: impl Fn(u64) -> bool) -> Vec<u64> {
        let all = self.members.iter().filter(|(_, member)| member.entered.is_some_and(&wanted));
        all.map(|(rank, _)| *rank).collect()
    }

    fn operation_at(&self, sequence: u64) -> Option<String> {
        let mut at = self.members.values().filter_map(|member| member.collectives.get(&sequence));
        at.next().map(|entries| Call::from_entries(entries).operation())
    }

    /// Ranks that did not enter what others entered.
    fn missing(&self) -> Option<Disagreement> {
        let entered = self.members.values().filter_map(|member| member.entered);
        let (first, last) = (entered.clone().min()?, entered.max()?);
        if first == last {
            return None;
        }
        let sequence = first + 1;
        let operation = self.operation_at(sequence)?;
        let mut found = self.disagreement(Difference::Missing, sequence, operation);
        found.ranks = self.by_entered(|entered| entered < sequence);
        found.others = self.by_entered(|entered| entered >= sequence);
        // What one completed all have entered: the dumps are of different times then.
        let is_over = needs_all(&found.operation)
            && self.members.values().any(|member| member.completed.is_some_and(|it| it >= sequence));
        found.is_decided = !is_over && found.others.len() * 2 > self.ranks.len();
        found.detail = match (is_over, found.is_decided) {
            (true, _) => "some completed it: dumps of different times".to_owned(),
            (false, true) => String::new(),
            (false, false) => "no majority, no culprit".to_owned(),
        };
        Some(found)
    }

    /// Ranks of which all that are known entered the same, and wait.
    fn unknown(&self) -> Option<Disagreement> {
        let unknown = self.unknown_ranks();
        let open = self.members.values().filter_map(|member| member.pending().next()).min_by_key(|it| it.0);
        let (sequence, entry) = open.filter(|_| !unknown.is_empty())?;
        let name = operation(&entry.name).to_owned();
        let mut found = self.disagreement(Difference::Unknown, sequence, name);
        found.others = self.by_entered(|entered| entered >= sequence);
        Some(found)
    }

    /// Ranks that called something else under the same number.
    fn differing(&self) -> Option<Disagreement> {
        let mut all: BTreeMap<u64, Vec<(u64, &Vec<&Entry>)>> = BTreeMap::new();
        for (rank, member) in &self.members {
            for (sequence, entries) in &member.collectives {
                all.entry(*sequence).or_default().push((*rank, entries));
            }
        }
        all.into_iter().find_map(|(sequence, calls)| self.differing_at(sequence, &calls))
    }

    fn differing_at(&self, sequence: u64, entries: &[(u64, &Vec<&Entry>)]) -> Option<Disagreement> {
        let mut calls: BTreeMap<Call, Vec<u64>> = BTreeMap::new();
        for (rank, entries) in entries {
            calls.entry(Call::from_entries(entries)).or_default().push(*rank);
        }
        if calls.len() < 2 {
            return self.total(sequence, entries);
        }
        let types: BTreeSet<&Vec<String>> = calls.keys().map(|call| &call.operations).collect();
        let is_type = types.len() > 1;
        let what = if is_type { Difference::Type } else { Difference::Size };
        let text = |call: &Call| if is_type { call.operation() } else { call.size() };
        // Sizes of calls of different types say nothing.
        let mut sets: BTreeMap<String, (Vec<u64>, &Call)> = BTreeMap::new();
        for (call, ranks) in &calls {
            sets.entry(text(call)).or_insert_with(|| (Vec::new(), call)).0.extend(ranks);
        }
        let majority = sets.iter().find(|(_, (ranks, _))| ranks.len() * 2 > self.ranks.len());
        let reference = majority.or_else(|| sets.iter().max_by_key(|(_, (ranks, _))| ranks.len()))?;
        let mut found = self.disagreement(what, sequence, reference.1.1.operation());
        found.is_decided = majority.is_some();
        found.others.clone_from(&reference.1.0);
        let others: Vec<(&String, &Vec<u64>)> = sets
            .iter()
            .filter(|(text, _)| *text != reference.0)
            .map(|(text, (ranks, _))| (text, ranks))
            .collect();
        found.ranks = others.iter().flat_map(|(_, ranks)| ranks.iter().copied()).collect();
        found.ranks.sort_unstable();
        let texts: Vec<&str> = others.iter().map(|(text, _)| text.as_str()).collect();
        let swapped = if is_type && self.is_swapped(&found, sequence) { ", the next is swapped" } else { "" };
        found.detail = format!("{}, others {}{swapped}", texts.join(" or "), reference.0);
        Some(found)
    }

    /// Whether the odd ranks call next what the others call now, and the other way round.
    fn is_swapped(&self, found: &Disagreement, sequence: u64) -> bool {
        let call = |rank: &u64, sequence: u64| {
            let entries = self.members.get(rank)?.collectives.get(&sequence)?;
            Some(Call::from_entries(entries).operations)
        };
        let (Some(odd), Some(other)) = (found.ranks.first(), found.others.first()) else { return false };
        let (odd_next, other_next) = (call(odd, sequence + 1), call(other, sequence + 1));
        odd_next.is_some() && odd_next == call(other, sequence) && other_next == call(odd, sequence)
    }

    /// What all ranks send is what all receive.
    fn total(&self, sequence: u64, calls: &[(u64, &Vec<&Entry>)]) -> Option<Disagreement> {
        if calls.len() < self.ranks.len() {
            return None;
        }
        let mut sums = (0_u64, 0_u64);
        for (_, entries) in calls {
            let [entry] = entries.as_slice() else { return None };
            if operation(&entry.name) != "all_to_all" {
                return None;
            }
            let (input, output) = (entry.input.elements?, entry.output.elements?);
            sums = (sums.0.checked_add(input)?, sums.1.checked_add(output)?);
        }
        if sums.0 == sums.1 {
            return None;
        }
        let mut found = self.disagreement(Difference::Total, sequence, "all_to_all".to_owned());
        found.others = calls.iter().map(|(rank, _)| *rank).collect();
        found.detail = format!("all send {} elements and receive {}", sums.0, sums.1);
        Some(found)
    }

    /// A collective that all ranks entered and none completed.
    fn inside(&self) -> Option<Disagreement> {
        let open = self.members.values().filter_map(|member| member.pending().next()).min_by_key(|it| it.0);
        let (sequence, entry) = open.filter(|(sequence, _)| self.is_within(*sequence))?;
        let mut found = self.disagreement(Difference::Inside, sequence, operation(&entry.name).to_owned());
        found.others = self.ranks.to_vec();
        Some(found)
    }

    /// Whether all ranks entered it and none is known to have completed it.
    fn is_within(&self, sequence: u64) -> bool {
        self.ranks.iter().all(|rank| {
            let member = self.members.get(rank);
            member.is_some_and(|it| {
                it.entered.is_some_and(|entered| entered >= sequence)
                    && it.completed.is_some_and(|completed| completed < sequence)
            })
        })
    }

    /// Ranks where a collective is still open that others completed, though none can complete it alone.
    fn not_completed(&self) -> Option<Disagreement> {
        let last = self.members.values().filter_map(|member| member.completed).max()?;
        let is_behind = |member: &Member<'_>| member.completed.is_some_and(|completed| completed < last);
        let open = self.members.values().filter(|member| is_behind(member));
        let open = open
            .flat_map(Member::pending)
            .filter(|(sequence, entry)| *sequence <= last && needs_all(operation(&entry.name)));
        let (sequence, entry) = open.min_by_key(|(sequence, _)| *sequence)?;
        let name = operation(&entry.name).to_owned();
        let mut found = self.disagreement(Difference::NotCompleted, sequence, name);
        for (rank, member) in &self.members {
            match member.completed {
                Some(completed) if completed >= sequence => found.others.push(*rank),
                Some(_) => found.ranks.push(*rank),
                None => {}
            }
        }
        Some(found)
    }
}

/// A rank that did not come may itself wait for another, in another group: then it is not where it began.
fn waiting_elsewhere(views: &[GroupView<'_>], all: &mut [Disagreement]) {
    let missing = all.iter().filter(|it| it.what == Difference::Missing);
    let mut waiting: BTreeSet<u64> = missing.flat_map(|found| found.others.iter().copied()).collect();
    for view in views {
        let mut within: BTreeMap<u64, bool> = BTreeMap::new();
        for (rank, member) in &view.members {
            // Inside of a collective with all others: what it waits for is within that.
            let is_inside = member
                .oldest_open
                .is_some_and(|sequence| *within.entry(sequence).or_insert_with(|| view.is_within(sequence)));
            if is_inside || member.waits_for_peer {
                waiting.insert(*rank);
            }
        }
    }
    for found in all.iter_mut().filter(|it| it.what == Difference::Missing) {
        found.waiting_elsewhere = found.ranks.iter().copied().filter(|rank| waiting.contains(rank)).collect();
    }
}
