//! Takes back what stored runs say of nodes where the launcher was at fault: runs made before that was known name them.

use crate::judge::common_failure;
use model::artefact::{CaseVerdict, Culprit};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use store::Stored;

/// Removes the culprits and suspects that all jobs of a case, or sbatch itself, speak against alike.
pub fn clear<C: Borrow<CaseVerdict>>(stored: &Stored, cases: &[C], culprits: &mut Vec<Culprit>) {
    if culprits.is_empty() {
        return;
    }
    let mut alike: Vec<(String, BTreeSet<String>)> = Vec::new();
    // A run of today has left them out already.
    let cases = cases.iter().map(|case| -> &CaseVerdict { case.borrow() });
    for case in cases.filter(|case| case.common_failure.is_none()) {
        // What cannot be read takes nothing back.
        let Ok(Some(outcomes)) = stored.outcomes(&case.case) else { continue };
        if let Some(cause) = common_failure::find_in_outcomes(&outcomes.jobs) {
            let nodes = outcomes.jobs.iter().flat_map(|job| job.nodes.iter().cloned()).collect();
            alike.push((cause.to_owned(), nodes));
        }
    }
    let is_alike = |evidence: &str, node: &String| {
        let cause = evidence.split(": ").next().unwrap_or_default();
        alike.iter().any(|(shared, nodes)| shared == cause && nodes.contains(node))
    };
    culprits.retain_mut(|culprit| match culprit {
        Culprit::Culprit { node, part, evidence, .. } => {
            part.as_str() != "node" || !(refused(evidence) || is_alike(evidence, node))
        }
        Culprit::Suspects { nodes, evidence } => {
            nodes.retain(|node| !is_alike(evidence, node));
            !nodes.is_empty() && !refused(evidence)
        }
        Culprit::Fleet { .. } => true,
    });
}

/// What sbatch itself refused, by elimination: no launcher names the node.
fn refused(evidence: &str) -> bool {
    evidence.starts_with("launch-failed: job ")
}
