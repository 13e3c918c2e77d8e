//! From captures to traffic: what each NIC moved, how fast, what was lost, and which readings are unreliable. The judge
//! decides whether a number is good enough; uncertain numbers are not given here.
//!
//! Totals are the last reading before the workload against the last one after it. A rate is the 90th percentile
//! (nearest rank) over the windows of at least one second in which the NIC moved at least a tenth of what its fastest
//! window moved: start-up and pauses between sizes are no part of a plateau.
//!
//! Findings, each at most once per node and text:
//! - `capture-missing`, `capture-cut`, `capture-duplicate`, `capture-unexpected`: no capture, an incomplete one or several;
//! - `folder-unreadable`, `nic-missing`, `nic-unexpected`: what the folder of devices lists;
//! - `counter-absent`: no device of a node has a counter that came with a later driver;
//! - `counter-missing`, `counter-bad`, `counter-reset`, `counter-wrap`: a counter that gave no number, or fell;
//! - `reading-stale`, `not-quiet`, `clock-jump`: readings from the driver's cache, traffic that is not the workload's,
//!   a wall clock that was set;
//! - `conservation-broken`, or `conservation-not-shown` where the law has not been seen to hold on the instance yet.

mod absent;
mod conservation;
mod device;
mod notes;
#[cfg(test)]
mod tests;
mod within;

pub(crate) use absent::SINCE_DRIVER;
pub use conservation::{DeviceConservation, JobConservation, Residual, residual};
pub(crate) use within::sent_within;

use self::conservation::Conservation;
use self::device::{Columns, DeviceRead};
use self::notes::Notes;
use crate::recipe::efa_traffic::EfaFinding;
use logs::efa_counters::{Capture, End, Phase, Reading, Reason};
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// A node of the job, and the devices that its instance's profile lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedNode {
    /// As its capture names it.
    pub node: String,
    /// Such as `rdmap113s0`.
    pub devices: Vec<String>,
}

/// Which counters carry an instance's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionMap {
    /// Summed for what leaves the node: `rdma_write_bytes` on p5.
    pub sent: Vec<String>,
    /// Summed for what arrives: `rdma_write_recv_bytes` on p5.
    pub received: Vec<String>,
    /// The conservation law has been seen to hold on this instance; until then a residual is no failure.
    pub conservation_shown: bool,
}

/// What one NIC moved during the workload; `None` where a number is unknown or unreliable.
#[derive(Debug, Clone, PartialEq)]
pub struct NicTraffic {
    /// The node that has the NIC.
    pub node: String,
    /// The device, such as `rdmap113s0`.
    pub nic: String,
    /// `None` where the node's folder was not or could not be read.
    pub listed: Option<bool>,
    /// By the direction map: bytes of payload that left.
    pub tx_bytes: Option<u64>,
    /// By the direction map: bytes of payload that arrived.
    pub rx_bytes: Option<u64>,
    /// By `tx_bytes` itself: all that the device sent.
    pub all_tx_bytes: Option<u64>,
    /// By `rx_bytes` itself: all that the device received.
    pub all_rx_bytes: Option<u64>,
    /// Plateau rate of sent payload in GB/s, as the head of this file defines it.
    pub plateau_tx_gb_s: Option<f64>,
    /// The same of received payload.
    pub plateau_rx_gb_s: Option<f64>,
    /// Growth of `retrans_pkts`; older drivers lack the counter.
    pub retrans_pkts: Option<u64>,
    /// Growth of `retrans_timeout_events`; older drivers lack the counter.
    pub retrans_timeouts: Option<u64>,
    /// Growth of `rx_drops`: received packets that were dropped.
    pub rx_drops: Option<u64>,
    /// Readings while the workload ran.
    pub samples: u32,
    /// Counters that were needed and gave no number.
    pub missing: Vec<String>,
}

/// CPU share of the sampler itself, while it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerCost {
    /// The node on which the sampler ran.
    pub node: String,
    /// CPU time over elapsed time: 1 is one core; `None` where the capture has no usable end.
    pub share: Option<f64>,
}

/// Everything that the captures of one job show.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Every expected device of every expected node, in that order.
    pub nics: Vec<NicTraffic>,
    /// Nodes whose folder of devices could not be read.
    pub unreadable: Vec<String>,
    /// One per expected node with a capture.
    pub samplers: Vec<SamplerCost>,
    /// By node: counters that none of its devices has, since its driver is older than they are.
    pub absent: BTreeMap<String, Vec<&'static str>>,
    /// Devices with readings before and after the workload, and no counter reset.
    pub conservation: Vec<DeviceConservation>,
    /// Nothing where not every NIC of the job is known and at rest on both sides.
    pub job_conservation: Option<JobConservation>,
    /// The head of this file lists their codes.
    pub findings: Vec<Finding>,
}

/// A workload that moved less than this says nothing about readings that stood still: closing messages alone come
/// after the last reading often enough.
const MOVED_BYTES: u64 = 1_000_000_000;

