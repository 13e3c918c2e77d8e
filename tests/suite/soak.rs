//! `harness accept` with a soak, on simulated clusters: what is found, when, and by what; and what a killed process leaves.

use crate::project::{Project, Ran};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Ten new nodes; the soak alone, compared with each other.
const NODES: [&str; 6] = ["--nodes", "p5-[033-042]", "--partners", "none", "--suite", "soak"];
/// Heat, memory, links of GPUs and NICs, a driver.
const SLOW_FAULTS: [&str; 10] = [
    "--sim-fault",
    "p5-034:throttles-after=40@3",
    "--sim-fault",
    "p5-035:ecc-grows=60@5",
    "--sim-fault",
    "p5-037:nvlink-replays=150@6",
    "--sim-fault",
    "p5-038:nic-flaps=245@rdmap113s0",
    "--sim-fault",
    "p5-041:driver-leaks=300",
];

/// The soak of the acceptance suite by itself, so that other stages cost nothing here.
fn project() -> Project {
    let project = Project::new();
    let shipped = fs::read_to_string(crate::project::root().join("suites/acceptance-p5.toml")).expect("read");
    let case = |name: &str| shipped.find(&format!("[[case]]\nname = \"{name}\"")).expect(name);
    let soak = &shipped[case("soak")..case("pair-{op}")];
    let soak = &soak[..soak.rfind("# Pairs").expect("the next case")];
    project.write("suites/soak.toml", &format!("instance = \"p5\"\nabout = \"a soak\"\n{soak}"));
    project
}

fn accept(project: &Project, out: &str, more: &[&[&str]]) -> Ran {
    let args = ["accept", "--inventory", "sim-64", "--output", out];
    project.harness(&[&args[..], &NODES, &more.concat()].concat())
}

fn certificate(project: &Project, out: &str) -> Value {
    let text = fs::read_to_string(project.path().join(out).join("acceptance.json")).expect("a certificate");
    serde_json::from_str(&text).expect("JSON")
}

/// Of each rejected node its code, the part, and the minute of the soak.
fn rejected(certificate: &Value) -> Vec<(String, String, String, u64)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = certificate["rejected"].as_array().expect("a list").iter();
    all.map(|one| {
        assert_eq!(one["stage"], "soak");
        let culprit = &one["culprits"][0];
        let minute = one["soaked_s"].as_u64().expect("a moment") / 60;
        (word(&one["node"]), word(&culprit["code"]), word(&culprit["part"]), minute)
    })
    .collect()
}

fn five_found() -> Vec<(String, String, String, u64)> {
    let found = [
        ("p5-034", "HRN-GPU-THROTTLES", "gpu3", 40),
        ("p5-035", "HRN-GPU-ECC", "gpu5", 540),
        ("p5-037", "HRN-GPU-NVLINK", "gpu6", 240),
        ("p5-038", "HRN-NIC-DOWN", "rdmap113s0", 245),
        ("p5-041", "HRN-NODE-LEAK", "node", 540),
    ];
    found.map(|(node, code, part, minute)| (node.into(), code.into(), part.into(), minute)).to_vec()
}

#[test]
fn five_slow_faults_are_each_found_with_their_moment_and_a_delivery_killed_three_times_comes_to_the_same() {
    let project = project();
    let whole = accept(&project, "whole", &[&["--soak", "14h"], &SLOW_FAULTS]);
    assert_eq!(whole.code, Some(1), "{}", whole.all());
    let of_whole = certificate(&project, "whole");
    assert_eq!(rejected(&of_whole), five_found(), "{}", whole.all());
    let kept = ["p5-033", "p5-036", "p5-039", "p5-040", "p5-042"];
    assert_eq!(of_whole["accepted"], serde_json::json!(kept));
    let throttles = of_whole["rejected"][0]["culprits"][0]["evidence"].as_str().expect("evidence");
    assert!(throttles.ends_with("in the soak from 40 min on, window 1 of 14"), "{throttles}");
    let lines = whole.stdout.lines().filter(|line| line.starts_with("rejected at "));
    assert!(lines.clone().count() >= 5 && lines.clone().all(|line| line.len() <= 120), "{}", whole.all());
    let soak = &of_whole["soak"];
    assert_eq!((&soak["windows"], &soak["judged"]), (&14.into(), &14.into()));
    assert_eq!(soak["completed"], "p5-[033,036,039-040,042]");
    let runs = fs::read_dir(project.path().join("whole/runs")).expect("runs").flatten();
    assert_eq!(runs.filter(|run| !run.path().is_symlink()).count(), 14, "a run for each window");

    let start = ["accept", "--inventory", "sim-64", "--output", "killed", "--soak", "14h"];
    let start = [&start[..], &NODES, &SLOW_FAULTS].concat();
    let resume = ["accept", "--resume", "killed"];
    for (args, window) in [(&start[..], "-02-soak"), (&resume[..], "-05-soak"), (&resume[..], "-12-soak")] {
        kill_in(&project, args, window);
    }
    let resumed = project.harness(&resume);
    assert_eq!(resumed.code, Some(1), "{}", resumed.all());
    let of_killed = certificate(&project, "killed");
    assert_eq!(rejected(&of_killed), rejected(&of_whole));
    for same in ["accepted", "soak", "limits", "judged_by"] {
        assert_eq!(of_killed[same], of_whole[same], "{same}");
    }
}

