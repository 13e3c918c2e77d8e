//! Executes the plan: launches each job when its nodes are free, watches it, and ends it at its limits.
//! It hands over one case at a time as soon as all its jobs have ended; what the case's numbers say is not asked here.

mod allocation;
mod attempts;
mod background;
mod clock;
mod event;
mod history;
mod job;
mod launching;
#[cfg(test)]
mod message_tests;
pub mod quarantine;
mod refusal;
mod stall;
mod submit_limit;
mod watch;

pub use clock::Clock;
pub use event::{Event, shared_slots};
pub use history::{History, Past, PastAllocation};

use crate::interrupt;
use crate::launch::{self, Launch, NotLaunched};
use crate::reach::Reach;
use ::job::script;
use allocation::Allocation;
use background::Background;
use base::redact::Secrets;
use job::{Job, JobState, Live, Suspension};
use launching::Launching;
use model::artefact::{
    CaseEnd, CaseJobs, Ended, Format, Launcher, LeftOut, Plan, PlannedCase, PlannedJob, ScriptRuns,
};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use submit_limit::SubmitLimit;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

/// Between two looks at the jobs that run.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// Launching goes on for so long past the time of a look before that is made up for.
const LATE: Duration = Duration::from_secs(30);
/// Ctrl-C is answered within this time, however long the run waits for a poll.
const SLICE: Duration = Duration::from_millis(250);
/// Between the request to end and the end by force.
const GRACE: Duration = Duration::from_secs(30);
/// For this long a launcher may give no answer about a job before it counts as lost.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(600);

/// Receives events, with the time since the run began; without an event only time has passed.
pub(crate) type EventSink<'a> = dyn FnMut(Option<&Event>, Duration) + 'a;

/// Executes one plan: launches its jobs, watches them and ends them.
pub struct Runner<'a> {
    plan: &'a Plan,
    reach: &'a dyn Reach,
    launcher: Rc<dyn Launch>,
    /// Shared by the launches that go on side by side.
    launching: Rc<Launching<'a>>,
    background: Rc<Background<'a>>,
    /// What launches come to, by job.
    launched: (UnboundedSender<Launched>, UnboundedReceiver<Launched>),
    /// Launches that go on, and how many may.
    in_flight: usize,
    at_once: usize,
    clock: Clock,
    report: &'a mut EventSink<'a>,
    /// Cases by index in the plan.
    cases: Vec<CaseState>,
    /// Case by case, in the plan's order.
    jobs: Vec<Job<'a>>,
    /// All jobs before this one are over.
    first_open: usize,
    allocations: Vec<Allocation<'a>>,
    stopped: Option<String>,
    next_poll: Instant,
    /// When jobs were last looked at.
    polled: Instant,
    /// What Slurm was seen to take of this user's jobs.
    submit_limit: SubmitLimit,
    /// The process before this one was ended: its last launches may not be recorded.
    resumed: bool,
    /// Whether jobs have ended since it was last looked for some that hung.
    has_ended: bool,
    /// Jobs that hung, when that was last looked at.
    hangs_seen: usize,
    /// How far jobs had come when they were last looked at.
    observations: stall::Observations,
}

/// What the launch of a job came to.
type Launched = (usize, Result<String, NotLaunched>);

struct CaseState {
    handed_over: bool,
    /// Known once the case was judged.
    end: Option<CaseEnd>,
}

/// A case whose jobs have all ended, or that was not run.
#[derive(Debug)]
pub struct Finished {
    /// Its index in the plan.
    pub case: usize,
    /// The contents of its `job.json`.
    pub jobs: CaseJobs,
}

impl<'a> Runner<'a> {
    /// Begins a run: reports `RunStarted`, launches nothing yet.
    pub fn new(
        plan: &'a Plan,
        reach: &'a dyn Reach,
        clock: Clock,
        report: &'a mut EventSink<'a>,
        secrets: &'a Secrets,
    ) -> Self {
        report(Some(&Event::RunStarted { at: clock.now() }), clock.elapsed());
        Runner::with(plan, reach, clock, report, secrets, None)
    }

