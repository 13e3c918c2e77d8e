//! What an isolation leaves open, what a named fault may hide, and why none can start. Nodes and groups are numbers
//! here: the report replaces them by names.

use super::code::Code;
use super::link_tests::named_and_open;
use super::model::{Fault, Model};
use super::probes_tests::{probes, suite};
use super::round::lint;
use super::trial::Shape;
use super::weigh::{MOST_TRIES, Weighed};
use super::{
    Aim, Answer, Conclusion, Fleet, Found, MOST_ROUNDS, Next, Place, State, Trial, links, next, nodes,
};
use config::suite::OnFailure;

fn render(what: &str, open: &[String], notes: &[String]) -> String {
    let mut lines = vec![what.to_owned()];
    lines.extend(open.iter().map(|line| format!("  inconclusive: {line}")));
    lines.extend(notes.iter().map(|line| format!("  note: {line}")));
    lines.join("\n")
}

/// An isolation of 64 nodes with these faults, in which runs with these aims have no result.
fn concluded(faults: &[Place], lost: &[Aim]) -> Conclusion {
    let fleet = Fleet::grouped(64, 8, 8, 32);
    let faults = faults.iter().map(|place| Fault { place: *place, left: 0.5 }).collect();
    let mut model = Model::new(&fleet, faults, 0.01, 1);
    let (mut answers, mut rounds): (Vec<Answer>, usize) = (Vec::new(), 0);
    loop {
        match next(&fleet, &answers, rounds) {
            Next::Done(conclusion) => return conclusion,
            Next::Round(trials) => {
                rounds += 1;
                answers.extend(trials.into_iter().map(|trial| match lost.contains(&trial.aim) {
                    true => Answer { trial, found: Found::Unknown },
                    false => model.answer(&trial),
                }));
            }
        }
    }
}

#[test]
fn messages_of_conclusions() {
    let most: Vec<Place> = (0..48).step_by(4).map(Place::Node).collect();
    let parts = [Aim::Inside(9), Aim::Gpus(9), Aim::Nics(9)];
    let cases: [(&str, &[Place], &[Aim]); 7] = [
        ("all of node 9 is slow", &[Place::Node(9)], &[]),
        ("GPU 2 of node 9 is slow", &[Place::Gpu(9, 2)], &[]),
        ("all NICs of node 9 are slow", &[Place::Port(9)], &[]),
        ("NIC 3 of node 9 is slow", &[Place::Nic(9, 3)], &[]),
        ("node 9 is slow, runs on its parts have no result", &[Place::Node(9)], &parts),
        ("GPU 2 of node 9 is slow, runs on its NICs have no result", &[Place::Gpu(9, 2)], &parts[2..]),
        ("nodes of most groups are slow", &most, &[]),
    ];
    let mut lines: Vec<String> = Vec::new();
    for (what, faults, lost) in cases {
        let conclusion = concluded(faults, lost);
        lines.push(render(what, &conclusion.open, &conclusion.notes));
        let codes = conclusion.named.iter().map(|named| (Code::for_place(named.place).name, named.place));
        lines.extend(codes.map(|(code, place)| format!("  named: {code} {place}")));
    }
    let Next::Done(ended) = next(&Fleet::flat(8, 8, 32), &[], MOST_ROUNDS) else { panic!("not done") };
    lines.push(render("no round is left", &ended.open, &ended.notes));
    insta::assert_snapshot!(lines.join("\n"));
}

fn answer(aim: Aim, shape: Shape, value: f64) -> Answer {
    Answer { trial: Trial { aim, shape, nodes: vec![0, 1] }, found: Found::Values(vec![Some(value)]) }
}

/// What stays open of the nodes after these runs.
fn open_nodes(fleet: &Fleet, answers: &[Answer]) -> Vec<String> {
    let mut state = State::new(fleet, answers, Weighed::from_answers(answers));
    nodes::pursue(&mut state);
    state.open
}

