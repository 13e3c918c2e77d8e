//! A node that hung, was lost or crashed in one case costs one time limit: it is left out of the later ones, visibly,
//! and the others are measured without it.

use crate::project::{Project, Ran, ran};
use serde_json::Value;
use std::fs;

const HANG: [&str; 5] = ["--suite", "nccl-p5", "-q", "--sim-fault", "p5-002:hang"];

fn seconds(project: &Project) -> f64 {
    project.json("summary.json")["seconds"].as_f64().expect("seconds")
}

/// Jobs that were launched on the node, as `JOB of CASE`.
fn launched_on(project: &Project, node: &str) -> Vec<String> {
    let text = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let submitted = events.filter(|event| event["event"] == "job-submitted");
    let on_node =
        submitted.filter(|event| event["nodes"].as_array().expect("nodes").iter().any(|one| one == node));
    on_node
        .map(|event| {
            format!(
                "{} of {}",
                event["job"].as_str().unwrap_or_default(),
                event["case"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

fn assert_quarantined(project: &Project, ran: &Ran) {
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
    assert!(ran.stdout.contains("p5-002 quarantined after gpu-each: hang"), "{}", ran.all());
    assert_eq!(launched_on(project, "p5-002"), ["p5-002 of gpu-each"]);
    let left: Vec<Value> = project.json("plan.json")["left_out"].as_array().expect("left out").clone();
    assert_eq!((left.len(), left[0]["after"].as_str()), (1, Some("gpu-each")));
}

#[test]
fn one_hung_node_costs_one_time_limit_and_the_others_are_measured_without_it() {
    let project = Project::new();
    let healthy = project.harness(&HANG[..3]);
    assert_eq!(healthy.code, Some(0), "{}", healthy.all());
    let takes = seconds(&project);
    let ran = project.harness(&HANG);
    assert_quarantined(&project, &ran);
    let took = seconds(&project);
    assert!(took <= 2.0 * takes, "{took} s, healthy {takes} s");
    let all = project.json("cases/all-all_reduce/verdict.json");
    let status = |nodes: &str| {
        let verdicts = all["verdicts"].as_array().expect("verdicts");
        let of =
            verdicts.iter().filter(|verdict| verdict["nodes"] == nodes).map(|verdict| &verdict["status"]);
        of.cloned().collect::<Vec<_>>()
    };
    assert!(status("p5-[001,003-004]").iter().any(|status| status == "pass"), "{all:#}");
    assert!(!status("p5-[001-004]").is_empty());
    assert!(status("p5-[001-004]").iter().all(|status| status == "error"), "{all:#}");
    let history = project.harness(&["history", "--suspects"]);
    assert!(
        history.stdout.contains("HRN-NODE-BROKEN") && !history.stdout.contains("HRN-NODE-UNFIT"),
        "{}",
        history.all()
    );
}

#[test]
fn a_quarantine_outlives_the_process_that_decided_it() {
    let project = Project::new();
    let amended = |project: &Project| {
        let text = fs::read_to_string(project.latest().join("plan.json")).unwrap_or_default();
        text.contains("\"after\": \"gpu-each\"") || text.contains("\"after\":\"gpu-each\"")
    };
    // Killed at one write after the other, until one comes after the amended plan.
    for at in (40..400).step_by(20) {
        let mut command = project.command(&HANG);
        command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
        let killed = ran(command.output().expect("it runs"));
        if killed.code == Some(3) {
            break;
        }
        if !amended(&project) {
            continue;
        }
        let resumed = project.harness(&["--run", "latest", "--resume", "-q"]);
        return assert_quarantined(&project, &resumed);
    }
    panic!("no run was killed after its plan was amended");
}
