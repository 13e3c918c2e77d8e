//! Slurm as a state machine: jobs wait, run on nodes that are theirs alone, end, and are forgotten. It advances only
//! when asked, to the moment of the question. What it prints is in `programs`; what jobs leave, in `outputs`.

use super::active_faults::Ending;
use super::drained::Drained;
use super::execution::Execution;
use super::over::{How, Over, TableCache, ends};
use super::turns::{Next, Step, Turns};
use job::script::files;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Jobs and nodes as Slurm's controller knows them.
#[derive(Default)]
pub(crate) struct Slurm {
    last_id: u64,
    /// Without those that ended long ago.
    jobs: BTreeMap<u64, Job>,
    /// Which job has a node, and from when on it no longer does.
    busy: BTreeMap<String, (u64, f64)>,
    /// Nodes that do not answer, and when they will again.
    down: BTreeMap<String, f64>,
    /// Nodes that somebody took out of the queue.
    pub drained: Drained,
    /// Files by which jobs that share an allocation report their state.
    marks: BTreeMap<String, String>,
    /// Nodes that are powered down, where there is power saving, and what one takes to boot.
    asleep: BTreeSet<String>,
    boot_s: f64,
    /// Nodes that boot, and until when.
    booting: BTreeMap<String, f64>,
    /// How far this has advanced.
    now_s: f64,
    /// Before this moment nothing happens; none where that has to be recomputed.
    quiet_until_s: Option<f64>,
}

/// A job that was submitted.
pub(crate) struct Job {
    /// Job id, as sbatch prints it.
    pub id: u64,
    /// As squeue shows it.
    pub name: String,
    /// The job's folder.
    pub folder: String,
    /// Time limit, in seconds.
    pub limit_s: f64,
    /// In seconds since the run began.
    pub submitted_s: f64,
    /// What it does once it runs.
    pub execution: Rc<Execution>,
    /// What it does now.
    pub phase: Phase,
    eligible_s: f64,
    /// When somebody asked the job to end by itself.
    interrupted_s: Option<f64>,
    /// What runs in it, where jobs share it.
    turns: Option<Turns>,
}

/// What a job does now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Phase {
    /// It waits for its nodes.
    Pending,
    /// It has its nodes, and some of them boot.
    Configuring {
        /// When all of them have booted, in seconds since the run began.
        ready_s: f64,
    },
    /// Its script runs.
    Running {
        /// In seconds since the run began.
        start_s: f64,
    },
    /// Nothing for the start where it never ran.
    Over {
        /// In seconds since the run began.
        start_s: Option<f64>,
        /// In seconds since the run began.
        end_s: f64,
        /// How it ended.
        how: How,
    },
}

/// Slurm's MinJobAge.
const FORGET_AFTER_S: f64 = 300.0;
/// From the end of a job until its nodes are free.
pub(crate) const COMPLETING_S: f64 = 1.0;
/// A node that failed boots and answers again.
const DOWN_S: f64 = 120.0;
impl Slurm {
    /// Power saving: all nodes are powered down, and boot for the first job on them.
    pub(crate) fn save_power(&mut self, nodes: &BTreeSet<String>, boot_s: f64) {
        (self.asleep, self.boot_s) = (nodes.clone(), boot_s);
    }

    /// Queues a job, and gives its id.
    pub(crate) fn submit(&mut self, now_s: f64, mut job: Submission) -> u64 {
        self.last_id = self.last_id.max(job.first_id) + 1;
        let stuck = job.execution.active_faults.fails_by(Ending::QueueStuck).is_some();
        if stuck {
            job.waits_s = f64::INFINITY;
        }
        let id = self.last_id;
        let job = Job {
            id,
            name: job.name,
            folder: job.folder,
            limit_s: job.limit_s,
            submitted_s: now_s,
            execution: job.execution,
            phase: Phase::Pending,
            eligible_s: now_s + job.waits_s,
            interrupted_s: None,
            turns: job.turns,
        };
        self.jobs.insert(id, job);
        self.quiet_until_s = None;
        id
    }

