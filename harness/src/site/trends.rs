//! The main metrics of each suite from run to run, with the changes that `harness history` finds: by the same statistics.

use super::page::{LONGEST_NAME, SitePage};
use crate::report::series_changes;
use base::text::{count, shorten, show};
use metric::unit::Better;
use metric::{Dim, DimValue};
use recipes::result_table::escaped;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use verdict::history::change::Shape;
use verdict::history::past::Run;
use verdict::history::series::{Found, Series, SeriesRequest, find_each};

/// A longer description of a series is shortened.
const LONGEST_KEY: usize = 200;
/// Metrics of one suite.
const MOST_METRICS: usize = 3;
/// Suites with trends.
const MOST_SUITES: usize = 12;
/// Series of one metric.
const MOST_SERIES: usize = 6;
/// Metrics that are read, as files of all runs together.
const MOST_BYTES: u64 = 128 << 20;
/// The width of a chart, in points: of more runs each point is the least and the most of some.
const WIDE: usize = 240;
const HIGH: f64 = 40.0;
/// What the height of a chart stands for at least, as a fraction of the value.
const LEAST_SPAN: f64 = 0.05;

pub(super) fn section(page: &SitePage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section class=\"card\" id=\"trends\">\n<h2>Trends</h2>")?;
    let first = first_run(page);
    let requests = requests(page, first);
    if requests.is_empty() {
        return writeln!(out, "<p>No run judges a number.</p>\n</section>");
    }
    writeln!(
        out,
        "<p class=\"of\">The metrics of each suite that most assertions are about, the newest run on the right; a point \
         is the median of what a run measured on all its nodes and parts; a line marks where a level changed. It takes about ten runs to find a change. At most 1 of 100 metrics that did not \
         change shows one.</p>"
    )?;
    if first > 0 {
        writeln!(
            out,
            "<p class=\"of\">Of the newest {} runs: their metrics are {} MB, and more are not read.</p>",
            page.past.runs.len() - first,
            MOST_BYTES >> 20
        )?;
    }
    let found = find_each(page.past, &requests);
    for (request, found) in requests.iter().zip(&found) {
        metric(page, request, found, out)?;
    }
    writeln!(out, "</section>")
}

/// The first run whose metrics, with those of all newer runs, are not too many to be read.
fn first_run(page: &SitePage) -> usize {
    let mut bytes = 0;
    let mut is_read = |run: &Run| {
        let files = run.plan().cases.iter().map(|case| run.stored.case(&case.name).join("metrics.parquet"));
        bytes += files.filter_map(|file| fs::metadata(file).ok()).map(|facts| facts.len()).sum::<u64>();
        bytes <= MOST_BYTES
    };
    let newest = page.past.runs.iter().rev().take_while(|run| is_read(run)).count();
    page.past.runs.len() - newest
}

/// The metrics that most assertions of a suite are about, first those that are compared with baselines.
fn requests(page: &SitePage, first: usize) -> Vec<SeriesRequest> {
    let mut suites: BTreeMap<&str, BTreeMap<&str, (usize, usize)>> = BTreeMap::new();
    for case in page.past.runs.iter().flat_map(|run| &run.plan().cases) {
        let metrics = suites.entry(&case.suite).or_default();
        // What must be one number exactly has no trend.
        for assertion in case.assertions.iter().filter(|one| one.bound.equals.is_none()) {
            let (compared, all) = metrics.entry(&assertion.metric).or_default();
            *compared += usize::from(assertion.bound.baseline.is_some());
            *all += 1;
        }
    }
    let of_suite = |(suite, metrics): (&str, BTreeMap<&str, (usize, usize)>)| {
        let mut metrics: Vec<(&str, (usize, usize))> = metrics.into_iter().collect();
        metrics.sort_by_key(|(name, counts)| (Reverse(*counts), *name));
        let main = metrics.into_iter().take(MOST_METRICS);
        main.map(|(metric, _)| SeriesRequest {
            metric: metric.to_owned(),
            suite: Some(suite.to_owned()),
            first,
            ..SeriesRequest::default()
        })
        .collect::<Vec<_>>()
    };
    suites.into_iter().take(MOST_SUITES).flat_map(of_suite).collect()
}

