//! Nodes that are left out of what is still to come of a run, since they hung, were lost or crashed; and stages that
//! are ended where collectives hang one after the other, which is not attributable.

use super::job::{Job, JobState};
use super::{Event, Runner, allocation, left_out};
use model::artefact::{Culprit, Ended, JobOutcome, LeftOut, Plan};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use verdict::judge::{self, common_failure::HANGS};

/// The nodes that the outcomes so far show to have hung, been lost or crashed by themselves, with the evidence.
/// Slow nodes and odd outputs cost no time limit: they stay.
pub fn named(outcomes: &[JobOutcome], culprits: &[Culprit], catalogue: &Catalogue) -> Vec<(String, String)> {
    let of_run = judge::culprits_of_run(outcomes, culprits, catalogue);
    let ended_badly = of_run.into_iter().filter_map(|culprit| match culprit {
        Culprit::Culprit { node, part, evidence, .. } if part == "node" && ends_jobs(&evidence) => {
            Some((node, evidence))
        }
        _ => None,
    });
    // One that did well in a second attempt had an accident.
    let did_well = |node: &String| {
        let bad = |outcome: &&JobOutcome| outcome.bad.is_some() && outcome.nodes.contains(node);
        outcomes.iter().filter(bad).all(|bad| {
            outcomes.iter().any(|good| good.case == bad.case && good.bad.is_none() && good.nodes == bad.nodes)
        })
    };
    let mut named: Vec<(String, String)> = ended_badly.filter(|(node, _)| !did_well(node)).collect();
    named.sort();
    named.dedup_by(|a, b| a.0 == b.0);
    named
}

/// Whether evidence begins with the ending of a job that a node did not survive.
fn ends_jobs(evidence: &str) -> bool {
    let cause = evidence.split(": ").next().unwrap_or_default();
    let lost = ["NODE_FAIL", "BOOT_FAIL", "host-unreachable", "rank-died", "rank-failed", "desync"];
    HANGS.contains(&cause)
        || lost.contains(&cause)
        || cause.starts_with("exit ")
        || cause.starts_with("signal ")
}

/// A job on several nodes that is over: whether it hung, or did well. Others are left out.
#[derive(Debug, Clone)]
pub(super) struct Collective {
    pub name: String,
    pub nodes: BTreeSet<String>,
    pub hung: bool,
}

/// What two hangs in a row end: jobs on all of these nodes, or on any where there are none. `jobs` are those of one
/// stage, in the order in which they ended.
pub(super) fn ended_by_hangs(jobs: &[Collective]) -> Option<(BTreeSet<String>, String)> {
    for (at, first) in jobs.iter().enumerate().filter(|(_, job)| job.hung) {
        for (between, second) in jobs.iter().enumerate().skip(at + 1).filter(|(_, job)| job.hung) {
            let common = &first.nodes & &second.nodes;
            let did_well = |job: &Collective| !job.hung && common.iter().all(|node| job.nodes.contains(node));
            if !jobs[at..between].iter().any(did_well) {
                return Some((
                    common,
                    format!("{} and {} hung, one after the other", first.name, second.name),
                ));
            }
        }
    }
    None
}

impl<'a> Runner<'a> {
    /// Whether anything of a case was launched.
    pub fn has_begun(&self, case: usize) -> bool {
        let began = |job: &Job| matches!(job.state, JobState::Live(_)) || job.times.submitted.is_some();
        self.jobs_of(case).iter().any(began)
    }

    /// Goes on by a plan that leaves more nodes out. Its cases are the same ones, in the same order; those that have
    /// begun have the same jobs.
    pub fn amend(&mut self, plan: &'a Plan, more: &[LeftOut]) {
        for left in more {
            let event = Event::NodeQuarantined {
                at: self.clock.now(),
                node: &left.node,
                after: left.after.as_deref().unwrap_or_default(),
                why: &left.why,
            };
            (self.report)(Some(&event), self.clock.elapsed());
        }
        let begun: Vec<bool> = (0..plan.cases.len()).map(|case| self.has_begun(case)).collect();
        let mut old: Vec<Job<'a>> = std::mem::take(&mut self.jobs);
        for (case, planned) in plan.cases.iter().enumerate() {
            let (own, others): (Vec<Job<'a>>, Vec<Job<'a>>) =
                old.into_iter().partition(|job| job.case == case);
            old = others;
            if begun[case] || self.cases[case].handed_over {
                self.jobs.extend(own.into_iter().map(|job| {
                    let is_planned = matches!(job.state, JobState::Planned) && job.planned.again_of.is_none();
                    match left_out(plan, job.planned).filter(|_| is_planned) {
                        Some(left) => Job::left_out(case, job.planned, left),
                        None => job,
                    }
                }));
                continue;
            }
            self.jobs.extend(planned.jobs.iter().map(|job| match left_out(plan, job) {
                Some(left) if job.again_of.is_none() => Job::left_out(case, job, left),
                _ => Job::with(
                    case,
                    allocation::index_of(plan, &planned.name, &job.name),
                    job,
                    None,
                    &self.clock,
                ),
            }));
        }
        self.plan = plan;
        (self.first_open, self.has_ended) = (0, true);
    }

