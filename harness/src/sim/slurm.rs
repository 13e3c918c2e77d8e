//! Slurm as a state machine: jobs wait for their nodes, run, and end. What a job does on its nodes is `work.rs`'s.

use super::work::{Ending, Work};
use crate::script::Script;
use std::collections::BTreeMap;

/// From submission until a job may start at the earliest.
const QUEUE_S: f64 = 3.0;
/// For this long an ended job is remembered.
const REMEMBERED_S: f64 = 300.0;

pub struct Slurm {
    next_id: u64,
    pub jobs: BTreeMap<u64, Job>,
    /// Nodes that were lost, and when they come back.
    lost: BTreeMap<String, f64>,
}

pub struct Job {
    pub name: String,
    pub folder: String,
    pub script: Script,
    pub work: Work,
    pub submitted: f64,
    pub state: State,
}

#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Pending,
    Running { since: f64 },
    Ended { since: Option<f64>, at: f64, word: &'static str, code: i32, signal: i32 },
}

impl Slurm {
    pub fn new() -> Self {
        Slurm { next_id: 1001, jobs: BTreeMap::new(), lost: BTreeMap::new() }
    }

    pub fn submit(&mut self, name: String, folder: String, script: Script, work: Work, now: f64) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.jobs.insert(id, Job { name, folder, script, work, submitted: now, state: State::Pending });
        id
    }

    /// Everything that has happened until `now`, in its order.
    pub fn advance(&mut self, now: f64) {
        loop {
            let end = self.next_end();
            let start = self.next_start();
            match (start, end) {
                (Some((at, id)), end) if at <= now && end.is_none_or(|(ends, _)| at < ends) => {
                    self.start(id, at)
                }
                (_, Some((at, id))) if at <= now => self.end(id, at),
                _ => return,
            }
        }
    }

    /// The job that ends next by itself.
    fn next_end(&self) -> Option<(f64, u64)> {
        self.jobs
            .iter()
            .filter_map(|(id, job)| match (&job.state, job.ends_after()) {
                (State::Running { since }, Some(after)) => Some((since + after, *id)),
                _ => None,
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The job that can start next, going by nodes that are free now.
    fn next_start(&self) -> Option<(f64, u64)> {
        let busy: std::collections::BTreeSet<&str> = self
            .jobs
            .values()
            .filter(|job| matches!(job.state, State::Running { .. }))
            .flat_map(|job| job.script.nodes.iter().map(String::as_str))
            .collect();
        self.jobs
            .iter()
            .filter(|(_, job)| job.state == State::Pending && !job.work.never_starts())
            .filter(|(_, job)| job.script.nodes.iter().all(|node| !busy.contains(node.as_str())))
            .map(|(id, job)| (self.ready_at(job), *id))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn ready_at(&self, job: &Job) -> f64 {
        let freed = self
            .jobs
            .values()
            .filter(|other| other.script.nodes.iter().any(|node| job.script.nodes.contains(node)))
            .filter_map(|other| match other.state {
                State::Ended { at, .. } => Some(at + 1.0),
                _ => None,
            });
        let back = job.script.nodes.iter().filter_map(|node| self.lost.get(node).copied());
        freed.chain(back).fold(job.submitted + QUEUE_S, f64::max)
    }

    fn start(&mut self, id: u64, at: f64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = State::Running { since: at };
        }
    }

    fn end(&mut self, id: u64, at: f64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let State::Running { since } = job.state else { return };
        let over_limit = job.limit_s() <= job.work.ends_after_s().unwrap_or(f64::INFINITY);
        let (word, code, signal) = if over_limit {
            ("TIMEOUT", 0, 15)
        } else {
            match &job.work.ending {
                Ending::Exits(0) => ("COMPLETED", 0, 0),
                Ending::Exits(code) => ("FAILED", *code, 0),
                Ending::NodeFails { node } => {
                    // It comes back after a while, as a rebooted node does.
                    self.lost.insert(node.clone(), at + 120.0);
                    ("NODE_FAIL", 0, 1)
                }
                Ending::Preempted => ("PREEMPTED", 0, 15),
                Ending::Hangs | Ending::NeverStarts { .. } => ("CANCELLED", 0, 15),
            }
        };
        job.state = State::Ended { since: Some(since), at, word, code, signal };
    }

    pub fn cancel(&mut self, id: u64, now: f64) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let since = match job.state {
            State::Pending => None,
            State::Running { since } => Some(since),
            State::Ended { .. } => return true,
        };
        job.state = State::Ended { since, at: now, word: "CANCELLED", code: 0, signal: 15 };
        true
    }

    pub fn forget_old(&self, id: u64, now: f64) -> Option<&Job> {
        let job = self.jobs.get(&id)?;
        match job.state {
            State::Ended { at, .. } if now - at > REMEMBERED_S => None,
            _ => Some(job),
        }
    }

    pub fn is_lost(&self, node: &str, now: f64) -> bool {
        self.lost.get(node).is_some_and(|back| now < *back)
    }

    pub fn is_busy(&self, node: &str) -> bool {
        self.jobs.values().any(|job| {
            matches!(job.state, State::Running { .. }) && job.script.nodes.iter().any(|name| name == node)
        })
    }
}

impl Job {
    fn limit_s(&self) -> f64 {
        self.script.slurm.as_ref().map_or(f64::INFINITY, |directives| directives.minutes as f64 * 60.0)
    }

    fn ends_after(&self) -> Option<f64> {
        let by_itself = self.work.ends_after_s().unwrap_or(f64::INFINITY);
        Some(by_itself.min(self.limit_s())).filter(|after| after.is_finite())
    }

    pub fn word(&self) -> &'static str {
        match &self.state {
            State::Pending => "PENDING",
            State::Running { .. } => "RUNNING",
            State::Ended { word, .. } => word,
        }
    }

    /// Why it waits, in Slurm's words.
    pub fn reason(&self) -> String {
        match (&self.state, &self.work.ending) {
            (State::Pending, Ending::NeverStarts { node }) => {
                format!("ReqNodeNotAvail, UnavailableNodes:{node}")
            }
            (State::Pending, _) => "Resources".to_owned(),
            _ => "None".to_owned(),
        }
    }
}
