//! The allocations of a run that jobs share: asked for with the first of their jobs, given from one job to the next,
//! closed when nothing more comes. Which jobs share one stands in the plan; how a job in one is started, in
//! `launch/slurm_turns.rs`.

use super::job::{Job, JobState};
use super::{Clock, Event, GRACE, History, Runner, SLICE, UNKNOWN_LIMIT};
use crate::launch::{NotLaunched, Poll, slurm_end, slurm_turns};
use model::artefact::{Ended, Plan, PlannedAllocation};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// Nodes are not kept for longer than this for a job that must wait for another case: it will run by itself.
const IDLE: Duration = Duration::from_secs(120);
/// An answer of Slurm that is older than this says nothing any more.
const FRESH: Duration = Duration::from_secs(30);

pub(super) struct Allocation<'a> {
    pub planned: &'a PlannedAllocation,
    state: State,
    /// Turns that were given in it.
    turns: u32,
}

enum State {
    Planned,
    Open(Open),
    /// Ended, closed or never there: what is still planned for it runs by itself.
    Gone,
}

struct Open {
    handle: String,
    started: Option<Instant>,
    /// When Slurm last said something of it.
    answered: Option<Instant>,
    /// When it last had something to do.
    used: Instant,
    /// Since when nothing more is given, and whether it was cancelled.
    closing: Option<(Instant, bool)>,
}

/// The allocation that a job shares, by its place in the plan.
pub(super) fn index_of(plan: &Plan, case: &str, job: &str) -> Option<usize> {
    let is_in = |allocation: &PlannedAllocation| {
        allocation.jobs.iter().any(|turn| turn.case == case && turn.job == job)
    };
    plan.allocations.iter().position(is_in)
}

impl<'a> Allocation<'a> {
    pub(super) fn with(planned: &'a PlannedAllocation, history: Option<&History>, clock: &Clock) -> Self {
        let past = history.and_then(|history| history.allocation(&planned.batch_job.name));
        let now = Instant::now();
        let state = match past {
            None => State::Planned,
            Some(past) if past.ended => State::Gone,
            Some(past) => State::Open(Open {
                handle: past.handle.clone(),
                started: past.started.map(|unix_s| clock.moment(unix_s)),
                answered: None,
                used: now,
                closing: past.closed.then_some((now, false)),
            }),
        };
        Allocation { planned, state, turns: past.map_or(0, |past| past.turns) }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    pub(super) fn handle(&self) -> Option<&str> {
        match &self.state {
            State::Open(open) => Some(&open.handle),
            State::Planned | State::Gone => None,
        }
    }

    fn open(&mut self) -> Option<&mut Open> {
        match &mut self.state {
            State::Open(open) => Some(open),
            State::Planned | State::Gone => None,
        }
    }
}

impl Runner<'_> {
    /// The jobs that were given a turn in an allocation and have not ended: one, as a rule.
    pub(super) fn inside(&self, which: usize) -> Vec<usize> {
        let is_inside =
            |at: &usize| matches!(&self.jobs[*at].state, JobState::Live(live) if live.within == Some(which));
        (0..self.jobs.len()).filter(is_inside).collect()
    }

    /// The allocations in which a job runs: one look at all jobs, for there may be many.
    pub(super) fn used(&self) -> BTreeSet<usize> {
        let within = |(_, job): (usize, &Job)| match &job.state {
            JobState::Live(live) => live.within,
            JobState::Planned | JobState::Launching | JobState::Over { .. } | JobState::Unneeded => None,
        };
        self.open_jobs().filter_map(within).collect()
    }

    /// Those that wait for their next job.
    pub(super) fn with_a_turn(&self) -> BTreeSet<usize> {
        let used = self.used();
        let is_free = |which: &usize| {
            let state = &self.allocations[*which].state;
            matches!(state, State::Open(open) if open.closing.is_none()) && !used.contains(which)
        };
        (0..self.allocations.len()).filter(is_free).collect()
    }

    fn planned_in(&self, which: usize) -> Vec<usize> {
        let jobs = self.jobs.iter().enumerate();
        let planned =
            jobs.filter(|(_, job)| job.allocation == Some(which) && matches!(job.state, JobState::Planned));
        planned.map(|(at, _)| at).collect()
    }

    /// Where a job stands in the list of an allocation.
    fn place(&self, at: usize, which: usize) -> Option<usize> {
        let (job, planned) = (&self.jobs[at], self.allocations[which].planned);
        let case = &self.plan.cases[job.case].name;
        planned.jobs.iter().position(|turn| turn.case == *case && turn.job == job.planned.name)
    }

