//! Two stored runs compared: what is worse, what one of them alone has, and when nothing can be said.

use super::{Beyond, Comparison, Effect, Named, Outcome, Turned, compare};
use crate::stored_runs::{JOB, Made, NIC, row, runs};
use metric::lacks::Contradiction;
use metric::{Dim, Dims};
use model::artefact::{CaseEnd, Culprit, Status};

const STEADY: [f64; 6] = [12.0, 12.02, 11.98, 12.01, 11.99, 12.0];

fn steady(minute: usize) -> Made {
    Made::at(minute, &STEADY)
}

fn slower(minute: usize) -> Made {
    Made::at(minute, &STEADY.map(|value| value * 0.8))
}

fn compared(a: Made, b: Made) -> Comparison {
    let (_folder, runs) = runs(&[a, b]);
    compare(&runs[0], &runs[1]).expect("a comparison")
}

fn other_nic(made: &mut Made) {
    let mut other = row(0, 12.0);
    other.dims.set(Dim::Op, "write");
    made.rows.push(other);
}

#[test]
fn two_runs_alike_are_the_same_and_a_slower_one_is_worse() {
    let same = compared(steady(1), steady(2));
    assert_eq!((same.outcome, same.outcome.exit_code()), (Outcome::Same, 0));
    assert_eq!((same.metrics.compared, same.verdicts.same, same.verdicts.known_in_both), (1, 1, 1));
    assert!(same.apart.is_empty() && same.software.is_empty());
    let worse = compared(steady(1), slower(2));
    assert_eq!((worse.outcome, worse.metrics.worse(), worse.outcome.exit_code()), (Outcome::Worse, 1, 1));
    let [rate] = worse.metrics.all.as_slice() else { panic!("{:?}", worse.metrics.all) };
    assert_eq!((rate.n_a, rate.n_b, rate.beyond), (6, 6, Beyond::Worse));
    assert!((rate.change.expect("a change") + 0.2).abs() < 1e-9, "{rate:?}");
    assert!(rate.within.expect("known") < 0.2, "{rate:?}");
    let better = compared(slower(1), steady(2));
    assert_eq!((better.outcome, better.metrics.all[0].beyond), (Outcome::Same, Beyond::Better));
    assert!((better.metrics.all[0].change.expect("a change") - 0.25).abs() < 1e-9);
}

#[test]
fn each_side_says_which_run_and_nodes_it_is_of() {
    let found = compared(steady(1), steady(2).software("nccl", "2.29"));
    assert_eq!((found.a.nodes.as_str(), found.a.instance.as_str()), ("p5-[001-004]", "sim-p5"));
    assert_eq!(
        (found.a.made.as_str(), found.b.made.as_str()),
        ("2026-11-21 03:01:00", "2026-11-21 03:02:00")
    );
    assert_eq!(found.software.iter().map(|one| one.part.as_str()).collect::<Vec<_>>(), ["nccl"]);
}

#[test]
fn a_verdict_that_turned_red_is_worse_even_where_the_numbers_are_the_same() {
    let red = compared(steady(1), steady(2).ending(Status::Fail));
    assert_eq!((red.outcome, red.verdicts.worse(), red.verdicts.same), (Outcome::Worse, 1, 0));
    let [changed] = red.verdicts.changed.as_slice() else { panic!("{:?}", red.verdicts.changed) };
    assert_eq!((changed.from, changed.to, changed.turned), (Status::Pass, Status::Fail, Turned::Worse));
    let unknown = compared(steady(1), steady(2).ending(Status::Error));
    assert_eq!((unknown.outcome, unknown.verdicts.unknown()), (Outcome::Inconclusive, 1));
    assert_eq!((unknown.verdicts.known_in_both, unknown.outcome.exit_code()), (0, 3));
    let never_known = compared(steady(1).ending(Status::Error), steady(2).ending(Status::Error));
    assert_eq!((never_known.outcome, never_known.verdicts.unknown_in_both.len()), (Outcome::Inconclusive, 1));
    let skipped = compared(steady(1).ending(Status::Skipped), steady(2).ending(Status::Skipped));
    assert_eq!((skipped.outcome, skipped.verdicts.unknown_in_both.len()), (Outcome::Same, 0));
    let red_twice = compared(steady(1).ending(Status::Fail), steady(2).ending(Status::Fail));
    assert_eq!((red_twice.outcome, red_twice.verdicts.known_in_both), (Outcome::Same, 1));
    let now_red = compared(steady(1).ending(Status::Error), steady(2).ending(Status::Fail));
    assert_eq!((now_red.outcome, now_red.verdicts.unknown()), (Outcome::Inconclusive, 1));
}

