//! Steps of a run: where each rank's begin and end, how long they take, and whether ranks agree. `crate::steps` finds
//! them.

use super::columns::TableDoc;
use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::chart::{Axis, Chart, ChartLine, Figure, Lines};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use crate::steps::{Figures, Found, Source, Step, StepRequest, Window, figures, find_in_trace, window};
use metric::quantile::quantile;
use nsys::tables::{GRAPH_TRACE, KERNEL, NVTX_EVENTS, RUNTIME, STRING_IDS};
use std::collections::BTreeMap;

pub(super) const STEPS: ReportRecipe = ReportRecipe {
    name: "steps",
    title: "Steps",
    about: "the steps of an iterative run: how long each took on each rank, how much they differ, whether they grow, \
            and whether the requested ones are there",
    definition: "by the first of these that a report has. Ranges: those of one name on one thread, apart from a number \
                 in the name, that occur three times or more, cover half of the time and are evenly spaced; preferred \
                 are names with step, iteration or batch, then names whose numbers grow by one, then those that cover \
                 nearly all of the time. Capture: from each call that starts the profiler to the next that stops it, \
                 if there are three or more. Kernels: the busiest stream cut before each run of the rarest kernel \
                 between whose runs the others come equally often, where the order of kernels repeats at all; the time \
                 of such a step is from its first kernel to the next step's, so that the last one has none. Confidence \
                 is, for ranges, the fraction of time that they cover times the evenness of their distances; for \
                 kernels the mean fraction of a step that equals the others, halved where no pause marks where a step begins, \
                 since layers repeat as steps do. The slope is the median of those of all \
                 pairs (Theil and Sen), with its interval of 95 %. A window has its first and its last step. Times are \
                 each report's own",
    arguments: &[RANGE, RANGES, CAPTURE, KERNELS, WINDOW, SKIP],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS, &GRAPH_TRACE, &NVTX_EVENTS],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "stats",
                about: "one row per rank",
                columns: &[&[
                    "Rank",
                    "Source: how steps were found",
                    "By: the range, the calls or the kernel that they were found by",
                    "Steps: how many were found",
                    "Unlike: pieces at the ends that are no whole step",
                    "Confidence: how sure the steps are, 100 % where ranges mark them",
                    "Med",
                    "Avg",
                    "CV",
                    "Min",
                    "P5: the 5th percentile",
                    "Q1",
                    "Q3",
                    "P95: the 95th percentile",
                    "Max",
                    "Slope: change of the time from one step to the next",
                    "Slope Low: the lower end of its 95 % interval",
                    "Slope High: the upper end of its 95 % interval",
                    "Asked: steps of the requested window",
                    "As Asked: whether exactly those were found",
                    "Missing: requested steps that were not found",
                ]],
            },
            TableDoc {
                name: "steps",
                about: "one row per step of each rank",
                columns: &[&[
                    "Rank",
                    "Step",
                    "Number",
                    "Start",
                    "End",
                    "Time: time from start to end",
                    "Alike: share of the step's kernels that it has in common with the others",
                ]],
            },
            TableDoc {
                name: "across",
                about: "one row per step over all ranks",
                columns: &[&[
                    "Number",
                    "Step",
                    "Ranks: ranks that have the step",
                    "Min",
                    "Med",
                    "Max",
                    "Slowest Rank",
                ]],
            },
        ],
        charts: &[("steps", "the time of each step, one line per rank")],
        take: |trace, arguments| {
            let range = Some(arguments.text(&RANGE)).filter(|name| !name.is_empty());
            let named = [(RANGES, Source::Ranges), (CAPTURE, Source::Capture), (KERNELS, Source::Kernels)];
            let source = named.iter().find(|(spec, _)| arguments.has(&spec.name)).map(|(_, source)| *source);
            match find_in_trace(trace, &StepRequest { range, source })? {
                Ok(found) => {
                    found.notes.iter().for_each(|note| trace.note(format!("steps: {note}")));
                    let rows = found.steps.len() as u64;
                    Ok(Some((found, rows)))
                }
                Err(why) => {
                    why.into_iter().for_each(|why| trace.note(format!("steps: {why}")));
                    Ok(None)
                }
            }
        },
        make,
    }),
};

