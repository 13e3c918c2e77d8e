//! The strategy against fleets whose faults are known, with few seeds: `cargo bench -p harness --bench isolate` has many.

use super::cost_estimate::{Played, cost_estimate, play};
use super::fault_sampling::{self, Cost, FaultSite};
use super::model::{Fault, Model};
use super::nodes::screen;
use super::*;

fn p5(nodes: usize, groups: usize) -> Fleet {
    Fleet::grouped(nodes, groups, 8, 32)
}

fn places(played: &Played) -> Vec<Place> {
    played.conclusion.named.iter().map(|named| named.place).collect()
}

#[test]
fn each_kind_of_fault_alone_is_named_exactly_at_each_noise() {
    let fleet = p5(256, 16);
    for noise in [0.01, 0.02, 0.05] {
        for kind in FaultSite::ALL {
            for seed in 0..4 {
                let faults = fault_sampling::faults(&fleet, &[kind], Cost::Promised, seed);
                let played = play(&mut Model::new(&fleet, faults.clone(), noise, seed));
                assert!(
                    fault_sampling::outcome(&played.conclusion, &faults).exact,
                    "{noise} {seed} {faults:?}: {played:?}"
                );
                assert!(played.runs < 120, "{noise} {seed} {faults:?}: {played:?}");
            }
        }
    }
}

#[test]
fn two_faults_of_whatever_kinds_are_both_named() {
    let fleet = p5(256, 16);
    for kinds in FaultSite::pairs() {
        for seed in 0..2 {
            let faults = fault_sampling::faults(&fleet, &kinds, Cost::Promised, seed);
            if fault_sampling::are_distinguishable(&faults) {
                let played = play(&mut Model::new(&fleet, faults.clone(), 0.02, seed));
                assert!(
                    fault_sampling::outcome(&played.conclusion, &faults).exact,
                    "{seed} {faults:?}: {played:?}"
                );
            }
        }
    }
}

#[test]
fn a_healthy_fleet_has_no_culprit_and_takes_few_runs() {
    for fleet in [p5(256, 16), p5(256, 1), p5(255, 15), p5(100, 7), p5(32, 4), p5(32, 1), p5(8, 1), p5(5, 1)]
    {
        for seed in 0..4 {
            let played = play(&mut Model::new(&fleet, Vec::new(), 0.02, seed));
            assert_eq!(places(&played), [], "{played:?}");
            assert!(played.conclusion.is_certain(), "{fleet:?} {played:?}");
            let few = 3 * (fleet.nodes() as f64).sqrt() as usize + 12;
            assert!(played.runs <= few, "{} nodes: {played:?}", fleet.nodes());
        }
    }
}

#[test]
fn fleets_of_any_size_and_topology_find_a_slow_nic_in_any_place() {
    for fleet in [p5(255, 15), p5(100, 7), p5(37, 1), p5(32, 4), p5(32, 1), p5(9, 3), p5(8, 1), p5(6, 1)] {
        for node in (0..fleet.nodes()).step_by(5) {
            let faults = vec![Fault { place: Place::Nic(node, 3), left: 0.6 }];
            let played = play(&mut Model::new(&fleet, faults.clone(), 0.02, node as u64));
            assert_eq!(places(&played), [Place::Nic(node, 3)], "{} nodes: {played:?}", fleet.nodes());
        }
    }
}

#[test]
fn four_nodes_are_enough_to_find_a_fault_in_any_of_them() {
    let fleet = p5(4, 1);
    for noise in [0.01, 0.02] {
        for seed in 0..60 {
            let kind = FaultSite::ALL[seed as usize % FaultSite::ALL.len()];
            if kind == FaultSite::Link {
                continue;
            }
            let faults = fault_sampling::faults(&fleet, &[kind], Cost::Promised, seed);
            let played = play(&mut Model::new(&fleet, faults.clone(), noise, seed));
            // Which part it is may stay open where so few nodes stand beside it.
            let nodes: Vec<Option<usize>> = places(&played).iter().map(|place| place.node()).collect();
            assert_eq!(nodes, [faults[0].place.node()], "{noise} {seed} {faults:?}: {played:?}");
            assert!(
                !fault_sampling::outcome(&played.conclusion, &faults).blamed,
                "{noise} {seed} {faults:?}: {played:?}"
            );
        }
        for seed in 0..60 {
            let played = play(&mut Model::new(&fleet, Vec::new(), noise, seed));
            assert_eq!(places(&played), [], "{noise} {seed}: {played:?}");
            assert!(played.conclusion.is_certain(), "{noise} {seed}: {played:?}");
        }
    }
}

