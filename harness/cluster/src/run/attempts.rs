//! Second attempts: which jobs that the cluster itself ended are relaunched. That a case wants them at all, and what
//! they are, stands in the plan; what failed, hung or came out wrong is never tried again.

use super::job::{Job, JobState};
use super::{Event, Runner};
use metric::finding::Finding;
use model::artefact::Ended;
use std::collections::BTreeSet;

impl Runner<'_> {
    /// Decides for each case of which all first attempts are over, so that it is known how many of them were lost.
    pub(super) fn tend_attempts(&mut self) {
        let is_second =
            |(_, job): &(usize, &Job)| matches!(job.state, JobState::Planned) && job.may_be_unneeded();
        let cases: BTreeSet<usize> = self.open_jobs().filter(is_second).map(|(_, job)| job.case).collect();
        for case in cases {
            let of_case = |at: &usize| self.jobs[*at].case == case;
            let all: Vec<usize> = (0..self.jobs.len()).filter(of_case).collect();
            let (second, first): (Vec<usize>, Vec<usize>) =
                all.into_iter().partition(|at| self.jobs[*at].planned.again_of.is_some());
            let is_open = |at: &usize| {
                matches!(self.jobs[*at].state, JobState::Planned) && self.jobs[*at].may_be_unneeded()
            };
            let open: Vec<usize> = second.into_iter().filter(is_open).collect();
            let is_over = |at: &usize| matches!(self.jobs[*at].state, JobState::Over { .. });
            if open.is_empty() || !first.iter().all(is_over) {
                continue;
            }
            let most_failed = self.most_failed(&first);
            for at in open {
                self.decide(at, &first, most_failed.as_deref());
            }
        }
    }

    fn decide(&mut self, at: usize, first: &[usize], most_failed: Option<&str>) {
        let of = self.jobs[at].planned.again_of.as_deref();
        let lost = first.iter().copied().find(|at| of == Some(self.jobs[*at].planned.name.as_str()));
        let Some((lost, cause)) = lost.and_then(|lost| Some((lost, self.lost_by(lost)?.cause()))) else {
            self.jobs[at].state = JobState::Unneeded;
            return;
        };
        if let Some(why) = most_failed {
            self.jobs[at].state = JobState::Unneeded;
            self.jobs[lost].findings.push(Finding::new("not-run-again", why.to_owned()));
            return;
        }
        self.jobs[at].called_for = true;
        let event = Event::JobAgain {
            at: self.clock.now(),
            case: &self.plan.cases[self.jobs[at].case].name,
            job: &self.jobs[at].planned.name,
            first: &self.jobs[lost].planned.name,
            cause: &cause,
        };
        (self.report)(Some(&event), self.clock.elapsed());
    }

    fn lost_by(&self, at: usize) -> Option<&Ended> {
        match &self.jobs[at].state {
            JobState::Over { end, .. } if end.is_infrastructure() => Some(end),
            _ => None,
        }
    }

    /// Why nothing is launched again where more than half of a case's jobs were lost, or of its nodes: what fails
    /// everywhere is no accident, and would only fail again.
    fn most_failed(&self, first: &[usize]) -> Option<String> {
        let lost: Vec<usize> = first.iter().copied().filter(|at| self.lost_by(*at).is_some()).collect();
        let nodes: BTreeSet<&String> = first.iter().flat_map(|at| &self.jobs[*at].planned.nodes).collect();
        let blamed: BTreeSet<&String> =
            lost.iter().filter_map(|at| self.jobs[*at].blamed.as_ref()).map(|blamed| &blamed.node).collect();
        let says = |lost: usize, of: usize, what: &str| {
            format!("not rerun: more than half of the case's {what} were lost: {lost} of {of}")
        };
        // One job on all nodes is lost by one of them: then its nodes are counted.
        if first.len() > 1 && lost.len() * 2 > first.len() {
            return Some(says(lost.len(), first.len(), "jobs"));
        }
        (blamed.len() * 2 > nodes.len()).then(|| says(blamed.len(), nodes.len(), "nodes"))
    }
}
