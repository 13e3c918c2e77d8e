//! Nodes over ssh, without a scheduler: the job's text is started on each of its nodes by `lease.sh`, which keeps it in
//! a process group of its own and ends it when nobody looks any more. The job is what its nodes say together.
//!
//! The handle of a job is its folder: what `lease.sh` left there says which processes are the job's on each node.

use super::folder::Folders;
use super::ssh_node::{self as node, Reason, State};
use super::{Launch, NotLaunched, Poll};
use crate::artefact::{Blamed, Ended, Launcher, PlannedJob};
use crate::interrupt;
use crate::reach::{Host, Reach, ReachError, Wait};
use crate::script::files;
use futures::stream::{self, StreamExt};
use recipes::finding::Finding;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

pub use node::launch_argv;

/// So many hosts are asked at the same time: servers refuse more connections at once, and so do clients.
const AT_ONCE: usize = 32;
/// Between the attempts to start a job on a node that gives no answer.
const START_PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];
/// What is left of a job may go on for so long after one of its nodes failed.
const GRACE: Duration = Duration::from_secs(60);
/// Between the request to end and the end by force.
const BY_FORCE: Duration = Duration::from_secs(10);
/// A keeper ends its job within this time after its lease has passed.
const LEASE_SLACK: Duration = Duration::from_secs(25);

#[derive(Default)]
pub struct Ssh {
    /// What is known of the jobs that run, by handle.
    watched: RefCell<BTreeMap<String, Watch>>,
}

impl Launch for Ssh {
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            let folder = Folders { reach, launcher: Launcher::Ssh, nodes: &job.nodes }.of(job);
            let nodes = job.nodes.join(" ");
            if let Err(error) = folder.put(files::STARTED, format!("{nodes}\n").as_bytes()).await {
                return Err(on_folder(&error, job));
            }
            start_everywhere(reach, job).await
        })
    }

    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async move {
            let folder = Folders { reach, launcher: Launcher::Ssh, nodes: &job.nodes }.of(job);
            match folder.get(files::STARTED).await {
                // The process before may have been ended between one node and the next. Each node starts it once.
                Ok(_) => start_everywhere(reach, job).await.map(Some),
                Err(ReachError::NotFound { .. }) => Ok(None),
                Err(error) => Err(format!("whether it was launched before is not known: {error}").into()),
            }
        })
    }

    fn poll<'a>(
        &'a self,
        reach: &'a dyn Reach,
        jobs: &'a [(&'a PlannedJob, &'a str)],
    ) -> Wait<'a, Vec<Poll>> {
        Box::pin(async move {
            let mut open = Vec::new();
            for (job, handle) in jobs {
                let mut watched = self.watched.borrow_mut();
                let watch = watched.entry((*handle).to_owned()).or_insert_with(|| Watch::of(job));
                open.extend(watch.open().map(|at| (*job, *handle, at)));
            }
            let looks = stream::iter(open.iter().map(|(job, _, at)| node::look(reach, job, &job.nodes[*at])));
            let answers: Vec<_> = looks.buffered(AT_ONCE).collect().await;
            let now = Instant::now();
            for ((job, handle, at), answer) in open.iter().zip(answers) {
                if let Some(watch) = self.watched.borrow_mut().get_mut(*handle) {
                    watch.take_in(*at, &job.nodes[*at], answer, now);
                }
            }
            let mut polls = Vec::with_capacity(jobs.len());
            for (job, handle) in jobs {
                let Some(mut watch) = self.watched.borrow_mut().remove(*handle) else { continue };
                let (poll, signal) = watch.decide(job, now);
                if let Some(signal) = signal {
                    let left: Vec<String> = watch.open().map(|at| job.nodes[at].clone()).collect();
                    on_all(&left, async |node| node::end(reach, job, node, signal).await).await;
                }
                if !matches!(poll, Poll::Ended { .. }) {
                    self.watched.borrow_mut().insert((*handle).to_owned(), watch);
                }
                polls.push(poll);
            }
            polls
        })
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, _handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            // Whether it worked is seen by polling; what cannot be reached ends by its lease.
            on_all(&job.nodes, async |node| node::end(reach, job, node, "TERM").await).await;
        })
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, _handle: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            on_all(&job.nodes, async |node| node::end(reach, job, node, "KILL").await).await;
        })
    }
}

