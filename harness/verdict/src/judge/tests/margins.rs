//! Numbers close to what they are compared with: a wrong pass or a wrong failure hangs on each of these.

use super::*;
use model::artefact::{ControlRun, JudgedBy, PlannedSpread};

const MIB: u64 = 1 << 20;

#[test]
fn a_number_slightly_below_its_limit_needs_more_runs_where_its_declared_spread_is_wider() {
    let status = |relative: f64| {
        let spread = Some(PlannedSpread { relative, judged: 1, allows: None });
        World::new(PlannedBound { spread, ..at_least(100.0) }).saw(98.0).status()
    };
    assert_eq!((status(0.05), status(0.001)), (Status::Inconclusive, Status::Fail));
}

#[test]
fn repeats_are_put_together_size_by_size() {
    let mut world = World::new(at_least(60.0));
    let control_run = Some(ControlRun::Repeat { of: "j".into() });
    world.case.jobs.push(PlannedJob { name: "j.r2".into(), control_run, ..world.case.jobs[0].clone() });
    world.jobs.jobs.push(JobRecord { name: "j.r2".into(), ..world.jobs.jobs[0].clone() });
    world.case.assertions[0].jobs.push("j.r2".into());
    for job in ["j", "j.r2"] {
        for (size, value) in [("1048576", 50.0), ("1073741824", 100.0)] {
            world.rows.push(row("nccl.busbw", value, &[(Dim::Job, job), (Dim::SizeBytes, size)]));
        }
    }
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(50.0)), "{}", verdict.message);
    assert_eq!(verdict.runs, [50.0, 50.0]);
}

#[test]
fn a_part_that_was_not_measured_is_not_replaced_by_the_run_without_the_profiler() {
    let mut world = World::new(at_least(95.0));
    let control_run = Some(ControlRun::Bare { of: "j".into(), cost_at_most: 0.03 });
    world.case.jobs.push(PlannedJob { name: "j.bare".into(), control_run, ..world.case.jobs[0].clone() });
    world.jobs.jobs.push(JobRecord { name: "j.bare".into(), ..world.jobs.jobs[0].clone() });
    world.analysis.jobs.insert("j.bare".into(), JobAnalysis::default());
    world.case.assertions[0].parts = ["a", "b"].map(|nic| Dims::new().with(Dim::Nic, nic)).into();
    world.rows = vec![
        row("nccl.busbw", 96.0, &[(Dim::Nic, "a")]),
        row("nccl.busbw", 120.0, &[(Dim::Nic, "a"), (Dim::Job, "j.bare")]),
        row("nccl.busbw", 120.0, &[(Dim::Nic, "b"), (Dim::Job, "j.bare")]),
    ];
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert_eq!(verdict.cause.as_deref(), Some("not-measured"));
}

#[test]
fn a_number_without_a_better_side_is_judged_by_the_profiled_job() {
    let mut world = World::new(at_least(95.0)).saw(80.0);
    let control_run = Some(ControlRun::Bare { of: "j".into(), cost_at_most: 0.03 });
    world.case.jobs.push(PlannedJob { name: "j.bare".into(), control_run, ..world.case.jobs[0].clone() });
    world.jobs.jobs.push(JobRecord { name: "j.bare".into(), ..world.jobs.jobs[0].clone() });
    world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Job, "j.bare")]));
    assert_eq!(world.one().observed, Some(100.0));
    world.case.assertions[0].better = Better::Neither;
    assert_eq!(world.one().observed, Some(80.0));
}

#[test]
fn below_a_published_floor_only_the_parts_that_are_below_it_are_listed() {
    let baseline =
        PlannedBaseline::Provisional(BaselineNumbers { floor: Some(50.0), ..numbers(Some(85.0), None) });
    let mut world = World::new(PlannedBound { baseline: Some(baseline), ..PlannedBound::default() });
    world.case.assertions[0].parts = ["a", "b", "c"].map(|nic| Dims::new().with(Dim::Nic, nic)).into();
    for (nic, value) in [("a", 60.0), ("b", 40.0), ("c", 50.0)] {
        world.rows.push(row("nccl.busbw", value, &[(Dim::Nic, nic)]));
    }
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(40.0)));
    assert_eq!(verdict.judged_by, Some(JudgedBy::Floor));
    assert!(verdict.message.contains("(b)"), "{}", verdict.message);
}