#[test]
fn no_node_is_in_two_runs_of_a_round_and_only_good_ones_stand_beside() {
    let fleet = p5(256, 16);
    let faults = fault_sampling::faults(&fleet, &[FaultSite::Gpu, FaultSite::Port], Cost::Promised, 3);
    let mut model = Model::new(&fleet, faults, 0.05, 3);
    let (mut answers, mut rounds) = (Vec::new(), 0);
    while let Next::Round(trials) = next(&fleet, &answers, rounds) {
        let mut seen = BTreeSet::new();
        for node in trials.iter().flat_map(|trial| &trial.nodes) {
            assert!(seen.insert(*node), "node {node} twice in {trials:?}");
        }
        answers.extend(trials.iter().map(|trial| model.answer(trial)));
        rounds += 1;
    }
}

#[test]
fn the_same_answers_lead_to_the_same_next_round_from_wherever_it_is_resumed() {
    let fleet = p5(64, 8);
    let faults = vec![Fault { place: Place::NvLink(20), left: 0.5 }];
    let mut model = Model::new(&fleet, faults, 0.02, 5);
    let (mut answers, mut rounds) = (Vec::new(), 0);
    while let Next::Round(trials) = next(&fleet, &answers, rounds) {
        assert_eq!(next(&fleet, &answers.clone(), rounds), Next::Round(trials.clone()));
        answers.extend(trials.iter().map(|trial| model.answer(trial)));
        rounds += 1;
    }
    assert!(rounds > 3);
}

#[test]
fn a_node_on_which_every_run_breaks_is_named() {
    let fleet = p5(36, 1);
    let (mut answers, mut rounds) = (Vec::new(), 0);
    let mut model = Model::new(&fleet, Vec::new(), 0.02, 5);
    let conclusion = loop {
        match next(&fleet, &answers, rounds) {
            Next::Done(conclusion) => break conclusion,
            Next::Round(trials) => {
                answers.extend(trials.iter().map(|trial| match trial.nodes.contains(&7) {
                    true => Answer { trial: trial.clone(), found: Found::Broke },
                    false => model.answer(trial),
                }));
                rounds += 1;
            }
        }
    };
    assert_eq!(
        conclusion.named.iter().map(|named| named.place).collect::<Vec<_>>(),
        [Place::Node(7)],
        "{conclusion:?}"
    );
}

#[test]
fn failures_of_the_machinery_convict_no_node() {
    let fleet = p5(36, 1);
    let (mut answers, mut rounds) = (Vec::new(), 0);
    let mut model = Model::new(&fleet, Vec::new(), 0.02, 5);
    let conclusion = loop {
        match next(&fleet, &answers, rounds) {
            Next::Done(conclusion) => break conclusion,
            Next::Round(trials) => {
                answers.extend(trials.iter().map(|trial| match trial.nodes.contains(&7) {
                    true => Answer { trial: trial.clone(), found: Found::Unknown },
                    false => model.answer(trial),
                }));
                rounds += 1;
            }
        }
    };
    assert!(conclusion.named.is_empty() && !conclusion.is_certain(), "{conclusion:?}");
}

#[test]
fn a_fleet_that_is_mostly_slow_has_no_culprit() {
    let fleet = p5(64, 8);
    let faults = (0..48).step_by(4).map(|node| Fault { place: Place::Node(node), left: 0.5 }).collect();
    let played = play(&mut Model::new(&fleet, faults, 0.01, 1));
    assert!(played.conclusion.named.is_empty() && !played.conclusion.is_certain(), "{played:?}");
}

