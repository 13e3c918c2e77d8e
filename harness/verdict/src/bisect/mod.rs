//! Which of two neighbouring software stacks a step in a number lies between, in as few pairs of runs as possible. Which
//! stacks the next pair runs is decided here; runs are made elsewhere.

mod posterior;
pub mod record;
mod second_step;
#[cfg(test)]
mod tests;

pub use posterior::{Posterior, SMALLEST, StackRun};

use second_step::has_second_step;

/// A conclusion is wrong with at most this probability, by the model and without earlier runs. At 0.01 steps are named in fewer pairs,
/// and wrong ones where runs vary by as much as the step.
const WRONG_AT_MOST: f64 = 0.006;
/// The ends have as many runs at least, before anything else is run.
const FEWEST: usize = 2;
/// So have both neighbours of a step: two runs agree by chance where noise is not known yet.
const FEWEST_BESIDE: usize = 3;
/// So many earlier runs of both ends say what the noise is: no pair of the ends is needed then, and fewer runs beside a
/// step. With 3 of them two runs beside a step agree by chance.
const EARLIER: usize = 8;
const FEWEST_BESIDE_KNOWN: usize = 2;
/// With so many, where the step is larger than twice the noise. At 0.03, 4 of 200 steps are wrong where all was 3 % faster
/// when the earlier runs were made.
const WRONG_AT_MOST_KNOWN: f64 = 0.01;
const CLEAR: f64 = 2.0;
/// With any, where the step is not clear of the noise.
const WRONG_AT_MOST_UNCLEAR: f64 = 0.003;
/// One-sided, of 73 %: at 90 % most steps stay open where runs vary by as much as the step.
const CERTAIN: f64 = 0.6;
/// What the ends differ by beyond the step is less than this part of it, or the step does not explain it.
const REST: f64 = 0.5;
/// Pairs of the ends before they are called alike.
const ENDS: usize = 3;
/// With more than this probability that there is no step, the ends say most.
const OPEN: f64 = 0.3;
/// From this probability on, a step is looked at by its two neighbours.
const LIKELY: f64 = 0.4;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A run of each of these two stacks.
    Pair([usize; 2]),
    /// There is nothing more to run.
    Done(Conclusion),
}

/// How a bisection ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Conclusion {
    /// The bad stack is not worse than the good one.
    Alike,
    /// One step, between stack `after` and the next.
    Step {
        /// The last stack before the step.
        after: usize,
    },
    /// More than one step, the largest of them between stack `after` and the next.
    Several {
        /// The last stack before the larger step.
        after: usize,
    },
}

/// Of `stacks` stacks from good to bad, at least two.
pub fn next(stacks: usize, runs: &[StackRun], posterior: &Posterior) -> Next {
    let last = stacks.saturating_sub(1);
    let of = |stack: usize, is_earlier: bool| {
        runs.iter().filter(|run| run.stack == stack && run.is_earlier == is_earlier).count()
    };
    let count = |stack: usize| of(stack, false);
    let ends = count(0).min(count(last));
    let is_known = of(0, true).min(of(last, true)) >= EARLIER;
    let (fewest, beside) = if is_known { (0, FEWEST_BESIDE_KNOWN) } else { (FEWEST, FEWEST_BESIDE) };
    let is_clear = posterior.size.0 > CLEAR * posterior.noise;
    let has_earlier = of(0, true) + of(last, true) > 0;
    let wrong = match (is_known, is_clear) {
        (true, true) => WRONG_AT_MOST_KNOWN,
        (_, false) if has_earlier => WRONG_AT_MOST_UNCLEAR,
        _ => WRONG_AT_MOST,
    };
    if posterior.no_step > 1.0 - WRONG_AT_MOST && ends >= ENDS {
        return Next::Done(Conclusion::Alike);
    }
    if posterior.no_step > OPEN || ends < fewest {
        return Next::Pair([0, last]);
    }
    let best = posterior.best();
    let probability = posterior.steps.get(best).copied().unwrap_or_default();
    if probability > 1.0 - wrong && count(best) >= beside && count(best + 1) >= beside {
        if has_second_step(stacks, runs, posterior) {
            return Next::Done(Conclusion::Several { after: best });
        }
        // The larger rest first: it is what speaks against one step.
        let mut rests = [(0, best), (best + 1, last)].map(|pair| (pair, rest(runs, pair, posterior)));
        rests.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
        let allowed = (REST * posterior.size.0).max(2.0 * SMALLEST);
        for ((from, to), (size, error)) in rests.into_iter().filter(|((from, to), _)| from != to) {
            if size - 3.0 * error > SMALLEST {
                return Next::Done(Conclusion::Several { after: best });
            }
            if size + CERTAIN * error > allowed {
                return Next::Pair([from, to]);
            }
        }
        return Next::Done(Conclusion::Step { after: best });
    }
    if probability > LIKELY {
        return Next::Pair([best, best + 1]);
    }
    Next::Pair(informative(posterior, stacks))
}

