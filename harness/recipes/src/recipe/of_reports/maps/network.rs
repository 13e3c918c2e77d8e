//! Traffic and send waits of NICs and switches: the mean rate in each bin.

use super::means::{Mean, from_rates};
use super::packed::{PackedSamples, Sample};
use super::window::{BINS, Coverage, NO_SHIFT, Window};
use crate::chart::{Axis, Chart, Figure, Heatmap, HeatmapRow};
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::network::per;
use crate::recipe::of_reports::samples::{NetNames, net_samples};
use crate::recipe::of_reports::together::Share;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{
    NET_IB_SWITCH_METRIC, NET_NIC_METRIC, NIC_ID_MAP, TARGET_INFO_NETWORK_METRICS, TARGET_INFO_NIC_INFO,
};
use nsys::trace::{Trace, nics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(in super::super) const NETWORK_TRAFFIC_MAP: ReportRecipe = ReportRecipe {
    name: "network_traffic_map",
    title: "Network Traffic over Time",
    about: "traffic and send waits of each NIC and switch over time",
    definition: "samples are rates over intervals, in the unit that the report states; bytes are shown per second. A \
                 cell is the mean of the rates in its bin, weighted by how much of the bin each interval covers; where \
                 none does, it is empty, never 0. A metric is selected by its name containing `bytes sent`, `bytes \
                 received`, `send wait`. Ports of a device, and metrics of several links, are separate. Bins are equal \
                 and reach from the first to the last such interval of all reports, or over the filter's span. Every \
                 adapter of a node is in each report of that node",
    arguments: &[BINS, NO_SHIFT],
    tables: &[
        &NET_NIC_METRIC,
        &NET_IB_SWITCH_METRIC,
        &NIC_ID_MAP,
        &TARGET_INFO_NIC_INFO,
        &TARGET_INFO_NETWORK_METRICS,
    ],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per metric of a device",
                columns: &[&["Rank", "Device", "Port", "Metric", "Unit", "Measured", "Mean", "Max"]],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[&["Rank", "Device", "Port", "Metric", "Unit", "Start", "End", "Measured", "Mean"]],
            },
        ],
        charts: &[
            ("sent", "bytes sent over time, by device"),
            ("received", "bytes received over time, by device"),
            ("send_waits", "waits to send over time, by device"),
            ("NAME_in_other_units", "the same for counters in another unit"),
        ],
        take,
        make,
    }),
};

/// The metrics to find, by the name of their chart.
struct Sought {
    holds: &'static str,
    name: &'static str,
    /// Of one more chart, where devices state different units.
    other: &'static str,
    title: &'static str,
}

const SOUGHT: [Sought; 3] = [
    Sought { holds: "bytes sent", name: "sent", other: "sent_in_other_units", title: "Bytes sent" },
    Sought {
        holds: "bytes received",
        name: "received",
        other: "received_in_other_units",
        title: "Bytes received",
    },
    Sought {
        holds: "send wait",
        name: "send_waits",
        other: "send_waits_in_other_units",
        title: "Waits to send",
    },
];

fn sought(metric: &str) -> Option<usize> {
    let metric = metric.to_lowercase();
    SOUGHT.iter().position(|one| metric.contains(one.holds))
}

/// In what rates are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Unit {
    BytesPerSecond,
    /// As the report states it.
    Own(String),
}

impl Unit {
    /// By the stated unit, with what rates are to be multiplied by.
    fn from_stated(stated: &str) -> (Unit, f64) {
        let what = stated.split('/').next().unwrap_or_default().trim().to_lowercase();
        match per(stated) {
            Some(ns) if ["byte", "bytes", "b"].contains(&what.as_str()) => (Unit::BytesPerSecond, 1e9 / ns),
            _ => (Unit::Own(stated.to_owned()), 1.0),
        }
    }

