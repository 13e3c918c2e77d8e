//! Heatmaps of whole runs: what a slow NIC looks like, and a row for each rank that was profiled.

use crate::project::{Project, rows};
use std::collections::BTreeMap;

#[test]
fn a_slow_nic_is_seen_among_all_nics_of_both_nodes() {
    let project = Project::new();
    let fault = "p5-002:nic-slow=0.4@rdmap113s0";
    project.harness(&["--suite", "nccl-p5", "--sim-fault", fault, "nic-pairs"]);
    let raw = project.latest().join("cases/nic-pairs/raw/p5-001-to-p5-002");
    let (maps, ran) = project.tables("network_map_aws:bins=40", &raw);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let mut most: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows(&maps.join("heatmap.csv")) {
        if row["Counter"] == "rx_bytes" && row["Host"] == "p5-002" {
            let mean: f64 = row["Mean"].parse().unwrap_or_default();
            let of_nic = most.entry((row["Host"].clone(), row["Device"].clone())).or_default();
            *of_nic = of_nic.max(mean);
        }
    }
    assert_eq!(most.len(), 32);
    let slow = most[&("p5-002".to_owned(), "rdmap113s0".to_owned())];
    for ((_, device), rate) in &most {
        assert!(device == "rdmap113s0" || slow < 0.6 * rate, "{device}: {rate}, the slow one: {slow}");
    }
    let hosts: Vec<String> =
        rows(&maps.join("totals.csv")).iter().map(|row| format!("{} {}", row["Host"], row["From"])).collect();
    for host in ["p5-001 sampler", "p5-002 sampler"] {
        assert!(hosts.iter().any(|known| known == host), "{host}");
    }
}

#[test]
fn the_reports_of_a_run_give_a_row_for_each_rank_that_was_profiled() {
    let project = Project::new();
    project.harness(&["--suite", "nccl-p5", "kernels-all_reduce"]);
    let raw = project.latest().join("cases/kernels-all_reduce/raw/all");
    let (maps, ran) = project.tables("nccl_gpu_time_util_map:bins=4", &raw);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let ranks: Vec<String> = rows(&maps.join("totals.csv")).iter().map(|row| row["Rank"].clone()).collect();
    assert_eq!(ranks, ["0", "1", "2", "3"]);
    assert!(!ran.stderr.contains("not aligned by clock"), "each report has its beginning: {}", ran.all());
    assert_eq!(rows(&maps.join("heatmap.csv")).len(), 16);
}
