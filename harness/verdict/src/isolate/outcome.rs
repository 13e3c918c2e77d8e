//! What an isolation concluded, as the last of its rounds stores it: history counts it as one run.

use super::Conclusion;
use super::evidence::EvidenceLine;
use model::artefact::Culprit;
use serde::{Deserialize, Serialize};

/// In `isolation.json` of the last round. A round without it belongs to an isolation that did not end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationOutcome {
    /// The named parts with their codes, and the nodes that stay suspect.
    pub culprits: Vec<Culprit>,
    /// Nodes that reached their peers' rate with others and are not named.
    pub good: Vec<String>,
}

impl IsolationOutcome {
    /// Of culprits that were named without a round, or before all rounds were made.
    pub fn from_lines(lines: &[EvidenceLine]) -> IsolationOutcome {
        let named = lines.iter().map(|line| Culprit::Culprit {
            node: line.node.clone(),
            part: line.part.clone(),
            evidence: line.evidence.clone(),
            code: Some(line.code.to_owned()),
        });
        IsolationOutcome { culprits: named.collect(), good: Vec::new() }
    }

    /// `nodes` are in the order of their numbers. Where all nodes are slow alike, their peers' rate proves none good.
    pub fn new(
        conclusion: &Conclusion,
        lines: &[EvidenceLine],
        nodes: &[String],
        is_fleet_slow: bool,
    ) -> IsolationOutcome {
        let names = |numbers: &[usize]| -> Vec<String> {
            numbers.iter().filter_map(|node| nodes.get(*node)).cloned().collect()
        };
        let IsolationOutcome { mut culprits, .. } = IsolationOutcome::from_lines(lines);
        let suspects = names(&conclusion.suspects);
        if !suspects.is_empty() {
            let evidence = "slow in an isolation, without proof".to_owned();
            culprits.push(Culprit::Suspects { nodes: suspects, evidence });
        }
        let is_named = |node: &String| lines.iter().any(|line| line.node == *node);
        let mut good = if is_fleet_slow { Vec::new() } else { names(&conclusion.good) };
        good.retain(|node| !is_named(node));
        IsolationOutcome { culprits, good }
    }
}
