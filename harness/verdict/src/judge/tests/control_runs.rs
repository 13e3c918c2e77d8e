//! The same job with the profiler or NCCL's Inspector and without it: by which of the two a rate is judged, and when the overhead is unknown.

use super::*;
use model::artefact::{ControlRun, ExpectedFile};

/// The world's job, and the same without the profiler.
fn both(profiled: f64, bare: Option<f64>) -> World {
    let mut world = World::new(at_least(95.0)).saw(profiled);
    let control_run = Some(ControlRun::Bare { of: "j".into(), cost_at_most: 0.03 });
    let control_run = PlannedJob { name: "j.bare".into(), control_run, ..world.case.jobs[0].clone() };
    world.case.jobs.push(control_run);
    world.jobs.jobs.push(JobRecord { name: "j.bare".into(), ..world.jobs.jobs[0].clone() });
    world.analysis.jobs.insert("j.bare".into(), JobAnalysis::default());
    world.rows.extend(bare.map(|value| row("nccl.busbw", value, &[(Dim::Job, "j.bare")])));
    world
}

#[test]
fn a_profiler_that_costs_little_leaves_its_own_number_to_be_judged() {
    let verdict = both(98.0, Some(100.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(98.0)));
    let verdict = both(90.0, Some(91.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(90.0)));
}

#[test]
fn a_dear_profiler_judges_no_bandwidth() {
    let verdict = both(80.0, Some(100.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(100.0)), "{}", verdict.message);
    let reason = "judged by the run without nsys: nsys costs 20.0 %, limit 3 %";
    assert!(verdict.message.ends_with(reason), "{}", verdict.message);
    // The fabric is slow all the same.
    let verdict = both(60.0, Some(90.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(90.0)));
    assert!(verdict.message.ends_with("limit 3 %"), "{}", verdict.message);
}

#[test]
fn without_the_unprofiled_number_the_overhead_is_unknown() {
    let verdict = both(80.0, None).one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert_eq!(verdict.cause.as_deref(), Some("profiling-cost"));
    let mut world = both(98.0, Some(100.0));
    world.jobs.jobs[1].end = Ended::TimeLimit { limit_s: 60 };
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert!(verdict.message.contains("job j.bare: the job did not end within"), "{}", verdict.message);
}

#[test]
fn counts_and_numbers_of_reports_are_judged_by_the_profiled_job() {
    for (metric, unit) in [("nccl.wrong", Unit::Count), ("kernel.share", Unit::Ratio)] {
        let mut world = both(80.0, Some(100.0));
        world.case.assertions[0].metric = metric.into();
        world.case.assertions[0].unit = unit;
        world.rows = vec![row(metric, 99.0, &[]), row(metric, 1.0, &[(Dim::Job, "j.bare")])];
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(99.0)), "{}", verdict.message);
    }
}

/// The world's job under Inspector, and the same without it.
fn inspected(with: f64, bare: Option<f64>) -> World {
    let mut world = both(with, bare);
    let file = "inspector.txt".to_owned();
    let kind = FileKind::Inspector;
    world.case.jobs[0].expected.push(ExpectedFile { name: file, kind, node: None, part: None, rank: None });
    world
}

#[test]
fn a_dear_inspector_judges_no_bandwidth_and_is_named() {
    let verdict = inspected(80.0, Some(100.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(100.0)), "{}", verdict.message);
    let reason = "judged by the run without NCCL Inspector: NCCL Inspector costs 20.0 %, limit 3 %";
    assert!(verdict.message.ends_with(reason), "{}", verdict.message);
    let verdict = inspected(98.0, Some(100.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(98.0)));
    let verdict = inspected(80.0, None).one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert!(verdict.message.contains("NCCL Inspector overhead unknown"), "{}", verdict.message);
    assert!(verdict.next.is_some_and(|next| next.contains("without NCCL Inspector")));
}

#[test]
fn a_job_that_neither_nsys_nor_inspector_records_is_its_own_control_run() {
    let mut world = inspected(80.0, Some(100.0));
    let log = PlannedJob { name: "k".into(), control_run: None, ..world.case.jobs[1].clone() };
    world.case.jobs.push(log);
    world.jobs.jobs.push(JobRecord { name: "k".into(), ..world.jobs.jobs[0].clone() });
    world.analysis.jobs.insert("k".into(), JobAnalysis::default());
    world.case.assertions[0].jobs.push("k".into());
    world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Job, "k")]));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(100.0)), "{}", verdict.message);
    assert!(verdict.message.contains("judged by the run without NCCL Inspector"), "{}", verdict.message);
}

#[test]
fn numbers_of_records_are_judged_by_the_job_that_left_them() {
    let mut world = inspected(80.0, Some(100.0));
    world.case.assertions[0].metric = "inspector.busbw".into();
    world.rows = vec![row("inspector.busbw", 99.0, &[])];
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(99.0)), "{}", verdict.message);
}
