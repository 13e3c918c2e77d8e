//! What the sampler of a pretend node writes: every NIC's counters before, during and after the job's traffic.

use super::Cluster;
use super::fault::Fault;
use super::slurm::{Job, State};
use super::work::{BROKEN_AT, Ending, Kind, SETUP_S, Setting, Work};
use crate::script::{Sampler, Step};
use recipes::source::efa_counters::{Capture, Clock, Device, End, Phase, Reading, Reason, render};

const COLUMNS: [&str; 22] = [
    "tx_bytes",
    "rx_bytes",
    "tx_pkts",
    "rx_pkts",
    "rx_drops",
    "send_bytes",
    "send_wrs",
    "recv_bytes",
    "recv_wrs",
    "rdma_read_bytes",
    "rdma_read_wrs",
    "rdma_read_wr_err",
    "rdma_read_resp_bytes",
    "rdma_write_bytes",
    "rdma_write_wrs",
    "rdma_write_wr_err",
    "rdma_write_recv_bytes",
    "retrans_bytes",
    "retrans_pkts",
    "retrans_timeout_events",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
];

/// The capture of one node, if the job has left it by now.
pub fn file(job: &Job, node: &str, cluster: &Cluster, setting: &Setting) -> Option<Vec<u8>> {
    let State::Ended { since: Some(since), at, .. } = job.state else { return None };
    let sampler = job.script.steps.iter().find_map(|step| match step {
        Step::CountersBegin(sampler) => Some(sampler),
        _ => None,
    })?;
    job.script.nodes.iter().find(|known| *known == node)?;
    let work = &job.work;
    let of_node =
        |wanted: &Fault| work.faults.iter().any(|fault| fault.node == node && fault.fault == *wanted);
    if of_node(&Fault::NodeFails) || of_node(&Fault::OutputMissing) {
        return None;
    }
    let mut text = render(&capture(job, node, cluster, setting, sampler, since, at)).into_bytes();
    if of_node(&Fault::Garbled) {
        text.iter_mut().step_by(3).for_each(|byte| *byte = b'?');
    }
    if of_node(&Fault::DiskFull) {
        text.truncate(text.len() / 2);
    }
    Some(text)
}

fn capture(
    job: &Job,
    node: &str,
    cluster: &Cluster,
    setting: &Setting,
    sampler: &Sampler,
    since: f64,
    at: f64,
) -> Capture {
    let work = &job.work;
    let of_node = |fault: &Fault| work.faults.iter().any(|known| known.node == node && known.fault == *fault);
    let devices: Vec<&String> =
        cluster.nics.iter().filter(|nic| !of_node(&Fault::NicMissing { device: (*nic).clone() })).collect();
    // The node has been up for hours or days when the run begins.
    let boot_s = 40_000.0 + setting_of_node(cluster.seed, node, "boot").below(2_000_000) as f64;
    let uptime_cs = |t: f64| ((boot_s + t) * 100.0).round() as u64;
    let begins = since + 0.5;
    let jump_us = if of_node(&Fault::ClockJump) { 3_600_000_000 } else { 0 };
    let wall_us = |t: f64| ((cluster.epoch_unix_s as f64 + t) * 1e6).round() as u64;
    let moved: Vec<[u64; 2]> = moved(job, node, cluster, setting, &devices);
    let base: Vec<u64> = devices
        .iter()
        .map(|nic| 1_000_000_000_000 + setting_of_node(cluster.seed, node, nic).below(2_000_000_000_000_000))
        .collect();
    let traffic_from = since + SETUP_S;
    let traffic_to = traffic_from + work.busy_s;
    let mut capture = Capture {
        file: String::new(),
        node: node.to_owned(),
        root: sampler.root.replace("{host}", node),
        interval_cs: (sampler.interval_s * 100.0).round() as u64,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        begin: Clock { wall_us: wall_us(begins), uptime_cs: uptime_cs(begins) },
        devices: devices.iter().map(|nic| Device { name: (*nic).clone(), lifespan_ms: Some(12) }).collect(),
        unreadable: Vec::new(),
        missing: Vec::new(),
        bad: Vec::new(),
        not_quiet: Vec::new(),
        readings: Vec::new(),
        end: None,
    };
    let mut read = |phase: Phase, t: f64| {
        let part = ((t - traffic_from) / (traffic_to - traffic_from)).clamp(0.0, 1.0);
        // A collective that hangs moves nothing after that; one that breaks off, neither.
        let part = if work.breaks_off() { part.min(BROKEN_AT) } else { part };
        for (device, (base, moved)) in base.iter().zip(&moved).enumerate() {
            let now = |total: u64| if part >= 1.0 { total } else { (total as f64 * part) as u64 };
            let [tx, rx] = *moved;
            let values = values(cluster, *base, now(tx), now(rx));
            capture.readings.push(Reading { phase, uptime_cs: uptime_cs(t), device, values });
        }
    };
    let whole = matches!(work.ending, Ending::Exits(_)) && !work.breaks_off();
    read(Phase::Before, begins + 0.25);
    read(Phase::Before, begins + 0.5);
    let stops = if whole { traffic_to } else { at };
    let mut t = begins + 0.5 + sampler.interval_s;
    while t < stops {
        read(Phase::During, t);
        t += sampler.interval_s;
    }
    if whole {
        read(Phase::After, traffic_to + 0.5);
        read(Phase::After, traffic_to + 0.75);
    }
    let ends = if whole { traffic_to + 0.8 } else { at };
    // A job that was killed takes its sampler with it.
    let reason = if whole { Reason::Stop } else { Reason::Signal };
    let clock = Clock { wall_us: wall_us(ends) + jump_us, uptime_cs: uptime_cs(ends) };
    capture.end = Some(End { clock, cost_ms: 20 + capture.readings.len() as u64 / 8, reason });
    capture
}

