//! Where a series of numbers, one per run, changes: from one level to another, or little by little. A change is
//! reported where the runs in another order would hardly ever look so: nothing is assumed of the noise but that it is
//! the same in all runs.

use config::bounds;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Of a hundred questions about runs that did not change, at most one reports a change, however many series it is about.
pub const FALSE_ALARMS: f64 = 0.01;

/// With fewer runs no order of them is rare enough to report a change.
pub const FEWEST_RUNS: usize = 10;

/// A level is that of two runs at least: one run alone may lie off for any reason.
const FEWEST: usize = 2;

/// The random orders are always the same ones, so that the same runs give the same answer.
const SEED: u64 = 0x6861_726e_6573_7321;

/// More random orders than this are not tried: a hundred thousand resolve rates down to one in as many.
const MOST_ORDERS: u64 = 100_000;

/// So many of the random orders look like the series by then, where the rate is just the one that is asked for.
const ORDERS_ALIKE: u64 = 20;

/// How a series goes from run to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// No evidence of a change.
    Level,
    /// Each in the order of the runs.
    Steps(Vec<Step>),
    /// A straight line explains it better than steps do.
    Drift(Drift),
}

/// A change from one level to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The first run of the new level, counted from 0.
    pub at: usize,
    /// Median of the level up to `at`.
    pub before: f64,
    /// Median of the level from `at` to the next step.
    pub after: f64,
}

/// From the first run to the last, along a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Height of the line at the first run.
    pub from: f64,
    /// Height of the line at the last run.
    pub to: f64,
}

/// What becomes of finite `values` in their order. `least` is the smallest change that is reported, as a fraction, and
/// `rate` how often one may be reported where there is none.
pub(crate) fn shape(values: &[f64], least: f64, rate: f64) -> Shape {
    let mut cuts = Vec::new();
    split(values, 0, least, rate, &mut cuts);
    cuts.sort_unstable();
    place(values, &mut cuts);
    let steps = steps(values, &cuts, least);
    if steps.is_empty() {
        return Shape::Level;
    }
    let line = TrendLine::through(values);
    let (from, to) = (line.at(0), line.at(values.len() - 1));
    let is_drift = is_far(from, to, least) && line.weight(values) < weight_of_steps(values, &steps);
    if is_drift { Shape::Drift(Drift { from, to }) } else { Shape::Steps(steps) }
}

/// Cuts in two where the two sides differ most, and goes on within them, as long as chance does not explain it. Where
/// nothing changed, the first cut is the only one that is looked for: the rate is that of the whole series.
fn split(values: &[f64], start: usize, least: f64, rate: f64, cuts: &mut Vec<usize>) {
    let mut ranks = ranks(values);
    let Some((at, far)) = furthest(&ranks) else { return };
    if !is_far(median(&values[..at]), median(&values[at..]), least) || is_chance(&mut ranks, far, rate) {
        return;
    }
    cuts.push(start + at);
    split(&values[..at], start, least, rate, cuts);
    split(&values[at..], start + at, least, rate, cuts);
}

/// Puts each cut where its two neighbouring levels differ most: those that were found first were looked for among all
/// runs.
fn place(values: &[f64], cuts: &mut [usize]) {
    for nth in 0..cuts.len() {
        let start = nth.checked_sub(1).map_or(0, |before| cuts[before]);
        let end = cuts.get(nth + 1).copied().unwrap_or(values.len());
        if let Some((at, _)) = furthest(&ranks(&values[start..end])) {
            cuts[nth] = start + at;
        }
    }
}

/// Twice each value's place among the others: equal values share the middle of their places.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for alike in order.chunk_by(|a, b| values[*a] == values[*b]) {
        alike.iter().for_each(|at| ranks[*at] = (2 * below + alike.len() + 1) as f64);
        below += alike.len();
    }
    ranks
}