    /// Goes on with a run whose process was ended: what it had launched is watched further, never launched again.
    pub fn resume(
        plan: &'a Plan,
        reach: &'a dyn Reach,
        clock: Clock,
        report: &'a mut EventSink<'a>,
        secrets: &'a Secrets,
        history: &History,
    ) -> Self {
        report(Some(&Event::RunResumed { at: clock.now() }), clock.elapsed());
        Runner::with(plan, reach, clock, report, secrets, Some(history))
    }

    fn with(
        plan: &'a Plan,
        reach: &'a dyn Reach,
        clock: Clock,
        report: &'a mut EventSink<'a>,
        secrets: &'a Secrets,
        history: Option<&History>,
    ) -> Self {
        let jobs = plan
            .cases
            .iter()
            .enumerate()
            .flat_map(|(case, planned)| {
                planned.jobs.iter().map(move |job| {
                    let past = history.and_then(|history| history.job(&planned.name, &job.name));
                    let shared = allocation::index_of(plan, &planned.name, &job.name);
                    // What a node that is quarantined by now had done before stays done.
                    let is_new = past.is_none() && job.again_of.is_none();
                    match left_out(plan, job).filter(|_| is_new) {
                        None => Job::with(case, shared, job, past, &clock),
                        Some(left) => Job::left_out(case, job, left),
                    }
                })
            })
            .collect();
        let launcher: Rc<dyn Launch> = Rc::from(launch::find(plan.launcher));
        let resumed = history.is_some();
        let launching = Launching { plan, reach, launcher: launcher.clone(), secrets, resumed };
        let beating = launcher.clone();
        let heartbeat = Box::pin(async move { beating.heartbeat(reach).await });
        Runner {
            plan,
            reach,
            launcher,
            launching: Rc::new(launching),
            background: Rc::new(Background::new(heartbeat)),
            launched: mpsc::unbounded_channel(),
            in_flight: 0,
            at_once: 1,
            clock,
            report,
            cases: plan.cases.iter().map(|_| CaseState { handed_over: false, end: None }).collect(),
            jobs,
            first_open: 0,
            allocations: plan
                .allocations
                .iter()
                .map(|planned| Allocation::with(planned, history, &clock))
                .collect(),
            stopped: None,
            next_poll: Instant::now(),
            polled: Instant::now(),
            submit_limit: SubmitLimit::default(),
            has_ended: true,
            hangs_seen: 0,
            observations: stall::Observations::new(),
            resumed,
        }
    }

    /// So many jobs are launched side by side, where the launcher is one that can. A scheduler is asked for one at a
    /// time.
    pub fn at_once(mut self, many: usize) -> Self {
        if self.plan.launcher.facts().side_by_side {
            self.at_once = many.max(1);
        }
        self
    }

    /// Does something else for the run; jobs that run keep their heartbeat, and launches go on.
    pub async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> T {
        self.background.meanwhile(work).await
    }

    /// The judge's verdict on a case that was handed over: dependent cases use it.
    pub fn settle(&mut self, case: usize, end: CaseEnd) {
        if let Some(state) = self.cases.get_mut(case) {
            state.end = Some(end);
        }
    }

    /// Launches nothing more, and ends what runs.
    pub fn stop(&mut self, why: &str) {
        if self.stopped.is_none() {
            self.stopped = Some(why.to_owned());
            let event = Event::RunStopped { at: self.clock.now(), why };
            (self.report)(Some(&event), self.clock.elapsed());
        }
    }

    /// Why the run was stopped, if it was.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// The next case that is done with; nothing when all are.
    pub async fn next(&mut self) -> Option<Finished> {
        let background = self.background.clone();
        background.meanwhile(self.go_on()).await
    }

    async fn go_on(&mut self) -> Option<Finished> {
        loop {
            self.heed_interruption();
            self.pass_over_ended();
            self.tend_allocations().await;
            self.tend_attempts();
            self.tend_hangs();
            if let Some(finished) = self.finished_case() {
                self.forget_secrets(finished.case).await;
                return Some(finished);
            }
            if self.cases.iter().all(|case| case.handed_over)
                && !self.allocations.iter().any(Allocation::is_open)
            {
                return None;
            }
            self.launch_what_can_be().await;
            if let Some(finished) = self.finished_case() {
                self.forget_secrets(finished.case).await;
                return Some(finished);
            }
            if self.wait_for_poll().await {
                self.poll_and_enforce().await;
                self.tend_stalls().await;
            }
        }
    }

