//! One device's readings in their order: its totals, its rates, and unreliable readings. `conservation.rs` checks its
//! bytes.

use super::conservation::{RX, TX};
use super::notes::Notes;
use super::{DirectionMap, NicTraffic, last_of};
use crate::recipe::efa_traffic::EfaFinding;
use logs::efa_counters::{Capture, Device, Phase, Reading, Step};

/// Where the counters stand in a capture's readings; nothing for one that the sampler does not know.
pub(super) struct Columns<'a> {
    capture: &'a Capture,
    map: &'a DirectionMap,
    sent: Vec<Option<usize>>,
    received: Vec<Option<usize>>,
    /// Those that must stand still for traffic to be at rest.
    payload: Vec<usize>,
    /// Counters that no device of the node has.
    pub absent: Vec<&'static str>,
    /// The whole and its parts by the conservation law, where all of them are there.
    pub laws: Option<[[usize; 4]; 2]>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(capture: &'a Capture, map: &'a DirectionMap) -> Columns<'a> {
        let find = |name: &String| capture.columns.iter().position(|column| column == name);
        let payload = |(at, name): (usize, &String)| name.ends_with("_bytes").then_some(at);
        let law = |names: [&str; 4]| {
            let mut law = [0; 4];
            for (place, name) in law.iter_mut().zip(names) {
                *place = capture.columns.iter().position(|column| column == name)?;
            }
            Some(law)
        };
        Columns {
            laws: law(TX).zip(law(RX)).map(|(tx, rx)| [tx, rx]),
            capture,
            map,
            sent: map.sent.iter().map(find).collect(),
            received: map.received.iter().map(find).collect(),
            absent: Vec::new(),
            payload: capture.columns.iter().enumerate().filter_map(payload).collect(),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.capture.columns.iter().position(|column| column == name)
    }
}

pub(super) struct DeviceRead<'a> {
    pub name: &'a str,
    lifespan_ms: Option<u64>,
    readings: &'a [&'a Reading],
    columns: &'a Columns<'a>,
    whole: bool,
    /// The last reading before the workload and the last after it, where the capture is whole.
    pub ends: Option<(&'a Reading, &'a Reading)>,
    steps: Steps,
}

/// Counters that went backwards between two readings.
#[derive(Default)]
struct Steps {
    reset: Option<String>,
    /// Columns that passed 2^64, which loses nothing.
    wrapped: Vec<usize>,
    /// Columns that look 32 bits wide: how often they passed their end is not known.
    narrow: Vec<usize>,
}

