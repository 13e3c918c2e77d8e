//! The charts of a summary: the shares of its largest groups, and the distribution of their values.

use crate::chart::{Axis, Bar, Bars, Boxes, Chart, Figure, FiveNumbers};
use crate::figures::Stats;
use crate::result_table::Quantity;
use std::cmp::Reverse;

/// How many groups are shown one by one.
const SHOWN: usize = 10;

/// The charts of a summary.
pub(crate) const SUMMARY_CHARTS: &[(&str, &str)] = &[
    ("totals", "the largest totals, as bars"),
    ("spread", "minimum, quartiles, median and maximum of the same, as boxes"),
];

/// Of groups by their words; none of no groups.
pub(in super::super) fn summary_charts(
    title: &str,
    quantity: Quantity,
    rows: &[(Option<i64>, Vec<String>, Stats)],
) -> Vec<Chart> {
    let mut largest: Vec<&(Option<i64>, Vec<String>, Stats)> = rows.iter().collect();
    largest.sort_by(|a, b| (Reverse(a.2.total), &a.1).cmp(&(Reverse(b.2.total), &b.1)));
    let (shown, others) = largest.split_at(largest.len().min(SHOWN));
    if shown.is_empty() {
        return Vec::new();
    }
    let bar = |label: String, total: u128| Bar { label, rank: None, value: Some(total as f64) };
    let mut bars: Vec<Bar> = shown.iter().map(|(_, words, stats)| bar(label(words), stats.total)).collect();
    if !others.is_empty() {
        let rest = others.iter().map(|(.., stats)| stats.total).sum();
        bars.push(bar(format!("all others ({})", others.len()), rest));
    }
    let boxes = shown.iter().map(|(_, words, stats)| FiveNumbers {
        label: label(words),
        rank: None,
        count: stats.count,
        min: stats.min as f64,
        q1: stats.q1,
        median: stats.median,
        q3: stats.q3,
        max: stats.max as f64,
    });
    // A logarithmic axis has no zero.
    let axis = if shown.iter().all(|(.., stats)| stats.min > 0) { Axis::log } else { Axis::linear };
    let single = if quantity == Quantity::Nanoseconds { "Duration" } else { "Value" };
    vec![
        Chart {
            name: "totals".into(),
            title: format!("{title}: Totals"),
            about: format!("the {SHOWN} largest totals over all reports, and the sum of the others"),
            figure: Figure::Bars(Bars { value: Axis::linear("Total", quantity), bars, marks: Vec::new() }),
        },
        Chart {
            name: "spread".into(),
            title: format!("{title}: Spread"),
            about: "minimum, quartiles, median and maximum of the same: a long box or whisker is uneven work"
                .to_owned(),
            figure: Figure::Boxes(Boxes {
                value: axis(single, quantity),
                boxes: boxes.collect(),
                marks: Vec::new(),
            }),
        },
    ]
}

fn label(words: &[String]) -> String {
    words.join(" ")
}