/// By how much the second of two stacks is worse, with its standard error.
fn rest(runs: &[StackRun], (from, to): (usize, usize), posterior: &Posterior) -> (f64, f64) {
    let drift = posterior.variances.drift;
    let since = posterior.variances.since;
    let mean = |stack: usize, is_earlier: bool| {
        let of_stack = runs.iter().filter(|run| run.stack == stack && run.is_earlier == is_earlier);
        let values: Vec<f64> = of_stack.map(|run| run.value).collect();
        let n = values.len() as f64;
        (values.iter().sum::<f64>() / n.max(1.0), n)
    };
    let level = |stack: usize| {
        let ((today, n), (before, m)) = (mean(stack, false), mean(stack, true));
        let of_today = n / (1.0 + drift);
        let of_earlier = if m > 0.0 { 1.0 / ((1.0 + since.scatter) / m + since.shift) } else { 0.0 };
        let all = of_today + of_earlier;
        ((today * of_today + before * of_earlier) / all.max(f64::MIN_POSITIVE), 1.0 / all)
    };
    let ((good, of_good), (bad, of_bad)) = (level(from), level(to));
    let of_all = (good - bad, posterior.noise * (of_good + of_bad).sqrt());
    // Runs of the same pair share its drift.
    let in_pair = |good: &StackRun| {
        let bad = runs.iter().find(|run| run.stack == to && run.pair == good.pair && !run.is_earlier)?;
        Some(good.value - bad.value)
    };
    let of_today = runs.iter().filter(|run| run.stack == from && !run.is_earlier);
    let paired: Vec<f64> = of_today.filter_map(in_pair).collect();
    let n = paired.len() as f64;
    let of_pairs = (paired.iter().sum::<f64>() / n.max(1.0), posterior.noise * (2.0 / n).sqrt());
    if of_pairs.1 < of_all.1 { of_pairs } else { of_all }
}

/// The two stacks that part what is left open into three as even parts as can be: in the end the two neighbours of the
/// step.
fn informative(posterior: &Posterior, stacks: usize) -> [usize; 2] {
    let all: f64 = posterior.steps.iter().sum();
    // Probability that a stack lies behind the step.
    let behind: Vec<f64> = std::iter::once(0.0)
        .chain(posterior.steps.iter().scan(0.0, |sum, step| {
            *sum += step / all;
            Some(*sum)
        }))
        .collect();
    let entropy = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    let mut best = (f64::NEG_INFINITY, [0, stacks.saturating_sub(1)]);
    for (low, before) in behind.iter().enumerate() {
        for (high, after) in behind.iter().enumerate().skip(low + 1) {
            let open = entropy(*before) + entropy(after - before) + entropy(1.0 - after);
            // Of equal ones those that are nearest to each other.
            if open > best.0 + 1e-9 {
                best = (open, [low, high]);
            }
        }
    }
    best.1
}