    /// Lets everything happen that happens until `now_s`, in its order; gives the jobs that ended and had run.
    pub(crate) fn advance(&mut self, now_s: f64) -> Vec<Over> {
        let mut over = Vec::new();
        // Files are asked for by the thousand, each a moment after the last.
        if self.quiet_until_s.is_some_and(|until| now_s < until) {
            self.now_s = now_s;
            return over;
        }
        while let Some(at) = self.next_event().filter(|at| *at <= now_s) {
            self.now_s = at;
            let ended: Vec<(u64, f64, How)> = self
                .jobs
                .values()
                .filter_map(|job| job.will_end())
                .filter(|(_, end_s, _)| *end_s <= at)
                .collect();
            for (id, end_s, how) in ended {
                over.extend(self.end(id, end_s, how));
            }
            over.extend(self.step_turns(at));
            self.busy.retain(|_, (_, until)| *until > at);
            self.booting.retain(|_, until| *until > at);
            self.begin_what_has_booted(at);
            self.down.retain(|_, until| *until > at);
            self.start_what_can_be();
        }
        self.now_s = now_s;
        // Jobs are forgotten on time too.
        let forgets = self.jobs.values().filter_map(Job::forgotten_s);
        self.quiet_until_s = Some(forgets.chain(self.next_event()).fold(f64::INFINITY, f64::min));
        self.jobs.retain(|_, job| job.forgotten_s().is_none_or(|at| at > now_s));
        over
    }

    /// Jobs that share an allocation begin and end in it.
    fn step_turns(&mut self, at: f64) -> Vec<Over> {
        let mut steps = Vec::new();
        for job in self.jobs.values_mut().filter(|job| matches!(job.phase, Phase::Running { .. })) {
            let Some(turns) = &mut job.turns else { continue };
            while let Some(step) = turns.step(job.id, at) {
                steps.push(step);
            }
        }
        steps.into_iter().filter_map(|step| self.mark(step, true)).collect()
    }

    /// `is_recorded`: a script is left to write how it ended.
    fn mark(&mut self, step: Step, is_recorded: bool) -> Option<Over> {
        let Step { folder, over } = step;
        let Some((over, word)) = over else {
            self.marks.insert(format!("{folder}/{}", files::BEGAN), "\n".to_owned());
            return None;
        };
        if is_recorded {
            self.marks.insert(format!("{folder}/{}", files::ENDED), word);
        }
        Some(over)
    }

    /// What lies in a file by which a job of a shared allocation reports its state.
    pub(crate) fn marked(&self, path: &str) -> Option<&String> {
        self.marks.get(path)
    }

    /// Forgets those files of a folder.
    pub(crate) fn release(&mut self, folder: &str) {
        for name in [files::BEGAN, files::ENDED] {
            self.marks.remove(&format!("{folder}/{name}"));
        }
    }

    /// The allocation that jobs share whose folder this is, while it lasts.
    pub(crate) fn shared(&mut self, folder: &str) -> Option<&mut Turns> {
        let is_live = |job: &&mut Job| !matches!(job.phase, Phase::Over { .. }) && job.folder == folder;
        let turns = self.jobs.values_mut().find(is_live)?.turns.as_mut()?;
        self.quiet_until_s = None;
        Some(turns)
    }

    /// Queues a job in the allocation of `folder`, as number `turn` of it.
    pub(crate) fn give(&mut self, folder: &str, turn: u32, now_s: f64, next: Next) {
        if let Some(turns) = self.shared(folder) {
            turns.give(turn, now_s, next);
        }
    }

    /// Asks the job that lies there to end, or ends it, where it runs in an allocation that others share.
    pub(crate) fn end_turn(&mut self, folder: &str, now_s: f64, by_interrupt: bool) -> Option<Over> {
        let runs = |job: &&mut Job| job.turns.as_ref().is_some_and(|turns| turns.runs(folder));
        let job = self.jobs.values_mut().find(runs)?;
        let turns = job.turns.as_mut()?;
        self.quiet_until_s = None;
        if by_interrupt {
            turns.interrupt(now_s);
            return None;
        }
        let step = turns.end(job.id, now_s, How::Cancelled)?;
        self.mark(step, true)
    }

    /// What runs in a folder, and since when.
    pub(crate) fn running_in(&self, folder: &str) -> Option<(&Execution, f64)> {
        self.jobs.values().find_map(|job| match (&job.turns, job.phase) {
            (Some(turns), Phase::Running { .. }) => turns.running_in(folder),
            (None, Phase::Running { start_s }) if job.folder == folder => Some((&*job.execution, start_s)),
            _ => None,
        })
    }