/// Ends the process while it is in that window.
fn kill_in(project: &Project, args: &[&str], window: &str) {
    let mut child = project.command(args).stdout(Stdio::null()).spawn().expect("started");
    let runs = project.path().join("killed/runs");
    let is_there = |runs: &Path| {
        let mut entries = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.any(|path| path.to_string_lossy().ends_with(window) && path.join("plan.json").exists())
    };
    while !is_there(&runs) && child.try_wait().expect("waited").is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(!project.path().join("killed/acceptance.json").exists(), "it had ended before {window}");
}

#[test]
fn sound_nodes_pass_a_soak_and_the_certificate_says_how_long_and_what_it_could_not_show() {
    let project = project();
    let ran = accept(&project, "out", &[&["--soak", "2h"]]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("stage soak: 20 jobs"), "{}", ran.all());
    let text = fs::read_to_string(project.path().join("out/acceptance.md")).expect("a certificate");
    assert!(text.contains("| soak | 2 h on each node in 2 windows of 1 h; 2 judged"), "{text}");
    assert!(text.contains("soak: slow growth (errors, memory) can be named from"), "{text}");
}

#[test]
fn a_leak_that_all_nodes_have_rejects_none_and_accepts_none() {
    let project = project();
    let faults: Vec<String> = (33..=42).map(|node| format!("p5-0{node}:driver-leaks=300")).collect();
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--sim-fault", fault.as_str()]).collect();
    let ran = accept(&project, "out", &[&["--soak", "13h"], &faults]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let certificate = certificate(&project, "out");
    assert_eq!(rejected(&certificate), []);
    let undecided = certificate["undecided"].as_array().expect("a list");
    let why = undecided[0]["why"].as_str().expect("a reason");
    assert!(undecided.len() == 10 && why.contains("not attributable"), "{}", ran.all());
}

#[test]
fn what_most_nodes_fail_by_in_one_window_rejects_none() {
    let project = project();
    let faults: Vec<String> = (33..=42).map(|node| format!("p5-0{node}:driver-leaks=2000")).collect();
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--sim-fault", fault.as_str()]).collect();
    let ran = accept(&project, "out", &[&["--soak", "2h"], &faults]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let certificate = certificate(&project, "out");
    assert_eq!(rejected(&certificate), []);
    let why = certificate["undecided"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("10 of 10 nodes fail by `host.kernel_growth`"), "{}", ran.all());
}

#[test]
fn a_cause_common_to_all_nodes_ends_the_soak_after_one_retry_and_is_shown() {
    let project = project();
    let faults: Vec<String> = (33..=42).map(|node| format!("p5-0{node}:hang")).collect();
    let faults: Vec<&str> = faults.iter().flat_map(|fault| ["--sim-fault", fault.as_str()]).collect();
    let ran = accept(&project, "out", &[&["--soak", "2h"], &faults]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let certificate = certificate(&project, "out");
    assert_eq!(certificate["undecided"].as_array().map(Vec::len), Some(10));
    let why = certificate["undecided"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("all jobs failed with the same cause: hang"), "{}", ran.all());
    let runs = fs::read_dir(project.path().join("out/runs")).expect("runs").flatten();
    assert_eq!(runs.filter(|run| !run.path().is_symlink()).count(), 2, "the window and its retry");
}

#[test]
fn a_window_that_cannot_be_measured_decides_nothing_about_its_node() {
    let project = project();
    let ran = accept(&project, "out", &[&["--soak", "2h", "--sim-fault", "p5-035:output-missing"]]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let certificate = certificate(&project, "out");
    assert_eq!(certificate["undecided"][0]["node"], "p5-035");
    assert_eq!(certificate["accepted"].as_array().map(Vec::len), Some(9));
}

#[test]
fn a_soak_is_run_by_accept_alone_and_only_in_whole_windows() {
    let project = project();
    let plain = project.harness(&["--suite", "soak"]);
    assert!(plain.code == Some(4) && plain.all().contains("window by window"), "{}", plain.all());
    for (more, code, expected) in [
        (&["--soak", "90min"][..], 2, "whole windows of 3600 s"),
        (&["--soak", "soon"], 2, "a length is written `24h`"),
        (&["--soak", "20s"], 2, "must last 1 min to 24 h"),
        (&["--soak", "2000h"], 2, "at most 1000 windows"),
        (&["--soak", "2h", "--suite", "node-p5"], 2, "has no case with `soak`"),
        (&["--soak", "2h", "--dry-run"], 0, "stage soak: 20 jobs"),
    ] {
        let args = ["accept", "--inventory", "sim-64", "--output", "out", "--nodes", "p5-[033-042]"];
        let suite: &[&str] = if more.contains(&"--suite") { &[] } else { &["--suite", "soak"] };
        let ran = project.harness(&[&args[..], &["--partners", "none"], suite, more].concat());
        assert!(ran.code == Some(code) && ran.all().contains(expected), "{expected}: {}", ran.all());
    }
    assert!(!project.path().join("out").exists());
}
