//! What the sampler of one node saw: the counters of every NIC before, during and after the workload.
//! How many bytes each NIC moves, and when, is decided in `execution` and `traffic`; here they become counters.
//!
//! Counters count since the node's start, and a whole cluster's history is not kept: a total begins at a number of the
//! device's own and has grown at line rate since simulated time began, so that it never falls from one job to the next.

use super::clock::HostClock;
use super::cluster::Cluster;
use super::execution::{SAMPLER_FROM_S, STOP_AFTER_S};
use super::noise;
use super::over::{How, Over};
use super::timeline::{NicTimeline, nic_timelines};
use job::script::{COUNTERS_SH, Sampler};
use logs::efa_counters::{Capture, Clock, Device, End, MissingCounter, Phase, Reading, Reason};

/// The capture of one of the job's nodes; nothing where the job had no sampler, or ended before it began.
pub(crate) fn capture(cluster: &Cluster, epoch_s: f64, over: &Over, node: usize) -> Option<Capture> {
    let execution = &over.execution;
    let sampler = execution.sampler.as_ref()?;
    let name = execution.nodes.get(node)?;
    let mut noise = noise::stream(cluster.seed, &["sampler", &execution.case, &execution.job, name]);
    let begin_s = SAMPLER_FROM_S + noise.between(0.0, 0.05);
    if over.run_s < begin_s {
        return None;
    }
    let plan = Plan::new(sampler, over, node, begin_s);
    let host = noise::stream(cluster.seed, &["host", name]).whole();
    // Between a day and a month.
    let boot_cs = 8_640_000 + host % 250_000_000;
    let uptime_cs = |at_s: f64| boot_cs + ((over.start_s + at_s) * 100.0) as u64;
    let jump_s = if execution.active_faults.clock_jumps(node) { 3600.0 } else { 0.0 };
    let true_ns = |at_s: f64| ((epoch_s + over.start_s + at_s) * 1e9) as i64;
    let own = HostClock::new(cluster, &execution.active_faults, (node, name), true_ns(0.0));
    let clock = |at_s: f64, ahead_s: f64| Clock {
        wall_us: (own.shows(true_ns(at_s + ahead_s)) / 1000) as u64,
        uptime_cs: uptime_cs(at_s),
    };
    let listed = listed(cluster, over, node);
    let timelines = nic_timelines(cluster, over, node);
    let columns: Vec<Column> = columns(cluster.world.retrans_counters);
    let mut readings = Vec::with_capacity(plan.sweeps.len() * listed.len());
    let bases: Vec<Moved> =
        listed.iter().map(|nic| base(cluster, over, (node, name.as_str()), *nic)).collect();
    for (phase, at_s) in &plan.sweeps {
        for (device, nic) in listed.iter().enumerate() {
            let at_s = at_s + device as f64 * DEVICE_S;
            let (Some(base), Some(execution)) = (bases.get(device), timelines.get(*nic)) else { continue };
            let moved = base.plus(execution, at_s, over.execution.reads);
            let values = columns.iter().map(|column| column.map(|column| column(&moved))).collect();
            readings.push(Reading { phase: *phase, uptime_cs: uptime_cs(at_s), device, values });
        }
    }
    let device = |nic: &usize| Device {
        name: cluster.nics.get(*nic).cloned().unwrap_or_default(),
        lifespan_ms: Some(12),
    };
    let sweeps = plan.sweeps.len() as u64;
    Some(Capture {
        file: String::new(),
        node: name.clone(),
        root: sampler.root.replace("{host}", name),
        interval_cs: plan.interval_cs,
        columns: column_names().map(str::to_owned).collect(),
        begin: clock(begin_s, 0.0),
        devices: listed.iter().map(device).collect(),
        unreadable: Vec::new(),
        missing: missing(cluster, &listed),
        bad: Vec::new(),
        not_quiet: Vec::new(),
        readings,
        end: plan.end.map(|(at_s, reason)| End {
            clock: clock(at_s, jump_s),
            cost_ms: 5 + sweeps * listed.len() as u64 * 22 / 40,
            reason,
        }),
    })
}

/// Reading one device's counters.
const DEVICE_S: f64 = 0.0011;
const QUIET_S: f64 = 0.2;