/// The cut whose sides' ranks lie furthest apart, in units of what chance does there, squared and but for a constant.
fn furthest(ranks: &[f64]) -> Option<(usize, f64)> {
    let n = ranks.len();
    let (mut sum, mut best) = (0.0, None);
    for (at, rank) in ranks.iter().enumerate() {
        let taken = at + 1;
        sum += rank;
        if taken < FEWEST || n - taken < FEWEST {
            continue;
        }
        let off = sum - (taken * (n + 1)) as f64;
        let far = off * off / (taken * (n - taken)) as f64;
        if best.is_none_or(|(_, most)| far > most) {
            best = Some((taken, far));
        }
    }
    best
}

/// Whether random orders of the same runs look as cut in two as theirs does, more often than `rate`.
fn is_chance(ranks: &mut [f64], far: f64, rate: f64) -> bool {
    // Sums in another order differ in their last digits.
    let far = far * (1.0 - 1e-9);
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let orders = ((ORDERS_ALIKE as f64 / rate).ceil() as u64).min(MOST_ORDERS);
    let most = (rate * orders as f64).floor() as u64;
    // The runs' own order is one of them.
    let mut alike = 1;
    for _ in 1..orders {
        if alike > most {
            return true;
        }
        for at in (1..ranks.len()).rev() {
            ranks.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
        }
        alike += u64::from(furthest(ranks).is_some_and(|(_, other)| other >= far));
    }
    alike > most
}

/// The levels between the cuts; neighbours that do not differ enough are one.
fn steps(values: &[f64], cuts: &[usize], least: f64) -> Vec<Step> {
    let mut cuts = cuts.to_vec();
    loop {
        let level = |from: Option<&usize>, to: Option<&usize>| {
            median(&values[from.copied().unwrap_or(0)..to.copied().unwrap_or(values.len())])
        };
        let steps: Vec<Step> = cuts
            .iter()
            .enumerate()
            .map(|(nth, at)| Step {
                at: *at,
                before: level(nth.checked_sub(1).and_then(|nth| cuts.get(nth)), Some(at)),
                after: level(Some(at), cuts.get(nth + 1)),
            })
            .collect();
        match steps.iter().position(|step| !is_far(step.before, step.after, least)) {
            Some(nth) => cuts.remove(nth),
            None => return steps,
        };
    }
}

fn is_far(before: f64, after: f64, least: f64) -> bool {
    (after - before).abs() > least * before.abs().min(after.abs()) && before != after
}

/// What explains the series worse weighs more: its distances from it, and each number that it takes to say it (the
/// Bayesian criterion, for noise with heavy tails).
fn weight(distances: impl Iterator<Item = f64>, values: &[f64], numbers: usize) -> f64 {
    let n = values.len() as f64;
    let least = 1e-9 * median(values).abs().max(f64::MIN_POSITIVE);
    let mean = (distances.sum::<f64>() / n).max(least);
    2.0 * n * mean.ln() + numbers as f64 * n.ln()
}

fn weight_of_steps(values: &[f64], steps: &[Step]) -> f64 {
    let level = |at: usize| {
        let last = steps.iter().rev().find(|step| step.at <= at);
        last.map_or_else(|| steps.first().map_or(f64::NAN, |step| step.before), |step| step.after)
    };
    let distances = values.iter().enumerate().map(|(at, value)| (value - level(at)).abs());
    weight(distances, values, 2 * steps.len() + 1)
}

struct TrendLine {
    start: f64,
    slope: f64,
}

impl TrendLine {
    /// The median of the slopes between all two runs (Theil and Sen): a few odd runs do not turn it.
    fn through(values: &[f64]) -> TrendLine {
        let numbered = || values.iter().enumerate();
        let slopes: Vec<f64> = numbered()
            .flat_map(|(i, a)| numbered().skip(i + 1).map(move |(j, b)| (b - a) / (j - i) as f64))
            .collect();
        let slope = median(&slopes);
        let starts: Vec<f64> = numbered().map(|(at, value)| value - slope * at as f64).collect();
        TrendLine { start: median(&starts), slope }
    }

    fn at(&self, at: usize) -> f64 {
        self.start + self.slope * at as f64
    }

    fn weight(&self, values: &[f64]) -> f64 {
        weight(values.iter().enumerate().map(|(at, value)| (value - self.at(at)).abs()), values, 2)
    }
}

fn median(values: &[f64]) -> f64 {
    bounds::median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
