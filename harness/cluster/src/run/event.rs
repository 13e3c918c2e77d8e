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
    /// The first event of a run.
    RunStarted {
        /// ISO 8601 in UTC, as in all events.
        at: String,
    },
    /// Another process goes on where the first was ended.
    RunResumed {
        /// When it goes on, in ISO 8601.
        at: String,
    },
    /// The launcher has taken the job.
    JobSubmitted {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
        /// Slurm's job id, or `ID/TURN` in an allocation; over ssh the job's folder.
        handle: &'a str,
        /// They are the job's until it ends.
        nodes: &'a [String],
        /// The plan's estimate, in seconds.
        estimate_s: u64,
    },
    /// A second attempt is to be launched: the cluster itself ended the first.
    JobAgain {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job of the second attempt.
        job: &'a str,
        /// The job of the first attempt.
        first: &'a str,
        /// How the first attempt ended.
        cause: &'a str,
    },
    /// The launch failed, or the allocation was lost that the job was planned for.
    JobNotSubmitted {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
        /// The message of the failure, or the cause of its end.
        why: &'a str,
        /// The end that is recorded for the job.
        end: &'a Ended,
        /// The node at fault, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        blamed: Option<&'a Blamed>,
    },
    /// It has its nodes, and its script has not begun on them.
    JobStarting {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
        /// Such as `configuring (nodes boot)`.
        reason: &'a str,
    },
    /// Slurm takes no more jobs of this user for now: the others wait.
    SubmitLimit {
        /// When, in ISO 8601.
        at: String,
        /// Jobs and allocations of this run that Slurm held at the refusal.
        most_jobs: usize,
        /// Slurm's refusal.
        why: &'a str,
    },
    /// Its script has begun.
    JobStarted {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
    },
    /// The job is asked to end by itself.
    JobInterrupted {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
        /// Such as its time limit, or that the run was stopped.
        why: &'a str,
    },
    /// The job is ended by force.
    JobCancelled {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
    },
    /// The job has ended, or is given up.
    JobEnded {
        /// When it was seen, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// The job, by its name in the case.
        job: &'a str,
        /// How it ended; where the harness ended it, the reason for that.
        end: &'a Ended,
        /// The node at fault, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        blamed: Option<&'a Blamed>,
        /// What was odd on the way, and changes no verdict.
        #[serde(skip_serializing_if = "<[Finding]>::is_empty")]
        findings: &'a [Finding],
    },
    /// One that jobs share was asked for.
    AllocationSubmitted {
        /// When, in ISO 8601.
        at: String,
        /// By its name in the plan: `a1`.
        allocation: &'a str,
        /// Slurm's job id.
        handle: &'a str,
        /// All nodes of the allocation.
        nodes: &'a [String],
    },
    /// Nothing more is to run in it: what it was planned for beside runs by itself.
    AllocationClosed {
        /// When, in ISO 8601.
        at: String,
        /// By its name in the plan: `a1`.
        allocation: &'a str,
        /// Such as `the first job in it did not begin`.
        why: &'a str,
    },
    /// The allocation has ended, or is given up.
    AllocationEnded {
        /// When it was seen, in ISO 8601.
        at: String,
        /// By its name in the plan: `a1`.
        allocation: &'a str,
        /// As the end of a job.
        end: &'a Ended,
    },
    /// Nothing more is launched on the node.
    NodeQuarantined {
        /// When, in ISO 8601.
        at: String,
        /// By its name in the inventory.
        node: &'a str,
        /// The case after which it was quarantined; may be empty.
        after: &'a str,
        /// What the node showed.
        why: &'a str,
    },
    /// Jobs of the case that were only planned are given up.
    CaseNotRun {
        /// When, in ISO 8601.
        at: String,
        /// The case, by its name in the plan.
        case: &'a str,
        /// Such as a dependency that did not pass.
        why: &'a str,
    },
    /// Nothing more is launched, and what runs is ended.
    RunStopped {
        /// When, in ISO 8601.
        at: String,
        /// Such as `interrupted`, or a time limit.
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
