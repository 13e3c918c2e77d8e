//! Whether a run was slow: its values compared with those of its peers, by how much better one explanation fits than the
//! other. `nodes`, `parts` and `links` decide what is run because of it.
//!
//! Healthy values lie round a level that is unknown beforehand, on a logarithmic scale; a fault only lowers them. For
//! each thing that is tried, the mean of its values is compared with the level of all others of that shape that look
//! healthy. The weight is the logarithm of how much likelier its values are if it is slow than if it is not, with the
//! tails of Student's t, since the spread is estimated from the same runs: above 0 it indicates a fault.

use super::trial::{Aim, Answer, Found, Shape};
use std::collections::BTreeMap;

/// What a thing must cost to be looked for: as little as single runs show at this spread, within these two.
const LEAST_COST: f64 = 0.10;
const MOST_COST: f64 = 0.20;
/// So many spreads below the level a single run shows a fault.
const CLEAR_SPREADS: f64 = 4.5;

/// The spread that is assumed before anything is known, and what that assumption counts for in runs.
const ASSUMED_SPREAD: f64 = 0.03;
const ASSUMED_WEIGHT: f64 = 4.0;

/// Up to this weight a thing is good.
pub(crate) const GOOD: f64 = -5.0;
/// From this weight on a thing is slow and is followed up.
pub(crate) const SLOW: f64 = 3.0;
/// A node or a link that is innocent reaches this once in a million.
pub(crate) const PROVEN: f64 = 13.8;
/// A part of a node that is proven slow already.
pub(crate) const PROVEN_PART: f64 = 11.5;
/// So often a thing is tried.
pub(crate) const MOST_TRIES: usize = 10;

/// A run that broke counts as one at a hundredth of the rate.
const BROKE: f64 = -4.6;

/// What is judged: an aim, and within it one GPU or NIC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Thing {
    /// What its runs were to show.
    pub aim: Aim,
    /// Index of the GPU or NIC; `None` for whole runs, and for runs that broke.
    pub part: Option<usize>,
}

/// How much a thing's values speak for a fault.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weight {
    /// Values it was judged by.
    pub tries: usize,
    /// Those of others that it was compared with.
    pub peers: usize,
    /// How far it lies from its level, as a logarithm.
    pub off: f64,
    /// Of `off`.
    pub error: f64,
    /// Natural logarithm of how much likelier a fault is than none; 0 without peers.
    pub weight: f64,
}

/// What a weight amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No value.
    Untried,
    /// Weight of `GOOD` or less.
    Good,
    /// Between the two limits, or without peers.
    Open,
    /// Weight of `SLOW` or more.
    Slow,
}

impl Weight {
    /// The fraction of the healthy rate that is left, at most 1.
    pub(crate) fn left(&self) -> f64 {
        self.off.exp().min(1.0)
    }
}

/// All answers so far, compared with each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weighed {
    of: BTreeMap<Thing, BTreeMap<Shape, Weight>>,
    /// Answers for each aim, those without a result included.
    pub answered: BTreeMap<Aim, usize>,
    /// Things of each shape that look healthy, controls included.
    pub healthy: BTreeMap<Shape, usize>,
    /// Of runs on whole nodes, as the standard deviation of a logarithm.
    pub spread: f64,
}

#[derive(Debug, Default, Clone)]
struct Sum {
    n: f64,
    sum: f64,
}

impl Sum {
    fn mean(&self) -> f64 {
        self.sum / self.n
    }
}

type Values = BTreeMap<Thing, Vec<f64>>;

impl Weighed {
    /// Compares all answers with those of the same shape.
    pub(crate) fn from_answers(answers: &[Answer]) -> Weighed {
        let mut weighed = Weighed { spread: ASSUMED_SPREAD, ..Weighed::default() };
        let mut by_shape: BTreeMap<Shape, Values> = BTreeMap::new();
        for answer in answers {
            *weighed.answered.entry(answer.trial.aim.clone()).or_default() += 1;
            let values = by_shape.entry(answer.trial.shape).or_default();
            match &answer.found {
                Found::Unknown => {}
                Found::Broke => {
                    let thing = Thing { aim: answer.trial.aim.clone(), part: None };
                    values.entry(thing).or_default().push(f64::NEG_INFINITY);
                }
                Found::Values(found) => {
                    let single = !matches!(answer.trial.shape, Shape::Gpus | Shape::Nics);
                    for (at, value) in found.iter().enumerate() {
                        let Some(value) = value.filter(|value| *value > 0.0 && value.is_finite()) else {
                            continue;
                        };
                        let part = (!single).then_some(at);
                        let thing = Thing { aim: answer.trial.aim.clone(), part };
                        values.entry(thing).or_default().push(value.ln());
                    }
                }
            }
        }
        // The same kind of measurement has the same spread, on however many nodes.
        let kinds: [fn(&Shape) -> bool; 3] = [
            |shape| matches!(shape, Shape::Together { .. } | Shape::Inside),
            |shape| matches!(shape, Shape::Gpus),
            |shape| matches!(shape, Shape::Nics),
        ];
        for kind in kinds {
            let mut shapes: Vec<(Shape, Values)> = by_shape
                .iter()
                .filter(|(shape, values)| kind(shape) && !values.is_empty())
                .map(|(shape, values)| (*shape, values.clone()))
                .collect();
            weighed.kind(&mut shapes);
        }
        weighed
    }

