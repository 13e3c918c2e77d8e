//! A probe as a person reads it: a line for each node, then why some cannot pass, and what is odd.

use base::nodeset;
use base::text::{self, show};
use config::facts::Comparison;
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is in the table: heading and fact.
const COLUMNS: [(&str, &str); 10] = [
    ("gpus", "gpus"),
    ("nics", "nics"),
    ("driver", "driver"),
    ("efa", "efa"),
    ("libfabric", "libfabric"),
    ("ofi-nccl", "ofi_nccl"),
    ("nccl", "nccl"),
    ("nsys", "nsys"),
    ("memlock", "memlock"),
    ("free", "shared_free"),
];

/// Facts that are not known.
const UNKNOWN: &str = "-";

/// A line for each node, the remarks, and how many are fit.
pub fn table(probe: &Probe) -> String {
    // Of a node that was not asked there is nothing to show but why, and that is a remark.
    let asked = probe.nodes.iter().filter(|node| node.unprobed.is_none()).map(row);
    let rows: Vec<Vec<String>> = std::iter::once(header()).chain(asked).collect();
    let mut text = if rows.len() > 1 { aligned(&rows) } else { String::new() };
    text.push_str(&remarks(probe));
    let count = |of: fn(&ProbedNode) -> bool| probe.nodes.iter().filter(|node| of(node)).count();
    let _ = writeln!(
        text,
        "{}: {} fit, {} cannot pass, {} not probed{}",
        text::count(probe.nodes.len(), "node"),
        count(is_fit),
        count(|node| !node.unfit.is_empty()),
        count(|node| node.unprobed.is_some()),
        match count(|node| node.gpus_unread().is_some()) {
            0 => String::new(),
            unread => format!(", {unread} without readable GPUs"),
        }
    );
    if probe.simulated {
        text.push_str("SIMULATED: some or all of this was not reported by real hardware\n");
    }
    text
}

/// Who cannot pass and why, what is odd, and who was not asked; nothing where all are fit.
pub fn remarks(probe: &Probe) -> String {
    let mut text = String::new();
    for (title, of) in [
        ("cannot pass", (|node| &node.unfit) as fn(&ProbedNode) -> &Vec<String>),
        ("note", |node| &node.notes),
    ] {
        for (what, nodes) in grouped(probe, of) {
            // Infallible, here and below: writing to a string.
            let _ = writeln!(text, "{title}: {}: {}", nodeset::fold(&nodes), show(&what));
        }
    }
    for (why, nodes) in by_reason(reasons(probe, ProbedNode::gpus_unread)) {
        let _ = writeln!(text, "not fit: {}: no GPU can be read: {}", nodeset::fold(&nodes), show(&why));
    }
    for (why, nodes) in by_reason(reasons(probe, |node| node.unprobed.as_deref())) {
        let _ = writeln!(text, "not probed: {}: {}", show(&nodeset::fold(&nodes)), show(&why));
    }
    text
}

/// Differing facts with their nodes, ties, and how many nodes differ.
pub fn differences(compared: &Comparison) -> String {
    let mut text = String::new();
    let mut by_kind: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for one in &compared.differences {
        by_kind.entry((&one.fact, &one.value, &one.expected)).or_default().push(&one.node);
    }
    for ((fact, found, expected), nodes) in by_kind {
        let nodes = nodeset::fold(&nodes);
        let _ = writeln!(text, "{nodes}: {fact} {}, expected {}", show(found), show(expected));
    }
    for tie in &compared.ties {
        let each: Vec<String> = tie
            .values
            .iter()
            .map(|(value, nodes)| format!("{} on {}", show(value), nodeset::fold(nodes)))
            .collect();
        let _ = writeln!(text, "tie: {}: {}", tie.fact, each.join("; "));
    }
    let unprobed = compared.unprobed.iter().map(|(node, why)| (node.as_str(), why.as_str()));
    for (why, nodes) in by_reason(unprobed) {
        let _ = writeln!(text, "not compared: {}: {}", show(&nodeset::fold(&nodes)), show(&why));
    }
    let unlike: std::collections::BTreeSet<&str> =
        compared.differences.iter().map(|one| one.node.as_str()).collect();
    let _ = writeln!(
        text,
        "{} compared with {}: {} differ, {}",
        text::count(compared.compared, "node"),
        show(&compared.against),
        unlike.len(),
        text::count(compared.ties.len(), "tie")
    );
    if compared.simulated {
        text.push_str("SIMULATED: some or all of this was not reported by real hardware\n");
    }
    text
}

