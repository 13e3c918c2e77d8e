//! The least that the logged calls must move between nodes, by the algorithm that the log names.

use super::logged::{Communicator, Log, Logged, Member};
use logs::nccl_debug::Operation;
use nsys::nccl::Function;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Least {
    /// Sent by all nodes together.
    pub bytes: u128,
    /// Of it, by what the calls are carried out.
    pub by: BTreeMap<String, u128>,
}

/// Of a communicator that spans nodes.
struct Spread {
    ranks: u128,
    nodes: u128,
    /// Ordered pairs of ranks on two nodes.
    pairs: u128,
}

pub(super) fn least(log: &Log) -> Result<Least, String> {
    let mut least = Least::default();
    for (communicator, nranks) in communicators(log) {
        let hosts = log.hosts(communicator);
        if (hosts.len() as u64) < nranks {
            return Err(format!(
                "hosts are known for only {} of a communicator's {nranks} ranks",
                hosts.len()
            ));
        }
        let mut per_node: BTreeMap<&str, u128> = BTreeMap::new();
        hosts.values().for_each(|host| *per_node.entry(host).or_default() += 1);
        if per_node.len() < 2 {
            continue;
        }
        let ranks = u128::from(nranks);
        let within: u128 = per_node.values().map(|count| count * count).sum();
        let spread =
            Spread { ranks, nodes: per_node.len() as u128, pairs: (ranks * ranks).saturating_sub(within) };
        let mut collectives = collectives(log, communicator);
        for (call, member) in collectives.drain(..) {
            let bytes = call.bytes.ok_or("a call has a data type of unknown size")?;
            let by = log.choice(call.operation, bytes).unwrap_or("any algorithm");
            let root = hosts.get(&call.root).and_then(|host| per_node.get(host)).copied().unwrap_or(1);
            let moved = collective(&call, u128::from(bytes), by, &spread, root).ok_or_else(|| {
                format!(
                    "the least traffic of `{}` on {} ranks is unknown",
                    call.operation.name(),
                    member.nranks
                )
            })?;
            least.add(by, moved);
        }
        for (call, member) in sends(log, communicator) {
            let bytes = call.bytes.ok_or("a call has a data type of unknown size")?;
            if hosts.get(&member.rank) != hosts.get(&call.root) {
                least.add("Send", u128::from(bytes));
            }
        }
    }
    Ok(least)
}

impl Least {
    fn add(&mut self, by: &str, bytes: u128) {
        self.bytes += bytes;
        *self.by.entry(by.to_owned()).or_default() += bytes;
    }
}

fn communicators(log: &Log) -> BTreeMap<Communicator, u64> {
    let members = log.processes.values().flat_map(|process| process.members.values());
    members.map(|member| (member.communicator, member.nranks)).collect()
}

/// Each collective once, by the log of the lowest rank that has any.
fn collectives(log: &Log, communicator: Communicator) -> Vec<(Logged, Member)> {
    let mut of_rank: BTreeMap<u64, Vec<(Logged, Member)>> = BTreeMap::new();
    for (call, member) in calls(log, communicator).filter(|(call, _)| call.operation.is_collective()) {
        of_rank.entry(member.rank).or_default().push((call, member));
    }
    of_rank.into_values().next().unwrap_or_default()
}

fn sends(log: &Log, communicator: Communicator) -> impl Iterator<Item = (Logged, Member)> {
    calls(log, communicator).filter(|(call, _)| call.operation == Operation::Send)
}

fn calls(log: &Log, communicator: Communicator) -> impl Iterator<Item = (Logged, Member)> {
    log.processes.values().flat_map(move |process| {
        let member = move |call: &Logged| process.members.get(&call.comm).map(|member| (*call, *member));
        process.calls.iter().filter_map(member).filter(move |(_, member)| member.communicator == communicator)
    })
}

/// The bytes that leave all nodes together. A ring crosses from node to node once for each node; with any other
/// algorithm each node must send and receive what the others need.
fn collective(call: &Logged, bytes: u128, by: &str, spread: &Spread, on_root: u128) -> Option<u128> {
    let Spread { ranks, nodes, pairs } = *spread;
    let is_ring = by.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word.eq_ignore_ascii_case("ring"));
    // The whole message, where a line names the part of one rank.
    let whole = if call.operation.counts_one_peer() { bytes.checked_mul(ranks)? } else { bytes };
    let around =
        |times: u128| Some(nodes.checked_mul(times)?.checked_mul(ranks - 1)?.checked_mul(whole)? / ranks);
    match call.function()? {
        Function::AllReduce if is_ring => around(2),
        Function::AllReduce => (2 * (nodes - 1)).checked_mul(whole),
        Function::AllGather | Function::ReduceScatter if is_ring => around(1),
        Function::AllGather | Function::ReduceScatter | Function::Broadcast | Function::Reduce => {
            (nodes - 1).checked_mul(whole)
        }
        Function::AllToAll => pairs.checked_mul(bytes),
        Function::Gather | Function::Scatter => (ranks - on_root).checked_mul(bytes),
        _ => None,
    }
}

/// The names of what carried the calls out, the one of the most bytes first.
pub(super) fn algorithms(least: &Least) -> String {
    let mut by: Vec<(&String, &u128)> = least.by.iter().filter(|(_, bytes)| **bytes > 0).collect();
    by.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    let names: BTreeSet<&str> = by.iter().take(3).map(|(name, _)| name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(operation: Operation, bytes: u128, by: &str, ranks: u128, nodes: u128) -> Option<u128> {
        let call = Logged { operation, bytes: None, comm: 0, op_count: 0, root: 0 };
        let per = ranks / nodes;
        let spread = Spread { ranks, nodes, pairs: ranks * ranks - nodes * per * per };
        collective(&call, bytes, by, &spread, per)
    }

    #[test]
    fn the_least_is_that_of_the_algorithm() {
        let table = [
            // 16 ranks on 2 nodes: around the ring 2 * 15/16 of the message leave each of them.
            (Operation::AllReduce, 1600, "RING SIMPLE", 6000),
            (Operation::AllReduce, 1600, "TREE LL", 3200),
            (Operation::AllReduce, 1600, "NVLS_TREE SIMPLE", 3200),
            (Operation::AllReduce, 1600, "any algorithm", 3200),
            (Operation::AllGather, 100, "RING LL128", 3000),
            (Operation::AllGather, 100, "PAT SIMPLE", 1600),
            (Operation::ReduceScatter, 100, "RING SIMPLE", 3000),
            (Operation::Broadcast, 100, "RING SIMPLE", 100),
            (Operation::Reduce, 100, "TREE SIMPLE", 100),
            (Operation::AlltoAll, 100, "any algorithm", 128 * 100),
            (Operation::Gather, 100, "any algorithm", 800),
        ];
        for (operation, bytes, by, expected) in table {
            assert_eq!(moved(operation, bytes, by, 16, 2), Some(expected), "{operation:?} by {by}");
        }
        assert_eq!(moved(Operation::Signal, 1, "any algorithm", 16, 2), None);
        assert_eq!(moved(Operation::AllReduce, u128::MAX, "TREE LL", 16, 2), None);
    }
}
