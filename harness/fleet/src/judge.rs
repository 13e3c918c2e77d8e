//! What the checks of a round say: each part beside the other parts of its node, each node beside the others of the round,
//! both by their own past.

use crate::choice::APART_S;
use crate::event::{Event, Fall};
use crate::record::{Due, NODE, Record};
use crate::state::{Fleet, Terms};
use crate::trend::{Change, Limits};
use std::collections::{BTreeMap, BTreeSet};

/// A part is compared with the others of its node where there are so many in all.
const FEWEST_PARTS: usize = 4;
/// A node is compared with so many others of the round.
const FEWEST_OTHERS: usize = 2;
/// Checks in a row in which a part fails.
const FAILURES: u16 = 3;
/// In so many nodes, or one of ten, a fall is that of the fleet.
const FLEET: usize = 2;

/// A part that the suite itself blames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Such as `gpu3`, or `node`.
    pub part: String,
    /// Such as `HRN-GPU-SLOW`.
    pub code: String,
}

/// What one check measured of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Its name in the inventory.
    pub node: String,
    /// Logarithms by test and part, more is better; the part of a number of all of it is `node`.
    pub values: BTreeMap<String, BTreeMap<String, f64>>,
    /// What the suite blames.
    pub failures: Vec<Failure>,
}

/// A test of a round: what each node has of it.
struct Measured<'a> {
    test: &'a str,
    /// Record, level of the node, and its parts as deviations from the level.
    nodes: Vec<(usize, f64, BTreeMap<&'a str, f64>)>,
}

impl Fleet {
    /// Takes the checks of a round. Nodes whose check was no measurement are not among them.
    pub fn take(&mut self, now_s: u64, readings: &[Reading], terms: &Terms) -> Vec<Event> {
        let mut events = Vec::new();
        // Checks that follow each other closely are disturbed alike: only the first of them counts.
        let all: Vec<(usize, &Reading)> =
            readings.iter().map(|reading| (self.record(&reading.node), reading)).collect();
        let counted: Vec<(usize, &Reading)> = all
            .into_iter()
            .filter(|(at, _)| {
                let stepped = self.records.get(*at).and_then(|record| record.stepped_s);
                stepped.is_none_or(|last| last.saturating_add(APART_S) <= now_s)
            })
            .collect();
        for reading in readings {
            let at = self.record(&reading.node);
            if let Some(record) = self.records.get_mut(at) {
                record.last_s = Some(now_s);
                record.checks += 1;
                record.tries = 0;
                record.due = None;
            }
        }
        let tests = counted.iter().map(|(_, reading)| tests_of(reading)).max().unwrap_or_default();
        let limits = self.limits(terms, tests);
        let names: BTreeSet<&str> =
            counted.iter().flat_map(|(_, reading)| reading.values.keys()).map(String::as_str).collect();
        for test in names {
            let measured = measured(test, &counted);
            self.judge_nodes(&measured, limits, &mut events);
            self.judge_parts(&measured, limits, &mut events);
            self.judge_fleet(test, limits.1, &mut events);
        }
        for (at, reading) in &counted {
            if let Some(record) = self.records.get_mut(*at) {
                record.stepped_s = Some(now_s);
                count_failures(record, reading, &mut events);
            }
            self.refresh(*at);
        }
        self.judge_failures(&mut events);
        self.mark_neighbours(&events);
        events
    }

    /// Nodes whose check was no measurement: nothing is known of them that was not known before.
    pub fn tried(&mut self, now_s: u64, nodes: &[String]) {
        for node in nodes {
            let at = self.record(node);
            if let Some(record) = self.records.get_mut(at) {
                record.tried_s = Some(now_s);
                record.tries = record.tries.saturating_add(1);
            }
        }
    }

    /// Whether so many nodes fell in a test that none of them is to blame.
    fn is_fleetwide(&self, test: &str, of_node: bool) -> bool {
        self.is_of_many(|record| record.fell_in(test, of_node))
    }

    fn is_of_many(&self, fell: impl Fn(&Record) -> bool) -> bool {
        self.count_fallen(fell) > FLEET.max(self.by_name.len() / 10)
    }

    fn count_fallen(&self, fell: impl Fn(&Record) -> bool) -> usize {
        self.fallen.iter().filter_map(|at| self.records.get(*at)).filter(|record| fell(record)).count()
    }

