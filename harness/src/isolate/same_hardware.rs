//! Evidence of an earlier run is about the hardware that had the node's name then. Before a node is drained for it, the nodes
//! are asked what they are now.

use super::preflight;
use super::request::{IsolationOutcome, IsolationRequest};
use crate::session::preflight::Stopped;
use config::inventory::Inventory;
use model::artefact::{Probe, ProbedNode};
use std::collections::BTreeSet;
use verdict::history::hardware::Hardware;
use verdict::isolate::evidence::Evidence;

/// Takes out what is about hardware that is gone; or how the isolation ends, where it is interrupted.
pub(super) fn keep(
    request: &IsolationRequest,
    inventory: &Inventory,
    (run, then): (&str, Option<&Probe>),
    evidence: &mut Evidence,
) -> Result<(), IsolationOutcome> {
    let (true, Some(then)) = (request.drain.is_some() && !request.dry_run, then) else { return Ok(()) };
    let nodes: BTreeSet<String> = evidence.lines.iter().map(|line| line.node.clone()).collect();
    let nodes: Vec<String> =
        nodes.into_iter().filter(|node| inventory.nodes.iter().any(|one| one == node)).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let now = match preflight::probed(request, inventory, &nodes) {
        Ok(Some(now)) => now,
        Err(Stopped::Interrupted(code)) => return Err(preflight::interrupted(code)),
        // A node that is broken may give no answer: what is not known is not other.
        Ok(None) | Err(Stopped::Machinery(_) | Stopped::NoAnswer(_)) => return Ok(()),
    };
    let before = evidence.lines.len();
    evidence.lines.retain(|line| {
        let hardware = |probe: &Probe| hardware_of(probe, &line.node);
        let is_gone =
            hardware(then).zip(hardware(&now)).is_some_and(|(then, now)| then.may_be_gone(&line.part, &now));
        if is_gone {
            eprintln!(
                "evidence: not used: run {run} names {} {}, and its node has other hardware now",
                line.node, line.part
            );
        }
        !is_gone
    });
    evidence.explains_all &= evidence.lines.len() == before;
    Ok(())
}

fn hardware_of(probe: &Probe, node: &str) -> Option<Hardware> {
    let is_it = |one: &&ProbedNode| one.node == node;
    probe.nodes.iter().find(is_it).and_then(|one| Hardware::from_facts(&one.facts))
}
