//! Numbers of the first day: published figures with floors, peers, and nothing at all.

use super::*;
use model::artefact::JudgedBy;
use recipes::catalogue::Catalogue;

const GIB: u64 = 1 << 30;

/// One job on each node; each measured these rows: size in GiB, and the value.
fn fleet(nodes: &[&[(u64, f64)]], bound: PlannedBound) -> World {
    let mut world = World::new(bound.clone());
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    world.case.assertions.clear();
    world.analysis.jobs.clear();
    for (at, rows) in nodes.iter().enumerate() {
        let name = format!("n{}", at + 1);
        world.case.jobs.push(PlannedJob { name: name.clone(), nodes: vec![name.clone()], ..job.clone() });
        world.jobs.jobs.push(JobRecord { name: name.clone(), ..record.clone() });
        world.analysis.jobs.insert(name.clone(), JobAnalysis::default());
        let mut asked = assertion("nccl.busbw", bound.clone());
        asked.name = format!("s::c::busbw@{name}");
        asked.dims = Dims::new().with(Dim::SizeBytes, 8 * GIB);
        asked.jobs = vec![name.clone()];
        asked.nodes = name.clone();
        world.case.assertions.push(asked);
        for (gib, value) in *rows {
            let size = (gib * GIB).to_string();
            world.rows.push(row("nccl.busbw", *value, &[(Dim::Job, &name), (Dim::SizeBytes, &size)]));
        }
    }
    world
}

fn published(floor: f64, lower: f64) -> PlannedBaseline {
    PlannedBaseline::Provisional(BaselineNumbers { floor: Some(floor), ..numbers(Some(lower), None) })
}

fn day_one(baseline: PlannedBaseline) -> PlannedBound {
    PlannedBound { within_peers: Some(0.1), baseline: Some(baseline), ..PlannedBound::default() }
}

fn none() -> PlannedBaseline {
    PlannedBaseline::None { key: "k".into() }
}

/// The verdict of each node, and who is named.
fn judge_values(values: &[f64], baseline: PlannedBaseline) -> (Vec<Status>, Vec<String>) {
    let rows: Vec<[(u64, f64); 1]> = values.iter().map(|value| [(8, *value)]).collect();
    let rows: Vec<&[(u64, f64)]> = rows.iter().map(|rows| rows.as_slice()).collect();
    let judged = fleet(&rows, day_one(baseline)).judged();
    let named = culprits_of_run(&judged.outcomes.jobs, &judged.verdict.culprits, &Catalogue::built_in());
    let named =
        merge_culprits(judged.verdict.culprits.clone(), named).iter().map(ToString::to_string).collect();
    (judged.verdict.verdicts.iter().map(|verdict| verdict.status).collect(), named)
}

use Status::{Fail, Inconclusive, Pass, Unjudged};

#[test]
fn below_the_published_floor_fails_on_day_one_and_between_floor_and_bound_is_inconclusive() {
    for (value, status) in
        [(90.0, Pass), (85.0, Pass), (84.0, Inconclusive), (60.0, Inconclusive), (59.0, Fail)]
    {
        assert_eq!(judge_values(&[value], published(60.0, 85.0)).0, [status], "{value}");
    }
}

#[test]
fn a_fleet_below_the_floor_fails_and_names_no_culprit() {
    for nodes in [1, 2, 3, 4, 7] {
        let (statuses, named) = judge_values(&vec![50.0; nodes], published(60.0, 85.0));
        assert!(statuses.iter().all(|status| *status == Fail), "{statuses:?}");
        assert_eq!(named, Vec::<String>::new(), "{nodes}");
    }
}

#[test]
fn one_of_four_nodes_below_its_peers_is_named_with_or_without_a_floor() {
    for baseline in [none(), published(60.0, 85.0)] {
        for low in [80.0, 40.0] {
            let (statuses, named) = judge_values(&[100.0, 101.0, low, 99.0], baseline.clone());
            assert_eq!(statuses, [Pass, Pass, Fail, Pass], "{baseline:?} {low}");
            assert_eq!(named.len(), 1, "{named:?}");
            assert!(named[0].starts_with("culprit n3 node"), "{named:?}");
        }
    }
}

#[test]
fn two_or_three_nodes_that_disagree_name_no_culprit() {
    assert_eq!(judge_values(&[100.0, 99.0], none()), (vec![Pass, Pass], Vec::new()));
    assert_eq!(judge_values(&[100.0, 50.0], none()), (vec![Pass, Inconclusive], Vec::new()));
    assert_eq!(judge_values(&[100.0, 50.0, 100.0], none()), (vec![Pass, Inconclusive, Pass], Vec::new()));
    // Within a published figure, and still not like the other.
    assert_eq!(judge_values(&[120.0, 90.0], published(60.0, 85.0)).0, [Pass, Inconclusive]);
}

#[test]
fn peers_where_there_are_enough_decide_before_a_published_figure() {
    let (statuses, _) = judge_values(&[70.0, 71.0, 69.0, 70.0], published(60.0, 85.0));
    assert_eq!(statuses, [Pass; 4]);
    let rows: [&[(u64, f64)]; 4] = [&[(8, 70.0)]; 4];
    let judged = fleet(&rows, day_one(published(60.0, 85.0))).judged().verdict.verdicts;
    assert!(judged.iter().all(|one| !one.provisional && one.judged_by == Some(JudgedBy::Peers { of: 4 })));
}

