//! What runs on nodes that are reached by ssh, as a state machine: on each node of a job its script, which ends with
//! the workload, by a signal, or when it was not looked at for the length of its heartbeat timeout. It advances only
//! when asked, to the moment of the question. The commands that change it are in `over_ssh`; what jobs leave, in
//! `outputs`.

use super::active_faults::Ending;
use super::execution::{Execution, Own};
use super::over::{How, Over};
use super::spread::Spread;
use super::work::{Table, Work};
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Default)]
pub(crate) struct Ssh {
    last_id: u64,
    /// By folder.
    jobs: BTreeMap<String, Job>,
    /// Nodes that do not answer since they failed, and when they will again.
    down: BTreeMap<String, f64>,
    /// While looks are not recorded, nothing ends by its heartbeat timeout.
    heartbeat_timeouts_paused: bool,
}

struct Job {
    id: u64,
    execution: Rc<Execution>,
    heartbeat_timeout_s: f64,
    /// In the order of the execution's nodes.
    nodes: Vec<Node>,
    /// When the last of its nodes was started: the workload waits for all.
    start_s: Option<f64>,
    /// When somebody ended the workload before its own end, and how.
    stopped: Option<(f64, How)>,
    handed_over: bool,
}

#[derive(Default)]
struct Node {
    started_s: Option<f64>,
    looked_s: f64,
    /// When somebody asked it to end.
    asked_s: Option<f64>,
    end: Option<End>,
}

/// How a job's script on one node ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Exited {
        code: i32,
        reason: &'static str,
    },
    /// With its node.
    Died,
}

/// A node that failed boots and answers again.
const DOWN_S: f64 = 120.0;
/// How long a connection that drops stays away.
const DROP_S: f64 = 25.0;
/// What a job takes to end that was asked to.
const WINDS_UP_S: f64 = 1.0;
/// After this what was asked to end is ended by force, where a heartbeat timeout has passed.
const BY_FORCE_S: f64 = 10.0;

impl Ssh {
    /// How the job in a folder is on a node, in the words of `supervisor.sh`. Looking renews the heartbeat timeout.
    pub(crate) fn look(&mut self, folder: &str, node: &str, now_s: f64) -> String {
        let Some(node) = self.node(folder, node).filter(|node| node.started_s.is_some()) else {
            return "absent\n".to_owned();
        };
        match node.end {
            None => {
                node.looked_s = now_s;
                "running\n".to_owned()
            }
            Some(End::Exited { code, reason }) => format!("ended {code} {reason}\n"),
            Some(End::Died) => "lost\n".to_owned(),
        }
    }

    /// What runs in a folder, and since when.
    pub(crate) fn running_in(&self, folder: &str) -> Option<(&Execution, f64)> {
        let job = self.jobs.get(folder).filter(|job| job.stopped.is_none())?;
        Some((&*job.execution, job.start_s?))
    }

    pub(crate) fn was_started(&self, folder: &str, node: &str) -> bool {
        let job = self.jobs.get(folder);
        let at = job.and_then(|job| job.execution.nodes.iter().position(|name| name == node));
        job.zip(at).is_some_and(|(job, at)| job.nodes.get(at).is_some_and(|node| node.started_s.is_some()))
    }

    pub(crate) fn start(
        &mut self,
        folder: &str,
        node: &str,
        heartbeat_timeout_s: f64,
        now_s: f64,
        execution: impl FnOnce() -> Rc<Execution>,
    ) {
        if !self.jobs.contains_key(folder) {
            self.last_id += 1;
            let execution = execution();
            let nodes = execution.nodes.iter().map(|_| Node::default()).collect();
            let job = Job {
                id: self.last_id,
                execution,
                heartbeat_timeout_s,
                nodes,
                start_s: None,
                stopped: None,
                handed_over: false,
            };
            self.jobs.insert(folder.to_owned(), job);
        }
        if let Some(one) = self.node(folder, node) {
            (one.started_s, one.looked_s) = (Some(now_s), now_s);
        }
        if let Some(job) = self.jobs.get_mut(folder)
            && job.nodes.iter().all(|node| node.started_s.is_some())
        {
            job.start_s = Some(now_s);
        }
    }

