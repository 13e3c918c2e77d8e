//! The same job with the profiler and without it: by which of the two a rate is judged, and when nobody can tell.

use super::*;
use model::artefact::Kin;

/// The world's job, and the same without the profiler.
fn both(profiled: f64, bare: Option<f64>) -> World {
    let mut world = World::new(at_least(95.0)).saw(profiled);
    let kin = Some(Kin::Bare { of: "j".into(), cost_at_most: 0.03 });
    let twin = PlannedJob { name: "j.bare".into(), kin, ..world.case.jobs[0].clone() };
    world.case.jobs.push(twin);
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
    let told = "judged by the run without nsys: with it 20.0 % are lost, more than 3 %";
    assert!(verdict.message.ends_with(told), "{}", verdict.message);
    // The fabric is slow all the same.
    let verdict = both(60.0, Some(90.0)).one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(90.0)));
    assert!(verdict.message.ends_with("more than 3 %"), "{}", verdict.message);
}

#[test]
fn without_the_other_number_nobody_can_tell_what_the_profiler_costs() {
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
fn what_is_counted_and_what_only_a_profiler_tells_is_judged_by_the_profiled_job() {
    for (metric, unit) in [("nccl.wrong", Unit::Count), ("kernel.share", Unit::Ratio)] {
        let mut world = both(80.0, Some(100.0));
        world.case.assertions[0].metric = metric.into();
        world.case.assertions[0].unit = unit;
        world.rows = vec![row(metric, 99.0, &[]), row(metric, 1.0, &[(Dim::Job, "j.bare")])];
        let verdict = world.one();
        assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(99.0)), "{}", verdict.message);
    }
}