/// When the sampler sweeps over the devices, and how it ends.
struct Plan {
    interval_cs: u64,
    sweeps: Vec<(Phase, f64)>,
    /// Nothing where it died with its node.
    end: Option<(f64, Reason)>,
}

impl Plan {
    fn new(sampler: &Sampler, over: &Over, node: usize, begin_s: f64) -> Plan {
        let execution = &over.execution;
        let interval_cs = ((sampler.interval_s * 100.0).round() as u64).max(20);
        let interval_s = interval_cs as f64 / 100.0;
        // Asked by a signal: by an interruption, or by whoever ended the job.
        let signal_s = over.interrupted_s.unwrap_or(over.run_s).min(over.run_s);
        let by_itself = matches!(over.how, How::Exit(_)) && over.interrupted_s.is_none();
        let lost =
            over.how == How::NodeFail && execution.active_faults.ending.is_some_and(|(_, at)| at == node);
        let limit_s = begin_s + sampler.limit_s as f64;
        let stop_s = match (by_itself, execution.stop_s()) {
            (true, Some(stop_s)) => stop_s.min(limit_s),
            _ => f64::INFINITY,
        };
        let over_s = match lost {
            true => execution.work_to_s,
            false if by_itself => f64::INFINITY,
            false => signal_s,
        };
        let mut sweeps = vec![(Phase::Before, begin_s + QUIET_S), (Phase::Before, begin_s + 2.0 * QUIET_S)];
        let mut next = begin_s + 2.0 * QUIET_S + 0.05 + interval_s;
        while next < stop_s.min(limit_s).min(over_s) {
            sweeps.push((Phase::During, next));
            next += interval_s;
        }
        let stopped_s = stop_s.min(limit_s);
        if stopped_s < over_s {
            let seen_s = stopped_s + 0.1;
            sweeps.extend([1.0, 2.0].map(|count| (Phase::After, seen_s + count * QUIET_S)));
            let reason = if stop_s < limit_s { Reason::Stop } else { Reason::Limit };
            let end = Some((seen_s + 2.0 * QUIET_S + 0.03, reason));
            return Plan { interval_cs, sweeps, end };
        }
        sweeps.retain(|(_, at_s)| *at_s < over_s);
        let end = (!lost).then_some((over_s, Reason::Signal));
        Plan { interval_cs, sweeps, end }
    }
}

// The two sweeps after the stop must fit before the job's end.
const _: () = assert!(STOP_AFTER_S > 0.5);

/// The NICs that the node lists, as a shell sorts names.
fn listed(cluster: &Cluster, over: &Over, node: usize) -> Vec<usize> {
    let active_faults = &over.execution.active_faults;
    let mut listed: Vec<usize> =
        (0..cluster.nics.len()).filter(|nic| !active_faults.nic_is_missing(node, *nic)).collect();
    listed.sort_by_key(|nic| cluster.nics.get(*nic));
    listed
}

/// Bytes by the way they went, since the node's start.
#[derive(Clone, Copy)]
struct Moved {
    send: u64,
    recv: u64,
    read: u64,
    served: u64,
    write: u64,
    written: u64,
    rare: u64,
}

fn base(cluster: &Cluster, over: &Over, (at, node): (usize, &str), nic: usize) -> Moved {
    let stands_still = over.execution.active_faults.nic_left(at, nic).is_none();
    let grown = if stands_still { 0 } else { (over.start_s * cluster.line_gb_s * 1e9) as u64 };
    lifetime(cluster, node, nic, grown)
}

fn lifetime(cluster: &Cluster, node: &str, nic: usize, grown: u64) -> Moved {
    let mut noise =
        noise::stream(cluster.seed, &["lifetime", node, cluster.nics.get(nic).map_or("", String::as_str)]);
    let mut history = || 1_000_000_000_000 + noise.whole() % 90_000_000_000_000;
    let (sent, received) = (history(), history());
    let rare = history() % 900;
    let (main_out, main_in) = (sent + grown, received + grown);
    let (send, recv) = (sent / 140 + grown / 100, received / 140 + grown / 100);
    match cluster.reads {
        true => Moved { send, recv, read: main_in, served: main_out, write: 0, written: 0, rare },
        false => Moved {
            send,
            recv,
            read: rare * 4096,
            served: rare * 4096,
            write: main_out,
            written: main_in,
            rare,
        },
    }
}