fn is_fit(node: &ProbedNode) -> bool {
    node.unprobed.is_none() && node.unfit.is_empty() && node.gpus_unread().is_none()
}

fn header() -> Vec<String> {
    let names = ["node", "state"].into_iter().chain(COLUMNS.iter().map(|(heading, _)| *heading));
    names.chain(["clock ms"]).map(str::to_owned).collect()
}

fn row(node: &ProbedNode) -> Vec<String> {
    let state = match node.unfit.is_empty() {
        false => "cannot pass",
        true if node.gpus_unread().is_some() => "not fit",
        true => "fit",
    };
    let mut row = vec![show(&node.node), state.to_owned()];
    row.extend(COLUMNS.iter().map(|(_, fact)| cell(node, fact)));
    row.push(node.clock_offset.map_or_else(
        || UNKNOWN.to_owned(),
        |offset| format!("{:+.0}..{:+.0}", offset.at_least_ms, offset.at_most_ms),
    ));
    row
}

fn cell(node: &ProbedNode, fact: &str) -> String {
    match node.facts.get(fact) {
        None => UNKNOWN.to_owned(),
        Some(Value::Names(names)) => names.len().to_string(),
        Some(Value::Number(bytes)) if fact == "memlock" || fact == "shared_free" => gib(*bytes),
        Some(value) => show(&value.to_string()),
    }
}

fn gib(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{} MiB", bytes >> 20),
        whole => format!("{whole} GiB"),
    }
}

/// Nodes that have such a reason, with it.
fn reasons<'a>(
    probe: &'a Probe,
    of: impl Fn(&'a ProbedNode) -> Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    probe.nodes.iter().filter_map(move |node| of(node).map(|why| (node.node.as_str(), why)))
}

/// The nodes of each reason.
fn by_reason<'a>(reasons: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, Vec<&'a str>> {
    let mut nodes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (node, why) in reasons {
        nodes.entry(without_name(node, why)).or_default().push(node);
    }
    nodes
}

/// One line, without the name of the node, which would make the same reason another one on each node.
fn without_name(node: &str, why: &str) -> String {
    let line = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    let rest = line.strip_prefix(node).and_then(|rest| rest.strip_prefix(' ')).unwrap_or(&line);
    let words = rest.split(' ').map(|word| match word.strip_suffix(':') {
        Some(bare) if bare == node => "NODE:",
        None if word == node => "NODE",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Each finding with all of its nodes, in the order of the first.
fn grouped(probe: &Probe, of: fn(&ProbedNode) -> &Vec<String>) -> Vec<(String, Vec<&str>)> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &probe.nodes {
        for what in of(node) {
            let index = *at.entry(what).or_insert_with(|| {
                groups.push((what.clone(), Vec::new()));
                groups.len() - 1
            });
            groups[index].1.push(&node.node);
        }
    }
    groups
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::by_reason;

    #[test]
    fn nodes_with_the_same_reason_are_one_line_though_it_names_each() {
        let reasons = [
            ("n1", "n1 cannot be reached: ssh: Could not resolve hostname n1: Name or service not known"),
            ("n2", "n2 cannot be reached: ssh: Could not resolve hostname n2: Name or service not known"),
            ("n3", "srun: error: first\n  srun: fatal: second"),
        ];
        let grouped: Vec<(String, Vec<&str>)> = by_reason(reasons.into_iter()).into_iter().collect();
        let hostname = "cannot be reached: ssh: Could not resolve hostname NODE: Name or service not known";
        assert_eq!(
            grouped,
            [
                (hostname.to_owned(), vec!["n1", "n2"]),
                ("srun: error: first; srun: fatal: second".to_owned(), vec!["n3"]),
            ]
        );
    }
}
