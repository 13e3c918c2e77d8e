//! A first alignment, from clock to clock along the collectives that connect them. It bears nearly a third of wild ends;
//! `joint` makes it exact.

use super::{Fit, Told};
use crate::stragglers::robust::{median, narrow};

/// The slope between every two of so many points is looked at.
const POINTS: usize = 96;

/// Lays every clock upon the first of those that it hangs together with.
pub(super) fn lay(told: &[Told], fits: &mut [Fit]) {
    // Those that tell most come first.
    let mut order: Vec<usize> = (0..told.len()).filter(|at| told[*at].clocks.len() > 1).collect();
    order.sort_by_key(|at| std::cmp::Reverse((told[*at].ended.len(), told[*at].clocks.len())));
    let mut laid = vec![false; fits.len()];
    for root in 0..fits.len() {
        if laid[root] {
            continue;
        }
        laid[root] = true;
        fits[root].pivot = middle_of(told, root);
        let joins = |at: &&usize, laid: &[bool], fits: &[Fit]| {
            let clocks = &told[**at].clocks;
            clocks.iter().any(|clock| laid[*clock] && fits[*clock].root == root)
                && clocks.iter().any(|clock| !laid[*clock])
        };
        while let Some(at) = order.iter().find(|at| joins(at, &laid, fits)) {
            let told = &told[*at];
            let known: Vec<bool> = laid.clone();
            for clock in told.clocks.iter().filter(|clock| !known[**clock]) {
                fits[*clock] = along(told, *clock, &known, fits, root);
                laid[*clock] = true;
            }
        }
    }
}

/// In the middle of what a clock told.
fn middle_of(told: &[Told], clock: usize) -> i128 {
    let ends = told.iter().flat_map(|told| &told.ended).flat_map(|ended| &ended.of_clock);
    let mut ends: Vec<i128> = ends.filter(|(of, _)| *of == clock).map(|(_, end)| *end).collect();
    median(&mut ends).unwrap_or_default()
}

fn along(told: &Told, clock: usize, known: &[bool], fits: &[Fit], root: usize) -> Fit {
    let points = told.ended.iter().filter_map(|ended| {
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
