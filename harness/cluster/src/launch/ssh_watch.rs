//! What is known of one job over ssh from the answers of its nodes, and what the job has come to by that. Who asks the
//! nodes, and when, is decided in `ssh_heartbeat.rs`.

use super::Poll;
use super::ssh_node::{self as node, Reason, State};
use crate::reach::ReachError;
use base::nodeset::fold;
use job::script::files;
use metric::finding::Finding;
use model::artefact::{Blamed, Ended, PlannedJob};
use std::time::Duration;
use tokio::time::Instant;

/// Leftovers of a job may go on for so long after one of its nodes failed.
const GRACE: Duration = Duration::from_secs(60);
/// Between the request to end and the end by force.
const BY_FORCE: Duration = Duration::from_secs(10);
/// A supervisor ends its job within this time after its heartbeat timeout has passed.
const HEARTBEAT_SLACK: Duration = Duration::from_secs(25);
/// With this `container.sh` ends where the program did not begin.
const NOT_BEGUN: i32 = 125;
/// A node that takes longer to answer counts as silent until it does.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of one job from the looks at its nodes.
pub(super) struct Watch {
    pub launch: Vec<String>,
    pub nodes: Vec<Watched>,
    heartbeat_timeout: Duration,
    /// The nodes that were seen first to have failed, and when.
    failed: Option<(Instant, Vec<usize>)>,
    /// As many of this run's nodes are silent as one node's fault does not explain.
    pub most_are_silent: bool,
    /// What the job has come to, where the rest of it is being ended; since when, and whether it was signalled.
    ending: Option<(Ended, Option<Blamed>, Instant, bool)>,
    findings: Vec<Finding>,
}

pub(super) struct Watched {
    pub name: String,
    /// Something was started there, as far as is known.
    begun: bool,
    state: State,
    /// Since when it gives no answer, and what was said instead.
    silent: Option<(Instant, String)>,
    /// Whether that may be its own fault.
    at_fault: bool,
    /// Its pod has ended, and with it all that ran there.
    over: Option<String>,
    /// When it answered last: the node that waited longest is asked first.
    pub heard: Instant,
    /// When it is to be asked again, and since when an answer is waited for.
    pub due: Instant,
    pub asked: Option<Instant>,
    /// Answers so far.
    pub answers: u64,
    /// The signal that is to be sent there.
    pub signal: Option<&'static str>,
    pub signalling: bool,
}

impl Watch {
    /// Of a job that was started on all of its nodes, or is about to be.
    pub(super) fn new(job: &PlannedJob, begun: bool) -> Watch {
        let now = Instant::now();
        let nodes = job.nodes.iter().map(|name| Watched {
            name: name.clone(),
            begun,
            state: State::Running,
            silent: None,
            at_fault: false,
            over: None,
            heard: now,
            due: now,
            asked: None,
            answers: 0,
            signal: None,
            signalling: false,
        });
        let heartbeat_timeout = Duration::from_secs(node::heartbeat_timeout_s(job));
        let (launch, nodes) = (job.launch.clone(), nodes.collect());
        Watch {
            launch,
            nodes,
            heartbeat_timeout,
            failed: None,
            most_are_silent: false,
            ending: None,
            findings: Vec::new(),
        }
    }