#[test]
fn a_number_without_baseline_and_peers_is_unjudged_and_carries_the_value() {
    let verdict = fleet(&[&[(8, 70.0)]], day_one(none())).one();
    assert_eq!((verdict.status, verdict.observed), (Unjudged, Some(70.0)));
    assert!(verdict.message.ends_with("70.00 GB/s: no baseline for k, no peers"), "{}", verdict.message);
    assert_eq!(verdict.judged_by, None);
    // What was not measured is not unjudged.
    assert_eq!(fleet(&[&[]], day_one(none())).one().status, Inconclusive);
}

#[test]
fn one_low_row_is_chance_and_a_low_neighbour_beside_it_is_not() {
    let good: &[(u64, f64)] = &[(1, 90.0), (4, 95.0), (8, 100.0), (16, 101.0)];
    let chance: &[(u64, f64)] = &[(1, 90.0), (4, 95.0), (8, 88.0), (16, 101.0)];
    let slow: &[(u64, f64)] = &[(1, 76.0), (4, 80.0), (8, 85.0), (16, 86.0)];
    let status = |own: &[(u64, f64)]| fleet(&[own, good, good, good, good], day_one(none())).one();
    let verdict = status(chance);
    assert_eq!(verdict.status, Pass, "{}", verdict.message);
    assert!(verdict.message.contains("only this row is out: 3 of 3 rows"), "{}", verdict.message);
    assert_eq!(status(slow).status, Fail);
    // Sizes far away say nothing of this one.
    let far: &[(u64, f64)] = &[(8, 88.0)];
    assert_eq!(status(far).status, Fail);
}

#[test]
fn an_accepted_baseline_decides_where_few_peers_disagree() {
    let accepted = PlannedBaseline::Accepted(numbers(Some(60.0), Some(140.0)));
    assert_eq!(judge_values(&[120.0, 90.0], accepted.clone()).0, [Pass, Pass]);
    assert_eq!(judge_values(&[120.0, 50.0], accepted).0, [Pass, Fail]);
}

#[test]
fn numbers_of_a_job_that_is_not_the_declared_one_are_no_peers() {
    let rows = |value: f64| vec![(8, value)];
    let all: Vec<Vec<(u64, f64)>> = [78.0, 79.0, 193.0, 193.0].map(rows).to_vec();
    let all: Vec<&[(u64, f64)]> = all.iter().map(Vec::as_slice).collect();
    let mut world = fleet(&all, day_one(none()));
    for job in ["n3", "n4"] {
        let why = NotComparable { cause: "wrong-ranks".into(), why: "2 tables in one output".into() };
        world.analysis.jobs.entry(job.into()).or_default().not_comparable = Some(why);
    }
    let verdicts = world.judged().verdict.verdicts;
    let statuses: Vec<Status> = verdicts.iter().map(|verdict| verdict.status).collect();
    assert_eq!(statuses, [Pass, Pass, Inconclusive, Inconclusive], "{verdicts:?}");
    // Nor are numbers that another source contradicts.
    let mut world = fleet(&all, day_one(none()));
    for job in ["n3", "n4"] {
        let found = metric::lacks::Contradiction {
            metrics: vec!["nccl.busbw".into()],
            dims: Dims::new(),
            cause: "contradicted".into(),
            why: "the counters say otherwise".into(),
        };
        world.analysis.jobs.entry(job.into()).or_default().doubts = vec![found];
    }
    let statuses: Vec<Status> =
        world.judged().verdict.verdicts.iter().map(|verdict| verdict.status).collect();
    assert_eq!(statuses, [Pass, Pass, Inconclusive, Inconclusive]);
}

#[test]
fn how_long_a_job_ran_is_no_more_exact_than_the_harness_looks_at_it() {
    let judged = |values: [f64; 8], bound: PlannedBound| {
        let rows: Vec<[(u64, f64); 1]> = values.iter().map(|value| [(8, *value)]).collect();
        let rows: Vec<&[(u64, f64)]> = rows.iter().map(|rows| rows.as_slice()).collect();
        let mut world = fleet(&rows, bound);
        for row in &mut world.rows {
            (row.name, row.unit, row.better) = (Arc::from("command.seconds"), Unit::Seconds, Better::Lower);
        }
        for asked in &mut world.case.assertions {
            (asked.metric, asked.unit, asked.better) =
                ("command.seconds".into(), Unit::Seconds, Better::Lower);
        }
        let judged = world.judged();
        let named = culprits_of_run(&judged.outcomes.jobs, &judged.verdict.culprits, &Catalogue::built_in());
        (judged.verdict.verdicts.iter().filter(|verdict| verdict.status == Fail).count(), named.len())
    };
    let peers = || PlannedBound { within_peers: Some(0.5), ..PlannedBound::default() };
    let polled = [5.62, 10.62, 5.62, 10.62, 5.62, 10.62, 5.62, 10.62];
    assert_eq!(judged(polled, peers()), (0, 0));
    let baseline = PlannedBaseline::Accepted(numbers(None, Some(5.7)));
    assert_eq!(judged(polled, PlannedBound { baseline: Some(baseline), ..PlannedBound::default() }), (0, 0));
    // A minute is more than that; how long a job waits for its launcher still speaks against no node.
    assert_eq!(judged([5.6, 5.6, 5.6, 5.6, 5.6, 5.6, 5.6, 65.6], peers()), (1, 0));
}
