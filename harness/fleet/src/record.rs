//! What is kept of one node: of its hardware, under whatever name it has now.

use crate::event::Fall;
use crate::trend::Trend;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part that stands for all of a node.
pub(crate) const NODE: &str = "node";

/// After so many tries in a row without a measurement a node is no longer checked before others: it would take the budget of
/// those that can be measured.
pub(crate) const TRIES: u32 = 3;

/// What claims more was edited.
const MOST_CHECKS: u64 = 1 << 40;

/// Why a node is checked before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Due {
    /// It was out of the queue and is back.
    Maintenance,
    /// A node of its group has a fault.
    Neighbour,
}

/// Checks in a row in which the suite itself blamed a part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failures {
    pub(crate) count: u16,
    /// The code of the last one.
    pub(crate) code: String,
    pub(crate) is_alarm: bool,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// None where other hardware has it now, or where it left the inventory.
    pub(crate) name: Option<String>,
    /// The name with which it left the inventory: it is that node still if it comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<String>,
    /// The ids of parts by their places, as far as they are known.
    pub(crate) ids: BTreeMap<String, String>,
    pub(crate) group: Option<String>,
    /// When it was measured last.
    pub(crate) last_s: Option<u64>,
    /// When its evidence was looked at last.
    pub(crate) stepped_s: Option<u64>,
    /// When it was tried last without a measurement.
    pub(crate) tried_s: Option<u64>,
    /// Tries in a row without a measurement.
    #[serde(default)]
    pub(crate) tries: u32,
    /// Why the suite failed in its last check, where no node is blamed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unattributed: Option<String>,
    pub(crate) checks: u64,
    pub(crate) due: Option<Due>,
    /// Somebody has taken it out of the queue.
    pub(crate) is_out: bool,
    /// By test, then by part.
    pub(crate) trends: BTreeMap<String, BTreeMap<String, Trend>>,
    /// By part.
    pub(crate) failures: BTreeMap<String, Failures>,
}

impl Record {
    pub(crate) fn new(name: &str) -> Record {
        Record { name: Some(name.to_owned()), ..Record::default() }
    }

    /// `now_s` is the time of the last round.
    pub(crate) fn is_sound(&self, now_s: u64) -> bool {
        let is_past = |at: Option<u64>| at.is_none_or(|at| at <= now_s);
        is_past(self.last_s)
            && is_past(self.stepped_s)
            && is_past(self.tried_s)
            && self.checks <= MOST_CHECKS
            && self.trends.values().flatten().all(|(_, trend)| trend.is_sound())
    }

    fn trends(&self) -> impl Iterator<Item = (&String, &String, &Trend)> {
        self.trends.iter().flat_map(|(test, parts)| parts.iter().map(move |(part, it)| (test, part, it)))
    }

    /// Something speaks against it, and it is to be checked again soon.
    pub(crate) fn is_suspect(&self) -> bool {
        self.trends().any(|(_, _, trend)| trend.is_suspect())
            || self.failures.values().any(|it| it.count > 0 && !it.is_alarm)
    }

    /// The suite blames it, or a part of it, for that.
    pub(crate) fn fails_by(&self, code: &str) -> bool {
        self.failures.values().any(|it| it.code == code)
    }

    /// Of all of it or of a part, in that test.
    pub(crate) fn fell_in(&self, test: &str, of_node: bool) -> bool {
        let parts = self.trends.get(test).into_iter().flatten();
        parts
            .filter(|(part, _)| (part.as_str() == NODE) == of_node)
            .any(|(_, it)| it.is_suspect() || it.is_alarm())
    }

    pub(crate) fn has_alarm(&self) -> bool {
        self.trends().any(|(_, _, trend)| trend.is_alarm()) || self.failures.values().any(|it| it.is_alarm)
    }

    /// It can be compared with by others.
    pub(crate) fn is_control(&self) -> bool {
        let has_past = |parts: &BTreeMap<String, Trend>| parts.get(NODE).is_some_and(Trend::has_past);
        !self.is_suspect() && !self.has_alarm() && self.trends.values().any(has_past)
    }

    /// What lasts: alarms, or else suspicions.
    pub(crate) fn falls(&self, alarms: bool) -> impl Iterator<Item = Fall> + '_ {
        let node = self.name.clone().unwrap_or_default();
        let of_node = node.clone();
        let by_trend = self
            .trends()
            .filter(move |(_, _, it)| if alarms { it.is_alarm() } else { it.is_suspect() })
            .map(move |(test, part, it)| Fall {
                node: of_node.clone(),
                part: part.clone(),
                test: test.clone(),
                lower_by: it.lower_by(),
            });
        let by_failure =
            self.failures.iter().filter(move |(_, it)| it.count > 0 && it.is_alarm == alarms).map(
                move |(part, it)| Fall {
                    node: node.clone(),
                    part: part.clone(),
                    test: it.code.clone(),
                    lower_by: 0.0,
                },
            );
        by_trend.chain(by_failure)
    }

    /// What was found before somebody repaired it says nothing of it now.
    pub(crate) fn absolve(&mut self) {
        self.trends.values_mut().flat_map(BTreeMap::values_mut).for_each(Trend::absolve);
        self.failures.clear();
    }

    /// Parts are in other places now, each with its past: by the new place, where it was before. What is not among them, and
    /// stands in one of these places, is new.
    pub(crate) fn move_parts(&mut self, before: &BTreeMap<String, String>, new: &[String]) {
        fn moved<T>(of: &mut BTreeMap<String, T>, before: &BTreeMap<String, String>, new: &[String]) {
            let taken: Vec<(String, T)> =
                before.iter().filter_map(|(to, from)| Some((to.clone(), of.remove(from)?))).collect();
            before.keys().chain(new).for_each(|place| drop(of.remove(place)));
            of.extend(taken);
        }
        self.trends.values_mut().for_each(|parts| moved(parts, before, new));
        moved(&mut self.failures, before, new);
    }

    /// A clock that was set back: nothing is later than now.
    pub(crate) fn set_back(&mut self, now_s: u64) {
        for at in [&mut self.last_s, &mut self.stepped_s, &mut self.tried_s] {
            *at = at.map(|at| at.min(now_s));
        }
    }
}
