//! One job of a run: how far it is, since when, and its record when it is over. `mod.rs` and `watch.rs` advance it.

use super::{Clock, Past, history};
use metric::finding::Finding;
use model::artefact::{Blamed, Ended, JobRecord, LeftOut, PlannedJob};
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
