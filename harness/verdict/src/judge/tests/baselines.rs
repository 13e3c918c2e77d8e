//! Numbers against baselines that say more than two bounds: how much they vary, on which software, between which sizes;
//! and published tables fed as runs.

use super::*;
use config::baseline::Baselines;
use recipes::catalogue::Catalogue;

fn with(baseline: PlannedBaseline) -> PlannedBound {
    PlannedBound { baseline: Some(baseline), ..PlannedBound::default() }
}

fn accepted(change: impl FnOnce(&mut BaselineNumbers)) -> PlannedBound {
    let mut both = numbers(Some(90.0), Some(110.0));
    change(&mut both);
    with(PlannedBaseline::Accepted(both))
}

fn versions(world: &mut World, part: &str, version: &str) {
    world.analysis().versions.entry(part.to_owned()).or_default().insert(version.to_owned());
}

#[test]
fn a_baseline_judges_by_its_state() {
    let both = || numbers(Some(95.0), Some(105.0));
    let table = [
        (PlannedBaseline::Accepted(both()), 100.0, Status::Pass, false),
        (PlannedBaseline::Accepted(both()), 94.0, Status::Fail, false),
        (PlannedBaseline::Accepted(both()), 106.0, Status::Fail, false),
        (PlannedBaseline::Accepted(numbers(Some(95.0), None)), 1000.0, Status::Pass, false),
        (PlannedBaseline::Accepted(numbers(None, Some(105.0))), 1.0, Status::Pass, false),
        (PlannedBaseline::Accepted(numbers(None, None)), 100.0, Status::Inconclusive, false),
        // Never pass and never fail out of the bounds of a provisional one.
        (PlannedBaseline::Provisional(both()), 100.0, Status::Pass, true),
        (PlannedBaseline::Provisional(both()), 94.0, Status::Inconclusive, true),
        (PlannedBaseline::Provisional(both()), 106.0, Status::Inconclusive, true),
        // An expired one neither passes nor fails.
        (PlannedBaseline::Expired(both()), 100.0, Status::Inconclusive, false),
        (PlannedBaseline::Expired(both()), 1.0, Status::Inconclusive, false),
        (PlannedBaseline::Expired(both()), 1000.0, Status::Inconclusive, false),
        (PlannedBaseline::None { key: "k".into() }, 100.0, Status::Unjudged, false),
    ];
    for (baseline, value, status, provisional) in table {
        let verdict = World::new(with(baseline.clone())).saw(value).one();
        assert_eq!((verdict.status, verdict.provisional), (status, provisional), "{baseline:?} {value}");
        assert_eq!(verdict.observed, Some(value));
        if verdict.lower == Some(95.0) && verdict.upper == Some(105.0) {
            let comparison = "expected 95.00 GB/s to 105.0 GB/s (baseline k, n = 5, median 100.0 GB/s)";
            assert!(verdict.message.ends_with(comparison), "{}", verdict.message);
            assert_eq!(verdict.baseline.as_deref(), Some("k (n = 5, median 100; s)"));
        }
    }
}

#[test]
fn a_number_just_out_of_its_bounds_is_no_failure_but_needs_more() {
    let spread = |value: f64| World::new(accepted(|both| both.spread = Some(0.02))).saw(value).one();
    assert_eq!(spread(86.0).status, Status::Fail);
    assert_eq!(spread(114.0).status, Status::Fail);
    assert_eq!(spread(95.0).status, Status::Pass);
    let near = spread(89.0);
    assert_eq!(near.status, Status::Inconclusive);
    assert!(near.message.ends_with("too close to the bound: 10 more repeats are needed"), "{}", near.message);
    assert_eq!(near.next.as_deref(), Some("set `repeats = 11` in the case"));
}

#[test]
fn other_software_than_the_baselines_is_inconclusive_and_names_the_next_step() {
    let bound = || {
        accepted(|both| {
            both.fingerprint.insert("nccl".to_owned(), vec!["2.27.7".to_owned(), "2.28.3".to_owned()]);
        })
    };
    for (nccl, value, status, why) in [
        (Some("2.27.7"), 100.0, Status::Pass, ""),
        (Some("2.28.3"), 50.0, Status::Fail, ""),
        (
            Some("2.18.1"),
            100.0,
            Status::Inconclusive,
            "nccl is 2.18.1 in this run, 2.27.7 or 2.28.3 in the baseline for k",
        ),
        (
            Some("2.18.1"),
            50.0,
            Status::Inconclusive,
            "nccl is 2.18.1 in this run, 2.27.7 or 2.28.3 in the baseline for k",
        ),
        (
            None,
            100.0,
            Status::Inconclusive,
            "nccl is unknown in this run, 2.27.7 or 2.28.3 in the baseline for k",
        ),
    ] {
        let mut world = World::new(bound()).saw(value);
        nccl.iter().for_each(|nccl| versions(&mut world, "nccl", nccl));
        let verdict = world.one();
        assert_eq!(verdict.status, status, "{nccl:?} {value}");
        assert!(verdict.message.ends_with(why), "{}", verdict.message);
        if status == Status::Inconclusive {
            assert!(verdict.next.is_some_and(|next| next.contains("`fingerprint`")));
        }
    }
}

