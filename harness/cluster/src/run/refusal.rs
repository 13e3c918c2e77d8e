//! A controller that gives no answer for as long as is waited for it: what is planned behind would wait as long, each
//! by itself.

use super::job::JobState;
use super::{Allocation, Runner};
use crate::reach::slurm_refusal::is_away;
use model::artefact::Ended;

impl Runner<'_> {
    /// Ends the run where nothing was launched yet that could still be measured.
    pub(super) fn heed_refusal(&mut self, at: usize) {
        let JobState::Over { end: Ended::LaunchFailed { why }, .. } = &self.jobs[at].state else { return };
        let is_live = self.jobs.iter().any(|job| matches!(job.state, JobState::Live(_)));
        if is_away(why) && !is_live && !self.allocations.iter().any(Allocation::is_open) {
            let why = why.lines().next().unwrap_or_default().to_owned();
            self.stop(&format!("no answer from Slurm's controller: {why}"));
        }
    }
}
