//! How probable each step between two neighbouring stacks is, by what runs of stacks have measured. Runs of one pair share
//! their moment: what drifts from pair to pair is part of the model, as is noise of unknown size. Runs made on earlier days
//! share what has changed since.

use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeMap;

/// One run of one stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackRun {
    /// Number of the pair that it belongs to: its two runs were made one after the other.
    pub pair: usize,
    /// Number of the stack, from the good one, 0, to the bad one.
    pub stack: usize,
    /// Logarithm of what it measured; more is better.
    pub value: f64,
    /// It was made before the bisection, on its own; `pair` says nothing.
    pub is_earlier: bool,
}

/// Steps below this are no steps: a fraction of the good stack's value.
pub const SMALLEST: f64 = 0.01;
/// The largest step that is thought of, as a difference of logarithms.
const LARGEST: f64 = 10.0;
/// Noise from run to run: a grid, since it is unknown.
const NOISES: [f64; 12] = [0.001, 0.0018, 0.003, 0.005, 0.008, 0.013, 0.02, 0.028, 0.04, 0.06, 0.1, 0.2];
const USUAL_NOISE: f64 = 0.015;
/// Variance from pair to pair in terms of that from run to run, and how probable it is.
const DRIFTS: [(f64, f64); 3] = [(0.0, 0.7), (0.5, 0.2), (4.0, 0.1)];
/// What earlier runs have beside noise and the step, and how probable it is. One shift for each stack: all of its earlier
/// runs may have been made on one day. The last hypothesis leaves of them what they vary by.
const SINCE: [(Since, f64); 5] = [
    (Since { scatter: 0.0, shift: 0.0 }, 0.85),
    (Since { scatter: 1.0, shift: 1.0 }, 0.05),
    (Since { scatter: 4.0, shift: 4.0 }, 0.04),
    (Since { scatter: 0.0, shift: 10.0 }, 0.04),
    (Since { scatter: 0.0, shift: 1000.0 }, 0.02),
];
/// Where there are no earlier runs.
const NOTHING: [(Since, f64); 1] = [(Since { scatter: 0.0, shift: 0.0 }, 1.0)];
/// Before anything is measured, of 1: no step, and a stack that is better than the good one.
const NO_STEP: f64 = 0.3;
const BETTER: f64 = 0.1;

/// What the runs so far show.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// Probability that the bad stack is not worse than the good one by more than `SMALLEST`.
    pub no_step: f64,
    /// Probability of the step between stack `n` and stack `n + 1`.
    pub steps: Vec<f64>,
    /// The size of the most probable step, as a difference of logarithms, and its standard error.
    pub size: (f64, f64),
    /// The most probable noise from run to run.
    pub noise: f64,
    /// The most probable variances beside it.
    pub(super) variances: Variances,
}

/// Variances of earlier runs, in terms of that from run to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Since {
    /// Of each run, beside its noise: it was made on a day of its own.
    pub scatter: f64,
    /// Of what all of one stack share, and the runs of today do not.
    pub shift: f64,
}

/// What runs vary by beside noise, in terms of its variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Variances {
    /// From pair to pair.
    pub drift: f64,
    pub since: Since,
}

impl Variances {
    /// The weight of each run of a block, and the variance that they share in terms of that of one of them.
    pub(super) fn weigh(&self, block: &[StackRun]) -> (f64, f64) {
        match block.first().is_some_and(|run| run.is_earlier) {
            true => {
                let weight = 1.0 / (1.0 + self.since.scatter);
                (weight, self.since.shift * weight)
            }
            false => (1.0, self.drift),
        }
    }
}

impl Posterior {
    /// Of `stacks` stacks in order, which are at least two.
    pub fn new(stacks: usize, runs: &[StackRun]) -> Posterior {
        let blocks = blocks(runs);
        let count = stacks.saturating_sub(1).max(1);
        let has_earlier = runs.iter().any(|run| run.is_earlier);
        let since: &[(Since, f64)] = if has_earlier { &SINCE } else { &NOTHING };
        // With the logarithm of how probable they are.
        let varied: Vec<(Variances, f64)> = DRIFTS
            .iter()
            .flat_map(|(drift, of_drift)| {
                since.iter().map(move |(since, of_since)| {
                    (Variances { drift: *drift, since: *since }, of_drift.ln() + of_since.ln())
                })
            })
            .collect();
        let fits: Vec<Vec<Fit>> = (1..=count)
            .map(|from| varied.iter().map(|(variances, _)| Fit::new(&blocks, from, *variances)).collect())
            .collect();
        let mut terms = Vec::new();
        for (at, of_step) in fits.iter().enumerate() {
            for (fit, (variances, of_variances)) in of_step.iter().zip(varied.iter().copied()) {
                for noise in NOISES {
                    let prior = of_variances - (count as f64).ln() + noise_prior(noise);
                    let [worse, alike, better] = fit.evidence(noise);
                    terms.push(Term {
                        at,
                        noise,
                        variances,
                        fit: *fit,
                        log: worse + prior + (1.0 - NO_STEP - BETTER).ln(),
                        is_step: true,
                    });
                    terms.push(Term {
                        at,
                        noise,
                        variances,
                        fit: *fit,
                        log: alike + prior + NO_STEP.ln(),
                        is_step: false,
                    });
                    terms.push(Term {
                        at,
                        noise,
                        variances,
                        fit: *fit,
                        log: better + prior + BETTER.ln(),
                        is_step: false,
                    });
                }
            }
        }
        let most = terms.iter().map(|term| term.log).fold(f64::NEG_INFINITY, f64::max);
        let weight = |term: &Term| (term.log - most).exp();
        let sum: f64 = terms.iter().map(weight).sum();
        let mut steps = vec![0.0; count];
        let mut no_step = 0.0;
        for term in &terms {
            match steps.get_mut(term.at) {
                Some(step) if term.is_step => *step += weight(term) / sum,
                _ => no_step += weight(term) / sum,
            }
        }
        let best = best(&steps);
        let of_best = terms.iter().filter(|term| term.is_step && term.at == best);
        let likeliest = of_best.max_by(|a, b| a.log.total_cmp(&b.log));
        let none = Variances { drift: 0.0, since: Since { scatter: 0.0, shift: 0.0 } };
        let (size, noise, variances) = likeliest.map_or(((0.0, f64::INFINITY), 0.0, none), |term| {
            ((term.fit.size, term.noise / term.fit.weight.sqrt()), term.noise, term.variances)
        });
        Posterior { no_step, steps, size, noise, variances }
    }