    /// `None` where it was never submitted, or was forgotten.
    pub(crate) fn job(&self, id: u64) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// All that are not forgotten yet, by id.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// Those that were submitted, and have neither ended nor been cancelled.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| !matches!(job.phase, Phase::Over { .. }))
    }

    /// Asks a running job to end by itself; false where no such job is known.
    pub(crate) fn interrupt(&mut self, id: u64, now_s: f64) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        if let Phase::Running { .. } = job.phase {
            job.interrupted_s.get_or_insert(now_s);
            self.quiet_until_s = None;
        }
        true
    }

    /// Ends a job; false where no such job is known. Also gives what was running and is over.
    pub(crate) fn cancel(&mut self, id: u64, now_s: f64) -> (bool, Vec<Over>) {
        let Some(job) = self.jobs.get(&id) else { return (false, Vec::new()) };
        match job.phase {
            Phase::Over { .. } => (true, Vec::new()),
            _ => (true, self.end(id, now_s, How::Cancelled)),
        }
    }

    /// Whether power saving keeps it powered down.
    pub(crate) fn is_asleep(&self, node: &str) -> bool {
        self.asleep.contains(node)
    }

    /// Whether it boots after power saving.
    pub(crate) fn is_booting(&self, node: &str) -> bool {
        self.booting.contains_key(node)
    }

    /// Somebody waits on that node until it has booted.
    pub(crate) fn wake(&mut self, node: &str) {
        self.asleep.remove(node);
    }

    /// Whether the script of the job that lies there has begun.
    pub(crate) fn has_begun(&self, folder: &str) -> bool {
        self.jobs.values().any(|job| job.folder == folder && matches!(job.phase, Phase::Running { .. }))
    }

    /// Whether it failed, and does not answer yet.
    pub(crate) fn is_down(&self, node: &str) -> bool {
        self.down.contains_key(node)
    }

    /// Whether a job has it, or has only just ended there.
    pub(crate) fn is_busy(&self, node: &str) -> bool {
        self.busy.contains_key(node)
    }

    /// A node was put back: who waits for it starts at once.
    pub(crate) fn look_again(&mut self) {
        self.start_what_can_be();
        self.quiet_until_s = None;
    }

    /// Why a waiting job waits.
    pub(crate) fn reason(&self, job: &Job) -> String {
        let nodes = &job.execution.nodes;
        let stuck = job.execution.active_faults.fails_by(Ending::QueueStuck).and_then(|node| nodes.get(node));
        let down = || nodes.iter().find(|node| self.is_down(node) || self.drained.has(node));
        match stuck.or_else(down) {
            Some(node) => format!("ReqNodeNotAvail, UnavailableNodes:{node}"),
            None if nodes.iter().any(|node| self.is_busy(node)) => "Resources".to_owned(),
            None => "None".to_owned(),
        }
    }

    /// The next moment after the last at which something happens.
    fn next_event(&self) -> Option<f64> {
        let ends = self.jobs.values().filter_map(Job::will_end).map(|(_, end_s, _)| end_s);
        let starts = self.jobs.values().filter(|job| job.phase == Phase::Pending).map(|job| job.eligible_s);
        let later = |at: &f64| *at > self.now_s;
        let ready = self.jobs.values().filter_map(|job| match job.phase {
            Phase::Configuring { ready_s } => Some(ready_s),
            _ => None,
        });
        let frees = self.busy.values().map(|(_, until)| *until).filter(|until| until.is_finite());
        let starts_or_frees =
            starts.chain(ready).chain(frees).chain(self.down.values().copied()).filter(later);
        let running = self.jobs.values().filter(|job| matches!(job.phase, Phase::Running { .. }));
        let turns = running.filter_map(|job| job.turns.as_ref()?.next_s());
        ends.chain(turns).map(|at| at.max(self.now_s)).chain(starts_or_frees).min_by(f64::total_cmp)
    }

    fn start_what_can_be(&mut self) {
        let now_s = self.now_s;
        let waiting: Vec<u64> =
            self.jobs.values().filter(|job| job.phase == Phase::Pending).map(|job| job.id).collect();
        for id in waiting {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let (busy, down, drained) = (&self.busy, &self.down, &self.drained);
            let is_free =
                |node: &String| !busy.contains_key(node) && !down.contains_key(node) && !drained.has(node);
            if job.eligible_s <= now_s && job.execution.nodes.iter().all(is_free) {
                for node in &job.execution.nodes {
                    if self.asleep.remove(node) {
                        self.booting.insert(node.clone(), now_s + self.boot_s);
                    }
                }
                let booted = job.execution.nodes.iter().filter_map(|node| self.booting.get(node)).copied();
                job.phase = match booted.max_by(f64::total_cmp) {
                    Some(ready_s) => Phase::Configuring { ready_s },
                    None => Phase::Running { start_s: now_s },
                };
                if let (Phase::Running { .. }, Some(turns)) = (job.phase, &mut job.turns) {
                    turns.begin(now_s);
                }
                self.busy.extend(job.execution.nodes.iter().map(|node| (node.clone(), (id, f64::INFINITY))));
            }
        }
    }

    fn begin_what_has_booted(&mut self, at: f64) {
        for job in self.jobs.values_mut() {
            if matches!(job.phase, Phase::Configuring { ready_s } if ready_s <= at) {
                job.phase = Phase::Running { start_s: at };
                if let Some(turns) = &mut job.turns {
                    turns.begin(at);
                }
            }
        }
    }

    /// What ran, and what ran in it.
    fn end(&mut self, id: u64, end_s: f64, how: How) -> Vec<Over> {
        let fails =
            |job: &Job| job.turns.as_ref().and_then(Turns::execution).unwrap_or(&job.execution).clone();
        let failing = self.jobs.get(&id).map(fails);
        let turns = self.jobs.get_mut(&id).and_then(|job| job.turns.as_mut());
        let step = turns.and_then(|turns| turns.end(id, end_s, how));
        let inside = step.and_then(|step| self.mark(step, false));
        inside.into_iter().chain(self.end_all(id, end_s, how, failing)).collect()
    }

    fn end_all(&mut self, id: u64, end_s: f64, how: How, failing: Option<Rc<Execution>>) -> Option<Over> {
        self.quiet_until_s = None;
        let job = self.jobs.get_mut(&id)?;
        let start_s = match job.phase {
            Phase::Running { start_s } => Some(start_s),
            _ => None,
        };
        if job.phase != Phase::Pending {
            for node in &job.execution.nodes {
                self.busy.insert(node.clone(), (id, end_s + COMPLETING_S));
            }
        }
        job.phase = Phase::Over { start_s, end_s, how };
        let start_s = start_s?;
        if how == How::NodeFail
            && let Some(failing) = failing
            && let Some(node) =
                failing.active_faults.fails_by(Ending::NodeFails).and_then(|at| failing.nodes.get(at))
        {
            self.down.insert(node.clone(), end_s + DOWN_S);
        }
        Some(Over {
            id,
            folder: job.folder.clone(),
            execution: job.execution.clone(),
            start_s,
            run_s: end_s - start_s,
            how,
            interrupted_s: job.interrupted_s.map(|at| at - start_s),
            reports: TableCache::default(),
        })
    }
}