#[test]
fn what_only_the_first_run_measured_keeps_the_second_from_being_the_same() {
    let mut more = steady(1);
    other_nic(&mut more);
    let lost = compared(more.clone(), steady(2));
    assert_eq!(
        (lost.outcome, lost.metrics.only_a.len(), lost.metrics.only_b.len()),
        (Outcome::Inconclusive, 1, 0)
    );
    let mut gained = more;
    gained.plan.run_id = steady(2).plan.run_id;
    let gained = compared(steady(1), gained);
    assert_eq!(
        (gained.outcome, gained.metrics.only_a.len(), gained.metrics.only_b.len()),
        (Outcome::Same, 0, 1)
    );
    let mut renamed = steady(2);
    renamed.plan.cases[0].assertions[0].name = "x".into();
    renamed.case.verdicts[0].name = "x".into();
    let renamed = compared(steady(1), renamed);
    assert_eq!(
        (renamed.verdicts.only_a.len(), renamed.verdicts.only_b.as_slice()),
        (1, ["x".to_owned()].as_slice())
    );
    assert_eq!((renamed.outcome, renamed.verdicts.known_in_both), (Outcome::Inconclusive, 0));
    // A case that was skipped measured nothing, whatever lies in its folder.
    let mut skipped = steady(2);
    skipped.plan.cases[0].skip = Some("needs 8 nodes".into());
    assert_eq!(compared(steady(1), skipped).metrics.only_a.len(), 1);
}

/// The same number of as many nodes as there are values.
fn on_nodes(minute: usize, values: &[f64]) -> Made {
    let mut made = steady(minute);
    made.rows.clear();
    for (node, value) in values.iter().enumerate() {
        let mut one = row(0, *value);
        one.dims.set(Dim::Node, format!("n{node}").as_str());
        made.rows.push(one);
    }
    made
}

#[test]
fn a_number_of_which_parts_are_missing_is_not_counted_as_worse() {
    let slow = STEADY.map(|value| value * 0.8);
    let found = compared(on_nodes(1, &STEADY), on_nodes(2, &slow[..4]));
    assert_eq!((found.outcome, found.metrics.worse()), (Outcome::Inconclusive, 0), "{:?}", found.metrics);
    assert!(found.metrics.uncounted[0].contains("measured of 6 parts and of 4 parts"), "{:?}", found.metrics);
    // Of as many parts it is worse.
    assert_eq!(compared(on_nodes(1, &STEADY), on_nodes(2, &slow)).outcome, Outcome::Worse);
}

#[test]
fn one_node_of_many_that_fell_is_worse_though_the_middle_did_not_move() {
    let fell = |at: usize, factor: f64| {
        let mut values = STEADY;
        values[at] *= factor;
        compared(on_nodes(1, &STEADY), on_nodes(2, &values))
    };
    let found = fell(2, 0.5);
    assert_eq!((found.metrics.worse(), found.metrics.parts_compared), (0, 6), "{:?}", found.metrics.all);
    let [part] = found.metrics.parts.as_slice() else { panic!("{:?}", found.metrics.parts) };
    assert_eq!((part.part.as_str(), part.peers, part.is_known), ("n2 rdmap79s0", 5, true));
    assert!((part.change + 0.5).abs() < 1e-9 && part.peers_change.abs() < 0.01, "{part:?}");
    assert_eq!((found.outcome, found.outcome.exit_code()), (Outcome::Worse, 1), "{:?}", found.because);
    // By no more than healthy parts vary, and better, is nothing.
    for factor in [0.98, 1.0, 2.0] {
        let same = fell(2, factor);
        assert_eq!(
            (same.outcome, same.metrics.parts.len()),
            (Outcome::Same, 0),
            "{factor}: {:?}",
            same.metrics
        );
    }
    // All together are the number's own change.
    let all = compared(on_nodes(1, &STEADY), on_nodes(2, &STEADY.map(|value| value * 0.5)));
    assert_eq!((all.outcome, all.metrics.parts.len()), (Outcome::Worse, 0), "{:?}", all.metrics);
    // A part that moves nothing any more is beyond any spread; one of two is, too, where how they vary is unknown.
    assert_eq!(fell(0, 0.0).metrics.parts.len(), 1);
    let of_two = compared(on_nodes(1, &[12.0, 12.0]), on_nodes(2, &[12.0, 6.0]));
    assert_ne!(of_two.outcome, Outcome::Same, "{:?}", of_two.metrics);
}

