//! What a job is to another of its case: run again for its own sake, without the profiler, or because the first was lost.
//! `plan` decides when such jobs are planned, `run` when a second attempt is launched.

use super::{CaseJobs, FileKind, PlannedCase, PlannedJob};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The end of the name of a second attempt.
pub const AGAIN: &str = ".again";

/// What a job repeats of another job of its case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kin", rename_all = "kebab-case")]
pub enum ControlRun {
    /// An independent run of the same: their numbers are judged together.
    Repeat {
        /// The job that it repeats, by name.
        of: String,
    },
    /// The same without the profiler and NCCL's Inspector. Where they cost more than this fraction, rates and times are judged by this job.
    Bare {
        /// The job with them, by name.
        of: String,
        /// As a fraction, such as 0.05.
        cost_at_most: f64,
    },
}

impl ControlRun {
    fn original_mut(&mut self) -> &mut String {
        match self {
            ControlRun::Repeat { of } | ControlRun::Bare { of, .. } => of,
        }
    }
}

impl PlannedJob {
    /// Whether it runs unprofiled, without NCCL's Inspector, beside a job with one of them.
    pub fn is_bare(&self) -> bool {
        matches!(self.control_run, Some(ControlRun::Bare { .. }))
    }

    /// Whether its ranks leave records of NCCL's Inspector.
    pub fn is_inspected(&self) -> bool {
        self.expected.iter().any(|file| file.kind == FileKind::Inspector)
    }

    /// Whether nsys or NCCL's Inspector runs beside its program: what a control run leaves off.
    pub fn is_recorded(&self) -> bool {
        self.profile.is_some() || self.is_inspected()
    }

    /// Gives the job and the jobs that it stands beside other names.
    pub fn rename(&mut self, renamed: impl Fn(&str) -> String) {
        self.name = renamed(&self.name);
        if let Some(control_run) = &mut self.control_run {
            *control_run.original_mut() = renamed(control_run.original_mut());
        }
        if let Some(first) = &mut self.again_of {
            *first = renamed(first);
        }
    }
}

impl PlannedCase {
    /// The case without the second attempts that nothing called for.
    pub fn launched(&self, jobs: &CaseJobs) -> Cow<'_, PlannedCase> {
        let has_record = |job: &PlannedJob| jobs.jobs.iter().any(|record| record.name == job.name);
        let unneeded = |job: &PlannedJob| job.again_of.is_some() && !has_record(job);
        if !self.jobs.iter().any(unneeded) {
            return Cow::Borrowed(self);
        }
        let mut case = self.clone();
        case.jobs.retain(|job| !unneeded(job));
        Cow::Owned(case)
    }

    /// The case with each job by the attempt that stands: the results of the first are not judged.
    pub fn effective(&self, jobs: &CaseJobs) -> Cow<'_, PlannedCase> {
        let launched = self.launched(jobs);
        let second: BTreeMap<String, String> =
            launched.jobs.iter().filter_map(|job| Some((job.again_of.clone()?, job.name.clone()))).collect();
        if second.is_empty() {
            return launched;
        }
        let mut case = launched.into_owned();
        case.jobs.retain(|job| !second.contains_key(&job.name));
        let by_second = |name: &mut String| {
            if let Some(other) = second.get(name) {
                other.clone_into(name);
            }
        };
        case.jobs
            .iter_mut()
            .filter_map(|job| job.control_run.as_mut())
            .for_each(|control_run| by_second(control_run.original_mut()));
        case.assertions.iter_mut().flat_map(|assertion| &mut assertion.jobs).for_each(by_second);
        Cow::Owned(case)
    }
}
