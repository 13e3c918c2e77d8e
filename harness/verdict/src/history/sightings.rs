//! In which runs a node or part was, and where: by the probe of the run, else by the name where the probes before and
//! after it show nothing else.

use super::hardware::{Cluster, Hardware, Identities, cluster};
use super::identifiers::{Identity, Subject};
use super::past::{Past, Run};
use std::collections::BTreeSet;

/// A run that the hardware was in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The run's index.
    pub run: usize,
    /// The node that it was, or was in.
    pub node: String,
    /// Its place there; nothing where a whole node is meant.
    pub part: Option<String>,
    /// Whether the run's own probe shows it. Otherwise only the name does.
    pub is_probed: bool,
}

/// A run with the name that is not evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHardware {
    /// The run's index.
    pub run: usize,
    /// Why it may be, or is, about something else.
    pub why: &'static str,
}

const REPLACED: &str = "its probe shows other hardware under this name";
const TWICE: &str = "its probe shows the same identifier in several places";
const UNCLEAR: &str = "not probed, and the nearest probes show other hardware under this name";

/// Both, in the order of the runs.
pub(super) fn sightings(
    past: &Past,
    identities: &Identities,
    subject: &Subject,
) -> (Vec<Sighting>, Vec<OtherHardware>) {
    let (mut seen, mut other) = (Vec::new(), Vec::new());
    let mut hosts: BTreeSet<(Cluster, &str)> =
        [((subject.simulated, subject.inventory.clone()), subject.node.as_str())].into();
    let mut open = Vec::new();
    for (at, run) in past.runs.iter().enumerate().filter(|(_, run)| run.is_simulated() == subject.simulated) {
        let of_node = |(node, hardware)| places(subject, hardware).into_iter().map(move |part| (node, part));
        let shown: Vec<(&String, Option<String>)> = identities.nodes(at).iter().flat_map(of_node).collect();
        match shown.as_slice() {
            [] => open.push((at, run)),
            [(node, part)] => {
                hosts.insert((cluster(run), node));
                let (node, part) = ((*node).clone(), part.clone());
                seen.push(Sighting { run: at, node, part, is_probed: true });
            }
            _ => other.push(OtherHardware { run: at, why: TWICE }),
        }
    }
    for (at, run) in open {
        let of = cluster(run);
        let mut by_name: Vec<Sighting> = Vec::new();
        let mut why = None;
        for (_, node) in hosts.iter().filter(|(host, node)| *host == of && has(run, node)) {
            match by_name_alone(past, identities, subject, at, node) {
                Ok(part) => {
                    by_name.push(Sighting { run: at, node: (*node).to_owned(), part, is_probed: false });
                }
                Err(reason) if *node == subject.node => why = Some(reason),
                Err(_) => {}
            }
        }
        match by_name.pop() {
            Some(one) if by_name.is_empty() => seen.push(one),
            Some(_) => other.push(OtherHardware { run: at, why: UNCLEAR }),
            None => other.extend(why.map(|why| OtherHardware { run: at, why })),
        }
    }
    seen.sort_by_key(|one| one.run);
    other.sort_by_key(|one| one.run);
    (seen, other)
}

fn has(run: &Run, node: &str) -> bool {
    run.plan().nodes.iter().any(|one| one == node)
}

/// Where it is in this node: nowhere, here, or in several places at once.
fn places(subject: &Subject, hardware: &Hardware) -> Vec<Option<String>> {
    match &subject.identity {
        Identity::Machine(own) if own.is_same(hardware) == Some(true) => vec![None],
        Identity::Part(id) => {
            hardware.places_of(id).into_iter().map(|place| Some(place.to_owned())).collect()
        }
        Identity::Machine(_) | Identity::Name => Vec::new(),
    }
}

/// Whether a node's probe says anything about what is meant.
fn is_read(subject: &Subject, hardware: &Hardware) -> bool {
    match &subject.identity {
        Identity::Machine(own) => own.is_same(hardware).is_some(),
        Identity::Part(id) => hardware.has_read(id),
        Identity::Name => false,
    }
}

/// Its place in a run whose probe does not show it: where the probes next to the run have it, if neither contradicts.
fn by_name_alone(
    past: &Past,
    identities: &Identities,
    subject: &Subject,
    at: usize,
    node: &str,
) -> Result<Option<String>, &'static str> {
    if subject.identity == Identity::Name {
        return Ok(subject.part.clone());
    }
    let of = cluster(&past.runs[at]);
    let read = |other: usize| {
        let hardware = identities.nodes(other).get(node)?;
        (cluster(&past.runs[other]) == of && is_read(subject, hardware)).then(|| places(subject, hardware))
    };
    if read(at).is_some() {
        return Err(REPLACED);
    }
    let before = (0..at).rev().find_map(read);
    let after = (at + 1..past.runs.len()).find_map(read);
    let mut near: Vec<Vec<Option<String>>> = before.into_iter().chain(after).collect();
    near.dedup();
    match near.as_slice() {
        [places] if places.len() == 1 => Ok(places[0].clone()),
        _ => Err(UNCLEAR),
    }
}
