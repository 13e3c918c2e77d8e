//! Cases that name devices, where the profile's names only stand in for those of a real cluster's nodes: they are not run
//! until the nodes have reported theirs, or each NIC would be judged absent.

use config::inventory::Inventory;
use metric::Dim;
use model::artefact::{NAMES_UNKNOWN, PlannedAssertion, Probe, ProbedNode, Value, WorkloadFacts};

/// Why such a case cannot be run.
pub(crate) fn unknown(
    inventory: &Inventory,
    workload: &WorkloadFacts,
    assertions: &[PlannedAssertion],
) -> Option<String> {
    let has_nic = |one: &PlannedAssertion| {
        one.dims.get(Dim::Nic).is_some() || one.parts.iter().any(|part| part.get(Dim::Nic).is_some())
    };
    let names_devices = workload.flow_tool().is_some() || assertions.iter().any(has_nic);
    (inventory.lacks_device_names() && names_devices).then(|| {
        format!(
            "{NAMES_UNKNOWN}`{}` unknown: {}, or have a preflight read the same ones on all nodes",
            inventory.instance.name,
            inventory.device_names_to_write(None)
        )
    })
}

/// Names of devices become words of scripts and names of files, and these come from nodes.
fn is_device_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() < 64 && name.chars().all(is_plain)
}

/// The names of the nodes' EFA devices, where the profile has none: only if all nodes that may pass report the same ones, and
/// as many as the profile has.
pub fn reported_names(inventory: &Inventory, probe: &Probe) -> Option<Vec<String>> {
    let may_pass = |node: &&ProbedNode| node.unprobed.is_none() && node.unfit.is_empty();
    let names = probe.nodes.iter().filter(may_pass).map(|node| match node.facts.get("nics") {
        Some(Value::Names(names)) => {
            let mut names = names.clone();
            base::nodeset::sort(&mut names);
            names.dedup();
            Some(names)
        }
        _ => None,
    });
    let names: Vec<Vec<String>> = names.collect::<Option<_>>()?;
    let first = names.first()?;
    let is_sound = first.len() == inventory.instance.nics.len()
        && first.iter().all(|name| is_device_name(name))
        && names.iter().all(|other| other == first);
    (inventory.lacks_device_names() && is_sound).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::request;
    use crate::plan;
    use config::inventory::Instances;
    use config::suite::Suite;
    use recipes::catalogue::Catalogue;
    use std::collections::BTreeMap;
    use std::path::Path;

    const SUITE: &str = r#"instance = "p6-b200"
about = "a test"
[[case]]
name = "flows"
placement = "pairs"
workload = { kind = "nic-pairs" }
recipes = ["nic_flows"]
limit_s = 60
assert = [{ metric = "nic.rate", per = "nic", at_least = "11 GB/s" }]
[[case]]
name = "present"
placement = "each"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "16MiB" }
recipes = ["nccl_tests", "efa_traffic"]
limit_s = 60
assert = [{ metric = "nic.present", per = "node", equals = 1 }]
[[case]]
name = "other"
placement = "each"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "16MiB" }
recipes = ["nccl_tests"]
limit_s = 60
assert = [{ metric = "nccl.wrong", equals = 0 }]
"#;

    fn inventory(instance: &str) -> Inventory {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
        let instances = Instances::load(home).expect("sound instances");
        let text = format!(
            "kind = \"real\"\ninstance = \"{instance}\"\nnodes = \"n[1-2]\"\npaths = {{ shared = \"/fsx\" }}\n\
             reach = {{ via = \"slurm\" }}\n"
        );
        Inventory::read(&text, "inventory/x.toml", &instances).map_err(|why| why.to_string()).expect("good")
    }

    fn skipped(inventory: &Inventory) -> Vec<String> {
        let suite = Suite::read(SUITE, "suites/x.toml", &Catalogue::built_in());
        let suite = suite.map_err(|why| why.to_string()).expect("good");
        let planned = plan(&[suite], inventory, None, request(2)).expect("a plan");
        let skipped = planned.cases.iter().filter_map(|case| Some((case, case.skip.as_ref()?)));
        skipped.map(|(case, why)| format!("{}: {why}", case.name)).collect()
    }

    fn probe(nodes: &[&[&str]]) -> Probe {
        let nodes = nodes.iter().map(|names| {
            let names = Value::Names(names.iter().map(|name| (*name).to_owned()).collect());
            ProbedNode { facts: BTreeMap::from([("nics".to_owned(), names)]), ..ProbedNode::default() }
        });
        Probe {
            format: model::artefact::Format,
            harness: String::new(),
            simulated: false,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: nodes.collect(),
        }
    }

    #[test]
    fn cases_that_name_devices_wait_for_the_names_of_the_nodes() {
        let mut inventory = inventory("p6-b200");
        let why = "device names of `p6-b200` unknown: write `nics = \"...\"` and `device_names_seen = true` into the \
                   profile of `p6-b200`, or have a preflight read the same ones on all nodes";
        assert_eq!(skipped(&inventory), [format!("flows: {why}"), format!("present: {why}")]);
        inventory.instance.take_device_names(&["rdmap79s0".to_owned()]);
        assert_eq!(skipped(&inventory), [] as [&str; 0]);
    }

    #[test]
    fn names_count_where_all_nodes_report_the_same_and_as_many_as_the_profile_has() {
        let all = ["rdmap117s0", "rdmap79s0", "c", "d", "e", "f", "g", "h"];
        let mut turned = all;
        turned.reverse();
        let mut other = all;
        other[7] = "i";
        let inventory = inventory("p6-b200");
        let of = |nodes: &[&[&str]]| reported_names(&inventory, &probe(nodes));
        let sorted = ["c", "d", "e", "f", "g", "h", "rdmap79s0", "rdmap117s0"].map(str::to_owned);
        assert_eq!(of(&[&all, &turned]), Some(sorted.to_vec()));
        assert_eq!(of(&[&all, &other]), None);
        assert_eq!(of(&[&all[..7], &all[..7]]), None);
        assert_eq!(of(&[]), None);
        for hostile in ["../../etc", "a b", "a[1-2]", "-x", "", "a\n", "$(id)", &"x".repeat(64)] {
            let mut odd = all;
            odd[7] = hostile;
            assert_eq!(of(&[&odd, &odd]), None, "{hostile:?}");
        }
        let mut broken = probe(&[&all, &other]);
        broken.nodes[1].unfit.push("7 NICs".to_owned());
        assert_eq!(reported_names(&inventory, &broken), Some(sorted.to_vec()), "an unfit node takes no part");
        broken.nodes[0].facts.clear();
        assert_eq!(reported_names(&inventory, &broken), None);
        assert_eq!(reported_names(&self::inventory("p5"), &probe(&[&all])), None, "its names were seen");
    }
}
