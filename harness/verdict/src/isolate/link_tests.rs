//! When a link between two topology groups is named: a wrong name sends a technician to a good switch.

use super::links;
use super::trial::{Found, Shape, Trial};
use super::weigh::Weighed;
use super::{Aim, Answer, Fleet, Place, State};

/// Runs over a link: their nodes and their rate.
type Runs<'a> = &'a [([usize; 4], f64)];

/// Four groups of four good nodes. All links reach 400 but these, each with the nodes and the rate of its runs.
fn named(slow: &[((usize, usize), Runs<'_>)]) -> Vec<Place> {
    named_and_open(slow).0
}

/// The same, and what stays open.
pub(super) fn named_and_open(slow: &[((usize, usize), Runs<'_>)]) -> (Vec<Place>, Vec<String>) {
    let fleet = Fleet::grouped(16, 4, 8, 32);
    let mut answers = Vec::new();
    let mut run = |groups: [usize; 2], nodes: [usize; 4], value: f64| {
        let shape = Shape::Together { nodes: 4, across: true };
        let trial = Trial { aim: Aim::Groups(groups.to_vec()), shape, nodes: nodes.to_vec() };
        answers.push(Answer { trial, found: Found::Values(vec![Some(value)]) });
    };
    for a in 0..4 {
        for b in a + 1..4 {
            let (first, second) =
                ([4 * a, 4 * b, 4 * a + 1, 4 * b + 1], [4 * a + 2, 4 * b + 2, 4 * a + 3, 4 * b + 3]);
            match slow.iter().find(|(link, _)| *link == (a, b)) {
                Some((_, tries)) => tries.iter().for_each(|(nodes, value)| run([a, b], *nodes, *value)),
                None => {
                    run([a, b], first, 400.0 + a as f64);
                    run([a, b], second, 400.0 - b as f64);
                }
            }
        }
    }
    let mut state = State::new(&fleet, &answers, Weighed::from_answers(&answers));
    state.good.extend(0..16);
    links::pursue(&mut state);
    (state.named.iter().map(|named| named.place).collect(), state.open)
}

#[test]
fn a_link_is_named_where_two_sets_of_nodes_are_slow_over_it_and_both_groups_are_well_connected() {
    let (one, other) = ([4, 8, 5, 9], [6, 10, 7, 11]);
    assert_eq!(named(&[((1, 2), &[(one, 200.0), (other, 201.0)])]), [Place::Link(1, 2)]);
    let nothing: [Place; 0] = [];
    assert_eq!(named(&[((1, 2), &[(one, 200.0), (one, 201.0)])]), nothing, "these nodes may be it");
    assert_eq!(named(&[((1, 2), &[(one, 200.0)])]), nothing);
    assert_eq!(named(&[]), nothing);
    // All links of group 1 are slow: it is the group, and none of its links.
    let to_0 = [([0, 4, 1, 5], 200.0), ([2, 6, 3, 7], 201.0)];
    let to_2 = [(one, 200.0), (other, 201.0)];
    let to_3 = [([4, 12, 5, 13], 200.0), ([6, 14, 7, 15], 201.0)];
    assert_eq!(named(&[((0, 1), &to_0), ((1, 2), &to_2), ((1, 3), &to_3)]), nothing);
}