#[test]
fn the_version_of_one_job_is_not_taken_for_that_of_another() {
    let bound = accepted(|both| drop(both.fingerprint.insert("nccl".to_owned(), vec!["2.27.7".to_owned()])));
    let mut world = World::new(bound).saw(100.0);
    versions(&mut world, "nccl", "2.27.7");
    assert_eq!(world.status(), Status::Pass);
    let other = |name: &mut String| "other".clone_into(name);
    let (mut job, mut record) = (world.case.jobs[0].clone(), world.jobs.jobs[0].clone());
    other(&mut job.name);
    other(&mut record.name);
    world.case.jobs.push(job);
    world.jobs.jobs.push(record);
    world.analysis.jobs.insert("other".to_owned(), JobAnalysis::default());
    world.case.assertions[0].jobs.push("other".to_owned());
    world.rows.push(row("nccl.busbw", 100.0, &[(Dim::Job, "other")]));
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
    assert!(verdict.message.contains("nccl is unknown in this run"), "{}", verdict.message);
}

#[test]
fn a_number_that_the_hardware_cannot_reach_is_a_broken_measurement() {
    let bound = PlannedBound { ceiling: Some(750.0), at_least: Some(10.0), ..PlannedBound::default() };
    assert_eq!(World::new(bound.clone()).saw(750.0).status(), Status::Pass);
    let verdict = World::new(bound).saw(751.0).one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("above-ceiling")));
    assert!(
        verdict.message.contains("751.0 GB/s, above the hardware limit of 750.0 GB/s: broken measurement"),
        "{}",
        verdict.message
    );
}

#[test]
fn what_was_drawn_between_sizes_or_widened_says_so() {
    let drawn = World::new(with(PlannedBaseline::Provisional(BaselineNumbers {
        between: Some("1GiB and 4GiB".to_owned()),
        ..numbers(Some(90.0), Some(110.0))
    })))
    .saw(80.0)
    .one();
    assert_eq!(drawn.status, Status::Inconclusive);
    assert!(drawn.message.contains(", interpolated between 1GiB and 4GiB)"), "{}", drawn.message);
    let widened = World::new(accepted(|both| both.widened_for = Some(900))).saw(80.0).one();
    assert!(widened.message.contains(", widened for 900 numbers)"), "{}", widened.message);
}

fn shipped(text: &str) -> Baselines {
    Baselines::read(text, "x.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("good")
}

/// Every published figure is within the bounds of its own key, and passes as provisional.
#[test]
fn published_tables_fed_as_runs_pass_as_provisional() {
    let mut fed = 0;
    for text in
        [include_str!("../../../../../baselines/p5.toml"), include_str!("../../../../../baselines/p4de.toml")]
    {
        let baselines = shipped(text);
        for entry in &baselines.entries {
            let found = plan::look_up(Some(&baselines), &baselines.instance, &entry.metric, &entry.key);
            for sample in &entry.samples {
                let verdict = World::new(with(found.clone())).saw(*sample).one();
                assert_eq!(
                    (verdict.status, verdict.provisional),
                    (Status::Pass, true),
                    "{}",
                    verdict.message
                );
                fed += 1;
            }
        }
    }
    assert!(fed > 50, "{fed}");
}

/// The same instance, nodes and size on an older stack: 28 % lower, which is no fault of the nodes.
#[test]
fn an_older_stack_is_inconclusive_for_its_fingerprint() {
    let mut baselines = shipped(include_str!("../../../../../baselines/p5.toml"));
    let entry = baselines
        .entries
        .iter_mut()
        .find(|entry| entry.key.size_bytes == Some(1 << 30) && entry.key.nodes == Some(2))
        .expect("two nodes at 1 GiB");
    // As an operator would have accepted it from runs of their own.
    entry.state = config::baseline::State::Accepted;
    entry.samples = vec![437.0, 435.1, 437.0, 435.1, 437.0];
    entry.fingerprint.insert("nccl".to_owned(), vec!["2.23.4".to_owned()]);
    let (metric, key) = (entry.metric.clone(), entry.key.clone());
    let found = plan::look_up(Some(&baselines), "p5", &metric, &key);
    let mut world = World::new(with(found.clone())).saw(313.3);
    versions(&mut world, "nccl", "2.18.5");
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(
        verdict.message.contains("nccl is 2.18.5 in this run, 2.23.4 in the baseline for "),
        "{}",
        verdict.message
    );
    // On the baseline's own software the same number is a failure.
    let mut world = World::new(with(found)).saw(313.3);
    versions(&mut world, "nccl", "2.23.4");
    assert_eq!(world.status(), Status::Fail);
}

/// A published run of two p5en nodes on which half of the devices took part.
#[test]
fn a_node_with_half_its_devices_fails_for_their_number() {
    let mut world = World::new(PlannedBound { equals: Some(1.0), ..PlannedBound::default() });
    world.instance.nics = (0..16).map(|nic| format!("rdmap{nic}s0")).collect();
    let asked = &mut world.case.assertions[0];
    asked.metric = "nic.present".into();
    asked.unit = Unit::Count;
    asked.dims = Dims::new().with(Dim::Node, "n1");
    asked.parts = world.instance.nics.iter().map(|nic| Dims::new().with(Dim::Nic, nic.as_str())).collect();
    for (at, nic) in world.instance.nics.iter().enumerate() {
        let present = if at < 8 { 1.0 } else { 0.0 };
        world.rows.push(row("nic.present", present, &[(Dim::Node, "n1"), (Dim::Nic, nic)]));
    }
    let verdict = world.one();
    assert_eq!(verdict.status, Status::Fail);
    assert!(
        verdict.message.contains("rdmap8s0, rdmap9s0, rdmap10s0, rdmap11s0 and 4 more"),
        "{}",
        verdict.message
    );
}
