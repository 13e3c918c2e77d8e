//! Of the bytes that lines of calls name: what all ranks of a call move together, and what must cross wires for it at
//! least, however it is carried out. What really crossed them is in the counters of the network cards.

use super::call::Operation;

/// At most this many sizes of communicators are kept apart.
const MOST: usize = 256;

/// The bytes of one operation, by how many ranks its communicators have.
#[derive(Debug, Default, Clone)]
pub(super) struct ByRanks {
    sums: Vec<(u64, u128)>,
    /// Whether sizes were left out: then no total is whole.
    beyond: bool,
}

impl ByRanks {
    pub(super) fn add(&mut self, nranks: u64, bytes: u64) {
        if let Some((_, sum)) = self.sums.iter_mut().find(|(ranks, _)| *ranks == nranks) {
            *sum += u128::from(bytes);
        } else if self.sums.len() < MOST {
            self.sums.push((nranks, u128::from(bytes)));
        } else {
            self.beyond = true;
        }
    }

    /// Nothing where it is beyond 64 bits.
    pub(super) fn message(&self, operation: Operation) -> Option<u64> {
        let times = |nranks: u64| if operation.counts_one_peer() { nranks } else { 1 };
        self.total(|nranks, bytes| bytes.checked_mul(u128::from(times(nranks))))
    }

    pub(super) fn wire(&self, operation: Operation) -> Option<u64> {
        self.total(|nranks, bytes| {
            let (times, over) = share(operation, nranks);
            bytes.checked_mul(u128::from(times)).map(|all| all / u128::from(over.max(1)))
        })
    }

    fn total(&self, one: impl Fn(u64, u128) -> Option<u128>) -> Option<u64> {
        let sum =
            self.sums.iter().try_fold(0_u128, |all, (nranks, bytes)| all.checked_add(one(*nranks, *bytes)?));
        sum.filter(|_| !self.beyond)?.try_into().ok()
    }
}

/// What leaves the GPU of one line's rank, of the bytes that the line names, as the mean over all ranks of the call: a
/// number of times, over another. No switch is taken to add up; a rank sends itself nothing.
fn share(operation: Operation, nranks: u64) -> (u64, u64) {
    let others = nranks.saturating_sub(1);
    match operation {
        // All but the own part is given away, and so is all but the own part of the sum.
        Operation::AllReduce => (2 * others, nranks),
        Operation::AllGather | Operation::AlltoAll | Operation::ReduceScatter => (others, 1),
        // One rank has or gets it; the others' lines name the same bytes.
        Operation::Broadcast | Operation::Gather | Operation::Reduce | Operation::Scatter => (others, nranks),
        Operation::PutSignal | Operation::Send => (1, 1),
        // What arrives is counted where it leaves.
        Operation::Recv | Operation::Signal | Operation::WaitSignal => (0, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_all_ranks_together_is_known_for_each_operation() {
        // By hand, for four ranks whose lines name twelve bytes each.
        let table = [
            (Operation::AllReduce, 48, 72),
            (Operation::AllGather, 192, 144),
            (Operation::ReduceScatter, 192, 144),
            (Operation::AlltoAll, 192, 144),
            (Operation::Broadcast, 48, 36),
            (Operation::Reduce, 48, 36),
            (Operation::Gather, 192, 36),
            (Operation::Scatter, 192, 36),
            (Operation::Send, 48, 48),
            (Operation::Recv, 48, 0),
            (Operation::PutSignal, 48, 48),
            (Operation::Signal, 48, 0),
            (Operation::WaitSignal, 48, 0),
        ];
        for (operation, message, wire) in table {
            let mut sums = ByRanks::default();
            (0..4).for_each(|_| sums.add(4, 12));
            assert_eq!(
                (sums.message(operation), sums.wire(operation)),
                (Some(message), Some(wire)),
                "{operation:?}"
            );
        }
    }

    #[test]
    fn a_rank_alone_sends_nothing_and_sizes_beyond_the_most_make_no_total() {
        let mut sums = ByRanks::default();
        sums.add(1, 1 << 40);
        assert_eq!(sums.wire(Operation::AllReduce), Some(0));
        (0..=256).for_each(|nranks| sums.add(nranks, 1));
        assert_eq!((sums.wire(Operation::AllReduce), sums.message(Operation::AllReduce)), (None, None));
        let mut sums = ByRanks::default();
        sums.add(8, u64::MAX);
        assert_eq!(sums.wire(Operation::AllGather), None, "beyond 64 bits");
    }
}
