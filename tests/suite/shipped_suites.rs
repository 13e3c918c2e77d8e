//! What shipped suites ask for that no simulated fault shows: that each can be planned on real nodes, what only warns, what
//! is compared with baselines and not with a constant, and which data a training reads.

use crate::project::root;
use config::inventory::{Instances, Inventory};
use config::suite::{Assertion, Suite};
use plan::{Request, plan};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use std::fs;

fn text(name: &str) -> String {
    let path = root().join(format!("suites/{name}.toml"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All assertions of a suite on a metric.
fn assertions(name: &str, metric: &str) -> Vec<Assertion> {
    let read = Suite::read(&text(name), &format!("suites/{name}.toml"), &Catalogue::built_in());
    let suite = read.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let all = suite.cases.into_iter().flat_map(|case| case.assertions);
    let found: Vec<Assertion> = all.filter(|assertion| assertion.metric == metric).collect();
    assert!(!found.is_empty(), "{name}: {metric}");
    found
}

#[test]
fn packets_that_a_nic_dropped_only_warn() {
    for name in ["nccl-p5", "nccl-p4de"] {
        for drops in assertions(name, "nic.rx_drops") {
            assert!(drops.bound.warn && drops.bound.at_most == Some(0.0), "{name}: line {}", drops.line);
        }
    }
}

#[test]
fn the_mfu_of_trainings_is_compared_with_a_baseline() {
    for name in ["fsdp-p5", "nemo-p5", "ddp-p4de"] {
        for mfu in assertions(name, "train.mfu") {
            let is_constant = mfu.bound.at_least.is_some() || mfu.bound.at_most.is_some();
            assert!(mfu.bound.baseline && !is_constant, "{name}: line {}", mfu.line);
        }
    }
}

/// `c4` alone is a name that the hub of datasets no longer has.
#[test]
fn the_training_of_fsdp_reads_its_data_by_the_name_that_the_hub_has() {
    let suite = text("fsdp-p5");
    let arguments: Vec<&str> = suite.lines().filter(|line| line.starts_with("args = ")).collect();
    assert_eq!(arguments.len(), 2, "{suite}");
    assert!(arguments.iter().all(|line| line.contains("\"--dataset=allenai/c4\"")), "{arguments:?}");
}

/// Why a case of a shipped suite is not run on four real nodes.
const SKIPPED: [&str; 4] = [
    "a soak is run window by window",
    "device names of `p6-",
    "its faults need a simulated cluster",
    "needs at least 1000 nodes",
];

#[test]
fn every_shipped_suite_is_planned_on_real_nodes_of_its_instance() {
    let instances = Instances::load(&root()).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let find = |name: &str| Some((format!("suites/{name}.toml"), text(name)));
    let mut planned = 0;
    for entry in fs::read_dir(root().join("suites")).expect("suites").flatten() {
        let file = entry.file_name().into_string().expect("a name");
        // That with a recipe of a user's own is run by scenarios.
        let Some(name) = file.strip_suffix(".toml").filter(|name| *name != "evidence-p5") else { continue };
        let suite = Suite::read_with(&text(name), &format!("suites/{file}"), &find, &Catalogue::built_in())
            .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let inventory = format!(
            "kind = \"real\"\ninstance = \"{}\"\nnodes = \"n-[1-4]\"\nnsys_version = \"2025.3.1\"\n\
             [reach]\nvia = \"slurm\"\n[paths]\nshared = \"/fsx\"\n",
            suite.instance
        );
        let inventory = Inventory::read(&inventory, "inventory/own.toml", &instances)
            .unwrap_or_else(|diagnostics| panic!("{name}: {diagnostics}"));
        let request = Request {
            run_id: "RUN".into(),
            seed: 1,
            nodes: inventory.nodes.clone(),
            settings: BTreeMap::new(),
            sim_faults: Vec::new(),
            limit_s: None,
            max_fail: None,
            reservation: None,
            catalogue: Catalogue::built_in(),
            sources: Vec::new(),
            sets: BTreeMap::new(),
            evidence: None,
            programs: BTreeMap::new(),
        };
        let plan = plan(&[suite], &inventory, None, request)
            .unwrap_or_else(|diagnostics| panic!("{name}: {}", diagnostics.join("; ")));
        assert!(plan.cases.iter().any(|case| case.skip.is_none() && !case.jobs.is_empty()), "{name}");
        for case in &plan.cases {
            let why = case.skip.as_deref().unwrap_or(SKIPPED[0]);
            assert!(SKIPPED.iter().any(|known| why.starts_with(known)), "{name} {}: {why}", case.name);
        }
        planned += 1;
    }
    assert!(planned >= 33, "{planned} suites");
}
