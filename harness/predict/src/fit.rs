//! Three parameters of an operation, fitted to its figures: used fractions of NVLink and of the wire, latency per node.

use crate::figures::Row;
use crate::kriging::Deviations;
use crate::limit::{Bound, Point};
use crate::matrix::{Cholesky, dot};

/// Of one operation.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    parameters: [f64; 3],
    deviations: Deviations,
}

/// Rounds of weighting: figures far from the fit count less in the next one.
const ROUNDS: usize = 20;

impl Fit {
    /// `None` where the figures determine none.
    pub(crate) fn new(rows: &[&Row]) -> Option<Fit> {
        let parameters = parameters(rows)?;
        let left_over: Vec<f64> =
            rows.iter().map(|row| (row.figure.busbw / by_limits(&parameters, &row.point)).ln()).collect();
        let points = rows.iter().map(|row| row.point.clone()).collect();
        Some(Fit { parameters, deviations: Deviations::new(points, &left_over)? })
    }

    /// busbw in GB/s, and its relative standard deviation.
    pub(crate) fn at(&self, point: &Point) -> (f64, f64) {
        let (deviation, sigma) = self.deviations.at(point);
        (by_limits(&self.parameters, point) * deviation.exp(), sigma)
    }

    /// What of NVLink and of the wire is used, and the latency per node in microseconds.
    #[cfg(test)]
    pub(crate) fn used(&self) -> (f64, f64, f64) {
        (1.0 / self.parameters[0], 1.0 / self.parameters[1], self.parameters[2])
    }
}

/// `limit / busbw` is the inverse of the used fraction plus latency over the time on the link: linear in the parameters.
fn terms(point: &Point) -> [f64; 3] {
    match point.bound {
        Bound::NvLink => [1.0, 0.0, point.latency],
        Bound::Wire | Bound::TreeWire => [0.0, 1.0, point.latency],
    }
}

fn by_limits(parameters: &[f64; 3], point: &Point) -> f64 {
    point.limit / dot(&terms(point), parameters)
}

/// Least squares of relative errors, with Huber's weights. A link that no figure is bound by counts as wholly used.
fn parameters(rows: &[&Row]) -> Option<[f64; 3]> {
    let terms: Vec<[f64; 3]> = rows.iter().map(|row| terms(&row.point)).collect();
    let used: Vec<usize> = (0..3).filter(|at| terms.iter().any(|one| one[*at] != 0.0)).collect();
    let relative: Vec<Vec<f64>> = rows
        .iter()
        .zip(&terms)
        .map(|(row, terms)| used.iter().map(|at| terms[*at] * row.figure.busbw / row.point.limit).collect())
        .collect();
    let mut weights = vec![1.0; rows.len()];
    let mut solved = Vec::new();
    for _ in 0..ROUNDS {
        let sum = |a: usize, b: usize| {
            relative.iter().zip(&weights).map(|(row, weight)| weight * row[a] * row[b]).sum::<f64>()
        };
        let matrix: Vec<Vec<f64>> =
            (0..used.len()).map(|a| (0..used.len()).map(|b| sum(a, b)).collect()).collect();
        let right: Vec<f64> = (0..used.len())
            .map(|a| relative.iter().zip(&weights).map(|(row, weight)| weight * row[a]).sum())
            .collect();
        solved = Cholesky::new(&matrix)?.solve(&right);
        let errors: Vec<f64> = relative.iter().map(|row| (dot(row, &solved) - 1.0).abs()).collect();
        let scale = 1.5 * (1.48 * median(&errors)? + 1e-9);
        weights = errors.iter().map(|error| (scale / error.max(1e-12)).min(1.0)).collect();
    }
    let mut parameters = [1.0, 1.0, 0.0];
    for (at, value) in used.into_iter().zip(solved) {
        parameters[at] = value;
    }
    parameters[2] = parameters[2].max(0.0);
    (parameters[0] > 0.0 && parameters[1] > 0.0).then_some(parameters)
}

/// `None` of no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::published;
    use metric::op::Op;

    #[test]
    fn the_fitted_parameters_are_those_of_real_hardware() {
        for op in [Op::AllReduce, Op::AllGather, Op::AllToAll] {
            let rows: Vec<&Row> = published().rows.iter().filter(|row| row.figure.op == op).collect();
            let (_, wire, latency) = Fit::new(&rows).expect("a fit").used();
            assert!((0.75..0.95).contains(&wire), "{op}: {wire} of the wire");
            assert!((30.0..150.0).contains(&latency), "{op}: {latency} us per node");
        }
    }

    #[test]
    fn few_or_no_figures_make_no_fit() {
        let rows: Vec<&Row> = published().rows.iter().collect();
        assert!(Fit::new(&[]).is_none());
        assert!(Fit::new(&rows[..1]).is_none());
    }
}
