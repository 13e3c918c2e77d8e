//! The network topology of an inventory's nodes, from a file that Slurm or EC2 printed, and the order of ranks by it.

mod ec2;
mod slurm;
#[cfg(test)]
mod tests;

use crate::form::{Form, Key, Type};
use crate::inventory::read::line_of_text;
use crate::toml_reader::Table;
use base::nodeset;
use std::collections::{BTreeMap, BTreeSet};

/// `[topology]` of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyFile {
    /// What `scontrol show topology` or `aws ec2 describe-instance-topology` printed: its path, from the project's folder on.
    pub file: String,
    /// EC2 names instances: by node, where a node is not called by its instance's id.
    pub instances: BTreeMap<String, String>,
}

/// Where each node of an inventory hangs in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// `Slurm` or `EC2`.
    pub source: &'static str,
    /// All nodes in the order of ranks, each with its switches from the top down.
    pub paths: Vec<(String, Vec<String>)>,
}

/// `[topology]`.
pub(super) fn form() -> Form {
    Form::new([
        Key::needed(
            "file",
            Type::Text,
            "what `scontrol show topology` or `aws ec2 describe-instance-topology` printed; from the project's folder on",
        ),
        Key::optional(
            "instances",
            Type::map(Type::Text),
            "of EC2: `p5-001 = \"i-0abc...\"`; a node that is called by its instance's id needs none",
        ),
    ])
}

pub(super) fn read(table: &Table<'_>) -> Option<TopologyFile> {
    let file = table.need("file").and_then(|value| line_of_text(&value));
    let instances = table.get("instances").and_then(|value| value.table());
    let entries = instances.map(|instances| instances.entries()).unwrap_or_default();
    let instances =
        entries.into_iter().filter_map(|(node, _, id)| Some((node.to_owned(), line_of_text(&id)?)));
    let instances = instances.collect();
    table.close(form);
    Some(TopologyFile { file: file?, instances })
}

impl Topology {
    /// Reads what was printed. The error says why it orders no ranks of these nodes.
    pub fn read(text: &str, wanted: &TopologyFile, nodes: &[String]) -> Result<Topology, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the file is empty".to_owned());
        }
        let (source, switches) = match text.starts_with('{') {
            true => ("EC2", ec2::switches(text, &wanted.instances, nodes)?),
            false => ("Slurm", slurm::switches(text, nodes)?),
        };
        let missing: Vec<&String> = nodes.iter().filter(|node| !switches.contains_key(*node)).collect();
        if !missing.is_empty() {
            return Err(format!("it does not name {}", few(&missing)));
        }
        Ok(Topology { source, paths: by_switch(switches, nodes) })
    }

    /// Puts nodes into the order of ranks.
    pub fn sort(&self, nodes: &mut [String]) {
        let at: BTreeMap<&str, usize> =
            self.paths.iter().enumerate().map(|(at, (node, _))| (node.as_str(), at)).collect();
        nodes.sort_by_key(|node| at.get(node.as_str()).copied().unwrap_or(usize::MAX));
    }
}

/// A range of nodes that fits into a line.
fn few(nodes: &[&String]) -> String {
    let folded = nodeset::fold(nodes);
    match folded.len() <= 60 {
        true => folded,
        false => {
            format!("{} nodes, {} among them", nodes.len(), nodes.first().map_or("", |node| node.as_str()))
        }
    }
}

/// Nodes of one switch stand together. Switches come in the order of their first nodes, so that little is moved.
fn by_switch(mut switches: BTreeMap<String, Vec<String>>, nodes: &[String]) -> Vec<(String, Vec<String>)> {
    let mut in_order = nodes.to_vec();
    nodeset::sort(&mut in_order);
    let mut first: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut keyed: Vec<(Vec<usize>, String, Vec<String>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, node) in in_order.into_iter().enumerate() {
        if !seen.insert(node.clone()) {
            continue;
        }
        let path = switches.remove(&node).unwrap_or_default();
        let mut key: Vec<usize> =
            (1..=path.len()).map(|depth| *first.entry(path[..depth].to_vec()).or_insert(at)).collect();
        key.push(at);
        keyed.push((key, node, path));
    }
    keyed.sort();
    keyed.into_iter().map(|(_, node, path)| (node, path)).collect()
}
