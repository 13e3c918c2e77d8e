//! A number over stored runs: which runs count, where it changed, and what else changed there.

use super::change::Shape;
use super::hardware::OtherMachines;
use super::series::{Found, Point, SeriesRequest, find};
use crate::stored_runs::{JOB, Made, past, row};
use metric::lacks::{Contradiction, NotComparable};
use metric::{Dim, Dims};
use model::artefact::{PlannedBaseline, ProbedNode, Status, Value};
use std::collections::BTreeMap;

fn request() -> SeriesRequest {
    SeriesRequest { metric: "nic.rate".into(), ..SeriesRequest::default() }
}

fn found(made: &[Made], request: &SeriesRequest) -> Found {
    find(&past(made).1, request)
}

fn points(made: &[Made]) -> Vec<Point> {
    let mut found = found(made, &request());
    assert_eq!(found.series.len(), 1);
    found.series.remove(0).points
}

fn level(minutes: std::ops::Range<usize>, value: f64) -> Vec<Made> {
    minutes.map(|at| Made::at(at, &[value + (at % 3) as f64 * value / 1000.0])).collect()
}

#[test]
fn the_run_in_which_a_rate_dropped_is_found_with_the_software_that_changed_there() {
    let old = level(0..8, 12.0).into_iter().map(|made| made.software("nccl", "2.28"));
    let new = level(8..16, 9.0).into_iter().map(|made| made.software("nccl", "2.29"));
    let (_folder, past) = past(&old.chain(new).collect::<Vec<_>>());
    let found = find(&past, &request());
    assert!(found.without.is_empty() && found.unread.is_empty());
    let [series] = found.series.as_slice() else { panic!("one series") };
    let Shape::Steps(steps) = &series.shape else { panic!("{:?}", series.shape) };
    assert_eq!(steps.iter().map(|step| step.at).collect::<Vec<_>>(), [8]);
    let changed = series.changed(&past);
    let [step] = changed.as_slice() else { panic!("{changed:?}") };
    assert_eq!((step.before, step.after), (7, 8));
    assert_eq!(step.software.iter().map(|one| one.part.as_str()).collect::<Vec<_>>(), ["nccl"]);
    assert_eq!(series.newest_off, None);
    assert_eq!(series.key.to_string(), "sim-p5 nccl-p5::nics tx, 2 nodes, 64 ranks");
}

fn probed(node: &str, gpu: &str) -> ProbedNode {
    let facts = BTreeMap::from([("gpu_ids".to_owned(), Value::Names(vec![format!("gpu0 GPU-{gpu} 165")]))]);
    ProbedNode { node: node.to_owned(), facts, ..ProbedNode::default() }
}

#[test]
fn a_step_says_which_nodes_are_other_machines_since_which_run() {
    // Each run on the two nodes of the first job, with the probe that these runs had.
    let made = |swapped: &dyn Fn(usize) -> Option<[&'static str; 2]>| -> Vec<Made> {
        let mut all = level(0..8, 12.0);
        all.extend(level(8..16, 9.0));
        for (at, made) in all.iter_mut().enumerate() {
            let gpus = swapped(at).into_iter().flatten();
            made.probed =
                ["p5-001", "p5-002"].iter().zip(gpus).map(|(node, gpu)| probed(node, gpu)).collect();
        }
        all
    };
    let hardware = |made: Vec<Made>| {
        let (_folder, past) = past(&made);
        let found = find(&past, &request());
        let changed = found.series[0].changed(&past);
        assert_eq!(changed.len(), 1);
        changed[0].hardware.clone()
    };
    let since = |since: usize, nodes: &[&str]| OtherMachines {
        since,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
    };
    let other = |at: usize| Some(if at < 8 { ["a", "b"] } else { ["a", "c"] });
    assert_eq!(hardware(made(&other)), [since(8, &["p5-002"])]);
    let both = |at: usize| Some(if at < 8 { ["a", "b"] } else { ["c", "d"] });
    assert_eq!(hardware(made(&both)), [since(8, &["p5-001", "p5-002"])]);
    // By the last probe before it.
    let few = |at: usize| [2, 8].contains(&at).then_some(if at < 8 { ["a", "b"] } else { ["a", "c"] });
    assert_eq!(hardware(made(&few)), [since(8, &["p5-002"])]);
    // The same, swapped runs before or after, or not read.
    for other in [0, 5, 11, 16] {
        assert_eq!(
            hardware(made(&|at| Some(if at < other { ["a", "b"] } else { ["a", "c"] }))),
            [],
            "{other}"
        );
    }
    assert_eq!(hardware(made(&|_| None)), []);
}

