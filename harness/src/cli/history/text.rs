//! A history for a person: one series as a table with its changes, several as one line each.

use crate::cli::columns::columns;
use crate::report::{not_counted, series_changes};
use base::text::{count, show};
use std::fmt::Write;
use verdict::history::change::{FEWEST_RUNS, Shape};
use verdict::history::past::Past;
use verdict::history::series::{Found, Point, Series};
use verdict::history::spark;

/// So many series are listed, those that changed first.
const MOST_SERIES: usize = 40;

/// So many runs are named one by one.
const MOST: usize = 12;

pub(super) fn text(past: &Past, metric: &str, older: usize, found: &Found) -> String {
    let mut text = String::new();
    match found.series.as_slice() {
        // Writing to a string cannot fail, here and below.
        [] => {
            _ = writeln!(
                text,
                "{}: measured in none of {}",
                show(metric),
                count(past.runs.len() - older, "run")
            )
        }
        [one] => table(&mut text, past, metric, one),
        several => lines(&mut text, past, metric, several),
    }
    if found.series.len() > 1 {
        for run in past.runs.iter().skip(older).filter(|run| !run.partial.is_empty()) {
            let _ = writeln!(text, "incomplete: {}: {}", show(run.id()), show(&run.partial.join("; ")));
        }
    }
    for (at, why) in &found.unread {
        let id = past.runs.get(*at).map(|run| run.id()).unwrap_or_default();
        let _ = writeln!(text, "not counted: {}: {}", show(id), show(why));
    }
    text.push_str(&not_counted(past));
    if older > 0 {
        let _ = writeln!(text, "not read: {}; `--last N` reads more of them", count(older, "older run"));
    }
    if !found.without.is_empty() && !found.series.is_empty() {
        let ids = found.without.iter().filter_map(|at| past.runs.get(*at)).map(|run| show(run.id()));
        let ids_shown: Vec<String> = ids.take(MOST).collect();
        let n = found.without.len();
        let more = if n > MOST { format!(" and {} more", n - MOST) } else { String::new() };
        let _ = writeln!(text, "not measured in {}: {}{more}", count(n, "run"), ids_shown.join(", "));
    }
    let read = past.runs.get(older..).unwrap_or_default();
    if read.iter().any(|run| run.is_simulated()) {
        let (n, of) = (read.iter().filter(|run| run.is_simulated()).count(), read.len());
        let _ = writeln!(text, "SIMULATED: nothing in {n} of these {of} runs was measured on real hardware");
    }
    text
}

fn table(text: &mut String, past: &Past, metric: &str, series: &Series) {
    let _ = writeln!(text, "{} {}", show(metric), show(&series.key.to_string()));
    let mut rows = vec![["run", "made", "value", "RSD", "n", "verdict", "state"].map(str::to_owned).to_vec()];
    rows.extend(series.points.iter().map(|point| row(past, series, point)));
    text.push_str(&columns(&rows));
    let values: Vec<Option<f64>> = series.points.iter().map(|point| point.value).collect();
    let known = || values.iter().flatten().copied();
    let show_value = |value: f64| series.unit.show(value);
    if known().next().is_some() {
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        let _ = writeln!(
            text,
            "{}  {} to {}, newest on the right",
            spark(&values),
            show_value(low),
            show_value(high)
        );
    }
    for line in series_changes(past, series) {
        let _ = writeln!(text, "{line}");
    }
}

fn row(past: &Past, series: &Series, point: &Point) -> Vec<String> {
    let Some(run) = past.runs.get(point.run) else { return Vec::new() };
    let none = || "-".to_owned();
    let verdict = point.verdict.map_or_else(none, |status| status.name().to_owned());
    let against = match point.baseline {
        Some("accepted") | None => String::new(),
        Some("none") => " (no baseline)".to_owned(),
        Some(state) => format!(" ({state} baseline)"),
    };
    let uncounted =
        point.uncounted.as_ref().map(|why| format!("not counted: {}, ", show(why))).unwrap_or_default();
    vec![
        show(run.id()),
        run.made.clone(),
        point.value.map_or_else(none, |value| series.unit.show(value)),
        point.spread.map_or_else(none, |spread| format!("{:.1} %", spread * 100.0)),
        point.n.to_string(),
        format!("{verdict}{against}"),
        format!("{uncounted}{}", show(&run.state())),
    ]
}

fn lines(text: &mut String, past: &Past, metric: &str, several: &[Series]) {
    let _ = writeln!(text, "{}: {} series; choose among them with --where", show(metric), several.len());
    let mut rows = Vec::new();
    let is_level = |series: &Series| series.shape == Shape::Level;
    let is_changed = |series: &Series| !is_level(series) || series.newest_off.is_some();
    let mut in_order: Vec<&Series> = several.iter().collect();
    in_order.sort_by_key(|series| (is_level(series), !is_changed(series)));
    let rest = in_order.split_off(in_order.len().min(MOST_SERIES));
    for series in in_order {
        let values: Vec<Option<f64>> = series.points.iter().map(|point| point.value).collect();
        let newest = values.iter().rev().flatten().next();
        let id = |at: usize| past.runs.get(at).map(|run| show(run.id())).unwrap_or_default();
        let changed = series.changed(past);
        let after = changed.last().map(|changed| id(changed.after)).unwrap_or_default();
        let what = match (&series.shape, series.newest_off) {
            (Shape::Steps(steps), _) if steps.len() == 1 => format!("a step, from {after} on"),
            (Shape::Steps(steps), _) => format!("{} steps, the last from {after} on", steps.len()),
            (Shape::Drift(_), _) => "a drift".to_owned(),
            (Shape::Level, Some(_)) => "the newest run is off".to_owned(),
            (Shape::Level, None) => {
                match series.points.iter().filter(|point| point.counted().is_some()).count() {
                    few if few < FEWEST_RUNS => format!("too few ({FEWEST_RUNS} needed)"),
                    _ => "no change".to_owned(),
                }
            }
        };
        rows.push(vec![
            show(&series.key.to_string()),
            spark(&values),
            newest.map_or_else(|| "-".to_owned(), |newest| series.unit.show(*newest)),
            count(series.points.len(), "run"),
            what,
        ]);
    }
    text.push_str(&columns(&rows));
    if !rest.is_empty() {
        let changed = match rest.iter().filter(|series| is_changed(series)).count() {
            0 => "none changed".to_owned(),
            n => format!("{n} of them changed"),
        };
        let _ = writeln!(text, "and {} more, {changed}; choose with --where, or `--format csv`", rest.len());
    }
}