/// Every counter of a device that has not moved anything in a job yet, in the sampler's order.
pub fn at_rest(cluster: &Cluster, node: &str, nic: usize) -> Vec<(&'static str, u64)> {
    nonempty_columns(&lifetime(cluster, node, nic, 0), cluster.world.retrans_counters)
}

/// What each of them has grown by at a moment of a job.
pub fn grown(nic: &NicTimeline, at_s: f64, reads: bool) -> Vec<(&'static str, u64)> {
    let none = Moved { send: 0, recv: 0, read: 0, served: 0, write: 0, written: 0, rare: 0 };
    nonempty_columns(&none.plus(nic, at_s, reads), true)
}

fn nonempty_columns(moved: &Moved, has_retrans: bool) -> Vec<(&'static str, u64)> {
    let all = column_names().zip(columns(has_retrans));
    all.filter_map(|(name, column)| Some((name, column?(moved)))).collect()
}

impl Moved {
    fn plus(&self, execution: &NicTimeline, at_s: f64, reads: bool) -> Moved {
        let mut moved = *self;
        let [sent_main, sent_small, received_main, received_small] = execution.moved(at_s);
        moved.send += sent_small;
        moved.recv += received_small;
        if reads {
            moved.served += sent_main;
            moved.read += received_main;
        } else {
            moved.write += sent_main;
            moved.written += received_main;
        }
        moved
    }

    fn tx(&self) -> u64 {
        self.send + self.served + self.write
    }

    fn rx(&self) -> u64 {
        self.recv + self.read + self.written
    }
}

type Column = Option<fn(&Moved) -> u64>;

/// The columns that the sampler's own text names, so that both are one list.
fn column_names() -> impl Iterator<Item = &'static str> {
    let list = COUNTERS_SH.split_once("columns=(").and_then(|(_, rest)| rest.split_once(')'));
    list.map(|(list, _)| list).unwrap_or_default().split_whitespace()
}

/// Counters that EFA drivers before 2.17 do not have.
const SINCE_2_17: [&str; 5] = [
    "retrans_bytes",
    "retrans_pkts",
    "retrans_timeout_events",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
];

/// The counters that the devices of the capture do not have, in the order in which the sampler meets them.
fn missing(cluster: &Cluster, listed: &[usize]) -> Vec<MissingCounter> {
    if cluster.world.retrans_counters {
        return Vec::new();
    }
    let names = listed.iter().filter_map(|nic| cluster.nics.get(*nic));
    names
        .flat_map(|device| {
            let of = |counter: &str| MissingCounter { device: device.clone(), counter: counter.to_owned() };
            column_names().filter(|name| SINCE_2_17.contains(name)).map(of).collect::<Vec<_>>()
        })
        .collect()
}

fn columns(has_retrans: bool) -> Vec<Column> {
    column_names()
        .map(|name| {
            if !has_retrans && SINCE_2_17.contains(&name) {
                return None;
            }
            let column: fn(&Moved) -> u64 = match name {
                "tx_bytes" => Moved::tx,
                "rx_bytes" => Moved::rx,
                "tx_pkts" => |moved| moved.tx() / 8_000,
                "rx_pkts" => |moved| moved.rx() / 8_000,
                "send_bytes" => |moved| moved.send,
                "send_wrs" => |moved| moved.send / 2_048,
                "recv_bytes" => |moved| moved.recv,
                "recv_wrs" => |moved| moved.recv / 2_048,
                "rdma_read_bytes" => |moved| moved.read,
                "rdma_read_wrs" => |moved| moved.read / 306_000,
                "rdma_read_resp_bytes" => |moved| moved.served,
                "rdma_write_bytes" => |moved| moved.write,
                "rdma_write_wrs" => |moved| moved.write / 262_144,
                "rdma_write_recv_bytes" => |moved| moved.written,
                // What goes wrong now and then in a month stands still while all is well.
                "retrans_pkts" => |moved| moved.rare,
                "retrans_bytes" => |moved| moved.rare * 8_192,
                "rx_drops"
                | "rdma_read_wr_err"
                | "rdma_write_wr_err"
                | "retrans_timeout_events"
                | "unresponsive_remote_events"
                | "impaired_remote_conn_events" => |_| 0,
                _ => return None,
            };
            Some(column)
        })
        .collect()
}