    /// Ends stages in which collectives hang one after the other; and what is planned on the very nodes that a job of
    /// the same case has hung on.
    pub(super) fn tend_hangs(&mut self) {
        if !std::mem::take(&mut self.has_ended) {
            return;
        }
        let is_hang = |job: &&Job| matches!(&job.state, JobState::Over { end, .. } if HANGS.contains(&end.cause().as_str()));
        let hangs = self.jobs.iter().filter(is_hang).count();
        if hangs == self.hangs_seen || self.plan.keep_bad_nodes {
            return;
        }
        self.hangs_seen = hangs;
        self.give_up_repeats();
        let sizes: BTreeSet<usize> =
            self.jobs.iter().filter(is_hang).map(|job| job.planned.nodes.len()).filter(|n| *n > 1).collect();
        for size in sizes {
            if let Some((common, why)) = ended_by_hangs(&self.collectives(size)) {
                let is_on = |job: &Job| {
                    job.planned.nodes.len() == size
                        && common.iter().all(|node| job.planned.nodes.contains(node))
                };
                self.give_up(&is_on, &format!("its stage was stopped: {why}"));
            }
        }
    }

    /// Jobs on so many nodes that hung or did well, in the order in which they ended.
    fn collectives(&self, size: usize) -> Vec<Collective> {
        let mut over: Vec<(f64, Collective)> = Vec::new();
        for job in self.jobs.iter().filter(|job| job.planned.nodes.len() == size) {
            let JobState::Over { end, .. } = &job.state else { continue };
            let hung = HANGS.contains(&end.cause().as_str());
            if hung || *end == (Ended::Exited { code: 0 }) {
                let name = format!("{} of `{}`", job.planned.name, self.plan.cases[job.case].name);
                let nodes = job.planned.nodes.iter().cloned().collect();
                over.push((job.times.ended.unwrap_or_default(), Collective { name, nodes, hung }));
            }
        }
        over.sort_by(|a, b| a.0.total_cmp(&b.0));
        over.into_iter().map(|(_, job)| job).collect()
    }

    fn give_up_repeats(&mut self) {
        let hung: Vec<(usize, BTreeSet<String>, String)> = self
            .jobs
            .iter()
            .filter(|job| matches!(&job.state, JobState::Over { end, .. } if HANGS.contains(&end.cause().as_str())))
            .map(|job| (job.case, job.planned.nodes.iter().cloned().collect(), job.planned.name.clone()))
            .collect();
        for (case, nodes, name) in hung {
            let is_same = |job: &Job| {
                job.case == case
                    && job.planned.nodes.len() == nodes.len()
                    && job.planned.nodes.iter().all(|node| nodes.contains(node))
            };
            self.give_up(&is_same, &format!("{name} hung on the same nodes"));
        }
    }

    fn give_up(&mut self, is_meant: &dyn Fn(&Job) -> bool, why: &str) {
        for job in self.jobs.iter_mut().filter(|job| matches!(job.state, JobState::Planned) && is_meant(job))
        {
            job.state = match job.may_be_unneeded() {
                true => JobState::Unneeded,
                false => JobState::Over { handle: None, end: Ended::NotRun { why: why.to_owned() } },
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Bad, WorkKind};
    use std::collections::BTreeMap;

    fn outcome(case: &str, nodes: &[&str], bad: Option<&str>) -> JobOutcome {
        JobOutcome {
            case: case.into(),
            kind: WorkKind::Collective,
            job: nodes.join("+"),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            bad: bad.map(|cause| Bad { cause: cause.into(), node: None, evidence: "seen".into() }),
            judged: BTreeMap::new(),
            worst: Default::default(),
        }
    }

    fn nodes(outcomes: &[JobOutcome]) -> Vec<String> {
        named(outcomes, &[], &Catalogue::built_in()).into_iter().map(|(node, _)| node).collect()
    }

    #[test]
    fn a_node_that_hung_or_crashed_alone_is_quarantined_and_one_that_is_odd_is_not() {
        for (cause, is_named) in [
            ("hang", true),
            ("stall", true),
            ("exit 1", true),
            ("signal 9", true),
            ("NODE_FAIL", true),
            ("garbled", false),
            ("lost", false),
            ("queue-stuck", false),
            ("PREEMPTED", false),
        ] {
            let jobs = [
                outcome("c", &["n1"], Some(cause)),
                outcome("c", &["n2"], None),
                outcome("c", &["n3"], None),
            ];
            assert_eq!(nodes(&jobs), if is_named { vec!["n1"] } else { vec![] }, "{cause}");
        }
    }

    #[test]
    fn a_hung_collective_quarantines_no_node_and_a_good_second_attempt_clears() {
        assert!(
            nodes(&[outcome("c", &["n1", "n2"], Some("hang")), outcome("c", &["n3", "n4"], None)]).is_empty()
        );
        assert!(nodes(&[outcome("c", &["n1"], Some("NODE_FAIL")), outcome("c", &["n1"], None)]).is_empty());
    }

    #[test]
    fn two_hangs_in_a_row_end_what_holds_their_common_nodes() {
        let job = |nodes: &str, hung| Collective {
            name: nodes.to_owned(),
            nodes: nodes.split(' ').map(str::to_owned).collect(),
            hung,
        };
        let ended = |jobs: &[Collective]| {
            ended_by_hangs(jobs).map(|(nodes, _)| nodes.into_iter().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(ended(&[job("a b c", true), job("a b c", true)]).as_deref(), Some("a b c"));
        assert_eq!(ended(&[job("a b c", true)]), None);
        assert_eq!(ended(&[job("a b", true), job("a b", false), job("a b", true)]), None);
        assert_eq!(ended(&[job("a b", true), job("c d", false), job("a b", true)]).as_deref(), Some("a b"));
        assert_eq!(ended(&[job("a b", true), job("c d", true)]).as_deref(), Some(""));
        assert_eq!(ended(&[job("a b", true), job("e f", false), job("c d", true)]), None);
    }
}
