//! Looks at the jobs that run, notes what became of them, and ends them at their limits. `mod.rs` decides what is
//! launched, and when.

use super::job::{Job, JobState};
use super::{GRACE, Runner, SLICE, UNKNOWN_LIMIT};
use crate::launch::{Poll, slurm_end, slurm_turns};
use crate::run::Event;
use job::script::files;
use model::artefact::{Blamed, Ended, PlannedJob};
use std::time::Duration;
use tokio::time::Instant;

impl Runner<'_> {
    pub(super) async fn poll_and_enforce(&mut self) {
        let alone = |job: &Job| match &job.state {
            JobState::Live(live) if live.within.is_none() => Some(live.handle.clone()),
            _ => None,
        };
        let live: Vec<(usize, String)> =
            self.open_jobs().filter_map(|(at, job)| Some((at, alone(job)?))).collect();
        let open: Vec<(usize, String)> = self
            .allocations
            .iter()
            .enumerate()
            .filter_map(|(which, allocation)| Some((which, allocation.handle()?.to_owned())))
            .collect();
        if live.is_empty() && open.is_empty() {
            return;
        }
        // One question for all: for jobs that have an allocation to themselves, and for those that are shared.
        let jobs = live.iter().map(|(at, handle)| (self.jobs[*at].planned, handle.as_str()));
        let batch_jobs =
            open.iter().map(|(which, handle)| (&self.allocations[*which].planned.batch_job, handle.as_str()));
        let asked: Vec<(&PlannedJob, &str)> = jobs.chain(batch_jobs).collect();
        let mut polls = self.launcher.poll(self.reach, &asked).await;
        let of_open = polls.split_off(live.len().min(polls.len()));
        for ((at, handle), poll) in live.iter().zip(polls) {
            self.note(*at, poll);
            self.enforce(*at, handle).await;
        }
        for ((which, _), of_batch_job) in open.iter().zip(of_open) {
            let batch_job = &self.allocations[*which].planned.batch_job;
            for at in self.inside(*which) {
                let poll =
                    slurm_turns::poll(self.reach, self.jobs[at].planned, batch_job, &of_batch_job).await;
                self.note(at, poll);
                self.enforce(at, "").await;
            }
            self.note_allocation(*which, of_batch_job).await;
        }
    }

    /// The first limit of a job that comes after the last look at it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadlines = self.open_jobs().filter_map(|(_, job)| {
            let JobState::Live(live) = &job.state else { return None };
            let queue_limit_s = self.plan.cases[job.case].properties.queue_limit_s;
            let (since, limit) = match (&live.ending, live.started) {
                (Some((_, since, _)), _) => (*since, GRACE),
                (None, Some(started)) => (started, Duration::from_secs(job.planned.limit_s)),
                (None, None) => (live.submitted, Duration::from_secs(queue_limit_s)),
            };
            since.checked_add(limit)
        });
        deadlines.filter(|deadline| *deadline > self.polled).min()
    }

    fn note(&mut self, at: usize, poll: Poll) {
        let now = Instant::now();
        let unix = self.clock.now_unix_s();
        let job = &mut self.jobs[at];
        let JobState::Live(live) = &mut job.state else { return };
        if !matches!(poll, Poll::Unknown(_)) {
            live.last_answer = now;
            live.stand_still(poll == Poll::Suspended, now);
        }
        match poll {
            Poll::Unknown(why) => {
                live.last_reason = why;
                if live.ending.is_none() && now - live.last_answer > UNKNOWN_LIMIT {
                    let why = format!("no answer for {} s: {}", UNKNOWN_LIMIT.as_secs(), live.last_reason);
                    live.ending = Some((Ended::Lost { why }, now, false));
                }
            }
            // It ran, and waits again: running it a second time would measure it twice under one name.
            Poll::Waiting { reason, .. } if live.started.is_some() && live.ending.is_none() => {
                live.started = None;
                live.ending = Some((Ended::Requeued { reason }, now, false));
            }
            Poll::Waiting { reason, never } => {
                live.last_reason = reason.clone();
                if never && live.ending.is_none() {
                    let reason = with_request(reason, job.planned);
                    live.ending = Some((Ended::QueueStuck { reason }, now, false));
                }
            }
            // Slurm may say so for a moment of a job that runs.
            Poll::Starting { reason } if live.started.is_none() => {
                if live.last_reason != reason {
                    let event = Event::JobStarting {
                        at: self.clock.now(),
                        case: &self.plan.cases[job.case].name,
                        job: &job.planned.name,
                        reason: &reason,
                    };
                    (self.report)(Some(&event), self.clock.elapsed());
                }
                live.last_reason = reason;
            }
            Poll::Starting { .. } => {}
            Poll::Running | Poll::Suspended => {
                if live.started.is_none() {
                    live.started = Some(now);
                    job.times.started = Some(unix);
                    let event = Event::JobStarted {
                        at: self.clock.now(),
                        case: &self.plan.cases[job.case].name,
                        job: &job.planned.name,
                    };
                    (self.report)(Some(&event), self.clock.elapsed());
                }
            }
            Poll::Ended { end, blamed, findings } => {
                let was_suspended = live.suspension.was_seen || end == slurm_end::suspended();
                // What the harness itself ended is reported with its own reason, not with the signal that ended it.
                let end = match live.ending.take() {
                    Some((why @ Ended::Interrupted { .. }, ..)) if !end.is_of_its_own() => why,
                    _ if was_suspended => slurm_end::suspended(),
                    Some((why, ..)) if !end.is_of_its_own() => why,
                    _ => end,
                };
                let blamed = blamed.filter(|_| !was_suspended);
                let handle = Some(live.handle.clone());
                job.blamed = blamed.or_else(|| unavailable_node(&end, job.planned));
                job.findings = findings;
                job.times.ended = Some(unix);
                let event = Event::JobEnded {
                    at: self.clock.now(),
                    case: &self.plan.cases[job.case].name,
                    job: &job.planned.name,
                    end: &end,
                    blamed: job.blamed.as_ref(),
                    findings: &job.findings,
                };
                (self.report)(Some(&event), self.clock.elapsed());
                job.state = JobState::Over { handle, end };
                self.has_ended = true;
            }
        }
    }

    /// Interrupt, grace, kill; and give up on what does not even end then.
    async fn enforce(&mut self, at: usize, handle: &str) {
        let now = Instant::now();
        let stopped = self.stopped.clone();
        let case = &self.plan.cases[self.jobs[at].case];
        let planned = self.jobs[at].planned;
        let JobState::Live(live) = &mut self.jobs[at].state else { return };
        if live.ending.is_none() {
            // While the launcher gives no answer the job may have ended long ago: what it last said counts.
            let known = live.last_answer;
            let beyond = |since: Instant, limit_s: u64| {
                known.saturating_duration_since(since) >= Duration::from_secs(limit_s)
            };
            // As long as it may wait in the queue.
            let queue_limit = Duration::from_secs(case.properties.queue_limit_s);
            let over = match live.started {
                _ if live.suspension.was_seen && live.suspension.total >= queue_limit => {
                    Some(slurm_end::suspended())
                }
                Some(started) if beyond(started, planned.limit_s) => {
                    Some(Ended::TimeLimit { limit_s: planned.limit_s })
                }
                None if beyond(live.submitted, case.properties.queue_limit_s) => {
                    Some(Ended::QueueStuck { reason: live.last_reason.clone() })
                }
                _ => None,
            };
            let why = stopped.map(|why| Ended::Interrupted { why }).or(over);
            live.ending = why.map(|why| (why, now, false));
        }
        let Some((why, since, interrupted)) = &mut live.ending else { return };
        let waited = now - *since;
        // A job that never started has nothing to interrupt.
        if !*interrupted && live.started.is_some() {
            *interrupted = true;
            let cause = why.cause();
            let event = Event::JobInterrupted {
                at: self.clock.now(),
                case: &case.name,
                job: &planned.name,
                why: &cause,
            };
            (self.report)(Some(&event), self.clock.elapsed());
            match live.within {
                None => self.launcher.interrupt(self.reach, planned, handle).await,
                Some(_) => slurm_turns::interrupt(self.reach, planned).await,
            }
            self.next_poll = now + SLICE;
        } else if live.started.is_none() || waited >= GRACE {
            if waited > GRACE * 4 {
                let cause = match &*why {
                    Ended::Lost { why } => why.clone(),
                    why => why.cause(),
                };
                let end = Ended::Lost { why: format!("{cause}; its end was not observed") };
                let event = Event::JobEnded {
                    at: self.clock.now(),
                    case: &case.name,
                    job: &planned.name,
                    end: &end,
                    blamed: None,
                    findings: &[],
                };
                (self.report)(Some(&event), self.clock.elapsed());
                self.launcher.forget(&live.handle);
                let (handle, within) = (Some(live.handle.clone()), live.within);
                self.jobs[at].times.ended = Some(self.clock.now_unix_s());
                self.jobs[at].state = JobState::Over { handle, end };
                self.has_ended = true;
                // What would come after it would run beside it.
                if let Some(which) = within {
                    self.cancel_allocation(which, "the end of a job in it was not observed").await;
                }
                return;
            }
            let event = Event::JobCancelled { at: self.clock.now(), case: &case.name, job: &planned.name };
            (self.report)(Some(&event), self.clock.elapsed());
            match live.within {
                None => self.launcher.cancel(self.reach, planned, handle).await,
                // A job that was begun is ended by itself, and leaves the allocation to the others.
                Some(_) if live.started.is_some() => slurm_turns::cancel(self.reach, planned).await,
                Some(which) => self.cancel_allocation(which, "the first job in it did not begin").await,
            }
            self.next_poll = now + SLICE * 4;
        }
    }
}

