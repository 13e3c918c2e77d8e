//! Where the time of GPUs went, to be seen: of all GPUs together, and what each left unused.

use super::Row;
use crate::busy::Shares;
use crate::chart::{Axis, Bar, Bars, Chart, Figure};
use crate::recipe::of_reports::labels;
use crate::result_table::Quantity;

type Part = fn(&Shares) -> u64;

/// The parts of a window.
const PARTS: [(&str, Part); 9] = [
    ("computing alone", |of| of.compute_alone),
    ("computing beside communication", |of| of.compute_communication),
    ("computing beside copies", |of| of.compute_memory),
    ("computing beside both", |of| of.all_three),
    ("communicating alone", |of| of.communication_alone),
    ("communicating beside copies", |of| of.communication_memory),
    ("copying alone", |of| of.memory_alone),
    ("graphs traced as a whole", |of| of.graphs_alone),
    ("idle", |of| of.idle),
];

/// Of GPUs with their ranks.
pub(super) fn render(gpus: &[(i64, Option<i64>, &Row)]) -> Vec<Chart> {
    let windows: u128 = gpus.iter().map(|(.., row)| u128::from(row.shares.window)).sum();
    if windows == 0 {
        return Vec::new();
    }
    let parts = PARTS.iter().filter_map(|(label, part)| {
        let sum: u128 = gpus.iter().map(|(.., row)| u128::from(part(&row.shares))).sum();
        let value = Some(100.0 * sum as f64 / windows as f64);
        (sum > 0).then(|| Bar { label: (*label).to_owned(), rank: None, value })
    });
    let mut charts = vec![bars(
        "shares",
        "Where the Time of all GPUs Went",
        "each moment of each GPU's window is in one part alone, so that the parts are the whole",
        "Part of the Windows",
        parts.collect(),
    )];
    let places: Vec<labels::LabelKey> =
        gpus.iter().map(|(rank, _, row)| (*rank, row.pid, Some(row.device))).collect();
    let labels = labels::unique(&places);
    let each = |part: fn(&Shares) -> Option<u64>| {
        let bars = gpus.iter().zip(&labels).map(|((rank, _, row), label)| Bar {
            label: label.clone(),
            rank: Some(*rank),
            value: part(&row.shares)
                .filter(|_| row.shares.window > 0)
                .map(|ns| 100.0 * ns as f64 / row.shares.window as f64),
        });
        bars.collect::<Vec<Bar>>()
    };
    charts.push(bars(
        "idle",
        "Idle Time of each GPU",
        "fraction of its window in which a GPU was idle: a taller bar is a GPU that waits for its host or for input",
        "Idle of Window",
        each(|of| Some(of.idle)),
    ));
    let exposed = each(Shares::exposed);
    if exposed.iter().any(|bar| bar.value.is_some_and(|value| value > 0.0)) {
        charts.push(bars(
            "exposed",
            "Exposed Communication of each GPU",
            "fraction of its window in which a GPU communicated without compute",
            "Exposed of Window",
            exposed,
        ));
    }
    charts
}

fn bars(name: &'static str, title: &str, about: &str, value: &str, bars: Vec<Bar>) -> Chart {
    let value = Axis::linear(value, Quantity::Percent);
    let figure = Figure::Bars(Bars { value, bars, marks: Vec::new() });
    Chart { name: name.into(), title: title.to_owned(), about: about.to_owned(), figure }
}
