//! Several independent runs of one case: their median with its interval, how far they lie apart, and what must hold in
//! each; and second attempts of what the cluster itself had ended.

use super::*;
use model::artefact::{ControlRun, PlannedSpread};

/// The world's one job three times.
fn three(bound: PlannedBound, values: [f64; 3]) -> World {
    let mut world = World::new(bound);
    for name in ["j.r2", "j.r3"] {
        let control_run = Some(ControlRun::Repeat { of: "j".into() });
        let job = PlannedJob { name: name.into(), control_run, ..world.case.jobs[0].clone() };
        world.case.jobs.push(job);
        world.jobs.jobs.push(JobRecord { name: name.into(), ..world.jobs.jobs[0].clone() });
        world.analysis.jobs.insert(name.into(), JobAnalysis::default());
        world.case.assertions[0].jobs.push(name.into());
    }
    for (job, value) in ["j", "j.r2", "j.r3"].into_iter().zip(values) {
        world.rows.push(row("nccl.busbw", value, &[(Dim::Job, job)]));
    }
    world
}

fn spread(relative: f64) -> Option<PlannedSpread> {
    Some(PlannedSpread { relative, judged: 10, allows: None })
}

#[test]
fn repeats_are_judged_by_their_median() {
    // One bad run of three is no bad node.
    let verdict = three(at_least(90.0), [100.0, 60.0, 101.0]).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(100.0)));
    assert_eq!(verdict.runs, [100.0, 60.0, 101.0]);
    let reason = "100.0 GB/s (median of 3 runs, 60.00 GB/s to 101.0 GB/s), expected at least 90.00 GB/s";
    assert!(verdict.message.ends_with(reason), "{}", verdict.message);
    let verdict = three(at_least(90.0), [50.0, 51.0, 50.5]).one();
    assert_eq!(verdict.status, Status::Fail, "{}", verdict.message);
}

#[test]
fn a_median_whose_own_interval_reaches_its_bound_needs_more() {
    let verdict = three(at_least(90.0), [80.0, 89.0, 99.0]).one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert!(
        verdict.message.contains("too close to the bound: 242 more repeats are needed"),
        "{}",
        verdict.message
    );
    let next = verdict.next.expect("a step");
    assert!(next.starts_with("set `repeats = 245` in the case"), "{next}");
    // A declared spread is more reliable than that of three runs.
    let bound = PlannedBound { spread: spread(0.001), ..at_least(90.0) };
    let verdict = three(bound, [89.0, 89.1, 89.2]).one();
    assert_eq!(verdict.status, Status::Fail, "{}", verdict.message);
}

#[test]
fn the_baselines_spread_supports_more_runs_better_than_one() {
    let baseline = |spread| {
        let numbers = BaselineNumbers { spread: Some(spread), ..numbers(Some(90.0), Some(110.0)) };
        PlannedBound { baseline: Some(PlannedBaseline::Accepted(numbers)), ..PlannedBound::default() }
    };
    assert_eq!(World::new(baseline(0.01)).saw(88.6).status(), Status::Inconclusive);
    assert_eq!(three(baseline(0.01), [88.6, 88.6, 88.6]).status(), Status::Fail);
}

#[test]
fn repeats_that_lie_further_apart_than_declared_fail() {
    let bound = || PlannedBound { spread: spread(0.02), ..at_least(10.0) };
    assert_eq!(three(bound(), [100.0, 103.0, 98.0]).status(), Status::Pass);
    let verdict = three(bound(), [100.0, 130.0, 98.0]).one();
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.message.contains("3 repeats within"), "{}", verdict.message);
    assert!(verdict.message.ends_with("got 32.0 %"), "{}", verdict.message);
    // Three runs are three comparisons, of each of ten numbers.
    let limit = 100.0 * 0.02 * config::bounds::factor(1, 30, f64::INFINITY);
    assert_eq!(three(bound(), [100.0, 100.0, 100.0 + 0.999 * limit]).status(), Status::Pass);
    assert_eq!(three(bound(), [100.0, 100.0, 100.0 + 1.001 * limit]).status(), Status::Fail);
}

#[test]
fn what_is_counted_must_hold_in_every_run() {
    let mut world = three(PlannedBound { equals: Some(0.0), ..PlannedBound::default() }, [0.0; 3]);
    world.case.assertions[0].metric = "nccl.wrong".into();
    world.case.assertions[0].unit = Unit::Count;
    world.rows = ["j", "j.r2", "j.r3"]
        .into_iter()
        .zip([0.0, 3.0, 0.0])
        .map(|(job, value)| row("nccl.wrong", value, &[(Dim::Job, job)]))
        .collect();
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(3.0)), "{}", verdict.message);
}

#[test]
fn a_run_without_a_number_leaves_the_assertion_unmeasured() {
    let mut world = three(at_least(90.0), [100.0; 3]);
    world.rows.pop();
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(verdict.message.contains("not measured: in 1 of 3 runs"), "{}", verdict.message);
    // A run that did not end well is an error of the whole.
    let mut world = three(at_least(90.0), [100.0; 3]);
    world.jobs.jobs[1].end = Ended::TimeLimit { limit_s: 60 };
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn a_verdict_of_a_second_attempt_names_the_first() {
    let mut world = World::new(at_least(90.0));
    let mut again = PlannedJob { name: "j.again".into(), ..world.case.jobs[0].clone() };
    again.again_of = Some("j".into());
    world.case.jobs.push(again);
    let first = &mut world.jobs.jobs[0];
    first.end = Ended::NodeFail;
    first.blamed = Some(model::artefact::Blamed { node: "n2".into(), evidence: "slurm".into() });
    let second =
        JobRecord { name: "j.again".into(), end: Ended::Exited { code: 0 }, blamed: None, ..first.clone() };
    // Nothing called for it: the case stands as it was.
    let unneeded = world.case.launched(&world.jobs).into_owned();
    assert_eq!(unneeded.jobs.len(), 1);
    assert_eq!(world.case.effective(&world.jobs).assertions[0].jobs, ["j"]);
    world.jobs.jobs.push(second);
    assert_eq!(world.case.launched(&world.jobs).jobs.len(), 2);
    world.case = world.case.effective(&world.jobs).into_owned();
    world.analysis.jobs.insert("j.again".into(), JobAnalysis::default());
    world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Job, "j.again")]));
    let judged = world.judged();
    let verdict = &judged.verdict.verdicts[0];
    assert_eq!(verdict.status, Status::Pass);
    assert!(verdict.message.ends_with("(attempt 2 of 2; attempt 1: NODE_FAIL n2)"), "{}", verdict.message);
    let finding = &judged.verdict.findings[0];
    assert_eq!((finding.code.as_str(), finding.node.as_deref()), ("second-attempt", Some("n2")));
    assert_eq!(judged.verdict.culprits, [], "a successful second attempt blames no node");
}
