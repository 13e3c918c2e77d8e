//! Rates over intervals of the EFA devices of one host, by device and counter, from events of a report or from a
//! capture of the harness's own sampler.

use super::super::packed::{PackedSamples, Sample};
use super::super::window::Coverage;
use super::names::{COUNTERS, by_name, named};
use crate::recipe::of_reports::generic::{generic_values, sources};
use logs::efa_counters::{Capture, Step};
use nsys::export::ExportError;
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Serialize, Deserialize)]
pub(super) struct Source {
    pub coverage: Coverage,
    /// By device and place of the counter.
    pub series: BTreeMap<(String, usize), Series>,
    pub notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Series {
    pub rates: PackedSamples,
    /// Samples at the maximum of the profiler's sampler.
    pub saturated: u64,
    pub samples: u64,
}

/// The meaning of a plugin's values, which events do not record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    PerSecond,
    SinceTheLast,
    SinceTheStart,
}

/// The maximum per second of samplers of 2024.
const MOST_PER_SECOND: f64 = i32::MAX as f64;

/// From generic events; nothing where none is of a device of EFA.
pub(super) fn from_events(trace: &Trace, mode: Mode) -> Result<Option<Source>, ExportError> {
    let values = generic_values(trace)?;
    let of_type = sources(trace)?;
    let mut unknown: BTreeSet<String> = BTreeSet::new();
    let (mut negative, mut shown): (u64, Option<(i64, i64)>) = (0, None);
    let mut samples: BTreeMap<(String, usize), Vec<(i64, f64)>> = BTreeMap::new();
    let mut known: BTreeMap<(i64, &str), Option<(String, usize)>> = BTreeMap::new();
    for one in &values {
        let key = known.entry((one.type_id, &*one.name)).or_insert_with(|| {
            let of_type = of_type.get(&one.type_id).map(String::as_str).unwrap_or_default();
            let ((device, counter), (of_device, of_counter)) = (named(&one.name), named(of_type));
            let device = device.or(of_device)?;
            let counter = counter.or(of_counter);
            if counter.is_none() {
                unknown.insert(one.name.to_string());
            }
            Some((device.to_owned(), counter?))
        });
        let (Some(key), Some(value)) = (key, one.value) else { continue };
        if value < 0.0 {
            negative += 1;
            continue;
        }
        let at = one.timestamp;
        shown = Some(shown.map_or((at, at), |all| (all.0.min(at), all.1.max(at))));
        samples.entry(key.clone()).or_default().push((at, value));
    }
    let Some(shown) = shown else { return Ok(None) };
    let mut notes = Vec::new();
    if negative > 0 {
        notes.push(format!("samples of EFA below zero, left out: {negative}"));
    }
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().collect();
        notes.push(format!("samples of EFA of no known counter, left out: {}", unknown.join(", ")));
    }
    let mut saturated: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut fell: BTreeSet<String> = BTreeSet::new();
    let mut series = BTreeMap::new();
    for ((device, counter), samples) in samples {
        let made = rates(samples, mode);
        if made.fell {
            fell.insert(format!("{device} {}", COUNTERS[counter].name));
        }
        if made.series.saturated > 0 {
            saturated.entry(counter).or_default().push(device.clone());
        }
        series.insert((device, counter), made.series);
    }
    if !fell.is_empty() {
        let fell: Vec<String> = fell.into_iter().collect();
        notes.push(format!("counters fell, so these intervals are not measured: {}", fell.join(", ")));
    }
    for (counter, devices) in saturated {
        notes.push(format!(
            "{}: saturated at {MOST_PER_SECOND} a second, the maximum of samplers of 2024; the true rate may be \
             higher, on: {}",
            COUNTERS[counter].name,
            devices.join(", ")
        ));
    }
    Ok(Some(Source { coverage: Coverage::sampled(shown, trace.asked_span()), series, notes }))
}

struct Rates {
    series: Series,
    fell: bool,
}

