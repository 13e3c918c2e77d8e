//! Which transport NCCL used, by what the NICs moved: EFA as the instance's profile expects, another protocol of the
//! plugin, or none of the NICs at all.

use super::analysis::Traffic;
use super::{FileRole, JobInput, Workload};
use crate::recipe::efa_traffic::EfaFinding;
use logs::nccl_tests;
use metric::finding::Finding;
use std::fs::File;
use std::io::BufReader;

/// What an idle NIC may move: management datagrams.
const IDLE_BYTES: u64 = 1_000_000;
/// Less traffic than this is too little to judge the protocol by.
const LEAST_BYTES: u128 = 1_000_000_000;

/// Every NIC of every node is known and stood still, and rows of collectives over several nodes are there.
pub(super) fn sockets(job: &JobInput, traffic: &Traffic) -> Option<Finding> {
    let Workload::NcclTests { ranks_per_communicator: Some(ranks), .. } = &job.workload else { return None };
    let is_idle = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes < IDLE_BYTES);
    let all_idle = traffic.nics.iter().all(|nic| is_idle(nic.all_tx_bytes) && is_idle(nic.all_rx_bytes));
    if job.nodes.len() < 2 || traffic.nics.is_empty() || !all_idle {
        return None;
    }
    let runs = job.files_of(FileRole::NcclTests).filter_map(|file| {
        let from = BufReader::new(File::open(&file.path).ok()?);
        Some(nccl_tests::read_stream(from, &file.shown).ok()?.ok()?.runs)
    });
    let best = runs.flatten().filter_map(|run| {
        let per_node = run.ranks.len() / job.nodes.len();
        // Communicators within nodes cross no network.
        let crosses = per_node > 0 && *ranks as usize > per_node;
        let halves = run.rows.iter().flat_map(|row| [&row.out_of_place, &row.in_place]).flatten();
        halves.map(|half| half.busbw_gb_s).filter(|rate| crosses && rate.is_finite()).reduce(f64::max)
    });
    let best = best.reduce(f64::max).filter(|best| *best > 0.0)?;
    let message = format!(
        "NCCL used TCP sockets, not EFA: {best:.1} GB/s between {} nodes, and no NIC moved data; check that aws-ofi-nccl is \
         installed and that LD_LIBRARY_PATH has its libnccl-net.so",
        job.nodes.len()
    );
    Some(Finding::new(EfaFinding::TcpNotEfa.code(), message))
}

/// NICs moved data, and next to none of it in the counters of the profile.
pub(super) fn protocol(job: &JobInput, traffic: &Traffic) -> Option<Finding> {
    let sum = |of: fn(&super::NicTraffic) -> Option<u64>| {
        traffic.nics.iter().map(|nic| of(nic).map(u128::from)).sum::<Option<u128>>()
    };
    let (all, expected) = (sum(|nic| nic.all_tx_bytes)?, sum(|nic| nic.tx_bytes)?);
    if all < LEAST_BYTES || expected * 10 >= all || job.tx_counters.is_empty() {
        return None;
    }
    let counters = job.tx_counters.join(" + ");
    let hint = match job.tx_counters.iter().any(|counter| counter == "rdma_write_bytes") {
        true => "RDMA reads or sends instead of writes; is OFI_NCCL_PROTOCOL=SENDRECV set?",
        false => "another protocol of aws-ofi-nccl; look at OFI_NCCL_PROTOCOL",
    };
    let message = format!("{counters} show {expected} of {all} bytes sent: {hint}");
    Some(Finding::new(EfaFinding::OtherProtocol.code(), message))
}