#[test]
fn a_slow_decline_is_reported_from_the_first_run_to_the_last() {
    let made: Vec<Made> = (0..20).map(|at| Made::at(at, &[12.0 - 0.2 * at as f64])).collect();
    let (_folder, past) = past(&made);
    let found = find(&past, &request());
    assert!(matches!(found.series[0].shape, Shape::Drift(_)), "{:?}", found.series[0].shape);
    let changed = found.series[0].changed(&past);
    assert_eq!(changed.iter().map(|one| (one.before, one.after)).collect::<Vec<_>>(), [(0, 19)]);
    assert_eq!(found.series[0].newest_off, None, "a line has no level to lie off");
}

#[test]
fn the_newest_run_is_off_only_where_five_runs_before_it_show_the_level() {
    let off = |before: usize, newest: f64| {
        let mut made = level(0..before, 12.0);
        made.push(Made::at(before, &[newest]));
        found(&made, &request()).series.remove(0).newest_off
    };
    let bounds = off(5, 9.0).expect("off");
    assert!(bounds.lower > 9.0 && bounds.lower < 12.0 && bounds.upper > 12.0, "{bounds:?}");
    assert_eq!(off(5, 12.0), None);
    assert_eq!(off(4, 9.0), None);
    assert!(off(5, 15.0).is_some(), "far above its level is off as well");
    // After a step only the runs of the new level count.
    let mut stepped = level(0..8, 12.0);
    stepped.extend(level(8..16, 9.0));
    stepped.push(Made::at(16, &[12.0]));
    assert!(found(&stepped, &request()).series[0].newest_off.is_some());
}

#[test]
fn repeats_of_one_run_are_one_point_with_their_median_and_spread() {
    let points = points(&[Made::at(1, &[10.0, 14.0, 12.0]), Made::at(2, &[12.0])]);
    assert_eq!(
        points.iter().map(|one| (one.value, one.n)).collect::<Vec<_>>(),
        [(Some(12.0), 3), (Some(12.0), 1)]
    );
    let spread = points[0].spread.expect("a spread");
    assert!((spread - 2.0 * 1.4826 / 12.0).abs() < 1e-3, "{spread}");
    assert_eq!(points[1].spread, None);
    assert_eq!(points[0].counted(), Some(12.0));
}

#[test]
fn a_run_that_planned_the_case_and_measured_nothing_is_a_gap() {
    let mut skipped = Made::at(3, &[]);
    skipped.plan.cases[0].skip = Some("needs 8 nodes".into());
    let mut smaller = Made::at(4, &[]);
    smaller.plan.cases[0].jobs.iter_mut().for_each(|job| job.nodes.truncate(1));
    let made = [Made::at(1, &[12.0]), Made::at(2, &[]).ending(Status::Error), skipped, smaller];
    let found = found(&made, &request());
    let points = &found.series[0].points;
    assert_eq!(
        points.iter().map(|one| (one.run, one.value)).collect::<Vec<_>>(),
        [(0, Some(12.0)), (1, None)]
    );
    assert_eq!((points[1].verdict, points[1].counted()), (Some(Status::Error), None));
    assert!(points[1].uncounted.is_some());
    assert_eq!(found.without, [2, 3]);
}

