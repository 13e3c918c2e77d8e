//! Nodes over ssh, without a scheduler: the job's text is started on each of its nodes by `supervisor.sh`, which keeps
//! it in a process group of its own and ends it when its heartbeat stops. The job is what its nodes say together.
//!
//! The handle of a job is its folder: what `supervisor.sh` left there says which processes are the job's on each node.
//! Nodes are asked by `ssh_heartbeat.rs`, what their answers make of a job stands in `ssh_watch.rs`.

use super::folder::Folders;
use super::image;
use super::ssh_node::{self as node, State};
use super::ssh_watch::Watch;
use super::{Launch, NotLaunched, Poll};
use crate::interrupt;
use crate::reach::{Host, Reach, ReachError, Wait};
use futures::stream::{self, StreamExt};
use job::script::files;
use model::artefact::{Ended, Launcher, PlannedJob};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many hosts are asked at the same time: servers refuse more connections at once, and so do clients.
pub(super) const AT_ONCE: usize = 32;
/// Between the attempts to start a job on a node that gives no answer.
const START_PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];
/// Nodes that fell silent within this time did so together.
const TOGETHER: Duration = Duration::from_secs(600);
/// The launcher for nodes reached by ssh.
#[derive(Default)]
pub struct Ssh {
    /// What is known of the jobs that run, by handle.
    pub(super) watched: RefCell<BTreeMap<String, Watch>>,
    /// Nodes that were silent when their job was given up, and when that was.
    fell_silent: RefCell<BTreeMap<String, Instant>>,
    /// A heartbeat goes on beside everything else.
    pub(super) beats: Cell<bool>,
    /// Something is to be asked; something was answered.
    pub(super) wanted: Notify,
    pub(super) answered: Notify,
}

impl Launch for Ssh {
    fn submit<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            let folder = Folders { reach, launcher: Launcher::Ssh, nodes: &job.nodes }.for_job(job);
            let nodes = job.nodes.join(" ");
            if let Some(image) = image::planned(job) {
                image::pull(reach, job, &image).await?;
            }
            if let Err(error) = folder.put(files::STARTED, format!("{nodes}\n").as_bytes()).await {
                return Err(on_folder(&error, job));
            }
            self.start_everywhere(reach, job).await
        })
    }

    fn find_started<'a>(
        &'a self,
        reach: &'a dyn Reach,
        job: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async move {
            let folder = Folders { reach, launcher: Launcher::Ssh, nodes: &job.nodes }.for_job(job);
            match folder.get(files::STARTED).await {
                // The process before may have been ended between one node and the next. Each node starts it once.
                Ok(_) => self.start_everywhere(reach, job).await.map(Some),
                Err(ReachError::NotFound { .. }) => Ok(None),
                Err(error) => Err(format!("unknown whether it was launched before: {error}").into()),
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
                let watch = watched.entry((*handle).to_owned()).or_insert_with(|| Watch::new(job, true));
                open.extend(watch.open().map(|at| ((*handle).to_owned(), at)));
            }
            self.ask(reach, &open).await;
            let now = Instant::now();
            let most_are_silent = self.most_are_silent(now);
            let mut polls = Vec::with_capacity(jobs.len());
            for (job, handle) in jobs {
                let decided = self.watched.borrow_mut().get_mut(*handle).map(|watch| {
                    watch.most_are_silent = most_are_silent;
                    watch.decide(job, now)
                });
                let Some((poll, signal)) = decided else { continue };
                if let Some(signal) = signal {
                    self.signal(reach, job, handle, signal).await;
                }
                if matches!(poll, Poll::Ended { .. }) {
                    if let Some(watch) = self.watched.borrow().get(*handle) {
                        let silent = watch.who_is_silent().filter(|(_, is_silent)| *is_silent);
                        self.fell_silent.borrow_mut().extend(silent.map(|(node, _)| (node.to_owned(), now)));
                    }
                    self.forget(handle);
                }
                polls.push(poll);
            }
            polls
        })
    }

    fn heartbeat<'a>(&'a self, reach: &'a dyn Reach) -> Wait<'a, ()> {
        Box::pin(self.beat(reach))
    }

    fn forget(&self, handle: &str) {
        self.watched.borrow_mut().remove(handle);
    }

    fn interrupt<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        // Whether it worked is seen by polling; what cannot be reached ends by its heartbeat timeout.
        Box::pin(self.signal(reach, job, handle, "TERM"))
    }

    fn cancel<'a>(&'a self, reach: &'a dyn Reach, job: &'a PlannedJob, handle: &'a str) -> Wait<'a, ()> {
        Box::pin(self.signal(reach, job, handle, "KILL"))
    }
}

