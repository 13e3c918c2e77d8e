//! Maps of how much of each bin something was going on: shares of time of each GPU of each report, by kind, as tables and
//! charts. The recipes define the activities.

use super::packed::PackedSpans;
use super::window::{Coverage, Window};
use crate::chart::{Axis, Chart, Figure, Heatmap, HeatmapRow};
use crate::recipe::of_reports::{Made, ReportExtract};
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use crate::spans::Spans;
use nsys::trace::{Trace, pid_of};
use serde::{Deserialize, Serialize};

/// The name of a map, and the kinds of its shares.
pub(super) struct Shares {
    pub name: &'static str,
    pub title: &'static str,
    pub kinds: &'static [ShareKind],
    /// When the first two kinds were going on at once.
    pub both: Option<ShareKind>,
}

pub(super) struct ShareKind {
    pub name: &'static str,
    /// A column.
    pub heading: &'static str,
    /// Of a chart.
    pub title: &'static str,
}

/// A GPU as one process sees it; a process that communicates and has none stands alone.
pub(super) struct ProcessGpu {
    pub process: Option<i64>,
    pub device: Option<i64>,
    /// One for each kind; nothing where a kind cannot be there.
    pub sets: Vec<Option<Spans>>,
    /// Moments whose activity is unknown.
    pub unknown: Spans,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Extract {
    coverage: Coverage,
    places: Vec<Packed>,
}

#[derive(Serialize, Deserialize)]
struct Packed {
    process: Option<i64>,
    device: Option<i64>,
    sets: Vec<Option<PackedSpans>>,
    unknown: PackedSpans,
}

/// The extract of a report; `shown` is from the first to the last activity of its places. Times are cut by a filter
/// already.
pub(super) fn extract(trace: &Trace, shown: (i64, i64), mut places: Vec<ProcessGpu>) -> Extract {
    places.sort_by_key(|place| (place.process, place.device));
    let recorded = trace.recorded().unwrap_or(shown);
    // Skipped damaged rows must not shorten the shown span.
    let recorded = (recorded.0.min(shown.0), recorded.1.max(shown.1));
    let places = places.into_iter().map(|place| Packed {
        process: place.process,
        device: place.device,
        sets: place.sets.iter().map(|set| set.as_ref().map(PackedSpans::pack)).collect(),
        unknown: PackedSpans::pack(&place.unknown),
    });
    let coverage = Coverage { shown, recorded, asked: trace.asked_span() };
    Extract { coverage, places: places.collect() }
}

/// One place over the window.
struct Row {
    rank: i64,
    pid: Option<i64>,
    device: Option<i64>,
    label: String,
    /// How much of each bin was measured.
    measured: Vec<u64>,
    /// Of each kind, and of both at once.
    busy: Vec<Option<Vec<u64>>>,
}

pub(super) fn make(of: &Shares, reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let Some(window) = Window::over_reports(reports, |extract| extract.coverage, arguments) else {
        return Made::default();
    };
    let rows = reports.iter().zip(&window.shifts);
    let rows: Vec<Row> = rows.flat_map(|(report, shift)| rows_of(of, report, *shift, &window)).collect();
    let kinds: Vec<&ShareKind> = of.kinds.iter().chain(&of.both).collect();
    Made {
        tables: vec![("totals", totals(of, &kinds, &rows)), ("heatmap", bins(of, &kinds, &rows, &window))],
        charts: kinds.iter().enumerate().map(|(at, kind)| chart(at, kind, &rows, &window)).collect(),
        notes: window.notes,
        ..Made::default()
    }
}

fn rows_of(of: &Shares, report: &ReportExtract<&Extract>, shift: i64, window: &Window) -> Vec<Row> {
    let places = &report.extract.places;
    let (from, to) = report.extract.coverage.measured();
    let measured = Spans::one(from.saturating_add(shift), to.saturating_add(shift));
    let row = |place: &Packed| {
        let known = measured.without(&place.unknown.shifted(shift));
        let mut sets: Vec<Option<Spans>> =
            place.sets.iter().map(|set| set.as_ref().map(|set| set.shifted(shift).and(&known))).collect();
        if of.both.is_some() {
            let both = match sets.as_slice() {
                [Some(one), Some(two), ..] => Some(one.and(two)),
                _ => None,
            };
            sets.push(both);
        }
        let pid = place.process.map(pid_of);
        // Processes number their devices each for itself.
        let same = places.iter().filter(|other| other.device == place.device).count();
        let mut label = format!("rank {}", report.rank);
        if let Some(pid) = pid.filter(|_| same > 1 || place.device.is_none()) {
            label.push_str(&format!(", PID {pid}"));
        }
        if let Some(device) = place.device {
            label.push_str(&format!(", GPU {device}"));
        }
        Row {
            rank: report.rank,
            pid,
            device: place.device,
            label,
            measured: window.within(&known),
            busy: sets.iter().map(|set| set.as_ref().map(|set| window.within(set))).collect(),
        }
    };
    places.iter().map(row).collect()
}

fn share(busy: u64, measured: u64) -> Option<f64> {
    (measured > 0).then(|| 100.0 * busy as f64 / measured as f64)
}

/// Lengths within a window fit, as the window does.
fn ns(name: &str, values: impl Iterator<Item = Option<u64>>) -> Column {
    Column::maybe_integers(
        name,
        Quantity::Nanoseconds,
        values.map(|ns| ns.and_then(|ns| i64::try_from(ns).ok())),
    )
}

fn totals(of: &Shares, kinds: &[&ShareKind], rows: &[Row]) -> ResultTable {
    let plain = Quantity::Plain;
    let measured = |row: &Row| row.measured.iter().sum::<u64>();
    let busy = |row: &Row, at: usize| row.busy[at].as_ref().map(|bins| bins.iter().sum::<u64>());
    let mut columns = vec![
        Column::integers("Rank", plain, rows.iter().map(|row| row.rank)),
        Column::maybe_integers("PID", plain, rows.iter().map(|row| row.pid)),
        Column::maybe_integers("Device", plain, rows.iter().map(|row| row.device)),
        ns("Measured", rows.iter().map(|row| Some(measured(row)))),
    ];
    for (at, kind) in kinds.iter().enumerate() {
        // Where nothing was measured, nothing was seen to be idle.
        let known = |row: &Row| busy(row, at).filter(|_| measured(row) > 0);
        columns.push(ns(&format!("{} Time", kind.heading), rows.iter().map(known)));
    }
    for (at, kind) in kinds.iter().enumerate() {
        let percent = rows.iter().map(|row| share(busy(row, at)?, measured(row)));
        columns.push(Column::maybe_decimals(kind.heading, Quantity::Percent, percent));
    }
    ResultTable::new(of.name, of.title, columns)
}

fn bins(of: &Shares, kinds: &[&ShareKind], rows: &[Row], window: &Window) -> ResultTable {
    let plain = Quantity::Plain;
    let all = || rows.iter().flat_map(|row| (0..window.bins()).map(move |bin| (row, bin)));
    let mut columns = vec![
        Column::integers("Rank", plain, all().map(|(row, _)| row.rank)),
        Column::maybe_integers("PID", plain, all().map(|(row, _)| row.pid)),
        Column::maybe_integers("Device", plain, all().map(|(row, _)| row.device)),
        Column::integers("Start", Quantity::Nanoseconds, all().map(|(_, bin)| window.edges[bin])),
        Column::integers("End", Quantity::Nanoseconds, all().map(|(_, bin)| window.edges[bin + 1])),
        ns("Measured", all().map(|(row, bin)| Some(row.measured[bin]))),
    ];
    for (at, kind) in kinds.iter().enumerate() {
        let percent = all().map(|(row, bin)| share(row.busy[at].as_ref()?[bin], row.measured[bin]));
        columns.push(Column::maybe_decimals(kind.heading, Quantity::Percent, percent));
    }
    ResultTable::new(of.name, of.title, columns)
}

fn chart(at: usize, kind: &ShareKind, rows: &[Row], window: &Window) -> Chart {
    let value = |row: &Row, bin: usize| share(row.busy[at].as_ref()?[bin], row.measured[bin]);
    let row = |row: &Row| HeatmapRow {
        label: row.label.clone(),
        rank: Some(row.rank),
        values: (0..window.bins()).map(|bin| value(row, bin)).collect(),
    };
    Chart {
        name: kind.name.into(),
        title: kind.title.to_owned(),
        about: "each cell is the fraction of its time with this activity; an empty cell was not measured"
            .to_owned(),
        figure: Figure::Heatmap(Heatmap {
            x: Axis::linear("Time", Quantity::Nanoseconds),
            edges: window.edges.clone(),
            value: Axis::linear(kind.heading, Quantity::Percent),
            most: Some(100.0),
            rows: rows.iter().map(row).collect(),
        }),
    }
}