#[test]
fn a_number_that_another_account_contradicts_or_that_is_none_does_not_count() {
    let contradiction = |metric: &str| Contradiction {
        metrics: vec![metric.into()],
        dims: Dims::new(),
        cause: "contradicted".into(),
        why: "the counters say otherwise".into(),
    };
    let with = |metric: &str| {
        let mut made = Made::at(1, &[12.0]);
        made.analysis.jobs.entry(JOB.into()).or_default().doubts = vec![contradiction(metric)];
        points(&[made]).remove(0)
    };
    assert_eq!((with("nic.rate").counted(), with("nic.rate").value), (None, Some(12.0)));
    assert_eq!(with("nccl.busbw").counted(), Some(12.0));
    let mut odd = Made::at(1, &[12.0]);
    odd.analysis.jobs.entry(JOB.into()).or_default().not_comparable =
        Some(NotComparable { cause: "wrong-ranks".into(), why: "1 rank of 64".into() });
    assert_eq!(points(&[odd])[0].counted(), None);
    let some = points(&[Made::at(1, &[12.0, f64::NAN, f64::NAN])]).remove(0);
    assert_eq!((some.counted(), some.n), (None, 1));
    assert!(some.uncounted.expect("why").starts_with("2 of 3"));
    let none = points(&[Made::at(1, &[f64::NAN])]).remove(0);
    assert!(none.uncounted.expect("why").starts_with("1 "));
}

#[test]
fn a_point_has_the_worst_of_its_verdicts_and_the_worst_state_of_its_baselines() {
    let verdict = |statuses: &[Status], job: &str, baseline: Option<PlannedBaseline>| {
        let mut made = Made::at(1, &[12.0]);
        let planned = made.plan.cases[0].assertions[0].clone();
        made.case.verdicts.clear();
        made.plan.cases[0].assertions.clear();
        for (at, status) in statuses.iter().enumerate() {
            let mut one = planned.clone();
            (one.name, one.jobs) = (format!("{}{at}", planned.name), vec![job.to_owned()]);
            one.bound.baseline.clone_from(&baseline);
            let mut verdict = fixture::verdict("nics", "rate", "p5-001", "rdmap79s0", *status);
            verdict.name.clone_from(&one.name);
            made.plan.cases[0].assertions.push(one);
            made.case.verdicts.push(verdict);
        }
        let point = points(&[made]).remove(0);
        (point.verdict, point.baseline)
    };
    let worst = |statuses: &[Status]| verdict(statuses, JOB, None).0;
    let order = [
        Status::Skipped,
        Status::Pass,
        Status::ExpectedFailure,
        Status::Inconclusive,
        Status::Error,
        Status::Fail,
    ];
    for two in order.windows(2) {
        assert_eq!(worst(two), Some(two[1]));
        assert_eq!(worst(&[two[1], two[0]]), Some(two[1]));
    }
    assert_eq!(worst(&[Status::Error, Status::UnexpectedPass]), Some(Status::UnexpectedPass));
    let none = || Some(PlannedBaseline::None { key: "k".into() });
    assert_eq!(verdict(&[Status::Pass], JOB, none()), (Some(Status::Pass), Some("none")));
    assert_eq!(verdict(&[Status::Pass], "no-such-job", none()), (None, None));
}

#[test]
fn an_assertion_on_another_direction_or_metric_is_not_about_the_series() {
    let verdict = |metric: &str, direction: Option<&str>| {
        let mut made = Made::at(1, &[12.0]);
        let one = &mut made.plan.cases[0].assertions[0];
        one.metric = metric.into();
        if let Some(direction) = direction {
            one.dims.set(Dim::Direction, direction);
        }
        one.dims.set(Dim::Nic, "another");
        points(&[made]).remove(0).verdict
    };
    assert_eq!(verdict("nic.rate", None), Some(Status::Pass));
    assert_eq!(verdict("nic.rate", Some("tx")), Some(Status::Pass));
    assert_eq!(verdict("nic.rate", Some("rx")), None);
    assert_eq!(verdict("nic.share", None), None);
}