#[test]
fn parts_that_vary_by_chance_are_not_worse() {
    // Each run draws its own numbers: about 3 % apart, on 16 nodes.
    let drawn = |minute: usize, seed: u64| {
        let mut state = seed;
        let values: Vec<f64> = (0..16)
            .map(|_| {
                let mut sum = 0.0;
                for _ in 0..12 {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    sum += (state >> 33) as f64 / (1u64 << 31) as f64;
                }
                12.0 * (1.0 + 0.03 * (sum - 6.0))
            })
            .collect();
        on_nodes(minute, &values)
    };
    let alarms = (0..50).filter(|at| {
        let found = compared(drawn(1, 2 * at + 1), drawn(2, 2 * at + 2));
        !found.metrics.parts.is_empty()
    });
    assert!(alarms.count() <= 1);
}

#[test]
fn a_contradicted_number_is_not_compared() {
    let mut contradicted = slower(2);
    contradicted.analysis.jobs.entry(JOB.into()).or_default().doubts = vec![Contradiction {
        metrics: vec!["nic.rate".into()],
        dims: Dims::new(),
        cause: "contradicted".into(),
        why: "the counters say otherwise".into(),
    }];
    let found = compared(steady(1), contradicted);
    assert_eq!(
        (found.outcome, found.metrics.compared, found.metrics.uncounted.len()),
        (Outcome::Inconclusive, 0, 1)
    );
    assert!(found.metrics.uncounted[0].contains("nic.rate"), "{:?}", found.metrics.uncounted);
}

#[test]
fn runs_of_two_instances_of_simulation_and_reality_or_one_run_twice_are_not_compared() {
    let refused = |change: &dyn Fn(&mut Made)| {
        let mut b = slower(2);
        change(&mut b);
        let found = compared(steady(1), b);
        assert_eq!(found.outcome, Outcome::Inconclusive, "{:?}", found.apart);
        found.apart
    };
    assert_eq!(refused(&|made| made.plan.instance.name = "p5en".into()).len(), 1);
    let simulated = refused(&|made| made.plan.simulated = true);
    assert!(simulated.len() == 1 && simulated[0].ends_with(&steady(2).plan.run_id), "{simulated:?}");
    let canary = refused(&|made| made.plan.cases[0].must_end = Some(CaseEnd::Fail));
    assert_eq!(canary, [format!("only one of the runs goes red on purpose: {}", steady(2).plan.run_id)]);
    let (_folder, runs) = runs(&[steady(1)]);
    assert_eq!(compare(&runs[0], &runs[0]).expect("a comparison").apart.len(), 1);
}

#[test]
fn one_number_alone_is_judged_by_how_much_the_metric_varies_elsewhere() {
    let with = |minute: usize, alone: f64| {
        let mut made = steady(minute);
        let (mut one, mut other) = (row(0, alone), Vec::new());
        one.dims.set(Dim::Op, "write");
        for size in 1..9u64 {
            for (step, value) in STEADY.iter().enumerate() {
                let mut row = row(step, *value);
                row.dims.set(Dim::SizeBytes, size << 20);
                other.push(row);
            }
        }
        made.rows.push(one);
        made.rows.extend(other);
        made
    };
    let found = compared(with(1, 12.0), with(2, 9.6));
    let worst = &found.metrics.all[0];
    assert_eq!((worst.beyond, worst.n_a, found.metrics.compared), (Beyond::Worse, 1, 10));
    assert!(found.metrics.all[1..].iter().all(|one| one.beyond == Beyond::No));
    // The worst comes first.
    assert!(worst.of.contains("write"), "{}", worst.of);
}

