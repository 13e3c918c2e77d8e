//! What NCCL writes between the lines of a training: its communicators, and the calls of each step before the step's
//! own line. Which rank calls what when is in `sim::training`, and the same there as in the reports of nsys.

use super::writers::{Membership, Rank, Writers, handle};
use crate::cluster::Cluster;
use crate::execution::Execution;
use crate::nccl;
use crate::pci;
use crate::training::{Collective, DRAWS, Doing, Training, Who};
use crate::work::noise_of;

/// What the program printed with the lines of NCCL where the job asks for them: of all ranks, or of those of one node.
pub fn between(cluster: &Cluster, execution: &Execution, node: Option<usize>, printed: &str) -> String {
    let (Some(wanted), Some(training)) = (&execution.debug, &execution.training) else {
        return printed.to_owned();
    };
    let per_node = training.ranks_per_node as usize;
    // The same draw as the reports make.
    let first_pid = nccl::first_pid(&mut noise_of(cluster, &execution.case, &execution.job, "pids"));
    let one = |rank: usize| {
        let (node, device) = (rank / per_node, rank % per_node);
        let host = execution.nodes.get(node).map_or("", |host| host.split('.').next().unwrap_or(host));
        let bus = pci::bus(cluster.gpus, device);
        Rank { host: host.to_owned(), node, pid: first_pid + rank as u64, device, bus }
    };
    let ranks = (0..training.ranks() as usize).map(one).collect();
    let writers = Writers { wanted, cluster, active_faults: &execution.active_faults, first_pid, ranks };
    let log = Log { training, writers, node };
    let mut text = String::new();
    log.beginning(&mut text);
    let mut steps = log.steps(execution).into_iter();
    for line in printed.split_inclusive('\n') {
        text.extend(steps.next());
        text.push_str(line);
    }
    // Steps whose line is printed elsewhere, or never.
    text.extend(steps);
    text
}

struct Log<'a> {
    training: &'a Training,
    writers: Writers<'a>,
    node: Option<usize>,
}

impl Log<'_> {
    fn is_looked_at(&self, rank: usize) -> bool {
        self.node.is_none_or(|node| self.writers.ranks.get(rank).is_some_and(|it| it.node == node))
    }

    fn beginning(&self, text: &mut String) {
        for rank in (0..self.writers.ranks.len()).filter(|rank| self.is_looked_at(*rank)) {
            self.writers.environment(rank, text);
        }
        for (which, who) in (0..).zip(Who::ALL) {
            let function = if which == 0 { "ncclCommInitRank" } else { "ncclCommSplit" };
            let place = |rank: usize| self.place(who, rank).filter(|place| place.nranks > 1);
            self.writers.communicator((function, which), &place, &|rank| self.is_looked_at(rank), text);
        }
    }

    fn place(&self, who: Who, rank: usize) -> Option<Membership> {
        let (per_node, nodes) = (self.training.ranks_per_node, self.training.nodes);
        let rank = u32::try_from(rank).ok()?;
        let (own, nranks) = who.member(rank, per_node, nodes);
        let which = who.which(rank, per_node);
        let (first, apart, kind) = match who {
            Who::World => (0, 1, 0),
            Who::Node => (which * per_node, 1, 1),
            Who::Across => (which, per_node, 2),
        };
        // No two communicators of a job have one id.
        let id = self.writers.world_id() + kind * 0x400 + u64::from(which);
        let (own, nranks, color) = (u64::from(own), u64::from(nranks), u64::from(which));
        Some(Membership { own, nranks, id, color, first: first as usize, apart: apart as usize })
    }

    /// The lines of all calls, by step.
    fn steps(&self, execution: &Execution) -> Vec<String> {
        let mut steps = vec![String::new(); self.training.steps as usize];
        if !self.writers.wanted.has("COLL") {
            return steps;
        }
        let mut counts = vec![[0_u64; Who::ALL.len()]; self.writers.ranks.len()];
        let noise = noise_of(self.writers.cluster, &execution.case, &execution.job, DRAWS);
        self.training.run(noise, &mut |placed| {
            let Doing::Collective(collective) = placed.doing else { return };
            let rank = placed.rank as usize;
            if !self.is_looked_at(rank) || self.training.is_replayed(placed.rank, placed.step) {
                return;
            }
            let (Some(counts), Some(text)) = (counts.get_mut(rank), steps.get_mut(placed.step as usize))
            else {
                return;
            };
            self.call(rank, &collective, &mut counts[collective.who as usize], text);
        });
        steps
    }

    fn call(&self, rank: usize, collective: &Collective, count: &mut u64, text: &mut String) {
        let Some(Membership { own, nranks, .. }) = self.place(collective.who, rank) else { return };
        let name = collective.function.trim_start_matches("nccl");
        let bytes = collective.bytes;
        if own == 0 && self.writers.wanted.has("TUNING") {
            // Two nodes share what all their ranks have by a tree.
            let is_tree = collective.who == Who::World && self.training.nodes == 2;
            let algorithm = if is_tree { "TREE" } else { "RING" };
            let protocol = if bytes < 1 << 20 { "LL" } else { "SIMPLE" };
            let what = format!(
                "{name}: {bytes} Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..0}}"
            );
            self.writers.line(rank, &what, text);
        }
        let (datatype, size) = self.element(bytes);
        let what = format!(
            "{name}: opCount {count:x} sendbuff 0x7f2000000000 recvbuff 0x7f3000000000 count {} datatype {datatype} op 0 root 0 comm \
             0x{:x} [nranks={nranks}] stream 0x{:x}",
            bytes / size,
            handle(collective.who as u64, rank),
            0x5560_0000_0000_u64 + rank as u64 * 0x100
        );
        self.writers.line(rank, &what, text);
        *count += 1;
    }

    /// The type's number and size: gradients of a model that is whole on each rank are floats, and so is a norm alone.
    fn element(&self, bytes: u64) -> (u64, u64) {
        if self.training.program.holds_whole_model() || bytes < 8 { (7, 4) } else { (9, 2) }
    }
}
