//! Which node or part is meant by what a person typed: a node's name, `NODE:PART`, or a number that a probe has read.

use super::hardware::{Cluster, Hardware, Identities, PartId, cluster};
use super::past::Past;
use base::suggest;
use base::text::show;
use model::artefact::{Culprit, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One node, or one part of a node, where it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Whether its runs are simulated.
    pub simulated: bool,
    /// The inventory's name.
    pub inventory: String,
    /// The node's name.
    pub node: String,
    /// A device or `gpuN`; nothing where the whole node is meant.
    pub part: Option<String>,
    /// What it is followed by over nodes and runs.
    pub identity: Identity,
}

/// What shows in another run that it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The hardware of a whole node.
    Machine(Hardware),
    /// One GPU or NIC.
    Part(PartId),
    /// No probe has read it: the name is all that is known.
    Name,
}

/// So many near matches are listed.
const MOST: usize = 4;
/// A piece of a number that is shorter stands in many.
const LEAST_PIECE: usize = 4;

/// A number that a probe has read, and what has it.
struct Identifier {
    shown: String,
    what: &'static str,
    subject: Subject,
}

/// Names and numbers of all runs, as they were last.
struct Known {
    /// The newest run that has the node, and what its newest probe read.
    nodes: BTreeMap<(Cluster, String), (usize, Option<Hardware>)>,
    /// By the number without its punctuation, and by what differs between parts with one number.
    numbers: BTreeMap<(String, bool, String), Identifier>,
}

/// The one node or part that is meant, in this inventory only where one is given.
pub fn find(past: &Past, word: &str, inventory: Option<&str>) -> Result<Subject, String> {
    let known = Known::read(past, inventory);
    let mut found: Vec<(String, Subject)> = known
        .by_name(word)
        .into_iter()
        .map(|subject| {
            let kind = if subject.simulated { ", simulated" } else { "" };
            (format!("node `{}` of inventory `{}`{kind}", subject.node, subject.inventory), subject)
        })
        .collect();
    let of_number = known.numbers.range((normal(word), false, String::new())..);
    let of_number = of_number.take_while(|((number, ..), _)| *number == normal(word) && !number.is_empty());
    found.extend(of_number.map(|(_, one)| (one.to_string(), one.subject.clone())));
    if found.is_empty()
        && let Some((node, part)) = word.rsplit_once(':')
        && let [subject] = known.by_name(node).as_slice()
    {
        return part_of(past, subject, part);
    }
    match found.as_slice() {
        [] => Err(known.nothing(word)),
        [(_, subject)] => Ok(subject.clone()),
        several => {
            let all: Vec<String> = several.iter().take(MOST).map(|(what, _)| show(what)).collect();
            let more = several.len().saturating_sub(MOST);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(format!(
                "`{}` matches {} things: {}{more}; choose with --inventory, or give another identifier",
                show(word),
                several.len(),
                all.join("; ")
            ))
        }
    }
}

fn part_of(past: &Past, node: &Subject, part: &str) -> Result<Subject, String> {
    let of_node = |identity| Subject { part: Some(part.to_owned()), identity, ..node.clone() };
    let id = match &node.identity {
        Identity::Machine(hardware) => hardware.part_id(part),
        _ => None,
    };
    if let Some(id) = id {
        return Ok(of_node(Identity::Part(id)));
    }
    let mut parts: BTreeSet<&str> = BTreeSet::new();
    for run in past.runs.iter().filter(|run| cluster(run) == (node.simulated, node.inventory.clone())) {
        let judged = run.cases.iter().flat_map(|case| &case.verdicts);
        let judged = judged.filter(|verdict| verdict.node.as_ref() == Some(&node.node));
        parts.extend(judged.filter_map(|verdict| verdict.part.as_deref()));
        parts.extend(run.culprits.iter().filter_map(|culprit| match culprit {
            Culprit::Culprit { node: own, part, .. } if *own == node.node && part != "node" => {
                Some(part.as_str())
            }
            _ => None,
        }));
    }
    if parts.contains(part) {
        return Ok(of_node(Identity::Name));
    }
    let near = suggest::nearest(part, parts.iter().copied());
    let hint = near.map(|near| format!("; did you mean `{}:{}`?", show(&node.node), show(near)));
    Err(format!(
        "no run has measured a part `{}` of {}{}",
        show(part),
        show(&node.node),
        hint.unwrap_or_default()
    ))
}

impl std::fmt::Display for Identifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Subject { node, part, .. } = &self.subject;
        let part = part.as_ref().map(|part| format!(" {part}")).unwrap_or_default();
        write!(f, "{} `{}` ({node}{part})", self.what, self.shown)
    }
}

