//! `harness compare`: runs that are alike, worse, partial, or about other things.

use crate::little::pairs;
use crate::project::Project;
use serde_json::Value;
use std::fs;

fn run(project: &Project, suite: &str, more: &[&str]) -> String {
    let mut args = vec!["-q", "--suite", suite, "--nodes", "p5-[001-004]"];
    args.extend(more);
    project.harness(&args);
    fs::read_link(project.latest()).expect("a link").display().to_string()
}

fn project() -> Project {
    let project = Project::new();
    project.write("suites/own.toml", &pairs("pairs", "at_least = \"300 GB/s\""));
    project.write("suites/other.toml", &pairs("others", "at_least = \"300 GB/s\""));
    project
}

#[test]
fn two_healthy_runs_are_the_same_and_a_slow_card_is_worse() {
    let project = project();
    let a = run(&project, "own", &["--seed", "1"]);
    let b = run(&project, "own", &["--seed", "2"]);
    let slow = run(&project, "own", &["--seed", "3", "--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]);
    let same = project.harness(&["compare", &a, &b]);
    assert_eq!(same.code, Some(0), "{}", same.all());
    assert!(same.stdout.contains("software and settings: the same"), "{}", same.all());
    assert!(same.stdout.contains("SIMULATED"), "{}", same.all());
    let worse = project.harness(&["compare", &a, &slow]);
    assert_eq!(worse.code, Some(1), "{}", worse.all());
    assert!(worse.stdout.contains("worse: pass -> fail: "), "{}", worse.all());
    let better = project.harness(&["compare", &slow, &a]);
    assert_eq!(better.code, Some(0), "{}", better.all());
    let json = project.harness(&["compare", &a, &slow, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap_or_else(|_| panic!("{}", json.all()));
    assert_eq!((document["outcome"].as_str(), json.code), (Some("worse"), Some(1)));
    assert_eq!(document["a"]["run"], a.as_str());
    assert!(document["metrics"]["compared"].as_u64() > Some(0), "{document}");
    assert_eq!(document["verdicts"]["changed"][0]["turned"], "worse");
}

#[test]
fn runs_of_other_things_partial_ones_and_a_run_and_itself_are_not_the_same() {
    let project = project();
    let a = run(&project, "own", &[]);
    let other = run(&project, "other", &[]);
    let output = project.harness(&["compare", &a, &other]);
    assert_eq!(output.code, Some(3), "{}", output.all());
    assert!(output.stdout.contains("no number was measured in both runs"), "{}", output.all());
    assert!(output.stdout.contains("only in the first: numbers: "), "{}", output.all());
    let itself = project.harness(&["compare", &a, &a]);
    assert!(itself.code == Some(3) && itself.stdout.contains("both are the same run"), "{}", itself.all());
    let b = run(&project, "own", &["--seed", "2"]);
    fs::remove_file(project.path().join(format!("runs/{b}/cases/pairs/verdict.json"))).expect("removed");
    let partial = project.harness(&["compare", &a, &b]);
    assert_eq!(partial.code, Some(3), "{}", partial.all());
    assert!(partial.stdout.contains("partial: case `pairs` was not judged"), "{}", partial.all());
    fs::write(project.path().join(format!("runs/{b}/cases/pairs/metrics.parquet")), "no table")
        .expect("written");
    let broken = project.harness(&["compare", &a, &b]);
    assert!(broken.code == Some(2) && broken.stderr.contains("metrics.parquet"), "{}", broken.all());
    assert_eq!(project.harness(&["compare", &a, "nowhere"]).code, Some(2));
}

#[test]
fn the_software_that_differs_is_reported_first() {
    let project = project();
    let a = run(&project, "own", &["--probe"]);
    let b = run(&project, "own", &["--seed", "2"]);
    let output = project.harness(&["compare", &a, &b]);
    let (software, verdicts) =
        (output.stdout.find("software and settings that differ"), output.stdout.find("verdicts: "));
    assert!(software.is_some() && software < verdicts, "{}", output.all());
    assert!(
        output.stdout.contains(" -> unknown\n") && output.stdout.contains("\n  driver "),
        "{}",
        output.all()
    );
}
