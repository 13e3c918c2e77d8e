//! A limit on how many jobs a user may submit, as QOS and associations have it: sbatch refuses what is beyond it, and
//! takes it once others have ended. The run learns the limit by being refused, and keeps within it.

use super::job::{Job, JobState};
use super::{Event, Runner};
use std::time::Duration;
use tokio::time::Instant;

/// Where none of this run's jobs is there to end, others of the user's are: they are given this long.
const PAUSE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct SubmitLimit {
    /// So many of this run were there when one more was refused.
    most: Option<usize>,
    /// Nothing is submitted before, since none of this run was there.
    not_before: Option<Instant>,
}

impl SubmitLimit {
    /// So many jobs of the run may be there now.
    pub(super) fn most(&self) -> usize {
        match self.not_before {
            Some(moment) if Instant::now() < moment => 0,
            _ => self.most.unwrap_or(usize::MAX),
        }
    }
}

impl Runner<'_> {
    /// Takes a refusal for what it says of the limit. False where the job has waited for as long as its case lets it.
    pub(super) fn waits_for_room(&mut self, at: usize, why: &str) -> bool {
        let now = Instant::now();
        let live = self.submitted();
        let is_news = match live {
            0 => self.jobs[at].refused.is_none(),
            live => self.submit_limit.most.is_none_or(|most| live < most),
        };
        if is_news {
            let event = Event::SubmitLimit { at: self.clock.now(), most_jobs: live, why };
            (self.report)(Some(&event), self.clock.elapsed());
        }
        match live {
            0 => self.submit_limit.not_before = Some(now + PAUSE),
            live => self.submit_limit.most = Some(live),
        }
        let queue_limit = Duration::from_secs(self.plan.cases[self.jobs[at].case].properties.queue_limit_s);
        let since = *self.jobs[at].refused.get_or_insert(now);
        now - since <= queue_limit
    }

    /// Jobs and allocations of this run that Slurm holds.
    fn submitted(&self) -> usize {
        let is_alone = |job: &&Job| matches!(&job.state, JobState::Live(live) if live.within.is_none());
        let alone = self.jobs.iter().filter(is_alone).count();
        alone + self.allocations.iter().filter(|allocation| allocation.is_open()).count()
    }
}
