//! Variables of a job's environment on a node that NCCL, libfabric and its plugin ignore or that harm, by the versions
//! there. What is wrong with an environment is known to `envlint`.

use config::envlint::{Severity, Version, Versions, lint};
use config::inventory::Inventory;
use model::artefact::{ProbedNode, Value};

/// In the order of the variables. Absent variables are not reported: suites bring environments of their own.
pub(super) fn environment_findings(node: &ProbedNode, inventory: &Inventory) -> Vec<String> {
    let Some(Value::Names(rows)) = node.facts.get("environment") else { return Vec::new() };
    let set: Vec<(&str, &str)> = rows.iter().filter_map(|row| row.trim().split_once('=')).collect();
    let version = |fact: &str| Version::parse(&node.facts.get(fact)?.to_string());
    let versions = Versions {
        nccl: version("nccl"),
        libfabric: version("libfabric"),
        plugin: version("ofi_nccl"),
        ..Versions::from_instance(&inventory.instance)
    };
    let findings = lint(&set, &versions).into_iter();
    let grave = findings.filter(|finding| finding.at < set.len() && finding.severity > Severity::Note);
    grave.map(|finding| format!("environment: {}: {}", finding.message, finding.advice)).collect()
}