const fn source(name: &'static str, about: &'static str) -> ArgumentSpec {
    argument!(name, about, Takes::Nothing, "source")
}

const RANGE: ArgumentSpec = argument!(
    "range",
    "steps are ranges of this name, with `#` or nothing in place of a number",
    Takes::Text(""),
    "source"
);
const RANGES: ArgumentSpec = source("ranges", "find steps in ranges alone");
const CAPTURE: ArgumentSpec = source("capture", "steps are the capture ranges of the profiler");
const KERNELS: ArgumentSpec = source("kernels", "find steps in the order of kernels alone");
const WINDOW: ArgumentSpec = argument!(
    "window",
    "the first and the last step that were to be profiled; missing ones are reported",
    Takes::Span
);
const SKIP: ArgumentSpec = argument!(
    "skip",
    "how many first steps, such as a warm-up, to leave out of all figures",
    Takes::Number(0)
);

fn make(reports: &[ReportExtract<&Found>], arguments: &Arguments) -> Made {
    let skip = usize::try_from(arguments.number(&SKIP)).unwrap_or(usize::MAX);
    let asked = arguments.span(&WINDOW);
    let windows: Vec<Option<Window>> = reports
        .iter()
        .map(|report| asked.map(|(first, last)| window(first, last, &report.extract.steps)))
        .collect();
    let mut notes = disagreements(reports);
    notes.extend(asked.into_iter().flat_map(|asked| window_differences(asked, reports, &windows)));
    let tables = vec![
        ("stats", stats(reports, skip, &windows)),
        ("steps", each(reports)),
        ("across", across(reports)),
    ];
    Made { tables, notes, charts: vec![chart(reports)], ..Made::default() }
}

/// By the steps' own numbers where all have one, else by their order.
fn chart(reports: &[ReportExtract<&Found>]) -> Chart {
    let is_numbered = is_numbered(reports);
    let line = |report: &ReportExtract<&Found>| {
        let points = report.extract.steps.iter().enumerate().map(|(at, step)| {
            let place = if is_numbered { number(step).unwrap_or_default() } else { at as i64 };
            (place as f64, step.has_end.then(|| step.ns() as f64))
        });
        let mut points: Vec<(f64, Option<f64>)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        ChartLine { label: format!("rank {}", report.rank), rank: Some(report.rank), points }
    };
    Chart {
        name: "steps".into(),
        title: "Time of each Step".to_owned(),
        about: "parallel lines are ranks in step; a line above the others is a slow rank, a slope is growing step time"
            .to_owned(),
        figure: Figure::Lines(Lines {
            x: Axis::linear("Step", Quantity::Plain),
            y: Axis::linear("Time", Quantity::Nanoseconds),
            lines: reports.iter().map(line).collect(),
            marks: Vec::new(),
        }),
    }
}

fn is_numbered(reports: &[ReportExtract<&Found>]) -> bool {
    let mut steps = reports.iter().flat_map(|report| &report.extract.steps);
    steps.all(|step| number(step).is_some())
}

fn result_table(columns: Vec<Column>) -> ResultTable {
    ResultTable::new(STEPS.name, STEPS.title, columns)
}

