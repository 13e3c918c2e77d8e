//! The rounds of an isolation count as one run: alone, a round blames and clears by chance what it was made to try.

use super::past::{Past, Run};
use crate::isolate::outcome::IsolationOutcome;
use crate::isolate::round::Record;
use model::artefact::{Culprit, LeftOut};
use std::collections::{BTreeMap, BTreeSet};

/// An isolation, or as much of it as was run.
pub(super) struct Isolation<'a> {
    rounds: Vec<(&'a Run, &'a Record)>,
}

/// Every isolation by the index of its last round.
pub(super) fn by_last_round(past: &Past) -> BTreeMap<usize, Isolation<'_>> {
    let mut by_first: BTreeMap<&str, (usize, Isolation<'_>)> = BTreeMap::new();
    for (at, run) in past.runs.iter().enumerate() {
        let Some(record) = &run.round else { continue };
        let (last, isolation) =
            by_first.entry(&record.first).or_insert((at, Isolation { rounds: Vec::new() }));
        *last = at;
        isolation.rounds.push((run, record));
    }
    by_first.into_values().collect()
}

impl Isolation<'_> {
    /// What it concluded; nothing where it did not end.
    fn outcome(&self) -> Option<&IsolationOutcome> {
        self.rounds.iter().find_map(|(_, record)| record.outcome.as_ref())
    }

    /// The suite and the case that it ran on sets of nodes: what clears the parts that it names.
    pub(super) fn case(&self) -> (String, String) {
        let (run, record) = self.rounds[0];
        (run.plan().suites.first().cloned().unwrap_or_default(), record.asked.case.clone())
    }

    /// Its conclusion, and what its rounds say of nodes that the conclusion leaves open. A link lies on no node.
    pub(super) fn culprits(&self) -> Vec<Culprit> {
        let outcome = self.outcome();
        let concluded = outcome.map(|outcome| outcome.culprits.as_slice()).unwrap_or_default();
        let good = outcome.map(|outcome| outcome.good.as_slice()).unwrap_or_default();
        let is_settled = |node: &String| {
            good.contains(node) || concluded.iter().any(|culprit| culprit.nodes().contains(&node.as_str()))
        };
        let is_link = |culprit: &&Culprit| matches!(culprit, Culprit::Culprit { part, .. } if part == "link");
        let of_rounds = self.rounds.iter().flat_map(|(run, _)| &run.culprits).cloned();
        let open = of_rounds.filter_map(|culprit| match culprit {
            Culprit::Culprit { ref node, .. } if is_settled(node) => None,
            Culprit::Suspects { mut nodes, evidence } => {
                nodes.retain(|node| !is_settled(node));
                (!nodes.is_empty()).then_some(Culprit::Suspects { nodes, evidence })
            }
            culprit => Some(culprit),
        });
        concluded.iter().filter(|culprit| !is_link(culprit)).cloned().chain(open).collect()
    }

    /// Nodes that its probe left out; its conclusion names them itself.
    pub(super) fn left_out(&self) -> &[LeftOut] {
        match self.outcome() {
            Some(_) => &[],
            None => self.rounds[0].1.asked.left_out.as_slice(),
        }
    }

    /// Whether it proved the node good in what these cases blame it for. A node that was only suspected is cleared by
    /// any isolation of their suite, a named part by one that ran the same case.
    pub(super) fn clears(&self, node: &str, was_named: bool, cases: &BTreeSet<(String, String)>) -> bool {
        let own = self.case();
        let is_about = cases.is_empty()
            || cases.contains(&own)
            || (!was_named && cases.iter().all(|(suite, _)| *suite == own.0));
        is_about && self.outcome().is_some_and(|outcome| outcome.good.iter().any(|good| good == node))
    }

    /// Whether the node took part in any of its rounds, or was left out of them.
    pub(super) fn has(&self, node: &str) -> bool {
        let asked = &self.rounds[0].1.asked;
        asked.nodes.iter().any(|one| one == node) || asked.left_out.iter().any(|left| left.node == node)
    }
}