    /// The nodes on which something may still run.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].begun && !self.nodes[*at].is_over())
    }

    /// It was started on a node just now.
    pub(super) fn begin(&mut self, at: usize, state: State) {
        let heard = Instant::now();
        let due = heard + self.beat();
        if let Some(node) = self.nodes.get_mut(at) {
            (node.begun, node.state, node.heard, node.due) = (true, state, heard, due);
        }
    }

    /// The names of its nodes, and whether each is silent.
    pub(super) fn who_is_silent(&self) -> impl Iterator<Item = (&str, bool)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.silent.is_some()))
    }

    /// How soon a node is asked again without a poll: its heartbeat timeout must not run out.
    fn beat(&self) -> Duration {
        self.heartbeat_timeout / 3
    }

    pub(super) fn take_in(&mut self, at: usize, answer: Result<State, ReachError>, now: Instant) {
        let beat = self.beat();
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.answers += 1;
        (node.asked, node.due) = (None, now + beat);
        if answer.is_ok() {
            node.heard = now;
        }
        match answer {
            Ok(state) => {
                let is_for_memory = |state| matches!(state, State::Ended { reason: Reason::OutOfMemory, .. });
                if is_for_memory(state) && !is_for_memory(node.state) {
                    let message = "the kernel ended a process of the job for memory";
                    self.findings.push(Finding::new("out-of-memory", message).node(node.name.as_str()));
                }
                node.state = state;
                if let Some((since, why)) =
                    node.silent.take().filter(|_| !matches!(state, State::Lost | State::Replaced))
                {
                    let silent_s = (now - since).as_secs();
                    let message = format!("no answer for {silent_s} s; the job kept running: {why}");
                    self.findings.push(Finding::new("connection-drops", message).node(node.name.as_str()));
                }
            }
            Err(error) => {
                node.at_fault = error.may_be_fault_of(&node.name);
                if let ReachError::PodOver { .. } = &error {
                    node.over = Some(error.to_string());
                }
                node.silent.get_or_insert((now, error.to_string()));
            }
        }
    }

    /// What the job has come to, and the signal for its leftovers.
    pub(super) fn decide(&mut self, job: &PlannedJob, now: Instant) -> (Poll, Option<&'static str>) {
        self.note_failed(now);
        if self.ending.is_none() {
            self.ending = self.verdict(job, now).map(|(end, blamed)| (end, blamed, now, false));
        }
        let gone = |node: &Watched| {
            // After its heartbeat timeout nothing of the job runs on a node, whether it answers or not.
            let silent = node
                .silent
                .as_ref()
                .is_some_and(|(since, _)| now - *since > self.heartbeat_timeout + HEARTBEAT_SLACK);
            node.is_over() || silent
        };
        let over = self.nodes.iter().all(gone);
        let by_silence = self.nodes.iter().find_map(|node| node.silence(now));
        let Some((end, blamed, since, signalled)) = &mut self.ending else {
            return match by_silence {
                Some(why) => (Poll::Unknown(why), None),
                None => (Poll::Running, None),
            };
        };
        if over {
            let findings = std::mem::take(&mut self.findings);
            return (Poll::Ended { end: end.clone(), blamed: blamed.clone(), findings }, None);
        }
        let signal = match (*signalled, now - *since >= BY_FORCE) {
            (_, true) => Some("KILL"),
            (false, false) => Some("TERM"),
            (true, false) => None,
        };
        *signalled = true;
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
            let why = "process vanished without an exit status (killed externally, or the node rebooted)";
            return Some((Ended::NodeFail, blame(at, format!("{}: {why}", name(at)))));
        }
        if let Some(at) = find(&|node| node.state == State::Replaced) {
            let why = format!("the pod of {} is another than the one in which it was started", name(at));
            return Some((Ended::Lost { why }, None));
        }
        if let Some(why) = self.nodes.iter().find_map(|node| node.over.clone()) {
            return Some((Ended::Lost { why }, None));
        }
        if let Some(at) = find(&|node| node.state == State::Absent) {
            let why = format!("it was never started on {}", name(at));
            return Some((Ended::LaunchFailed { why }, None));
        }
        let is_silent = |since: &Instant| now - *since > self.heartbeat_timeout + HEARTBEAT_SLACK;
        let silent = |node: &Watched| node.silent.as_ref().is_some_and(|(since, _)| is_silent(since));
        if let Some(at) = find(&silent) {
            let (since, why) = self.nodes[at].silent.clone()?;
            let mut why = format!("no answer for {} s: {why}", (now - since).as_secs());
            // What lies between the harness and several nodes, or what these share, is the fault of none of them.
            let others: Vec<&str> = self
                .who_is_silent()
                .filter(|(other, silent)| *silent && *other != name(at))
                .map(|(other, _)| other)
                .collect();
            if !others.is_empty() {
                why.push_str(&format!("; silent too: {}", fold(&others)));
            }
            let alone = others.is_empty() && !self.most_are_silent;
            let blamed = blame(at, why.clone()).filter(|_| alone && self.nodes[at].at_fault);
            return Some((Ended::HostUnreachable { why }, blamed));
        }
        let by_heartbeat =
            |node: &Watched| matches!(node.state, State::Ended { reason: Reason::Heartbeat, .. });
        if let Some(at) = find(&by_heartbeat) {
            let why = format!(
                "no heartbeat for {} s, so it ended itself on {}",
                self.heartbeat_timeout.as_secs(),
                name(at)
            );
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

    fn did_not_begin(&self, at: usize) -> bool {
        matches!(self.nodes[at].state, State::Ended { code: NOT_BEGUN, reason: Reason::Itself })
    }

    /// Of the nodes that were seen first to have failed, the worst code counts; one alone is to blame.
    fn failure(&self, job: &PlannedJob, which: &[usize]) -> (Ended, Option<Blamed>) {
        let ends = which.iter().filter_map(|at| match self.nodes[*at].state {
            State::Ended { code, reason } => Some((*at, code, reason)),
            _ => None,
        });
        let Some((at, code, reason)) = ends.max_by_key(|(_, code, _)| *code) else {
            return (Ended::Lost { why: "its nodes reported no exit status".to_owned() }, None);
        };
        if reason == Reason::Asked {
            return (Ended::Cancelled, None);
        }
        // Its ranks elsewhere fail with it. Memory is the program's or its limit's, and shows no bad node.
        let is_for_memory =
            |node: &Watched| matches!(node.state, State::Ended { reason: Reason::OutOfMemory, .. });
        if self.nodes.iter().any(is_for_memory) {
            return (Ended::OutOfMemory, None);
        }
        let has = |name: &str| job.files.iter().any(|file| file.name == name);
        // Where the container of one node alone did not start, that says nothing of the others.
        let without: Vec<usize> = (0..self.nodes.len()).filter(|at| self.did_not_begin(*at)).collect();
        if let (true, [first, rest @ ..]) = (has(files::CONTAINER), without.as_slice())
            && self.nodes.len() > 1
        {
            let blamed = rest.is_empty().then(|| Blamed {
                node: job.nodes[*first].clone(),
                evidence: "its container did not start".to_owned(),
            });
            return (Ended::Exited { code: NOT_BEGUN }, blamed);
        }
        // The one mpirun of a job speaks for the ranks of all its nodes; it says in its output which of them failed.
        let speaks_for_all = has(files::HOSTFILE);
        let alone = which.len() == 1 && !speaks_for_all;
        let blamed = alone.then(|| Blamed {
            node: job.nodes[at].clone(),
            evidence: format!("its script was the first to fail, with exit code {code}"),
        });
        (Ended::Exited { code }, blamed)
    }
}

impl Watched {
    /// Nothing of the job runs there.
    fn is_over(&self) -> bool {
        self.state.is_over() || self.over.is_some()
    }

    /// Why nothing is known of it now.
    fn silence(&self, now: Instant) -> Option<String> {
        if let Some((_, why)) = &self.silent {
            return Some(why.clone());
        }
        let waited = now - self.asked.filter(|_| !self.is_over())?;
        (waited >= PATIENCE).then(|| format!("{}: no answer for {} s", self.name, waited.as_secs()))
    }
}
