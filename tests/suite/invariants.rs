//! What must hold in any run, whatever went wrong in it: read from what the run left on disk.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn no_node_is_given_twice_every_job_ends_and_every_assertion_has_one_verdict() {
    for args in [
        &["--suite", "nccl-p5", "--nodes", "p5-[001-003]"][..],
        &["--suite", "nccl-p5", "--sim-fault", "p5-002:node-fails", "--sim-fault", "p5-003:hang"][..],
        &["--suite", "nccl-p5", "--sim-fault", "p5-001:queue-stuck", "--timeout", "900"][..],
        &["--suite", "nccl-p5", "--sim-fault", "p5-001:corrupt@0", "--max-fail", "1"][..],
        &["--suite", "nccl-p5", "--inventory", "sim-ssh", "--sim-fault", "p5-002:connection-drops"][..],
        &["--suite", "nccl-p5", "--inventory", "sim-ssh", "--sim-fault", "p5-001:host-unreachable"][..],
        &["--suite", "scale", "--inventory", "sim-512", "--nodes", "p5-[001-009]"][..],
    ] {
        let project = Project::new();
        let ran = project.harness(&[&["-q"], args].concat());
        hold(&project, &ran, args);
    }
}

/// In the newest run of a project.
pub(crate) fn hold(project: &Project, ran: &Ran, args: &[&str]) {
    let events = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("whole lines")).collect();
    assert_eq!(cluster::run::shared_slots(&events), [] as [String; 0], "{args:?}");
    let of = |kind: &str| -> Vec<String> {
        let named = events.iter().filter(|event| event["event"] == kind);
        named.map(|event| format!("{}/{}", event["case"], event["job"])).collect()
    };
    let (mut submitted, mut ended) = (of("job-submitted"), of("job-ended"));
    submitted.sort();
    ended.sort();
    assert!(!submitted.is_empty(), "{args:?}: {}", ran.all());
    assert_eq!(submitted, ended, "{args:?}");
    let plan = project.json("plan.json");
    let mut planned = Vec::new();
    let mut judged = Vec::new();
    for case in plan["cases"].as_array().expect("cases") {
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        planned.extend(case["assertions"].as_array().expect("assertions").iter().map(name));
        let verdict = project.json(&format!("cases/{}/verdict.json", name(case)));
        judged.extend(verdict["verdicts"].as_array().expect("verdicts").iter().map(name));
    }
    assert_eq!(planned, judged, "{args:?}");
    assert_eq!(planned.iter().collect::<BTreeSet<_>>().len(), planned.len(), "names are unique");
    let summary = project.json("summary.json");
    assert_eq!(summary["counts"]["total"], planned.len());
}