/// Evaluates the captures of one job; a node with two captures has no numbers.
pub fn analyze(captures: &[Capture], expected: &[ExpectedNode], map: &DirectionMap) -> Traffic {
    let mut reader = TrafficReader::new(expected, map);
    captures.iter().for_each(|capture| reader.read(capture));
    reader.finish()
}

/// Evaluates the captures of one job as they are read: a capture is megabytes, and what comes of it is little. Of two
/// captures of a node, one may be of another run: neither counts.
pub(crate) struct TrafficReader<'a> {
    expected: &'a [ExpectedNode],
    map: &'a DirectionMap,
    /// By name; and what was read.
    nodes: BTreeMap<&'a str, (&'a ExpectedNode, Option<ReadNode>)>,
    findings: Vec<Finding>,
}

/// The file of a capture, and what it shows; nothing where another one contradicts it.
type ReadNode = (String, Option<NodeTraffic>);

/// What the capture of one node shows.
struct NodeTraffic {
    traffic: Traffic,
    conservation: Conservation,
}

impl<'a> TrafficReader<'a> {
    /// Of the job's nodes, before any capture is read.
    pub(crate) fn new(expected: &'a [ExpectedNode], map: &'a DirectionMap) -> TrafficReader<'a> {
        let nodes = expected.iter().map(|node| (node.node.as_str(), (node, None))).collect();
        TrafficReader { expected, map, nodes, findings: Vec::new() }
    }

    /// The next capture.
    pub(crate) fn read(&mut self, capture: &Capture) {
        let Some((node, slot)) = self.nodes.get_mut(capture.node.as_str()) else {
            let message = format!("capture of `{}`, which is not a node of the job", capture.node);
            let finding = Finding::new(EfaFinding::CaptureUnexpected.code(), message).file(&capture.file);
            self.findings.push(finding);
            return;
        };
        if let Some((first, shown)) = slot {
            *shown = None;
            let message = format!("second capture of the node, neither counts; the first: `{first}`");
            let finding = Finding::new(EfaFinding::CaptureDuplicate.code(), message)
                .node(&capture.node)
                .file(&capture.file);
            self.findings.push(finding);
            return;
        }
        let (mut traffic, mut conservation) =
            (Traffic::default(), Conservation::new(self.map.conservation_shown));
        add_node(capture, node, self.map, &mut conservation, &mut traffic);
        *slot = Some((capture.file.clone(), Some(NodeTraffic { traffic, conservation })));
    }

    /// All captures were read.
    pub(crate) fn finish(mut self) -> Traffic {
        let mut traffic = Traffic { findings: self.findings, ..Traffic::default() };
        let mut job = Conservation::new(self.map.conservation_shown);
        for node in self.expected {
            match self.nodes.remove(node.node.as_str()).and_then(|(_, read)| read) {
                Some((_, Some(of_node))) => {
                    traffic.extend(of_node.traffic);
                    job.extend(of_node.conservation);
                }
                contradicted => {
                    job.unknown();
                    if contradicted.is_none() {
                        let message = "no capture of the node's counters; see the sampler's log";
                        let finding = Finding::new(EfaFinding::CaptureMissing.code(), message);
                        traffic.findings.push(finding.node(&node.node));
                    }
                    traffic.nics.extend(node.devices.iter().map(|nic| unknown(node, nic, None)));
                }
            }
        }
        let (devices, sums) = job.finish(&mut traffic.findings);
        traffic.conservation = devices;
        traffic.job_conservation = sums;
        traffic
    }
}

impl Traffic {
    /// That of a further node.
    fn extend(&mut self, node: Traffic) {
        self.nics.extend(node.nics);
        self.unreadable.extend(node.unreadable);
        self.samplers.extend(node.samplers);
        self.absent.extend(node.absent);
        self.findings.extend(node.findings);
    }
}

