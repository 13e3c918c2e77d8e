//! Which processes share communicators, whoever made them: the ranks of one job are joined by one at least, so groups
//! of processes that none joins are of several jobs, or did not find each other.

use super::communicators::Communicators;
use std::collections::BTreeMap;

/// The groups by their first process, the largest first, each with how many processes it has. Processes that are in no
/// communicator are in none.
pub(super) fn groups(communicators: &Communicators) -> Vec<(u32, u64)> {
    let mut roots: BTreeMap<u32, u32> = BTreeMap::new();
    for communicator in &communicators.all {
        let mut members = communicator.hosts.iter().copied();
        let Some(first) = members.next() else { continue };
        let first = root(&mut roots, first);
        for member in members {
            let other = root(&mut roots, member);
            let first = root(&mut roots, first);
            // The least process stands for its group.
            roots.insert(first.max(other), first.min(other));
        }
    }
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    let all: Vec<u32> = roots.keys().copied().collect();
    for process in all {
        *sizes.entry(root(&mut roots, process)).or_default() += 1;
    }
    let mut worlds: Vec<(u32, u64)> = sizes.into_iter().collect();
    worlds.sort_by_key(|(first, size)| (std::cmp::Reverse(*size), *first));
    worlds
}

/// Who stands for the group of a process; the way there is made short.
fn root(roots: &mut BTreeMap<u32, u32>, process: u32) -> u32 {
    let mut at = process;
    while let Some(next) = roots.get(&at).copied().filter(|next| *next != at) {
        at = next;
    }
    roots.insert(process, at);
    roots.entry(at).or_insert(at);
    at
}
