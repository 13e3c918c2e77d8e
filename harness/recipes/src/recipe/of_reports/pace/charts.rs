//! The charts of a pace: durations, distances and progress over the instances, a line for each place.

use super::extract::Series;
use crate::chart::{Axis, Chart, ChartLine, Figure, Lines};
use crate::recipe::of_reports::labels;
use crate::result_table::Quantity;

/// Of the instances of this name.
pub(super) fn render(name: &str, all: &[Series]) -> Vec<Chart> {
    if all.is_empty() {
        return Vec::new();
    }
    let is_aligned = all.iter().all(|one| one.shift.is_some());
    let start: fn(&Series, usize) -> Option<i64> =
        if is_aligned { Series::common_start } else { |one, at| Some(one.spans[at].0) };
    let since = match is_aligned {
        true => "since the zero of the earliest report, by the clocks of the hosts",
        false => "by each report's own clock, so not comparable",
    };
    vec![
        lines(
            all,
            "duration",
            format!("Duration of {name}"),
            "duration of each instance: an even line is an even pace, a step is a change, a spike one slow instance",
            "Duration",
            0,
            |one, at| i64::try_from(one.ns(at)).ok(),
        ),
        lines(
            all,
            "distance",
            format!("Distance between Instances of {name}"),
            "idle time before each instance; below zero where it began before the end of the one before",
            "Distance",
            1,
            Series::distance,
        ),
        lines(
            all,
            "progress",
            format!("Progress of {name}"),
            &format!(
                "when each instance began, {since}: parallel lines are ranks in step, a flatter line is faster"
            ),
            "Begin",
            0,
            start,
        ),
    ]
}

fn lines(
    all: &[Series],
    chart: &'static str,
    title: String,
    about: &str,
    y: &str,
    from: usize,
    value: fn(&Series, usize) -> Option<i64>,
) -> Chart {
    let places: Vec<labels::LabelKey> =
        all.iter().map(|one| (one.rank, one.place.pid, one.place.device)).collect();
    let line = |(one, label): (&Series, String)| {
        let points = (from..one.spans.len()).map(|at| (at as f64, value(one, at).map(|ns| ns as f64)));
        ChartLine { label, rank: Some(one.rank), points: points.collect() }
    };
    let figure = Lines {
        x: Axis::linear("Instance", Quantity::Plain),
        y: Axis::linear(y, Quantity::Nanoseconds),
        lines: all.iter().zip(labels::unique(&places)).map(line).collect(),
        marks: Vec::new(),
    };
    Chart { name: chart.into(), title, about: about.to_owned(), figure: Figure::Lines(figure) }
}
