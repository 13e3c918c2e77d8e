//! Groups over all dumps: a group is a name and a set of ranks, and each member's place in it is the number of the last
//! collective that it entered.

use super::collective::is_pending;
use super::dump::{Dump, Entry, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A group as all its members recorded it.
#[derive(Debug)]
pub(super) struct GroupView<'a> {
    pub name: Rc<str>,
    pub desc: Rc<str>,
    pub ranks: Rc<[u64]>,
    /// Those with a dump.
    pub members: BTreeMap<u64, Member<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Member<'a> {
    /// Collectives by their number; several where they were coalesced.
    pub collectives: BTreeMap<u64, Vec<&'a Entry>>,
    /// The last that it entered; none where the dump does not show it.
    pub entered: Option<u64>,
    /// The last that it completed.
    pub completed: Option<u64>,
    pg_id: Option<u64>,
    has_p2p: bool,
    /// The number of the rank's oldest open operation, where that is a collective of this group.
    pub oldest_open: Option<u64>,
    /// Whether that is a send or a receive of this group.
    pub waits_for_peer: bool,
}

impl Member<'_> {
    pub(super) fn pending(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let all =
            self.collectives.iter().flat_map(|(sequence, all)| all.iter().map(move |it| (*sequence, *it)));
        all.filter(|(_, entry)| is_pending(entry))
    }
}

pub(super) fn views(dumps: &BTreeMap<u64, Dump>) -> Vec<GroupView<'_>> {
    let mut views: BTreeMap<(Rc<str>, Rc<[u64]>), GroupView<'_>> = BTreeMap::new();
    for (rank, dump) in dumps {
        let mut members: BTreeMap<&str, Member<'_>> = BTreeMap::new();
        for entry in &dump.entries {
            members.entry(&entry.group).or_default().add(entry);
        }
        // The ring may have lost the first calls of the batch that it begins in.
        let is_cut = |it: &&Entry| it.record > 0 && !it.is_p2p && (it.is_part || it.ends_batch());
        if let Some(first) = dump.entries.first().filter(is_cut)
            && let Some(member) = members.get_mut(&*first.group)
            && member.collectives.len() > 1
        {
            member.collectives.remove(&first.sequence);
        }
        let oldest = dump.entries.iter().find(|entry| is_pending(entry));
        for (name, group) in &dump.groups {
            // A dump whose rank is in none of its groups is reported elsewhere.
            if group.ranks.len() < 2 || !group.ranks.contains(rank) {
                continue;
            }
            let mut member = members.remove(&**name).unwrap_or_default();
            let oldest = oldest.filter(|entry| entry.group == *name);
            member.oldest_open = oldest.filter(|entry| !entry.is_p2p).map(|entry| entry.sequence);
            member.waits_for_peer = oldest.is_some_and(|entry| entry.is_p2p);
            let view = views.entry((Rc::clone(name), Rc::clone(&group.ranks))).or_insert_with(|| GroupView {
                name: Rc::clone(name),
                desc: Rc::clone(&group.desc),
                ranks: Rc::clone(&group.ranks),
                members: BTreeMap::new(),
            });
            view.members.insert(*rank, member);
        }
    }
    let mut views: Vec<GroupView<'_>> = views.into_values().collect();
    views.iter_mut().for_each(|view| view.locate(dumps));
    views
}

impl<'a> Member<'a> {
    /// In the order of the records. Numbers that restart are of a second communicator of that name.
    fn add(&mut self, entry: &'a Entry) {
        if entry.is_p2p {
            self.has_p2p = true;
            return;
        }
        if self.collectives.last_key_value().is_some_and(|(last, _)| entry.sequence < *last) {
            self.collectives.clear();
        }
        self.pg_id = entry.pg_id;
        self.collectives.entry(entry.sequence).or_default().push(entry);
    }
}

impl GroupView<'_> {
    fn locate(&mut self, dumps: &BTreeMap<u64, Dump>) {
        for member in self.members.values_mut() {
            member.entered = member.collectives.last_key_value().map(|(last, _)| *last);
            let first_open = member.pending().map(|(sequence, _)| sequence).next();
            member.completed = first_open.map_or(member.entered, |open| open.checked_sub(1));
        }
        let Some(statuses) = self.statuses(dumps) else { return };
        // All entered what one completed.
        let completed = self.members.values().filter_map(|member| member.completed).max();
        for (rank, status) in statuses {
            let Some(member) = self.members.get_mut(&rank) else { continue };
            let entered = u64::try_from(status.enqueued).unwrap_or(0);
            if member.entered.is_none() && completed.is_some_and(|completed| entered < completed) {
                continue;
            }
            member.entered = Some(entered);
            member.completed = Some(u64::try_from(status.completed).unwrap_or(0));
        }
    }

    /// How far each member got by its own count, where that count is of this group: it is kept by the process's number of
    /// the group, and counts sends and receives too.
    fn statuses(&self, dumps: &BTreeMap<u64, Dump>) -> Option<BTreeMap<u64, Status>> {
        let numbers: BTreeSet<u64> = self.members.values().filter_map(|member| member.pg_id).collect();
        let common = numbers.first().copied().filter(|_| numbers.len() == 1);
        if self.members.values().any(|member| member.has_p2p) {
            return None;
        }
        let mut statuses = BTreeMap::new();
        for (rank, member) in &self.members {
            let Some(number) = member.pg_id.or(common) else { continue };
            let Some(status) = dumps.get(rank).and_then(|dump| dump.status.get(&number)) else { continue };
            // The last collective is in the ring where any is: another number counts something else.
            if member.entered.is_some_and(|entered| u64::try_from(status.enqueued) != Ok(entered)) {
                return None;
            }
            statuses.insert(*rank, *status);
        }
        Some(statuses)
    }
}
