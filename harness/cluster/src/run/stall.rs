//! Jobs that make no progress are ended before their time limit: their outputs hold no more than before, and no NIC
//! counter has moved. Before the first output nothing is a stall: programs are compiled and models are loaded in
//! silence.

use super::Runner;
use super::job::JobState;
use crate::reach::Host;
use crate::reach::progress::{self, Progress};
use crate::reach::stall_request::StallRequest;
use futures::stream::{self, StreamExt};
use model::artefact::Ended;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Between two looks at one job: a quarter of its `stall_s`, within these bounds.
const EVERY: (u64, u64) = (10, 60);
/// So many jobs are asked for in one command.
const MOST: usize = 64;
/// So many nodes are asked side by side.
const AT_ONCE: usize = 32;

/// What was seen of a job last, by its case and name.
pub(super) type Observations = BTreeMap<(usize, String), Look>;

pub(super) struct Look {
    next: Instant,
    last: Option<Progress>,
    /// When anything of it was last seen to change; nothing before its first output.
    changed: Option<Instant>,
}

impl Runner<'_> {
    pub(super) async fn tend_stalls(&mut self) {
        let now = Instant::now();
        let mut due: Vec<(usize, u64)> = Vec::new();
        for (at, job) in self.jobs.iter().enumerate().skip(self.first_open) {
            let JobState::Live(live) = &job.state else { continue };
            let stall_s =
                self.plan.cases[job.case].properties.stall_s.filter(|seconds| *seconds < job.planned.limit_s);
            let (Some(started), Some(stall_s), None) = (live.started, stall_s, &live.ending) else {
                continue;
            };
            let key = (job.case, job.planned.name.clone());
            if live.suspension.since.is_some() {
                // It cannot move: from when it goes on, it is given its time.
                if let Some(look) = self.observations.get_mut(&key) {
                    look.changed = look.changed.map(|_| now);
                }
                continue;
            }
            let look = self.observations.entry(key).or_insert_with(|| Look {
                next: started + every(stall_s),
                last: None,
                changed: None,
            });
            if look.next <= now && due.len() < MOST {
                look.next = now + every(stall_s);
                due.push((at, stall_s));
            }
        }
        let Some((first, _)) = due.first() else { return };
        let folders: Vec<&str> = due.iter().map(|(at, _)| self.jobs[*at].planned.folder.as_str()).collect();
        let folder = self.launching.folders().for_job(self.jobs[*first].planned);
        // Who gives no answer says nothing of a stall.
        let Ok(answer) = folder.exec(&progress::command(&folders)).await else { return };
        let Some(all) = progress::read(&answer.stdout_text(), due.len()) else { return };
        let now = Instant::now();
        let mut stalled = Vec::new();
        for ((at, stall_s), progress) in due.into_iter().zip(all) {
            let job = &mut self.jobs[at];
            let JobState::Live(live) = &mut job.state else { continue };
            let Some(look) = self.observations.get_mut(&(job.case, job.planned.name.clone())) else {
                continue;
            };
            let has_moved = look
                .last
                .as_ref()
                .is_none_or(|last| (last.bytes, &last.counters) != (progress.bytes, &progress.counters));
            if progress.bytes > 0 && (has_moved || look.changed.is_none()) {
                look.changed = Some(now);
            }
            let is_stalled =
                look.changed.is_some_and(|changed| now - changed >= Duration::from_secs(stall_s));
            if is_stalled && live.ending.is_none() {
                stalled.push((at, Ended::Stall { stall_s, last: progress.last.clone() }));
            }
            look.last = Some(progress);
        }
        if stalled.is_empty() {
            return;
        }
        // What a rank knows of where it waits is gone with the job.
        let asked: Vec<usize> = stalled.iter().map(|(at, _)| *at).collect();
        self.ask_about_stall(&asked).await;
        let now = Instant::now();
        for (at, end) in stalled {
            if let JobState::Live(live) = &mut self.jobs[at].state {
                live.ending.get_or_insert((end, now, false));
            }
        }
        self.next_poll = now;
    }

    /// Asks the nodes of these jobs what their ranks know, side by side, and waits for that some seconds at most. A node that
    /// gives no answer leaves no file, which the readers miss.
    async fn ask_about_stall(&self, jobs: &[usize]) {
        let mut requests = Vec::new();
        for at in jobs {
            let job = &self.jobs[*at];
            let JobState::Live(live) = &job.state else { continue };
            if !StallRequest::has_any(job.planned) {
                continue;
            }
            // A job in a shared allocation is reached by that.
            let handle = match live.within {
                None => Some(live.handle.as_str()),
                Some(which) => self.allocations[which].handle(),
            };
            let Some(handle) = handle else { continue };
            requests.extend(self.launcher.beside(job.planned, handle));
        }
        let reach = self.reach;
        let ask = |(host, argv): (Host, Vec<String>)| async move {
            let _ = reach.exec(&host, &StallRequest::command(argv)).await;
        };
        stream::iter(requests.into_iter().map(ask)).buffer_unordered(AT_ONCE).collect::<()>().await;
    }
}

fn every(stall_s: u64) -> Duration {
    Duration::from_secs((stall_s / 4).clamp(EVERY.0, EVERY.1))
}