impl<'a> DeviceRead<'a> {
    pub(super) fn new(
        device: &'a Device,
        readings: &'a [&'a Reading],
        columns: &'a Columns<'a>,
        whole: bool,
    ) -> DeviceRead<'a> {
        let ends = (last_of(readings, Phase::Before), last_of(readings, Phase::After));
        let ends = if let (Some(base), Some(last), true) = (ends.0, ends.1, whole) {
            Some((base, last))
        } else {
            None
        };
        let steps = steps(readings, &columns.capture.columns);
        DeviceRead {
            name: &device.name,
            lifespan_ms: device.lifespan_ms,
            readings,
            columns,
            whole,
            ends,
            steps,
        }
    }

    pub(super) fn is_reset(&self) -> bool {
        self.steps.reset.is_some()
    }

    pub(super) fn laws(&self) -> Option<[[usize; 4]; 2]> {
        self.columns.laws
    }

    /// How far a counter moved during the workload. Subtraction that wraps is right for one that passed 2^64.
    pub(super) fn total(&self, column: Option<usize>) -> Option<u64> {
        let (column, (base, last)) = (column?, self.ends?);
        if self.is_reset() || self.steps.narrow.contains(&column) {
            return None;
        }
        let value = |reading: &Reading| reading.values.get(column).copied().flatten();
        Some(value(last)?.wrapping_sub(value(base)?))
    }

    pub(super) fn named_total(&self, name: &str) -> Option<u64> {
        self.total(self.columns.find(name))
    }

    pub(super) fn readings(&self) -> &'a [&'a Reading] {
        self.readings
    }

    /// Whether the last two readings of a phase are equal in all bytes.
    pub(super) fn is_quiet(&self, phase: Phase) -> bool {
        let mut of_phase = self.readings.iter().rev().filter(|reading| reading.phase == phase);
        match (of_phase.next(), of_phase.next()) {
            (Some(last), Some(previous)) => self.same_bytes(last, previous),
            _ => false,
        }
    }

    /// Whether three or more readings of the workload all show the same bytes.
    pub(super) fn stood_still(&self) -> bool {
        let mut during = self.readings.iter().filter(|reading| reading.phase == Phase::During);
        let Some(first) = during.next() else { return false };
        let mut more = 0;
        for reading in during {
            if !self.same_bytes(first, reading) {
                return false;
            }
            more += 1;
        }
        more >= 2
    }

    pub(super) fn moved_anything(&self) -> bool {
        ["tx_bytes", "rx_bytes"].iter().any(|name| self.named_total(name).is_some_and(|bytes| bytes > 0))
    }

    pub(super) fn traffic(&self, capture: &Capture, notes: &mut Notes) -> NicTraffic {
        self.note_readings(notes);
        let samples = self.readings.iter().filter(|reading| reading.phase == Phase::During).count();
        NicTraffic {
            node: capture.node.clone(),
            nic: self.name.to_owned(),
            // A capture that was cut does not show whether the device was still there at the end.
            listed: self.whole.then_some(true),
            tx_bytes: self.sum(&self.columns.sent),
            rx_bytes: self.sum(&self.columns.received),
            all_tx_bytes: self.named_total("tx_bytes"),
            all_rx_bytes: self.named_total("rx_bytes"),
            plateau_tx_gb_s: self.plateau(&self.columns.sent),
            plateau_rx_gb_s: self.plateau(&self.columns.received),
            retrans_pkts: self.named_total("retrans_pkts"),
            retrans_timeouts: self.named_total("retrans_timeout_events"),
            rx_drops: self.named_total("rx_drops"),
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            missing: self.note_missing(notes),
        }
    }

    /// The sum over the direction's counters, all of which must be there: no counters make no total.
    fn sum(&self, columns: &[Option<usize>]) -> Option<u64> {
        if columns.is_empty() {
            return None;
        }
        columns.iter().try_fold(0u64, |sum, column| sum.checked_add(self.total(*column)?))
    }

    fn plateau(&self, columns: &[Option<usize>]) -> Option<f64> {
        let columns: Vec<usize> = columns.iter().copied().collect::<Option<_>>()?;
        let unsure = self.is_reset() || columns.iter().any(|column| self.steps.narrow.contains(column));
        if unsure || columns.is_empty() {
            return None;
        }
        let (base, _) = self.ends?;
        let start = self.readings.iter().rposition(|reading| reading.phase == Phase::Before)?;
        let mut rates = Vec::new();
        let mut anchor = base;
        for reading in &self.readings[start + 1..] {
            let Some(moved) = moved(anchor, reading, &columns) else { continue };
            let cs = reading.uptime_cs.saturating_sub(anchor.uptime_cs);
            // The uptime counts in hundredths and the driver answers from a cache: a shorter window is mostly error.
            if cs >= 100 {
                // Bytes in a hundredth of a second, to gigabytes in a second.
                rates.push(moved as f64 / cs as f64 / 1e7);
                anchor = reading;
            }
            if reading.phase == Phase::After {
                break;
            }
        }
        ninetieth(rates)
    }

    /// Every counter that the numbers need and that gave none at least once.
    fn note_missing(&self, notes: &mut Notes) -> Vec<String> {
        const ALWAYS: [&str; 5] =
            ["tx_bytes", "rx_bytes", "retrans_pkts", "retrans_timeout_events", "rx_drops"];
        let map = self.columns.map;
        let chosen = map.sent.iter().chain(&map.received).map(String::as_str);
        let mut missing: Vec<&str> = Vec::new();
        let needed = ALWAYS.into_iter().filter(|name| !self.columns.absent.contains(name));
        for name in chosen.chain(needed) {
            let column = self.columns.find(name);
            let gap = |reading: &&Reading| {
                column.is_none_or(|at| reading.values.get(at).copied().flatten().is_none())
            };
            if self.readings.iter().any(gap) && !missing.contains(&name) {
                missing.push(name);
            }
        }
        let bad = |name: &&str| {
            let capture = self.columns.capture;
            let found = capture.bad.iter().find(|bad| bad.device == self.name && bad.counter == **name)?;
            Some(format!("{name}: `{}`", found.text))
        };
        let held: Vec<String> = missing.iter().filter_map(bad).collect();
        if !held.is_empty() {
            notes.device(
                EfaFinding::CounterBad.code(),
                self.name,
                "counters are not numbers",
                held.join(", "),
            );
        }
        let absent: Vec<&str> = missing.iter().filter(|name| bad(name).is_none()).copied().collect();
        if !absent.is_empty() {
            let text = "required counters could not be read";
            notes.device(EfaFinding::CounterMissing.code(), self.name, text, absent.join(", "));
        }
        missing.into_iter().map(str::to_owned).collect()
    }

    fn note_readings(&self, notes: &mut Notes) {
        if let Some(column) = &self.steps.reset {
            let text = "counters fell during the capture: the driver was reloaded";
            notes.device(EfaFinding::CounterReset.code(), self.name, text, format!("{column} first"));
        }
        let names = |columns: &[usize]| {
            let names: Vec<&str> = columns
                .iter()
                .filter_map(|at| Some(self.columns.capture.columns.get(*at)?.as_str()))
                .collect();
            names.join(", ")
        };
        if !self.steps.wrapped.is_empty() {
            let text = "counters wrapped at 2^64; totals are corrected";
            notes.device(EfaFinding::CounterWrap.code(), self.name, text, names(&self.steps.wrapped));
        }
        if !self.steps.narrow.is_empty() {
            let text = "counters wrapped at 2^32 an unknown number of times; no totals";
            notes.device(EfaFinding::CounterWrap.code(), self.name, text, names(&self.steps.narrow));
        }
        if let Some(lifespan) = self.lifespan_ms
            && self.readings.windows(2).any(|pair| nearer_than(pair[0], pair[1], lifespan))
        {
            let text = "readings are closer together than the driver's cache lifetime";
            notes.device(EfaFinding::ReadingStale.code(), self.name, text, format!("{lifespan} ms"));
        }
        if self.whole && self.ends.is_none() {
            let text = "device has no reading before or none after the workload";
            notes.device(EfaFinding::CaptureCut.code(), self.name, text, String::new());
        }
        if self.ends.is_some() {
            for (phase, text) in [
                (
                    Phase::Before,
                    "traffic before the workload had not stopped; it may be counted to the workload",
                ),
                (Phase::After, "traffic after the workload had not stopped; some of it may not be counted"),
            ] {
                if !self.is_quiet(phase) {
                    notes.device(EfaFinding::NotQuiet.code(), self.name, text, String::new());
                }
            }
        }
    }

    fn same_bytes(&self, one: &Reading, other: &Reading) -> bool {
        self.columns.payload.iter().all(|at| one.values.get(*at) == other.values.get(*at))
    }
}