/// A row for each rank.
fn stats(reports: &[ReportExtract<&Found>], skip: usize, windows: &[Option<Window>]) -> ResultTable {
    let (plain, time, part) = (Quantity::Plain, Quantity::Nanoseconds, Quantity::Percent);
    let of_rank = |report: &ReportExtract<&Found>| {
        let steps: Vec<&Step> = report.extract.steps.iter().skip(skip).collect();
        figures(&steps)
    };
    let all: Vec<Option<Figures>> = reports.iter().map(of_rank).collect();
    let real = |name: &str, quantity, value: &dyn Fn(&Figures) -> Option<f64>| {
        Column::maybe_decimals(name, quantity, all.iter().map(|figures| figures.as_ref().and_then(value)))
    };
    let whole = |name: &str, value: &dyn Fn(&Figures) -> u64| {
        let values = all.iter().map(|figures| figures.as_ref().and_then(|of| i64::try_from(value(of)).ok()));
        Column::maybe_integers(name, time, values)
    };
    let count = |name: &str, value: &dyn Fn(&Found) -> usize| {
        Column::integers(name, plain, reports.iter().map(|report| value(report.extract) as i64))
    };
    let mut columns = vec![
        Column::integers("Rank", plain, reports.iter().map(|report| report.rank)),
        Column::texts("Source", reports.iter().map(|report| report.extract.source.name())),
        Column::texts("By", reports.iter().map(|report| report.extract.by.as_str())),
        count("Steps", &|found| found.steps.iter().filter(|step| step.is_whole()).count()),
        count("Unlike", &|found| found.steps.iter().filter(|step| !step.is_whole()).count()),
        Column::decimals("Confidence", part, reports.iter().map(|report| 100.0 * report.extract.confidence)),
        real("Med", time, &|of| Some(of.stats.median)),
        real("Avg", time, &|of| Some(of.stats.mean)),
        real("CV", part, &|of| of.cv.map(|cv| 100.0 * cv)),
        whole("Min", &|of| of.stats.min),
        real("P5", time, &|of| Some(of.p5)),
        real("Q1", time, &|of| Some(of.stats.q1)),
        real("Q3", time, &|of| Some(of.stats.q3)),
        real("P95", time, &|of| Some(of.p95)),
        whole("Max", &|of| of.stats.max),
        real("Slope", time, &|of| of.slope.map(|slope| slope.slope)),
        real("Slope Low", time, &|of| of.slope.map(|slope| slope.low)),
        real("Slope High", time, &|of| of.slope.map(|slope| slope.high)),
    ];
    if windows.iter().any(Option::is_some) {
        let number = |value: fn(&Window) -> i64| windows.iter().map(move |window| window.as_ref().map(value));
        columns.push(Column::maybe_integers("Asked", plain, number(|window| window.asked as i64)));
        let is_as_asked = |window: &Window| if window.is_as_asked() { "yes" } else { "no" };
        let as_asked = windows.iter().map(|window| window.as_ref().map(is_as_asked));
        columns.push(Column::maybe_texts("As Asked", as_asked));
        let missing = |window: &Window| window.missing.as_ref().map(listed);
        let missing = windows.iter().map(|window| window.as_ref().and_then(missing));
        columns.push(Column::maybe_texts("Missing", missing));
    }
    result_table(columns)
}

/// A row for each step of each rank.
fn each(reports: &[ReportExtract<&Found>]) -> ResultTable {
    let rows: Vec<(i64, usize, &Step)> = reports
        .iter()
        .flat_map(|report| report.extract.steps.iter().enumerate().map(|(at, step)| (report.rank, at, step)))
        .collect();
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let ended = |value: fn(&Step) -> Option<i64>| {
        rows.iter().map(move |(.., step)| if step.has_end { value(step) } else { None })
    };
    result_table(vec![
        Column::integers("Rank", plain, rows.iter().map(|(rank, ..)| *rank)),
        Column::integers("Step", plain, rows.iter().map(|(_, at, _)| *at as i64)),
        Column::maybe_integers("Number", plain, rows.iter().map(|(.., step)| number(step))),
        Column::integers("Start", time, rows.iter().map(|(.., step)| step.start)),
        Column::maybe_integers("End", time, ended(|step| Some(step.end))),
        Column::maybe_integers("Time", time, ended(|step| i64::try_from(step.ns()).ok())),
        Column::maybe_decimals(
            "Alike",
            Quantity::Percent,
            rows.iter().map(|(.., step)| step.alike.map(|alike| 100.0 * alike)),
        ),
    ])
}

