//! Metrics sampled by GPUs: the mean of each metric in each bin.

use super::means::{Mean, from_moments};
use super::packed::{PackedSamples, Sample};
use super::window::{BINS, Coverage, NO_SHIFT, Window};
use crate::chart::{Axis, Chart, Figure, Heatmap, HeatmapRow};
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::samples::{GpuSamples, gpu_of};
use crate::recipe::of_reports::together::Share;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::tables::{GENERIC_EVENTS, GPU_METRICS, TARGET_INFO_GPU_METRICS};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(in super::super) const GPU_METRIC_UTIL_MAP: ReportRecipe = ReportRecipe {
    name: "gpu_metric_util_map",
    title: "GPU Metrics over Time",
    about: "utilization of the multiprocessors and tensor cores of each GPU over time",
    definition: "per rank and GPU the mean of the samples in each bin of the metrics SMs Active, SM Issue and Tensor \
                 Active, and of one more that is named. Names are compared without a suffix in brackets, such as \
                 `[Throughput %]`, and SM equals SMs. A bin without a sample is empty, never 0. Bins are equal and \
                 reach from the first to the last such sample of all reports, or over the filter's span; the last one \
                 has both its ends. Reports are aligned by the UTC of their beginnings",
    arguments: &[BINS, NO_SHIFT, METRIC],
    tables: &[&GPU_METRICS, &TARGET_INFO_GPU_METRICS, &GENERIC_EVENTS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "totals",
                about: "one row per metric of a GPU",
                columns: &[&["Rank", "GPU", "Metric", "Samples", "Mean: the mean of the samples", "Max"]],
            },
            TableDoc {
                name: "heatmap",
                about: "one row per bin of time of each",
                columns: &[&[
                    "Rank",
                    "GPU",
                    "Metric",
                    "Start",
                    "End",
                    "Samples",
                    "Mean: the mean of the samples",
                ]],
            },
        ],
        charts: &[
            ("sms_active", "SMs Active over time, by GPU"),
            ("sm_issue", "SM Issue over time, by GPU"),
            ("tensor_active", "Tensor Active over time, by GPU"),
            ("NAME", "the requested metric over time, by GPU"),
        ],
        take,
        make,
    }),
};

const METRIC: ArgumentSpec =
    argument!("metric", "one more metric, such as `Unallocated Warps in Active SMs`", Takes::Text(""));

struct Metric {
    /// Of its chart.
    name: &'static str,
    title: &'static str,
    /// As names are compared; see `plain`.
    plain: &'static str,
}

const METRICS: [Metric; 3] = [
    Metric { name: "sms_active", title: "SMs Active", plain: "sm active" },
    Metric { name: "sm_issue", title: "SM Issue", plain: "sm issue" },
    Metric { name: "tensor_active", title: "Tensor Active", plain: "tensor active" },
];

