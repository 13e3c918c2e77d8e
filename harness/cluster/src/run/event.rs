//! The events of a run while it goes on, one line each, in the order in which they happened. They are all that is
//! needed to go on with a run whose process was ended.

use metric::finding::Finding;
use model::artefact::{Blamed, Ended};
use serde::Serialize;
use std::collections::BTreeMap;

/// An event of a run.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    RunStarted {
        at: String,
    },
    /// Another process goes on where the first was ended.
    RunResumed {
        at: String,
    },
    JobSubmitted {
        at: String,
        case: &'a str,
        job: &'a str,
        handle: &'a str,
        nodes: &'a [String],
        estimate_s: u64,
    },
    /// A second attempt is to be launched: the cluster itself ended the first.
    JobAgain {
        at: String,
        case: &'a str,
        job: &'a str,
        first: &'a str,
        cause: &'a str,
    },
    JobNotSubmitted {
        at: String,
        case: &'a str,
        job: &'a str,
        why: &'a str,
        end: &'a Ended,
        #[serde(skip_serializing_if = "Option::is_none")]
        blamed: Option<&'a Blamed>,
    },
    /// It has its nodes, and its script has not begun on them.
    JobStarting {
        at: String,
        case: &'a str,
        job: &'a str,
        reason: &'a str,
    },
    /// Slurm takes no more jobs of this user for now: the others wait.
    SubmitLimit {
        at: String,
        most_jobs: usize,
        why: &'a str,
    },
    JobStarted {
        at: String,
        case: &'a str,
        job: &'a str,
    },
    JobInterrupted {
        at: String,
        case: &'a str,
        job: &'a str,
        why: &'a str,
    },
    JobCancelled {
        at: String,
        case: &'a str,
        job: &'a str,
    },
    JobEnded {
        at: String,
        case: &'a str,
        job: &'a str,
        end: &'a Ended,
        #[serde(skip_serializing_if = "Option::is_none")]
        blamed: Option<&'a Blamed>,
        #[serde(skip_serializing_if = "<[Finding]>::is_empty")]
        findings: &'a [Finding],
    },
    /// One that jobs share was asked for.
    AllocationSubmitted {
        at: String,
        allocation: &'a str,
        handle: &'a str,
        nodes: &'a [String],
    },
    /// Nothing more is to run in it: what it was planned for beside runs by itself.
    AllocationClosed {
        at: String,
        allocation: &'a str,
        why: &'a str,
    },
    AllocationEnded {
        at: String,
        allocation: &'a str,
        end: &'a Ended,
    },
    /// Nothing more is launched on the node.
    NodeQuarantined {
        at: String,
        node: &'a str,
        after: &'a str,
        why: &'a str,
    },
    CaseNotRun {
        at: String,
        case: &'a str,
        why: &'a str,
    },
    RunStopped {
        at: String,
        why: &'a str,
    },
}

/// Which nodes are busy with which job at any moment of a stream of events, and whether two ever shared one.
pub fn shared_slots(events: &[serde_json::Value]) -> Vec<String> {
    let mut on: BTreeMap<String, String> = BTreeMap::new();
    let mut broken = Vec::new();
    let word = |event: &serde_json::Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    for event in events {
        let job = format!("{}/{}", word(event, "case"), word(event, "job"));
        match event["event"].as_str() {
            Some("job-submitted") => {
                for node in event["nodes"].as_array().into_iter().flatten().filter_map(|node| node.as_str()) {
                    if let Some(other) = on.insert(node.to_owned(), job.clone()) {
                        broken.push(format!("{node}: {other} and {job}"));
                    }
                }
            }
            Some("job-ended") => on.retain(|_, busy| *busy != job),
            _ => {}
        }
    }
    broken
}
