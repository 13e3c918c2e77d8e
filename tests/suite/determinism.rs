//! Same seed, same bytes: two runs differ in nothing but their run id.

use crate::project::{Project, Ran};
use aho_corasick::AhoCorasick;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn another_seed_gives_other_numbers() {
    let seed = |seed| files_of_a_run(&["--suite", "canary", "all-is-well", "--seed", seed]);
    let metrics = "cases/all-is-well/metrics.parquet";
    assert_ne!(seed("7")[metrics], seed("8")[metrics]);
}

#[test]
fn where_outputs_go_and_how_they_look_is_in_no_artefact() {
    let plain = files_of_a_run(&["--suite", "canary", "all-is-well"]);
    let dressed = files_of_a_run(&[
        "--suite",
        "canary",
        "all-is-well",
        "-q",
        "--color=always",
        "--junit=a.xml",
        "--json=b.json",
    ]);
    assert_eq!(plain, dressed);
}

/// Every file of a run, with the run id made the same everywhere.
pub(crate) fn files_of_a_run(args: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let project = Project::new();
    let ran = project.harness(args);
    files_of(&project, &ran)
}

pub(crate) fn files_of(project: &Project, ran: &Ran) -> BTreeMap<String, Vec<u8>> {
    let id = fs::read_link(project.latest()).unwrap_or_else(|_| panic!("{}", ran.all()));
    let id = id.display().to_string();
    let mut found = files(&project.latest(), &id);
    if let Some(record) = found.get_mut("run.json") {
        *record = without_digest_of_plan(record);
    }
    found
}

/// A plan has the id of its run, and so its digest is another in each.
pub(crate) fn without_digest_of_plan(record: &[u8]) -> Vec<u8> {
    let record = String::from_utf8_lossy(record);
    let is_other = |line: &&str| !line.trim_start().starts_with("\"plan.json\": \"");
    let lines: Vec<&str> = record.lines().filter(is_other).collect();
    lines.join("\n").into_bytes()
}

pub(crate) fn files(folder: &Path, id: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside").display().to_string();
                let bytes = fs::read(&path).expect("read");
                let bytes = if id.is_empty() { bytes } else { replaced(&bytes, id.as_bytes()) };
                found.insert(name, bytes);
            }
        }
    }
    found
}

pub(crate) fn replaced(bytes: &[u8], id: &[u8]) -> Vec<u8> {
    AhoCorasick::new([id]).expect("a pattern").replace_all_bytes(bytes, &["RUN"])
}