    /// The most probable step.
    pub fn best(&self) -> usize {
        best(&self.steps)
    }
}

fn best(steps: &[f64]) -> usize {
    let most = steps.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or(0, |(at, _)| at)
}

struct Term {
    at: usize,
    noise: f64,
    variances: Variances,
    fit: Fit,
    log: f64,
    is_step: bool,
}

/// The runs of each pair, and the earlier ones of each stack.
pub(super) fn blocks(runs: &[StackRun]) -> Vec<Vec<StackRun>> {
    let mut blocks: BTreeMap<(bool, usize), Vec<StackRun>> = BTreeMap::new();
    for run in runs {
        let block = if run.is_earlier { run.stack } else { run.pair };
        blocks.entry((run.is_earlier, block)).or_default().push(*run);
    }
    blocks.into_values().collect()
}

/// Least squares of one level and one step below it, for one step and the variances of one hypothesis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    runs: f64,
    /// What the variances and the free level cost, as logarithms.
    costs: f64,
    /// The best size of the step, the weight that the runs give it, and the squares that it leaves.
    size: f64,
    weight: f64,
    pub squares: f64,
}

impl Fit {
    /// Of the step that stack `from` is the first behind.
    pub(super) fn new(blocks: &[Vec<StackRun>], from: usize, variances: Variances) -> Fit {
        let (mut a11, mut a12, mut a22, mut b1, mut b2, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut costs, mut runs) = (0.0, 0.0);
        for block in blocks {
            let m = block.len() as f64;
            let is_behind = |run: &StackRun| if run.stack >= from { 1.0 } else { 0.0 };
            let z: f64 = block.iter().map(is_behind).sum();
            let y: f64 = block.iter().map(|run| run.value).sum();
            let zy: f64 = block.iter().map(|run| is_behind(run) * run.value).sum();
            let squares: f64 = block.iter().map(|run| run.value * run.value).sum();
            let (each, of_block) = variances.weigh(block);
            let shared = of_block / (1.0 + m * of_block);
            a11 += each * (m - shared * m * m);
            a12 += each * (z - shared * m * z);
            a22 += each * (z - shared * z * z);
            b1 += each * (y - shared * m * y);
            b2 += each * (zy - shared * z * y);
            yy += each * (squares - shared * y * y);
            costs += (m * each.ln() - (1.0 + m * of_block).ln()) / 2.0;
            runs += m;
        }
        costs -= f64::max(a11, f64::MIN_POSITIVE).ln() / 2.0;
        let (weight, with) = (a22 - a12 * a12 / a11, b2 - a12 * b1 / a11);
        let left = (yy - b1 * b1 / a11).max(0.0);
        // Runs on one side only say nothing of the size.
        match weight > 1e-9 {
            true => Fit {
                runs,
                costs,
                size: -with / weight,
                weight,
                squares: (left - with * with / weight).max(0.0),
            },
            false => Fit { runs, costs, size: 0.0, weight: 0.0, squares: left },
        }
    }

    /// Logarithms of how probable the runs are: with a step that is worse, with none, and with one that is better.
    fn evidence(&self, noise: f64) -> [f64; 3] {
        let smallest = -(1.0 - SMALLEST).ln();
        let base = self.costs - (self.runs - 1.0) * noise.ln() - self.squares / (2.0 * noise * noise);
        if self.weight == 0.0 {
            return [base; 3];
        }
        let error = noise / self.weight.sqrt();
        let within = |from: f64, to: f64| {
            let mass = log_between((from - self.size) / error, (to - self.size) / error);
            mass + error.ln() + std::f64::consts::TAU.ln() / 2.0
        };
        // Each factor of the size is as probable as the next.
        let density = |size: f64| 1.0 / (size.clamp(smallest, LARGEST) * (LARGEST / smallest).ln());
        [
            base + within(smallest, LARGEST) + density(self.size).ln(),
            base + within(-smallest, smallest) - (2.0 * smallest).ln(),
            base + within(-LARGEST, -smallest) + density(-self.size).ln(),
        ]
    }
}

/// Logarithm of how probable a noise is before anything is measured: collectives repeat within one or two percent.
fn noise_prior(noise: f64) -> f64 {
    -(noise / USUAL_NOISE).ln().powi(2) / 2.0
}

/// Logarithm of the mass of the standard normal distribution between two points, in its far tails as well.
fn log_between(from: f64, to: f64) -> f64 {
    // The tail above is the mirror of that below.
    let (from, to) = if from > 0.0 { (-to, -from) } else { (from, to) };
    let (low, high) = (log_below(from), log_below(to));
    (high + (-(low - high).exp()).ln_1p()).max(LEAST)
}

/// No logarithm that is compared is below this.
const LEAST: f64 = -1e12;

fn log_below(x: f64) -> f64 {
    if x > -30.0 {
        return Normal::standard().cdf(x).ln();
    }
    -x * x / 2.0 - (-x).ln() - std::f64::consts::TAU.ln() / 2.0
}
