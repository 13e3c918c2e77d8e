//! The pairs of `nic-pairs`, in rounds in which no node occurs twice. The plan decides what runs between partners.

/// Pairs of indices into `nodes`, one list per round; within a round no node occurs twice. The nodes form a ring, so
/// that each has two partners, which isolates a bad NIC from a bad partner. Two nodes have only each other.
pub fn rounds(nodes: &[String]) -> Vec<Vec<(usize, usize)>> {
    let count = nodes.len();
    let neighbours =
        |first: usize| (first..count.saturating_sub(1)).step_by(2).map(|at| (at, at + 1)).collect::<Vec<_>>();
    let mut rounds = vec![neighbours(0), neighbours(1)];
    if count > 2 {
        let closing = (count - 1, 0);
        // With an odd count both ends of the ring are taken in the second or the first round already.
        if count.is_multiple_of(2) { rounds[1].push(closing) } else { rounds.push(vec![closing]) }
    }
    rounds.retain(|round| !round.is_empty());
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_of(count: usize) -> Vec<Vec<(usize, usize)>> {
        rounds(&vec![String::new(); count])
    }

    #[test]
    fn small_rings_are_as_written_down() {
        assert!(rounds_of(0).is_empty());
        assert!(rounds_of(1).is_empty());
        assert_eq!(rounds_of(2), [[(0, 1)]]);
        assert_eq!(rounds_of(3), [[(0, 1)], [(1, 2)], [(2, 0)]]);
        assert_eq!(rounds_of(4), [[(0, 1), (2, 3)], [(1, 2), (3, 0)]]);
        assert_eq!(rounds_of(5), [vec![(0, 1), (2, 3)], vec![(1, 2), (3, 4)], vec![(4, 0)]]);
    }

    #[test]
    fn each_node_has_two_partners_and_is_needed_once_a_round() {
        for count in (3..40).chain([1000, 4097]) {
            let mut partners = vec![Vec::new(); count];
            for round in rounds_of(count) {
                let mut busy = vec![false; count];
                for (one, other) in round {
                    assert!(one != other && !busy[one] && !busy[other], "{count} nodes: {one} and {other}");
                    (busy[one], busy[other]) = (true, true);
                    partners[one].push(other);
                    partners[other].push(one);
                }
            }
            for two in partners {
                assert!(two.len() == 2 && two[0] != two[1], "{count} nodes: {two:?}");
            }
            assert_eq!(rounds_of(count).len(), 2 + count % 2);
        }
    }
}