    /// Whoever looks for jobs that run or wait need not look at thousands that are over each time.
    fn pass_over_ended(&mut self) {
        let is_over = |job: &Job| matches!(job.state, JobState::Over { .. } | JobState::Unneeded);
        while self.jobs.get(self.first_open).is_some_and(is_over) {
            self.first_open += 1;
        }
    }

    /// Jobs that may run or wait, with their places among all.
    fn open_jobs(&self) -> impl Iterator<Item = (usize, &Job<'a>)> + Clone {
        self.jobs.iter().enumerate().skip(self.first_open)
    }

    /// The jobs of a case stand side by side.
    fn jobs_of(&self, case: usize) -> &[Job<'a>] {
        let first = self.jobs.partition_point(|job| job.case < case);
        let end = self.jobs.partition_point(|job| job.case <= case);
        self.jobs.get(first..end).unwrap_or_default()
    }

    fn heed_interruption(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        if let Some(code) = interrupt::asked() {
            self.stop(if code == model::exit_code::TERMINATED { "SIGTERM" } else { "Ctrl-C" });
        } else if self.plan.limit_s.is_some_and(|limit| self.clock.elapsed().as_secs() >= limit) {
            self.stop(&format!(
                "the run's time limit of {} s has passed",
                self.plan.limit_s.unwrap_or_default()
            ));
        }
    }

    fn finished_case(&mut self) -> Option<Finished> {
        for case in 0..self.cases.len() {
            if self.cases[case].handed_over {
                continue;
            }
            let planned = &self.plan.cases[case];
            let skipped = match self.barrier(planned) {
                Barrier::Open => None,
                Barrier::Wait => {
                    let Some(why) = self.stopped.clone() else { continue };
                    self.give_up_planned(case, &why);
                    None
                }
                Barrier::Closed(why) => {
                    self.give_up_planned(case, &why);
                    Some(why)
                }
            };
            let over = self
                .jobs_of(case)
                .iter()
                .all(|job| matches!(job.state, JobState::Over { .. } | JobState::Unneeded));
            if !over {
                continue;
            }
            self.cases[case].handed_over = true;
            let jobs = self.jobs_of(case).iter().filter_map(Job::record).collect::<Vec<_>>();
            return Some(Finished { case, jobs: CaseJobs { format: Format, skipped, jobs } });
        }
        None
    }

    /// Whether a case may be launched, going by its precondition and by the cases it comes after.
    fn barrier(&self, case: &PlannedCase) -> Barrier {
        if let Some(why) = &case.skip {
            return Barrier::Closed(why.clone());
        }
        for name in &case.after {
            let found =
                self.plan.cases.iter().position(|other| other.suite == case.suite && other.name == *name);
            // A dependency that was not selected was not asked for either.
            let Some(at) = found else { continue };
            match self.cases[at].end {
                None => return Barrier::Wait,
                Some(CaseEnd::Pass) => {}
                Some(end) => return Barrier::Closed(format!("it depends on `{name}`, which ended: {end}")),
            }
        }
        Barrier::Open
    }

    fn give_up_planned(&mut self, case: usize, why: &str) {
        let mut gave_up = false;
        for job in
            self.jobs.iter_mut().filter(|job| job.case == case && matches!(job.state, JobState::Planned))
        {
            if job.may_be_unneeded() {
                job.state = JobState::Unneeded;
                continue;
            }
            job.state = JobState::Over { handle: None, end: Ended::NotRun { why: why.to_owned() } };
            gave_up = true;
        }
        if gave_up {
            let event = Event::CaseNotRun { at: self.clock.now(), case: &self.plan.cases[case].name, why };
            (self.report)(Some(&event), self.clock.elapsed());
        }
    }

