//! Numbers that nothing can be compared with: how many a plan has, how many a run had, and whether some node, GPU or NIC
//! has no judged number in a stage that it took part in; and whether cases were skipped as a whole. Pure.

use crate::judge::absent::ABSENT;
use base::text::thousands;
use metric::Covers;
use model::artefact::{
    CaseEnd, CaseVerdict, NAMES_UNKNOWN, Plan, PlannedAssertion, PlannedBaseline, PlannedCase, Status,
    Verdict,
};
use recipes::recipe;
use std::collections::{BTreeMap, BTreeSet};

/// How many numbers of the plan will have nothing to be compared with, and how many numbers it has.
pub fn planned(plan: &Plan) -> (usize, usize) {
    let cases = || plan.cases.iter().filter(|case| case.skip.is_none());
    let all = cases().map(|case| case.assertions.len()).sum();
    let open = cases().map(|case| {
        let peers = Peers::new(case);
        case.assertions.iter().filter(|one| is_open(&peers, one)).count()
    });
    (open.sum(), all)
}

/// What can be peers in a case.
struct Peers {
    /// Some job has several nodes.
    nodes: bool,
    /// There are several jobs, beside control runs and second attempts.
    jobs: bool,
}

impl Peers {
    fn new(case: &PlannedCase) -> Peers {
        let own = case.jobs.iter().filter(|job| !job.is_bare() && job.again_of.is_none());
        Peers { nodes: case.jobs.iter().any(|job| job.nodes.len() > 1), jobs: own.count() > 1 }
    }
}

fn is_open(peers: &Peers, assertion: &PlannedAssertion) -> bool {
    let bound = &assertion.bound;
    let is_bound = bound.at_least.or(bound.at_most).or(bound.equals).is_some();
    let has_baseline =
        matches!(&bound.baseline, Some(known) if !matches!(known, PlannedBaseline::None { .. }));
    let has_peers = bound.within_peers.is_some()
        && (assertion.part.is_some() || assertion.node.is_some() && peers.nodes || peers.jobs);
    (bound.baseline.is_some() || bound.within_peers.is_some()) && !is_bound && !has_baseline && !has_peers
}

/// The one line about them, in a plan that is printed and at the end of a run.
pub fn line(open: usize, all: usize, nodes: usize) -> String {
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let open = without_comparison(open, all);
    format!("{open} on {nodes}: run it four times more, then harness baseline propose")
}

/// `1 of 2 numbers has nothing to compare with`.
pub fn without_comparison(open: usize, all: usize) -> String {
    let numbers = if all == 1 { "number" } else { "numbers" };
    let has = if open == 1 { "has" } else { "have" };
    format!("{} of {} {numbers} {has} nothing to compare with", thousands(open), thousands(all))
}

/// Whether all that a case asks for was skipped, and its suite does not require that; or some nodes do not have its program.
pub fn is_unmeasured(plan: &Plan, of_case: &CaseVerdict) -> bool {
    // A warning was measured.
    let is_skipped = |one: &Verdict| one.status == Status::Skipped && one.cause.as_deref() != Some("warning");
    let is_it = |case: &&PlannedCase| case.suite == of_case.suite && case.name == of_case.case;
    let planned = plan.cases.iter().find(is_it);
    let is_required = planned.is_some_and(|case| case.must_end == Some(CaseEnd::Skipped));
    let all_skipped = !of_case.verdicts.is_empty() && of_case.verdicts.iter().all(is_skipped);
    all_skipped && !is_required || planned.is_some_and(|case| case.not_installed.is_some())
}

/// Whether a case is not run because the devices that it names have no names: its NICs were not tested, so the run is no pass.
pub fn are_names_unknown(plan: &Plan) -> bool {
    let mut reasons = plan.cases.iter().filter_map(|case| case.skip.as_ref());
    reasons.any(|why| why.starts_with(NAMES_UNKNOWN))
}

/// A node, or a GPU or NIC of it, in the stage of jobs on so many nodes.
type Part<'a> = (usize, &'a str, &'a str);

