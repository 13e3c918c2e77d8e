//! What a run had done when its process was ended, read from the events that it left.

use metric::finding::Finding;
use model::artefact::{Blamed, Ended};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;

/// The past of every job that a run has reported.
#[derive(Debug, Default, PartialEq)]
pub struct History {
    jobs: BTreeMap<(String, String), Past>,
    allocations: BTreeMap<String, PastAllocation>,
    /// Whatever was launched, as `case/job` with its handle, in that order.
    launched: Vec<(String, String)>,
    /// When the run began, in seconds since 1970.
    pub began: Option<f64>,
    /// When its last event was, in seconds since 1970.
    pub last: Option<f64>,
}

/// How far a job had come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    /// The launcher's; None where the job was not taken.
    pub handle: Option<String>,
    /// When the launcher took or refused it, in seconds since 1970.
    pub submitted: Option<f64>,
    /// When its script began, in seconds since 1970.
    pub started: Option<f64>,
    /// When its end was seen, in seconds since 1970.
    pub ended: Option<f64>,
    /// None where it had not ended.
    pub end: Option<Ended>,
    /// As recorded with its end.
    pub blamed: Option<Blamed>,
    /// As recorded with its end.
    pub findings: Vec<Finding>,
}

/// How far an allocation had come that jobs share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastAllocation {
    /// Slurm's job id.
    pub handle: String,
    /// Nothing more was to run in it.
    pub closed: bool,
    /// Its end was recorded.
    pub ended: bool,
    /// Turns that were given in it.
    pub turns: u32,
    /// When the first of its jobs began.
    pub started: Option<f64>,
}

impl History {
    /// Reads the events of a run, in their order. What the run was stopped for counts no more: it goes on.
    pub fn read(events: &[Value]) -> Result<History, String> {
        let mut history = History::default();
        for (at, event) in events.iter().enumerate() {
            let record =
                EventRecord::deserialize(event).map_err(|error| format!("line {}: {error}", at + 1))?;
            let moment = unix_s(&record.at)
                .ok_or_else(|| format!("line {}: invalid time: `{}`", at + 1, record.at.escape_debug()))?;
            history.began.get_or_insert(moment);
            history.last = Some(history.last.map_or(moment, |last: f64| last.max(moment)));
            if let Some(handle) = &record.handle {
                let case = record.case.as_deref().unwrap_or("allocation");
                let job = record.job.as_deref().or(record.allocation.as_deref()).unwrap_or_default();
                history.launched.push((format!("{case}/{job}"), handle.clone()));
            }
            if let Some(name) = record.allocation {
                let past = history.allocations.entry(name).or_default();
                match record.event.as_str() {
                    "allocation-submitted" => past.handle = record.handle.unwrap_or_default(),
                    "allocation-closed" => past.closed = true,
                    "allocation-ended" => past.ended = true,
                    _ => {}
                }
                continue;
            }
            let (Some(case), Some(job)) = (record.case, record.job) else { continue };
            let past = history.jobs.entry((case, job)).or_default();
            match record.event.as_str() {
                "job-submitted" => {
                    let turn = record.handle.as_deref().and_then(turn_of);
                    if let Some((id, turn)) = turn
                        && let Some(of) = history.allocations.values_mut().find(|of| of.handle == id)
                    {
                        of.turns = of.turns.max(turn);
                    }
                    past.handle = record.handle;
                    past.submitted = Some(moment);
                }
                "job-not-submitted" => {
                    past.submitted = Some(moment);
                    let failed = || Ended::LaunchFailed { why: record.why.unwrap_or_default() };
                    past.end = Some(record.end.unwrap_or_else(failed));
                    past.blamed = record.blamed;
                }
                "job-started" => {
                    past.started = Some(moment);
                    let turn = past.handle.as_deref().and_then(turn_of);
                    if let Some(of) =
                        turn.and_then(|(id, _)| history.allocations.values_mut().find(|of| of.handle == id))
                    {
                        of.started.get_or_insert(moment);
                    }
                }
                "job-ended" => {
                    past.ended = Some(moment);
                    past.end = Some(record.end.ok_or_else(|| format!("line {}: no end", at + 1))?);
                    past.blamed = record.blamed;
                    past.findings = record.findings;
                }
                _ => {}
            }
        }
        Ok(history)
    }

    /// All handles in order of launch, each with `case/job` or `allocation/NAME`.
    pub fn launched(self) -> Vec<(String, String)> {
        self.launched
    }

    /// None where no event names it.
    pub(crate) fn allocation(&self, name: &str) -> Option<&PastAllocation> {
        self.allocations.get(name)
    }

    /// None where no event names it.
    pub(crate) fn job(&self, case: &str, job: &str) -> Option<&Past> {
        self.jobs.get(&(case.to_owned(), job.to_owned()))
    }
}

