//! Rounds of an isolation: who takes part in them, which runs they are compared with, and how its parts are called.

use super::allot::shape;
use super::fault_sampling::{Cost, FaultSite, are_distinguishable, faults};
use super::model::{Fault, Model};
use super::trial::{Found, Shape, Trial};
use super::weigh::{self, Weighed};
use super::{Aim, Answer, Conclusion, Fleet, Next, Place, State, next};
use super::{nodes, parts};
use std::collections::BTreeSet;

fn played(fleet: &Fleet, faults: Vec<Fault>) -> (Vec<Vec<Trial>>, Conclusion) {
    let mut model = Model::new(fleet, faults, 0.01, 7);
    let (mut answers, mut rounds): (Vec<Answer>, Vec<Vec<Trial>>) = (Vec::new(), Vec::new());
    loop {
        match next(fleet, &answers, rounds.len()) {
            Next::Done(conclusion) => return (rounds, conclusion),
            Next::Round(trials) => {
                answers.extend(trials.iter().map(|trial| model.answer(trial)));
                rounds.push(trials);
            }
        }
    }
}

fn all_nodes(trials: &[Trial]) -> Vec<usize> {
    trials.iter().flat_map(|trial| trial.nodes.iter().copied()).collect()
}

const ONE_OF_EACH: [Place; 6] =
    [Place::Node(5), Place::Gpu(5, 3), Place::NvLink(5), Place::Nic(5, 7), Place::Port(5), Place::Link(1, 2)];

#[test]
fn in_a_round_each_node_runs_once_and_each_run_has_the_shape_of_its_nodes() {
    for (fleet, place) in ONE_OF_EACH.map(|place| (Fleet::grouped(32, 4, 8, 32), place)) {
        let (rounds, conclusion) = played(&fleet, vec![Fault { place, left: 0.5 }]);
        assert_eq!(conclusion.named.iter().map(|named| named.place).collect::<Vec<_>>(), [place]);
        let left = conclusion.named[0].left;
        assert!((left - 0.5).abs() < 0.05, "{place}: {left}");
        for trials in &rounds {
            let all = all_nodes(trials);
            assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "{place}: {trials:?}");
            for trial in trials {
                let other = shape(&fleet, &trial.aim, &trial.nodes);
                let is_right = trial.aim == Aim::Control || trial.shape == other;
                assert!(is_right && !trial.nodes.is_empty(), "{place}: {trial:?}");
                if let Shape::Together { nodes, across } = trial.shape {
                    assert_eq!((trial.nodes.len(), fleet.spans(&trial.nodes)), (nodes, across), "{trial:?}");
                }
            }
        }
    }
}

#[test]
fn the_parts_of_a_slow_node_are_compared_with_good_nodes_and_with_no_more_than_needed() {
    for place in &ONE_OF_EACH[..5] {
        let fleet = Fleet::grouped(32, 4, 8, 32);
        let (rounds, _) = played(&fleet, vec![Fault { place: *place, left: 0.5 }]);
        let controls = |shape: Shape| {
            let all =
                rounds.iter().flatten().filter(|trial| trial.aim == Aim::Control && trial.shape == shape);
            all.count()
        };
        assert!((3..=8).contains(&controls(Shape::Inside)), "{place}: {}", controls(Shape::Inside));
        assert!((1..=4).contains(&controls(Shape::Gpus)), "{place}: {}", controls(Shape::Gpus));
        assert!((1..=4).contains(&controls(Shape::Nics)), "{place}: {}", controls(Shape::Nics));
        let of_controls = rounds.iter().flatten().filter(|trial| trial.aim == Aim::Control);
        assert!(
            of_controls.clone().all(|trial| !trial.nodes.contains(&5)),
            "{place}: the slow node is no peer"
        );
        for trial in of_controls.filter(|trial| trial.shape == Shape::Nics) {
            assert_eq!((trial.nodes.len(), fleet.spans(&trial.nodes)), (2, false));
        }
    }
}

#[test]
fn a_node_that_is_tried_again_meets_another_partner() {
    let fleet = Fleet::flat(16, 8, 32);
    let (rounds, _) = played(&fleet, vec![Fault { place: Place::Nic(5, 7), left: 0.5 }]);
    let partners: Vec<usize> = rounds
        .iter()
        .flatten()
        .filter(|trial| trial.aim == Aim::Node(5))
        .map(|trial| trial.nodes[1])
        .collect();
    assert!(partners.len() >= 2, "{partners:?}");
    assert_ne!(partners[0], partners[1]);
}