#[test]
fn what_slows_a_whole_node_by_little_is_blamed_on_none_of_its_parts() {
    let fleet = p5(64, 8);
    for seed in 0..20 {
        let faults = fault_sampling::faults(&fleet, &[FaultSite::Node], Cost::Exactly(0.1), seed);
        let played = play(&mut Model::new(&fleet, faults.clone(), 0.02, seed));
        assert!(!fault_sampling::outcome(&played.conclusion, &faults).blamed, "{faults:?}: {played:?}");
    }
}

#[test]
fn a_fault_that_is_hidden_by_another_is_said_to_be_possible() {
    let fleet = p5(64, 8);
    let faults =
        vec![Fault { place: Place::Gpu(9, 2), left: 0.4 }, Fault { place: Place::NvLink(9), left: 0.6 }];
    let played = play(&mut Model::new(&fleet, faults, 0.02, 1));
    assert_eq!(places(&played), [Place::Gpu(9, 2)]);
    assert!(played.conclusion.notes.iter().any(|note| note.contains("NVLink")), "{played:?}");
}

#[test]
fn the_first_groups_are_as_large_as_the_root_of_all_and_divide_them() {
    let sizes: Vec<(usize, usize, usize)> = [(256, 16), (256, 8), (32, 1), (8, 1), (31, 1), (100, 7), (4, 1)]
        .map(|(nodes, groups)| {
            let screen = screen(&p5(nodes, groups));
            (screen.size, screen.whole.len(), screen.rests.len())
        })
        .to_vec();
    assert_eq!(sizes, [(16, 16, 0), (16, 16, 0), (4, 8, 0), (2, 4, 0), (6, 5, 1), (5, 20, 0), (2, 2, 0)]);
}

#[test]
fn links_of_a_healthy_fleet_are_tried_by_each_two_quarters_of_its_groups_and_by_no_more() {
    let fleet = p5(256, 16);
    let mut model = Model::new(&fleet, Vec::new(), 0.01, 1);
    let mut answers = Vec::new();
    while let Next::Round(trials) = next(&fleet, &answers, 0) {
        answers.extend(trials.iter().map(|trial| model.answer(trial)));
    }
    let aims: BTreeSet<&Aim> = answers.iter().map(|answer: &Answer| &answer.trial.aim).collect();
    let sizes = aims.iter().filter_map(|aim| match aim {
        Aim::Groups(groups) => Some(groups.len()),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [8; 6]);
}

#[test]
fn the_cost_is_estimated() {
    let cost_estimate = cost_estimate(&p5(32, 4));
    assert!(
        cost_estimate.best.runs < cost_estimate.worst.runs
            && cost_estimate.best.rounds < cost_estimate.worst.rounds,
        "{cost_estimate:?}"
    );
    assert!(cost_estimate.worst.runs < 32 * 31 / 2, "{cost_estimate:?}");
}

#[test]
fn a_weight_is_that_of_students_t_over_the_spread_of_the_controls() {
    let answer = |aim, value: f64| Answer {
        trial: Trial { aim, shape: trial::Shape::Inside, nodes: vec![0] },
        found: Found::Values(vec![Some(value)]),
    };
    let offs: [f64; 5] = [-0.02, -0.01, 0.0, 0.01, 0.02];
    let mut answers = offs.map(|off| answer(Aim::Control, 400.0 * off.exp())).to_vec();
    answers.push(answer(Aim::Node(0), 200.0));
    let weighed = Weighed::from_answers(&answers);
    // Four runs are assumed at 3 %, and five controls have four degrees of freedom.
    let squares = 4.0 * 0.03 * 0.03 + offs.iter().map(|off| off * off).sum::<f64>();
    let spread = (squares / 8.0).sqrt();
    assert!((weighed.spread - spread).abs() < 1e-9, "{weighed:?}");
    let t = 0.5f64.ln() / (spread * (1.0f64 + 1.0 / 5.0).sqrt());
    let weight = 9.0 / 2.0 * (1.0 + t * t / 8.0).ln();
    let found = weighed.weight(&Aim::Node(0), None).expect("a weight");
    assert!((found.weight - weight).abs() < 1e-9, "{found:?}");
    let looked_for = 1.0 - (-4.5 * spread).exp();
    assert!((weighed.looked_for() - looked_for).abs() < 1e-9, "{weighed:?}");
}
