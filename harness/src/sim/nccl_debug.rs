//! What NCCL itself writes between the lines of a program of nccl-tests where `NCCL_DEBUG=INFO` asks for it: how its communicators begin,
//! over which network, and each call. It is rendered from the facts that the table is made of; reading it is the recipes' business.

use super::ailments::{Ailments, Ending};
use super::cluster::Cluster;
use super::course::Course;
use super::nccl;
use super::options::Options;
use super::rounds::{Kind, Round};
use super::work::{Table, noise_of};
use recipes::op::Op;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a job's environment asks NCCL to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    subsystems: Vec<String>,
}

impl Wanted {
    /// Nothing where nothing is asked for, or it is written elsewhere.
    pub fn of(variables: &BTreeMap<String, String>) -> Option<Wanted> {
        let is_info = |level: &String| ["info", "trace"].contains(&level.to_ascii_lowercase().as_str());
        variables.get("NCCL_DEBUG").filter(|level| is_info(level))?;
        if variables.contains_key("NCCL_DEBUG_FILE") {
            return None;
        }
        let subsystems = variables.get("NCCL_DEBUG_SUBSYS").map_or("INIT,ENV", String::as_str);
        Some(Wanted {
            subsystems: subsystems.split(',').map(|word| word.trim().to_ascii_uppercase()).collect(),
        })
    }

    fn has(&self, subsystem: &str) -> bool {
        self.subsystems.iter().any(|known| known == subsystem || known == "ALL")
    }
}

/// A program's job as its log needs it.
struct Told<'a> {
    cluster: &'a Cluster,
    ailments: &'a Ailments,
    table: &'a Table,
    hosts: &'a [String],
    first_pid: u64,
    /// Seconds from the program's first call to the moment that it stopped, or that is looked at.
    stop_s: f64,
    /// Whether nothing comes behind it.
    ended: bool,
}

/// What a program printed up to a moment, with the lines of NCCL where the job asks for them; and whether nothing comes behind it.
pub fn added(
    cluster: &Cluster,
    course: &Course,
    table: &Table,
    (stop_s, ended): (f64, bool),
    printed: String,
) -> String {
    let Some(wanted) = &course.debug else { return printed };
    let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
    let told = Told {
        cluster,
        ailments: &course.ailments,
        table,
        hosts: course.nodes.get(table.world.nodes.clone()).unwrap_or_default(),
        // The same draw as the head of the table makes.
        first_pid: nccl::first_pid(&mut noise_of(cluster, &course.case, &course.job, &what)),
        stop_s,
        ended,
    };
    woven(wanted, &told, &printed)
}

/// The lines of the program with those of NCCL between them.
fn woven(wanted: &Wanted, told: &Told, printed: &str) -> String {
    let log = Log { wanted, told, ranks: ranks(told) };
    let all = told.table.rounds();
    let last = all.iter().rposition(|round| round.from_s < told.stop_s);
    let mut rounds = all.iter().enumerate().map(|(at, round)| (Some(at) == last, round)).peekable();
    let mut text = String::new();
    let mut counts = vec![0_u64; log.ranks.len()];
    let mut ends = told.table.ends().into_iter();
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

struct Rank {
    host: String,
    node: usize,
    pid: u64,
    device: usize,
    bus: usize,
    /// Its communicator among those side by side, and its rank there.
    group: u64,
    own: u64,
}

struct Log<'a> {
    wanted: &'a Wanted,
    told: &'a Told<'a>,
    ranks: Vec<Rank>,
}

fn ranks(told: &Told) -> Vec<Rank> {
    let (table, cluster) = (told.table, told.cluster);
    let per_node = (table.ranks as usize / told.hosts.len().max(1)).max(1);
    let side_by_side = table.world.group.side_by_side.max(1) as usize;
    let one = |rank: usize| {
        let (node, local) = (rank / per_node, rank % per_node);
        let gpu = table.world.gpu.map_or(local, |gpu| gpu as usize + local);
        let gpus = table.options.gpus.max(1) as usize;
        Rank {
            host: told.hosts.get(node).map_or("", |host| host.split('.').next().unwrap_or(host)).to_owned(),
            node: table.world.nodes.start + node,
            pid: told.first_pid + (rank / gpus) as u64,
            device: local,
            bus: nccl::bus(cluster.gpus, gpu),
            group: (rank % side_by_side) as u64,
            own: (rank / side_by_side) as u64,
        }
    };
    (0..table.ranks as usize).map(one).collect()
}