/// Starts the job on every one of its nodes, or on none.
async fn start_everywhere(reach: &dyn Reach, job: &PlannedJob) -> Result<String, NotLaunched> {
    let starts = on_all(&job.nodes, async |node| start(reach, job, node).await).await;
    let failed = job.nodes.iter().zip(&starts).find_map(|(node, start)| Some((node, start.as_ref().err()?)));
    let Some((node, error)) = failed else { return Ok(job.folder.clone()) };
    // What runs on the others is of no use. What cannot be reached ends by its lease.
    on_all(&job.nodes, async |node| node::end(reach, job, node, "KILL").await).await;
    Err(NotLaunched::on(&Host::Node(node.clone()), error))
}

/// Asks so many nodes at once; the answers come in the order of the nodes.
async fn on_all<T>(nodes: &[String], ask: impl AsyncFn(&str) -> T) -> Vec<T> {
    stream::iter(nodes.iter().map(|node| ask(node))).buffered(AT_ONCE).collect().await
}

/// An answer that was lost on its way is asked for again: a job is started once, however often it is asked for.
async fn start(reach: &dyn Reach, job: &PlannedJob, name: &str) -> Result<(), ReachError> {
    let mut pauses = START_PAUSES.iter();
    loop {
        match node::start(reach, job, name).await {
            Err(error @ (ReachError::Unreachable { .. } | ReachError::TimedOut { .. })) => {
                match pauses.next().filter(|_| interrupt::asked().is_none()) {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(error),
                }
            }
            Ok(State::Absent | State::Lost) => {
                let what = format!("the script on {name}");
                return Err(ReachError::Failed { what, why: "it did not start".to_owned() });
            }
            told => return told.map(|_| ()),
        }
    }
}

/// Nobody could be blamed for a folder that several hosts were asked for in vain.
pub fn on_folder(error: &ReachError, job: &PlannedJob) -> NotLaunched {
    match (error, job.nodes.as_slice()) {
        (ReachError::Unreachable { .. } | ReachError::TimedOut { .. }, [node]) => {
            NotLaunched::on(&Host::Node(node.clone()), error)
        }
        (ReachError::Unreachable { .. }, _) => {
            NotLaunched { end: Ended::HostUnreachable { why: error.to_string() }, blamed: None }
        }
        _ => NotLaunched::from(error.to_string()),
    }
}

/// What is known of one job from the looks at its nodes.
struct Watch {
    nodes: Vec<Watched>,
    lease: Duration,
    /// The nodes that were seen first to have failed, and when.
    failed: Option<(Instant, Vec<usize>)>,
    /// What the job has come to, where the rest of it is being ended; since when, and whether it was told.
    ending: Option<(Ended, Option<Blamed>, Instant, bool)>,
    findings: Vec<Finding>,
}

struct Watched {
    state: State,
    /// Since when it gives no answer, and what was said instead.
    silent: Option<(Instant, String)>,
}

impl Watch {
    fn of(job: &PlannedJob) -> Watch {
        let nodes = job.nodes.iter().map(|_| Watched { state: State::Running, silent: None }).collect();
        let lease = Duration::from_secs(node::lease_s(job));
        Watch { nodes, lease, failed: None, ending: None, findings: Vec::new() }
    }

