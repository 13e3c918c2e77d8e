//! All that is known of a fleet, from one check to the next and from one process to its successor.

use crate::budget::Spent;
use crate::event::{Event, Fall};
use crate::pool::Pool;
use crate::record::{Due, Record, TRIES};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The declared rate of false alarms: of 1,000 nodes in a year, for numbers that fall. The limits are those
/// of half of it.
pub(crate) const FALSE_ALARMS: f64 = 1.0;
const YEAR_S: f64 = 365.25 * 86_400.0;
/// Hardware that had no name for so long is forgotten.
const KEPT_S: u64 = 400 * 86_400;
/// Of a check that is a measurement of a node still.
const RECENT_S: u64 = 30 * 86_400;
/// Of a node that may be suspected once in so many checks, whatever is measured of it.
const CHECKS_PER_SUSPICION: f64 = 20.0;

/// What checks may cost, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Node-hours of checks, as a fraction of those of the inventory.
    pub budget: f64,
    /// Of the inventory.
    pub nodes: usize,
    /// What a check of a node costs where none was made yet, in seconds.
    pub check_s: f64,
    /// Jobs of a check span nodes, so that one may make another look bad.
    pub spans: bool,
    /// Of the order of nodes that are due alike.
    pub seed: u64,
}

/// All that is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    pub(crate) records: Vec<Record>,
    /// By test, of whole nodes.
    pub(crate) of_nodes: BTreeMap<String, Pool>,
    /// By test, of parts among those of their node.
    pub(crate) of_parts: BTreeMap<String, Pool>,
    pub(crate) spent: Spent,
    /// Of a node's check, in seconds; 0 before the first.
    pub(crate) check_s: f64,
    /// Tests in which many nodes fell alike.
    pub(crate) fell: BTreeSet<String>,
    /// By name; made from `records`.
    #[serde(skip)]
    pub(crate) by_name: BTreeMap<String, usize>,
    /// Records with a suspicion or an alarm; made from `records`.
    #[serde(skip)]
    pub(crate) fallen: BTreeSet<usize>,
}

/// How much of the fleet is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coverage {
    /// Nodes of the inventory.
    pub nodes: usize,
    /// Measured within the last 30 days.
    pub recent: usize,
    /// Never measured.
    pub never: usize,
    /// Seconds since the check of the node that was measured longest ago.
    pub oldest_s: u64,
    /// Enough checks to see a fall.
    pub with_past: usize,
    /// Checks of nodes so far.
    pub checks: u64,
    /// Nodes whose last tries, three in a row at least, gave no measurement.
    pub tried_in_vain: Vec<String>,
    /// Node-hours of the last seven days, and what the budget allows in them.
    pub node_hours: (f64, f64),
}

impl Fleet {
    /// As it was written; what is derived is made again. False where it contradicts itself, or holds a
    /// later time than that of the last round.
    pub fn restore(&mut self, now_s: u64) -> bool {
        let count = self.records.iter().filter(|record| record.name.is_some()).count();
        self.index();
        self.by_name.len() == count
            && self.records.iter().all(|record| record.is_sound(now_s))
            && self.of_nodes.values().chain(self.of_parts.values()).all(Pool::is_sound)
            && self.spent.is_sound(now_s)
            && self.check_s.is_finite()
            && self.check_s >= 0.0
    }

    /// A clock that was set back: what is later counts as now, so that no node waits for the clock to come there again.
    pub fn set_back(&mut self, now_s: u64) {
        self.records.iter_mut().for_each(|record| record.set_back(now_s));
        self.spent.set_back(now_s);
    }

    /// Nodes of the inventory, with their groups: those that are new are known from now on. Those that are gone lose their
    /// name, and get it back with their past and their alarms if they return.
    pub fn inventory<'a>(
        &mut self,
        now_s: u64,
        nodes: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Vec<Event> {
        let nodes: BTreeMap<&str, Option<&str>> = nodes.into_iter().collect();
        let mut events = Vec::new();
        for record in &mut self.records {
            if record.name.as_deref().is_some_and(|name| !nodes.contains_key(name)) {
                events.extend(record.falls(true).map(Event::Left));
                record.left = record.name.take();
            }
        }
        let mut free: BTreeSet<&str> =
            nodes.keys().copied().filter(|name| !self.by_name.contains_key(*name)).collect();
        for record in &mut self.records {
            if record.name.is_none() && record.left.as_deref().is_some_and(|name| free.remove(name)) {
                record.name = record.left.take();
                events.extend(record.falls(true).map(Event::Returned));
            }
        }
        self.records.retain(|record| {
            record.name.is_some() || record.last_s.is_some_and(|last| last.saturating_add(KEPT_S) > now_s)
        });
        self.fallen.clear();
        self.index();
        for (name, group) in nodes {
            let at = self.record(name);
            if let Some(record) = self.records.get_mut(at) {
                record.group = group.map(str::to_owned);
            }
        }
        events
    }

