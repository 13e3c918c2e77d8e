//! A Slurm as clusters have it, and not as a test bed does: without GRES, with nodes that are powered down, with limits
//! on how many jobs a user submits, with its commands away from PATH, with a controller that does not answer.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::fs;

const SUITE: &str = r#"
instance = "p5"
about = "a command on each node"
[[case]]
name = "each"
placement = "each"
recipes = ["command"]
limit_s = 60
queue_limit_s = 1800
workload = { kind = "command", program = "hostname" }
[[case.assert]]
metric = "command.exit_code"
equals = 0
"#;

/// Four simulated nodes behind a Slurm of these properties, asked for with these keys.
fn project(world: &str, reach: &str) -> Project {
    let project = Project::new();
    project.write("suites/each.toml", SUITE);
    project.write(
        "inventory/w.toml",
        &format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n{reach}\n\
             [world]\n{world}\n"
        ),
    );
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.harness(&[&["--suite", "each", "--inventory", "w"], more].concat())
}

fn events(project: &Project, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.latest().join("events.jsonl")).expect("events");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    events.filter(|event| event["event"] == name).collect()
}

#[test]
fn a_slurm_without_gres_runs_jobs_that_ask_for_no_gpus() {
    let project = project("gres = false", "gpus = \"none\"");
    let ran = run(&project, &["--probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!ran.all().contains("not probed"), "{}", ran.all());
    let planned = run(&project, &["--dry-run"]);
    for word in ["--gres", "--gpus"] {
        assert!(!planned.stdout.contains(word), "{word}: {}", planned.all());
    }
}

#[test]
fn a_slurm_without_gres_refuses_what_asks_for_gpus_and_the_key_is_named() {
    let project = project("gres = false", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let verdict = fs::read_to_string(project.latest().join("cases/each/verdict.json")).expect("a verdict");
    assert!(verdict.contains("Invalid generic resource (gres) specification"), "{verdict}");
    assert!(verdict.contains("gpus = \\\"none\\\""), "{verdict}");
    let probed = project.harness(&["inventory", "probe", "--inventory", "w"]);
    assert!(probed.stdout.contains("gpus = \"none\""), "{}", probed.all());
}

#[test]
fn nodes_that_boot_for_ten_minutes_are_no_hang() {
    let project = project("boot_s = 600", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stderr.contains("each p5-001: configuring (nodes boot)"), "{}", ran.all());
    assert_eq!(events(&project, "job-interrupted").len(), 0);
}

#[test]
fn nodes_that_boot_longer_than_the_queue_limit_are_given_up_as_waiting() {
    let project = project("boot_s = 2400", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let ended = events(&project, "job-ended");
    assert!(ended.iter().all(|event| event["end"]["how"] == "queue-stuck"), "{ended:?}");
    assert_eq!(ran.blamed(), [] as [String; 0], "{}", ran.all());
}

#[test]
fn nodes_that_are_powered_down_boot_for_the_probe() {
    let project = project("boot_s = 600", "");
    let probed = project.harness(&["inventory", "probe", "--inventory", "w"]);
    assert_eq!(probed.code, Some(0), "{}", probed.all());
    assert!(probed.stdout.contains("4 fit, 0 cannot pass, 0 not probed"), "{}", probed.all());
}

/// A partition for short jobs: Slurm takes what asks for longer, and never starts it.
#[test]
fn a_probe_asks_for_no_longer_than_the_partition_allows_and_jobs_that_do_are_reported() {
    let project = project("max_minutes = 1", "");
    let probed = project.harness(&["inventory", "probe", "--inventory", "w"]);
    assert_eq!(probed.code, Some(0), "{}", probed.all());
    assert!(probed.stdout.contains("4 fit, 0 cannot pass, 0 not probed"), "{}", probed.all());
    let ran = run(&project, &["--probe"]);
    assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", ran.all());
    assert!(!ran.all().contains("Requested nodes are busy"), "{}", ran.all());
    let verdict = fs::read_to_string(project.latest().join("cases/each/verdict.json")).expect("a verdict");
    assert!(verdict.contains("PartitionTimeLimit; requested: "), "{verdict}");
}

#[test]
fn slurm_is_found_where_a_login_shell_alone_has_it_on_its_path() {
    for reach in ["", "[paths]\nslurm = \"/opt/slurm/bin\""] {
        let project = project("tools_on_path = false", reach);
        let ran = run(&project, &["--probe"]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert!(!ran.all().contains("not probed"), "{}", ran.all());
    }
}

#[test]
fn a_submit_limit_is_waited_out_with_the_key_that_avoids_it() {
    let project = project("most_submitted = 2", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stderr.contains("`most_jobs = 2`"), "{}", ran.all());
    assert_eq!(events(&project, "job-submitted").len(), 4);
}

#[test]
fn a_controller_that_does_not_answer_ends_in_exit_code_3() {
    let project = project("controller = false", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.all().contains("Unable to contact slurm controller"), "{}", ran.all());
}

#[test]
fn what_the_submitting_shell_exports_is_recorded_and_reported() {
    let shell = "shell_env = { NCCL_ALGO = \"Ring\", LD_LIBRARY_PATH = \"/home/me/nccl/lib\" }";
    let project = project(shell, "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let analysis =
        fs::read_to_string(project.latest().join("cases/each/analysis.json")).expect("an analysis");
    assert!(analysis.contains("inherited-environment") && analysis.contains("NCCL_ALGO=Ring"), "{analysis}");
    assert!(analysis.contains("LD_LIBRARY_PATH=/home/me/nccl/lib"), "{analysis}");
}
