//! Which nodes run together: new nodes with known-good ones in pairs, in groups that are filled up with them, and all
//! at once. Where no node is known to be good, new nodes run with each other, and those that passed are known to be
//! good from then on.

use config::suite::Placement;
use plan::{Placed, place, ring};
use std::collections::{BTreeMap, BTreeSet};

/// The partners that each node had already.
pub type Had = BTreeMap<String, BTreeSet<String>>;

/// Each node with one partner that it did not have yet, the partners taken in turn. A node for which there is none is in
/// no pair.
pub fn pairs(nodes: &[String], partners: &[String], had: &Had) -> Vec<(String, String)> {
    let mut load: BTreeMap<&str, usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for node in nodes {
        let is_new = |partner: &&String| {
            *partner != node && had.get(node).is_none_or(|those| !those.contains(*partner))
        };
        let least = partners
            .iter()
            .filter(is_new)
            .min_by_key(|partner| load.get(partner.as_str()).copied().unwrap_or_default());
        if let Some(partner) = least {
            *load.entry(partner).or_default() += 1;
            pairs.push((node.clone(), partner.clone()));
        }
    }
    pairs
}

/// One job for each pair, in rounds in which no node is needed twice.
pub fn jobs_of_pairs(pairs: &[(String, String)]) -> Vec<Placed> {
    in_rounds(pairs, &|a, b, round| {
        vec![Placed { name: format!("{a}+{b}"), nodes: vec![a.to_owned(), b.to_owned()], round }]
    })
}

/// Two jobs for each pair, one for each direction.
pub fn flows_of_pairs(pairs: &[(String, String)]) -> Vec<Placed> {
    let flow = |from: &str, to: &str, round| Placed {
        name: format!("{from}-to-{to}"),
        nodes: vec![from.to_owned(), to.to_owned()],
        round,
    };
    in_rounds(pairs, &|a, b, round| vec![flow(a, b, round), flow(b, a, round)])
}

fn in_rounds(pairs: &[(String, String)], jobs: &dyn Fn(&str, &str, u32) -> Vec<Placed>) -> Vec<Placed> {
    let mut busy: BTreeMap<&str, u32> = BTreeMap::new();
    let mut placed = Vec::new();
    for (a, b) in pairs {
        let round = 1 + busy.get(a.as_str()).max(busy.get(b.as_str())).copied().unwrap_or_default();
        busy.insert(a, round);
        busy.insert(b, round);
        placed.extend(jobs(a, b, round));
    }
    placed.sort_by_key(|job| job.round);
    placed
}

/// New nodes among each other, as any suite places them: collectives, and flows along a ring.
pub fn among(nodes: &[String]) -> (Vec<Placed>, Vec<Placed>) {
    (place(&Placement::Pairs, nodes), ring(nodes))
}

/// Groups of one size that cover all nodes; the last is filled up with good ones, and where these are too few with nodes
/// that are in another group too. Nothing where all together are too few.
pub fn groups(nodes: &[String], good: &[String], size: usize) -> Vec<Placed> {
    if nodes.is_empty() || size == 0 {
        return Vec::new();
    }
    let mut placed = Vec::new();
    for chunk in nodes.chunks(size) {
        let mut members = chunk.to_vec();
        let others = good.iter().filter(|one| !nodes.contains(one));
        members.extend(others.take(size - chunk.len()).cloned());
        let mut round = 1;
        if members.len() < size {
            let before: Vec<String> = nodes.iter().filter(|one| !members.contains(one)).cloned().collect();
            let from = before.len().saturating_sub(size - members.len());
            members.splice(0..0, before.into_iter().skip(from));
            round = 2;
        }
        if members.len() < size {
            return Vec::new();
        }
        let name = format!("{}+{}", members.first().map(String::as_str).unwrap_or_default(), size - 1);
        placed.push(Placed { name, nodes: members, round });
    }
    placed
}

/// All at once, on a number of nodes that has a baseline: filled up with good ones, or else in sets of fewer that cover
/// all, of more than half of them each. Else as many as there are, with or without a baseline.
pub fn all(nodes: &[String], good: &[String], known: &dyn Fn(usize) -> bool) -> Vec<Placed> {
    let n = nodes.len();
    let spare = good.iter().filter(|one| !nodes.contains(one)).count();
    let filled = (n..=n + spare).find(|count| *count > 1 && known(*count));
    let fewer = || (2..n).rev().take_while(|count| count * 2 > n).find(|count| known(*count));
    match filled.or_else(fewer) {
        Some(count) => groups(nodes, good, count),
        None if n > 1 => groups(nodes, good, n),
        None => Vec::new(),
    }
}
