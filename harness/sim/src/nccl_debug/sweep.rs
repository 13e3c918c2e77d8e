//! What NCCL writes between the lines of a program of nccl-tests: its beginning, and the calls before each row of the
//! table.

use super::writers::{Membership, Rank, Writers, handle};
use crate::active_faults::{ActiveFaults, Ending};
use crate::cluster::Cluster;
use crate::execution::Execution;
use crate::nccl;
use crate::nccl_wanted::Wanted;
use crate::options::Options;
use crate::pci;
use crate::rounds::{Round, RoundKind};
use crate::work::{Table, noise_of};
use metric::op::Op;

/// A program's job as its log needs it.
struct Context<'a> {
    cluster: &'a Cluster,
    active_faults: &'a ActiveFaults,
    table: &'a Table,
    hosts: &'a [String],
    first_pid: u64,
    /// Seconds from the program's first call to the moment that it stopped, or that is looked at.
    stop_s: f64,
    /// Whether nothing comes behind it.
    ended: bool,
}

/// What a program printed up to a moment, with the lines of NCCL where the job asks for them; and whether nothing comes
/// behind it.
pub fn added(
    cluster: &Cluster,
    execution: &Execution,
    table: &Table,
    (stop_s, ended): (f64, bool),
    printed: String,
) -> String {
    let Some(wanted) = &execution.debug else { return printed };
    let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
    let context = Context {
        cluster,
        active_faults: &execution.active_faults,
        table,
        hosts: execution.nodes.get(table.world.nodes.clone()).unwrap_or_default(),
        // The same draw as the head of the table makes.
        first_pid: nccl::first_pid(&mut noise_of(cluster, &execution.case, &execution.job, &what)),
        stop_s,
        ended,
    };
    woven(wanted, &context, &printed)
}

/// The lines of the program with those of NCCL between them.
fn woven(wanted: &Wanted, context: &Context, printed: &str) -> String {
    let Context { cluster, active_faults, first_pid, .. } = *context;
    let log = Log {
        context,
        writers: Writers { wanted, cluster, active_faults, first_pid, ranks: ranks(context) },
    };
    let all = context.table.rounds();
    let last = all.iter().rposition(|round| round.from_s < context.stop_s);
    let mut rounds = all.iter().enumerate().map(|(at, round)| (Some(at) == last, round)).peekable();
    let mut text = String::new();
    let mut counts = vec![0_u64; log.writers.ranks.len()];
    let mut ends = context.table.ends().into_iter();
    let mut begun = false;
    for line in printed.split_inclusive('\n') {
        let is_row = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        // The list of devices stands before NCCL is called, the heads of the columns behind.
        if !begun && (line.starts_with("#       size") || is_row) {
            begun = true;
            log.beginning(&mut text);
        }
        if is_row {
            // Before a row that breaks off stands all that was called.
            let end = ends.next().filter(|_| line.ends_with('\n')).unwrap_or(f64::INFINITY);
            while let Some((is_last, round)) = rounds.next_if(|(_, round)| round.from_s < end) {
                log.round(round, is_last, &mut counts, &mut text);
            }
        }
        text.push_str(line);
    }
    // What was called and did not come to its row.
    for (is_last, round) in rounds.filter(|_| begun) {
        log.round(round, is_last, &mut counts, &mut text);
    }
    text
}

struct Log<'a> {
    context: &'a Context<'a>,
    writers: Writers<'a>,
}

/// Its communicator among those side by side, and its rank there.
fn rank_in_group(table: &Table, rank: usize) -> (u64, u64) {
    let side_by_side = table.world.group.side_by_side.max(1) as usize;
    ((rank % side_by_side) as u64, (rank / side_by_side) as u64)
}