#[test]
fn a_question_is_narrowed_by_suite_instance_and_number_of_nodes() {
    let mut other_size = row(0, 5.0);
    other_size.dims.set(Dim::Job, "p5-003-p5-004");
    let mut made = Made::at(1, &[12.0]);
    made.plan.cases[0].jobs[1].nodes.truncate(1);
    made.rows.push(other_size);
    let all = found(std::slice::from_ref(&made), &request());
    assert_eq!(all.series.len(), 2);
    let narrowed = |request: SeriesRequest| found(std::slice::from_ref(&made), &request);
    let on_two = narrowed(SeriesRequest { nodes: Some(2), ..request() });
    assert_eq!(on_two.series.iter().map(|one| one.key.nodes).collect::<Vec<_>>(), [Some(2)]);
    assert_eq!(on_two.series[0].points[0].value, Some(12.0));
    assert_eq!(narrowed(SeriesRequest { nodes: Some(3), ..request() }).without, [0]);
    for (suite, instance, n) in [
        (Some("nccl-p5"), None, 2),
        (None, Some("sim-p5"), 2),
        (Some("mine"), None, 0),
        (None, Some("p5"), 0),
        (Some("nccl-p5"), Some("p5"), 0),
    ] {
        let (suite, instance) = (suite.map(str::to_owned), instance.map(str::to_owned));
        assert_eq!(narrowed(SeriesRequest { suite, instance, ..request() }).series.len(), n);
    }
    assert_eq!(
        narrowed(SeriesRequest { metric: "nccl.busbw".into(), ..SeriesRequest::default() }).without,
        [0]
    );
}

#[test]
fn metrics_that_cannot_be_read_are_reported_with_their_run() {
    let made = [Made::at(1, &[12.0]), Made::at(2, &[12.0])];
    let (folder, past) = past(&made);
    let file = folder.path().join(&made[1].plan.run_id).join("cases/nics/metrics.parquet");
    std::fs::write(file, b"cut").expect("written");
    let found = find(&past, &request());
    assert_eq!(found.unread.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
    assert!(found.unread[0].1.contains("metrics.parquet"), "{:?}", found.unread);
}

#[test]
fn runs_of_another_instance_are_another_series() {
    let mut other = Made::at(2, &[9.0]);
    other.plan.instance.name = "p5en".into();
    let found = found(&[Made::at(1, &[12.0]), other], &request());
    let shown: Vec<_> =
        found.series.iter().map(|one| (one.key.instance.as_str(), one.points.len())).collect();
    assert_eq!(shown, [("p5en", 1), ("sim-p5", 1)]);
}

#[test]
fn a_case_of_the_same_name_in_another_suite_is_another_series() {
    let mut other = Made::at(2, &[9.0]);
    (other.plan.cases[0].suite, other.case.suite) = ("mine".into(), "mine".into());
    let found = found(&[Made::at(1, &[12.0]), other], &request());
    let shown: Vec<_> = found.series.iter().map(|one| (one.key.suite.as_str(), one.points.len())).collect();
    assert_eq!(shown, [("mine", 1), ("nccl-p5", 1)]);
}

#[test]
fn the_least_certain_of_several_baselines_is_shown() {
    let state = |known: [PlannedBaseline; 2]| {
        let mut made = Made::at(1, &[12.0]);
        let planned = made.plan.cases[0].assertions.remove(0);
        let verdict = made.case.verdicts.remove(0);
        for (at, baseline) in known.into_iter().enumerate() {
            let mut one = planned.clone();
            one.name = format!("{}{at}", planned.name);
            one.bound.baseline = Some(baseline);
            made.case.verdicts.push(model::artefact::Verdict { name: one.name.clone(), ..verdict.clone() });
            made.plan.cases[0].assertions.push(one);
        }
        points(&[made]).remove(0).baseline
    };
    let accepted = || PlannedBaseline::Accepted(Default::default());
    let provisional = || PlannedBaseline::Provisional(Default::default());
    let expired = || PlannedBaseline::Expired(Default::default());
    let none = || PlannedBaseline::None { key: "k".into() };
    assert_eq!(state([accepted(), provisional()]), Some("provisional"));
    assert_eq!(state([expired(), provisional()]), Some("expired"));
    assert_eq!(state([none(), accepted()]), Some("none"));
}
