//! One job of a run: how far it is, since when, and its record when it is over. `mod.rs` and `watch.rs` advance it.

use super::{Clock, Past, history};
use metric::finding::Finding;
use model::artefact::{Blamed, Ended, JobRecord, LeftOut, PlannedJob};
use std::time::Duration;
use store::iso8601;
use tokio::time::Instant;

pub(super) struct Job<'a> {
    pub case: usize,
    /// The allocation that it is to share, among the run's.
    pub allocation: Option<usize>,
    pub planned: &'a PlannedJob,
    pub state: JobState,
    pub times: Times,
    pub blamed: Option<Blamed>,
    pub findings: Vec<Finding>,
    /// The first attempt was lost, and this one is to be launched in its place.
    pub called_for: bool,
    /// Since when Slurm refuses it for the number of jobs that are submitted already.
    pub refused: Option<Instant>,
}

#[derive(Default, Clone)]
pub(super) struct Times {
    pub submitted: Option<f64>,
    pub started: Option<f64>,
    pub ended: Option<f64>,
}

pub(super) enum JobState {
    Planned,
    /// On its way to the cluster.
    Launching,
    Live(Live),
    Over {
        handle: Option<String>,
        end: Ended,
    },
    /// A second attempt that nothing calls for.
    Unneeded,
}

pub(super) struct Live {
    pub handle: String,
    /// The allocation that it was given a turn in; nothing where it has one of its own.
    pub within: Option<usize>,
    pub submitted: Instant,
    pub started: Option<Instant>,
    pub last_answer: Instant,
    /// Set once the job was asked to end: why, and when it will be ended by force.
    pub ending: Option<(Ended, Instant, bool)>,
    pub last_reason: String,
    pub suspension: Suspension,
}

/// How long Slurm has kept a job suspended.
#[derive(Default)]
pub(super) struct Suspension {
    /// The last look at it, where it was suspended then.
    pub since: Option<Instant>,
    pub total: Duration,
    pub was_seen: bool,
}

impl Live {
    /// After each look: what is suspended makes no progress, and that time counts against no limit of the job.
    pub(super) fn stand_still(&mut self, is_suspended: bool, now: Instant) {
        if let Some(since) = self.suspension.since.take() {
            let stood = now.saturating_duration_since(since);
            self.suspension.total += stood;
            self.started = self.started.and_then(|started| started.checked_add(stood));
        }
        if is_suspended {
            self.suspension.since = Some(now);
            self.suspension.was_seen = true;
        }
    }
}

impl<'a> Job<'a> {
    /// It is over before it began.
    pub(super) fn left_out(case: usize, planned: &'a PlannedJob, left: &LeftOut) -> Self {
        let LeftOut { node, why, by_folder, after } = left.clone();
        // What all nodes share is the fault of none of them; and for what it was quarantined, it was blamed there.
        let is_news = !by_folder && after.is_none();
        let end = Ended::LeftOut { node: node.clone(), why: why.clone(), after };
        let blamed = is_news.then_some(Blamed { node, evidence: why });
        Job {
            case,
            allocation: None,
            planned,
            state: JobState::Over { handle: None, end },
            times: Times::default(),
            blamed,
            findings: Vec::new(),
            called_for: false,
            refused: None,
        }
    }

    pub(super) fn with(
        case: usize,
        allocation: Option<usize>,
        planned: &'a PlannedJob,
        past: Option<&Past>,
        clock: &Clock,
    ) -> Self {
        let mut job = Job {
            case,
            allocation,
            planned,
            state: JobState::Planned,
            times: Times::default(),
            blamed: None,
            findings: Vec::new(),
            called_for: false,
            refused: None,
        };
        let Some(past) = past else { return job };
        job.times = Times { submitted: past.submitted, started: past.started, ended: past.ended };
        job.blamed = past.blamed.clone();
        job.findings = past.findings.clone();
        // How long it has waited or run counts on against its limits.
        let moment = |unix_s: f64| clock.moment(unix_s);
        match (&past.end, &past.handle) {
            (Some(end), handle) => job.state = JobState::Over { handle: handle.clone(), end: end.clone() },
            (None, Some(handle)) => {
                job.state = JobState::Live(Live {
                    handle: handle.clone(),
                    within: allocation.filter(|_| history::turn_of(handle).is_some()),
                    submitted: past.submitted.map_or_else(Instant::now, moment),
                    started: past.started.map(moment),
                    last_answer: Instant::now(),
                    ending: None,
                    last_reason: String::new(),
                    suspension: Suspension::default(),
                });
            }
            (None, None) => {}
        }
        job
    }

    /// A second attempt that may turn out not to be needed.
    pub(super) fn may_be_unneeded(&self) -> bool {
        self.planned.again_of.is_some() && !self.called_for
    }

    pub(super) fn record(&self) -> Option<JobRecord> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_job_stands_still_while_slurm_has_it_suspended() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut live = Live {
            handle: "7".into(),
            within: None,
            submitted: start,
            started: Some(start),
            last_answer: start,
            ending: None,
            last_reason: String::new(),
            suspension: Suspension::default(),
        };
        // Suspended from the look at 10 s to that at 40 s, with one at 30 s that had no answer.
        for (seconds, is_suspended) in [(5, false), (10, true), (20, true), (40, false), (50, false)] {
            live.stand_still(is_suspended, at(seconds));
        }
        assert_eq!(live.started, Some(at(30)));
        assert_eq!((live.suspension.total, live.suspension.since), (Duration::from_secs(30), None));
        assert!(live.suspension.was_seen);
    }
}
