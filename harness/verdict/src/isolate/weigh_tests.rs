//! Which runs count as slow: how far below their peers, in how many tries, and when nothing can be said.

use super::trial::{Aim, Answer, Found, Shape, Trial};
use super::weigh::{GOOD, MOST_TRIES, State, Weighed};

const PAIR: Shape = Shape::Together { nodes: 2, across: false };

fn answer(aim: Aim, shape: Shape, found: Found) -> Answer {
    Answer { trial: Trial { aim, shape, nodes: vec![0, 1] }, found }
}

fn value(aim: Aim, value: f64) -> Answer {
    answer(aim, PAIR, Found::Values(vec![Some(value)]))
}

/// Eight sets of nodes round 400, a little apart, and these runs beside them.
fn among_eight(noise: f64, more: &[Answer]) -> Weighed {
    let sets = (0..8).map(|at| {
        let factor = 1.0 + noise * (f64::from(at) - 3.5) / 3.5;
        value(Aim::Set(vec![at as usize * 2, at as usize * 2 + 1]), 400.0 * factor)
    });
    Weighed::from_answers(&sets.chain(more.iter().cloned()).collect::<Vec<_>>())
}

#[test]
fn a_run_at_the_level_of_its_peers_is_good_and_one_well_below_it_is_slow() {
    let node = || Aim::Node(20);
    let state =
        |rate: f64| among_eight(0.01, &[value(node(), rate), value(node(), rate)]).state(&node(), None);
    for (rate, is) in [(440.0, State::Good), (400.0, State::Good), (300.0, State::Slow), (40.0, State::Slow)]
    {
        assert_eq!(state(rate), is, "{rate}");
    }
    let weighed = among_eight(0.01, &[value(node(), 300.0), value(node(), 300.0)]);
    let weight = weighed.weight(&node(), None).expect("a weight");
    assert_eq!((weight.tries, weight.peers), (2, 8));
    assert!((weight.left() - 0.75).abs() < 0.01, "{weight:?}");
    assert_eq!(weighed.state(&Aim::Node(21), None), State::Untried);
    let faster = among_eight(0.01, &[value(node(), 440.0)]);
    assert_eq!(faster.weight(&node(), None).expect("a weight").left(), 1.0, "nothing is lost");
}

#[test]
fn each_further_try_makes_a_slow_run_weigh_more() {
    let weight = |tries: usize| {
        let runs = vec![value(Aim::Node(20), 340.0); tries];
        among_eight(0.02, &runs).weight(&Aim::Node(20), None).expect("a weight").weight
    };
    assert!(weight(1) < weight(2) && weight(2) < weight(4), "{} {} {}", weight(1), weight(2), weight(4));
    let good = |tries: usize| {
        let runs = vec![value(Aim::Node(20), 400.0); tries];
        among_eight(0.02, &runs).weight(&Aim::Node(20), None).expect("a weight").weight
    };
    assert!(good(4) < good(1) && good(4) < GOOD, "{} {}", good(1), good(4));
}

#[test]
fn the_better_one_of_two_sets_is_the_reference_only_where_the_other_is_clearly_slow() {
    let set = |first: usize| Aim::Set(vec![first, first + 1]);
    let states = |rate: f64| {
        let weighed = Weighed::from_answers(&[value(set(0), rate), value(set(2), 400.0)]);
        [set(0), set(2)].map(|aim| weighed.state(&aim, None))
    };
    assert_eq!(states(200.0), [State::Slow, State::Good]);
    assert!(!states(396.0).contains(&State::Slow));
    let alone = Weighed::from_answers(&[value(set(0), 400.0)]);
    assert_eq!(alone.state(&set(0), None), State::Open);
}