#[test]
fn parts_and_runs_are_called_by_their_numbers() {
    let places: Vec<String> = ONE_OF_EACH.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["node", "gpu3", "nvlink", "nic7", "port", "link 1-2"]);
    assert_eq!(ONE_OF_EACH.map(Place::node), [Some(5), Some(5), Some(5), Some(5), Some(5), None]);
    for (aim, number) in [
        (Aim::Set(vec![41, 42]), "41"),
        (Aim::Node(42), "42"),
        (Aim::Groups(vec![41, 42]), "42"),
        (Aim::Inside(42), "42"),
        (Aim::Gpus(42), "42"),
        (Aim::Nics(42), "42"),
    ] {
        assert!(aim.to_string().contains(number), "{aim}");
    }
}

#[test]
fn sampled_faults_lie_within_the_fleet_and_cost_what_was_asked_for() {
    let fleet = Fleet::grouped(32, 4, 8, 16);
    let mut links = BTreeSet::new();
    for seed in 0..64 {
        for fault in faults(&fleet, &FaultSite::ALL, Cost::Promised, seed) {
            assert!((0.1..=0.8).contains(&fault.left), "{fault:?}");
            match fault.place {
                Place::Link(a, b) => assert!(
                    a < b && b < 4 && {
                        links.insert((a, b));
                        true
                    }
                ),
                Place::Gpu(node, gpu) => assert!(node < 32 && gpu < 8),
                Place::Nic(node, nic) => assert!(node < 32 && nic < 16),
                place => assert!(place.node().is_some_and(|node| node < 32)),
            }
        }
    }
    assert_eq!(links.len(), 6, "every two groups");
    let exact = faults(&fleet, &FaultSite::ALL, Cost::Exactly(0.25), 1);
    assert!(exact.iter().all(|fault| fault.left == 0.75) && exact.len() == 6);
    assert_eq!(FaultSite::pairs().len(), 21);
    let names: BTreeSet<&str> = FaultSite::ALL.iter().map(|kind| kind.name()).collect();
    assert!(names.len() == 6 && !names.contains(""));
}

#[test]
fn a_fault_behind_a_worse_one_on_the_same_path_cannot_be_distinguished() {
    let fault = |place, left| Fault { place, left };
    for (one, other, distinguishable) in [
        (fault(Place::Node(1), 0.5), fault(Place::Gpu(1, 0), 0.6), false),
        (fault(Place::Node(1), 0.5), fault(Place::Gpu(2, 0), 0.6), true),
        (fault(Place::Node(1), 0.5), fault(Place::Gpu(1, 0), 0.3), true),
        (fault(Place::Node(1), 0.5), fault(Place::Gpu(1, 0), 0.45), false),
        (fault(Place::Gpu(1, 0), 0.5), fault(Place::NvLink(1), 0.6), false),
        (fault(Place::Port(1), 0.5), fault(Place::Nic(1, 3), 0.6), false),
        (fault(Place::Port(1), 0.5), fault(Place::Gpu(1, 3), 0.6), true),
        (fault(Place::Nic(1, 2), 0.5), fault(Place::Nic(1, 3), 0.5), true),
        (fault(Place::Nic(1, 3), 0.5), fault(Place::Nic(1, 3), 0.5), false),
    ] {
        assert_eq!(are_distinguishable(&[one, other]), distinguishable, "{one:?} {other:?}");
        assert_eq!(are_distinguishable(&[other, one]), distinguishable, "{other:?} {one:?}");
    }
    assert!(are_distinguishable(&[]));
}

/// Node 5 of sixteen is tried with these partners, at these rates; all others reach 400. Its weight, and who is convicted.
fn weighed_and_convicted(tries: &[(usize, f64)]) -> (f64, Vec<usize>) {
    let fleet = Fleet::flat(16, 8, 32);
    let mut answers = Vec::new();
    let mut run = |aim: Aim, nodes: Vec<usize>, value: f64| {
        let shape = Shape::Together { nodes: nodes.len(), across: false };
        answers.push(Answer { trial: Trial { aim, shape, nodes }, found: Found::Values(vec![Some(value)]) });
    };
    for (at, level) in [400.0, 200.0, 401.0, 399.0].into_iter().enumerate() {
        let set: Vec<usize> = (4 * at..4 * at + 4).collect();
        run(Aim::Set(set.clone()), set.clone(), level);
        run(Aim::Set(set.clone()), set, level + 1.0);
    }
    for node in [4, 6, 7] {
        for (partner, value) in [(0, 400.0), (1, 401.0), (2, 399.0)] {
            run(Aim::Node(node), vec![node, partner], value);
        }
    }
    for (partner, value) in tries {
        run(Aim::Node(5), vec![5, *partner], *value);
    }
    let mut state = State::new(&fleet, &answers, Weighed::from_answers(&answers));
    nodes::pursue(&mut state);
    let weight = state.weighed.weight(&Aim::Node(5), None).expect("tried").weight;
    (weight, state.convicted.iter().map(|(node, _)| *node).collect())
}