fn metric(page: &SitePage, request: &SeriesRequest, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let suite = request.suite.as_deref().unwrap_or_default();
    let mut series: Vec<&Series> = found.series.iter().collect();
    series.sort_by_key(|one| {
        let dims = &one.key.dims;
        let size = match dims.get(Dim::SizeBytes) {
            Some(DimValue::Number(bytes)) => *bytes,
            _ => 0,
        };
        let last = one.changed(page.past).last().map(|changed| changed.after);
        (Reverse(last), one.newest_off.is_none(), Reverse(one.points.len()), Reverse(size))
    });
    let changed = series.iter().filter(|one| one.shape != Shape::Level).count();
    writeln!(
        out,
        "<h3>{} <span class=\"of\">suite {}: {}, {changed} changed</span></h3>",
        escaped(&show(&request.metric)),
        escaped(&shorten(&show(suite), LONGEST_NAME)),
        count(series.len(), "series").replace("seriess", "series")
    )?;
    if series.is_empty() {
        writeln!(out, "<p>Measured in no run.</p>")?;
    }
    for one in series.iter().take(MOST_SERIES) {
        trend(page, one, suite, out)?;
    }
    if let more @ 1.. = series.len().saturating_sub(MOST_SERIES) {
        let hidden = changed.saturating_sub(MOST_SERIES);
        let hidden = if hidden > 0 { format!(", {hidden} of them changed") } else { String::new() };
        let command = format!("harness history {} --where suite={}", show(&request.metric), show(suite));
        writeln!(
            out,
            "<p class=\"drawn\">{more} more series{hidden}: <code>{}</code></p>",
            escaped(&command)
        )?;
    }
    for (run, why) in found.unread.iter().take(3) {
        let run = page.past.runs.get(*run).map(|run| run.id()).unwrap_or_default();
        writeln!(
            out,
            "<p class=\"drawn\">Not counted: {}: {}</p>",
            escaped(&show(run)),
            escaped(&show(why))
        )?;
    }
    if let more @ 1.. = found.unread.len().saturating_sub(3) {
        writeln!(out, "<p class=\"drawn\">{} not counted.</p>", count(more, "more file"))?;
    }
    Ok(())
}

fn trend(page: &SitePage, series: &Series, suite: &str, out: &mut dyn Write) -> io::Result<()> {
    let values: Vec<Option<f64>> = series.points.iter().map(|point| point.counted()).collect();
    let known = || values.iter().flatten().copied();
    let last = series.points.iter().rev().find_map(|point| Some((point.run, point.counted()?)));
    let newest = match last {
        None => "not measured".to_owned(),
        Some((run, value)) if Some(run) == newest_of(page, suite) => series.unit.show(value),
        Some((run, value)) => {
            let made = page.past.runs.get(run).map(|run| run.made.as_str()).unwrap_or_default();
            format!("{} in {made}; not measured in the newest run", series.unit.show(value))
        }
    };
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let range = match low <= high {
        true => format!("{} to {}", series.unit.show(low), series.unit.show(high)),
        false => String::new(),
    };
    writeln!(
        out,
        "<div class=\"trend\">\n<p>{}<br><strong>{}</strong> <span class=\"of\">{range}, {}</span></p>",
        escaped(&shorten(&show(&series.key.to_string()), LONGEST_KEY)),
        escaped(&newest),
        count(values.len(), "run")
    )?;
    let marks: Vec<usize> = match &series.shape {
        Shape::Steps(_) => series
            .changed(page.past)
            .iter()
            .filter_map(|changed| series.points.iter().position(|point| point.run == changed.after))
            .collect(),
        _ => Vec::new(),
    };
    writeln!(out, "{}", chart(&values, (low, high), &marks))?;
    let lines = series_changes(page.past, series);
    let (class, word) = match direction(series) {
        Some(Ordering::Greater) => ("s-pass", "better: "),
        Some(Ordering::Less) => ("changed", "worse: "),
        Some(Ordering::Equal) => ("changed", ""),
        None => ("of", ""),
    };
    let lines: Vec<String> = lines.iter().map(|line| escaped(line.trim_start())).collect();
    writeln!(out, "<p class=\"{class}\">{word}{}</p>\n</div>", lines.join("<br>"))
}

/// The newest run with a case of the suite.
fn newest_of(page: &SitePage, suite: &str) -> Option<usize> {
    page.past.runs.iter().rposition(|run| run.plan().cases.iter().any(|case| case.suite == suite))
}