#[test]
fn a_run_alone_of_its_shape_has_nothing_to_be_compared_with() {
    let alone = Weighed::from_answers(&[value(Aim::Node(1), 400.0)]);
    assert_eq!(alone.state(&Aim::Node(1), None), State::Open);
    // Runs of another shape are no peers.
    let other =
        answer(Aim::Node(1), Shape::Together { nodes: 4, across: false }, Found::Values(vec![Some(100.0)]));
    assert_eq!(among_eight(0.01, &[other]).state(&Aim::Node(1), None), State::Open);
    let nothing = answer(Aim::Node(1), PAIR, Found::Unknown);
    assert_eq!(among_eight(0.01, &[nothing]).state(&Aim::Node(1), None), State::Untried);
    for none in [Some(0.0), Some(f64::NAN), Some(f64::INFINITY), Some(-1.0), None] {
        let none = answer(Aim::Node(1), PAIR, Found::Values(vec![none]));
        assert_eq!(among_eight(0.01, &[none]).state(&Aim::Node(1), None), State::Untried);
    }
}

#[test]
fn a_run_that_broke_counts_as_very_slow() {
    let broke = answer(Aim::Node(20), PAIR, Found::Broke);
    let weighed = among_eight(0.01, &[broke.clone(), broke]);
    assert_eq!(weighed.state(&Aim::Node(20), None), State::Slow);
    let left = weighed.weight(&Aim::Node(20), None).expect("a weight").left();
    assert!((left - 0.01).abs() < 0.002, "{left}");
}

#[test]
fn the_smallest_loss_that_is_looked_for_grows_with_the_spread_within_ten_and_twenty_percent() {
    let looked_for = |noise: f64| among_eight(noise, &[]).looked_for();
    assert!((Weighed::from_answers(&[]).looked_for() - (1.0 - (-0.135f64).exp())).abs() < 1e-9);
    assert!((looked_for(0.0) - 0.10).abs() < 0.01, "{}", looked_for(0.0));
    assert!(looked_for(0.02) < looked_for(0.05) && looked_for(0.05) < 0.2);
    let wild: Vec<Answer> =
        (0..12).map(|at| value(Aim::Control, if at % 2 == 0 { 300.0 } else { 400.0 })).collect();
    assert!((Weighed::from_answers(&wild).looked_for() - 0.20).abs() < 1e-9);
}

#[test]
fn what_stays_open_after_ten_tries_is_followed_up_as_slow() {
    let aim = Aim::Node(1);
    let tried = |times: usize| Weighed::from_answers(&vec![answer(aim.clone(), PAIR, Found::Unknown); times]);
    assert_eq!(tried(MOST_TRIES).settled(&aim), State::Slow);
    assert_eq!(tried(MOST_TRIES - 1).settled(&aim), State::Untried);
    assert!(tried(MOST_TRIES).tried_out(&aim) && !tried(MOST_TRIES - 1).tried_out(&aim));
    let good: Vec<Answer> = vec![value(aim.clone(), 400.0); MOST_TRIES];
    assert_eq!(among_eight(0.01, &good).settled(&aim), State::Good);
}

#[test]
fn one_slow_gpu_of_a_node_is_distinguished_from_its_siblings() {
    let gpus = |node: usize, values: [f64; 4]| {
        answer(Aim::Gpus(node), Shape::Gpus, Found::Values(values.map(Some).to_vec()))
    };
    let weighed = Weighed::from_answers(&[
        gpus(1, [1300.0, 1302.0, 900.0, 1299.0]),
        gpus(1, [1301.0, 1300.0, 905.0, 1298.0]),
        answer(Aim::Control, Shape::Gpus, Found::Values([1300.0, 1301.0, 1299.0, 1300.5].map(Some).to_vec())),
    ]);
    let state = |gpu: usize| weighed.state(&Aim::Gpus(1), Some(gpu));
    assert_eq!([0, 1, 2, 3].map(state), [State::Good, State::Good, State::Slow, State::Good]);
    assert_eq!(weighed.state(&Aim::Gpus(1), None), State::Untried);
    assert_eq!(weighed.healthy.get(&Shape::Gpus), Some(&7));
}