/// What sbatch hands over.
pub(crate) struct Submission {
    /// As squeue shows it.
    pub name: String,
    /// The job's folder.
    pub folder: String,
    /// Time limit, in seconds.
    pub limit_s: f64,
    /// In the queue, even where all its nodes are free.
    pub waits_s: f64,
    /// Ids of jobs are above it.
    pub first_id: u64,
    /// What it does once it runs.
    pub execution: Rc<Execution>,
    /// Where jobs share the allocation: those that may run in it.
    pub turns: Option<Turns>,
}

impl Job {
    /// When a running job will end without further action, and how.
    fn will_end(&self) -> Option<(u64, f64, How)> {
        let Phase::Running { start_s } = self.phase else { return None };
        let (end_s, how) = match &self.turns {
            None => ends(&self.execution, start_s, self.limit_s, self.interrupted_s),
            Some(turns) => {
                let by_limit = (start_s + self.limit_s, How::TimeLimit);
                turns.will_end().filter(|own| own.0 < by_limit.0).unwrap_or(by_limit)
            }
        };
        Some((self.id, end_s, how))
    }

    fn forgotten_s(&self) -> Option<f64> {
        match self.phase {
            Phase::Over { end_s, .. } => Some(end_s + FORGET_AFTER_S),
            _ => None,
        }
    }

    /// Whether it has ended, and its nodes are not free yet.
    pub(crate) fn is_completing(&self, now_s: f64) -> bool {
        matches!(self.phase, Phase::Over { start_s: Some(_), end_s, .. } if now_s < end_s + COMPLETING_S)
    }
}
