//! Counters of the NICs of each node within the window. Every report of a node has all of its NICs: they are read once.

use super::Report;
use super::clocks::Clocks;
use super::window::Window;
use crate::recipe::of_reports::{NicRates, capture_files, capture_rates, report_rates};
use crate::result_table::visible;
use nsys::trace::Trace;
use std::collections::BTreeSet;

/// Counters of all nodes together; the first nodes come first.
const MOST_COUNTERS: usize = 512;
/// Points of one of them; of more the mean by bin.
const MOST_POINTS: usize = 100;

/// One counter of one NIC, in nanoseconds since the begin of the window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counter {
    pub node: String,
    pub device: String,
    pub counter: String,
    pub unit: String,
    /// From when on each mean rate counts.
    pub points: Vec<(i64, f64)>,
    /// Over the window, weighted by time.
    pub mean: f64,
    /// Where it was sampled over longer than the window, which then does not decide what it shows: over how long.
    pub coarse_ns: Option<u64>,
}

pub(super) fn read(
    reports: &[Report<'_>],
    order: &[usize],
    window: &Window,
    clocks: &Clocks<'_>,
    notes: &mut Vec<String>,
) -> Vec<Counter> {
    let (mut files, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    // What carries data comes before packets, requests and errors, of all nodes.
    let (mut bytes, mut others) = (Vec::new(), Vec::new());
    let (mut resting, mut more) = (0, 0);
    let mut put = |node: &str, report: usize, later: i64, rates: Vec<NicRates>| {
        for rates in rates {
            match within(node, rates, (report, later), window, clocks) {
                None => {}
                Some(counter) if counter.mean == 0.0 => resting += 1,
                Some(counter) => {
                    let of_kind = if counter.unit.starts_with("bytes") { &mut bytes } else { &mut others };
                    match of_kind.len() < MOST_COUNTERS {
                        true => of_kind.push(counter),
                        false => more += 1,
                    }
                }
            }
        }
    };
    for at in order {
        let report = &reports[*at];
        let Ok(trace) = Trace::open(&report.input.path) else { continue };
        for path in capture_files(&trace) {
            if !files.insert(path.clone()) {
                continue;
            }
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let capture = match capture_rates(&path) {
                Ok(capture) => capture,
                Err(why) => {
                    notes.push(format!("{file}: {why}"));
                    continue;
                }
            };
            // On the clock of its own node.
            let of_node = order.iter().copied().find(|at| reports[*at].node == capture.node);
            let Some((of_node, utc)) = of_node.and_then(|at| Some((at, reports[at].utc_epoch_ns?))) else {
                notes.push(format!("{file}: no report of {} says when it began", visible(&capture.node)));
                continue;
            };
            if nodes.insert(capture.node.clone()) {
                let later = capture.utc_epoch_ns.saturating_sub(utc);
                put(&capture.node, of_node, later, capture.nics);
            }
        }
    }
    for at in order {
        let report = &reports[*at];
        if nodes.contains(&report.node) {
            continue;
        }
        let rates = Trace::open(&report.input.path).and_then(|trace| report_rates(&trace));
        match rates {
            Ok(rates) if rates.is_empty() => {}
            Ok(rates) => {
                nodes.insert(report.node.clone());
                put(&report.node, *at, 0, rates);
            }
            Err(error) => notes.push(format!("{}: counters of NICs: {error}", report.input.shown)),
        }
    }
    let mut counters = bytes;
    counters.append(&mut others);
    more += counters.len().saturating_sub(MOST_COUNTERS);
    counters.truncate(MOST_COUNTERS);
    for (count, why) in
        [(resting, "counters of NICs at rest, not shown"), (more, "further counters of NICs, not shown")]
    {
        if count > 0 {
            notes.push(format!("{why}: {count}"));
        }
    }
    counters
}

/// The part of it that the window shows; `None` where no interval overlaps it.
fn within(
    node: &str,
    rates: NicRates,
    (report, later): (usize, i64),
    window: &Window,
    clocks: &Clocks<'_>,
) -> Option<Counter> {
    let (from, to) = window.spans[report]?;
    let mut longest = 0;
    let inside = rates.samples.into_iter().filter_map(|(start, end, value)| {
        let whole = end.abs_diff(start);
        let (start, end) = (start.saturating_add(later).max(from), end.saturating_add(later).min(to));
        let is_inside = start < end && value.is_finite();
        longest = longest.max(if is_inside { whole } else { 0 });
        is_inside.then_some((start, end, value))
    });
    let inside: Vec<(i64, i64, f64)> = inside.collect();
    let mean = |samples: &[(i64, i64, f64)]| {
        let weight = |(start, end, _): &(i64, i64, f64)| end.abs_diff(*start) as f64;
        let total: f64 = samples.iter().map(weight).sum();
        samples.iter().map(|one| one.2 * weight(one)).sum::<f64>() / total
    };
    let each = inside.len().div_ceil(MOST_POINTS).max(1);
    let points = inside.chunks(each).map(|chunk| {
        let at = clocks.at(report, chunk[0].0) - window.origin();
        (i64::try_from(at).unwrap_or_default(), mean(chunk))
    });
    let points: Vec<(i64, f64)> = points.collect();
    (!inside.is_empty()).then(|| Counter {
        node: node.to_owned(),
        device: visible(&rates.device).into_owned(),
        counter: visible(&rates.counter).into_owned(),
        unit: visible(&rates.unit).into_owned(),
        points,
        mean: mean(&inside),
        coarse_ns: (longest > window.ns()).then_some(longest),
    })
}