    fn kind(&mut self, shapes: &mut [(Shape, Values)]) {
        let is_anchor = |thing: &Thing| thing.aim == Aim::Control;
        let screened = |values: &Values| values.keys().any(|thing| matches!(thing.aim, Aim::Set(_)));
        let means = |values: &Values| {
            let mut means: Vec<f64> =
                values.values().map(|all| mean(all)).filter(|mean| mean.is_finite()).collect();
            means.sort_by(f64::total_cmp);
            means
        };
        let (mut squares, mut free) = (ASSUMED_WEIGHT * ASSUMED_SPREAD * ASSUMED_SPREAD, ASSUMED_WEIGHT);
        // Most of what is screened is good, and what is higher than its middle is so by chance.
        for (_, values) in shapes.iter().filter(|(_, values)| screened(values)) {
            let means = means(values);
            let middle = means.get(means.len() / 2).copied().unwrap_or(f64::NAN);
            for above in means.iter().filter(|mean| **mean > middle) {
                squares += (above - middle).powi(2);
                free += 1.0;
            }
        }
        for (_, values) in shapes.iter() {
            let anchors: Vec<f64> = values
                .iter()
                .filter(|(thing, _)| is_anchor(thing))
                .flat_map(|(_, all)| all)
                .copied()
                .collect();
            if anchors.len() > 2 && anchors.iter().all(|value| value.is_finite()) {
                let center = mean(&anchors);
                squares += anchors.iter().map(|value| (value - center).powi(2)).sum::<f64>();
                free += anchors.len() as f64 - 1.0;
            }
        }
        let mut spread = (squares / free).sqrt();
        let mut centers: Vec<f64> = Vec::new();
        for (_, values) in shapes.iter() {
            let means = means(values);
            let anchors: Vec<f64> = values
                .iter()
                .filter(|(thing, _)| is_anchor(thing))
                .flat_map(|(_, all)| all)
                .copied()
                .collect();
            centers.push(match means.last() {
                None => f64::NAN,
                Some(_) if !anchors.is_empty() => mean(&anchors),
                Some(_) if screened(values) => means.get(means.len() / 2).copied().unwrap_or(f64::NAN),
                // Here most may be slow, and the best one is as good as its number lets it look.
                Some(best) => best - spread * expected_best(means.len()),
            });
        }
        // What is taken for healthy widens the spread, and a wider spread must not take in more.
        let widest = cost(spread) / 2.0;
        let mut levels: Vec<(Sum, Vec<bool>)> = Vec::new();
        for _ in 0..6 {
            levels.clear();
            for ((_, values), center) in shapes.iter().zip(&centers) {
                // The first look has no list of the healthy yet: those near the level are.
                let near = (cost(spread) / 2.0).min(widest);
                let healthy: Vec<bool> = values
                    .iter()
                    .map(|(thing, all)| is_anchor(thing) || mean(all) - center > -near)
                    .collect();
                let mut sum = Sum::default();
                for (all, _) in values.values().zip(&healthy).filter(|(_, is_healthy)| **is_healthy) {
                    sum.n += all.len() as f64;
                    sum.sum += all.iter().sum::<f64>();
                }
                levels.push((sum, healthy));
            }
            squares = ASSUMED_WEIGHT * ASSUMED_SPREAD * ASSUMED_SPREAD;
            free = ASSUMED_WEIGHT;
            for ((_, values), (sum, healthy)) in shapes.iter().zip(&levels) {
                for (all, _) in values.values().zip(healthy).filter(|(_, is_healthy)| **is_healthy) {
                    squares += all.iter().map(|value| (value - sum.mean()).powi(2)).sum::<f64>();
                }
                free += (sum.n - 1.0).max(0.0);
                // Repeats of what is slow show the spread as well.
                for (all, _) in values.values().zip(healthy).filter(|(_, is_healthy)| !**is_healthy) {
                    let own = mean(all);
                    if own.is_finite() {
                        squares += all.iter().map(|value| (value - own).powi(2)).sum::<f64>();
                        free += all.len() as f64 - 1.0;
                    }
                }
            }
            spread = (squares / free).sqrt();
            for ((sum, _), center) in levels.iter().zip(&mut centers) {
                if sum.n > 0.0 {
                    *center = sum.mean();
                }
            }
        }
        if shapes.iter().any(|(shape, _)| matches!(shape, Shape::Together { .. } | Shape::Inside)) {
            self.spread = spread;
        }
        for ((shape, values), (sum, is_in_level)) in shapes.iter().zip(&levels) {
            let mut healthy = 0;
            for ((thing, all), is_in_level) in values.iter().zip(is_in_level) {
                let weight = against(all, sum, *is_in_level, spread, free);
                healthy += match thing.aim == Aim::Control {
                    true => weight.tries,
                    false => usize::from(weight.weight < 0.0),
                };
                self.of.entry(thing.clone()).or_default().insert(*shape, weight);
            }
            self.healthy.insert(*shape, healthy);
        }
    }

