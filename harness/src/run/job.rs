//! One job of a run: how far it is, since when, and what is told of it when it is over. Who moves it on is told in the room's
//! own file.

use super::{Clock, Past};
use crate::artefact::{Blamed, Ended, JobRecord, LeftOut, PlannedJob};
use crate::store::iso8601;
use recipes::finding::Finding;
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Job<'a> {
    pub case: usize,
    pub planned: &'a PlannedJob,
    pub state: JobState,
    pub times: Times,
    pub blamed: Option<Blamed>,
    pub findings: Vec<Finding>,
}

#[derive(Default, Clone)]
pub(super) struct Times {
    pub submitted: Option<f64>,
    pub started: Option<f64>,
    pub ended: Option<f64>,
}

pub(super) enum JobState {
    Planned,
    Live(Live),
    Over { handle: Option<String>, end: Ended },
}

pub(super) struct Live {
    pub handle: String,
    pub submitted: Instant,
    pub started: Option<Instant>,
    pub last_answer: Instant,
    /// Set once the job was asked to end: why, and when it will be ended by force.
    pub ending: Option<(Ended, Instant, bool)>,
    pub last_reason: String,
}

impl<'a> Job<'a> {
    /// It is over before it began.
    pub fn left_out(case: usize, planned: &'a PlannedJob, left: &LeftOut) -> Self {
        let LeftOut { node, why } = left.clone();
        let end = Ended::LeftOut { node: node.clone(), why: why.clone() };
        Job {
            case,
            planned,
            state: JobState::Over { handle: None, end },
            times: Times::default(),
            blamed: Some(Blamed { node, evidence: why }),
            findings: Vec::new(),
        }
    }

    pub fn with(case: usize, planned: &'a PlannedJob, past: Option<&Past>, clock: &Clock) -> Self {
        let mut job = Job {
            case,
            planned,
            state: JobState::Planned,
            times: Times::default(),
            blamed: None,
            findings: Vec::new(),
        };
        let Some(past) = past else { return job };
        job.times = Times { submitted: past.submitted, started: past.started, ended: past.ended };
        job.blamed = past.blamed.clone();
        job.findings = past.findings.clone();
        // How long it has waited or run counts on against its limits.
        let moment = |unix_s: f64| {
            let ago = Duration::try_from_secs_f64(clock.now_unix_s() - unix_s).unwrap_or_default();
            Instant::now().checked_sub(ago).unwrap_or_else(Instant::now)
        };
        match (&past.end, &past.handle) {
            (Some(end), handle) => job.state = JobState::Over { handle: handle.clone(), end: end.clone() },
            (None, Some(handle)) => {
                job.state = JobState::Live(Live {
                    handle: handle.clone(),
                    submitted: past.submitted.map_or_else(Instant::now, moment),
                    started: past.started.map(moment),
                    last_answer: Instant::now(),
                    ending: None,
                    last_reason: String::new(),
                });
            }
            (None, None) => {}
        }
        job
    }

    pub fn record(&self) -> Option<JobRecord> {
        let JobState::Over { handle, end } = &self.state else { return None };
        let seconds = match (self.times.started.or(self.times.submitted), self.times.ended) {
            (Some(from), Some(to)) => Some(((to - from) * 1e3).round() / 1e3),
            _ => None,
        };
        Some(JobRecord {
            name: self.planned.name.clone(),
            handle: handle.clone(),
            submitted: self.times.submitted.map(iso8601),
            started: self.times.started.map(iso8601),
            ended: self.times.ended.map(iso8601),
            seconds,
            end: end.clone(),
            blamed: self.blamed.clone(),
            findings: self.findings.clone(),
        })
    }
}
