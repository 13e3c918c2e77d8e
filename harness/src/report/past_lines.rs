//! Many runs for a person: what became of a number from run to run, and which folders are not counted.

use base::nodeset;
use base::text::{count, show};
use std::collections::BTreeMap;
use verdict::history::change::{FEWEST_RUNS, Shape};
use verdict::history::past::Past;
use verdict::history::series::Series;

/// Lines for what is not counted, one for each reason where there are many.
pub(crate) fn not_counted(past: &Past) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for passed in &past.passed {
        by_reason.entry(&passed.why).or_default().push(&passed.name);
    }
    let lines = by_reason.into_iter().map(|(why, names)| match names.as_slice() {
        [first, second, third, more @ ..] if !more.is_empty() => {
            let names = [first, second, third].map(|name| show(name)).join(", ");
            format!("not counted: {names} and {} more: {}\n", more.len(), show(why))
        }
        few => few.iter().map(|name| format!("not counted: {}: {}\n", show(name), show(why))).collect(),
    });
    lines.collect()
}

/// What became of a series, a line each: where it changed, with the software and the machines that differ on both
/// sides.
pub(crate) fn series_changes(past: &Past, series: &Series) -> Vec<String> {
    let mut lines = Vec::new();
    let show_value = |value: f64| series.unit.show(value);
    let percent = |from: f64, to: f64| match from == 0.0 {
        true => String::new(),
        false => format!(", {:+.1} %", (to - from) / from.abs() * 100.0),
    };
    let n = series.points.iter().filter(|point| point.counted().is_some()).count();
    let changed = series.changed(past);
    let id = |at: usize| past.runs.get(at).map(|run| show(run.id())).unwrap_or_default();
    match &series.shape {
        Shape::Level if n < FEWEST_RUNS => {
            lines.push(format!("{}: too few to see a change, {FEWEST_RUNS} are needed", count(n, "run")));
        }
        Shape::Level => lines.push(format!("no significant change in {}", count(n, "run"))),
        Shape::Drift(drift) => {
            let (from, to) = (drift.from, drift.to);
            let percent = percent(from, to);
            lines.push(format!(
                "drift: {} -> {}{percent} over {}",
                show_value(from),
                show_value(to),
                count(n, "run")
            ));
        }
        Shape::Steps(_) => {}
    }
    let steps = match &series.shape {
        Shape::Steps(steps) => steps.as_slice(),
        _ => &[],
    };
    for (nth, changed) in changed.iter().enumerate() {
        if let Some(step) = steps.get(nth) {
            let (from, to) = (step.before, step.after);
            let (percent, id) = (percent(from, to), id(changed.after));
            lines.push(format!("step: {} -> {}{percent} from {id} on", show_value(from), show_value(to)));
        }
        if changed.software.is_empty() {
            lines.push("  no recorded software or setting changed there".to_owned());
        }
        lines
            .extend(changed.software.iter().map(|difference| format!("  {}", show(&difference.to_string()))));
        lines.extend(changed.hardware.iter().map(|other| {
            let are = if other.nodes.len() == 1 { "is another machine" } else { "are other machines" };
            format!("  hardware: {} {are} since run {}", show(&nodeset::fold(&other.nodes)), id(other.since))
        }));
    }
    if let Some(bounds) = series.newest_off {
        lines.push(format!(
            "the newest run is outside the range that earlier runs predict, {} to {}; one run is not enough to report a change",
            show_value(bounds.lower),
            show_value(bounds.upper)
        ));
    }
    lines
}
