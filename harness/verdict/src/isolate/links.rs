//! From all links between topology groups to the slow ones, on good nodes alone. Runs over half of the groups each cover
//! all links, each link in as few of them as can be; what is slow is divided until two groups are left.

use super::State;
use super::allot::{Beside, Want};
use super::named::{Named, Place};
use super::trial::Aim;
use super::weigh;
use std::collections::{BTreeMap, BTreeSet};

/// Adds wanted runs, named links and open questions to the state.
pub(crate) fn pursue(state: &mut State) {
    // Where no node is known to be good, links cannot be judged.
    if state.good.is_empty() {
        return;
    }
    let fleet = state.fleet;
    let mut good: BTreeMap<usize, usize> = fleet.all_groups().into_iter().map(|group| (group, 0)).collect();
    for node in &state.good {
        *good.entry(fleet.group(*node)).or_default() += 1;
    }
    let groups: Vec<usize> = good.iter().filter(|(_, nodes)| **nodes > 0).map(|(group, _)| *group).collect();
    for group in good.iter().filter(|(_, nodes)| **nodes == 0).map(|(group, _)| *group) {
        state.open.push(format!("no good node in group {group} to test its links with"));
    }
    match groups.len() {
        0 | 1 => return,
        2 => {
            state.notes.push("the link between the only two groups has no peers to compare with".to_owned());
            return;
        }
        _ => {}
    }
    let size = groups.len().div_ceil(4);
    let few = groups.iter().filter_map(|group| good.get(group)).min().copied().unwrap_or_default();
    // Each group is in three such runs at most; they go side by side where it has nodes enough.
    let nodes = (2 * size).max(4).min((few * 2).max(2));
    let cleared = cleared(state);
    level(state, &blocks(&groups), &cleared, nodes);
}

/// Four parts, or as many as there are groups.
fn blocks(groups: &[usize]) -> Vec<Vec<usize>> {
    let parts = groups.len().min(4);
    let mut blocks = vec![Vec::new(); parts];
    for (at, group) in groups.iter().enumerate() {
        if let Some(block) = blocks.get_mut(at * parts / groups.len()) {
            block.push(*group);
        }
    }
    blocks
}

type Pairs = BTreeSet<(usize, usize)>;

fn pairs(groups: &[usize]) -> Pairs {
    let of = |(at, a): (usize, &usize)| {
        groups.iter().skip(at + 1).map(|b| (*a.min(b), *a.max(b))).collect::<Vec<_>>()
    };
    groups.iter().enumerate().flat_map(of).collect()
}

/// The links that were in a run that went well.
fn cleared(state: &State) -> Pairs {
    let mut cleared = Pairs::new();
    for answer in state.answers {
        if let Aim::Groups(groups) = &answer.trial.aim
            && state.weighed.state(&answer.trial.aim, None) == weigh::State::Good
        {
            cleared.extend(pairs(groups));
        }
    }
    cleared
}

/// Every two blocks together. What a block has within itself is in several of these, and is looked into first.
fn level(state: &mut State, blocks: &[Vec<usize>], cleared: &Pairs, nodes: usize) {
    let mut slow: Vec<Vec<usize>> = Vec::new();
    let mut slow_with: Vec<usize> = vec![0; blocks.len()];
    for (at, a) in blocks.iter().enumerate() {
        for (to, b) in blocks.iter().enumerate().skip(at + 1) {
            let mut both: Vec<usize> = a.iter().chain(b).copied().collect();
            both.sort_unstable();
            let aim = Aim::Groups(both.clone());
            let needed = pairs(&both).iter().any(|pair| !cleared.contains(pair));
            match state.weighed.settled(&aim) {
                weigh::State::Slow => {
                    slow.push(both);
                    for block in [at, to] {
                        if let Some(count) = slow_with.get_mut(block) {
                            *count += 1;
                        }
                    }
                }
                weigh::State::Good => {}
                _ if needed => want(state, both, nodes),
                _ => {}
            }
        }
    }
    let wanted = state.wants.len();
    for (block, _) in blocks.iter().zip(&slow_with).filter(|(block, slow)| **slow >= 2 && block.len() >= 2) {
        let aim = Aim::Groups(block.clone());
        match state.weighed.settled(&aim) {
            weigh::State::Good => {}
            weigh::State::Slow => into(state, block, cleared, nodes),
            _ => want(state, block.clone(), nodes),
        }
    }
    if state.wants.len() == wanted {
        slow.iter().for_each(|groups| into(state, groups, cleared, nodes));
    }
}