/// Whether the last change is an improvement; equal where that is not known, nothing where there is no change.
fn direction(series: &Series) -> Option<Ordering> {
    let (from, to) = match &series.shape {
        // What is outside its range may have gone either way since.
        _ if series.newest_off.is_some() => return Some(Ordering::Equal),
        Shape::Level => return None,
        Shape::Drift(drift) => (drift.from, drift.to),
        Shape::Steps(steps) => steps.last().map(|step| (step.before, step.after))?,
    };
    match series.better {
        Better::Higher => to.partial_cmp(&from),
        Better::Lower => from.partial_cmp(&to),
        Better::Neither => Some(Ordering::Equal),
    }
}

/// A line from the first run to the newest; runs without a number are gaps.
fn chart(values: &[Option<f64>], (low, high): (f64, f64), marks: &[usize]) -> String {
    if low.partial_cmp(&high).is_none() || low > high {
        return String::new();
    }
    let per_point = values.len().div_ceil(WIDE).max(1);
    let columns = values.len().div_ceil(per_point).max(2);
    let x = |column: usize| (column as f64 + 0.5) * WIDE as f64 / columns as f64;
    // Noise looks like noise: the height is a twentieth of the value at least.
    let middle = f64::midpoint(low, high);
    let span = (high - low).max(middle.abs() * LEAST_SPAN);
    let y = |value: f64| match span > 0.0 {
        true => HIGH / 2.0 - (value - middle) / span * (HIGH - 8.0),
        false => HIGH / 2.0,
    };
    let mut path = String::new();
    let mut is_drawn = false;
    for (column, some) in values.chunks(per_point).enumerate() {
        let known = || some.iter().flatten().copied();
        let (least, most) =
            (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        if least > most {
            is_drawn = false;
            continue;
        }
        let step = if is_drawn { 'L' } else { 'M' };
        // A single point between gaps has the length of its cap.
        let end = if least < most { y(least) } else { y(most) };
        path.push_str(&format!("{step}{0:.1} {1:.1}L{0:.1} {end:.1}", x(column), y(most)));
        is_drawn = true;
    }
    let marks: String = marks
        .iter()
        .map(|at| format!("<path class=\"m\" d=\"M{:.1} 0v{HIGH}\"/>", x(at / per_point)))
        .collect();
    format!(
        "<svg class=\"line\" viewBox=\"0 0 {WIDE} {HIGH}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{marks}<path d=\"{path}\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use metric::Dims;
    use metric::unit::Unit;
    use verdict::history::change::Drift;
    use verdict::history::series::Key;

    #[test]
    fn a_change_is_better_or_worse_by_what_its_metric_declares() {
        let series = |better, shape| Series {
            key: Key {
                instance: String::new(),
                suite: String::new(),
                case: String::new(),
                nodes: None,
                ranks: None,
                dims: Dims::new(),
            },
            unit: Unit::Seconds,
            better,
            points: Vec::new(),
            shape,
            newest_off: None,
        };
        let up = || Shape::Drift(Drift { from: 1.0, to: 2.0 });
        assert_eq!(direction(&series(Better::Higher, up())), Some(Ordering::Greater));
        assert_eq!(direction(&series(Better::Lower, up())), Some(Ordering::Less));
        assert_eq!(direction(&series(Better::Neither, up())), Some(Ordering::Equal));
        assert_eq!(direction(&series(Better::Higher, Shape::Level)), None);
    }

    #[test]
    fn a_chart_has_gaps_marks_and_never_more_points_than_it_is_wide() {
        let values: Vec<Option<f64>> = vec![Some(1.0), None, Some(3.0), Some(2.0)];
        let svg = chart(&values, (1.0, 3.0), &[2]);
        assert_eq!(svg.matches('M').count(), 3, "two lines and a mark: {svg}");
        assert!(svg.contains("<path class=\"m\" d=\"M150.0 0v40\"/>"), "{svg}");
        assert!(svg.contains("M30.0 36.0L30.0 36.0M150.0 4.0L150.0 4.0L210.0 20.0"), "{svg}");
        assert_eq!(chart(&[None], (f64::INFINITY, f64::NEG_INFINITY), &[]), "");
        assert!(!chart(&[Some(5.0); 3], (5.0, 5.0), &[]).contains("NaN"));
        let many: Vec<Option<f64>> = (0..100_000).map(|n| Some(f64::from(n % 7))).collect();
        let svg = chart(&many, (0.0, 6.0), &[99_999]);
        assert!(svg.len() < 8_000, "{}", svg.len());
    }
}
