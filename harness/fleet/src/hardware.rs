//! Which hardware has the name of a node: its past goes with it, and a part's past with the part.

use crate::event::{Event, Fall};
use crate::record::{Due, Record};
use crate::state::Fleet;
use std::collections::{BTreeMap, BTreeSet};

impl Fleet {
    /// What the hardware of a node is now, by the ids of its parts. Alarms that are not those of the node any more, and those
    /// that came with its hardware, are reported.
    pub fn hardware(&mut self, name: &str, ids: &BTreeMap<String, String>) -> Vec<Event> {
        if ids.is_empty() {
            return Vec::new();
        }
        let before = self.alarms_of(name);
        let mut events = Vec::from_iter(self.place_hardware(name, ids));
        let after = self.alarms_of(name);
        events.extend(before.iter().filter(|fall| !after.contains(fall)).cloned().map(Event::Left));
        events.extend(after.iter().filter(|fall| !before.contains(fall)).cloned().map(Event::Returned));
        events
    }

    fn alarms_of(&self, name: &str) -> Vec<Fall> {
        self.named(name).into_iter().flat_map(|record| record.falls(true)).collect()
    }

    fn place_hardware(&mut self, name: &str, ids: &BTreeMap<String, String>) -> Option<Event> {
        let at = self.record(name);
        let record = self.records.get_mut(at)?;
        if is_most(&ids_of(record), ids) {
            let parts = replace_parts(record, ids);
            self.refresh(at);
            return (!parts.is_empty()).then(|| Event::Replaced { node: name.to_owned(), parts });
        }
        // Another machine has the name: one that was known under another or left the inventory, or a new one.
        let is_it = |record: &Record| record.name.is_none() && is_most(&ids_of(record), ids);
        let found = self.records.iter().position(is_it);
        let record = self.records.get_mut(at)?;
        let has_ids = !record.ids.is_empty();
        if !has_ids && found.is_none() {
            record.ids.clone_from(ids);
            return None;
        }
        let was_known = has_ids || record.checks > 0;
        let group = record.group.clone();
        record.name = None;
        match found.and_then(|found| self.records.get_mut(found)) {
            Some(found) => {
                replace_parts(found, ids);
                (found.name, found.left, found.group) = (Some(name.to_owned()), None, group);
                found.due = Some(Due::Maintenance);
                found.absolve();
            }
            None => self.records.push(Record { ids: ids.clone(), group, ..Record::new(name) }),
        }
        if !was_known {
            self.records.remove(at);
        }
        self.fallen.clear();
        self.index();
        Some(Event::Replaced { node: name.to_owned(), parts: Vec::new() })
    }
}

fn ids_of(record: &Record) -> BTreeSet<&str> {
    record.ids.values().map(String::as_str).collect()
}

/// Wherever they are: a driver may number them otherwise.
fn is_most(known: &BTreeSet<&str>, ids: &BTreeMap<String, String>) -> bool {
    let kept = ids.values().filter(|id| known.contains(id.as_str())).count();
    kept > 0 && kept * 2 >= ids.len().min(known.len())
}

/// Parts go with their pasts where they are now; gives the places of those that are new.
fn replace_parts(record: &mut Record, ids: &BTreeMap<String, String>) -> Vec<String> {
    let (mut moved, mut new) = (BTreeMap::new(), Vec::new());
    for (place, id) in ids {
        if record.ids.get(place) == Some(id) {
            continue;
        }
        match record.ids.iter().find(|(_, known)| *known == id) {
            Some((from, _)) => drop(moved.insert(place.clone(), from.clone())),
            None if record.ids.contains_key(place) => new.push(place.clone()),
            None => {}
        }
    }
    record.move_parts(&moved, &new);
    record.ids.retain(|_, known| !ids.values().any(|id| id == known));
    record.ids.extend(ids.iter().map(|(place, id)| (place.clone(), id.clone())));
    new
}
