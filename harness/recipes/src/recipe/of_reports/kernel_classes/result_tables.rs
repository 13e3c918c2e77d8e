//! The tables of classes, of bounds and of what to try, and the chart of classes.

use super::rule::{Advice, Figures};
use super::{Classes, Extract, KERNEL_CLASSES, Time, classes};
use crate::chart::{Axis, Bar, Bars, Chart, Figure};
use crate::recipe::of_reports::ReportExtract;
use crate::report::Arguments;
use crate::result_table::{Column, Quantity, ResultTable};
use std::collections::BTreeMap;

/// One class, in all reports, in one or on one GPU.
struct Row {
    rank: Option<i64>,
    gpu: Option<(Option<i64>, i64)>,
    class: &'static str,
    /// Number of different kernels; not given for single GPUs.
    kernels: Option<u64>,
    time: Time,
    all: Time,
    largest: Option<String>,
}

pub(super) fn total_table(reports: &[ReportExtract<&Extract>], compat: bool) -> ResultTable {
    let extract: Vec<&Extract> = reports.iter().map(|report| report.extract).collect();
    result_table(&rows(None, &extract, compat), false, false)
}

pub(super) fn chart(reports: &[ReportExtract<&Extract>], compat: bool) -> Chart {
    let extract: Vec<&Extract> = reports.iter().map(|report| report.extract).collect();
    let bars = rows(None, &extract, compat).into_iter().map(|row| Bar {
        label: row.class.to_owned(),
        rank: None,
        value: (row.all.sum > 0).then(|| 100.0 * row.time.sum as f64 / row.all.sum as f64),
    });
    Chart {
        name: "classes".into(),
        title: "Shares of Classes of Kernels".to_owned(),
        about: "share of each class in the time of all kernels, summed over all reports".to_owned(),
        figure: Figure::Bars(Bars {
            value: Axis::linear("Time Share", Quantity::Percent),
            bars: bars.collect(),
            marks: Vec::new(),
        }),
    }
}

pub(super) fn rank_table(reports: &[ReportExtract<&Extract>], compat: bool) -> ResultTable {
    let rows: Vec<Row> =
        reports.iter().flat_map(|report| rows(Some(report.rank), &[report.extract], compat)).collect();
    result_table(&rows, true, false)
}

pub(super) fn gpu_table(reports: &[ReportExtract<&Extract>], compat: bool) -> ResultTable {
    let mut rows = Vec::new();
    for report in reports {
        for (gpu, times) in &report.extract.gpus {
            rows.extend(class_times(times, compat).map(|(class, time)| Row {
                rank: Some(report.rank),
                gpu: Some(*gpu),
                class,
                kernels: None,
                time,
                all: times.all,
                largest: None,
            }));
        }
    }
    result_table(&rows, true, true)
}

/// Classes without time are listed, too, except with `compat`: where kernels were recorded, 0 is a measurement.
fn class_times(times: &Classes, compat: bool) -> impl Iterator<Item = (&'static str, Time)> {
    let named: Vec<_> = classes(compat).iter().copied().zip(times.of.iter().copied()).collect();
    named.into_iter().filter(move |(_, time)| !compat || time.runs > 0)
}