    fn name(&self) -> &str {
        match self {
            Unit::BytesPerSecond => "bytes/s",
            Unit::Own(stated) => stated,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Extract {
    coverage: Coverage,
    series: Vec<Series>,
}

#[derive(Serialize, Deserialize)]
struct Series {
    sought: usize,
    device: String,
    metric: String,
    port: Option<i64>,
    unit: Unit,
    rates: PackedSamples,
}

fn take(trace: &Trace, _: &Arguments) -> Share<Extract> {
    let (names, nics) = (NetNames::read(trace)?, nics(trace)?);
    let mut of_key: BTreeMap<_, Vec<Sample>> = BTreeMap::new();
    let (mut shown, mut rows): (Option<(i64, i64)>, u64) = (None, 0);
    for (spec, kind) in [(&NET_NIC_METRIC, "nic"), (&NET_IB_SWITCH_METRIC, "switch")] {
        for sample in net_samples(trace, spec)? {
            let metric = names.name(&sample);
            let Some(sought) = sought(&metric) else { continue };
            let known =
                nics.get(&sample.global_id).filter(|_| kind == "nic").and_then(|nic| nic.name.clone());
            let device = known.unwrap_or_else(|| format!("{kind} {}", sample.global_id));
            let (unit, factor) = Unit::from_stated(names.unit(&sample));
            let (start, end) = (sample.start, sample.end);
            shown = Some(shown.map_or((start, end), |all| (all.0.min(start), all.1.max(end))));
            rows += 1;
            let rates = of_key.entry((sought, kind, device, metric, sample.port, unit)).or_default();
            rates.push(Sample { start, end, value: sample.value as f64 * factor });
        }
    }
    let Some(shown) = shown else { return Ok(None) };
    let series = of_key.into_iter().map(|((sought, _, device, metric, port, unit), rates)| Series {
        sought,
        device,
        metric,
        port,
        unit,
        rates: PackedSamples::pack(rates),
    });
    let series = series.collect();
    Ok(Some((Extract { coverage: Coverage::sampled(shown, trace.asked_span()), series }, rows)))
}

struct Row<'a> {
    rank: i64,
    label: String,
    series: &'a Series,
    bins: Vec<Mean>,
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let Some(window) = Window::over_reports(reports, |extract| extract.coverage, arguments) else {
        return Made::default();
    };
    let mut rows: Vec<Row> = Vec::new();
    for (report, shift) in reports.iter().zip(&window.shifts) {
        let measured = report.extract.coverage.measured();
        rows.extend(report.extract.series.iter().map(|series| Row {
            rank: report.rank,
            label: label(report, series),
            series,
            bins: from_rates(&series.rates, measured, *shift, &window),
        }));
    }
    rows.sort_by_key(|row| (row.series.sought, row.rank));
    let tables = vec![("totals", totals(&rows)), ("heatmap", bins(&rows, &window))];
    Made { tables, charts: charts(&rows, &window), notes: window.notes, ..Made::default() }
}

/// Ports and links are named where a device has several of the same.
fn label(report: &ReportExtract<&Extract>, series: &Series) -> String {
    let alike = |other: &&Series| other.sought == series.sought && other.device == series.device;
    let others: Vec<&Series> = report.extract.series.iter().filter(alike).collect();
    let mut label = format!("rank {}, {}", report.rank, series.device);
    if others.iter().any(|other| other.metric != series.metric) {
        label.push_str(&format!(", {}", series.metric));
    }
    if let Some(port) = series.port.filter(|_| others.iter().any(|other| other.port != series.port)) {
        label.push_str(&format!(", port {port}"));
    }
    label
}

const PLAIN: Quantity = Quantity::Plain;

fn totals(rows: &[Row]) -> ResultTable {
    let all: Vec<Mean> = rows.iter().map(|row| Mean::combine(&row.bins)).collect();
    let most = rows.iter().map(|row| row.series.rates.iter().map(|rate| rate.value).reduce(f64::max));
    let columns = vec![
        Column::integers("Rank", PLAIN, rows.iter().map(|row| row.rank)),
        Column::texts("Device", rows.iter().map(|row| row.series.device.as_str())),
        Column::maybe_integers("Port", PLAIN, rows.iter().map(|row| row.series.port)),
        Column::texts("Metric", rows.iter().map(|row| row.series.metric.as_str())),
        Column::texts("Unit", rows.iter().map(|row| row.series.unit.name())),
        Column::integers("Measured", Quantity::Nanoseconds, all.iter().map(|mean| mean.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all.iter().map(Mean::value)),
        Column::maybe_decimals("Max", PLAIN, most),
    ];
    ResultTable::new(NETWORK_TRAFFIC_MAP.name, NETWORK_TRAFFIC_MAP.title, columns)
}

fn bins(rows: &[Row], window: &Window) -> ResultTable {
    let all = || rows.iter().flat_map(|row| row.bins.iter().enumerate().map(move |(at, bin)| (row, at, bin)));
    let ns = Quantity::Nanoseconds;
    let columns = vec![
        Column::integers("Rank", PLAIN, all().map(|(row, ..)| row.rank)),
        Column::texts("Device", all().map(|(row, ..)| row.series.device.as_str())),
        Column::maybe_integers("Port", PLAIN, all().map(|(row, ..)| row.series.port)),
        Column::texts("Metric", all().map(|(row, ..)| row.series.metric.as_str())),
        Column::texts("Unit", all().map(|(row, ..)| row.series.unit.name())),
        Column::integers("Start", ns, all().map(|(_, at, _)| window.edges[at])),
        Column::integers("End", ns, all().map(|(_, at, _)| window.edges[at + 1])),
        Column::integers("Measured", ns, all().map(|(.., bin)| bin.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all().map(|(.., bin)| bin.value())),
    ];
    ResultTable::new(NETWORK_TRAFFIC_MAP.name, NETWORK_TRAFFIC_MAP.title, columns)
}

/// One for each that is sought, in bytes where any is; what is in further units stands apart.
fn charts(rows: &[Row], window: &Window) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (at, sought) in SOUGHT.iter().enumerate() {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.series.sought == at).collect();
        let Some(unit) = of_it.iter().map(|row| &row.series.unit).min() else { continue };
        let (of_unit, others): (Vec<&Row>, Vec<&Row>) =
            of_it.iter().copied().partition(|row| row.series.unit == *unit);
        let value = match unit {
            Unit::BytesPerSecond => Axis::linear(sought.title, Quantity::BytesPerSecond),
            Unit::Own(unit) => Axis::linear(&format!("{}, {unit}", sought.title), PLAIN),
        };
        charts.push(chart((sought.name, sought.title), &of_unit, value, false, window));
        if !others.is_empty() {
            let value = Axis::linear(sought.title, PLAIN);
            charts.push(chart((sought.other, sought.title), &others, value, true, window));
        }
    }
    charts
}

fn chart(
    (name, title): (&'static str, &str),
    rows: &[&Row],
    value: Axis,
    says_unit: bool,
    window: &Window,
) -> Chart {
    let label = |row: &Row| match says_unit {
        true => format!("{}, in `{}`", row.label, row.series.unit.name()),
        false => row.label.clone(),
    };
    let heat = |row: &&Row| HeatmapRow {
        label: label(row),
        rank: Some(row.rank),
        values: row.bins.iter().map(Mean::value).collect(),
    };
    Chart {
        name: name.into(),
        title: title.to_owned(),
        about: "each cell is the mean rate in its time; an empty cell was not measured".to_owned(),
        figure: Figure::Heatmap(Heatmap {
            x: Axis::linear("Time", Quantity::Nanoseconds),
            edges: window.edges.clone(),
            value,
            most: None,
            rows: rows.iter().map(heat).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::of_reports::tests::{decimals, inputs, surveyed, table, texts};
    use crate::testing::Made;
    use nsys::tables::TableSpec;

    fn made() -> Made {
        let made = Made::begin();
        let names = [
            (1, "IB: Bytes sent", "Bytes/ms"),
            (2, "IB: Bytes received", "octets"),
            (3, "IB: Send waits", "ticks/ms"),
            (4, "IB: Packets sent", "packets/ms"),
            (5, "IB: Bytes sent", "octets"),
        ];
        for (index, name, unit) in names {
            made.put(
                &TARGET_INFO_NETWORK_METRICS,
                &[
                    ("metricsListId", 0i64.into()),
                    ("metricsIdx", (index as i64).into()),
                    ("name", name.to_owned().into()),
                    ("unit", unit.to_owned().into()),
                ],
            );
        }
        made.put(&NIC_ID_MAP, &[("nicId", 1i64.into()), ("globalId", 70i64.into())]);
        let info = [("GUID", 5i64.into()), ("nicId", 1i64.into()), ("name", "mlx5_0".to_owned().into())];
        made.put(&TARGET_INFO_NIC_INFO, &info);
        made
    }

    fn rate(made: &Made, spec: &TableSpec, (start, end): (i64, i64), id: i64, index: i64, value: i64) {
        let row =
            [("start", start), ("end", end), ("globalId", id), ("metricsListId", 0), ("metricsIdx", index)];
        let mut row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
        row.push(("value", value.into()));
        made.put(spec, &row);
    }

    #[test]
    fn rates_are_weighted_by_time_and_bytes_are_shown_per_second() {
        let made = made();
        rate(&made, &NET_NIC_METRIC, (0, 10), 70, 1, 6);
        rate(&made, &NET_NIC_METRIC, (10, 15), 70, 1, 12);
        rate(&made, &NET_NIC_METRIC, (40, 60), 70, 1, 0);
        rate(&made, &NET_NIC_METRIC, (0, 60), 70, 4, 1);
        rate(&made, &NET_IB_SWITCH_METRIC, (0, 60), 9, 3, 5);
        rate(&made, &NET_NIC_METRIC, (0, 60), 70, 2, 8);
        rate(&made, &NET_NIC_METRIC, (0, 60), 71, 5, 8);
        let outcome = surveyed("network_traffic_map", &["bins=3"], &inputs(vec![made.path()]));
        let totals = table(&outcome, "totals");
        assert_eq!(texts(totals, "Device"), ["mlx5_0", "nic 71", "mlx5_0", "switch 9"]);
        assert_eq!(texts(totals, "Unit"), ["bytes/s", "octets", "octets", "ticks/ms"]);
        let heatmap = table(&outcome, "heatmap");
        assert_eq!(decimals(heatmap, "Mean")[..3], [Some(8_000.0), None, Some(0.0)]);
        let shown = outcome.charts.iter().map(|chart| {
            let Figure::Heatmap(map) = &chart.figure else { panic!() };
            let rows: Vec<&str> = map.rows.iter().map(|row| row.label.as_str()).collect();
            (&*chart.name, map.value.name.as_str(), map.value.quantity, rows.join("; "))
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("sent", "Bytes sent", Quantity::BytesPerSecond, "rank 0, mlx5_0".to_owned()),
                ("sent_in_other_units", "Bytes sent", PLAIN, "rank 0, nic 71, in `octets`".to_owned()),
                ("received", "Bytes received, octets", PLAIN, "rank 0, mlx5_0".to_owned()),
                ("send_waits", "Waits to send, ticks/ms", PLAIN, "rank 0, switch 9".to_owned()),
            ]
        );
    }

    #[test]
    fn other_metrics_alone_are_no_data() {
        let made = made();
        rate(&made, &NET_NIC_METRIC, (0, 60), 70, 4, 1);
        let outcome = surveyed("network_traffic_map", &[], &inputs(vec![made.path()]));
        assert!(outcome.tables.is_empty());
        assert!(outcome.notes[0].contains("looked at 1 rows, found none"), "{:?}", outcome.notes);
    }
}
