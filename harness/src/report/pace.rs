//! How far a run has come: jobs done of all, node-hours spent, and the time that is left if it goes on at this pace.

use base::text::duration;
use model::artefact::Plan;
use std::collections::BTreeMap;

/// Less of a run than this says nothing about its pace.
const FEWEST_DONE: f64 = 0.03;

/// The planned work of a run, and what of it is done.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    cases: BTreeMap<String, CasePace>,
    nodes: usize,
    spent_node_s: f64,
    failed_cases: usize,
}

#[derive(Debug, Default)]
struct CasePace {
    jobs: usize,
    node_s: f64,
    ended: usize,
    ended_node_s: f64,
    is_over: bool,
}

impl Pace {
    /// Of a run that has not begun. Second attempts are not counted: most are never needed.
    pub(crate) fn new(plan: &Plan) -> Pace {
        let cases = plan.cases.iter().filter(|case| case.skip.is_none()).map(|case| {
            let first = || case.jobs.iter().filter(|job| job.again_of.is_none());
            let node_s = first().map(|job| job.estimate_s as f64 * job.nodes.len() as f64).sum();
            (case.name.clone(), CasePace { jobs: first().count(), node_s, ..CasePace::default() })
        });
        Pace { cases: cases.collect(), nodes: plan.nodes.len(), ..Pace::default() }
    }

    /// A job is over; it was planned to take so long on so many nodes, and took so long.
    pub(crate) fn job_ended(&mut self, case: &str, nodes: usize, planned_s: f64, took_s: f64) {
        self.spent_node_s += took_s * nodes as f64;
        if let Some(of_case) = self.cases.get_mut(case) {
            of_case.ended = (of_case.ended + 1).min(of_case.jobs);
            of_case.ended_node_s = (of_case.ended_node_s + planned_s * nodes as f64).min(of_case.node_s);
        }
    }

    /// A case is judged: what was planned of it and did not run never will.
    pub(crate) fn case_over(&mut self, case: &str, failed: bool) {
        self.failed_cases += usize::from(failed);
        if let Some(of_case) = self.cases.get_mut(case) {
            of_case.is_over = true;
        }
    }

    /// `[ 24/86]`
    pub(crate) fn counter(&self) -> String {
        let all: usize = self.cases.values().map(|case| case.jobs).sum();
        let done: usize =
            self.cases.values().map(|case| if case.is_over { case.jobs } else { case.ended }).sum();
        let width = all.to_string().len();
        format!("[{done:>width$}/{all}]")
    }

    /// `[ 24/86] 2:40, 1 case failed, 0.9 node-hours, about 14 min left`
    pub(crate) fn head(&self, elapsed_s: f64) -> String {
        let failed = match self.failed_cases {
            0 => String::new(),
            1 => ", 1 case failed".to_owned(),
            n => format!(", {n} cases failed"),
        };
        let left = self.left_s(elapsed_s);
        let left = left.map(|left| format!(", about {} left", duration(rounded(left)))).unwrap_or_default();
        let spent = self.spent_node_s / 3600.0;
        format!("{} {}{failed}, {spent:.1} node-hours{left}", self.counter(), clock(elapsed_s))
    }

    /// By the pace so far; by the plan's own estimate where too little is done to know the pace.
    fn left_s(&self, elapsed_s: f64) -> Option<f64> {
        let all: f64 = self.cases.values().map(|case| case.node_s).sum();
        let done: f64 =
            self.cases.values().map(|case| if case.is_over { case.node_s } else { case.ended_node_s }).sum();
        if all <= 0.0 || done >= all || self.nodes == 0 {
            return None;
        }
        match done / all {
            part if part >= FEWEST_DONE => Some(elapsed_s * (1.0 - part) / part),
            _ => Some((all - done) / self.nodes as f64),
        }
    }
}

/// To whole minutes where it is long: more would be no knowledge.
fn rounded(seconds: f64) -> f64 {
    if seconds < 120.0 { seconds.round() } else { (seconds / 60.0).round() * 60.0 }
}

/// `2:40`, `1:02:40`
pub(crate) fn clock(seconds: f64) -> String {
    let whole = if seconds.is_finite() && seconds > 0.0 { seconds as u64 } else { 0 };
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn the_head_line_counts_jobs_failures_node_hours_and_the_time_left() {
        // Two jobs of 90 s on two nodes each.
        let mut pace = Pace::new(&fixture::plan());
        assert_eq!(pace.head(0.0), "[0/2] 0:00, 0.0 node-hours, about 90 s left");
        pace.job_ended("nics", 2, 90.0, 600.0);
        assert_eq!(pace.head(600.0), "[1/2] 10:00, 0.3 node-hours, about 10 min left");
        pace.case_over("nics", true);
        assert_eq!(pace.head(3760.0), "[2/2] 1:02:40, 1 case failed, 0.3 node-hours");
    }

    #[test]
    fn attempts_beyond_the_plan_and_cases_that_never_ran_keep_the_counter_right() {
        let mut pace = Pace::new(&fixture::plan());
        (0..5).for_each(|_| pace.job_ended("nics", 2, 90.0, 1.0));
        assert_eq!(pace.counter(), "[2/2]");
        let mut pace = Pace::new(&fixture::plan());
        pace.case_over("nics", false);
        assert_eq!(pace.counter(), "[2/2]");
    }
}