/// One job on each of five nodes; the first measured these sizes in MiB, the others 100 at each of them.
fn among_five(own: &[(u64, f64)]) -> Verdict {
    let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    for node in ["n1", "n2", "n3", "n4", "n5"] {
        world.case.jobs.push(PlannedJob { name: node.into(), nodes: vec![node.into()], ..job.clone() });
        world.jobs.jobs.push(JobRecord { name: node.into(), ..record.clone() });
        for (size, value) in own {
            let value = if node == "n1" { *value } else { 100.0 };
            let size = (size * MIB).to_string();
            world.rows.push(row("nccl.busbw", value, &[(Dim::Job, node), (Dim::SizeBytes, &size)]));
        }
    }
    let asked = &mut world.case.assertions[0];
    asked.dims = Dims::new().with(Dim::SizeBytes, 64 * MIB);
    asked.jobs = vec!["n1".into()];
    world.one()
}

#[test]
fn a_low_size_is_chance_only_where_most_sizes_near_it_are_good() {
    let low = 80.0;
    let status = |near: &[(u64, f64)]| among_five(&[&[(64, low)], near].concat()).status;
    assert_eq!(status(&[(16, 100.0), (32, 100.0), (128, low)]), Status::Pass, "one of three is low, too");
    assert_eq!(status(&[(16, 100.0), (32, 100.0), (128, low), (256, low)]), Status::Fail, "half of them are");
    // Eight times smaller or larger is near, sixteen times is not.
    assert_eq!(status(&[(8, 100.0), (512, 100.0)]), Status::Pass);
    assert_eq!(status(&[(4, 100.0), (1024, 100.0)]), Status::Fail);
    assert_eq!(status(&[(4, 100.0)]), Status::Fail);
}

#[test]
fn the_middle_of_the_peers_is_their_median() {
    let status = |value: f64, others: &[f64]| {
        let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
        world.case.assertions[0].dims = Dims::new().with(Dim::Node, "n0");
        world.rows.push(row("nccl.busbw", value, &[(Dim::Node, "n0")]));
        for (at, other) in others.iter().enumerate() {
            world.rows.push(row("nccl.busbw", *other, &[(Dim::Node, &format!("n{}", at + 1))]));
        }
        world.one()
    };
    assert_eq!(status(88.0, &[80.0, 100.0, 120.0]).status, Status::Fail);
    assert_eq!(status(91.0, &[80.0, 100.0, 120.0]).status, Status::Pass);
    assert_eq!(status(88.0, &[80.0, 90.0, 110.0, 120.0]).status, Status::Fail);
    // A few that disagree need more nodes; a failure and a pass do not.
    let next = |value: f64, others: &[f64]| status(value, others).next.unwrap_or_default();
    assert!(next(80.0, &[100.0]).contains("four nodes"));
    assert!(!next(80.0, &[100.0; 3]).contains("four nodes"));
    assert_eq!(next(100.0, &[100.0; 3]), "");
}

/// Most of a delivery may be slow alike: the one that is not shows it.
#[test]
fn where_one_part_is_far_better_than_most_they_do_not_pass_and_it_is_not_within_them() {
    let judged = |value: f64, better: Better, others: &[f64]| {
        let mut world = World::new(PlannedBound { within_peers: Some(0.15), ..PlannedBound::default() });
        world.case.assertions[0].dims = Dims::new().with(Dim::Node, "n0");
        world.case.assertions[0].better = better;
        world.rows.push(row("nccl.busbw", value, &[(Dim::Node, "n0")]));
        for (at, other) in others.iter().enumerate() {
            world.rows.push(row("nccl.busbw", *other, &[(Dim::Node, &format!("n{}", at + 1))]));
        }
        let verdict = world.one();
        (verdict.status, verdict.message)
    };
    for (better, slow, good) in [(Better::Higher, 7.07, 13.94), (Better::Lower, 13.94, 7.07)] {
        let (status, message) = judged(slow, better, &[slow, slow, slow, good]);
        assert_eq!(status, Status::Inconclusive, "{message}");
        assert!(message.contains("1 of 5 numbers reach"), "{message}");
        let (status, message) = judged(good, better, &[slow; 4]);
        assert!(status == Status::Pass && !message.contains("within"), "{message}");
        assert!(message.contains("% better than the median of 4 peers"), "{message}");
        // What is worse than the slow ones is worse than all.
        let worse = if better == Better::Higher { slow / 2.0 } else { slow * 2.0 };
        assert_eq!(judged(worse, better, &[slow, slow, slow, good]).0, Status::Fail);
        // Where half of them are good, the slow ones fail as ever.
        assert_eq!(judged(slow, better, &[slow, good, good, good, good]).0, Status::Fail);
        assert_eq!(judged(good, better, &[slow, slow, slow, good, good]).0, Status::Pass);
    }
    // A healthy one may be better by chance, and one of many may be odd itself.
    assert_eq!(judged(100.0, Better::Higher, &[100.0, 100.0, 100.0, 125.0]).0, Status::Pass);
    let many = [&[200.0][..], &[100.0; 30]].concat();
    assert_eq!(judged(100.0, Better::Higher, &many).0, Status::Pass);
}

