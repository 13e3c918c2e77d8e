//! A small run with a little of everything, for tests of what is done with runs that are over: collectives with counters,
//! a profiled case, a command that fails, and a case that its failure stops.

use crate::determinism::{files, replaced, without_digest_of_plan};
use crate::project::{Project, Ran, ran};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(crate) const SUITE: &str = include_str!("../scenarios/little/files/suites/little.toml");

/// Pairs of nodes, two sizes, and this bound on their bandwidth: a run of it is over at once.
pub(crate) fn pairs(case: &str, bound: &str) -> String {
    format!(
        r#"
instance = "p5"
about = "pairs"
[[case]]
name = "{case}"
placement = "pairs"
workload = {{ kind = "nccl-tests", op = "all_gather", from = "1GiB", to = "2GiB", factor = 2 }}
recipes = ["nccl_tests"]
[[case.assert]]
metric = "nccl.busbw"
size = ["1GiB", "2GiB"]
{bound}
"#
    )
}

pub(crate) const PAIR: &str = "p5-001+p5-002";
/// One NIC moved nothing: one node's share fails.
pub(crate) const ARGS: [&str; 6] =
    ["--suite", "little", "--nodes", "p5-[001-002]", "--sim-fault", "p5-002:nic-dead@rdmap113s0"];

pub(crate) fn project() -> Project {
    let project = Project::new();
    project.write("suites/little.toml", SUITE);
    project
}

/// A run that has come to its end, and its id.
pub(crate) fn ended(project: &Project) -> String {
    let ran = project.harness(&[&ARGS[..], &["-q"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    id(project)
}

/// A run whose process was ended at that write, and its id.
pub(crate) fn killed(project: &Project, at: u64) -> String {
    let mut command = project.command(&[&ARGS[..], &["-q"]].concat());
    command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
    let ran: Ran = ran(command.output().expect("the harness starts"));
    assert_eq!(ran.code, None, "{}", ran.all());
    id(project)
}

/// Of the newest run.
pub(crate) fn id(project: &Project) -> String {
    fs::read_link(project.latest()).expect("a run").display().to_string()
}

/// Every file that reports a result, with the run's id and its parent's made the same everywhere.
pub(crate) fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let plan: Value =
        serde_json::from_slice(&fs::read(folder.join("plan.json")).expect("a plan")).expect("a plan");
    let id = plan["run_id"].as_str().expect("an id");
    let mut found = files(folder, "");
    found.retain(|name, _| !["plan.json", "origin"].contains(&name.as_str()));
    for (name, bytes) in &mut found {
        if name == "summary.json" {
            let parent = format!("\"parent\": {}", plan["parent"]);
            *bytes = String::from_utf8_lossy(bytes).replace(&parent, "\"parent\"").into_bytes();
        }
        if let ("junit.xml", Some(parent)) = (name.as_str(), plan["parent"].as_str()) {
            let parent = format!("\n      <property name=\"parent\" value=\"{parent}\"/>");
            *bytes = String::from_utf8_lossy(bytes).replace(&parent, "").into_bytes();
        }
        if name == "run.json" {
            *bytes = without_digest_of_plan(bytes);
        }
        if name == "index.html" {
            *bytes = without_origin(&String::from_utf8_lossy(bytes)).into_bytes();
        }
        if !name.contains("/raw/") && !name.ends_with(".parquet") {
            *bytes = replaced(bytes, id.as_bytes());
        }
    }
    // What came home and what happened report the parent, in the child too.
    found.retain(|name, _| !name.ends_with(".jsonl"));
    found
}

/// The page of a run without the run that it was made from, which its scripts name too.
fn without_origin(page: &str) -> String {
    let is_parent = |line: &&str| !line.starts_with("<dt>made from run</dt>");
    let lines: Vec<&str> = page.lines().filter(is_parent).collect();
    let page = lines.join("\n");
    let (before, rest) = page.split_once("<summary>What was launched</summary>").expect("its scripts");
    let (_, after) = rest.split_once("</section>").expect("an end");
    format!("{before}{after}")
}

#[track_caller]
pub(crate) fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in one {
        assert!(other[name] == *bytes, "differs: {name}");
    }
}

/// Name and status of every verdict of the newest run, in the plan's order. Every assertion must have one.
#[track_caller]
pub(crate) fn verdicts(project: &Project) -> Vec<(String, String)> {
    let plan = project.json("plan.json");
    let mut found = Vec::new();
    for case in plan["cases"].as_array().expect("cases") {
        let verdict = project.json(&format!("cases/{}/verdict.json", case["name"].as_str().expect("a name")));
        let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
        let planned: Vec<String> =
            case["assertions"].as_array().expect("assertions").iter().map(name).collect();
        let judged = verdict["verdicts"].as_array().expect("verdicts");
        assert_eq!(planned, judged.iter().map(name).collect::<Vec<_>>());
        let status = |value: &Value| value["status"].as_str().expect("a status").to_owned();
        found.extend(judged.iter().map(|value| (name(value), status(value))));
    }
    found
}

#[track_caller]
pub(crate) fn verdict(project: &Project, case: &str, label: &str) -> Value {
    let file = project.json(&format!("cases/{case}/verdict.json"));
    let found = file["verdicts"]
        .as_array()
        .expect("verdicts")
        .iter()
        .find(|verdict| verdict["name"].as_str().is_some_and(|name| name.contains(label)));
    found.unwrap_or_else(|| panic!("no {label} in {file}")).clone()
}
