//! Real foreign logs, where they lie beside the project: each is read, or refused with a reason.

use crate::corpus;
use crate::fact::Fact;
use cluster::reach::slurm_state::{JobState, StateSet};
use logs::{efa_counters, training_log};
use std::collections::BTreeMap;
use std::fs;

pub(crate) const FACTS: &[Fact] = &[
    (
        "every_log_of_a_training_of_the_corpus_is_read_or_has_no_step",
        every_log_of_a_training_of_the_corpus_is_read_or_has_no_step,
    ),
    ("every_slurm_state_of_the_corpus_is_known", every_slurm_state_of_the_corpus_is_known),
    (
        "every_counter_file_of_the_corpus_is_read_or_refused_with_a_reason",
        every_counter_file_of_the_corpus_is_read_or_refused_with_a_reason,
    ),
];

/// The states that a file holds, by whether they are of jobs or of nodes: in JSON by their keys, in `State=` pairs, in
/// the column that a heading names, or in the one column where nearly every line has a state.
fn states(text: &str) -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for part in std::iter::once(text).chain(text.lines()) {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(part)
            && value.is_object()
        {
            walk(&value, text.contains("\"nodes\"") && !text.contains("\"jobs\""), &mut found);
            if part.len() == text.len() {
                return found;
            }
        }
    }
    // Partitions have a `State=` too, of another kind.
    let nodes = if text.contains("NodeName=") { text } else { "" };
    for word in nodes.split_whitespace().filter_map(|word| word.strip_prefix("State=")) {
        found.entry("node").or_default().push(word.to_owned());
    }
    if !found.is_empty() {
        return found;
    }
    let split = |line: &str| -> Vec<String> {
        let bar = ["|#", "|", ","].into_iter().find(|bar| {
            line.matches(bar).count() > 3 || text.lines().all(|l| l.is_empty() || l.contains(bar))
        });
        match bar {
            Some(bar) => line.split(bar).map(|word| word.trim().to_owned()).collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    let rows: Vec<Vec<String>> = text.lines().map(split).collect();
    let heading = rows.iter().position(|row| row.iter().any(|word| word.eq_ignore_ascii_case("state")));
    if let Some(at) = heading {
        let head = &rows[at];
        let column = head.iter().position(|word| word.eq_ignore_ascii_case("state")).unwrap_or_default();
        let of_jobs = head.iter().any(|name| name.eq_ignore_ascii_case("jobid"));
        let kind = if of_jobs { "job" } else { "node" };
        // Names with blanks shift the columns of a table for people, so a word is taken where it stands alone.
        let words =
            rows[at + 1..].iter().filter(|row| row.len() == head.len()).filter_map(|row| row.get(column));
        found.entry(kind).or_default().extend(words.cloned());
        return found;
    }
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    let known = |word: &String| !matches!(JobState::parse(word), JobState::Unknown(_)) && word.len() > 3;
    let filled = |column: usize| rows.iter().filter(|row| row.get(column).is_some_and(known)).count();
    let best = (0..width)
        .max_by_key(|column| filled(*column))
        .filter(|column| filled(*column) * 10 > rows.len() * 7);
    if let Some(column) = best {
        let words = rows.iter().filter_map(|row| row.get(column)).filter(|word| !word.is_empty());
        found.entry("job").or_default().extend(words.cloned());
    }
    found
}

fn walk(value: &serde_json::Value, of_nodes: bool, found: &mut BTreeMap<&'static str, Vec<String>>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let kind = match key.as_str() {
                    "job_state" => Some("job"),
                    "node_state" => Some("node"),
                    "state" if of_nodes => Some("node"),
                    "state" => Some("job"),
                    _ => None,
                };
                match (kind, value) {
                    (Some(kind), serde_json::Value::String(word)) => {
                        found.entry(kind).or_default().push(word.clone());
                    }
                    (Some(kind), serde_json::Value::Array(words)) => {
                        let words = words.iter().filter_map(|word| word.as_str()).map(str::to_owned);
                        found.entry(kind).or_default().extend(words);
                    }
                    _ => walk(value, of_nodes, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| walk(value, of_nodes, found)),
        _ => {}
    }
}

fn every_log_of_a_training_of_the_corpus_is_read_or_has_no_step() {
    for file in corpus::files("training") {
        let read = training_log::read(fs::read(&file).expect("a file").as_slice()).expect("read");
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        assert_eq!(read.garbled, 0, "{name}: {:?}", read.findings);
        // The one that is known reports epochs alone.
        assert_eq!(read.series.is_empty(), name == "nersc-sc22-1gpu-out.log", "{name}");
    }
}

fn every_slurm_state_of_the_corpus_is_known() {
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for file in corpus::files("slurm") {
        let name = corpus::name(&file);
        let text = String::from_utf8_lossy(&fs::read(&file).expect("read")).into_owned();
        let states = states(&text);
        seen += states.values().map(Vec::len).sum::<usize>();
        for word in states.get("job").into_iter().flatten() {
            if let JobState::Unknown(word) = JobState::parse(word) {
                unknown.push(format!("{name}: job {word}"));
            }
        }
        for word in states.get("node").into_iter().flatten() {
            unknown.extend(StateSet::parse(word).unknown.iter().map(|word| format!("{name}: node {word}")));
        }
    }
    unknown.sort();
    unknown.dedup();
    assert!(unknown.is_empty() && seen > 0, "{seen} states seen, unknown: {unknown:#?}");
}

fn every_counter_file_of_the_corpus_is_read_or_refused_with_a_reason() {
    let mut read = 0;
    for file in corpus::files("efa") {
        let name = corpus::name(&file);
        let bytes = fs::read(&file).expect("read");
        match efa_counters::read_totals(&bytes, &name) {
            Err(why) => assert!(!why.to_string().is_empty(), "{name}"),
            Ok(_) => read += 1,
        }
    }
    assert!(read >= 2, "the exporter's text and the plain listing are read");
}
