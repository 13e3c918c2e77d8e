//! The ranks of a job that write, and what each logs of itself before it calls anything: its network, and the
//! communicators that it joins with their wires.

use crate::active_faults::ActiveFaults;
use crate::cluster::Cluster;
use crate::nccl_wanted::Wanted;
use crate::software;
use std::fmt::Write;

pub(super) struct Rank {
    pub host: String,
    pub node: usize,
    pub pid: u64,
    pub device: usize,
    pub bus: usize,
}

/// Where a rank stands in a communicator of so many: the n-th member is the n-th rank of the job from the first one on,
/// so far apart.
#[derive(Clone, Copy)]
pub(super) struct Membership {
    pub own: u64,
    pub nranks: u64,
    pub id: u64,
    pub color: u64,
    pub first: usize,
    pub apart: usize,
}

pub(super) struct Writers<'a> {
    pub wanted: &'a Wanted,
    pub cluster: &'a Cluster,
    pub active_faults: &'a ActiveFaults,
    pub first_pid: u64,
    pub ranks: Vec<Rank>,
}

impl Writers<'_> {
    pub(super) fn line(&self, rank: usize, what: &str, text: &mut String) {
        let Some(Rank { host, pid, device, .. }) = self.ranks.get(rank) else { return };
        // Infallible: writing to a string.
        let _ = writeln!(text, "{host}:{pid}:{} [{device}] NCCL INFO {what}", pid + 1);
    }

    pub(super) fn environment(&self, rank: usize, text: &mut String) {
        let Some(it) = self.ranks.get(rank) else { return };
        if self.wanted.has("INIT") {
            if rank == 0 {
                self.line(rank, &format!("NCCL version {}+cuda12.9", software::NCCL), text);
            }
            self.line(rank, "cudaDriverVersion 12090", text);
            self.line(rank, &format!("Bootstrap: Using ens32:10.0.0.{}<0>", it.node % 250 + 1), text);
        }
        if !self.cluster.world.ofi_plugin {
            self.sockets(rank, it.node, text);
        } else if self.wanted.has("INIT") || self.wanted.has("NET") {
            let nics = self.cluster.nics.len();
            let found = (0..nics).filter(|nic| !self.active_faults.nic_is_missing(it.node, *nic)).count();
            let version = software::OFI_NCCL;
            self.line(rank, &format!("NET/OFI Initializing aws-ofi-nccl {version}"), text);
            self.line(rank, "NET/OFI Using Libfabric version 2.1", text);
            let what = format!("NET/OFI Selected provider is efa, fabric is efa (found {found} nics)");
            self.line(rank, &what, text);
            self.line(rank, "Using network Libfabric", text);
        }
    }

    /// Without aws-ofi-nccl.
    fn sockets(&self, rank: usize, node: usize, text: &mut String) {
        if self.wanted.has("INIT") || self.wanted.has("NET") {
            self.line(
                rank,
                "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
                text,
            );
            self.line(rank, "NET/IB : No device found.", text);
            self.line(rank, &format!("NET/Socket : Using [0]ens32:10.0.0.{}<0>", node % 250 + 1), text);
            self.line(rank, "Using network Socket", text);
        }
    }

    /// How communicators begin, of the world or split off it, of those ranks that are looked at. A rank that is in none
    /// has no place.
    pub(super) fn communicator(
        &self,
        (function, which): (&str, u64),
        place: &dyn Fn(usize) -> Option<Membership>,
        is_looked_at: &dyn Fn(usize) -> bool,
        text: &mut String,
    ) {
        if !self.wanted.has("INIT") {
            return;
        }
        for stage in ["START", "COMPLETE"] {
            for (rank, it) in self.ranks.iter().enumerate().filter(|(rank, _)| is_looked_at(*rank)) {
                let Some(place) = place(rank) else { continue };
                let Membership { own, nranks, id, color, .. } = place;
                if stage == "COMPLETE" {
                    self.wires(rank, &place, text);
                    let seconds = 0.9 + 0.01 * (rank % 7) as f64;
                    let what = format!(
                        "Init timings - {function}: rank {own} nranks {nranks} total {seconds:.2} (kernels 0.21, alloc 0.08, bootstrap \
                         0.15, allgathers 0.02, topo 0.25, graphs 0.03, connections 0.10, rest 0.06)"
                    );
                    self.line(rank, &what, text);
                }
                let parent = match which {
                    0 => String::new(),
                    _ => format!(" parent 0x{:x} color {color} key {rank}", handle(0, rank)),
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
    fn wires(&self, rank: usize, place: &Membership, text: &mut String) {
        let Membership { own, nranks, .. } = *place;
        let gpu = self.cluster.gpu_name.as_str();
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
        let lacks = self.ranks.get(rank).is_some_and(|it| self.active_faults.lacks_gdrdma(it.node));
        let gdrdma = if lacks { "" } else { "/GDRDMA" };
        let net = match self.cluster.world.ofi_plugin {
            true => format!("NET/Libfabric/{device}{gdrdma}"),
            false => "NET/Socket/0".to_owned(),
        };
        for (from, to, direction) in [(before, own, "[receive] "), (own, next, "[send] ")] {
            let (via, direction) = match self.crosses(from, to, place) {
                false => ("P2P/CUMEM".to_owned(), ""),
                true => (net.clone(), direction),
            };
            let what = format!("Channel 00/0 : {from}[{device}] -> {to}[{device}] {direction}via {via}");
            self.line(rank, &what, text);
        }
        self.line(rank, "Connected all rings, use ring PXN 0 GDR 1", text);
    }

    /// Whether two neighbours are on different nodes.
    fn crosses(&self, from: u64, to: u64, place: &Membership) -> bool {
        let node =
            |rank: u64| self.ranks.get(place.first + rank as usize * place.apart).map_or(0, |it| it.node);
        node(from) != node(to)
    }

    /// The id of the communicator of all ranks; others count on from it.
    pub(super) fn world_id(&self) -> u64 {
        0x00c0_ffee_0000_0000 + (self.first_pid << 12)
    }
}

/// The address of a rank's communicator: of the world, or of a group of that kind.
pub(super) fn handle(which: u64, rank: usize) -> u64 {
    0x5570_0000_0000 + which * 0x10_0000_0000 + rank as u64 * 0x1000
}
