//! The canary suite: every way to go red, and each goes red in its own way.

use crate::determinism::{files, files_of, files_of_a_run};
use crate::invariants;
use crate::project::{Project, Ran};
use crate::replay::assert_replays_alike;
use aho_corasick::AhoCorasick;
use std::collections::HashMap;

#[test]
fn every_case_of_the_canary_ends_as_it_must_and_the_suite_exits_1() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "canary", "--keep-bad-nodes"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let summary = project.json("summary.json");
    let cases = summary["cases"].as_array().expect("cases");
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| case["end"] != case["must_end"])
        .map(|case| format!("{}: {} instead of {}", case["name"], case["end"], case["must_end"]))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", ran.stdout);
    assert!(cases.iter().all(|case| case["must_end"].is_string()), "each case says how it must end");
}

/// A few of each kind: jobs, logs, rates, reports, NICs, queues, clocks.
const SOME: [&str; 16] = [
    "all-is-well",
    "clock-jump",
    "command-fails",
    "corrupt",
    "expected-failure",
    "garbled",
    "nic-dead-flows",
    "nic-slow",
    "no-baseline",
    "output-missing",
    "preempted",
    "queue-stuck",
    "rank-dies",
    "report-truncated",
    "straggler",
    "training",
];

#[test]
fn two_runs_of_the_canary_are_the_same_bytes_but_for_the_run_id_and_so_are_replays() {
    let cases = SOME.into_iter().flat_map(|case| ["--case", case]);
    let args: Vec<&str> = ["--keep-bad-nodes"].into_iter().chain(cases).collect();
    assert_same_bytes(&args);
}

#[test]
#[ignore = "takes a minute; 16 of its cases are always run"]
fn two_runs_of_the_canary_are_the_same_bytes_but_for_the_run_id_and_so_are_replays_full_set() {
    assert_same_bytes(&[]);
}

fn assert_same_bytes(more: &[&str]) {
    let project = Project::new();
    let args = &[&["--suite", "canary", "--seed", "7"], more].concat();
    let ran = project.harness(args);
    invariants::hold(&project, &ran, args);
    let folder = project.path().canonicalize().expect("a path").display().to_string();
    let path = AhoCorasick::new([folder]).expect("a pattern");
    for (name, bytes) in &files(&project.latest(), "") {
        assert!(!path.is_match(bytes), "{name} holds an absolute path of this machine");
    }
    let first = files_of(&project, &ran);
    let second = files_of_a_run(args);
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "differs: {name}");
    }
    assert!(first.contains_key("plan.json") && first.contains_key("junit.xml"));
    assert!(first.keys().any(|name| name.ends_with("metrics.parquet")));
    assert_replays_alike(&project);
}

/// Faults that no case over Slurm on four nodes can show: the command that shows each, its exit code and what it prints.
const ELSEWHERE: [(&str, &[&str], i32, &str); 7] = [
    ("connection-drops", OVER_SSH, 0, "finding connection-drops: "),
    ("host-unreachable", OVER_SSH, 3, "p5-002 cannot be reached"),
    ("gpu-missing@3", PROBE, 1, "cannot pass: p5-002: nvidia-smi lists 7 GPUs"),
    ("gpu-busy@3", PROBE, 1, "cannot pass: p5-002: busy"),
    ("driver-differs", DIFF, 1, "p5-002"),
    ("bad-fact@cpu_governor", DIFF, 1, "p5-002: cpu_governor powersave, expected performance"),
    ("link-slow=0.5@p5-020", ISOLATE, 1, "HRN-LINK-SLOW"),
];
const OVER_SSH: &[&str] = &["--suite", "nccl-p5", "--inventory", "sim-ssh", "-q", "all-all_gather"];
const PROBE: &[&str] = &["inventory", "probe"];
const DIFF: &[&str] = &["inventory", "diff"];
const ISOLATE: &[&str] =
    &["isolate", "--suite", "nccl-p5", "--inventory", "sim-32", "--nodes", "p5-[001-004,009-012,017-020]"];

fn kind(form: &str) -> &str {
    form.split(['=', '@']).next().unwrap_or(form)
}

#[test]
fn the_canary_has_a_case_for_every_fault() {
    let text = std::fs::read_to_string(crate::project::root().join("suites/canary.toml")).expect("read");
    let planted: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("sim_faults = "))
        .flat_map(|line| {
            line.split('"').filter_map(|fault| fault.split_once(':')).map(|(_, fault)| kind(fault))
        })
        .collect();
    for form in model::fault::Fault::FORMS {
        let elsewhere = ELSEWHERE.iter().any(|(fault, ..)| kind(fault) == kind(form));
        assert_ne!(planted.contains(&kind(form)), elsewhere, "in the canary or elsewhere: {form}");
    }
}

#[test]
fn what_no_case_of_the_canary_can_show_is_seen_elsewhere() {
    let project = Project::new();
    let mut healthy: HashMap<&[&str], Ran> = HashMap::new();
    for (fault, args, code, shown) in ELSEWHERE {
        let without = healthy.entry(args).or_insert_with(|| project.harness(args));
        assert!(without.code == Some(0) && !without.stdout.contains(shown), "{fault}: {}", without.all());
        let ran = project.harness(&[args, &["--sim-fault", &format!("p5-002:{fault}")]].concat());
        assert_eq!(ran.code, Some(code), "{fault}: {}", ran.all());
        assert!(ran.stdout.contains(shown), "{fault}: {}", ran.all());
    }
}

#[test]
fn a_clock_that_jumps_leaves_its_finding() {
    let project = Project::new();
    project.harness(&["--suite", "canary", "clock-jump"]);
    let verdict = project.json("cases/clock-jump/verdict.json");
    let findings = verdict["findings"].as_array().expect("findings");
    let jump = findings.iter().find(|finding| finding["code"] == "clock-jump").expect("a finding");
    assert_eq!(jump["node"], "p5-002");
    assert_eq!(verdict["end"], "pass");
}
