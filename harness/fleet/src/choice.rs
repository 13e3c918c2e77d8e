//! Which idle nodes are checked next: suspects and their controls, nodes that came back, neighbours of faults, then those
//! whose last check is the oldest; as many as the budget pays for.

use crate::budget::Spent;
use crate::record::{Due, Record, TRIES};
use crate::state::{Fleet, Terms};

/// Between two checks of a node that count: what disturbs one is over by the next.
pub(crate) const APART_S: u64 = 2 * 3600;
/// A node that was tried without a measurement is not tried again at once.
const RETRY_S: u64 = 1800;
/// After each further try it is left alone for twice as long, so often at most: for a day and a third.
const RETRY_DOUBLED: u32 = 6;
/// Nodes beside a suspect, which are to do well.
const CONTROLS: usize = 2;
/// By how much a neighbour of a fault counts as older.
const NEIGHBOUR: u64 = 4;

/// Why a node is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Something speaks against it.
    Suspect,
    /// It is measured beside a suspect.
    Control,
    /// It was never measured.
    New,
    /// It was out of the queue.
    Maintenance,
    /// A node of its group has a fault.
    Neighbour,
    /// Its last check was so many seconds ago.
    Age(u64),
}

/// A node of the next check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name in the inventory.
    pub node: String,
    /// Why it, and not another.
    pub reason: Reason,
}

impl Fleet {
    /// The nodes of the next check; none where nothing is due or the budget is spent. `fewest` take part in a check.
    pub fn choose(&self, now_s: u64, idle: &[String], terms: &Terms, fewest: usize) -> Vec<Chosen> {
        let fewest = fewest.max(1);
        let cost = self.cost_s(terms);
        let (all, ordinary) = self.spent.left(now_s, terms.budget * terms.nodes as f64, cost * fewest as f64);
        let affordable = |left: f64| if left <= 0.0 { 0 } else { (left / cost + 1e-9) as usize };
        let mut ready: Vec<(&str, Option<&Record>)> = idle
            .iter()
            .map(|name| (name.as_str(), self.named(name)))
            .filter(|(_, record)| record.is_none_or(|record| is_ready(record, now_s)))
            .collect();
        ready.sort_by_key(|(name, record)| (order(*record, now_s), mix(terms.seed, name, now_s)));
        ready.dedup_by(|a, b| a.0 == b.0);
        let is_suspect = |record: &Option<&Record>| record.is_some_and(Record::is_suspect);
        let most_suspects = if terms.spans { 1 } else { usize::MAX };
        let suspects: Vec<&str> = ready
            .iter()
            .filter(|(_, it)| is_suspect(it))
            .map(|(name, _)| *name)
            .take(most_suspects)
            .collect();
        let mut chosen: Vec<Chosen> = Vec::new();
        if !suspects.is_empty() {
            let is_control = |record: &Option<&Record>| record.is_some_and(Record::is_control);
            let controls = ready.iter().filter(|(_, it)| is_control(it)).take(CONTROLS.max(fewest - 1));
            let mut controls: Vec<&str> = controls.map(|(name, _)| *name).collect();
            // Where none has a past yet, a suspect is checked beside others: it must not wait for these.
            for (name, _) in ready.iter().filter(|(_, it)| !is_suspect(it)).chain(&ready) {
                if controls.len() + 1 < fewest && !controls.contains(name) && suspects.first() != Some(name) {
                    controls.push(name);
                }
            }
            let most = affordable(all).saturating_sub(controls.len());
            let of = |names: &[&str], reason: &Reason| -> Vec<Chosen> {
                names.iter().map(|name| Chosen { node: (*name).to_owned(), reason: reason.clone() }).collect()
            };
            if most > 0 && most.min(suspects.len()) + controls.len() >= fewest {
                chosen.extend(of(suspects.get(..most.min(suspects.len())).unwrap_or(&[]), &Reason::Suspect));
                chosen.extend(of(&controls, &Reason::Control));
            }
        }
        let room = affordable(ordinary).saturating_sub(chosen.len());
        let others =
            ready.iter().filter(|(name, it)| !is_suspect(it) && !chosen.iter().any(|one| one.node == **name));
        let others: Vec<Chosen> = others
            .take(room)
            .map(|(name, record)| Chosen { node: (*name).to_owned(), reason: reason(*record, now_s) })
            .collect();
        chosen.extend(others);
        if chosen.len() < fewest { Vec::new() } else { chosen }
    }

    /// Whether the budget ever pays for a check.
    pub fn is_possible(&self, terms: &Terms, fewest: usize) -> bool {
        Spent::is_possible(terms.budget * terms.nodes as f64, self.cost_s(terms) * fewest.max(1) as f64)
    }
}

fn is_ready(record: &Record, now_s: u64) -> bool {
    let is_apart =
        |last: Option<u64>, apart| last.is_none_or(|last: u64| last.saturating_add(apart) <= now_s);
    let retry_s = RETRY_S << record.tries.saturating_sub(1).min(RETRY_DOUBLED);
    is_apart(record.last_s, APART_S) && is_apart(record.tried_s, retry_s)
}

fn reason(record: Option<&Record>, now_s: u64) -> Reason {
    match record {
        Some(record) => match (record.due, record.last_s) {
            (Some(Due::Maintenance), _) => Reason::Maintenance,
            (_, None) => Reason::New,
            (Some(Due::Neighbour), _) => Reason::Neighbour,
            (None, Some(last)) => Reason::Age(now_s.saturating_sub(last)),
        },
        None => Reason::New,
    }
}

/// Those of the smallest come first.
fn order(record: Option<&Record>, now_s: u64) -> (u8, u64) {
    let age = record.and_then(|record| record.last_s).map_or(u64::MAX, |last| now_s.saturating_sub(last));
    if let Some(tried) = record.filter(|record| record.tries >= TRIES) {
        let age = age.min(tried.tried_s.map_or(u64::MAX, |tried| now_s.saturating_sub(tried)));
        return (3, u64::MAX - age);
    }
    if record.is_some_and(Record::is_suspect) {
        return (0, u64::MAX - age);
    }
    match reason(record, now_s) {
        Reason::Maintenance => (1, 0),
        Reason::New => (2, 0),
        Reason::Neighbour => (3, u64::MAX - age.saturating_mul(NEIGHBOUR)),
        _ => (3, u64::MAX - age),
    }
}

/// So that nodes that are due alike do not always stand in the order of their names.
fn mix(seed: u64, name: &str, now_s: u64) -> u64 {
    let mut mixed = seed ^ now_s.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in name.bytes() {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        mixed ^= mixed >> 29;
    }
    mixed
}