impl Known {
    fn read(past: &Past, inventory: Option<&str>) -> Known {
        let identities = Identities::read(&past.runs);
        let mut known = Known { nodes: BTreeMap::new(), numbers: BTreeMap::new() };
        for (at, run) in past.runs.iter().enumerate() {
            let of = cluster(run);
            if inventory.is_some_and(|inventory| inventory != of.1) {
                continue;
            }
            for node in &run.plan().nodes {
                known.nodes.entry((of.clone(), node.clone())).or_default().0 = at;
            }
            for (node, hardware) in identities.nodes(at) {
                known.nodes.insert((of.clone(), node.clone()), (at, Some(hardware.clone())));
            }
            // A probe that cannot be read has no numbers.
            let probe = run.stored.probe().ok().flatten();
            for probed in probe.iter().flat_map(|probe| &probe.nodes) {
                if let Some(hardware) = identities.nodes(at).get(&probed.node) {
                    known.add_numbers(&of, &probed.node, hardware, &probed.facts);
                }
            }
        }
        known
    }

    fn add_numbers(
        &mut self,
        of: &Cluster,
        node: &str,
        hardware: &Hardware,
        facts: &BTreeMap<String, Value>,
    ) {
        let subject = |part: Option<&str>, identity: Identity| Subject {
            simulated: of.0,
            inventory: of.1.clone(),
            node: node.to_owned(),
            part: part.map(str::to_owned),
            identity,
        };
        let mut add = |number: &str, apart: &str, what: &'static str, subject: Subject| {
            let key = (normal(number), of.0, apart.to_owned());
            self.numbers.insert(key, Identifier { shown: number.to_owned(), what, subject });
        };
        if let Some(Value::Text(machine)) = facts.get("machine") {
            add(machine, "", "machine", subject(None, Identity::Machine(hardware.clone())));
        }
        for (fact, first, second) in [("gpu_ids", "GPU UUID", "GPU serial"), ("nic_ids", "NIC GUID", "")] {
            let Some(Value::Names(rows)) = facts.get(fact) else { continue };
            for row in rows {
                let words: Vec<&str> = row.split(' ').filter(|word| !word.is_empty()).collect();
                let [place, id, more @ ..] = words.as_slice() else { continue };
                let Some(part) = hardware.part_id(place) else { continue };
                add(id, id, first, subject(Some(place), Identity::Part(part.clone())));
                if let Some(serial) = more.first().filter(|_| !second.is_empty()) {
                    add(serial, id, second, subject(Some(place), Identity::Part(part)));
                }
            }
        }
    }

    /// The nodes with this name: one for each cluster, unless probes show that it is the same hardware.
    fn by_name(&self, name: &str) -> Vec<Subject> {
        let mut of_name: Vec<(usize, &Cluster, &Option<Hardware>)> = self
            .nodes
            .iter()
            .filter(|((_, node), _)| node == name)
            .map(|((of, _), (at, hardware))| (*at, of, hardware))
            .collect();
        of_name.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        let mut found: Vec<Subject> = Vec::new();
        for (_, (simulated, inventory), hardware) in of_name {
            let is_same = |other: &Subject| match (&other.identity, hardware) {
                (Identity::Machine(known), Some(hardware)) => {
                    other.simulated == *simulated && known.is_same(hardware) == Some(true)
                }
                _ => false,
            };
            if !found.iter().any(is_same) {
                found.push(Subject {
                    simulated: *simulated,
                    inventory: inventory.clone(),
                    node: name.to_owned(),
                    part: None,
                    identity: hardware.clone().map_or(Identity::Name, Identity::Machine),
                });
            }
        }
        found
    }

    fn nothing(&self, word: &str) -> String {
        let piece = normal(word);
        let mut near: BTreeSet<String> = BTreeSet::new();
        if piece.len() >= LEAST_PIECE {
            let numbers = self.numbers.iter().filter(|((number, ..), _)| number.contains(&piece));
            near.extend(numbers.map(|(_, one)| one.to_string()));
            let names = self.nodes.keys().filter(|(_, name)| normal(name).contains(&piece));
            near.extend(names.map(|(_, name)| format!("node `{name}`")));
        }
        if near.is_empty() {
            let names = self.nodes.keys().map(|(_, name)| name.as_str());
            let numbers = self.numbers.values().map(|one| one.shown.as_str());
            near.extend(suggest::nearest(word, names.chain(numbers)).map(|one| format!("`{one}`")));
        }
        let hint = match near.len() {
            0 => "`harness history --suspects` lists what runs blame".to_owned(),
            n => {
                let all: Vec<String> = near.iter().take(MOST).map(|one| show(one)).collect();
                let more = if n > MOST { format!(" and {} more", n - MOST) } else { String::new() };
                format!("near: {}{more}", all.join("; "))
            }
        };
        format!("no run has a node, GPU, NIC or machine `{}`; {hint}", show(word))
    }
}

/// Letters and digits alone, in lower case: a GUID is written with colons or without, a UUID with its prefix or without.
fn normal(number: &str) -> String {
    let bare = number.strip_prefix("GPU-").or_else(|| number.strip_prefix("0x")).unwrap_or(number);
    bare.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