    async fn launch_what_can_be(&mut self) {
        if let Some(why) = self.stopped.clone() {
            for case in 0..self.cases.len() {
                if !self.cases[case].handed_over {
                    self.give_up_planned(case, &why);
                }
            }
            return;
        }
        // Jobs are taken in the plan's order. One that must wait holds its nodes against those behind it, so that a
        // job on all nodes is not overtaken for ever by jobs on few.
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        for (_, job) in self.open_jobs() {
            if matches!(job.state, JobState::Live(_) | JobState::Launching) {
                taken.extend(job.planned.nodes.iter().map(String::as_str));
            }
        }
        let open = self.allocations.iter().filter(|allocation| allocation.is_open());
        let mut live = open.clone().count();
        taken.extend(open.flat_map(|open| &open.planned.batch_job.nodes).map(String::as_str));
        let is_alone = |(_, job): &(usize, &Job)| match &job.state {
            JobState::Live(live) => live.within.is_none(),
            state => matches!(state, JobState::Launching),
        };
        live += self.open_jobs().filter(is_alone).count();
        let most = self.plan.most_jobs.map_or(usize::MAX, |most| most as usize);
        let mut room = most.min(self.submit_limit.most()).saturating_sub(live);
        let mut free = self.with_a_turn();
        let mut ready = Vec::new();
        let mut last = None;
        for (at, job) in self.open_jobs() {
            if !matches!(job.state, JobState::Planned) || job.may_be_unneeded() {
                continue;
            }
            // The jobs of a case have one barrier.
            let is_open = match last {
                Some((case, is_open)) if case == job.case => is_open,
                _ => matches!(self.barrier(&self.plan.cases[job.case]), Barrier::Open),
            };
            last = Some((job.case, is_open));
            if !is_open {
                continue;
            }
            // In an allocation that is there the nodes are the job's own, and nothing more comes into the queue.
            if let Some(which) = job.allocation
                && self.allocations[which].is_open()
            {
                if free.remove(&which) {
                    ready.push(at);
                }
                continue;
            }
            if room > 0 && job.planned.nodes.iter().all(|node| !taken.contains(node.as_str())) {
                ready.push(at);
                room -= 1;
            }
            taken.extend(job.planned.nodes.iter().map(String::as_str));
            let is_full = room == 0 || taken.len() >= self.plan.nodes.len();
            if is_full && self.allocations.is_empty() {
                break;
            }
        }
        for at in ready {
            if interrupt::asked().is_some() {
                return;
            }
            match self.jobs[at].allocation.filter(|which| !self.allocations[*which].is_gone()) {
                None if self.in_flight < self.at_once => self.begin_launch(at),
                // A scheduler is asked in the plan's order.
                Some(which) if self.in_flight == 0 => {
                    if let Some(launched) = self.take_turn(at, which).await {
                        self.now_launched(at, launched, Some(which));
                    }
                    // Where a host gives no answer a turn takes long, and those that run want to be looked at meanwhile.
                    if Instant::now() >= self.next_poll + LATE {
                        self.next_poll = Instant::now() + POLL_EVERY;
                        self.poll_and_enforce().await;
                    }
                }
                _ => return,
            }
        }
    }

    /// Its launch goes on by itself from here.
    fn begin_launch(&mut self, at: usize) {
        let (launching, planned) = (self.launching.clone(), self.jobs[at].planned);
        let done = self.launched.0.clone();
        self.jobs[at].state = JobState::Launching;
        self.in_flight += 1;
        self.background.begin(Box::pin(async move {
            // Whoever waits for it is gone where the run is.
            let _ = done.send((at, launching.launch(planned).await));
        }));
    }

    fn now_launched(&mut self, at: usize, launched: Result<String, NotLaunched>, within: Option<usize>) {
        match launched {
            Ok(handle) => self.now_live(at, handle, within),
            Err(not) if not.clears_later() && self.waits_for_room(at, not.why()) => {
                self.jobs[at].state = JobState::Planned;
            }
            Err(not) => self.not_launched(at, not),
        }
    }

    /// Takes note of the launches that have come to something; whether there were any.
    fn note_launched(&mut self) -> bool {
        let mut any = false;
        while let Ok((at, launched)) = self.launched.1.try_recv() {
            self.in_flight -= 1;
            self.now_launched(at, launched, None);
            any = true;
        }
        any
    }

