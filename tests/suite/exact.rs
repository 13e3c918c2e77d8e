//! `--exact NAME` runs one assertion, and launches only the jobs that it reads.

use crate::project::Project;

fn submitted(project: &Project) -> Vec<String> {
    let events = std::fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    events
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|event| event["event"] == "job-submitted")
        .map(|event| {
            format!("{}/{}", event["case"].as_str().unwrap_or(""), event["job"].as_str().unwrap_or(""))
        })
        .collect()
}

#[test]
fn one_assertion_on_one_node_launches_that_nodes_run_alone() {
    let project = Project::new();
    let name = "nccl-p5::node-all_reduce::busbw/1GiB@p5-003";
    let ran = project.harness(&["--suite", "nccl-p5", "--exact", name]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(submitted(&project), ["node-all_reduce/p5-003"]);
    assert_eq!(project.json("summary.json")["counts"]["total"], 1);
}

#[test]
fn one_nic_launches_the_pairs_that_contain_its_node() {
    let project = Project::new();
    let name = "nccl-p5::nic-pairs::nic.rate@p5-002/rdmap113s0";
    let ran = project.harness(&["--suite", "nccl-p5", "--exact", name]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let jobs = submitted(&project);
    assert_eq!(jobs.len(), 4, "{jobs:?}");
    assert!(jobs.iter().all(|job| job.contains("p5-002")), "{jobs:?}");
}

#[test]
fn a_case_that_comes_after_another_brings_it_along() {
    let project = Project::new();
    project.harness(&["--suite", "canary", "--exact", "canary::dependency-failed::command.exit_code@p5-001"]);
    let ran = project.harness(&["--suite", "canary", "dependency-failed"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert_eq!(submitted(&project), ["command-fails/nodes-1"]);
}

#[test]
fn a_name_that_no_test_has_is_nothing_selected() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "nccl-p5", "--exact", "no-such-assertion"]);
    assert_eq!(ran.code, Some(4), "{}", ran.all());
    assert_eq!(project.runs(), 0);
}
