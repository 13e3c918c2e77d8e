//! What nodes report otherwise than they did before: versions, firmware, and the hardware itself.

use super::FACTS;
use base::nodeset;
use model::artefact::{Probe, ProbedNode};
use std::collections::BTreeMap;

/// Facts of a node's own that are another only where hardware was replaced.
const HARDWARE: [&str; 3] = ["gpu_ids", "machine", "nic_ids"];

/// A fact that is not as it was, with the nodes of which that is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFact {
    /// As `FACTS` declares it: `driver`.
    pub fact: &'static str,
    /// The nodes, folded.
    pub nodes: String,
    /// The value that it had.
    pub before: String,
    /// The value that it has.
    pub after: String,
}

/// By fact, value and nodes. A fact that is unknown on one side says nothing.
pub fn changed_facts(before: &Probe, after: &Probe) -> Vec<ChangedFact> {
    let earlier: BTreeMap<&str, &ProbedNode> =
        before.nodes.iter().map(|node| (node.node.as_str(), node)).collect();
    let mut nodes: BTreeMap<(&'static str, String, String), Vec<&str>> = BTreeMap::new();
    let lasting = || FACTS.iter().filter(|fact| fact.is_alike || HARDWARE.contains(&fact.name));
    for node in &after.nodes {
        let Some(earlier) = earlier.get(node.node.as_str()) else { continue };
        for fact in lasting() {
            let of = |node: &ProbedNode| node.facts.get(fact.name).cloned();
            if let (Some(old), Some(new)) = (of(earlier), of(node))
                && old != new
            {
                nodes.entry((fact.name, old.to_string(), new.to_string())).or_default().push(&node.node);
            }
        }
    }
    let fold = |((fact, before, after), nodes): ((_, _, _), Vec<&str>)| ChangedFact {
        fact,
        nodes: nodeset::fold(&nodes),
        before,
        after,
    };
    nodes.into_iter().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Format, Value};

    fn probe(nodes: &[(&str, &[(&str, &str)])]) -> Probe {
        let node = |(node, facts): &(&str, &[(&str, &str)])| ProbedNode {
            node: (*node).to_owned(),
            facts: facts
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Value::Text((*value).to_owned())))
                .collect(),
            ..ProbedNode::default()
        };
        Probe {
            format: Format,
            harness: "0.1.0".into(),
            simulated: false,
            inventory: "prod".into(),
            instance: "p5".into(),
            at: "2026-03-01T08:00:00Z".into(),
            nodes: nodes.iter().map(node).collect(),
        }
    }

    #[test]
    fn nodes_with_the_same_change_are_one_and_what_is_unknown_or_of_the_moment_is_none() {
        let before = probe(&[
            ("p5-001", &[("driver", "550.1"), ("machine", "i-1"), ("busy", "a"), ("cuda", "12.4")]),
            ("p5-002", &[("driver", "550.1"), ("machine", "i-2")]),
            ("p5-003", &[("driver", "550.1")]),
        ]);
        let after = probe(&[
            ("p5-001", &[("driver", "560.2"), ("machine", "i-1"), ("busy", "b"), ("nccl", "2.27")]),
            ("p5-002", &[("driver", "560.2"), ("machine", "i-9")]),
            ("p5-003", &[("driver", "550.1")]),
            ("p5-004", &[("driver", "560.2")]),
        ]);
        let lines: Vec<String> = changed_facts(&before, &after)
            .into_iter()
            .map(|one| format!("{} {}: {} -> {}", one.nodes, one.fact, one.before, one.after))
            .collect();
        assert_eq!(lines, ["p5-[001-002] driver: 550.1 -> 560.2", "p5-002 machine: i-2 -> i-9"]);
        assert_eq!(changed_facts(&after, &after), []);
    }
}
