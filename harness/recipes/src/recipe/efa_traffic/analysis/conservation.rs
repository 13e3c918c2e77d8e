//! The law that EFA's byte counters obey without a remainder: what a device moved is the sum of how it moved it, and
//! what the nodes of a job sent is what they received. A remainder means that the counters or their readings are wrong.
//! Exact at rest; under traffic only as far as the counters can have moved between two readings.

use super::device::{DeviceRead, moved};
use super::notes::Notes;
use crate::recipe::efa_traffic::EfaFinding;
use logs::efa_counters::{Phase, Reading};
use metric::finding::Finding;

/// The excess of a device's bytes over the sum of their parts, outward and inward; zero where the law holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residual {
    /// Outward: `tx_bytes` less the other counters of `TX`, in bytes.
    pub tx: i64,
    /// Inward: `rx_bytes` less the other counters of `RX`, in bytes.
    pub rx: i64,
}

pub(super) const TX: [&str; 4] = ["tx_bytes", "send_bytes", "rdma_read_resp_bytes", "rdma_write_bytes"];
pub(super) const RX: [&str; 4] = ["rx_bytes", "recv_bytes", "rdma_read_bytes", "rdma_write_recv_bytes"];

/// By one set of lifetime totals; nothing where one of its eight counters is absent. Counters that passed 2^64 obey
/// the law all the same, so the arithmetic wraps.
pub fn residual(value: impl Fn(&str) -> Option<u64>) -> Option<Residual> {
    let side = |[whole, parts @ ..]: [&str; 4]| {
        parts
            .iter()
            .try_fold(value(whole)?, |rest, part| Some(rest.wrapping_sub(value(part)?)))
            .map(u64::cast_signed)
    };
    Some(Residual { tx: side(TX)?, rx: side(RX)? })
}

impl Residual {
    /// Whether the law holds in both directions.
    pub(crate) fn is_zero(self) -> bool {
        self.tx == 0 && self.rx == 0
    }
}

/// The law on one device, at rest before and after the workload; nothing where it was not at rest, or a counter is
/// absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConservation {
    /// The node that has the device.
    pub node: String,
    /// The device, such as `rdmap113s0`.
    pub nic: String,
    /// By the last reading before the workload.
    pub before: Option<Residual>,
    /// By the last reading after the workload.
    pub after: Option<Residual>,
    /// Readings of the workload with a remainder beyond what can move between two readings.
    pub broken_under_traffic: u32,
}

/// The law over all NICs of a job: bytes that left against bytes that arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobConservation {
    /// Growth of `tx_bytes` during the workload.
    pub sent: u128,
    /// Growth of `rx_bytes`; equals `sent` where nothing is lost.
    pub received: u128,
    /// Growth of `rdma_read_resp_bytes`: RDMA reads, on the side that sends.
    pub reads_served: u128,
    /// Growth of `rdma_read_bytes`: RDMA reads, on the side that receives.
    pub reads: u128,
    /// Growth of `rdma_write_bytes`: RDMA writes, on the side that sends.
    pub writes: u128,
    /// Growth of `rdma_write_recv_bytes`: RDMA writes, on the side that receives.
    pub writes_received: u128,
}

/// Collects a job's devices.
pub(super) struct Conservation {
    shown: bool,
    devices: Vec<DeviceConservation>,
    sums: JobConservation,
    known: bool,
}

impl Conservation {
    pub(super) fn new(shown: bool) -> Conservation {
        Conservation { shown, devices: Vec::new(), sums: JobConservation::default(), known: true }
    }

    /// A device or node of which nothing is known: the job's sums are then not all of the job's.
    pub(super) fn unknown(&mut self) {
        self.known = false;
    }

    /// The devices of a further node.
    pub(super) fn extend(&mut self, node: Conservation) {
        self.known &= node.known;
        self.devices.extend(node.devices);
        for (sum, more) in [
            (&mut self.sums.sent, node.sums.sent),
            (&mut self.sums.received, node.sums.received),
            (&mut self.sums.reads_served, node.sums.reads_served),
            (&mut self.sums.reads, node.sums.reads),
            (&mut self.sums.writes, node.sums.writes),
            (&mut self.sums.writes_received, node.sums.writes_received),
        ] {
            *sum += more;
        }
    }

    pub(super) fn device(&mut self, node: &str, device: &DeviceRead, notes: &mut Notes) {
        self.known &= self.add(device).is_some();
        if device.is_reset() {
            return;
        }
        let Some((base, last)) = device.ends else { return };
        let at = |reading: &Reading| residual_of(reading, device.laws()?);
        let before = device.is_quiet(Phase::Before).then(|| at(base)).flatten();
        let after = device.is_quiet(Phase::After).then(|| at(last)).flatten();
        let broken_under_traffic = before.map_or(0, |before| under_traffic(device, before));
        let result = DeviceConservation {
            node: node.to_owned(),
            nic: device.name.to_owned(),
            before,
            after,
            broken_under_traffic,
        };
        if let Some((text, detail)) = remainder(&result) {
            notes.device(self.code(), device.name, text, detail);
        }
        self.devices.push(result);
    }