fn number(step: &Step) -> Option<i64> {
    step.number.and_then(|number| i64::try_from(number).ok())
}

/// A row for each step over all ranks: by the steps' own numbers where all have one, else by their order.
fn across(reports: &[ReportExtract<&Found>]) -> ResultTable {
    let is_numbered = is_numbered(reports);
    let mut times: BTreeMap<i64, Vec<(u64, i64)>> = BTreeMap::new();
    for report in reports {
        for (at, step) in report.extract.steps.iter().enumerate() {
            let place = if is_numbered { number(step).unwrap_or_default() } else { at as i64 };
            let times = times.entry(place).or_default();
            if step.has_end && step.is_whole() {
                times.push((step.ns(), report.rank));
            }
        }
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    let (plain, time) = (Quantity::Plain, Quantity::Nanoseconds);
    let of = |value: fn(&[(u64, i64)]) -> Option<i64>| times.values().map(move |times| value(times));
    let median = |times: &Vec<(u64, i64)>| {
        let sorted: Vec<u64> = times.iter().map(|(ns, _)| *ns).collect();
        quantile(&sorted, 0.5)
    };
    result_table(vec![
        Column::integers(if is_numbered { "Number" } else { "Step" }, plain, times.keys().copied()),
        Column::integers("Ranks", plain, times.values().map(|times| times.len() as i64)),
        Column::maybe_integers("Min", time, of(|times| i64::try_from(times.first()?.0).ok())),
        Column::maybe_decimals("Med", time, times.values().map(median)),
        Column::maybe_integers("Max", time, of(|times| i64::try_from(times.last()?.0).ok())),
        Column::maybe_integers("Slowest Rank", plain, of(|times| Some(times.last()?.1))),
    ])
}

/// Differences between ranks, which ran the same program.
fn disagreements(reports: &[ReportExtract<&Found>]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut compare = |what: &str, of: &dyn Fn(&Found) -> String| {
        let mut ranks: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for report in reports {
            ranks.entry(of(report.extract)).or_default().push(report.rank);
        }
        if ranks.len() > 1 {
            let parts: Vec<String> =
                ranks.iter().map(|(value, ranks)| format!("{value} on ranks {}", listed(ranks))).collect();
            notes.push(format!("steps: ranks disagree on {what}: {}", parts.join("; ")));
        }
    };
    compare("the number of steps", &|found| found.steps.len().to_string());
    compare("what a step is", &|found| format!("{} `{}`", found.source.name(), found.by));
    notes
}

/// Windows that differ from the requested one: ranks with the same difference on one line.
fn window_differences(
    asked: (u64, u64),
    reports: &[ReportExtract<&Found>],
    windows: &[Option<Window>],
) -> Vec<String> {
    let mut ranks: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (report, window) in reports.iter().zip(windows.iter().flatten()) {
        if window.is_as_asked() {
            continue;
        }
        let mut difference = format!("{} steps requested, {} found", window.asked, window.found);
        match &window.missing {
            None => difference.push_str(", without step numbers"),
            Some(missing) if !missing.is_empty() => {
                difference.push_str(&format!(", missing: {}", listed(missing)))
            }
            Some(_) => {}
        }
        if !window.beyond.is_empty() {
            difference.push_str(&format!(", not requested: {}", listed(&window.beyond)));
        }
        ranks.entry(difference).or_default().push(report.rank);
    }
    let (first, last) = asked;
    ranks
        .into_iter()
        .map(|(difference, ranks)| {
            format!("steps: window {first}..{last} on ranks {}: {difference}", listed(&ranks))
        })
        .collect()
}

/// At most this many are listed.
const MOST: usize = 16;

fn listed<'a, T: ToString + 'a>(all: impl IntoIterator<Item = &'a T>) -> String {
    let all: Vec<String> = all.into_iter().map(ToString::to_string).collect();
    let shown = all.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match all.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
