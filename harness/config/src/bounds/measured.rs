//! What the runs of one key measured: one sample per run, for the numbers of one run are not independent; and how much a
//! single number of it varies, from run to run and within one.

use super::{KeySpread, Pool, Spread, outliers};

/// The samples of one key, and how much its numbers vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// One per run that kept any number: the median of what was kept.
    pub samples: Vec<f64>,
    /// Median of the samples; NaN where there are none.
    pub middle: f64,
    /// From run to run; nothing for fewer than two.
    pub between: Option<KeySpread>,
    /// Within a run; nothing where each has one number.
    pub within: Option<KeySpread>,
    /// Which numbers were kept, run by run.
    pub kept: Vec<Vec<bool>>,
}

impl Measured {
    /// Of runs of any number of subjects each. `least` is the smallest deviation that is believed (`outliers.rs`).
    pub fn from_runs(runs: &[Vec<f64>], least: f64) -> Measured {
        let kept = kept(runs, least);
        let inner: Vec<Vec<f64>> = runs.iter().zip(&kept).map(|(run, kept)| chosen(run, kept)).collect();
        // A whole run that lies off is no bad node: another mode of the software comes again, and is left in.
        let samples: Vec<f64> = inner.iter().filter_map(|run| outliers::median(run)).collect();
        let middle = outliers::median(&samples).unwrap_or(f64::NAN);
        let (between, within) = (KeySpread::from_values(&samples), within(&inner));
        Measured { samples, middle, between, within, kept }
    }

    /// Of one number: both together. Nothing for fewer than two runs.
    pub fn spread(&self) -> Option<KeySpread> {
        Some(match (self.between?, self.within) {
            (between, Some(within)) => between.and(within),
            (between, None) => between,
        })
    }
}

/// Nodes that lie off the others of their run, by how far the numbers of all runs lie from their run's middle. The
/// medians are recomputed until nothing more is left out.
fn kept(runs: &[Vec<f64>], least: f64) -> Vec<Vec<bool>> {
    let mut kept: Vec<Vec<bool>> =
        runs.iter().map(|run| run.iter().map(|value| value.is_finite()).collect()).collect();
    loop {
        let off: Vec<f64> = runs
            .iter()
            .zip(&kept)
            .flat_map(|(run, kept)| {
                let middle = outliers::median(&chosen(run, kept)).unwrap_or(f64::NAN);
                run.iter().zip(kept).map(move |(value, kept)| if *kept { value / middle } else { f64::NAN })
            })
            .collect();
        let mut still = outliers::kept(&off, least).into_iter();
        let next: Vec<Vec<bool>> = kept.iter().map(|run| still.by_ref().take(run.len()).collect()).collect();
        if next == kept {
            return kept;
        }
        kept = next;
    }
}

fn chosen(run: &[f64], kept: &[bool]) -> Vec<f64> {
    run.iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect()
}

/// The spread about each run's own middle, over all runs.
fn within(runs: &[Vec<f64>]) -> Option<KeySpread> {
    let own: Vec<KeySpread> = runs.iter().filter_map(|run| KeySpread::from_values(run)).collect();
    let freedom: f64 = own.iter().map(|one| one.freedom).sum();
    let squares: f64 = own.iter().map(|one| one.freedom * one.relative.powi(2)).sum();
    (freedom > 0.0).then(|| KeySpread { relative: (squares / freedom).sqrt(), freedom })
}

/// With the other keys of the metric where there are enough, alone otherwise.
pub fn spread(pool: Option<&Pool>, own: Option<KeySpread>, n: u32) -> Spread {
    match (pool, own) {
        (Some(pool), own) => pool.spread(own, n),
        (None, Some(own)) => Spread { relative: own.relative, freedom: own.freedom },
        (None, None) => Spread { relative: 0.0, freedom: 0.0 },
    }
}
