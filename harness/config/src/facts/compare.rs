//! Differences between a node and most nodes, or a golden one. Only facts that equal nodes share are compared; a fact
//! that is known on one node only is a difference too.

use super::{FACTS, fact};
use model::artefact::{Format, Probe, ProbedNode};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What `harness inventory diff` reports; with `--json`, as it stands here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Of the probe that was compared.
    pub format: Format<1>,
    /// The probed cluster is simulated.
    pub simulated: bool,
    /// `majority`, or the golden file.
    pub against: String,
    /// By node in the probe's order, then by fact.
    pub differences: Vec<Difference>,
    /// Facts for which no value is that of most nodes.
    pub ties: Vec<Tie>,
    /// Nodes that were not compared, and why.
    pub unprobed: BTreeMap<String, String>,
    /// Nodes that were probed, and so compared.
    pub compared: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub node: String,
    pub fact: String,
    /// On the node.
    pub value: String,
    pub expected: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tie {
    pub fact: String,
    /// Each value with the nodes that have it.
    pub values: Vec<(String, Vec<String>)>,
}

pub(super) const UNKNOWN: &str = "unknown";

/// Against what most nodes of the probe itself have.
pub fn against_majority(probe: &Probe) -> Comparison {
    let (expected, ties) = common(probe);
    compare(probe, "majority".to_owned(), &expected, ties)
}

/// Against what most nodes of another probe had: of one node, if it held one. Where those are no majority, it is no
/// golden one.
pub fn against_golden(probe: &Probe, golden: &Probe, name: &str) -> Result<Comparison, String> {
    let (mut expected, ties) = common(golden);
    // A golden file of an older harness knows fewer facts.
    let knows = |name: &str| {
        probed(golden).any(|node| node.facts.contains_key(name) || node.unknown.contains_key(name))
    };
    expected.retain(|name, _| knows(name));
    if let Some(tie) = ties.first() {
        return Err(format!("its nodes differ in `{}`, and no value has a majority", tie.fact));
    }
    if expected.is_empty() {
        return Err("none of its nodes was probed".to_owned());
    }
    if probe.instance != golden.instance {
        return Err(format!(
            "it is for instance `{}`, this inventory has `{}`",
            golden.instance, probe.instance
        ));
    }
    if golden.simulated && !probe.simulated {
        return Err("it is from a simulated cluster, this one is real".to_owned());
    }
    Ok(compare(probe, name.to_owned(), &expected, Vec::new()))
}

fn probed(probe: &Probe) -> impl Iterator<Item = &ProbedNode> {
    probe.nodes.iter().filter(|node| node.fingerprint.is_some())
}

/// What a node has of every fact that is compared.
fn values(node: &ProbedNode) -> impl Iterator<Item = (&'static str, String)> {
    FACTS.iter().filter(|fact| fact.is_alike).map(|fact| {
        let value = node.facts.get(fact.name).map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
        (fact.name, value)
    })
}

type Values = BTreeMap<&'static str, String>;

fn common(probe: &Probe) -> (Values, Vec<Tie>) {
    let mut nodes_of: BTreeMap<&'static str, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for node in probed(probe) {
        for (name, value) in values(node) {
            nodes_of.entry(name).or_default().entry(value).or_default().push(node.node.clone());
        }
    }
    let (mut expected, mut ties) = (Values::new(), Vec::new());
    for (name, by_value) in nodes_of {
        let most = by_value.values().map(Vec::len).max().unwrap_or_default();
        let mut best = by_value.iter().filter(|(_, nodes)| nodes.len() == most);
        match (best.next(), best.next()) {
            (Some((value, _)), None) => {
                expected.insert(name, value.clone());
            }
            (Some(_), Some(_)) => {
                ties.push(Tie { fact: name.to_owned(), values: by_value.into_iter().collect() });
            }
            (None, _) => {}
        }
    }
    (expected, ties)
}

fn compare(probe: &Probe, against: String, expected: &Values, ties: Vec<Tie>) -> Comparison {
    let mut differences = Vec::new();
    for node in probed(probe) {
        for (name, value) in values(node) {
            let Some(expected) = expected.get(name).filter(|expected| **expected != value) else { continue };
            differences.push(Difference {
                node: node.node.clone(),
                fact: name.to_owned(),
                value: unlike(node, name, value, expected),
                expected: expected.clone(),
            });
        }
    }
    let why = |node: &ProbedNode| {
        let why = node.unprobed.clone().or_else(|| node.unfit.first().cloned());
        (node.node.clone(), why.unwrap_or_default())
    };
    Comparison {
        format: probe.format,
        simulated: probe.simulated,
        against,
        differences,
        ties,
        unprobed: probe.nodes.iter().filter(|node| node.fingerprint.is_none()).map(why).collect(),
        compared: probed(probe).count() as u32,
    }
}

/// Of long lists the missing and the additional names; of unknown facts the reason.
fn unlike(node: &ProbedNode, name: &str, value: String, expected: &str) -> String {
    use model::artefact::Value;
    match (node.facts.get(name), node.unknown.get(name)) {
        (Some(Value::Names(_)), _) if expected == UNKNOWN => value,
        (Some(Value::Names(names)), _) => missing_and_additional(names, expected),
        (None, Some(why)) if fact(name).is_some() => format!("{UNKNOWN}: {why}"),
        _ => value,
    }
}

/// How a list differs from another, which is given as messages show it: `a, b (2)`.
pub fn missing_and_additional(names: &[String], expected: &str) -> String {
    let wanted = expected.rsplit_once(" (").map_or(expected, |(names, _)| names);
    let wanted: BTreeSet<&str> = wanted.split(", ").filter(|name| *name != "none").collect();
    let there: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let missing: Vec<&str> = wanted.difference(&there).copied().collect();
    let beyond: Vec<&str> = there.difference(&wanted).copied().collect();
    match (missing.is_empty(), beyond.is_empty()) {
        (false, true) => format!("without {}", missing.join(", ")),
        (true, false) => format!("with additional {}", beyond.join(", ")),
        _ => format!("without {}, with {}", missing.join(", "), beyond.join(", ")),
    }
}