    /// The nodes on which something may still run.
    fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|at| !self.nodes[*at].state.is_over())
    }

    fn take_in(&mut self, at: usize, name: &str, answer: Result<State, ReachError>, now: Instant) {
        let node = &mut self.nodes[at];
        match answer {
            Ok(state) => {
                node.state = state;
                if let Some((since, why)) = node.silent.take().filter(|_| state != State::Lost) {
                    let silent_s = (now - since).as_secs();
                    let told = format!(
                        "no answer for {silent_s} s while the job ran, which went on by itself: {why}"
                    );
                    self.findings.push(Finding::new("connection-drops", told).node(name));
                }
            }
            Err(error) => {
                node.silent.get_or_insert((now, error.to_string()));
            }
        }
    }

    /// What the job has come to, and the signal for what is left of it.
    fn decide(&mut self, job: &PlannedJob, now: Instant) -> (Poll, Option<&'static str>) {
        self.note_failed(now);
        if self.ending.is_none() {
            self.ending = self.verdict(job, now).map(|(end, blamed)| (end, blamed, now, false));
        }
        let gone = |node: &Watched| {
            // After its lease nothing of the job runs on a node, whether it answers or not.
            let silent =
                node.silent.as_ref().is_some_and(|(since, _)| now - *since > self.lease + LEASE_SLACK);
            node.state.is_over() || silent
        };
        let over = self.nodes.iter().all(gone);
        let by_silence = self.nodes.iter().find_map(|node| node.silent.as_ref()).map(|(_, why)| why.clone());
        let Some((end, blamed, since, told)) = &mut self.ending else {
            return match by_silence {
                Some(why) => (Poll::Unknown(why), None),
                None => (Poll::Running, None),
            };
        };
        if over {
            let findings = std::mem::take(&mut self.findings);
            return (Poll::Ended { end: end.clone(), blamed: blamed.clone(), findings }, None);
        }
        let signal = match (*told, now - *since >= BY_FORCE) {
            (_, true) => Some("KILL"),
            (false, false) => Some("TERM"),
            (true, false) => None,
        };
        *told = true;
        (Poll::Running, signal)
    }

    fn note_failed(&mut self, now: Instant) {
        let failed = |node: &Watched| matches!(node.state, State::Ended { code, .. } if code != 0);
        let which: Vec<usize> = (0..self.nodes.len()).filter(|at| failed(&self.nodes[*at])).collect();
        if self.failed.is_none() && !which.is_empty() {
            self.failed = Some((now, which));
        }
    }

    /// What the job has come to, if it has: all of it ended, or enough of it that the rest is of no use.
    fn verdict(&self, job: &PlannedJob, now: Instant) -> Option<(Ended, Option<Blamed>)> {
        let name = |at: usize| job.nodes[at].clone();
        let blame = |at: usize, evidence: String| Some(Blamed { node: name(at), evidence });
        let find = |wanted: &dyn Fn(&Watched) -> bool| self.nodes.iter().position(wanted);
        if let Some(at) = find(&|node| node.state == State::Lost) {
            let why = "what was started there is gone without a word: killed by a stranger, or the node was started anew";
            return Some((Ended::NodeFail, blame(at, format!("{}: {why}", name(at)))));
        }
        if let Some(at) = find(&|node| node.state == State::Absent) {
            let why = format!("it was never started on {}", name(at));
            return Some((Ended::LaunchFailed { why }, None));
        }
        let is_silent = |since: &Instant| now - *since > self.lease + LEASE_SLACK;
        let silent = |node: &Watched| node.silent.as_ref().is_some_and(|(since, _)| is_silent(since));
        if let Some(at) = find(&silent) {
            let (since, why) = self.nodes[at].silent.clone()?;
            let why = format!("no answer for {} s: {why}", (now - since).as_secs());
            return Some((Ended::HostUnreachable { why: why.clone() }, blame(at, why)));
        }
        let by_lease = |node: &Watched| matches!(node.state, State::Ended { reason: Reason::Lease, .. });
        if let Some(at) = find(&by_lease) {
            let why =
                format!("nobody looked for {} s, so it ended itself on {}", self.lease.as_secs(), name(at));
            return Some((Ended::Lost { why }, None));
        }
        match &self.failed {
            Some((since, which)) if self.open().next().is_none() || now - *since >= GRACE => {
                Some(self.failure(job, which))
            }
            None if self.open().next().is_none() => Some((Ended::Exited { code: 0 }, None)),
            _ => None,
        }
    }

    /// Of the nodes that were seen first to have failed, the worst code counts; one alone is to blame.
    fn failure(&self, job: &PlannedJob, which: &[usize]) -> (Ended, Option<Blamed>) {
        let ends = which.iter().filter_map(|at| match self.nodes[*at].state {
            State::Ended { code, reason } => Some((*at, code, reason)),
            _ => None,
        });
        let Some((at, code, reason)) = ends.max_by_key(|(_, code, _)| *code) else {
            return (Ended::Lost { why: "its nodes told nothing of its end".to_owned() }, None);
        };
        if reason == Reason::Asked {
            return (Ended::Cancelled, None);
        }
        // The one mpirun of a job speaks for the ranks of all its nodes; it says in its output which of them failed.
        let speaks_for_all = job.files.iter().any(|file| file.name == files::HOSTFILE);
        let alone = which.len() == 1 && !speaks_for_all;
        let blamed = alone.then(|| Blamed {
            node: job.nodes[at].clone(),
            evidence: format!("its script was the first to fail, with exit code {code}"),
        });
        (Ended::Exited { code }, blamed)
    }
}

#[cfg(test)]
#[path = "ssh_tests.rs"]
pub mod tests;