fn ranks(context: &Context) -> Vec<Rank> {
    let (table, cluster) = (context.table, context.cluster);
    let per_node = (table.ranks as usize / context.hosts.len().max(1)).max(1);
    let one = |rank: usize| {
        let (node, local) = (rank / per_node, rank % per_node);
        let gpu = table.world.gpu.map_or(local, |gpu| gpu as usize + local);
        let gpus = table.options.gpus.max(1) as usize;
        Rank {
            host: context
                .hosts
                .get(node)
                .map_or("", |host| host.split('.').next().unwrap_or(host))
                .to_owned(),
            node: table.world.nodes.start + node,
            pid: context.first_pid + (rank / gpus) as u64,
            device: local,
            bus: pci::bus(cluster.gpus, gpu),
        }
    };
    (0..table.ranks as usize).map(one).collect()
}

impl Log<'_> {
    /// All ranks together, and those of each group where there are several.
    fn beginning(&self, text: &mut String) {
        let (writers, group) = (&self.writers, self.context.table.world.group);
        let nranks = writers.ranks.len() as u64;
        for rank in 0..writers.ranks.len() {
            writers.environment(rank, text);
        }
        let id = writers.world_id();
        let world =
            |rank: usize| Some(Membership { own: rank as u64, nranks, id, color: 0, first: 0, apart: 1 });
        writers.communicator(("ncclCommInitRank", 0), &world, &|_| true, text);
        if group.side_by_side > 1 {
            let own = |rank: usize| {
                let (color, own) = rank_in_group(self.context.table, rank);
                let (nranks, id) = (u64::from(group.ranks), id + 1 + color);
                Some(Membership {
                    own,
                    nranks,
                    id,
                    color,
                    first: color as usize,
                    apart: group.side_by_side as usize,
                })
            };
            writers.communicator(("ncclCommSplit", 1), &own, &|_| true, text);
        }
    }

    /// The calls of a round, as far as it came; of the node whose fault stopped it, the last one is missing.
    fn round(&self, round: &Round, is_last: bool, counts: &mut [u64], text: &mut String) {
        if !self.writers.wanted.has("COLL") || round.from_s >= self.context.stop_s {
            return;
        }
        let done = (self.context.stop_s - round.from_s) / (round.us.max(1e-3) * 1e-6);
        let iterations = round.iterations.min((done.max(0.0) as u32).saturating_add(1));
        let stopped = match self.context.active_faults.ending {
            Some((Ending::Hang | Ending::RankDies, node)) if is_last && self.context.ended => Some(node),
            _ => None,
        };
        // What a graph launches again was called once.
        let calls = match round.kind {
            RoundKind::Timed => iterations / self.context.table.options.graph_launches.max(1),
            _ => iterations,
        };
        let calls = calls.max(1) * round.aggregated;
        for at in 0..calls {
            for rank in 0..self.writers.ranks.len() {
                let is_missing = self.writers.ranks.get(rank).is_some_and(|it| Some(it.node) == stopped);
                if !(is_missing && at + 1 == calls) {
                    self.call(rank, round, counts, text);
                }
            }
        }
    }

    fn call(&self, rank: usize, round: &Round, counts: &mut [u64], text: &mut String) {
        let options = &self.context.table.options;
        let group = self.context.table.world.group;
        let (nranks, comm) = match group.side_by_side {
            0 | 1 => (self.writers.ranks.len() as u64, handle(0, rank)),
            _ => (u64::from(group.ranks), handle(1, rank)),
        };
        let Some(count) = counts.get_mut(rank) else { return };
        let (_, own) = rank_in_group(self.context.table, rank);
        let (datatype, redop) = (datatype(options), redop(options));
        if own == 0 && self.writers.wanted.has("TUNING") && !is_of_messages(options.op) {
            let (algorithm, protocol) =
                if round.bytes < 1 << 20 { ("TREE", "LL") } else { ("RING", "SIMPLE") };
            let name = calls(options.op, own, nranks).first().map_or("", |(name, ..)| *name);
            let bytes = round.count * options.element_bytes();
            let what = format!(
                "{name}: {bytes} Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..0}}"
            );
            self.writers.line(rank, &what, text);
        }
        for (name, root, times) in calls(options.op, own, nranks) {
            let recv = if round.in_place { 0x7f20_0000_0000_u64 } else { 0x7f30_0000_0000 };
            let send = match name {
                "Send" | "Recv" => "(nil)".to_owned(),
                _ => "0x7f2000000000".to_owned(),
            };
            let what = format!(
                "{name}: opCount {count:x} sendbuff {send} recvbuff 0x{recv:x} count {} datatype {datatype} op {redop} root {root} comm \
                 0x{comm:x} [nranks={nranks}] stream 0x{:x}",
                round.count * times,
                0x5560_0000_0000_u64 + rank as u64 * 0x100
            );
            self.writers.line(rank, &what, text);
        }
        *count += 1;
    }
}