    fn now_live(&mut self, at: usize, handle: String, within: Option<usize>) {
        let now = Instant::now();
        let planned = self.jobs[at].planned;
        self.jobs[at].times.submitted = Some(self.clock.now_unix_s());
        let event = Event::JobSubmitted {
            at: self.clock.now(),
            case: &self.plan.cases[self.jobs[at].case].name,
            job: &planned.name,
            handle: &handle,
            nodes: &planned.nodes,
            estimate_s: planned.estimate_s,
        };
        (self.report)(Some(&event), self.clock.elapsed());
        self.jobs[at].state = JobState::Live(Live {
            handle,
            within,
            submitted: now,
            started: None,
            last_answer: now,
            ending: None,
            last_reason: String::new(),
            suspension: Suspension::default(),
        });
        // A fresh job is looked at soon, even where the last look was just now.
        self.next_poll = self.next_poll.min(now + POLL_EVERY);
    }

    fn not_launched(&mut self, at: usize, not: NotLaunched) {
        let planned = self.jobs[at].planned;
        self.jobs[at].times.submitted = Some(self.clock.now_unix_s());
        let cause = not.end.cause();
        let event = Event::JobNotSubmitted {
            at: self.clock.now(),
            case: &self.plan.cases[self.jobs[at].case].name,
            job: &planned.name,
            why: if not.why().is_empty() { &cause } else { not.why() },
            end: &not.end,
            blamed: not.blamed.as_ref(),
        };
        (self.report)(Some(&event), self.clock.elapsed());
        self.jobs[at].blamed = not.blamed;
        self.jobs[at].state = JobState::Over { handle: None, end: not.end };
        self.heed_refusal(at);
    }

    /// A job that never began has not removed what it was given.
    async fn forget_secrets(&self, case: usize) {
        for job in self.jobs_of(case).iter().filter(|job| job.times.submitted.is_some()) {
            let files = secret_files(self.plan.launcher, job.planned);
            if files.is_empty() {
                continue;
            }
            let folder = self.launching.folders().for_job(job.planned);
            // What cannot be removed now is found by `clean`.
            let _ = folder.remove(&files).await;
        }
    }

    /// Waits until the jobs that run are to be looked at; less long where a launch came to something, which is false.
    async fn wait_for_poll(&mut self) -> bool {
        let is_held =
            self.open_jobs().any(|(_, job)| job.refused.is_some() && matches!(job.state, JobState::Planned));
        let is_live = is_held
            || self.open_jobs().any(|(_, job)| matches!(job.state, JobState::Live(_)))
            || self.allocations.iter().any(Allocation::is_open);
        loop {
            if self.note_launched() {
                return false;
            }
            if !is_live && self.in_flight == 0 {
                return true;
            }
            let now = Instant::now();
            // A limit that is reached between two looks is not waited beyond.
            let due = self.deadline().map_or(self.next_poll, |deadline| deadline.min(self.next_poll));
            if is_live && now >= due {
                break;
            }
            if self.stopped.is_none() && interrupt::asked().is_some() {
                self.heed_interruption();
                break;
            }
            let until = if is_live { due.min(now + SLICE) } else { now + SLICE };
            tokio::select! {
                biased;
                launched = self.launched.1.recv() => {
                    if let Some((at, launched)) = launched {
                        self.in_flight -= 1;
                        self.now_launched(at, launched, None);
                    }
                    return false;
                }
                () = tokio::time::sleep_until(until) => {}
            }
            if !is_live {
                return false;
            }
        }
        self.polled = Instant::now();
        self.next_poll = self.polled + POLL_EVERY;
        (self.report)(None, self.clock.elapsed());
        true
    }
}

/// The first of a job's nodes that take no part in the run.
fn left_out<'a>(plan: &'a Plan, job: &PlannedJob) -> Option<&'a LeftOut> {
    plan.left_out.iter().find(|left| job.nodes.contains(&left.node))
}

/// The files by which a job is given its secrets: each node that runs its script reads and removes its own.
pub(crate) fn secret_files(launcher: Launcher, job: &PlannedJob) -> Vec<String> {
    let file = script::secrets::FILE;
    match launcher.facts().script {
        _ if job.secrets.is_empty() => Vec::new(),
        ScriptRuns::OnEachNode => job.nodes.iter().map(|node| script::files::node_file(file, node)).collect(),
        ScriptRuns::Once => vec![file.to_owned()],
    }
}

enum Barrier {
    Open,
    Wait,
    Closed(String),
}