/// A sample covers the time since the one before it: the first covers none.
fn rates(mut samples: Vec<(i64, f64)>, mode: Mode) -> Rates {
    samples.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let saturated = samples.iter().filter(|(_, value)| mode == Mode::PerSecond && *value == MOST_PER_SECOND);
    let saturated = saturated.count() as u64;
    let count = samples.len() as u64;
    let (mut rates, mut fell) = (Vec::new(), false);
    for pair in samples.windows(2) {
        let ((start, before), (end, value)) = (pair[0], pair[1]);
        let seconds = end.wrapping_sub(start) as u64 as f64 / 1e9;
        if end == start {
            continue;
        }
        let value = match mode {
            Mode::PerSecond => value,
            Mode::SinceTheLast => value / seconds,
            Mode::SinceTheStart if value < before => {
                fell = true;
                continue;
            }
            Mode::SinceTheStart => (value - before) / seconds,
        };
        rates.push(Sample { start, end, value });
    }
    Rates { series: Series { rates: PackedSamples::pack(rates), saturated, samples: count }, fell }
}

/// From a capture; nothing where it has no reading. Times are since the capture's begin.
pub(super) fn from_capture(capture: &Capture) -> Option<Source> {
    let at = |uptime_cs: u64| {
        let cs = i128::from(uptime_cs) - i128::from(capture.begin.uptime_cs);
        i64::try_from(cs * NS_PER_CS).ok()
    };
    let columns: Vec<Option<usize>> = capture.columns.iter().map(|column| by_name(column)).collect();
    let times = capture.readings.iter().filter_map(|reading| at(reading.uptime_cs));
    let shown = times.map(|at| (at, at)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
    let mut notes = Vec::new();
    let mut fell: BTreeSet<String> = BTreeSet::new();
    let mut last: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    let mut rates: BTreeMap<(usize, usize), (Vec<Sample>, u64)> = BTreeMap::new();
    for reading in &capture.readings {
        for (value, counter) in reading.values.iter().zip(&columns) {
            let (Some(value), Some(counter)) = (*value, *counter) else { continue };
            let key = (reading.device, counter);
            let (rates, samples) = rates.entry(key).or_default();
            *samples += 1;
            let Some((before, from_cs)) = last.get(&key).copied() else {
                last.insert(key, (value, reading.uptime_cs));
                continue;
            };
            // Two readings in one hundredth of a second have no time between them: the next one covers both.
            if reading.uptime_cs == from_cs {
                continue;
            }
            last.insert(key, (value, reading.uptime_cs));
            let cs = reading.uptime_cs.checked_sub(from_cs);
            let moved = cs.map(|cs| (cs, Step::between(before, value, cs)));
            match (moved, at(from_cs), at(reading.uptime_cs)) {
                (Some((cs, Step::On(moved) | Step::Wrapped(moved))), Some(start), Some(end)) => {
                    rates.push(Sample { start, end, value: moved as f64 * 100.0 / cs as f64 });
                }
                _ => {
                    let device = capture.devices.get(reading.device).map_or("", |device| &device.name);
                    fell.insert(format!("{device} {}", COUNTERS[counter].name));
                }
            }
        }
    }
    if !fell.is_empty() {
        let fell: Vec<String> = fell.into_iter().collect();
        notes.push(format!("counters fell, so these intervals are not measured: {}", fell.join(", ")));
    }
    if capture.end.is_none() {
        notes.push("the capture was cut off".to_owned());
    }
    let missing: BTreeSet<&str> = (capture.missing.iter().map(|one| one.counter.as_str()))
        .chain(capture.bad.iter().map(|one| one.counter.as_str()))
        .collect();
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.into_iter().collect();
        notes.push(format!("counters with missing values: {}", missing.join(", ")));
    }
    if !capture.unreadable.is_empty() {
        notes.push(format!("unreadable devices: {}", capture.unreadable.join(", ")));
    }
    let series = rates.into_iter().filter_map(|((device, counter), (rates, samples))| {
        let device = capture.devices.get(device)?.name.clone();
        Some(((device, counter), Series { rates: PackedSamples::pack(rates), saturated: 0, samples }))
    });
    Some(Source { coverage: Coverage::sampled(shown, None), series: series.collect(), notes })
}

const NS_PER_CS: i128 = 10_000_000;