    /// Sends TERM, or ends it at once.
    pub(crate) fn end(&mut self, folder: &str, node: &str, by_force: bool, now_s: f64) {
        let Some(one) = self.node(folder, node) else { return };
        if one.started_s.is_none() || one.end.is_some() {
            return;
        }
        one.asked_s.get_or_insert(now_s);
        if by_force {
            one.end = Some(End::Exited { code: 137, reason: "asked" });
            if let Some(job) = self.jobs.get_mut(folder) {
                job.stop(now_s, How::Cancelled);
            }
        }
    }

    /// Why a node gives no answer at this moment, and whether it was heard of just before.
    pub(crate) fn silent(&self, node: &str, now_s: f64) -> Option<(&'static str, bool)> {
        if self.down.get(node).is_some_and(|until| now_s < *until) {
            return Some(("connection timed out", false));
        }
        let drops = |job: &Job| {
            let at = job.execution.nodes.iter().position(|name| name == node)?;
            let execution = &job.execution;
            let from_s = job.start_s? + (execution.work_from_s + execution.work_to_s) / 2.0;
            (execution.active_faults.connection_drops(at) && from_s <= now_s && now_s < from_s + DROP_S)
                .then_some(())
        };
        self.jobs.values().find_map(drops).map(|()| ("connection reset by peer", true))
    }

    /// The jobs that have something running on a node.
    pub(crate) fn running_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a str> {
        let runs = move |job: &Job| {
            let at = job.execution.nodes.iter().position(|name| name == node);
            at.and_then(|at| job.nodes.get(at)).is_some_and(Node::runs)
        };
        self.jobs.iter().filter(move |(_, job)| runs(job)).map(|(folder, _)| folder.as_str())
    }

    /// Folder and node of everything that was started and has not ended.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&str, &str)> {
        self.jobs.iter().flat_map(|(folder, job)| {
            let of_nodes = job.execution.nodes.iter().zip(&job.nodes);
            of_nodes.filter(|(_, node)| node.runs()).map(move |(name, _)| (folder.as_str(), name.as_str()))
        })
    }

    /// Forgets a job that is over.
    pub(crate) fn release(&mut self, folder: &str) {
        if self.jobs.get(folder).is_some_and(|job| !job.nodes.iter().any(Node::runs)) {
            self.jobs.remove(folder);
        }
    }

    /// Who looked when is not known for a while; afterwards everything counts as looked at.
    pub(crate) fn pause_heartbeat_timeouts(&mut self, rest: bool, now_s: f64) {
        self.heartbeat_timeouts_paused = rest;
        for node in self.jobs.values_mut().flat_map(|job| &mut job.nodes) {
            node.looked_s = now_s;
        }
    }

    /// Lets everything happen that happens until `now_s`; gives the jobs that are over and had run.
    pub(crate) fn advance(&mut self, now_s: f64) -> Vec<Over> {
        let mut over = Vec::new();
        for (folder, job) in &mut self.jobs {
            if job.handed_over {
                continue;
            }
            while let Some((at_s, node, end)) =
                job.next(self.heartbeat_timeouts_paused).filter(|(at_s, ..)| *at_s <= now_s)
            {
                if end == End::Died {
                    self.down.insert(job.execution.nodes[node].clone(), at_s + DOWN_S);
                }
                job.take(at_s, node, end);
            }
            if job.nodes.iter().all(|node| node.started_s.is_none() || node.end.is_some()) {
                job.handed_over = true;
                over.extend(job.over(folder));
            }
        }
        over
    }

    fn node(&mut self, folder: &str, node: &str) -> Option<&mut Node> {
        let job = self.jobs.get_mut(folder)?;
        let at = job.execution.nodes.iter().position(|name| name == node)?;
        job.nodes.get_mut(at)
    }
}

impl Node {
    fn runs(&self) -> bool {
        self.started_s.is_some() && self.end.is_none()
    }
}