/// What a partition's limit is compared with, where that is the reason.
fn with_request(reason: String, job: &PlannedJob) -> String {
    if !reason.contains("Partition") {
        return reason;
    }
    let script = job.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
    asked_of_partition(reason, script.unwrap_or_default())
}

fn asked_of_partition(reason: String, script: &str) -> String {
    let asked = script.lines().filter_map(|line| line.strip_prefix("#SBATCH "));
    let asked: Vec<&str> = asked
        .filter(|option| ["--partition=", "--time=", "--nodes="].iter().any(|name| option.starts_with(name)))
        .collect();
    if asked.is_empty() { reason } else { format!("{reason}; requested: {}", asked.join(" ")) }
}

/// Slurm names the node in the reason of a job that waits for it.
fn unavailable_node(end: &Ended, job: &PlannedJob) -> Option<Blamed> {
    let Ended::QueueStuck { reason } = end else { return None };
    let list = reason.split_once("UnavailableNodes:")?.1.split([' ', ')']).next()?;
    let named = base::nodeset::expand(list).ok()?;
    let mut ours = named.iter().filter(|node| job.nodes.contains(node));
    match (ours.next(), ours.next()) {
        (Some(node), None) => Some(Blamed { node: node.clone(), evidence: reason.clone() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_limit_is_reported_with_the_request() {
        let script =
            "#!/bin/bash\n#SBATCH --job-name=x\n#SBATCH --partition=short\n#SBATCH --time=00:20:00\n";
        assert_eq!(
            asked_of_partition("PartitionTimeLimit".into(), script),
            "PartitionTimeLimit; requested: --partition=short --time=00:20:00"
        );
        assert_eq!(asked_of_partition("PartitionDown".into(), "#!/bin/bash\n"), "PartitionDown");
    }
}
