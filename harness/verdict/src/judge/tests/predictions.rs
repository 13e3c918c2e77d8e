//! A number that only a prediction stands for: within, below, and beside peers.

use super::*;
use model::artefact::{BELOW_FLOOR, JudgedBy};

/// Predicted 452 +- 31 GB/s; 422 is the lower end of the interval.
fn predicted() -> PlannedBound {
    let numbers = BaselineNumbers {
        key: "p5 nccl.busbw all_reduce, 1GiB, 3 nodes, 24 ranks".to_owned(),
        n: 65,
        median: 452.0,
        lower: Some(422.0),
        floor: Some(422.0),
        predicted: Some(31.0),
        source: "predicted; fitted to 65 published figures, figures of 2 and 4 nodes".to_owned(),
        ..BaselineNumbers::default()
    };
    PlannedBound { baseline: Some(PlannedBaseline::Provisional(numbers)), ..PlannedBound::default() }
}

#[test]
fn within_the_interval_or_above_it_is_a_provisional_pass_that_says_so() {
    for value in [422.0, 452.0, 490.0] {
        let verdict = World::new(predicted()).saw(value).one();
        assert_eq!((verdict.status, verdict.provisional), (Status::Pass, true), "{}", verdict.message);
        assert!(verdict.message.contains("predicted 452 +- 31 GB/s"), "{}", verdict.message);
        assert!(verdict.baseline.is_some_and(|known| known.contains("predicted 452 +- 31")));
    }
}

#[test]
fn below_the_interval_it_fails_and_no_part_is_the_culprit() {
    let verdict = World::new(predicted()).saw(421.0).one();
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(verdict.judged_by, Some(JudgedBy::Floor));
    assert_eq!(verdict.cause.as_deref(), Some(BELOW_FLOOR));
    assert!(
        verdict.message.contains("predicted 452 +- 31 GB/s, expected at least 422.0 GB/s"),
        "{}",
        verdict.message
    );
}

/// One job on each of five nodes, of which the first is judged.
fn among_five(own: f64, others: f64) -> Verdict {
    let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..predicted() });
    let (job, record) = (world.case.jobs.remove(0), world.jobs.jobs.remove(0));
    for node in ["n1", "n2", "n3", "n4", "n5"] {
        world.case.jobs.push(PlannedJob { name: node.into(), nodes: vec![node.into()], ..job.clone() });
        world.jobs.jobs.push(JobRecord { name: node.into(), ..record.clone() });
        let value = if node == "n1" { own } else { others };
        world.rows.push(row("nccl.busbw", value, &[(Dim::Job, node)]));
    }
    world.case.assertions[0].jobs = vec!["n1".into()];
    world.one()
}

#[test]
fn a_prediction_gives_way_to_peers_but_for_its_floor() {
    let good = among_five(450.0, 450.0);
    assert_eq!((good.status, good.provisional), (Status::Pass, false), "{}", good.message);
    assert_eq!(good.judged_by, Some(JudgedBy::Peers { of: 5 }));
    // Within the interval, and a tenth below its peers.
    let slow = among_five(430.0, 490.0);
    assert_eq!(
        (slow.status, slow.judged_by),
        (Status::Fail, Some(JudgedBy::Peers { of: 5 })),
        "{}",
        slow.message
    );
    let all_slow = among_five(300.0, 300.0);
    assert_eq!((all_slow.status, all_slow.cause.as_deref()), (Status::Fail, Some(BELOW_FLOOR)));
}