/// The handle of a job that was given a turn in an allocation: that of the allocation, and which turn.
pub(super) fn turn_of(handle: &str) -> Option<(&str, u32)> {
    let (id, turn) = handle.split_once('/')?;
    Some((id, turn.parse().ok()?))
}

#[derive(Deserialize)]
struct EventRecord {
    event: String,
    at: String,
    case: Option<String>,
    job: Option<String>,
    allocation: Option<String>,
    handle: Option<String>,
    why: Option<String>,
    end: Option<Ended>,
    blamed: Option<Blamed>,
    #[serde(default)]
    findings: Vec<Finding>,
}

fn unix_s(text: &str) -> Option<f64> {
    let moment = OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok()?;
    Some(moment.unix_timestamp_nanos() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &[&str]) -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    #[test]
    fn a_job_is_as_far_as_its_last_event() {
        let history = History::read(&events(&[
            r#"{"event":"run-started","at":"2026-01-01T00:00:00.000Z"}"#,
            r#"{"event":"job-submitted","at":"2026-01-01T00:00:01.500Z","case":"c","job":"a","handle":"7","nodes":["n1"],"estimate_s":3}"#,
            r#"{"event":"job-submitted","at":"2026-01-01T00:00:02.000Z","case":"c","job":"b","handle":"8","nodes":["n2"],"estimate_s":3}"#,
            r#"{"event":"job-started","at":"2026-01-01T00:00:03.000Z","case":"c","job":"a"}"#,
            r#"{"event":"job-ended","at":"2026-01-01T00:00:09.000Z","case":"c","job":"a","end":{"how":"exited","code":0}}"#,
            r#"{"event":"job-not-submitted","at":"2026-01-01T00:00:09.000Z","case":"c","job":"d","why":"no"}"#,
        ]))
        .expect("a history");
        let a = history.job("c", "a").expect("reported");
        assert_eq!((a.handle.as_deref(), a.end.clone()), (Some("7"), Some(Ended::Exited { code: 0 })));
        let b = history.job("c", "b").expect("reported");
        assert_eq!((b.handle.as_deref(), b.started, b.end.clone()), (Some("8"), None, None));
        assert_eq!(
            history.job("c", "d").and_then(|d| d.end.clone()),
            Some(Ended::LaunchFailed { why: "no".into() })
        );
        assert_eq!(history.job("c", "e"), None);
        assert_eq!(history.last.zip(history.began).map(|(last, began)| last - began), Some(9.0));
    }

    #[test]
    fn an_allocation_is_as_far_as_its_events_and_turns() {
        let history = History::read(&events(&[
            r#"{"event":"allocation-submitted","at":"2026-01-01T00:00:00.000Z","allocation":"a1","handle":"7","nodes":["n1"]}"#,
            r#"{"event":"allocation-submitted","at":"2026-01-01T00:00:00.000Z","allocation":"a2","handle":"8","nodes":["n2"]}"#,
            r#"{"event":"job-submitted","at":"2026-01-01T00:00:01.500Z","case":"c","job":"a","handle":"7/1","nodes":["n1"],"estimate_s":3}"#,
            r#"{"event":"job-started","at":"2026-01-01T00:00:02.000Z","case":"c","job":"a"}"#,
            r#"{"event":"job-submitted","at":"2026-01-01T00:00:02.500Z","case":"d","job":"a","handle":"7/2","nodes":["n1"],"estimate_s":3}"#,
            r#"{"event":"allocation-closed","at":"2026-01-01T00:00:03.000Z","allocation":"a1","why":"nothing more"}"#,
            r#"{"event":"allocation-ended","at":"2026-01-01T00:00:03.000Z","allocation":"a2","end":{"how":"node-fail"}}"#,
        ]))
        .expect("a history");
        let past = |name: &str| history.allocation(name).cloned();
        let allocation = |handle: &str, closed, ended, turns, after: Option<f64>| {
            let started = after.zip(history.began).map(|(after, began)| began + after);
            Some(PastAllocation { handle: handle.to_owned(), closed, ended, turns, started })
        };
        assert_eq!(past("a1"), allocation("7", true, false, 2, Some(2.0)));
        assert_eq!(past("a2"), allocation("8", false, true, 0, None));
        assert_eq!(past("a3"), None);
        assert_eq!(history.job("d", "a").and_then(|past| past.handle.clone()), Some("7/2".to_owned()));
        // A folder is no turn.
        assert_eq!((turn_of("7"), turn_of("/fsx/runs/r")), (None, None));
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_line() {
        let why = History::read(&events(&[r#"{"event":"run-started"}"#])).expect_err("no moment");
        assert!(why.starts_with("line 1"), "{why}");
        let why = History::read(&events(&[
            r#"{"event":"job-ended","at":"2026-01-01T00:00:00.000Z","case":"c","job":"a"}"#,
        ]))
        .expect_err("no end");
        assert_eq!(why, "line 1: no end");
    }
}
