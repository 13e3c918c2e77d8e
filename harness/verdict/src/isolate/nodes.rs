//! From all nodes to the slow ones: groups of about the square root of their number, those that are slow in quarters, and
//! each remaining node with good partners, until it is cleared or proven slow.

use super::State;
use super::allot::{Beside, Want};
use super::trial::{Aim, Fleet};
use super::weigh;
use std::collections::BTreeSet;

/// Fewer are not screened: each of them in question is tried by itself.
const FEW: usize = 4;

/// Adds wanted runs, good, convicted and suspected nodes to the state.
pub(crate) fn pursue(state: &mut State) {
    let screen = screen(state.fleet);
    // A node that did well with others is good, whatever else it was in: a fault would have shown there too.
    let mut sets: Vec<&Vec<usize>> = Vec::new();
    for answer in state.answers {
        match &answer.trial.aim {
            Aim::Set(nodes) if !sets.contains(&nodes) => sets.push(nodes),
            Aim::Node(node) if state.weighed.state(&answer.trial.aim, None) == weigh::State::Good => {
                state.good.insert(*node);
            }
            _ => {}
        }
    }
    for nodes in sets {
        if state.weighed.state(&Aim::Set(nodes.clone()), None) == weigh::State::Good {
            state.good.extend(nodes);
        }
    }
    if !state.answers.is_empty() && nearly_all_slow(state, &screen) {
        return;
    }
    for set in &screen.whole {
        pursue_set(state, set, screen.size);
    }
    // What is too small for a group of its own waits for good nodes to fill it.
    if state.good.len() >= screen.size {
        for rest in &screen.rests {
            pursue_set(state, rest, screen.size);
        }
    } else if state.wants.is_empty() {
        state
            .open
            .extend(screen.rests.iter().map(|rest| format!("no good nodes to test nodes {rest:?} with")));
    }
}

/// Where most groups are slow, there are no good peers to compare with.
fn nearly_all_slow(state: &mut State, screen: &Screen) -> bool {
    let slow = screen
        .whole
        .iter()
        .filter(|set| state.weighed.settled(&Aim::Set((*set).clone())) == weigh::State::Slow)
        .count();
    let too_many = slow * 2 > screen.whole.len();
    if too_many {
        state.open.push(format!("{slow} of {} groups are slow, too few good ones to compare with; check the launcher and the image", screen.whole.len()));
    }
    too_many
}

fn pursue_set(state: &mut State, set: &[usize], filled: usize) {
    let aim = Aim::Set(set.to_vec());
    let again = Want { aim: aim.clone(), core: set.to_vec(), beside: Beside::Good(filled) };
    match state.weighed.settled(&aim) {
        weigh::State::Good => {}
        weigh::State::Untried | weigh::State::Open => state.wants.push(again),
        weigh::State::Slow => {
            let left: Vec<usize> = set.iter().copied().filter(|node| !state.good.contains(node)).collect();
            if left.is_empty() {
                // All of its nodes did well elsewhere. Either that was chance here, or they are slow together only.
                if state.weighed.tried_out(&aim) {
                    state.open.push(format!(
                        "nodes {set:?} are slow together, though each of them is good with others"
                    ));
                } else {
                    state.wants.push(again);
                }
            } else if set.len() <= FEW {
                left.iter().for_each(|node| pursue_node(state, *node));
            } else {
                let size = set.len().div_ceil(4);
                set.chunks(size).for_each(|part| pursue_set(state, part, size));
            }
        }
    }
}

fn pursue_node(state: &mut State, node: usize) {
    let aim = Aim::Node(node);
    let want = Want { aim: aim.clone(), core: vec![node], beside: Beside::Good(2) };
    match state.weighed.state(&aim, None) {
        weigh::State::Good => {}
        weigh::State::Slow if proven(state, &aim) => {
            let left = state.weighed.weight(&aim, None).map(|weight| weight.left()).unwrap_or_default();
            state.convicted.push((node, left));
        }
        _ if state.weighed.tried_out(&aim) => {
            state.suspects.insert(node);
        }
        _ => state.wants.push(want),
    }
}

/// With two partners at least, and so clearly that chance is ruled out.
fn proven(state: &State, aim: &Aim) -> bool {
    let partners: BTreeSet<usize> = state
        .answers
        .iter()
        .filter(|answer| answer.trial.aim == *aim)
        .flat_map(|answer| answer.trial.nodes.iter().copied().skip(1))
        .collect();
    let weight = state.weighed.weight(aim, None).map(|weight| (weight.weight, weight.tries));
    partners.len() >= 2 && weight.is_some_and(|(weight, tries)| weight >= weigh::PROVEN && tries >= 2)
}

/// The groups that are tried first.
pub(crate) struct Screen {
    /// Nodes of a group.
    pub size: usize,
    /// Groups of exactly `size` nodes, each within one topology group.
    pub whole: Vec<Vec<usize>>,
    /// The leftovers of topology groups whose number of nodes is no multiple of that size.
    pub rests: Vec<Vec<usize>>,
}

/// Groups near the square root of the fleet in size, with few nodes left over.
pub(crate) fn screen(fleet: &Fleet) -> Screen {
    let groups: Vec<Vec<usize>> = fleet
        .all_groups()
        .into_iter()
        .map(|group| (0..fleet.nodes()).filter(|node| fleet.group(*node) == group).collect())
        .collect();
    // Where no two nodes share a topology group, only runs across groups are left.
    let are_alone = groups.iter().all(|group| group.len() < 2);
    let groups = if are_alone { vec![(0..fleet.nodes()).collect()] } else { groups };
    let root = (fleet.nodes() as f64).sqrt();
    let at_least = ((root / 2.0).floor() as usize).max(2);
    let sizes = at_least..=((root * 2.0).ceil() as usize).max(2);
    let quality = |size: &usize| {
        let whole: usize = groups.iter().map(|group| group.len() / size).sum();
        let left: usize = groups.iter().map(|group| group.len() % size).sum();
        // Three groups at least, where the nodes allow it, so that one of them is odd.
        let few = whole < 3 && *size > 2;
        let off = ((*size as f64 / root).ln().abs() * 1000.0) as usize;
        (few, left, off)
    };
    let size = sizes.min_by_key(quality).unwrap_or(2);
    let mut screen = Screen { size, whole: Vec::new(), rests: Vec::new() };
    for chunk in groups.iter().flat_map(|group| group.chunks(size)) {
        if chunk.len() == size { &mut screen.whole } else { &mut screen.rests }.push(chunk.to_vec());
    }
    screen
}