#[test]
fn the_size_whose_repeats_lie_apart_is_named_and_sound_ones_are_not() {
    let message = |second: f64| {
        let spread = Some(PlannedSpread { relative: 0.01, judged: 1, allows: None });
        let mut world = World::new(PlannedBound { spread, ..at_least(1.0) });
        let control_run = Some(ControlRun::Repeat { of: "j".into() });
        world.case.jobs.push(PlannedJob { name: "j.r2".into(), control_run, ..world.case.jobs[0].clone() });
        world.jobs.jobs.push(JobRecord { name: "j.r2".into(), ..world.jobs.jobs[0].clone() });
        let asked = &mut world.case.assertions[0];
        asked.jobs.push("j.r2".into());
        asked.parts = ["a", "b"].map(|nic| Dims::new().with(Dim::Nic, nic)).into();
        for (job, values) in [("j", [100.0, 100.0]), ("j.r2", [100.0, second])] {
            for (nic, value) in ["a", "b"].into_iter().zip(values) {
                world.rows.push(row("nccl.busbw", value, &[(Dim::Job, job), (Dim::Nic, nic)]));
            }
        }
        let verdict = world.one();
        (verdict.status, verdict.message.contains("(b)"), verdict.message.contains("(a)"))
    };
    assert_eq!(message(50.0), (Status::Fail, true, false));
    assert_eq!(message(100.0), (Status::Pass, false, false));
    let unnamed = |values: [f64; 2]| {
        let spread = Some(PlannedSpread { relative: 0.01, judged: 1, allows: None });
        let mut world = World::new(PlannedBound { spread, ..at_least(1.0) });
        let control_run = Some(ControlRun::Repeat { of: "j".into() });
        world.case.jobs.push(PlannedJob { name: "j.r2".into(), control_run, ..world.case.jobs[0].clone() });
        world.jobs.jobs.push(JobRecord { name: "j.r2".into(), ..world.jobs.jobs[0].clone() });
        world.case.assertions[0].jobs.push("j.r2".into());
        for (job, value) in ["j", "j.r2"].into_iter().zip(values) {
            world.rows.push(row("nccl.busbw", value, &[(Dim::Job, job)]));
        }
        world.one()
    };
    let verdict = unnamed([100.0, 50.0]);
    assert_eq!(verdict.status, Status::Fail);
    assert!(!verdict.message.contains("()"), "{}", verdict.message);
}

/// The world's one job once for each of these; nothing where a run measured nothing.
fn repeated(values: &[Option<f64>], bound: PlannedBound) -> Verdict {
    let mut world = World::new(bound);
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    world.case.assertions[0].jobs.clear();
    for (at, value) in values.iter().enumerate() {
        let name = format!("j.r{at}");
        world.case.jobs.push(PlannedJob { name: name.clone(), ..job.clone() });
        world.jobs.jobs.push(JobRecord { name: name.clone(), ..record.clone() });
        world.analysis.jobs.insert(name.clone(), JobAnalysis::default());
        world.case.assertions[0].jobs.push(name.clone());
        world.rows.extend(value.map(|value| row("nccl.busbw", value, &[(Dim::Job, &name)])));
    }
    world.one()
}

#[test]
fn two_repeats_that_lie_on_both_sides_of_their_limit_need_more_runs() {
    let verdict = repeated(&[Some(80.0), Some(99.0)], at_least(90.0));
    assert_eq!((verdict.status, verdict.observed), (Status::Inconclusive, Some(89.5)));
    assert_eq!(repeated(&[Some(80.0), Some(80.0)], at_least(90.0)).status, Status::Fail);
}

