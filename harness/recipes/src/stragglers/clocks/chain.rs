//! A first alignment, from clock to clock along the collectives that connect them. It tolerates nearly a third of
//! outliers; `joint` makes it exact.

use super::{Fit, SeriesEnds};
use crate::stragglers::robust::{median, narrow};

/// The slope is taken between every two of this many points.
const POINTS: usize = 96;

/// Aligns every clock with the first one of its connected group.
pub(super) fn lay(series_ends: &[SeriesEnds], fits: &mut [Fit]) {
    // Those with the most ends come first.
    let mut order: Vec<usize> =
        (0..series_ends.len()).filter(|at| series_ends[*at].clocks.len() > 1).collect();
    order.sort_by_key(|at| std::cmp::Reverse((series_ends[*at].ended.len(), series_ends[*at].clocks.len())));
    let mut laid = vec![false; fits.len()];
    for root in 0..fits.len() {
        if laid[root] {
            continue;
        }
        laid[root] = true;
        fits[root].pivot = middle_of(series_ends, root);
        let joins = |at: &&usize, laid: &[bool], fits: &[Fit]| {
            let clocks = &series_ends[**at].clocks;
            clocks.iter().any(|clock| laid[*clock] && fits[*clock].root == root)
                && clocks.iter().any(|clock| !laid[*clock])
        };
        while let Some(at) = order.iter().find(|at| joins(at, &laid, fits)) {
            let one = &series_ends[*at];
            let known: Vec<bool> = laid.clone();
            for clock in one.clocks.iter().filter(|clock| !known[**clock]) {
                fits[*clock] = along(one, *clock, &known, fits, root);
                laid[*clock] = true;
            }
        }
    }
}

/// The median of the ends by one clock.
fn middle_of(series_ends: &[SeriesEnds], clock: usize) -> i128 {
    let ends = series_ends.iter().flat_map(|one| &one.ended).flat_map(|ended| &ended.of_clock);
    let mut ends: Vec<i128> = ends.filter(|(of, _)| *of == clock).map(|(_, end)| *end).collect();
    median(&mut ends).unwrap_or_default()
}

fn along(series: &SeriesEnds, clock: usize, known: &[bool], fits: &[Fit], root: usize) -> Fit {
    let points = series.ended.iter().filter_map(|ended| {
        let own = ended.of_clock.iter().find(|(of, _)| *of == clock)?.1;
        let others = ended.of_clock.iter().filter(|(of, _)| known[*of]).map(|(of, end)| fits[*of].at(*end));
        Some((own, median(&mut others.collect::<Vec<_>>())? - own))
    });
    let points: Vec<(i128, i128)> = points.collect();
    let middle = |value: fn(&(i128, i128)) -> i128| median(&mut points.iter().map(value).collect::<Vec<_>>());
    let (pivot, shift) =
        (middle(|point| point.0).unwrap_or_default(), middle(|point| point.1).unwrap_or_default());
    let near: Vec<(f64, f64)> = super::sample(points.len(), POINTS)
        .map(|at| (narrow(points[at].0 - pivot) as f64, narrow(points[at].1 - shift) as f64))
        .collect();
    let mut slopes = Vec::new();
    for (at, (x, y)) in near.iter().enumerate() {
        let later = near[at + 1..].iter().filter(|(other, _)| other != x);
        slopes.extend(later.map(|(other, also)| (also - y) / (other - x)));
    }
    let slope = median(&mut slopes).unwrap_or(0.0);
    let mut rest: Vec<f64> = near.iter().map(|(x, y)| y - slope * x).collect();
    let more = median(&mut rest).unwrap_or(0.0);
    Fit { root, shift, pivot, more, slope }
}
