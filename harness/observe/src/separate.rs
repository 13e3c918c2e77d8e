//! Whom slow communicators have in common. All members of a ring go at the pace of its slowest link, so a slow communicator
//! blames none of them by itself: a process is left where every other one is also in a communicator that is not slow.

use std::collections::{BTreeMap, BTreeSet};

/// A part of the processes that explains some of the slow communicators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explained {
    /// One of them, all equally likely; none where each is cleared by another communicator.
    pub processes: BTreeSet<u32>,
    /// Places in the list of the slow ones.
    pub slow: Vec<usize>,
}

/// The fewest processes that explain the slow communicators, those that explain most first.
pub(crate) fn separate(slow: &[BTreeSet<u32>], clear: &[BTreeSet<u32>]) -> Vec<Explained> {
    let cleared: BTreeSet<u32> = clear.iter().flatten().copied().collect();
    let mut open: Vec<usize> = (0..slow.len()).collect();
    let mut found = Vec::new();
    while !open.is_empty() {
        let mut explains: BTreeMap<u32, usize> = BTreeMap::new();
        for process in open.iter().flat_map(|at| &slow[*at]).filter(|it| !cleared.contains(it)) {
            *explains.entry(*process).or_default() += 1;
        }
        let Some(most) = explains.values().copied().max() else {
            found.push(Explained { processes: BTreeSet::new(), slow: std::mem::take(&mut open) });
            break;
        };
        let best: BTreeSet<u32> = explains.iter().filter(|(_, n)| **n == most).map(|(it, _)| *it).collect();
        // Those that are in the same slow ones as the first cannot be distinguished from it.
        let first = best.first().copied().unwrap_or_default();
        let of_first: Vec<usize> = open.iter().copied().filter(|at| slow[*at].contains(&first)).collect();
        let is_alike = |process: &u32| of_first.iter().all(|at| slow[*at].contains(process));
        let processes = best.into_iter().filter(is_alike).collect();
        open.retain(|at| !of_first.contains(at));
        found.push(Explained { processes, slow: of_first });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(all: &[&[u32]]) -> Vec<BTreeSet<u32>> {
        all.iter().map(|set| set.iter().copied().collect()).collect()
    }

    fn found(slow: &[&[u32]], clear: &[&[u32]]) -> Vec<Vec<u32>> {
        let found = separate(&sets(slow), &sets(clear));
        found.into_iter().map(|one| one.processes.into_iter().collect()).collect()
    }

    #[test]
    fn the_process_in_which_slow_rows_and_columns_cross_is_left() {
        let slow: [&[u32]; 2] = [&[0, 1, 2, 3], &[1, 5, 9]];
        let clear: [&[u32]; 5] = [&[4, 5, 6, 7], &[8, 9, 10, 11], &[0, 4, 8], &[2, 6, 10], &[3, 7, 11]];
        assert_eq!(found(&slow, &clear), [vec![1]]);
        assert_eq!(found(&slow, &[]), [vec![1]], "no other process is in both");
    }

    #[test]
    fn what_is_not_separable_is_given_as_the_smallest_set() {
        assert_eq!(found(&[&[0, 1, 2, 3]], &[&[4, 5, 6, 7]]), [vec![0, 1, 2, 3]]);
        assert_eq!(found(&[&[0, 1, 2, 3]], &[&[2, 3]]), [vec![0, 1]]);
        assert_eq!(found(&[&[0, 1]], &[&[0, 2], &[1, 3]]), [Vec::<u32>::new()], "each is cleared");
    }

    #[test]
    fn two_faults_are_two_sets() {
        let slow: [&[u32]; 4] = [&[0, 1], &[0, 2], &[7, 8], &[7, 9]];
        assert_eq!(found(&slow, &[]), [vec![0], vec![7]]);
    }
}