    /// Gives a job its turn, in an allocation that is asked for where it is not there yet: the job's handle, or why it
    /// has none. Nothing where it is not the job's turn now.
    pub(super) async fn take_turn(&mut self, at: usize, which: usize) -> Option<Result<String, NotLaunched>> {
        let planned = self.allocations[which].planned;
        let batch_job = &planned.batch_job;
        if matches!(self.allocations[which].state, State::Planned) {
            let handle = match self.launching.launch(batch_job).await {
                Ok(handle) => handle,
                Err(not) if not.clears_later() => return Some(Err(not)),
                Err(not) => {
                    // The others try by themselves, as they would without it.
                    self.allocations[which].state = State::Gone;
                    return Some(Err(not));
                }
            };
            let event = Event::AllocationSubmitted {
                at: self.clock.now(),
                allocation: &batch_job.name,
                handle: &handle,
                nodes: &batch_job.nodes,
            };
            (self.report)(Some(&event), self.clock.elapsed());
            let now = Instant::now();
            let (started, answered, closing) = (None, Some(now), None);
            self.allocations[which].state =
                State::Open(Open { handle, started, answered, used: now, closing });
        } else if !self.goes_on(at, which).await {
            return None;
        }
        let id = self.allocations[which].handle()?.to_owned();
        let job = self.jobs[at].planned;
        if self.resumed {
            match self.taken_before(which, &id).await {
                Ok(false) => {}
                Ok(true) => return None,
                Err(not) => return Some(Err(not)),
            }
        }
        let number = self.place(at, which)? + 1;
        if let Err(not) = self.launching.put_files(job).await {
            return Some(Err(not));
        }
        let turn = self.allocations[which].turns + 1;
        if let Err(not) = slurm_turns::give(self.reach, batch_job, turn, number).await {
            // Whether the job got its turn is unknown: it must not run unwatched.
            self.cancel_allocation(which, not.why()).await;
            return Some(Err(not));
        }
        self.allocations[which].turns = turn;
        if let Some(open) = self.allocations[which].open() {
            open.used = Instant::now();
        }
        Some(Ok(format!("{id}/{turn}")))
    }

    /// The process before this one may have given turns that it could not record: their jobs run, and are not given
    /// another. Whether there was one.
    async fn taken_before(&mut self, which: usize, id: &str) -> Result<bool, NotLaunched> {
        let planned = self.allocations[which].planned;
        loop {
            let turn = self.allocations[which].turns + 1;
            let Some(number) = slurm_turns::given(self.reach, &planned.batch_job, turn).await? else {
                return Ok(false);
            };
            self.allocations[which].turns = turn;
            let is_given = |at: &usize| self.place(*at, which).is_some_and(|place| place + 1 == number);
            if let Some(at) = self.planned_in(which).into_iter().find(is_given) {
                self.now_live(at, format!("{id}/{turn}"), Some(which));
                return Ok(true);
            }
        }
    }

    /// Whether the next job may be given its turn in an allocation that others have used: it is still there, it lasts
    /// long enough, and Slurm would start something new on its nodes. Otherwise it is closed.
    async fn goes_on(&mut self, at: usize, which: usize) -> bool {
        let planned = self.allocations[which].planned;
        let Some(open) = self.allocations[which].open() else { return false };
        if open.answered.is_none_or(|answered| answered.elapsed() > FRESH) {
            let handle = open.handle.clone();
            let asked = [(&planned.batch_job, handle.as_str())];
            let Some(poll) = self.launcher.poll(self.reach, &asked).await.pop() else { return false };
            let is_known = !matches!(poll, Poll::Unknown(_));
            self.note_allocation(which, poll).await;
            if !is_known || !self.allocations[which].is_open() {
                return false;
            }
        }
        let kept_s = self.place(at, which).map_or(0, |place| planned.jobs[place].limit_s);
        let Some(open) = self.allocations[which].open() else { return false };
        let used_s = open.started.map_or(0, |started| started.elapsed().as_secs());
        if used_s + kept_s > planned.batch_job.limit_s {
            self.close_allocation(which, "the next job might exceed its time limit").await;
            return false;
        }
        if self.allocations[which].turns == 0 {
            return true;
        }
        if let Some(node) = slurm_end::barred(self.reach, &planned.batch_job.nodes).await {
            self.close_allocation(which, &node).await;
            return false;
        }
        true
    }