fn want(state: &mut State, groups: Vec<usize>, nodes: usize) {
    let aim = Aim::Groups(groups.clone());
    if !state.wants.iter().any(|want| want.aim == aim) {
        let nodes = nodes.max(groups.len());
        state.wants.push(Want { aim, core: Vec::new(), beside: Beside::From(groups, nodes) });
    }
}

/// Groups whose links are slow together.
fn into(state: &mut State, groups: &[usize], cleared: &Pairs, nodes: usize) {
    let aim = Aim::Groups(groups.to_vec());
    let known: Option<(usize, usize)> = state.named.iter().find_map(|named| match named.place {
        Place::Link(a, b) if groups.contains(&a) && groups.contains(&b) => Some((a, b)),
        _ => None,
    });
    if let [a, b] = groups {
        if known.is_none() {
            link(state, *a, *b, nodes);
        }
        return;
    }
    if let Some((a, b)) = known {
        // One link that is named hides the others: without either end all of them are tried again.
        for end in [a, b] {
            let rest: Vec<usize> = groups.iter().copied().filter(|group| *group != end).collect();
            let needed = pairs(&rest).iter().any(|pair| !cleared.contains(pair));
            match state.weighed.settled(&Aim::Groups(rest.clone())) {
                weigh::State::Good => {}
                weigh::State::Slow => into(state, &rest, cleared, nodes),
                _ if needed => want(state, rest, nodes),
                _ => {}
            }
        }
        return;
    }
    if pairs(groups).iter().all(|pair| cleared.contains(pair)) {
        match state.weighed.tried_out(&aim) {
            true => state
                .open
                .push(format!("groups {groups:?} are slow together, though each of their links is good")),
            false => want(state, groups.to_vec(), nodes),
        }
        return;
    }
    level(state, &blocks(groups), cleared, nodes);
}

/// A link is named where it is slow with two sets of nodes, and both of its groups are well connected otherwise.
fn link(state: &mut State, a: usize, b: usize, nodes: usize) {
    let aim = Aim::Groups(vec![a, b]);
    let Some(weight) = state.weighed.weight(&aim, None).cloned() else {
        return want(state, vec![a, b], nodes);
    };
    let well = |end: usize| {
        state.answers.iter().any(|answer| match &answer.trial.aim {
            Aim::Groups(groups) => {
                groups.contains(&end)
                    && !(groups.contains(&a) && groups.contains(&b))
                    && state.weighed.state(&answer.trial.aim, None) == weigh::State::Good
            }
            _ => false,
        })
    };
    let sets: BTreeSet<&Vec<usize>> = state
        .answers
        .iter()
        .filter(|answer| answer.trial.aim == aim)
        .map(|answer| &answer.trial.nodes)
        .collect();
    if weight.weight >= weigh::PROVEN && weight.tries >= 2 && sets.len() >= 2 {
        match well(a) && well(b) {
            true => state.named.push(Named { place: Place::Link(a, b), left: weight.left() }),
            false => state.open.push(format!(
                "groups {a} and {b}: link is slow, but no other link of one of them is known to be good"
            )),
        }
    } else if state.weighed.tried_out(&aim) {
        state.open.push(format!(
            "groups {a} and {b}: link may be slow, below the detection limit or with low confidence"
        ));
    } else {
        want(state, vec![a, b], nodes);
    }
}