    pub(crate) fn index(&mut self) {
        let named = self.records.iter().enumerate();
        self.by_name = named.filter_map(|(at, record)| Some((record.name.clone()?, at))).collect();
        (0..self.records.len()).for_each(|at| self.refresh(at));
    }

    /// Whether a record is among `fallen` is found out again.
    pub(crate) fn refresh(&mut self, at: usize) {
        let fell = |record: &Record| record.name.is_some() && (record.is_suspect() || record.has_alarm());
        match self.records.get(at).is_some_and(fell) {
            true => self.fallen.insert(at),
            false => self.fallen.remove(&at),
        };
    }

    /// The record of a node, which is made if need be.
    pub(crate) fn record(&mut self, name: &str) -> usize {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        self.records.push(Record::new(name));
        let at = self.records.len() - 1;
        self.by_name.insert(name.to_owned(), at);
        at
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Record> {
        self.records.get(*self.by_name.get(name)?)
    }

    /// Nodes that somebody took out of the queue, and nodes that are in it: those that came back are checked first, and
    /// what was found before does not count against them.
    pub fn queue(&mut self, out: &[String], within: &[String]) -> Vec<Event> {
        for name in out {
            let at = self.record(name);
            if let Some(record) = self.records.get_mut(at) {
                record.is_out = true;
            }
        }
        let mut events = Vec::new();
        for name in within {
            let at = self.record(name);
            let Some(record) = self.records.get_mut(at).filter(|record| record.is_out) else { continue };
            (record.is_out, record.due) = (false, Some(Due::Maintenance));
            (record.tries, record.unattributed) = (0, None);
            events.extend(record.falls(true).map(Event::Cleared));
            record.absolve();
            self.refresh(at);
        }
        events
    }

    /// What a check of a node costs, in seconds.
    pub fn cost_s(&self, terms: &Terms) -> f64 {
        if self.check_s > 0.0 { self.check_s } else { terms.check_s.max(1.0) }
    }

    /// Node-seconds that were spent on nodes, measured or not.
    pub fn charge(&mut self, now_s: u64, nodes: usize, node_s: f64) {
        if !node_s.is_finite() || node_s < 0.0 {
            return;
        }
        self.spent.add(now_s, node_s);
        let each = node_s / nodes.max(1) as f64;
        if nodes > 0 && each > 0.0 {
            self.check_s = if self.check_s > 0.0 { self.check_s + 0.1 * (each - self.check_s) } else { each };
        }
    }

    /// The evidence at which an alarm is raised, and a part is suspected: so that over all tests of all nodes, and as many
    /// checks as the budget pays for, the rate of false alarms is half of the declared one.
    pub(crate) fn limits(&self, terms: &Terms, tests: usize) -> (f64, f64) {
        let checks = (terms.budget * YEAR_S / self.cost_s(terms)).max(1.0);
        let tests = tests.max(1) as f64;
        (2.0 * tests * checks * 1000.0 / FALSE_ALARMS, CHECKS_PER_SUSPICION * tests)
    }

    /// What lasts.
    pub fn alarms(&self) -> Vec<Fall> {
        self.falls(true)
    }

    /// What is to be checked again.
    pub fn suspects(&self) -> Vec<Fall> {
        self.falls(false)
    }

    fn falls(&self, alarms: bool) -> Vec<Fall> {
        let named = self.by_name.values().filter_map(|at| self.records.get(*at));
        named.flat_map(|record| record.falls(alarms)).collect()
    }

    /// Tests in which many nodes fell alike.
    pub fn fell(&self) -> impl Iterator<Item = &str> {
        self.fell.iter().map(String::as_str)
    }

    /// How much of the fleet is known.
    pub fn coverage(&self, now_s: u64, terms: &Terms) -> Coverage {
        let mut coverage = Coverage { nodes: terms.nodes, ..Coverage::default() };
        for record in self.by_name.values().filter_map(|at| self.records.get(*at)) {
            coverage.checks += record.checks;
            if record.tries >= TRIES {
                coverage.tried_in_vain.extend(record.name.clone());
            }
            coverage.with_past += usize::from(record.trends.values().flatten().any(|(_, it)| it.has_past()));
            match record.last_s {
                None => coverage.never += 1,
                Some(last) => {
                    let age = now_s.saturating_sub(last);
                    coverage.oldest_s = coverage.oldest_s.max(age);
                    coverage.recent += usize::from(age <= RECENT_S);
                }
            }
        }
        let allowed = terms.budget * terms.nodes as f64 * 7.0 * 24.0;
        coverage.node_hours = (self.spent.in_window(now_s) / 3600.0, allowed);
        coverage
    }
}
