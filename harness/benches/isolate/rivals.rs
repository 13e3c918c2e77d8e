//! Other ways to find slow nodes, against the same answering fleet: ours, every pair, halves of halves, and the scheme
//! that NVIDIA published for its Cluster Readiness Engine (ADR-055), as far as it is written down there.

use std::collections::{BTreeMap, BTreeSet};
use verdict::isolate::Place;
use verdict::isolate::cost_estimate::play;
use verdict::isolate::model::Model;

#[derive(Default)]
pub(crate) struct Found {
    pub nodes: BTreeSet<usize>,
    pub runs: usize,
    pub rounds: usize,
    pub node_runs: usize,
}

pub(crate) type Strategy = fn(&mut Model) -> Found;

pub(crate) const ALL: [(&str, Strategy); 4] =
    [("ours", ours), ("all pairs", all_pairs), ("bisection", bisection), ("CRE", readiness_engine)];

const SLOW: f64 = 0.9;

fn ours(model: &mut Model) -> Found {
    let played = play(model);
    let named = played.conclusion.named.iter().filter_map(|named| named.place.node());
    Found { nodes: named.collect(), runs: played.runs, rounds: played.rounds, node_runs: played.node_runs }
}

/// A node is slow where most of its pairs are.
fn all_pairs(model: &mut Model) -> Found {
    let nodes = model.fleet.nodes();
    let mut slow: BTreeMap<usize, usize> = BTreeMap::new();
    for a in 0..nodes {
        for b in a + 1..nodes {
            if model.together(&[a, b]) < SLOW {
                [a, b].iter().for_each(|node| *slow.entry(*node).or_default() += 1);
            }
        }
    }
    let named = slow.iter().filter(|(_, pairs)| **pairs * 2 > nodes).map(|(node, _)| *node);
    Found {
        nodes: named.collect(),
        runs: nodes * (nodes - 1) / 2,
        rounds: nodes - 1,
        node_runs: nodes * (nodes - 1),
    }
}

impl Found {
    /// Runs side by side.
    fn round(&mut self, model: &mut Model, sets: &[Vec<usize>]) -> Vec<bool> {
        self.rounds += usize::from(!sets.is_empty());
        self.runs += sets.len();
        self.node_runs += sets.iter().map(Vec::len).sum::<usize>();
        sets.iter().map(|set| model.together(set) < SLOW).collect()
    }
}

/// All nodes, then the halves of what is slow. One node is tried by itself in the end, and a NIC does not show there:
/// two are left then, so the smallest set is padded with a node of a set that was good.
fn bisection(model: &mut Model) -> Found {
    let mut found = Found::default();
    let mut sets = vec![(0..model.fleet.nodes()).collect::<Vec<usize>>()];
    let mut good: Vec<usize> = Vec::new();
    while !sets.is_empty() {
        let padded: Vec<Vec<usize>> = sets.iter().map(|set| padded(set, &good)).collect();
        let slow = found.round(model, &padded);
        let mut next = Vec::new();
        for (set, _) in sets.iter().zip(&slow).filter(|(_, slow)| !**slow) {
            good.extend(set);
        }
        for (set, _) in sets.iter().zip(&slow).filter(|(_, slow)| **slow) {
            match set.as_slice() {
                [node] => {
                    found.nodes.insert(*node);
                }
                _ => next.extend(set.chunks(set.len().div_ceil(2)).map(<[usize]>::to_vec)),
            }
        }
        sets = next;
    }
    found
}

fn padded(set: &[usize], good: &[usize]) -> Vec<usize> {
    match (set, good.first()) {
        ([node], Some(with)) => vec![*node, *with],
        _ => set.to_vec(),
    }
}

/// Each domain as a unit, the same without NVLink, one representative of each healthy domain together, halves of what is
/// slow with a good node beside a single one, each suspect with another good node, and pairs of representatives.
fn readiness_engine(model: &mut Model) -> Found {
    let mut found = Found::default();
    let fleet = model.fleet;
    let domains: Vec<Vec<usize>> = fleet
        .all_groups()
        .iter()
        .map(|group| (0..fleet.nodes()).filter(|node| fleet.group(*node) == *group).collect())
        .collect();
    let slow = found.round(model, &domains);
    let over_fabric =
        model.faults.iter().filter(|fault| !matches!(fault.place, Place::NvLink(_))).copied().collect();
    let all = std::mem::replace(&mut model.faults, over_fabric);
    found.round(model, &domains);
    model.faults = all;
    let mut good: Vec<usize> = Vec::new();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut representatives: Vec<usize> = Vec::new();
    for (domain, slow) in domains.iter().zip(slow) {
        match slow {
            true => sets.extend(domain.chunks(domain.len().div_ceil(2)).map(<[usize]>::to_vec)),
            false => {
                good.extend(domain);
                representatives.extend(domain.first());
            }
        }
    }
    if representatives.len() > 1 && found.round(model, &[representatives.clone()]) == [true] {
        let pairs: Vec<Vec<usize>> = representatives
            .iter()
            .enumerate()
            .flat_map(|(at, a)| representatives.iter().skip(at + 1).map(|b| vec![*a, *b]).collect::<Vec<_>>())
            .collect();
        // A representative takes part in one pair at a time.
        let slow = found.round(model, &pairs);
        found.rounds += representatives.len() - 2;
        let mut of: BTreeMap<usize, usize> = BTreeMap::new();
        for (pair, _) in pairs.iter().zip(slow).filter(|(_, slow)| *slow) {
            pair.iter().for_each(|node| *of.entry(*node).or_default() += 1);
        }
        sets.extend(of.iter().filter(|(_, n)| **n * 2 > representatives.len()).map(|(node, _)| vec![*node]));
    }
    let mut suspects: Vec<usize> = Vec::new();
    while !sets.is_empty() {
        let padded: Vec<Vec<usize>> = sets.iter().map(|set| padded(set, &good)).collect();
        let slow = found.round(model, &padded);
        let mut next = Vec::new();
        for (set, slow) in sets.iter().zip(slow) {
            match (slow, set.as_slice()) {
                (false, _) => {}
                (true, [node]) => suspects.push(*node),
                (true, _) => next.extend(set.chunks(set.len().div_ceil(2)).map(<[usize]>::to_vec)),
            }
        }
        sets = next;
    }
    let confirm: Vec<Vec<usize>> =
        suspects.iter().zip(good.iter().rev()).map(|(suspect, with)| vec![*suspect, *with]).collect();
    let slow = found.round(model, &confirm);
    found.nodes.extend(suspects.iter().zip(slow).filter(|(_, slow)| *slow).map(|(node, _)| *node));
    found
}
