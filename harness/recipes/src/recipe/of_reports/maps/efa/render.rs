//! Tables and charts of EFA counters over time.

use super::super::means::{Mean, from_rates};
use super::super::window::{PlacedReport, Window};
use super::Host;
use super::names::{COUNTERS, Counter};
use super::source::Series;
use crate::chart::{Axis, Chart, Figure, Heatmap, HeatmapRow};
use crate::recipe::of_reports::Made;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::report_file::natural;
use std::collections::BTreeSet;

struct Row<'a> {
    host: &'a Host<'a>,
    device: &'a str,
    counter: usize,
    series: &'a Series,
    bins: Vec<Mean>,
}

impl Row<'_> {
    fn counter(&self) -> &'static Counter {
        &COUNTERS[self.counter]
    }

    fn moved(&self) -> bool {
        self.bins.iter().any(|bin| bin.value().is_some_and(|rate| rate > 0.0))
    }
}

pub(super) fn made(hosts: &[Host], placed: &[PlacedReport], window: &Window, mut notes: Vec<String>) -> Made {
    let mut rows: Vec<Row> = Vec::new();
    for ((host, placed), shift) in hosts.iter().zip(placed).zip(&window.shifts) {
        let measured = placed.coverage.measured();
        rows.extend(host.source.series.iter().map(|((device, counter), series)| Row {
            host,
            device,
            counter: *counter,
            series,
            bins: from_rates(&series.rates, measured, *shift, window),
        }));
    }
    rows.sort_by(|a, b| {
        let of_host = || natural(&a.host.name, &b.host.name);
        a.counter.cmp(&b.counter).then_with(of_host).then_with(|| natural(a.device, b.device))
    });
    let moved: BTreeSet<usize> = rows.iter().filter(|row| row.moved()).map(|row| row.counter).collect();
    let still: BTreeSet<usize> =
        rows.iter().map(|row| row.counter).filter(|at| !moved.contains(at)).collect();
    if !still.is_empty() {
        let still: Vec<&str> = still.iter().map(|at| COUNTERS[*at].name).collect();
        notes.push(format!("counters at rest on every device, only in the totals: {}", still.join(", ")));
    }
    let totals = totals(&rows);
    rows.retain(|row| moved.contains(&row.counter));
    let charts = moved.iter().map(|counter| chart(*counter, &rows, window)).collect();
    Made {
        tables: vec![("totals", totals), ("heatmap", bins(&rows, window))],
        charts,
        notes,
        ..Made::default()
    }
}

const NAME: &str = super::NETWORK_MAP_AWS.name;
const TITLE: &str = super::NETWORK_MAP_AWS.title;
const PLAIN: Quantity = Quantity::Plain;

fn totals(rows: &[Row]) -> ResultTable {
    let all: Vec<Mean> = rows.iter().map(|row| Mean::combine(&row.bins)).collect();
    let most = rows.iter().map(|row| row.series.rates.iter().map(|rate| rate.value).reduce(f64::max));
    let columns = vec![
        Column::texts("Host", rows.iter().map(|row| row.host.name.as_str())),
        Column::texts("Device", rows.iter().map(|row| row.device)),
        Column::texts("Counter", rows.iter().map(|row| row.counter().name)),
        Column::texts("Unit", rows.iter().map(|row| row.counter().unit)),
        Column::texts("From", rows.iter().map(|row| row.host.from)),
        Column::integers("Samples", PLAIN, rows.iter().map(|row| row.series.samples as i64)),
        Column::integers("Saturated", PLAIN, rows.iter().map(|row| row.series.saturated as i64)),
        Column::integers("Measured", Quantity::Nanoseconds, all.iter().map(|mean| mean.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all.iter().map(Mean::value)),
        Column::maybe_decimals("Max", PLAIN, most),
    ];
    ResultTable::new(NAME, TITLE, columns)
}

fn bins(rows: &[Row], window: &Window) -> ResultTable {
    let all = || rows.iter().flat_map(|row| row.bins.iter().enumerate().map(move |(at, bin)| (row, at, bin)));
    let ns = Quantity::Nanoseconds;
    let columns = vec![
        Column::texts("Host", all().map(|(row, ..)| row.host.name.as_str())),
        Column::texts("Device", all().map(|(row, ..)| row.device)),
        Column::texts("Counter", all().map(|(row, ..)| row.counter().name)),
        Column::texts("Unit", all().map(|(row, ..)| row.counter().unit)),
        Column::integers("Start", ns, all().map(|(_, at, _)| window.edges[at])),
        Column::integers("End", ns, all().map(|(_, at, _)| window.edges[at + 1])),
        Column::integers("Measured", ns, all().map(|(.., bin)| bin.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all().map(|(.., bin)| bin.value())),
    ];
    ResultTable::new(NAME, TITLE, columns)
}

fn chart(counter: usize, rows: &[Row], window: &Window) -> Chart {
    let Counter { name, unit } = COUNTERS[counter];
    let value = match COUNTERS[counter].is_of_bytes() {
        true => Axis::linear(name, Quantity::BytesPerSecond),
        false => Axis::linear(&format!("{name}, {unit}"), PLAIN),
    };
    let heat = |row: &Row| HeatmapRow {
        label: format!("{}, {}", row.host.name, row.device),
        rank: None,
        values: row.bins.iter().map(Mean::value).collect(),
    };
    Chart {
        name: name.into(),
        title: name.to_owned(),
        about: "each cell is the mean rate of a device in its time; an empty cell was not measured"
            .to_owned(),
        figure: Figure::Heatmap(Heatmap {
            x: Axis::linear("Time", Quantity::Nanoseconds),
            edges: window.edges.clone(),
            value,
            most: None,
            rows: rows.iter().filter(|row| row.counter == counter).map(heat).collect(),
        }),
    }
}
