//! Acceptance records that list the hardware: of each delivery what it says of this node alone.

use super::folder::Folder;
use super::return_case::ReturnCase;
use crate::accept::certificate_files::{self, StoredCertificate};
use base::nodeset;
use model::artefact::acceptance::{Acceptance, NodeHardware, Rejected, Undecided};
use model::artefact::{Format, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use verdict::history::hardware::{Hardware, PartId};
use verdict::history::identifiers::Identity;

/// `certificates/DELIVERY.json`.
#[derive(Serialize)]
struct Certificate<'a> {
    format: Format<1>,
    delivery: &'a str,
    harness: &'a str,
    simulated: bool,
    suite: &'a str,
    instance: &'a str,
    began: &'a str,
    ended: &'a str,
    node: &'a str,
    /// `hardware` or `name`.
    identified_by: &'static str,
    /// `accepted`, `rejected` or `not decided`.
    result: &'static str,
    rejected: Vec<&'a Rejected>,
    undecided: Vec<&'a Undecided>,
    hardware: Vec<&'a NodeHardware>,
}

/// How many list it, and the records that cannot be read.
#[derive(Default)]
pub(super) struct Certificates {
    pub lines: Vec<String>,
    pub unread: Vec<String>,
}

pub(super) fn write(
    folder: &mut Folder,
    case: &ReturnCase<'_>,
    deliveries: &Path,
) -> Result<Certificates, String> {
    let mut found = Certificates::default();
    let (certificates, unread) = certificate_files::read_all(deliveries);
    found.unread = unread;
    for StoredCertificate { name, acceptance, .. } in certificates {
        let Some((node, identified_by)) = listed(case, &acceptance) else { continue };
        let result = match &node {
            node if acceptance.accepted.contains(node) => "accepted",
            node if acceptance.rejected.iter().any(|one| one.node == **node) => "rejected",
            _ => "not decided",
        };
        let certificate = Certificate {
            format: Format,
            delivery: &acceptance.delivery,
            harness: &acceptance.harness,
            simulated: acceptance.simulated,
            suite: &acceptance.suite,
            instance: &acceptance.instance,
            began: &acceptance.began,
            ended: &acceptance.ended,
            node: &node,
            identified_by,
            result,
            rejected: acceptance.rejected.iter().filter(|one| one.node == node).collect(),
            undecided: acceptance.undecided.iter().filter(|one| one.node == node).collect(),
            hardware: acceptance.hardware.iter().filter(|one| one.node == node).collect(),
        };
        folder.write_json(&["certificates", &format!("{name}.json")], &certificate)?;
        found
            .lines
            .push(format!("{}: {result}, {}, by {identified_by}", acceptance.delivery, acceptance.ended));
    }
    Ok(found)
}

/// The node that it is, or was in, and how that is known. Where numbers were read, a name alone is not enough.
fn listed(case: &ReturnCase<'_>, acceptance: &Acceptance) -> Option<(String, &'static str)> {
    if acceptance.simulated != case.subject.simulated {
        return None;
    }
    for node in &acceptance.hardware {
        let Some(hardware) = hardware(node) else { continue };
        let is_it = match &case.subject.identity {
            Identity::Machine(own) => own.is_same(&hardware) == Some(true),
            Identity::Part(id) => has(&hardware, id),
            Identity::Name => false,
        };
        if is_it {
            return Some((node.node.clone(), "hardware"));
        }
    }
    let is_read = acceptance.hardware.iter().any(|one| one.node == case.subject.node);
    let nodes = nodeset::expand(&acceptance.nodes).unwrap_or_default();
    let is_named = nodes.contains(&case.subject.node)
        && acceptance.inventory == case.subject.inventory
        && !(is_read && case.subject.identity != Identity::Name);
    is_named.then(|| (case.subject.node.clone(), "name"))
}

fn has(hardware: &Hardware, id: &PartId) -> bool {
    hardware.places_of(id).len() == 1
}

/// As a probe would have read it.
fn hardware(node: &NodeHardware) -> Option<Hardware> {
    let mut facts: BTreeMap<String, Value> = BTreeMap::new();
    facts.insert("gpu_ids".into(), Value::Names(node.gpus.clone()));
    facts.insert("nic_ids".into(), Value::Names(node.nics.clone()));
    if let Some(machine) = &node.machine {
        facts.insert("machine".into(), Value::Text(machine.clone()));
    }
    Hardware::from_facts(&facts)
}