    /// Closes what has nothing more to do, and ends what does not close.
    pub(super) async fn tend_allocations(&mut self) {
        if !self.allocations.iter().any(Allocation::is_open) {
            return;
        }
        let used = self.used();
        let planned = self.jobs.iter().filter(|job| matches!(job.state, JobState::Planned));
        let wanted: BTreeSet<usize> = planned.filter_map(|job| job.allocation).collect();
        for which in 0..self.allocations.len() {
            let is_used = used.contains(&which);
            let is_wanted = wanted.contains(&which) && self.stopped.is_none();
            let Some(open) = self.allocations[which].open() else { continue };
            if is_used {
                open.used = Instant::now();
                continue;
            }
            match open.closing {
                None if !is_wanted => self.close_allocation(which, "no job is left for it").await,
                None if open.used.elapsed() > IDLE => {
                    self.close_allocation(which, "its next job waits for other cases").await;
                }
                Some((since, false)) if since.elapsed() > GRACE || self.stopped.is_some() => {
                    self.cancel_allocation(which, "it does not close").await;
                }
                Some((since, true)) if since.elapsed() > GRACE * 4 => {
                    self.forget_allocation(
                        which,
                        &Ended::Lost { why: "its end was not observed".to_owned() },
                    );
                }
                _ => {}
            }
        }
    }

    async fn close_allocation(&mut self, which: usize, why: &str) {
        let batch_job = &self.allocations[which].planned.batch_job;
        self.report_closed(which, why);
        slurm_turns::close(self.reach, batch_job).await;
        if let Some(open) = self.allocations[which].open() {
            open.closing.get_or_insert((Instant::now(), false));
        }
        self.next_poll = self.next_poll.min(Instant::now() + SLICE * 4);
    }

    /// Ends it by force. What is still planned for it runs by itself.
    pub(super) async fn cancel_allocation(&mut self, which: usize, why: &str) {
        let batch_job = &self.allocations[which].planned.batch_job;
        self.report_closed(which, why);
        let Some(open) = self.allocations[which].open() else { return };
        let handle = open.handle.clone();
        open.closing = match open.closing {
            Some((since, true)) => Some((since, true)),
            _ => Some((Instant::now(), true)),
        };
        self.launcher.cancel(self.reach, batch_job, &handle).await;
        self.next_poll = self.next_poll.min(Instant::now() + SLICE * 4);
    }

    /// Reported before it is done: a resumed run must not take its end for an outside cancellation.
    fn report_closed(&mut self, which: usize, why: &str) {
        let allocation = &mut self.allocations[which];
        let name = &allocation.planned.batch_job.name;
        let is_reported = allocation.open().is_none_or(|open| open.closing.is_some());
        if !is_reported {
            let event = Event::AllocationClosed { at: self.clock.now(), allocation: name, why };
            (self.report)(Some(&event), self.clock.elapsed());
        }
    }

    fn forget_allocation(&mut self, which: usize, end: &Ended) {
        let name = &self.allocations[which].planned.batch_job.name;
        let event = Event::AllocationEnded { at: self.clock.now(), allocation: name, end };
        (self.report)(Some(&event), self.clock.elapsed());
        self.allocations[which].state = State::Gone;
    }

    /// What Slurm says of an allocation. One that is lost takes those with it that had not ended.
    pub(super) async fn note_allocation(&mut self, which: usize, poll: Poll) {
        let is_used = !self.inside(which).is_empty();
        let batch_job = &self.allocations[which].planned.batch_job;
        let Some(open) = self.allocations[which].open() else { return };
        let now = Instant::now();
        match poll {
            Poll::Unknown(why) => {
                let since = *open.answered.get_or_insert(now);
                if !is_used && now - since > UNKNOWN_LIMIT {
                    self.cancel_allocation(which, &why).await;
                    let why = format!("no answer for {} s: {why}", UNKNOWN_LIMIT.as_secs());
                    self.forget_allocation(which, &Ended::Lost { why });
                }
            }
            Poll::Waiting { .. } | Poll::Starting { .. } => open.answered = Some(now),
            Poll::Running | Poll::Suspended => {
                open.answered = Some(now);
                open.started.get_or_insert(now);
            }
            // Jobs that run in it are polled first.
            Poll::Ended { .. } if is_used => open.answered = Some(now),
            Poll::Ended { end, blamed, .. } => {
                let is_own = open.closing.is_some() || matches!(end, Ended::Exited { .. });
                for at in if is_own { Vec::new() } else { self.planned_in(which) } {
                    let end = slurm_turns::lost_with(&end, batch_job);
                    self.not_launched(at, NotLaunched { end, blamed: blamed.clone() });
                }
                self.forget_allocation(which, &end);
            }
        }
    }
}