    fn judge_nodes(&mut self, measured: &Measured<'_>, limits: (f64, f64), events: &mut Vec<Event>) {
        let test = measured.test;
        let is_fleetwide = self.is_fleetwide(test, true);
        let mut pool = self.of_nodes.remove(test).unwrap_or_default();
        // By how much each node with a past differs from it.
        let deviations: Vec<(usize, f64)> = measured
            .nodes
            .iter()
            .filter_map(|(at, level, _)| {
                let record = self.records.get(*at)?;
                let trend = record.trends.get(test)?.get(NODE)?;
                let counts = trend.has_past() && !trend.is_alarm() && !trend.is_suspect();
                counts.then(|| (*at, trend.deviation(*level)))
            })
            .collect();
        if deviations.len() > FEWEST_OTHERS {
            pool.shift = median(deviations.iter().map(|(_, deviation)| *deviation));
        }
        for (at, level, _) in &measured.nodes {
            let others: Vec<f64> =
                deviations.iter().filter(|(other, _)| other != at).map(|(_, deviation)| *deviation).collect();
            let has_others = others.len() >= FEWEST_OTHERS;
            let shift = if has_others { median(others.into_iter()) } else { pool.shift };
            let may_alarm = has_others && !is_fleetwide;
            let limits = Limits { alarm: limits.0, suspect: limits.1, may_alarm, is_fleetwide };
            let Some(record) = self.records.get_mut(*at) else { continue };
            if step(record, (test, NODE), level - shift, &mut pool, limits, events) {
                self.refresh(*at);
            }
        }
        self.of_nodes.insert(test.to_owned(), pool);
    }

    fn judge_parts(&mut self, measured: &Measured<'_>, limits: (f64, f64), events: &mut Vec<Event>) {
        let test = measured.test;
        let is_fleetwide = self.is_fleetwide(test, false);
        let limits = Limits { alarm: limits.0, suspect: limits.1, may_alarm: !is_fleetwide, is_fleetwide };
        let mut pool = self.of_parts.remove(test).unwrap_or_default();
        for (at, _, parts) in &measured.nodes {
            let Some(record) = self.records.get_mut(*at) else { continue };
            let mut is_new = false;
            for (part, value) in parts {
                is_new |= step(record, (test, part), *value, &mut pool, limits, events);
            }
            if is_new {
                self.refresh(*at);
            }
        }
        self.of_parts.insert(test.to_owned(), pool);
    }

    fn judge_fleet(&mut self, test: &str, suspect: f64, events: &mut Vec<Event>) {
        let (nodes, parts) = (self.is_fleetwide(test, true), self.is_fleetwide(test, false));
        if !nodes && !parts {
            self.fell.remove(test);
            return;
        }
        for at in &self.fallen {
            let Some(record) = self.records.get_mut(*at) else { continue };
            let alarms: Vec<Fall> = record.falls(true).filter(|fall| fall.test == test).collect();
            for (part, trend) in record.trends.get_mut(test).into_iter().flatten() {
                let is_fleetwide = if part == NODE { nodes } else { parts };
                if is_fleetwide && trend.withdraw(suspect) {
                    withdraw(alarms.iter().find(|fall| fall.part == *part), events);
                }
            }
        }
        if self.fell.insert(test.to_owned()) {
            let fell = |record: &Record| record.fell_in(test, true) || record.fell_in(test, false);
            events.push(Event::FleetFell { test: test.to_owned(), nodes: self.count_fallen(fell) });
        }
    }

    /// What the suite blames many nodes for is no failure of one of them.
    fn judge_failures(&mut self, events: &mut Vec<Event>) {
        let failing = self.fallen.iter().filter_map(|at| self.records.get(*at));
        let codes: BTreeSet<String> =
            failing.flat_map(|record| record.failures.values().map(|it| it.code.clone())).collect();
        self.fell.retain(|test| !is_code(test) || codes.contains(test));
        for code in codes {
            let is_fleetwide = self.is_of_many(|record| record.fails_by(&code));
            for at in &self.fallen {
                let Some(record) = self.records.get_mut(*at) else { continue };
                let node = record.name.clone().unwrap_or_default();
                for (part, it) in record.failures.iter_mut().filter(|(_, it)| it.code == code) {
                    let is_alarm = it.count >= FAILURES && !is_fleetwide;
                    let fall =
                        || Fall { node: node.clone(), part: part.clone(), test: code.clone(), lower_by: 0.0 };
                    match (it.is_alarm, is_alarm) {
                        (false, true) => events.push(Event::Alarm(fall())),
                        (true, false) => withdraw(Some(&fall()), events),
                        _ => {}
                    }
                    it.is_alarm = is_alarm;
                }
            }
            if !is_fleetwide {
                self.fell.remove(&code);
            } else if self.fell.insert(code.clone()) {
                let nodes = self.count_fallen(|record| record.fails_by(&code));
                events.push(Event::FleetFell { test: code, nodes });
            }
        }
    }

    /// On which of the nodes that were checked the suite failed without a culprit, and why.
    pub fn unattributed(&mut self, checked: &[String], why: &BTreeMap<String, String>) -> Vec<Event> {
        let had = self.unattributed_nodes();
        for node in checked {
            let at = self.record(node);
            if let Some(record) = self.records.get_mut(at) {
                record.unattributed = why.get(node).cloned();
            }
        }
        let has = self.unattributed_nodes();
        let first = has.iter().find(|node| !had.contains(node)).and_then(|node| why.get(node));
        match first {
            Some(why) => vec![Event::Unattributed { nodes: has, why: why.clone() }],
            None if has.is_empty() && !had.is_empty() => vec![Event::Attributed],
            None => Vec::new(),
        }
    }