/// A name without the unit behind it, and with one word for multiprocessors.
fn plain(name: &str) -> String {
    let name = name.split('[').next().unwrap_or_default().to_lowercase();
    let words = name.split_whitespace().map(|word| if word == "sms" { "sm" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[derive(Serialize, Deserialize)]
struct Extract {
    coverage: Coverage,
    series: Vec<Series>,
}

#[derive(Serialize, Deserialize)]
struct Series {
    gpu: i64,
    /// As the report spells it.
    metric: String,
    samples: PackedSamples,
}

fn take(trace: &Trace, arguments: &Arguments) -> Share<Extract> {
    let more = plain(arguments.text(&METRIC));
    let wanted = |name: &str| {
        let name = plain(name);
        (name == more && !more.is_empty()) || METRICS.iter().any(|metric| metric.plain == name)
    };
    let all = GpuSamples::read_those(trace, &wanted)?;
    if !more.is_empty() && !all.samples.is_empty() && !all.metrics.iter().any(|name| plain(name) == more) {
        let there: BTreeSet<&str> = all.others.iter().map(String::as_str).collect();
        let there: Vec<&str> = there.into_iter().collect();
        trace.note(format!(
            "no metric `{}` was sampled; other sampled metrics: {}",
            arguments.text(&METRIC),
            there.join(", ")
        ));
    }
    let moments = all.samples.iter().map(|sample| (sample.timestamp, sample.timestamp));
    let Some(shown) = moments.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) else {
        return Ok(None);
    };
    let rows = all.samples.len() as u64;
    let mut of_key: BTreeMap<(u32, i64), Vec<Sample>> = BTreeMap::new();
    for sample in &all.samples {
        let (start, value) = (sample.timestamp, sample.value);
        let samples = of_key.entry((sample.metric, gpu_of(sample.type_id))).or_default();
        samples.push(Sample { start, end: start, value });
    }
    let series = of_key.into_iter().map(|((metric, gpu), samples)| Series {
        gpu,
        metric: all.metrics[metric as usize].clone(),
        samples: PackedSamples::pack(samples),
    });
    let mut series: Vec<Series> = series.collect();
    series.sort_by(|a, b| (&a.metric, a.gpu).cmp(&(&b.metric, b.gpu)));
    Ok(Some((Extract { coverage: Coverage::sampled(shown, trace.asked_span()), series }, rows)))
}

struct Row<'a> {
    rank: i64,
    series: &'a Series,
    most: Option<f64>,
    bins: Vec<Mean>,
}

fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let Some(window) = Window::over_reports(reports, |extract| extract.coverage, arguments) else {
        return Made::default();
    };
    let rows = reports.iter().zip(&window.shifts).flat_map(|(report, shift)| {
        report.extract.series.iter().map(|series| Row {
            rank: report.rank,
            series,
            most: series.samples.iter().map(|sample| sample.value).reduce(f64::max),
            bins: from_moments(&series.samples, *shift, &window),
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|a, b| {
        (&a.series.metric, a.rank, a.series.gpu).cmp(&(&b.series.metric, b.rank, b.series.gpu))
    });
    let asked = arguments.text(&METRIC);
    let more = plain(asked);
    let mut shown: Vec<(&'static str, &str, &str)> =
        METRICS.iter().map(|metric| (metric.name, metric.title, metric.plain)).collect();
    if METRICS.iter().all(|metric| metric.plain != more) {
        shown.push(("metric", asked, more.as_str()));
    }
    let charts = shown.into_iter().filter_map(|(name, title, metric)| {
        let rows: Vec<&Row> = rows.iter().filter(|row| plain(&row.series.metric) == metric).collect();
        (!rows.is_empty()).then(|| chart(name, title, &rows, &window))
    });
    let charts = charts.collect();
    let tables = vec![("totals", totals(&rows)), ("heatmap", bins(&rows, &window))];
    Made { tables, charts, notes: window.notes, ..Made::default() }
}

const PLAIN: Quantity = Quantity::Plain;

fn totals(rows: &[Row]) -> ResultTable {
    let all: Vec<Mean> = rows.iter().map(|row| Mean::combine(&row.bins)).collect();
    let columns = vec![
        Column::integers("Rank", PLAIN, rows.iter().map(|row| row.rank)),
        Column::integers("GPU", PLAIN, rows.iter().map(|row| row.series.gpu)),
        Column::texts("Metric", rows.iter().map(|row| row.series.metric.as_str())),
        Column::integers("Samples", PLAIN, all.iter().map(|mean| mean.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all.iter().map(Mean::value)),
        Column::maybe_decimals("Max", PLAIN, rows.iter().map(|row| row.most)),
    ];
    ResultTable::new(GPU_METRIC_UTIL_MAP.name, GPU_METRIC_UTIL_MAP.title, columns)
}

fn bins(rows: &[Row], window: &Window) -> ResultTable {
    let all = || rows.iter().flat_map(|row| row.bins.iter().enumerate().map(move |(at, bin)| (row, at, bin)));
    let columns = vec![
        Column::integers("Rank", PLAIN, all().map(|(row, ..)| row.rank)),
        Column::integers("GPU", PLAIN, all().map(|(row, ..)| row.series.gpu)),
        Column::texts("Metric", all().map(|(row, ..)| row.series.metric.as_str())),
        Column::integers("Start", Quantity::Nanoseconds, all().map(|(_, at, _)| window.edges[at])),
        Column::integers("End", Quantity::Nanoseconds, all().map(|(_, at, _)| window.edges[at + 1])),
        Column::integers("Samples", PLAIN, all().map(|(.., bin)| bin.weight as i64)),
        Column::maybe_decimals("Mean", PLAIN, all().map(|(.., bin)| bin.value())),
    ];
    ResultTable::new(GPU_METRIC_UTIL_MAP.name, GPU_METRIC_UTIL_MAP.title, columns)
}

fn chart(name: &'static str, title: &str, rows: &[&Row], window: &Window) -> Chart {
    // Percentages have a maximum of 100; other metrics have no known one.
    let is_percent = METRICS.iter().any(|metric| metric.name == name)
        || rows.iter().all(|row| row.series.metric.contains('%'));
    let heat = |row: &&Row| HeatmapRow {
        label: format!("rank {}, GPU {}", row.rank, row.series.gpu),
        rank: Some(row.rank),
        values: row.bins.iter().map(Mean::value).collect(),
    };
    Chart {
        name: name.into(),
        title: title.to_owned(),
        about: "each cell is the mean of the samples in its time; an empty cell has none".to_owned(),
        figure: Figure::Heatmap(Heatmap {
            x: Axis::linear("Time", Quantity::Nanoseconds),
            edges: window.edges.clone(),
            value: Axis::linear(title, if is_percent { Quantity::Percent } else { PLAIN }),
            most: is_percent.then_some(100.0),
            rows: rows.iter().map(heat).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
    use crate::testing::Made;

    /// A metric by its name, and samples of it: moment, GPU, value.
    fn sampled(made: &Made, id: i64, name: &str, samples: &[(i64, i64, i64)]) {
        for gpu in 0..2i64 {
            made.put(
                &TARGET_INFO_GPU_METRICS,
                &[
                    ("typeId", (256 + gpu).into()),
                    ("metricId", id.into()),
                    ("metricName", name.to_owned().into()),
                ],
            );
        }
        for (at, gpu, value) in samples {
            let row = [("timestamp", *at), ("typeId", 256 + gpu), ("metricId", id), ("value", *value)];
            made.put(&GPU_METRICS, &row.map(|(name, value)| (name, value.into())));
        }
    }

    #[test]
    fn names_are_compared_without_units_and_plurals() {
        for (one, other) in [
            ("SMs Active [Throughput %]", "SM Active"),
            ("SM Issue [Throughput %]", "sm  issue"),
            ("Tensor Active [Throughput %]", "Tensor Active"),
        ] {
            assert_eq!(plain(one), plain(other));
        }
        assert_ne!(plain("Unallocated Warps in Active SMs"), plain("SMs Active"));
    }

    #[test]
    fn cells_are_means_of_samples_and_empty_where_there_are_none() {
        let made = Made::begin();
        sampled(&made, 1, "SMs Active [Throughput %]", &[(0, 0, 10), (9, 0, 30), (30, 0, 99), (0, 1, 50)]);
        sampled(&made, 2, "GPC Clock", &[(0, 0, 7), (400, 0, 7)]);
        let outcome = surveyed("gpu_metric_util_map", &["bins=3"], &inputs(vec![made.path()]));
        let heatmap = table(&outcome, "heatmap");
        assert_eq!(decimals(heatmap, "Mean"), [Some(20.0), None, Some(99.0), Some(50.0), None, None]);
        assert_eq!(integers(heatmap, "GPU"), [0, 0, 0, 1, 1, 1].map(Some));
        let totals = table(&outcome, "totals");
        assert_eq!(
            (integers(totals, "Samples"), decimals(totals, "Max")),
            (vec![Some(3), Some(1)], vec![Some(99.0), Some(50.0)])
        );
        let [chart] = outcome.charts.as_slice() else { panic!("{:?}", outcome.charts) };
        let Figure::Heatmap(map) = &chart.figure else { panic!() };
        assert_eq!(
            (&*chart.name, map.most, map.edges.as_slice()),
            ("sms_active", Some(100.0), &[0, 10, 20, 30][..])
        );
        assert_eq!(map.rows[1].label, "rank 0, GPU 1");
        assert_eq!(map.rows[0].values, [Some(20.0), None, Some(99.0)]);
    }

    #[test]
    fn one_more_metric_is_shown_and_an_unknown_one_is_noted_with_those_that_exist() {
        let made = Made::begin();
        sampled(&made, 1, "SM Issue", &[(0, 0, 10)]);
        sampled(&made, 2, "GPC Clock", &[(0, 0, 7), (400, 0, 8)]);
        let outcome = surveyed("gpu_metric_util_map", &["metric=gpc clock"], &inputs(vec![made.path()]));
        assert_eq!(texts(table(&outcome, "totals"), "Metric"), ["GPC Clock", "SM Issue"]);
        let names: Vec<&str> = outcome.charts.iter().map(|chart| &*chart.name).collect();
        assert_eq!(names, ["sm_issue", "metric"]);
        let outcome = surveyed("gpu_metric_util_map", &["metric=gpc cluck"], &inputs(vec![made.path()]));
        assert!(
            outcome.notes.iter().any(|note| note.ends_with("other sampled metrics: GPC Clock")),
            "{:?}",
            outcome.notes
        );
    }

    #[test]
    fn samples_of_other_metrics_alone_are_no_data() {
        let made = Made::begin();
        sampled(&made, 2, "GPC Clock", &[(0, 0, 7)]);
        let outcome = surveyed("gpu_metric_util_map", &[], &inputs(vec![made.path()]));
        assert!(outcome.tables.is_empty() && outcome.charts.is_empty());
        assert!(outcome.notes[0].contains("looked at 1 rows, found none"), "{:?}", outcome.notes);
        assert!(
            surveyed("gpu_metric_util_map", &[], &inputs(vec![Made::begin().string(1, "a").path()]))
                .tables
                .is_empty()
        );
    }
}