impl Log<'_> {
    fn line(&self, rank: usize, what: &str, text: &mut String) {
        let Some(Rank { host, pid, device, .. }) = self.ranks.get(rank) else { return };
        // Infallible: writing to a string.
        let _ = writeln!(text, "{host}:{pid}:{} [{device}] NCCL INFO {what}", pid + 1);
    }

    /// All ranks together, and those of each group where there are several.
    fn beginning(&self, text: &mut String) {
        let group = self.told.table.world.group;
        for rank in 0..self.ranks.len() {
            self.environment(rank, text);
        }
        let world = |rank: usize| (rank as u64, self.ranks.len() as u64, self.world_id());
        self.communicator("ncclCommInitRank", 0, &world, text);
        if group.side_by_side > 1 {
            let own = |rank: usize| {
                let it = self.ranks.get(rank);
                let (own, which) = it.map_or((0, 0), |it| (it.own, it.group));
                (own, u64::from(group.ranks), self.world_id() + 1 + which)
            };
            self.communicator("ncclCommSplit", 1, &own, text);
        }
    }

    fn environment(&self, rank: usize, text: &mut String) {
        let Some(it) = self.ranks.get(rank) else { return };
        let ailments = self.told.ailments;
        if self.wanted.has("INIT") {
            if rank == 0 {
                self.line(rank, "NCCL version 2.27.7+cuda12.9", text);
            }
            self.line(rank, "cudaDriverVersion 12090", text);
            self.line(rank, &format!("Bootstrap: Using ens32:10.0.0.{}<0>", it.node % 250 + 1), text);
        }
        if self.wanted.has("INIT") || self.wanted.has("NET") {
            let nics = self.told.cluster.nics.len();
            let found = (0..nics).filter(|nic| !ailments.nic_is_missing(it.node, *nic)).count();
            self.line(rank, "NET/OFI Initializing aws-ofi-nccl 1.16.3", text);
            self.line(rank, "NET/OFI Using Libfabric version 2.1", text);
            let what = format!("NET/OFI Selected provider is efa, fabric is efa (found {found} nics)");
            self.line(rank, &what, text);
            self.line(rank, "Using network Libfabric", text);
        }
    }

    /// How all ranks of communicators begin, of the world or split off it. `place` tells a rank's number, of how many, and in which.
    fn communicator(
        &self,
        function: &str,
        which: u64,
        place: &dyn Fn(usize) -> (u64, u64, u64),
        text: &mut String,
    ) {
        if !self.wanted.has("INIT") {
            return;
        }
        for stage in ["START", "COMPLETE"] {
            for (rank, it) in self.ranks.iter().enumerate() {
                let (own, nranks, id) = place(rank);
                if stage == "COMPLETE" {
                    self.wires(rank, own, nranks, text);
                    let seconds = 0.9 + 0.01 * (rank % 7) as f64;
                    let what = format!(
                        "Init timings - {function}: rank {own} nranks {nranks} total {seconds:.2} (kernels 0.21, alloc 0.08, bootstrap \
                         0.15, allgathers 0.02, topo 0.25, graphs 0.03, connections 0.10, rest 0.06)"
                    );
                    self.line(rank, &what, text);
                }
                let parent = match which {
                    0 => String::new(),
                    _ => format!(" parent 0x{:x} color {} key {rank}", handle(0, rank), it.group),
                };
                let (comm, device, bus) = (handle(which, rank), it.device, it.bus);
                let what = format!(
                    "{function} comm 0x{comm:x} rank {own} nranks {nranks} cudaDev {device} nvmlDev {device} busId {bus:x}000{parent} \
                     commId 0x{id:x} - Init {stage}"
                );
                self.line(rank, &what, text);
            }
        }
    }

    /// Rings and trees, and what carries them: over NVLink within a node, over the network between nodes.
    fn wires(&self, rank: usize, own: u64, nranks: u64, text: &mut String) {
        let gpu = self.told.cluster.gpu_name.as_str();
        let nvls = ["H100", "H200", "B200"].iter().any(|newer| gpu.contains(newer));
        let device = self.ranks.get(rank).map_or(0, |it| it.device);
        let not = if nvls { "" } else { "not " };
        self.line(rank, &format!("NVLS multicast support is {not}available on dev {device}"), text);
        if nranks < 2 || !self.wanted.has("GRAPH") {
            return;
        }
        let (next, before) = ((own + 1) % nranks, (own + nranks - 1) % nranks);
        if own == 0 {
            let ring: Vec<String> = (0..nranks).map(|rank| format!("{rank:4}")).collect();
            self.line(rank, &format!("Channel 00/01 :{}", ring.concat()), text);
        }
        let end = |rank: u64| if rank < nranks { rank as i64 } else { -1 };
        let above = own.checked_sub(1).map_or(-1, |above| (above / 2) as i64);
        let (left, right) = (end(2 * own + 1), end(2 * own + 2));
        self.line(rank, &format!("Trees [0] {left}/{right}/-1->{own}->{above}"), text);
        self.line(
            rank,
            "1 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer",
            text,
        );
        // Each end says of its own card whether that reaches the GPU's memory.
        let lacks = self.ranks.get(rank).is_some_and(|it| self.told.ailments.lacks_gdrdma(it.node));
        let gdrdma = if lacks { "" } else { "/GDRDMA" };
        for (from, to, direction) in [(before, own, "[receive] "), (own, next, "[send] ")] {
            let (via, direction) = match self.crosses(from, to, nranks) {
                false => ("P2P/CUMEM".to_owned(), ""),
                true => (format!("NET/Libfabric/{device}{gdrdma}"), direction),
            };
            let what = format!("Channel 00/0 : {from}[{device}] -> {to}[{device}] {direction}via {via}");
            self.line(rank, &what, text);
        }
        self.line(rank, "Connected all rings, use ring PXN 0 GDR 1", text);
    }

    /// Whether two neighbours are on different nodes. Of groups side by side the first one stands for all.
    fn crosses(&self, from: u64, to: u64, nranks: u64) -> bool {
        let apart = (self.ranks.len() as u64 / nranks.max(1)).max(1);
        let node = |rank: u64| self.ranks.get((rank * apart) as usize).map_or(0, |it| it.node);
        node(from) != node(to)
    }

    fn world_id(&self) -> u64 {
        0x00c0_ffee_0000_0000 + (self.told.first_pid << 12)
    }

    /// The calls of a round, as far as it came; of the node whose fault stopped it, the last one is missing.
    fn round(&self, round: &Round, is_last: bool, counts: &mut [u64], text: &mut String) {
        if !self.wanted.has("COLL") || round.from_s >= self.told.stop_s {
            return;
        }
        let done = (self.told.stop_s - round.from_s) / (round.us.max(1e-3) * 1e-6);
        let iterations = round.iterations.min((done.max(0.0) as u32).saturating_add(1));
        let stopped = match self.told.ailments.ending {
            Some((Ending::Hang | Ending::RankDies, node)) if is_last && self.told.ended => Some(node),
            _ => None,
        };
        // What a graph launches again was called once.
        let calls = match round.kind {
            Kind::Timed => iterations / self.told.table.options.graph_launches.max(1),
            _ => iterations,
        };
        let calls = calls.max(1) * round.aggregated;
        for at in 0..calls {
            for rank in 0..self.ranks.len() {
                let is_missing = self.ranks.get(rank).is_some_and(|it| Some(it.node) == stopped);
                if !(is_missing && at + 1 == calls) {
                    self.call(rank, round, counts, text);
                }
            }
        }
    }

    fn call(&self, rank: usize, round: &Round, counts: &mut [u64], text: &mut String) {
        let options = &self.told.table.options;
        let group = self.told.table.world.group;
        let (nranks, comm) = match group.side_by_side {
            0 | 1 => (self.ranks.len() as u64, handle(0, rank)),
            _ => (u64::from(group.ranks), handle(1, rank)),
        };
        let Some(count) = counts.get_mut(rank) else { return };
        let own = self.ranks.get(rank).map_or(0, |it| it.own);
        let (datatype, redop) = (datatype(options), redop(options));
        if own == 0 && self.wanted.has("TUNING") && !is_of_messages(options.op) {
            let (algorithm, protocol) =
                if round.bytes < 1 << 20 { ("TREE", "LL") } else { ("RING", "SIMPLE") };
            let name = calls(options.op, own, nranks).first().map_or("", |(name, ..)| *name);
            let bytes = round.count * options.element_bytes();
            let what = format!(
                "{name}: {bytes} Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..0}}"
            );
            self.line(rank, &what, text);
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
            self.line(rank, &what, text);
        }
        *count += 1;
    }
}

/// The address of a rank's communicator: of the world, or of its group.
fn handle(which: u64, rank: usize) -> u64 {
    0x5570_0000_0000 + which * 0x10_0000_0000 + rank as u64 * 0x1000
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
    let (redop, _) = nccl::words(options);
    ["sum", "prod", "max", "min", "avg", "mulsum"].iter().position(|name| *name == redop).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_written() {
        let of = |variables: &[(&str, &str)]| {
            Wanted::of(
                &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            )
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("NCCL_DEBUG", "WARN")]), None);
        assert_eq!(of(&[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_FILE", "/tmp/x")]), None);
        let plain = of(&[("NCCL_DEBUG", "info")]).expect("asked");
        assert_eq!((plain.has("INIT"), plain.has("COLL")), (true, false));
        let all = of(&[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "all")]).expect("asked");
        assert!(all.has("COLL"));
    }

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