#[test]
fn messages_of_sets_of_nodes() {
    let pair = Shape::Together { nodes: 2, across: false };
    let mut answers = Vec::new();
    for off in (0..MOST_TRIES).map(|at| (at % 3) as f64) {
        answers.push(answer(Aim::Set(vec![0, 1]), pair, 200.0 + off));
        for set in [[2, 3], [4, 5], [6, 7]] {
            answers.push(answer(Aim::Set(set.to_vec()), pair, 400.0 + off));
        }
        for node in [0, 1] {
            answers.push(answer(Aim::Node(node), pair, 400.0 - off));
        }
    }
    let single = [answer(Aim::Control, pair, 400.0)];
    let lines = [
        render("slow only together", &open_nodes(&Fleet::flat(8, 8, 32), &answers), &[]),
        render("groups of one node", &open_nodes(&Fleet::grouped(3, 3, 8, 32), &single), &[]),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

/// Nodes of two groups of four are good.
fn links_of_two_groups() -> (Vec<String>, Vec<String>) {
    let fleet = Fleet::grouped(16, 4, 8, 32);
    let mut state = State::new(&fleet, &[], Weighed::default());
    state.good.extend(0..8);
    links::pursue(&mut state);
    (state.open, state.notes)
}

/// Four groups of eight are slow together, and good two by two.
fn links_slow_only_together() -> Vec<String> {
    let fleet = Fleet::grouped(16, 8, 8, 32);
    let shape = Shape::Together { nodes: 8, across: true };
    let good: [&[usize]; 9] = [
        &[0, 1, 4, 5],
        &[0, 1, 6, 7],
        &[2, 3, 4, 5],
        &[2, 3, 6, 7],
        &[4, 5, 6, 7],
        &[0, 2],
        &[0, 3],
        &[1, 2],
        &[1, 3],
    ];
    let run = |groups: &[usize], value: f64| answer(Aim::Groups(groups.to_vec()), shape, value);
    let mut answers: Vec<Answer> =
        good.iter().enumerate().map(|(at, groups)| run(groups, 400.0 + at as f64)).collect();
    answers.extend((0..MOST_TRIES).map(|_| run(&[0, 1, 2, 3], 200.0)));
    let mut state = State::new(&fleet, &answers, Weighed::from_answers(&answers));
    state.good.extend(0..16);
    links::pursue(&mut state);
    state.open
}

#[test]
fn messages_of_links() {
    let (open, notes) = links_of_two_groups();
    let (to_0, to_2) = ([([0, 4, 1, 5], 200.0), ([2, 6, 3, 7], 201.0)], [4, 8, 5, 9]);
    let to_3 = [([4, 12, 5, 13], 200.0), ([6, 14, 7, 15], 201.0)];
    let of_one_group = named_and_open(&[
        ((0, 1), &to_0),
        ((1, 2), &[(to_2, 200.0), ([6, 10, 7, 11], 201.0)]),
        ((1, 3), &to_3),
    ]);
    let with_one_set = named_and_open(&[((1, 2), &[(to_2, 200.0); MOST_TRIES])]);
    let lines = [
        render("two groups have good nodes", &open, &notes),
        render("all links of group 1 are slow", &of_one_group.1, &[]),
        render("slow with one set of nodes", &with_one_set.1, &[]),
        render("slow only together", &links_slow_only_together(), &[]),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_aims_and_places() {
    let aims = [
        Aim::Set(vec![0, 1]),
        Aim::Node(7),
        Aim::Groups(vec![1, 2]),
        Aim::Inside(7),
        Aim::Gpus(7),
        Aim::Nics(7),
        Aim::Control,
    ];
    let places = [
        Place::Node(7),
        Place::Somewhere(7),
        Place::Gpu(7, 3),
        Place::NvLink(7),
        Place::Nic(7, 5),
        Place::Port(7),
        Place::Link(1, 2),
    ];
    let mut lines: Vec<String> = aims.iter().map(ToString::to_string).collect();
    lines.extend(places.iter().map(|place| format!("{} {place}", Code::for_place(*place).name)));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_suites_that_cannot_be_isolated_with() {
    let suite = suite();
    let mut alone = suite.clone();
    alone.cases.truncate(1);
    alone.on_failure = OnFailure::Isolate { budget_node_h: None };
    let lines = [
        probes(&suite, Some("alone")).expect_err("one node"),
        probes(&alone, None).expect_err("no case"),
        lint(&alone).expect("a diagnostic").to_string(),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}
