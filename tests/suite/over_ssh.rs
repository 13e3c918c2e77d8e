//! The same suite on the same pretend nodes, with Slurm between and without: the same verdicts; and what goes wrong with
//! connections alone.

use crate::project::Project;
use serde_json::Value;

/// Name and status of every verdict of the latest run, kernel shares among them.
fn verdicts(project: &Project) -> Vec<(String, String)> {
    let plan = project.json("plan.json");
    let mut verdicts = Vec::new();
    for case in plan["cases"].as_array().expect("cases") {
        let case = case["name"].as_str().expect("a name");
        let verdict = project.json(&format!("cases/{case}/verdict.json"));
        let word = |verdict: &Value, key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
        let all = verdict["verdicts"].as_array().expect("verdicts");
        verdicts.extend(all.iter().map(|verdict| (word(verdict, "name"), word(verdict, "status"))));
    }
    verdicts
}

#[test]
fn slurm_and_ssh_lead_to_the_same_verdicts_and_blame_the_same() {
    let project = Project::new();
    for (fault, code) in [
        (None, 0),
        (Some("p5-002:nic-slow=0.4@rdmap113s0"), 1),
        (Some("p5-003:gpu-slow=0.5@3"), 1),
        (Some("p5-002:report-missing"), 3),
        (Some("p5-002:hang"), 3),
    ] {
        let run = |inventory: &str| {
            let mut args =
                vec!["--suite", "nccl-p5", "-q", "--nodes", "p5-[001-003]", "--inventory", inventory];
            if let Some(fault) = fault {
                args.extend(["--sim-fault", fault]);
            }
            let ran = project.harness(&args);
            assert_eq!(ran.code, Some(code), "{inventory} {fault:?}: {}", ran.all());
            (verdicts(&project), ran.blamed())
        };
        let (slurm, ssh) = (run("default"), run("sim-ssh"));
        assert!(
            slurm.0.iter().any(|(name, _)| name.contains("kernel.share")),
            "kernel shares are among them"
        );
        assert_eq!(slurm, ssh, "{fault:?}");
    }
}

#[test]
fn a_connection_that_drops_changes_no_verdict_and_leaves_a_finding() {
    let project = Project::new();
    let ran = project.harness(&[
        "--suite",
        "nccl-p5",
        "-q",
        "--inventory",
        "sim-ssh",
        "--sim-fault",
        "p5-002:connection-drops",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let summary = project.json("summary.json").to_string();
    assert!(summary.contains("connection"), "no finding of it: {}", ran.all());
}

#[test]
fn a_host_that_never_answers_is_told_as_such_and_blamed_alone() {
    let project = Project::new();
    let ran = project.harness(&[
        "--suite",
        "nccl-p5",
        "-q",
        "--inventory",
        "sim-ssh",
        "--sim-fault",
        "p5-002:host-unreachable",
    ]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
    let line = ran.stdout.lines().find(|line| line.starts_with("culprit ")).expect("a culprit");
    assert!(line.contains("host-unreachable"), "{line}");
}

#[test]
fn faults_of_slurm_do_not_come_about_over_ssh_nor_those_of_connections_under_slurm() {
    let project = Project::new();
    for (inventory, fault) in [
        ("sim-ssh", "queue-stuck"),
        ("sim-ssh", "preempted"),
        ("default", "connection-drops"),
        ("default", "host-unreachable"),
    ] {
        let fault = format!("p5-002:{fault}");
        let ran = project.harness(&["--suite", "nccl-p5", "--inventory", inventory, "--sim-fault", &fault]);
        assert_eq!(ran.code, Some(2), "{inventory} {fault}: {}", ran.all());
    }
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_run_over_ssh_whose_process_is_ended_goes_on_and_runs_nothing_twice() {
    let suite = crate::resume::SUITE;
    let whole = Project::new();
    whole.write("suites/little.toml", suite);
    let args = ["--suite", "little", "-q", "--inventory", "sim-ssh", "--nodes", "p5-[001-003]"];
    let ended = whole.harness(&args);
    let expected = verdicts(&whole);
    let once = starts(&whole);
    assert!(once.len() > 8, "{once:?}");
    for at in [3, 9, 14, 20, 27, 33, 41, 55] {
        let project = Project::new();
        project.write("suites/little.toml", suite);
        let mut command = project.command(&args);
        command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
        let first = crate::project::ran(command.output().expect("the harness starts"));
        assert_eq!(first.code, None, "ended by a signal at write {at}: {}", first.all());
        let last = project.harness(&["--run", "latest", "--resume", "-q"]);
        assert_eq!(last.code, ended.code, "killed at write {at}: {}", last.all());
        assert_eq!(verdicts(&project), expected, "killed at write {at}");
        assert_eq!(starts(&project), once, "killed at write {at}");
    }
}

/// Node and job of every script that was started, sorted.
fn starts(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.latest().join("pretend.jsonl")).expect("a journal");
    let mut starts: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("whole lines"))
        .filter_map(|entry| {
            let argv: Vec<&str> = entry["argv"].as_array()?.iter().filter_map(Value::as_str).collect();
            let ["bash", _, "start", folder, node, ..] = argv.as_slice() else { return None };
            let job: Vec<&str> = folder.trim_end_matches('/').rsplit('/').take(2).collect();
            Some(format!("{} on {node}", job.join(" of ")))
        })
        .collect();
    starts.sort();
    // Where the answer may have been lost a node is asked again, and starts nothing twice.
    starts.dedup();
    starts
}