#[test]
fn the_runs_that_lack_a_number_are_counted() {
    let verdict = repeated(&[Some(99.0), None, None], at_least(90.0));
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(verdict.message.contains("2 of 3"), "{}", verdict.message);
}

#[test]
fn the_unprofiled_run_of_another_job_says_nothing_of_this_one() {
    let mut world = World::new(at_least(95.0)).saw(80.0);
    let control_run = Some(ControlRun::Bare { of: "another".into(), cost_at_most: 0.03 });
    world.case.jobs.push(PlannedJob { name: "k.bare".into(), control_run, ..world.case.jobs[0].clone() });
    world.jobs.jobs.push(JobRecord { name: "k.bare".into(), ..world.jobs.jobs[0].clone() });
    world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Job, "k.bare")]));
    assert_eq!(world.one().observed, Some(80.0));
}

#[test]
fn a_lower_limit_within_one_run_is_lowered_by_what_its_two_numbers_vary() {
    let status = |value: f64, allows: f64| {
        let spread = Some(PlannedSpread { relative: 0.05, judged: 1, allows: Some(allows) });
        World::new(PlannedBound { spread, ..at_least(100.0) }).saw(value).status()
    };
    assert_eq!((status(95.0, 10.0), status(89.0, 10.0)), (Status::Pass, Status::Fail));
    assert_eq!((status(100.0, 10.0), status(0.0, 200.0)), (Status::Pass, Status::Pass));
}

#[test]
fn with_an_expired_baseline_four_peers_decide_and_three_do_not() {
    let status = |value: f64, peers: usize| {
        let baseline = Some(PlannedBaseline::Expired(numbers(Some(90.0), None)));
        let mut world =
            World::new(PlannedBound { within_peers: Some(0.1), baseline, ..PlannedBound::default() });
        world.case.assertions[0].dims = Dims::new().with(Dim::Node, "n1");
        for node in 1..=peers {
            let value = if node == 1 { value } else { 100.0 };
            world.rows.push(row("nccl.busbw", value, &[(Dim::Node, &format!("n{node}"))]));
        }
        world.one().status
    };
    assert_eq!((status(100.0, 4), status(50.0, 4)), (Status::Pass, Status::Fail));
    assert_eq!((status(100.0, 3), status(50.0, 3)), (Status::Inconclusive, Status::Inconclusive));
}

#[test]
fn another_run_of_the_same_part_is_no_peer_of_it() {
    let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    world.case.assertions[0].jobs.clear();
    world.case.assertions[0].dims = Dims::new().with(Dim::Node, "n1");
    for name in ["a", "b", "c", "d"] {
        world.case.jobs.push(PlannedJob { name: name.into(), ..job.clone() });
        world.jobs.jobs.push(JobRecord { name: name.into(), ..record.clone() });
        world.analysis.jobs.insert(name.into(), JobAnalysis::default());
        world.case.assertions[0].jobs.push(name.into());
        world.rows.push(row("nccl.busbw", 50.0, &[(Dim::Node, "n1"), (Dim::Job, name)]));
        world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Node, "n2"), (Dim::Job, name)]));
    }
    assert_eq!(world.one().status, Status::Fail, "all runs of n1 are low");
}

#[test]
fn a_time_that_the_profiler_doubles_is_judged_without_it() {
    let observed = |profiled: f64, bare: f64| {
        let mut world = World::new(PlannedBound { at_most: Some(110.0), ..PlannedBound::default() });
        world.case.assertions[0].better = Better::Lower;
        let control_run = Some(ControlRun::Bare { of: "j".into(), cost_at_most: 0.03 });
        world.case.jobs.push(PlannedJob { name: "j.bare".into(), control_run, ..world.case.jobs[0].clone() });
        world.jobs.jobs.push(JobRecord { name: "j.bare".into(), ..world.jobs.jobs[0].clone() });
        world.analysis.jobs.insert("j.bare".into(), JobAnalysis::default());
        world.rows.push(row("nccl.busbw", profiled, &[]));
        world.rows.push(row("nccl.busbw", bare, &[(Dim::Job, "j.bare")]));
        world.one().observed
    };
    assert_eq!(observed(200.0, 100.0), Some(100.0));
    assert_eq!(observed(102.0, 100.0), Some(102.0));
    assert_eq!(observed(50.0, 100.0), Some(50.0), "faster with the profiler");
}
