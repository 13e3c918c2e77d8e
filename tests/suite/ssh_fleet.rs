//! Many nodes over ssh on a busy machine: no job is lost because the harness was busy with others, or with a slow host.

use crate::project::{Project, Ran};
use std::fs;

/// An inventory of so many simulated nodes with the shortest heartbeat timeout, and a suite of two cases on each of them.
fn run(many: usize, world: &str, program: &str, more: &[&str]) -> (Project, Ran) {
    let project = Project::new();
    project.write(
        "inventory/fleet.toml",
        &format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-{many:03}]\"\n\
             [reach]\nvia = \"ssh\"\nheartbeat_timeout_s = 30\n[world]\n{world}\n"
        ),
    );
    let case = |name: &str, after: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nlimit_s = 600\ncounters = false\n{after}\
             workload = {{ kind = \"command\", program = \"sleep\", args = [\"{program}\"] }}\n\
             recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        )
    };
    let suite =
        ["instance = \"p5\"\nabout = \"a fleet\"\n", &case("first", ""), &case("second", "")].concat();
    project.write("suites/fleet.toml", &suite);
    let base = ["--suite", "fleet", "--inventory", "fleet", "-q"];
    let ran = project.harness(&[&base, more].concat());
    (project, ran)
}

fn events(project: &Project, kind: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let all = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("json"));
    all.filter(|event| event["event"] == kind).collect()
}

#[test]
fn launching_sixty_four_nodes_slowly_loses_no_job_with_the_shortest_heartbeat_timeout() {
    let (project, ran) = run(64, "ssh_launch_s = 3.4", "100", &[]);
    let lost: Vec<String> = events(&project, "job-ended")
        .iter()
        .filter(|event| event.to_string().contains("no heartbeat"))
        .map(|event| event.to_string())
        .collect();
    assert!(lost.is_empty(), "{} jobs lost, the first: {}", lost.len(), lost[0]);
    assert_eq!((ran.code, ran.blamed()), (Some(0), Vec::new()), "{}", ran.all());
}

#[test]
fn a_host_that_answers_slowly_costs_the_others_no_job() {
    // Each question to it takes longer than half a heartbeat timeout: it may lose its own job, and no other node's.
    let (project, ran) = run(8, "ssh_answer_s = { p5-003 = 50 }", "100", &[]);
    let ended = events(&project, "job-ended");
    let lost: Vec<_> = ended.iter().filter(|event| event.to_string().contains("no heartbeat")).collect();
    assert!(lost.iter().all(|event| event["job"] == "p5-003"), "{lost:#?}");
    // A job of one node that is lost names that node, and no other.
    assert!(ran.blamed().iter().all(|blamed| blamed == "culprit p5-003 node"), "{}", ran.all());
    let summary = project.json("summary.json");
    assert_eq!(summary["counts"]["pass"], 14, "{}", ran.all());
}