fn convicted(tries: &[(usize, f64)]) -> Vec<usize> {
    weighed_and_convicted(tries).1
}

#[test]
fn a_node_is_convicted_only_where_it_is_slow_with_two_partners() {
    assert_eq!(convicted(&[(0, 200.0), (1, 201.0), (2, 199.0)]), [5]);
    assert_eq!(convicted(&[(0, 200.0), (0, 201.0), (0, 199.0)]), [0usize; 0], "either of the two may be it");
    assert_eq!(convicted(&[(0, 200.0)]), [0usize; 0]);
    assert_eq!(convicted(&[(0, 400.0), (1, 401.0), (2, 399.0)]), [0usize; 0]);
}

#[test]
fn nodes_that_are_each_a_topology_group_are_tried_across_groups() {
    let fleet = Fleet::grouped(8, 8, 8, 32);
    let (rounds, conclusion) = played(&fleet, vec![Fault { place: Place::Nic(5, 7), left: 0.5 }]);
    assert!(!rounds.is_empty());
    assert_eq!(conclusion.named.iter().map(|named| named.place).collect::<Vec<_>>(), [Place::Nic(5, 7)]);
    let (rounds, conclusion) = played(&Fleet::grouped(1, 1, 8, 32), Vec::new());
    assert!(rounds.is_empty() && !conclusion.is_certain(), "{conclusion:?}");
}

#[test]
fn two_weak_tries_convict_no_node() {
    let mut weak = 0;
    for rate in 200..400 {
        let (weight, convicted) = weighed_and_convicted(&[(0, rate.into()), (1, rate.into())]);
        let is_proven = weight >= weigh::PROVEN;
        assert_eq!(convicted == [5], is_proven, "{rate} GB/s: weight {weight}");
        weak += usize::from(weight >= weigh::SLOW && !is_proven);
    }
    assert!(weak > 3, "rates that look slow and prove nothing: {weak}");
}

/// Node 5 is proven slow; its GPU 3 is tried twice at this rate, its siblings, NICs and peers reach 400. The weight of that
/// GPU, and what is named.
fn weighed_and_named(rate: f64) -> (f64, Vec<Place>) {
    let fleet = Fleet::flat(16, 4, 4);
    let mut answers = Vec::new();
    for at in 0..3 {
        let more = f64::from(at);
        for (aims, shape, values) in [
            ([Aim::Control, Aim::Inside(5)], Shape::Inside, vec![400.0 + more]),
            ([Aim::Control, Aim::Nics(5)], Shape::Nics, vec![400.0, 401.0, 399.0, 400.5 + more]),
            ([Aim::Control, Aim::Gpus(5)], Shape::Gpus, vec![400.0, 401.0, 399.0, 400.5 + more]),
        ] {
            for aim in aims {
                let mut values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
                match aim {
                    Aim::Gpus(_) if at == 2 => continue,
                    Aim::Gpus(_) => values[3] = Some(rate),
                    _ => {}
                }
                let trial = Trial { aim, shape, nodes: vec![5] };
                answers.push(Answer { trial, found: Found::Values(values) });
            }
        }
    }
    let mut state = State::new(&fleet, &answers, Weighed::from_answers(&answers));
    state.convicted.push((5, 0.5));
    parts::pursue(&mut state);
    let weight = state.weighed.weight(&Aim::Gpus(5), Some(3)).expect("tried").weight;
    (weight, state.named.iter().map(|named| named.place).collect())
}

#[test]
fn a_part_is_named_only_beyond_its_limit_of_proof() {
    let mut weak = 0;
    for rate in 200..380 {
        let (weight, named) = weighed_and_named(rate.into());
        let is_proven = weight >= weigh::PROVEN_PART;
        assert_eq!(named == [Place::Gpu(5, 3)], is_proven, "{rate} GB/s: weight {weight}, {named:?}");
        weak += usize::from(weight >= weigh::SLOW && !is_proven);
    }
    assert!(weak > 3, "rates that look slow and prove nothing: {weak}");
}