    /// By the shape in which it was tried most.
    pub(crate) fn weight(&self, aim: &Aim, part: Option<usize>) -> Option<&Weight> {
        let thing = Thing { aim: aim.clone(), part };
        self.of.get(&thing)?.values().max_by_key(|weight| weight.tries)
    }

    /// `Untried` where no run of it gave a value.
    pub(crate) fn state(&self, aim: &Aim, part: Option<usize>) -> State {
        match self.weight(aim, part) {
            None => State::Untried,
            Some(weight) if weight.peers > 0 && weight.weight <= GOOD => State::Good,
            Some(weight) if weight.peers > 0 && weight.weight >= SLOW => State::Slow,
            Some(_) if self.is_only_good_set(aim) => State::Good,
            Some(_) => State::Open,
        }
    }

    /// A set of nodes that all others of its shape are slow beside: of two, the better one is the reference. What it may lack
    /// itself is not seen.
    fn is_only_good_set(&self, aim: &Aim) -> bool {
        let own = self.of.get(&Thing { aim: aim.clone(), part: None });
        let Some((shape, _)) = own.and_then(BTreeMap::first_key_value).filter(|_| matches!(aim, Aim::Set(_)))
        else {
            return false;
        };
        let others =
            self.of.iter().filter(|(thing, _)| matches!(thing.aim, Aim::Set(_)) && thing.aim != *aim);
        let mut sets = others.filter_map(|(_, by_shape)| by_shape.get(shape)).peekable();
        sets.peek().is_some() && sets.all(|weight| weight.peers > 0 && weight.weight >= SLOW)
    }

    /// What is tried no more and is still open is followed up as if it were slow; nothing is convicted by that.
    pub(crate) fn settled(&self, aim: &Aim) -> State {
        match self.state(aim, None) {
            State::Open | State::Untried if self.tried_out(aim) => State::Slow,
            state => state,
        }
    }

    /// The part of its rate that a thing must have lost to be looked for, at the spread of runs on whole nodes.
    pub(crate) fn looked_for(&self) -> f64 {
        1.0 - (-cost(self.spread)).exp()
    }

    /// Whether it was tried `MOST_TRIES` times, runs without a result included.
    pub(crate) fn tried_out(&self, aim: &Aim) -> bool {
        self.answered.get(aim).copied().unwrap_or_default() >= MOST_TRIES
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The logarithm of what is left by the smallest fault that is looked for.
fn cost(spread: f64) -> f64 {
    let (least, most) = (-(1.0 - LEAST_COST).ln(), -(1.0 - MOST_COST).ln());
    (CLEAR_SPREADS * spread).clamp(least, most)
}

fn against(all: &[f64], level: &Sum, is_in_level: bool, spread: f64, free: f64) -> Weight {
    let n = all.len() as f64;
    // Nothing is compared with itself.
    let peers = match is_in_level {
        true => Sum { n: level.n - n, sum: level.sum - all.iter().sum::<f64>() },
        false => level.clone(),
    };
    if peers.n < 0.5 {
        return Weight { tries: all.len(), peers: 0, off: 0.0, error: f64::INFINITY, weight: 0.0 };
    }
    let floor = peers.mean() + BROKE;
    let off = all.iter().map(|value| value.max(floor)).sum::<f64>() / n - peers.mean();
    let error = spread * (1.0 / n + 1.0 / peers.n).sqrt();
    let least = -cost(spread);
    let slow = off.min(least);
    let fit = |from: f64| (1.0 + ((off - from) / error).powi(2) / free).ln();
    // Above the level is as good as on it.
    let healthy = if off > 0.0 { 0.0 } else { fit(0.0) };
    let weight = (free + 1.0) / 2.0 * (healthy - fit(slow));
    Weight { tries: all.len(), peers: peers.n as usize, off, error, weight }
}

/// How far the best of `n` draws lies above their mean, in spreads.
fn expected_best(n: usize) -> f64 {
    match n {
        0 | 1 => 0.0,
        2 => 0.56,
        3 => 0.85,
        4 => 1.03,
        5 => 1.16,
        6 => 1.27,
        n => (2.0 * (n as f64).ln()).sqrt() * 0.75,
    }
}