    pub(super) fn finish(
        self,
        findings: &mut Vec<Finding>,
    ) -> (Vec<DeviceConservation>, Option<JobConservation>) {
        if !self.known || self.devices.is_empty() {
            return (self.devices, None);
        }
        let sums = self.sums;
        for (what, left, arrived) in [
            ("bytes sent and received", sums.sent, sums.received),
            ("bytes of reads served and read", sums.reads_served, sums.reads),
            ("bytes of writes sent and received", sums.writes, sums.writes_received),
        ] {
            if left != arrived {
                let sign = if left > arrived { "+" } else { "-" };
                let message = format!(
                    "{what} differ over the job's nodes: {left} sent, {arrived} received, {sign}{}",
                    left.abs_diff(arrived)
                );
                findings.push(Finding::new(self.code(), message));
            }
        }
        (self.devices, Some(sums))
    }

    /// Until the law has been seen to hold on an instance type, a remainder may be normal for it.
    fn code(&self) -> &'static str {
        if self.shown {
            EfaFinding::ConservationBroken.code()
        } else {
            EfaFinding::ConservationNotShown.code()
        }
    }

    /// Nothing where the device was not at rest on both sides, or a total is not known.
    fn add(&mut self, device: &DeviceRead) -> Option<()> {
        if !device.is_quiet(Phase::Before) || !device.is_quiet(Phase::After) {
            return None;
        }
        for (sum, name) in [
            (&mut self.sums.sent, "tx_bytes"),
            (&mut self.sums.received, "rx_bytes"),
            (&mut self.sums.reads_served, "rdma_read_resp_bytes"),
            (&mut self.sums.reads, "rdma_read_bytes"),
            (&mut self.sums.writes, "rdma_write_bytes"),
            (&mut self.sums.writes_received, "rdma_write_recv_bytes"),
        ] {
            *sum += u128::from(device.named_total(name)?);
        }
        Some(())
    }
}

fn remainder(device: &DeviceConservation) -> Option<(&'static str, String)> {
    let odd = |residual: Option<Residual>| residual.filter(|residual| !residual.is_zero());
    let shown = |residual: Residual| format!("tx {:+}, rx {:+}", residual.tx, residual.rx);
    Some(match (odd(device.before), odd(device.after)) {
        (before, Some(after)) if before == Some(after) => {
            ("bytes differ from the sum of their parts, before the workload too", shown(after))
        }
        (_, Some(after)) => ("bytes differ from the sum of their parts after the workload", shown(after)),
        (Some(before), None) => {
            ("bytes differ from the sum of their parts before the workload", shown(before))
        }
        (None, None) if device.broken_under_traffic > 0 => {
            let text = "bytes differ from the sum of their parts by more than two readings explain";
            (text, format!("readings: {}", device.broken_under_traffic))
        }
        (None, None) => return None,
    })
}

fn residual_of(reading: &Reading, laws: [[usize; 4]; 2]) -> Option<Residual> {
    let side = |law: [usize; 4]| {
        let [whole, parts @ ..] = law.map(|at| reading.values.get(at).copied().flatten());
        parts.iter().try_fold(whole?, |rest, part| Some(rest.wrapping_sub((*part)?))).map(u64::cast_signed)
    };
    Some(Residual { tx: side(laws[0])?, rx: side(laws[1])? })
}

/// A reading takes its counters one after another, so parts may be ahead of the whole: by no more than passed between
/// the readings on either side of it.
fn under_traffic(device: &DeviceRead, rest: Residual) -> u32 {
    let Some(laws) = device.laws() else { return 0 };
    let mut broken = 0;
    for triple in device.readings().windows(3) {
        let [previous, reading, next] = triple else { continue };
        if reading.phase != Phase::During {
            continue;
        }
        let Some(now) = residual_of(reading, laws) else { continue };
        let most = |[whole, parts @ ..]: [usize; 4]| {
            Some(moved(previous, next, &[whole])?.max(moved(previous, next, &parts)?))
        };
        let (Some(tx), Some(rx)) = (most(laws[0]), most(laws[1])) else { continue };
        let beyond =
            |now: i64, rest: i64, most: u128| u128::from(now.wrapping_sub(rest).unsigned_abs()) > most;
        broken += u32::from(beyond(now.tx, rest.tx, tx) || beyond(now.rx, rest.rx, rx));
    }
    broken
}