fn add_node(
    capture: &Capture,
    expected: &ExpectedNode,
    map: &DirectionMap,
    job: &mut Conservation,
    traffic: &mut Traffic,
) {
    let mut notes = Notes::new(capture);
    clocks(capture, &mut notes, &mut traffic.samplers);
    let readable = capture.unreadable.is_empty();
    if !readable {
        traffic.unreadable.push(capture.node.clone());
        let paths = capture.unreadable.join("`, `");
        notes.whole(EfaFinding::FolderUnreadable.code(), format!("counters cannot be read: `{paths}`"));
    }
    let whole = is_whole(capture, &mut notes);
    let mut columns = Columns::new(capture, map);
    let mut series: Vec<Vec<&Reading>> = vec![Vec::new(); capture.devices.len()];
    for reading in &capture.readings {
        if let Some(readings) = series.get_mut(reading.device) {
            readings.push(reading);
        }
    }
    let listed: BTreeMap<&str, usize> =
        capture.devices.iter().enumerate().map(|(at, device)| (device.name.as_str(), at)).collect();
    let wanted: BTreeSet<&str> = expected.devices.iter().map(String::as_str).collect();
    let devices = expected.devices.iter().filter_map(|name| listed.get(name.as_str()));
    columns.absent = absent::counters(capture, &devices.map(|at| series[*at].as_slice()).collect::<Vec<_>>());
    if !columns.absent.is_empty() {
        let names = columns.absent.join(", ");
        let message =
            format!("no EFA device has these counters, which exist since driver {SINCE_DRIVER}: {names}");
        notes.whole(EfaFinding::CounterAbsent.code(), message);
        traffic.absent.insert(capture.node.clone(), columns.absent.clone());
    }
    let (mut moved, mut frozen) = (0u64, true);
    let first = traffic.nics.len();
    for name in &expected.devices {
        let Some(at) = listed.get(name.as_str()) else {
            if readable {
                notes.device(
                    EfaFinding::NicMissing.code(),
                    name,
                    "device of the profile is missing",
                    String::new(),
                );
            } else {
                job.unknown();
            }
            traffic.nics.push(unknown(expected, name, readable.then_some(false)));
            continue;
        };
        let device = DeviceRead::new(&capture.devices[*at], &series[*at], &columns, whole);
        let nic = device.traffic(capture, &mut notes);
        moved = moved.saturating_add(nic.tx_bytes.unwrap_or(0)).saturating_add(nic.rx_bytes.unwrap_or(0));
        frozen &= device.stood_still();
        job.device(&capture.node, &device, &mut notes);
        traffic.nics.push(nic);
    }
    for (name, at) in listed.iter().filter(|(name, _)| !wanted.contains(*name)) {
        if DeviceRead::new(&capture.devices[*at], &series[*at], &columns, whole).moved_anything() {
            // Its bytes are missing in the job's sums.
            job.unknown();
            notes.device(
                EfaFinding::NicUnexpected.code(),
                name,
                "device moves data and is not in the profile",
                String::new(),
            );
        }
    }
    if frozen && moved >= MOVED_BYTES {
        let message =
            format!("no rate: counters stood still during the workload and grew by {moved} bytes at its end");
        notes.whole(EfaFinding::ReadingStale.code(), message);
        for nic in &mut traffic.nics[first..] {
            nic.plateau_tx_gb_s = None;
            nic.plateau_rx_gb_s = None;
        }
    }
    traffic.findings.extend(notes.finish());
}

/// A device of which nothing was read.
fn unknown(node: &ExpectedNode, nic: &str, listed: Option<bool>) -> NicTraffic {
    NicTraffic {
        node: node.node.clone(),
        nic: nic.to_owned(),
        listed,
        tx_bytes: None,
        rx_bytes: None,
        all_tx_bytes: None,
        all_rx_bytes: None,
        plateau_tx_gb_s: None,
        plateau_rx_gb_s: None,
        retrans_pkts: None,
        retrans_timeouts: None,
        rx_drops: None,
        samples: 0,
        missing: Vec::new(),
    }
}

/// Two seconds are more than an old shell's whole seconds and a slewed clock make.
const JUMP_US: u64 = 2_000_000;

/// By how much the wall clock was set while the capture went on; nothing where it was not, or where that is not known.
fn clock_jump_s(capture: &Capture) -> Option<f64> {
    let end = capture.end.filter(|end| end.reason != Reason::NoUptime)?;
    let wall = i128::from(end.clock.wall_us) - i128::from(capture.begin.wall_us);
    let apart = wall - uptime_cs(capture, &end) * 10_000;
    (apart.unsigned_abs() > u128::from(JUMP_US)).then_some(apart as f64 / 1e6)
}

fn uptime_cs(capture: &Capture, end: &End) -> i128 {
    i128::from(end.clock.uptime_cs) - i128::from(capture.begin.uptime_cs)
}

fn clocks(capture: &Capture, notes: &mut Notes, samplers: &mut Vec<SamplerCost>) {
    let mut share = None;
    if let Some(seconds) = clock_jump_s(capture) {
        let message = format!("wall clock jumped against the uptime during the capture: {seconds:+.1} s");
        notes.whole(EfaFinding::ClockJump.code(), message);
    }
    if let Some(end) = capture.end.filter(|end| end.reason != Reason::NoUptime) {
        let uptime = uptime_cs(capture, &end);
        if uptime > 0 {
            share = Some(end.cost_ms as f64 / (uptime as f64 * 10.0));
        }
    }
    samplers.push(SamplerCost { node: capture.node.clone(), share });
}

/// Whether the capture spans the workload. One that does not has some of the bytes, which is no total.
fn is_whole(capture: &Capture, notes: &mut Notes) -> bool {
    let why = match capture.end.map(|end| end.reason) {
        Some(Reason::Stop) => return true,
        Some(Reason::Limit) => "sampler reached its time limit before the workload ended".to_owned(),
        Some(Reason::Signal) => "sampler was terminated before it had read the counters at rest".to_owned(),
        Some(Reason::NoUptime) => "sampler could not read the node's uptime".to_owned(),
        None => {
            let last = capture.readings.last().map_or("none", |reading| reading.phase.name());
            format!("capture has no end: sampler killed or disk full; phase of its last reading: {last}")
        }
    };
    notes.whole(EfaFinding::CaptureCut.code(), why);
    false
}

fn last_of<'a>(readings: &[&'a Reading], phase: Phase) -> Option<&'a Reading> {
    readings.iter().rev().find(|reading| reading.phase == phase).copied()
}