#[test]
fn a_change_of_the_last_printed_digit_is_none_however_steady_the_numbers_are() {
    let printed = |minute: usize, value: f64| Made::at(minute, &[value; 6]);
    let coarse = |minute: usize, value: f64| {
        let mut made = printed(minute, value);
        // Fewer than three different numbers would not show how many digits are printed.
        for (step, value) in [0.4, 0.5, 0.6].iter().enumerate() {
            let mut row = row(step, *value);
            row.dims.set(Dim::Op, "write");
            made.rows.push(row);
        }
        made
    };
    let found = compared(coarse(1, 0.6), coarse(2, 0.5));
    assert!(found.metrics.all.iter().all(|one| one.beyond == Beyond::No), "{:?}", found.metrics.all);
    let found = compared(coarse(1, 0.6), coarse(2, 0.3));
    assert_eq!(found.metrics.worse(), 1);
}

#[test]
fn one_number_in_each_run_that_fell_by_a_quarter_is_not_the_same() {
    let fell = compared(Made::at(1, &[12.0]), Made::at(2, &[9.0]));
    let [rate] = fell.metrics.all.as_slice() else { panic!("{:?}", fell.metrics.all) };
    assert_eq!((rate.n_a, rate.n_b, rate.beyond), (1, 1, Beyond::Unknown));
    assert_ne!(fell.outcome, Outcome::Same, "{:?}", fell.because);
    let rose = compared(Made::at(1, &[9.0]), Made::at(2, &[12.0]));
    assert_eq!((rose.outcome, rose.metrics.all[0].beyond), (Outcome::Same, Beyond::Better));
}

#[test]
fn a_culprit_is_new_the_same_or_gone() {
    let culprit = |part: &str| Culprit::Culprit {
        node: "p5-001".into(),
        part: part.into(),
        evidence: "e".into(),
        code: None,
    };
    let (both, was, is) = (culprit("gpu1"), culprit("gpu2"), culprit("gpu3"));
    let a = steady(1).naming(vec![both.clone(), was.clone()]);
    let found = compared(a, steady(2).naming(vec![both.clone(), is.clone()])).culprits;
    let parts = |named: &[Named]| named.iter().map(|one| one.culprit.clone()).collect::<Vec<_>>();
    assert_eq!(
        (parts(&found.new), parts(&found.same), parts(&found.gone)),
        (vec![is], vec![both], vec![was])
    );
}

#[test]
fn the_effect_of_a_culprit_is_that_on_the_jobs_with_its_node() {
    let made = |minute: usize, with: f64| {
        let mut made = steady(minute);
        let case = &mut made.plan.cases[0];
        case.assertions[0].metric = "nccl.busbw".into();
        let mut other = case.jobs[0].clone();
        other.name = "others".into();
        other.nodes = vec!["p5-003".into(), "p5-004".into()];
        case.jobs.push(other);
        made.rows = [(JOB, with), ("others", 100.0)]
            .map(|(job, value)| {
                let dims =
                    Dims::new().with(Dim::Case, "nics").with(Dim::Job, job).with(Dim::SizeBytes, 1u64 << 30);
                recipes::recipe::built_in("nccl.busbw").expect("declared").of(dims, value)
            })
            .to_vec();
        made
    };
    let named =
        vec![Culprit::Culprit { node: "p5-001".into(), part: NIC.into(), evidence: "e".into(), code: None }];
    let effects = |a: f64, b: f64| {
        compared(made(1, a), made(2, b).naming(named.clone())).culprits.new.remove(0).effects
    };
    let expected = |change: f64, changed: usize| Effect {
        metric: "nccl.busbw".into(),
        change,
        changed,
        jobs: 1,
        all_that_span_nodes: changed == 1,
        others: Some(0.0),
        other_jobs: 1,
    };
    assert_eq!(effects(100.0, 50.0), [expected(-0.5, 1)]);
    assert_eq!(effects(100.0, 150.0), [expected(0.5, 1)]);
    assert_eq!(effects(100.0, 100.0), [expected(0.0, 0)], "a fault may cost nothing");
}

#[test]
fn numbers_of_unknown_spread_and_numbers_without_a_better_side_are_no_verdict() {
    let unknown = compared(Made::at(1, &[12.0]), Made::at(2, &[9.0]));
    assert_eq!((unknown.outcome, unknown.metrics.unknown()), (Outcome::Inconclusive, 1));
    let neither = |mut made: Made| {
        made.rows.iter_mut().for_each(|row| row.better = metric::unit::Better::Neither);
        made
    };
    let moved = compared(neither(steady(1)), neither(slower(2)));
    assert_eq!((moved.outcome, moved.metrics.moved()), (Outcome::Inconclusive, 1));
    assert_eq!(compared(neither(steady(1)), neither(steady(2))).metrics.moved(), 0);
}
