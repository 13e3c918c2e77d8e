//! Real logs that nobody here wrote, where they lie beside the project: each is read, or refused with a reason.

use harness::launch::slurm_state::{JobState, StateSet};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn corpus(folder: &str) -> Option<Vec<PathBuf>> {
    let path = crate::project::root().parent()?.join("shared/corpus").join(folder);
    let Ok(entries) = fs::read_dir(&path) else {
        println!("skipped: no corpus beside the project");
        return None;
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Some(files)
}

/// States in the columns of squeue, sinfo and sacct text, and in the fields of their JSON, by where they were found.
fn states(text: &str) -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        walk(&value, &mut found);
        return found;
    }
    let mut lines = text.lines();
    let Some(head) = lines.find(|line| !line.trim().is_empty()) else { return found };
    let separator = if head.contains('|') { Some('|') } else { None };
    let split = |line: &str| -> Vec<String> {
        match separator {
            Some(bar) => line.split(bar).map(|word| word.trim().to_owned()).collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    let head = split(head);
    let is_nodes = head.iter().any(|name| ["NODELIST", "HOSTNAMES", "AVAIL"].contains(&name.as_str()))
        && !head.iter().any(|name| name == "JOBID" || name == "JobID");
    for (at, name) in head.iter().enumerate() {
        if !matches!(name.as_str(), "STATE" | "State" | "ST") {
            continue;
        }
        for line in text.lines().skip_while(|line| split(line) != head).skip(1) {
            let words = split(line);
            if words.len() >= head.len()
                && let Some(word) = words.get(at)
            {
                found.entry(if is_nodes { "node" } else { "job" }).or_default().push(word.clone());
            }
        }
    }
    found
}

fn walk(value: &serde_json::Value, found: &mut BTreeMap<&'static str, Vec<String>>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let kind = match key.as_str() {
                    "job_state" => Some("job"),
                    "node_state" => Some("node"),
                    _ => None,
                };
                match (kind, value) {
                    (Some(kind), serde_json::Value::String(word)) => {
                        found.entry(kind).or_default().push(word.clone())
                    }
                    (Some(kind), serde_json::Value::Array(words)) => {
                        let words = words.iter().filter_map(|word| word.as_str()).map(str::to_owned);
                        found.entry(kind).or_default().extend(words);
                    }
                    _ => walk(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
        _ => {}
    }
}

#[test]
fn every_slurm_state_of_the_corpus_is_known() {
    let Some(files) = corpus("slurm") else { return };
    let mut unknown = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&fs::read(&file).expect("read")).into_owned();
        let states = states(&text);
        let (jobs, nodes) = (states.get("job").map_or(0, Vec::len), states.get("node").map_or(0, Vec::len));
        println!("{name}: {jobs} job states, {nodes} node states");
        for word in states.get("job").into_iter().flatten() {
            if let JobState::Unknown(word) = JobState::of(word) {
                unknown.push(format!("{name}: job {word}"));
            }
        }
        for word in states.get("node").into_iter().flatten() {
            unknown.extend(StateSet::of(word).unknown.iter().map(|word| format!("{name}: node {word}")));
        }
    }
    unknown.sort();
    unknown.dedup();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
