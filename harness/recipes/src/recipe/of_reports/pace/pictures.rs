//! What a pace looks like: durations, distances and progress over the instances, a line for each place.

use super::taken::Series;
use crate::picture::{Axis, Figure, Line, Lines, Picture};
use crate::recipe::of_reports::labels;
use crate::sheet::Quantity;

/// Of the instances of this name.
pub(super) fn of(name: &str, all: &[Series]) -> Vec<Picture> {
    if all.is_empty() {
        return Vec::new();
    }
    let is_aligned = all.iter().all(|one| one.shift.is_some());
    let start: fn(&Series, usize) -> Option<i64> =
        if is_aligned { Series::common_start } else { |one, at| Some(one.spans[at].0) };
    let since = match is_aligned {
        true => "since the zero of the earliest report, by the clocks of the hosts",
        false => "by each report's own clock, which cannot be held side by side",
    };
    vec![
        lines(
            all,
            "duration",
            format!("Duration of {name}"),
            "how long each instance took: even lines are an even pace, \
              a step is a change, a spike one slow instance",
            "Duration",
            0,
            |one, at| i64::try_from(one.ns(at)).ok(),
        ),
        lines(
            all,
            "distance",
            format!("Distance between Instances of {name}"),
            "how long nothing of it ran before each \
              instance; below zero where it began before the one before had ended",
            "Distance",
            1,
            Series::distance,
        ),
        lines(
            all,
            "progress",
            format!("Progress of {name}"),
            &format!(
                "when each instance began, {since}: lines beside \
              each other keep step, a flatter line is faster"
            ),
            "Begin",
            0,
            start,
        ),
    ]
}

fn lines(
    all: &[Series],
    picture: &'static str,
    title: String,
    about: &str,
    y: &str,
    from: usize,
    value: fn(&Series, usize) -> Option<i64>,
) -> Picture {
    let places: Vec<labels::Place> =
        all.iter().map(|one| (one.rank, one.place.pid, one.place.device)).collect();
    let line = |(one, label): (&Series, String)| {
        let points = (from..one.spans.len()).map(|at| (at as f64, value(one, at).map(|ns| ns as f64)));
        Line { label, rank: Some(one.rank), points: points.collect() }
    };
    let figure = Lines {
        x: Axis::linear("Instance", Quantity::Plain),
        y: Axis::linear(y, Quantity::Nanoseconds),
        lines: all.iter().zip(labels::of(&places)).map(line).collect(),
        marks: Vec::new(),
    };
    Picture { name: picture, title, about: about.to_owned(), figure: Figure::Lines(figure) }
}
