//! What figures near a point deviate by from the fit, carried over to it by their distance.

use crate::limit::{Bound, Point};
use crate::matrix::{Cholesky, dot};

/// How far a deviation reaches, as a logarithm: at a factor of 4 in bytes per node, or in nodes, 0.6 of it is left.
const REACH: f64 = 1.386;
/// Relative standard deviation of what the fit leaves over: steps between algorithms and chunk sizes of NCCL.
const DEVIATION: f64 = 0.15;
/// The same of two published figures for one key.
const NOISE: f64 = 0.04;
/// Of the correlation, between two instances.
const OTHER_INSTANCE: f64 = 0.5;

/// Deviations of the figures that a fit was made of.
#[derive(Debug, Clone)]
pub(crate) struct Deviations {
    points: Vec<Point>,
    root: Cholesky,
    weights: Vec<f64>,
}

impl Deviations {
    /// `left_over`: the logarithm of figure / fit at each point.
    pub(crate) fn new(points: Vec<Point>, left_over: &[f64]) -> Option<Deviations> {
        let mut matrix: Vec<Vec<f64>> =
            points.iter().map(|a| points.iter().map(|b| covariance(a, b)).collect()).collect();
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] += NOISE * NOISE;
        }
        let root = Cholesky::new(&matrix)?;
        let weights = root.solve(left_over);
        Some(Deviations { points, root, weights })
    }

    /// The logarithm of value / fit at a point, and its standard deviation.
    pub(crate) fn at(&self, point: &Point) -> (f64, f64) {
        let to: Vec<f64> = self.points.iter().map(|one| covariance(one, point)).collect();
        let known = self.root.forward(&to);
        let variance = DEVIATION * DEVIATION - dot(&known, &known) + NOISE * NOISE;
        (dot(&to, &self.weights), variance.max(NOISE * NOISE).sqrt())
    }
}

fn covariance(a: &Point, b: &Point) -> f64 {
    let nvlink = |point: &Point| point.bound == Bound::NvLink;
    if nvlink(a) != nvlink(b) {
        return 0.0;
    }
    let (share, nodes) = ((a.share - b.share) / REACH, (a.nodes / b.nodes).ln() / REACH);
    let instance = if a.instance == b.instance { 1.0 } else { OTHER_INSTANCE };
    DEVIATION * DEVIATION * instance * (-0.5 * (share * share + nodes * nodes)).exp()
}