fn rows(rank: Option<i64>, reports: &[&Extract], compat: bool) -> Vec<Row> {
    let sum =
        Classes::sum(reports.iter().flat_map(|extract| extract.gpus.iter().map(|(_, classes)| classes)));
    let mut names: BTreeMap<usize, BTreeMap<&str, u128>> = BTreeMap::new();
    for named in reports.iter().flat_map(|extract| &extract.names) {
        *names.entry(named.class).or_default().entry(named.name.as_str()).or_default() += named.stats.total;
    }
    let rows = class_times(&sum, compat).map(|(class, time)| {
        let at = classes(compat).iter().position(|known| *known == class).unwrap_or_default();
        let of_class = names.get(&at);
        // Of equal ones the first by name.
        let largest =
            of_class.into_iter().flatten().max_by(|one, two| one.1.cmp(two.1).then(two.0.cmp(one.0)));
        Row {
            rank,
            gpu: None,
            class,
            kernels: Some(of_class.map_or(0, |names| names.len() as u64)),
            time,
            all: sum.all,
            largest: largest.map(|(name, _)| (*name).to_owned()),
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time.sum));
    rows
}

fn result_table(rows: &[Row], of_rank: bool, of_gpu: bool) -> ResultTable {
    let time = |name: &str, of: fn(&Row) -> u128| {
        let values = rows.iter().map(|row| i64::try_from(of(row)).ok());
        Column::maybe_integers(name, Quantity::Nanoseconds, values)
    };
    let share = |name: &str, of: fn(&Time) -> u128| {
        let values = rows.iter().map(|row| match of(&row.all) {
            0 => None,
            all => Some(100.0 * of(&row.time) as f64 / all as f64),
        });
        Column::maybe_decimals(name, Quantity::Percent, values)
    };
    let plain = Quantity::Plain;
    let mut columns = Vec::new();
    if of_rank {
        columns.push(Column::maybe_integers("Rank", plain, rows.iter().map(|row| row.rank)));
    }
    if of_gpu {
        columns.push(Column::maybe_integers(
            "PID",
            plain,
            rows.iter().map(|row| row.gpu.and_then(|gpu| gpu.0)),
        ));
        columns.push(Column::maybe_integers(
            "Device",
            plain,
            rows.iter().map(|row| row.gpu.map(|gpu| gpu.1)),
        ));
    }
    columns.extend([
        share("Time Share", |time| time.sum),
        share("Union Share", |time| time.union),
        time("Time", |row| row.time.sum),
        time("Union", |row| row.time.union),
        Column::integers("Runs", plain, rows.iter().map(|row| row.time.runs as i64)),
    ]);
    if !of_gpu {
        let kernels = rows.iter().map(|row| row.kernels.map(|kernels| kernels as i64));
        columns.push(Column::maybe_integers("Kernels", plain, kernels));
    }
    columns.push(Column::texts("Class", rows.iter().map(|row| row.class)));
    if !of_gpu {
        columns.push(Column::maybe_texts("Largest Kernel", rows.iter().map(|row| row.largest.clone())));
    }
    ResultTable::new(KERNEL_CLASSES.name, KERNEL_CLASSES.title, columns)
}

pub(super) fn bottlenecks(all: &[Figures], arguments: &Arguments) -> ResultTable {
    let bounds: Vec<_> = all.iter().map(|figures| figures.bound(arguments)).collect();
    let percent = |name: &str, of: &dyn Fn(&Figures) -> Option<f64>| {
        Column::maybe_decimals(name, Quantity::Percent, all.iter().map(of))
    };
    let columns = vec![
        Column::maybe_integers("Rank", Quantity::Plain, all.iter().map(|figures| figures.rank)),
        Column::texts("Bottleneck", bounds.iter().map(|(name, _)| *name)),
        Column::maybe_decimals(
            "Observed",
            Quantity::Percent,
            bounds.iter().map(|(_, why)| why.map(|(observed, _)| observed)),
        ),
        Column::maybe_integers(
            "Bound",
            Quantity::Percent,
            bounds.iter().map(|(_, why)| why.map(|(_, bound)| bound as i64)),
        ),
        percent("Communication", &|figures| Some(figures.communication)),
        percent("Synchronisation", &|figures| figures.sync),
        percent("Compute", &|figures| Some(figures.compute)),
        percent("Memory", &|figures| Some(figures.memory)),
    ];
    ResultTable::new(KERNEL_CLASSES.name, "What Bounds the Work", columns)
}

pub(super) fn recommendations(all: &[Figures], arguments: &Arguments) -> ResultTable {
    let mut rows: Vec<(Option<i64>, Advice)> = Vec::new();
    for figures in all {
        rows.extend(figures.advice(arguments).into_iter().map(|advice| (figures.rank, advice)));
    }
    let columns = vec![
        Column::maybe_integers("Rank", Quantity::Plain, rows.iter().map(|(rank, _)| *rank)),
        Column::texts("Topic", rows.iter().map(|(_, advice)| advice.topic)),
        Column::decimals("Observed", Quantity::Plain, rows.iter().map(|(_, advice)| advice.observed)),
        Column::integers("Bound", Quantity::Plain, rows.iter().map(|(_, advice)| advice.bound as i64)),
        Column::texts("Unit", rows.iter().map(|(_, advice)| advice.unit)),
        Column::texts("What to Try", rows.iter().map(|(_, advice)| advice.text.as_str())),
    ];
    ResultTable::new(KERNEL_CLASSES.name, "What to Try", columns)
}