fn setting_of_node(seed: u64, node: &str, what: &str) -> super::noise::Noise {
    super::noise::Noise::of(seed, &[node, what])
}

/// The counters of one NIC, payload identities and all: what is sent is sends, served reads and writes; what arrives
/// is receives, reads and writes of others.
fn values(cluster: &Cluster, base: u64, tx: u64, rx: u64) -> Vec<Option<u64>> {
    let control = base / 1000;
    let (mut write, mut write_recv, mut read, mut read_resp) = (0, 0, 0, 0);
    if cluster.by_reads {
        read = base + rx;
        read_resp = base + tx;
    } else {
        write = base + tx;
        write_recv = base + rx;
    }
    let all = [
        control + read_resp + write,
        control + read + write_recv,
        (control + read_resp + write) / 8_000,
        (control + read + write_recv) / 8_000,
        0,
        control,
        control / 2_000,
        control,
        control / 2_000,
        read,
        read / 300_000,
        0,
        read_resp,
        write,
        write / 300_000,
        0,
        write_recv,
        0,
        0,
        0,
        0,
        0,
    ];
    all.into_iter().map(Some).collect()
}

/// Bytes out and in of each listed device over the whole job. Devices of one name move alike on every node, so what
/// is sent arrives; what a dead device leaves undone, the other NICs of its node carry.
fn moved(job: &Job, node: &str, cluster: &Cluster, setting: &Setting, devices: &[&String]) -> Vec<[u64; 2]> {
    let work = &job.work;
    let is_dead = |nic: &str, on: &str| {
        work.faults.iter().any(|fault| {
            fault.node == on
                && fault.fault.device() == Some(nic)
                && matches!(fault.fault, Fault::NicDead { .. } | Fault::NicMissing { .. })
        })
    };
    if let Kind::Flows(flows) = &work.kind {
        let bytes = flows.message_bytes * flows.iterations;
        let sends = if flows.op == "read" { node == flows.server } else { node == flows.client };
        return devices
            .iter()
            .map(|nic| {
                let connected = !is_dead(nic, &flows.server) && !is_dead(nic, &flows.client);
                let bytes = if connected { bytes } else { 0 };
                if sends { [bytes, 0] } else { [0, bytes] }
            })
            .collect();
    }
    let total = node_bytes(work, job.script.nodes.len() as u32, setting);
    let shares: Vec<u64> = cluster
        .nics
        .iter()
        .map(|nic| {
            let jitter = setting.noise(&["share", nic]).factor(0.0004);
            (total / cluster.nics.len() as f64 * jitter) as u64
        })
        .collect();
    let alive: Vec<bool> = cluster.nics.iter().map(|nic| !is_dead(nic, node)).collect();
    let orphaned: u64 =
        shares.iter().zip(&alive).filter(|(_, alive)| !**alive).map(|(share, _)| *share).sum();
    let carriers = alive.iter().filter(|alive| **alive).count().max(1) as u64;
    let mut first = true;
    let mut carried = Vec::new();
    for ((nic, share), alive) in cluster.nics.iter().zip(shares).zip(alive) {
        let more = if alive { orphaned / carriers + if first { orphaned % carriers } else { 0 } } else { 0 };
        first &= !alive;
        let bytes = if alive { share + more } else { 0 };
        if devices.contains(&nic) {
            carried.push([bytes, bytes]);
        }
    }
    carried
}

fn node_bytes(work: &Work, nodes: u32, setting: &Setting) -> f64 {
    match &work.kind {
        Kind::Nccl(nccl) => {
            let per_round: f64 =
                nccl.sizes.iter().map(|size| setting.machine.bytes_out_per_node(nccl.op, nodes, *size)).sum();
            per_round * nccl.operations() as f64
        }
        _ => 0.0,
    }
}