impl Job {
    /// What happens next without further action: when, on which node, and how its script ends.
    fn next(&self, heartbeat_timeouts_paused: bool) -> Option<(f64, usize, End)> {
        let running = self.nodes.iter().enumerate().filter(|(_, node)| node.runs());
        // A rank that hangs heeds no signal that it may ignore.
        let heeds = self.execution.ends_s.is_some() || self.start_s.is_none();
        let first = running.flat_map(|(at, node)| {
            let asked = node
                .asked_s
                .filter(|_| heeds)
                .map(|asked_s| (asked_s + WINDS_UP_S, at, End::Exited { code: 143, reason: "asked" }));
            let passes_s = node.looked_s + self.heartbeat_timeout_s;
            let heartbeat_timeout = match heeds {
                true => (passes_s + WINDS_UP_S, at, End::Exited { code: 143, reason: "heartbeat" }),
                false => (passes_s + BY_FORCE_S, at, End::Exited { code: 137, reason: "heartbeat" }),
            };
            let heartbeat_timeout = (!heartbeat_timeouts_paused).then_some(heartbeat_timeout);
            self.own_end(at).into_iter().chain(asked).chain(heartbeat_timeout)
        });
        first.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }

    /// How the script on a node ends with the workload.
    fn own_end(&self, at: usize) -> Option<(f64, usize, End)> {
        let (start_s, execution) = (self.start_s?, &self.execution);
        if self.stopped.is_some() {
            return None;
        }
        let ends_s = start_s + execution.ends_s?;
        let exited = End::Exited { code: code(execution, at), reason: "itself" };
        match execution.active_faults.fails_by(Ending::NodeFails) {
            None => Some((ends_s, at, exited)),
            Some(lost) if lost == at => Some((start_s + execution.work_to_s, at, End::Died)),
            // mpirun notices that it lost a node and ends; where it was lost itself, or where nothing gathers the
            // nodes, those that are left wait for the one that is gone.
            Some(lost) => (execution.spread == Spread::Mpirun && lost != 0).then_some((ends_s, at, exited)),
        }
    }

    fn take(&mut self, at_s: f64, node: usize, end: End) {
        if let Some(one) = self.nodes.get_mut(node) {
            one.end = Some(end);
        }
        match end {
            End::Exited { reason: "asked", .. } => self.stop(at_s, How::Signal(15)),
            End::Exited { reason: "heartbeat", .. } => self.stop(at_s, How::Cancelled),
            _ => {}
        }
    }

    fn stop(&mut self, at_s: f64, how: How) {
        self.stopped.get_or_insert((at_s, how));
    }

    /// What its files are made from, if its workload was ever started.
    fn over(&self, folder: &str) -> Option<Over> {
        let (start_s, execution) = (self.start_s?, &self.execution);
        let died = self.nodes.iter().any(|node| node.end == Some(End::Died));
        let own_s = start_s + execution.ends_s.unwrap_or(execution.work_to_s);
        let (end_s, how) = match (died, self.stopped) {
            (true, _) => (own_s, How::NodeFail),
            (false, Some((at_s, how))) => (at_s, how),
            (false, None) => (own_s, How::from(execution.end)),
        };
        let asked_s = self.nodes.iter().filter_map(|node| node.asked_s).reduce(f64::min);
        Some(Over {
            id: self.id,
            folder: folder.to_owned(),
            execution: execution.clone(),
            start_s,
            run_s: (end_s - start_s).max(0.0),
            how,
            interrupted_s: asked_s.filter(|_| self.stopped.is_some()).map(|at_s| at_s - start_s),
            reports: Default::default(),
        })
    }
}

/// What the script on a node exits with, where the workload ends by itself.
fn code(execution: &Execution, at: usize) -> i32 {
    let of_job = match execution.end {
        Own::Exit(code) => code,
        Own::NodeFail | Own::Preempted => 1,
    };
    match (execution.spread, &execution.work) {
        (Spread::Mpirun, _) => of_job * i32::from(at == 0),
        _ if execution.active_faults.ending.is_some() => {
            of_job * i32::from(execution.active_faults.ending.is_some_and(|(_, node)| node == at))
        }
        (_, Work::Gpus(nodes)) => {
            i32::from(nodes.get(at).is_some_and(|tables| tables.iter().any(Table::has_wrong)))
        }
        _ => of_job,
    }
}
