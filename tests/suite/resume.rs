//! A run whose process is ended at any moment goes on where it was ended: every assertion is judged once, and no job is
//! run twice.

use crate::project::{Project, Ran, ran};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Jobs in rounds and side by side, a dependency, flows, a profiler, a command that fails.
const SUITE: &str = r#"
instance = "p5"
about = "a little of everything"
[[case]]
name = "pairs"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "64MiB", to = "256MiB", factor = 2 }
recipes = ["nccl_tests", "efa_traffic", "cuda_gpu_kern_sum"]
[case.profile]
keep = "always"
[[case.assert]]
metric = "nccl.busbw"
size = "256MiB"
at_least = "1 GB/s"
[[case.assert]]
metric = "kernel.class_share"
class = "nccl"
at_least = "95 %"
[[case]]
name = "flows"
placement = "pairs"
workload = { kind = "nic-pairs" }
recipes = ["nic_flows"]
[[case.assert]]
metric = "nic.rate"
per = "node"
at_least = "11 GB/s"
[[case]]
name = "after"
after = ["pairs"]
placement = "each"
workload = { kind = "command", program = "true" }
recipes = ["command"]
[[case.assert]]
metric = "command.exit_code"
equals = 0
[[case]]
name = "fails"
placement = 1
workload = { kind = "command", program = "false" }
recipes = ["command"]
[[case.assert]]
metric = "command.exit_code"
equals = 0
"#;

const RUN: [&str; 6] = ["--suite", "little", "-q", "--nodes", "p5-[001-003]", "--sim-fault"];
const FAULT: &str = "p5-002:nic-slow=0.4@rdmap113s0";

fn project() -> Project {
    let project = Project::new();
    project.write("suites/little.toml", SUITE);
    project
}

fn start(project: &Project, kill_at: Option<u64>) -> Ran {
    let mut command = project.command(&[&RUN[..], &[FAULT]].concat());
    if let Some(at) = kill_at {
        command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
    }
    ran(command.output().expect("the harness starts"))
}

fn lines(project: &Project, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.latest().join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}")))
        .collect()
}

/// How often each job was handed to the simulated cluster, by its folder without the run's id.
fn launches(project: &Project) -> BTreeMap<String, u32> {
    let mut launches = BTreeMap::new();
    for entry in lines(project, "simulated.jsonl") {
        let argv: Vec<&str> =
            entry["argv"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if let ["sbatch", "--parsable", path] = argv.as_slice() {
            let job = path.rsplit('/').skip(1).take(2).collect::<Vec<_>>().join(" of ");
            *launches.entry(job).or_insert(0) += 1;
        }
    }
    launches
}

/// Name and status of every verdict.
fn verdicts(project: &Project) -> Vec<(String, String)> {
    let plan = project.json("plan.json");
    let mut verdicts = Vec::new();
    for case in plan["cases"].as_array().expect("cases") {
        let case = case["name"].as_str().expect("a name");
        let verdict = project.json(&format!("cases/{case}/verdict.json"));
        for verdict in verdict["verdicts"].as_array().expect("verdicts") {
            let word = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
            verdicts.push((word("name"), word("status")));
        }
    }
    verdicts
}

#[test]
fn a_run_killed_at_any_write_goes_on_and_runs_nothing_twice() {
    killed_and_resumed(10);
}

#[test]
#[ignore = "takes minutes; 10 of the 50 writes are always run"]
fn a_run_killed_at_any_write_goes_on_and_runs_nothing_twice_full_set() {
    killed_and_resumed(50);
}

/// A run ended at so many of its writes, from the first to the last; each goes on and comes to the same.
fn killed_and_resumed(points: u64) {
    let whole = project();
    let ended = start(&whole, None);
    assert_eq!(ended.code, Some(1), "{}", ended.all());
    let (expected, once) = (verdicts(&whole), launches(&whole));
    assert!(once.values().all(|times| *times == 1) && once.len() > 8, "{once:?}");
    let writes = (lines(&whole, "events.jsonl").len() + lines(&whole, "simulated.jsonl").len()) as u64;
    assert!(writes > 50, "{writes}");
    let mut killed = 0;
    for point in 0..points {
        let at = 1 + point * (writes - 1) / (points - 1);
        let project = project();
        let first = start(&project, Some(at));
        assert_eq!(first.code, None, "ended by a signal at write {at}: {}", first.all());
        killed += 1;
        // Every fifth is ended a second time, while it goes on.
        if point % 5 == 0 {
            let mut command = project.command(&["--run", "latest", "--resume", "-q"]);
            command.env("HARNESS_TEST_KILL_AT_WRITE", "7");
            command.output().expect("the harness starts");
        }
        let finished = project.path().join("runs/latest/summary.json").exists();
        let last = match finished {
            true => continue,
            false => project.harness(&["--run", "latest", "--resume", "-q"]),
        };
        assert_eq!(last.code, Some(1), "killed at write {at} of {writes}: {}", last.all());
        assert_eq!(verdicts(&project), expected, "killed at write {at} of {writes}");
        assert_eq!(launches(&project), once, "killed at write {at} of {writes}");
        assert_eq!(cluster::run::shared_slots(&lines(&project, "events.jsonl")), [] as [String; 0]);
        assert_eq!(last.blamed(), ended.blamed(), "killed at write {at} of {writes}");
    }
    assert_eq!(killed, points);
}

#[test]
fn a_run_that_has_ended_or_never_was_is_not_resumed() {
    let project = project();
    start(&project, None);
    let again = project.harness(&["--run", "latest", "--resume"]);
    assert_eq!(again.code, Some(2), "{}", again.all());
    assert!(again.stderr.contains("this run is complete"), "{}", again.stderr);
    let none = project.harness(&["--run", "20260101T000000Z-none-0000", "--resume"]);
    assert_eq!(none.code, Some(2), "{}", none.all());
    let alone = project.harness(&["--resume"]);
    assert_eq!(alone.code, Some(2), "{}", alone.all());
}

#[test]
fn a_run_is_not_resumed_upon_another_cluster() {
    let project = project();
    assert_eq!(start(&project, Some(20)).code, None);
    project.write(
        "inventory/default.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-009]\"\n",
    );
    let other = project.harness(&["--run", "latest", "--resume"]);
    assert_eq!(other.code, Some(2), "{}", other.all());
    assert!(other.stderr.contains("inventory/default.toml"), "{}", other.stderr);
}

#[test]
fn a_run_over_ssh_whose_process_is_ended_goes_on_and_runs_nothing_twice() {
    let suite = SUITE;
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
        let first = ran(command.output().expect("the harness starts"));
        assert_eq!(first.code, None, "ended by a signal at write {at}: {}", first.all());
        let last = project.harness(&["--run", "latest", "--resume", "-q"]);
        assert_eq!(last.code, ended.code, "killed at write {at}: {}", last.all());
        assert_eq!(verdicts(&project), expected, "killed at write {at}");
        assert_eq!(starts(&project), once, "killed at write {at}");
    }
}

/// Node and job of every script that was started, sorted.
fn starts(project: &Project) -> Vec<String> {
    let text = fs::read_to_string(project.latest().join("simulated.jsonl")).expect("a journal");
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