    /// Nodes on which the suite failed in their last check, and blamed none of them.
    pub fn unattributed_nodes(&self) -> Vec<String> {
        let of_name = |(name, at): (&String, &usize)| {
            self.records.get(*at)?.unattributed.is_some().then(|| name.clone())
        };
        self.by_name.iter().filter_map(of_name).collect()
    }

    fn mark_neighbours(&mut self, events: &[Event]) {
        for event in events {
            let Event::Alarm(fall) = event else { continue };
            let Some(group) = self.named(&fall.node).and_then(|record| record.group.clone()) else {
                continue;
            };
            for record in &mut self.records {
                let is_other = record.name.as_deref() != Some(&fall.node);
                if is_other && record.group.as_deref() == Some(&group) && record.due.is_none() {
                    record.due = Some(Due::Neighbour);
                }
            }
        }
    }
}

/// Numbers that a check looks at.
fn tests_of(reading: &Reading) -> usize {
    let of_test =
        |parts: &BTreeMap<String, f64>| if parts.len() < FEWEST_PARTS { 1 } else { parts.len() + 1 };
    reading.values.values().map(of_test).sum()
}

fn measured<'a>(test: &'a str, counted: &[(usize, &'a Reading)]) -> Measured<'a> {
    let nodes = counted.iter().filter_map(|(at, reading)| {
        let parts = reading.values.get(test)?;
        let finite = || parts.iter().filter(|(_, value)| value.is_finite());
        if parts.is_empty() || finite().count() != parts.len() {
            return None;
        }
        let level = median(finite().map(|(_, value)| *value));
        let deviations: BTreeMap<&str, f64> = match parts.len() < FEWEST_PARTS {
            true => BTreeMap::new(),
            false => finite()
                .filter(|(part, _)| part.as_str() != NODE)
                .map(|(part, value)| (part.as_str(), value - level))
                .collect(),
        };
        Some((*at, level, deviations))
    });
    Measured { test, nodes: nodes.collect() }
}

/// Whether it brought about something.
fn step(
    record: &mut Record,
    (test, part): (&str, &str),
    value: f64,
    pool: &mut crate::pool::Pool,
    limits: Limits,
    events: &mut Vec<Event>,
) -> bool {
    let parts = match record.trends.get_mut(test) {
        Some(parts) => parts,
        None => record.trends.entry(test.to_owned()).or_default(),
    };
    let trend = match parts.get_mut(part) {
        Some(trend) => trend,
        None => parts.entry(part.to_owned()).or_default(),
    };
    let before = trend.lower_by();
    let change = trend.step(value, pool, limits);
    let lower_by = if change == Change::Calm { before } else { trend.lower_by() };
    if change == Change::None {
        return false;
    }
    let node = record.name.clone().unwrap_or_default();
    let fall = Fall { node, part: part.to_owned(), test: test.to_owned(), lower_by };
    match change {
        Change::None => {}
        Change::Suspect => events.push(Event::Suspected(fall)),
        Change::Alarm => events.push(Event::Alarm(fall)),
        Change::Calm => events.push(Event::Cleared(fall)),
    }
    true
}

/// What fails in one check, and not in the next, was a disturbance.
fn count_failures(record: &mut Record, reading: &Reading, events: &mut Vec<Event>) {
    let node = record.name.clone().unwrap_or_default();
    let fall = |part: &str, code: &str| Fall {
        node: node.clone(),
        part: part.to_owned(),
        test: code.to_owned(),
        lower_by: 0.0,
    };
    record.failures.retain(|part, it| {
        let fails = reading.failures.iter().any(|failure| failure.part == *part);
        if !fails {
            events.push(Event::Cleared(fall(part, &it.code)));
        }
        fails
    });
    for failure in &reading.failures {
        let it = record.failures.entry(failure.part.clone()).or_default();
        it.code.clone_from(&failure.code);
        it.count = it.count.saturating_add(1);
        if it.count == 1 {
            events.push(Event::Suspected(fall(&failure.part, &failure.code)));
        }
    }
}

/// Codes of the suite stand beside names of tests.
fn is_code(test: &str) -> bool {
    test.starts_with("HRN-")
}

/// An alarm of the same round was none yet.
fn withdraw(alarm: Option<&Fall>, events: &mut Vec<Event>) {
    let Some(alarm) = alarm else { return };
    let same = |event: &Event| matches!(event, Event::Alarm(fall) if fall == alarm);
    match events.iter().position(same) {
        Some(at) => drop(events.remove(at)),
        None => events.push(Event::Withdrawn(alarm.clone())),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = values.len() / 2;
    match (values.len() % 2, values.get(at)) {
        (0, Some(upper)) => values.get(at.wrapping_sub(1)).map_or(*upper, |lower| (lower + upper) / 2.0),
        (_, Some(middle)) => *middle,
        _ => 0.0,
    }
}