impl Ssh {
    /// Whether several nodes give no answer, and at least half of those with jobs, or with jobs just given up. One node
    /// of several may be alone in its job, such as one of each pair.
    fn most_are_silent(&self, now: Instant) -> bool {
        let mut fell_silent = self.fell_silent.borrow_mut();
        fell_silent.retain(|_, since| now - *since < TOGETHER);
        let watched = self.watched.borrow();
        let mut nodes: BTreeMap<&str, bool> = fell_silent.keys().map(|node| (node.as_str(), true)).collect();
        for (node, is_silent) in watched.values().flat_map(Watch::who_is_silent) {
            nodes.insert(node, is_silent);
        }
        let silent = nodes.values().filter(|is_silent| **is_silent).count();
        silent > 1 && 2 * silent >= nodes.len()
    }

    /// Starts the job on every one of its nodes, or on none. Each keeps its heartbeat from the moment that it was
    /// started.
    async fn start_everywhere(&self, reach: &dyn Reach, job: &PlannedJob) -> Result<String, NotLaunched> {
        self.watched.borrow_mut().insert(job.folder.clone(), Watch::new(job, false));
        let starts = job.nodes.iter().enumerate().map(|(at, node)| async move {
            let state = start(reach, job, node).await?;
            if let Some(watch) = self.watched.borrow_mut().get_mut(&job.folder) {
                watch.begin(at, state);
            }
            self.wanted.notify_one();
            Ok(())
        });
        let starts: Vec<Result<(), ReachError>> = stream::iter(starts).buffered(AT_ONCE).collect().await;
        let failed: Vec<(&String, &ReachError)> = job
            .nodes
            .iter()
            .zip(&starts)
            .filter_map(|(node, start)| Some((node, start.as_ref().err()?)))
            .collect();
        let [(node, error), more @ ..] = failed.as_slice() else { return Ok(job.folder.clone()) };
        // What runs on the others is of no use. What cannot be reached ends by its heartbeat timeout.
        self.forget(&job.folder);
        on_all(&job.nodes, async |node| node::end(reach, &job.launch, node, "KILL").await).await;
        let not = NotLaunched::on(&Host::Node((*node).clone()), error);
        // What several nodes have in common is the fault of none of them.
        Err(match more {
            [] => not,
            more => not.blaming_none(&more.iter().map(|(node, _)| node.as_str()).collect::<Vec<_>>()),
        })
    }

    /// Sends a signal to what may still run of a job.
    async fn signal(&self, reach: &dyn Reach, job: &PlannedJob, handle: &str, signal: &'static str) {
        let mut left = job.nodes.clone();
        if let Some(watch) = self.watched.borrow_mut().get_mut(handle) {
            let open: Vec<usize> = watch.open().collect();
            left = open.iter().map(|at| watch.nodes[*at].name.clone()).collect();
            // A silent node holds up no other.
            if self.beats.get() {
                open.iter().for_each(|at| watch.nodes[*at].signal = Some(signal));
                left.clear();
            }
        }
        self.wanted.notify_one();
        on_all(&left, async |node| node::end(reach, &job.launch, node, signal).await).await;
    }
}

/// Asks so many nodes at once; the answers come in the order of the nodes.
async fn on_all<T>(nodes: &[String], ask: impl AsyncFn(&str) -> T) -> Vec<T> {
    stream::iter(nodes.iter().map(|node| ask(node))).buffered(AT_ONCE).collect().await
}

/// An answer that was lost on its way is asked for again: a job is started once, however often it is asked for.
async fn start(reach: &dyn Reach, job: &PlannedJob, name: &str) -> Result<State, ReachError> {
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
            state => return state,
        }
    }
}

/// A folder that several hosts could not provide is not attributable to one node.
pub(crate) fn on_folder(error: &ReachError, job: &PlannedJob) -> NotLaunched {
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

#[cfg(test)]
#[path = "ssh_tests.rs"]
pub mod tests;
