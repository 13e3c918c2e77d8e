//! Aligns all connected clocks at once: the offsets and rates under which the ends of all collectives lie closest,
//! outliers weighing less.

use super::{Fit, SeriesEnds};
use crate::stragglers::robust::{NORMAL, median, narrow};

/// So many ends weigh in full up to this many deviations; beyond five nearly twice of it nothing.
const TUKEY: f64 = 4.685;
const ROUNDS: usize = 12;
/// Where few ends say little of a rate, it is likely not above this: nanoseconds in a second.
const LIKELY_RATE: f64 = 100_000.0;
/// Rates are settled in nanoseconds a second, so that offsets and rates are numbers of like size.
const SECOND: f64 = 1e9;

pub(super) fn settle(series_ends: &[SeriesEnds], fits: &mut [Fit]) {
    for root in 0..fits.len() {
        let clocks: Vec<usize> =
            (0..fits.len()).filter(|clock| *clock != root && fits[*clock].root == root).collect();
        if fits[root].root == root && !clocks.is_empty() {
            settle_around(root, &clocks, series_ends, fits);
        }
    }
}

/// One end: its clock's place among the unknown ones, none for the first clock; seconds from its middle; and how far
/// behind the first end of its collective the alignment so far puts it.
struct End {
    unknown: Option<usize>,
    seconds: f64,
    behind: f64,
}

fn settle_around(root: usize, clocks: &[usize], series_ends: &[SeriesEnds], fits: &mut [Fit]) {
    // Rates are settled again, from what they were found to be.
    let mut found: Vec<f64> = clocks.iter().flat_map(|clock| [0.0, fits[*clock].slope * SECOND]).collect();
    clocks.iter().for_each(|clock| fits[*clock].slope = 0.0);
    let collectives: Vec<Vec<End>> = series_ends
        .iter()
        .filter(|one| one.clocks.len() > 1 && fits[one.clocks[0]].root == root)
        .flat_map(|one| &one.ended)
        .map(|ended| {
            let ends = ended.of_clock.iter().map(|(clock, end)| (*clock, *end, fits[*clock].at(*end)));
            let first = ends.clone().next().map_or(0, |(_, _, at)| at);
            let ends = ends.map(|(clock, end, at)| End {
                unknown: clocks.binary_search(&clock).ok(),
                seconds: narrow(end - fits[clock].pivot) as f64 / SECOND,
                behind: narrow(at - first) as f64,
            });
            ends.collect()
        })
        .collect();
    for _ in 0..ROUNDS {
        let Some(better) = better(&collectives, &found) else { break };
        let moved = better.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        found = better;
        if moved < 0.1 {
            break;
        }
    }
    for (at, clock) in clocks.iter().enumerate() {
        fits[*clock].more += found[2 * at];
        fits[*clock].slope = found[2 * at + 1] / SECOND;
    }
}

fn placed(end: &End, found: &[f64]) -> f64 {
    end.behind + end.unknown.map_or(0.0, |at| found[2 * at] + found[2 * at + 1] * end.seconds)
}

/// One round of weighted least squares around what was found so far; nothing where it has no answer.
fn better(collectives: &[Vec<End>], found: &[f64]) -> Option<Vec<f64>> {
    let centred: Vec<Vec<f64>> = collectives
        .iter()
        .map(|ends| {
            let placed: Vec<f64> = ends.iter().map(|end| placed(end, found)).collect();
            let middle = median(&mut placed.clone()).unwrap_or(0.0);
            placed.iter().map(|at| at - middle).collect()
        })
        .collect();
    let mut apart: Vec<f64> = centred.iter().flatten().map(|rest| rest.abs()).collect();
    let scale = (NORMAL * median(&mut apart)?).max(1.0);
    let n = found.len();
    let mut matrix = vec![0.0; n * n];
    let mut right = vec![0.0; n];
    for (ends, rests) in collectives.iter().zip(&centred) {
        let weights: Vec<f64> = rests
            .iter()
            .map(|rest| {
                let far = (rest / (TUKEY * scale)).powi(2);
                if far < 1.0 { (1.0 - far).powi(2) } else { 0.0 }
            })
            .collect();
        let all: f64 = weights.iter().sum();
        if all <= 0.0 {
            continue;
        }
        for (a, end) in ends.iter().enumerate() {
            let Some(row) = end.unknown.filter(|_| weights[a] > 0.0) else { continue };
            for (b, other) in ends.iter().enumerate() {
                // When the collective truly ended is unknown too; this is what is left once it is taken out.
                let share = weights[a] * (f64::from(u8::from(a == b)) - weights[b] / all);
                right[2 * row] -= share * other.behind;
                right[2 * row + 1] -= share * end.seconds * other.behind;
                let Some(column) = other.unknown else { continue };
                let at = 2 * row * n + 2 * column;
                matrix[at] += share;
                matrix[at + 1] += share * other.seconds;
                matrix[at + n] += share * end.seconds;
                matrix[at + n + 1] += share * end.seconds * other.seconds;
            }
        }
    }
    for row in 0..n / 2 {
        matrix[2 * row * (n + 1)] += 1e-9;
        matrix[(2 * row + 1) * (n + 1)] += (scale / LIKELY_RATE).powi(2);
    }
    solved(matrix, right, n)
}

/// By Cholesky's way; nothing where the matrix is not positive.
fn solved(mut matrix: Vec<f64>, mut right: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    for row in 0..n {
        for column in 0..=row {
            let (before, own) = matrix.split_at(row * n);
            let other = if column == row { &own[..n] } else { &before[column * n..column * n + n] };
            let product: f64 = own[..column].iter().zip(&other[..column]).map(|(a, b)| a * b).sum();
            let left = own[column] - product;
            matrix[row * n + column] = if column == row {
                if left <= 0.0 || !left.is_finite() {
                    return None;
                }
                left.sqrt()
            } else {
                left / matrix[column * (n + 1)]
            };
        }
    }
    for row in 0..n {
        let product: f64 = (0..row).map(|column| matrix[row * n + column] * right[column]).sum();
        right[row] = (right[row] - product) / matrix[row * (n + 1)];
    }
    for row in (0..n).rev() {
        let product: f64 = (row + 1..n).map(|below| matrix[below * n + row] * right[below]).sum();
        right[row] = (right[row] - product) / matrix[row * (n + 1)];
    }
    right.iter().all(|value| value.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_and_those_without_an_answer_are_not() {
        let seen = solved(vec![4.0, 2.0, 2.0, 3.0], vec![8.0, 8.0], 2).expect("an answer");
        assert!((seen[0] - 1.0).abs() < 1e-12 && (seen[1] - 2.0).abs() < 1e-12, "{seen:?}");
        assert_eq!(solved(vec![1.0, 1.0, 1.0, 1.0], vec![1.0, 2.0], 2), None);
        assert_eq!(solved(vec![f64::NAN], vec![1.0], 1), None);
    }
}
