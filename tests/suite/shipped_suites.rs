//! What shipped suites ask for that no simulated fault shows: what only warns, what is compared with baselines and not
//! with a constant, and which data a training reads.

use crate::project::root;
use config::suite::{Assertion, Suite};
use recipes::catalogue::Catalogue;
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