/// Nodes with a part of which a stage has unjudged numbers and no judged one.
pub fn nodes_without_judged(plan: &Plan, verdicts: &[&CaseVerdict]) -> BTreeSet<String> {
    let (mut open, mut judged): (BTreeSet<Part>, BTreeSet<Part>) = Default::default();
    let gpus: Vec<String> = (0..plan.instance.gpus).map(|gpu| format!("gpu{gpu}")).collect();
    for of_case in verdicts {
        let is_it = |case: &&PlannedCase| case.suite == of_case.suite && case.name == of_case.case;
        let Some(case) = plan.cases.iter().find(is_it) else { continue };
        let jobs: BTreeMap<&str, &[String]> =
            case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
        // Every number of a whole job covers the same parts: once is enough, for there are many sizes.
        let mut covered = BTreeSet::new();
        for (assertion, verdict) in case.assertions.iter().zip(&of_case.verdicts) {
            let is_judged = match verdict.status {
                Status::Unjudged => false,
                // A driver that lacks the counter leaves the part without a number too.
                Status::Skipped if verdict.cause.as_deref() == Some(ABSENT) => false,
                Status::Pass | Status::Fail | Status::ExpectedFailure | Status::UnexpectedPass => true,
                Status::Inconclusive | Status::Error | Status::Skipped => continue,
            };
            let covers = recipe::built_in(&verdict.metric).map_or(Covers::All, |metric| metric.covers);
            let is_of_job = verdict.node.is_none() && verdict.part.is_none();
            for (job, nodes) in assertion.jobs.iter().filter_map(|job| Some((job, *jobs.get(job.as_str())?)))
            {
                // On several nodes the NICs, which it does not cover, keep the run from passing by right data alone.
                let covers =
                    if covers == Covers::Nothing && nodes.len() > 1 { Covers::NoNics } else { covers };
                if covers == Covers::Nothing {
                    continue;
                }
                let key = (is_judged, job.as_str(), covers == Covers::Nics, covers == Covers::NoNics);
                if is_of_job && !covered.insert(key) {
                    continue;
                }
                let into = if is_judged { &mut judged } else { &mut open };
                parts((plan, &gpus), case, (verdict, covers), nodes, into);
            }
        }
    }
    open.difference(&judged).map(|(_, node, _)| (*node).to_owned()).collect()
}

/// The parts that a number of a job covers.
fn parts<'a>(
    (plan, gpus): (&'a Plan, &'a [String]),
    case: &PlannedCase,
    (verdict, covers): (&'a Verdict, Covers),
    nodes: &'a [String],
    into: &mut BTreeSet<Part<'a>>,
) {
    let of_nics = covers == Covers::Nics;
    let uses_devices = case.workload.traits().uses_devices;
    let has_nics =
        of_nics || uses_devices && nodes.len() > 1 && verdict.node.is_none() && covers != Covers::NoNics;
    for node in nodes.iter().filter(|node| verdict.node.as_ref().is_none_or(|own| own == *node)) {
        let mut add = |part: &'a str| {
            into.insert((nodes.len(), node.as_str(), part));
        };
        add("node");
        if let Some(part) = &verdict.part {
            add(part);
            continue;
        }
        if has_nics {
            plan.instance.nics.iter().for_each(|nic| add(nic));
        }
        if !of_nics && uses_devices {
            gpus.iter().for_each(|gpu| add(gpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_counts_and_the_next_command() {
        assert_eq!(
            line(50, 7215, 32),
            "50 of 7,215 numbers have nothing to compare with on 32 nodes: run it four times more, then harness \
             baseline propose"
        );
        assert!(line(1, 2, 1).starts_with("1 of 2 numbers has nothing to compare with on 1 node:"));
        assert!(line(1, 1, 1).starts_with("1 of 1 number has nothing"));
        assert!(line(2, 2, 1).starts_with("2 of 2 numbers have nothing"));
    }
}