/// Only where it is certain: uptimes are cut off to hundredths.
fn nearer_than(one: &Reading, other: &Reading, lifespan_ms: u64) -> bool {
    let apart_cs = other.uptime_cs.saturating_sub(one.uptime_cs);
    apart_cs.saturating_add(1).saturating_mul(10) < lifespan_ms
}

fn steps(readings: &[&Reading], columns: &[String]) -> Steps {
    let mut steps = Steps::default();
    let mut last: Vec<Option<(u64, u64)>> = vec![None; columns.len()];
    for reading in readings {
        for ((at, value), last) in reading.values.iter().enumerate().zip(&mut last) {
            let Some(value) = *value else { continue };
            let Some((before, uptime_cs)) = last.replace((value, reading.uptime_cs)) else { continue };
            match Step::between(before, value, reading.uptime_cs.saturating_sub(uptime_cs)) {
                Step::On(_) => {}
                Step::Wrapped(_) => note(&mut steps.wrapped, at),
                Step::Narrow => note(&mut steps.narrow, at),
                Step::Fell if steps.reset.is_none() => steps.reset = columns.get(at).cloned(),
                Step::Fell => {}
            }
        }
    }
    steps
}

fn note(columns: &mut Vec<usize>, at: usize) {
    if !columns.contains(&at) {
        columns.push(at);
    }
}

/// Bytes over all counters of one direction, from one reading to a later one.
pub(super) fn moved(from: &Reading, to: &Reading, columns: &[usize]) -> Option<u128> {
    let value = |reading: &Reading, at: usize| reading.values.get(at).copied().flatten();
    columns
        .iter()
        .try_fold(0, |sum: u128, at| Some(sum + u128::from(value(to, *at)?.wrapping_sub(value(from, *at)?))))
}

fn ninetieth(mut rates: Vec<f64>) -> Option<f64> {
    let most = rates.iter().copied().fold(0.0, f64::max);
    rates.retain(|rate| *rate >= most / 10.0);
    rates.sort_by(f64::total_cmp);
    let rank = (rates.len() * 9).div_ceil(10);
    rates.get(rank.checked_sub(1)?).copied()
}