fn is_of_messages(op: Op) -> bool {
    matches!(op, Op::AllToAll | Op::Gather | Op::Scatter | Op::SendRecv | Op::Hypercube)
}

/// What one operation of the program calls on a rank: name, root or peer, and how many times its count.
fn calls(op: Op, own: u64, nranks: u64) -> Vec<(&'static str, u64, u64)> {
    let all = |name: &'static str| (0..nranks).map(move |peer| (name, peer, 1));
    match op {
        Op::AllReduce => vec![("AllReduce", 0, 1)],
        Op::AllGather => vec![("AllGather", 0, 1)],
        Op::ReduceScatter => vec![("ReduceScatter", 0, 1)],
        Op::Broadcast => vec![("Broadcast", 0, 1)],
        Op::Reduce => vec![("Reduce", 0, 1)],
        Op::AllToAll => all("Send").chain(all("Recv")).collect(),
        Op::Gather => {
            let root = (own == 0).then(|| all("Recv"));
            std::iter::once(("Send", 0, 1)).chain(root.into_iter().flatten()).collect()
        }
        Op::Scatter => {
            let root = (own == 0).then(|| all("Send"));
            root.into_iter().flatten().chain(std::iter::once(("Recv", 0, 1))).collect()
        }
        Op::SendRecv => vec![("Send", (own + 1) % nranks, 1), ("Recv", (own + nranks - 1) % nranks, 1)],
        Op::Hypercube => {
            let steps =
                std::iter::successors(Some(1_u64), |mask| Some(mask * 2)).take_while(|mask| *mask < nranks);
            let peers = steps.map(|mask| (own ^ mask, mask)).filter(|(peer, _)| *peer < nranks);
            peers.flat_map(|(peer, mask)| [("Send", peer, mask), ("Recv", peer, mask)]).collect()
        }
    }
}

/// The number of the element's type.
fn datatype(options: &Options) -> u64 {
    const NAMES: [&str; 12] = [
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
        "f8e4m3", "f8e5m2",
    ];
    NAMES.iter().position(|name| *name == options.dtype).unwrap_or(0) as u64
}

fn redop(options: &Options) -> u64 {
    let (redop, _) = nccl::redop_and_root(options);
    ["sum", "prod", "max", "min", "avg", "mulsum"].iter().position(|name| *name == redop).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn operations_of_messages_send_as_often_as_they_receive() {
        for op in [Op::AllToAll, Op::Gather, Op::Scatter, Op::SendRecv, Op::Hypercube] {
            let mut pairs: BTreeMap<(u64, u64), i64> = BTreeMap::new();
            for own in 0..8 {
                for (name, peer, times) in calls(op, own, 8) {
                    match name {
                        "Send" => *pairs.entry((own, peer)).or_default() += times as i64,
                        _ => *pairs.entry((peer, own)).or_default() -= times as i64,
                    }
                }
            }
            assert!(!pairs.is_empty() && pairs.values().all(|left| *left == 0), "{op:?}: {pairs:?}");
        }
    }
}
