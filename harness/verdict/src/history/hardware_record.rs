//! What all runs say of one node or part: for it, against it, and which of them are about other hardware.

use super::hardware::Identities;
use super::identifiers::Subject;
use super::isolations::{self, Isolation};
use super::past::{Past, Run, RunKind};
pub use super::sightings::{OtherHardware, Sighting};
use super::suspects::Blame;
use super::{sightings, suspects};
use base::nodeset;
use model::artefact::{CaseVerdict, Status, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Runs are given by their index.
#[derive(Debug, Default, PartialEq)]
pub struct HardwareRecord {
    /// The runs that it was in, oldest first.
    pub seen: Vec<Sighting>,
    /// The runs with its name that are no evidence.
    pub other: Vec<OtherHardware>,
    /// The runs that it was in and that neither blame nor clear, with the reason.
    pub uncounted: Vec<(usize, &'static str)>,
    /// Every round with it of the isolations that blame it.
    pub rounds: BTreeSet<usize>,
    /// What blames it, oldest first.
    pub blames: Vec<HardwareBlame>,
    /// The runs in which it passed all of a case that it is blamed in, and was not blamed.
    pub passed: Vec<usize>,
}

/// One run's blame of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareBlame {
    /// The run's index.
    pub run: usize,
    /// A device, `gpuN` or `node`, as it was called in that run.
    pub part: String,
    /// Whether nothing else is suspected in its place.
    pub alone: bool,
    /// A code that `harness explain` knows, and `-` where it was one of several.
    pub code: &'static str,
    /// The measurement or report that names it.
    pub evidence: String,
    /// Suite and case.
    pub cases: BTreeSet<(String, String)>,
}

/// What a verdict is about, as seen from the node or part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The part that is meant, or the node or a part of it where a node is meant.
    Own,
    /// The node that the part was in.
    Node,
    /// So many nodes together, with this one among them.
    Group(usize),
}

const CANARY: &str = "a canary run, red on purpose";
const BISECTION: &str = "a run of a bisection: what is slow there is no node's";
const ROUND: &str = "a round of an isolation, which counts once";

/// Everything that runs say of it.
pub fn record(past: &Past, subject: &Subject) -> HardwareRecord {
    let identities = Identities::read(&past.runs);
    let (seen, other) = sightings::sightings(past, &identities, subject);
    let mut record = HardwareRecord { seen, other, ..HardwareRecord::default() };
    let isolations = isolations::by_last_round(past);
    let mut concluded: BTreeMap<usize, &Isolation<'_>> = BTreeMap::new();
    for (last, isolation) in &isolations {
        let first = past.runs[*last].round.as_ref().map(|round| &round.first);
        let is_round = |one: &&Sighting| past.runs[one.run].round.as_ref().map(|round| &round.first) == first;
        let rounds: Vec<&Sighting> = record.seen.iter().filter(is_round).collect();
        // An isolation counts where it had the hardware last: later rounds are about other nodes.
        let Some(shown) = rounds.last() else { continue };
        let blames = own_blames(&past.runs[*last], Some(isolation), shown);
        if !blames.is_empty() {
            record.rounds.extend(rounds.iter().map(|one| one.run));
        }
        concluded.insert(shown.run, isolation);
        record.blames.extend(blames);
    }
    for sighting in &record.seen {
        let run = &past.runs[sighting.run];
        let why = match run.kind() {
            RunKind::Canary => Some(CANARY),
            _ if run.is_of_bisection => Some(BISECTION),
            _ if run.round.is_some() && !concluded.contains_key(&sighting.run) => Some(ROUND),
            _ => None,
        };
        match why {
            Some(why) => record.uncounted.push((sighting.run, why)),
            None if run.round.is_none() => record.blames.extend(own_blames(run, None, sighting)),
            None => {}
        }
    }
    record.blames.sort_by(|a, b| (a.run, &a.part, a.code).cmp(&(b.run, &b.part, b.code)));
    // A run may name the same thing for several cases.
    record.blames.dedup();
    let cases: BTreeSet<(String, String)> =
        record.blames.iter().flat_map(|blame| blame.cases.iter().cloned()).collect();
    let was_named = record.blames.iter().any(|blame| blame.alone);
    let is_counted = |sighting: &&Sighting| {
        let is_blamed = record.blames.iter().any(|blame| blame.run == sighting.run);
        !is_blamed && !record.uncounted.iter().any(|(at, _)| *at == sighting.run)
    };
    let has_passed = |sighting: &&Sighting| match concluded.get(&sighting.run) {
        // It proves whole nodes good.
        Some(isolation) => isolation.clears(&sighting.node, was_named, &cases),
        None => passes(&past.runs[sighting.run], sighting, &cases),
    };
    record.passed = record.seen.iter().filter(is_counted).filter(has_passed).map(|one| one.run).collect();
    record
}

/// What a run, or the isolation that it ends, blames of it.
fn own_blames(run: &Run, isolation: Option<&Isolation<'_>>, sighting: &Sighting) -> Vec<HardwareBlame> {
    let is_own = |blame: &Blame| {
        let is_part = sighting.part.as_ref().is_none_or(|part| blame.component.part == *part);
        blame.component.node == sighting.node && is_part
    };
    let own = suspects::blames(run, isolation).into_iter().filter(is_own);
    own.map(|blame| HardwareBlame {
        run: sighting.run,
        part: blame.component.part,
        alone: blame.alone,
        code: blame.code,
        evidence: blame.evidence,
        cases: blame.cases,
    })
    .collect()
}

/// The verdicts of a case about it.
pub fn verdicts<'a>(case: &'a CaseVerdict, sighting: &Sighting) -> Vec<(Scope, &'a Verdict)> {
    let scoped = case.verdicts.iter().filter_map(|verdict| Some((scope(verdict, sighting)?, verdict)));
    scoped.collect()
}

fn scope(verdict: &Verdict, sighting: &Sighting) -> Option<Scope> {
    match (&verdict.node, &sighting.part) {
        (Some(node), _) if *node != sighting.node => None,
        (Some(_), None) => Some(Scope::Own),
        (Some(_), Some(part)) => match &verdict.part {
            Some(own) => (own == part).then_some(Scope::Own),
            None => Some(Scope::Node),
        },
        (None, _) => {
            // A name alone needs no expansion, and a set that cannot be read has no member.
            let nodes = nodeset::expand(&verdict.nodes).unwrap_or_default();
            nodes.contains(&sighting.node).then_some(Scope::Group(nodes.len()))
        }
    }
}

/// Whether it passed a whole case that it is blamed in elsewhere, and failed none of them.
fn passes(run: &Run, sighting: &Sighting, cases: &BTreeSet<(String, String)>) -> bool {
    let mut has_passed = false;
    for case in &run.cases {
        if !cases.is_empty() && !cases.contains(&(case.suite.clone(), case.case.clone())) {
            continue;
        }
        let own = verdicts(case, sighting);
        if own.iter().any(|(_, verdict)| verdict.status.is_red()) {
            return false;
        }
        has_passed |= own.iter().any(|(scope, verdict)| {
            // A part of a node that passed as a whole was not looked at by itself.
            verdict.status == Status::Pass && (*scope == Scope::Own || sighting.part.is_none())
        });
    }
    has_passed
}
