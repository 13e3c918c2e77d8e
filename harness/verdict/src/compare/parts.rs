//! One part of many that fell behind its peers: the middle over nodes, NICs and GPUs does not move where fewer than half of
//! them do. Each part that both runs name is compared with itself, and its change with that of the other parts.

use super::numbers::{Known, LAST_DIGITS};
use crate::history::series::{Key, Samples};
use config::baseline::propose::floor;
use config::bounds::{self, KeySpread, Pool, Spread};
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, RunNoise};
use serde::Serialize;
use std::collections::BTreeMap;

/// A part that became worse while its peers did not.
#[derive(Debug, Clone, Serialize)]
pub struct PartChanged {
    /// The node and its part, or the nodes of a job: `p5-002 rdmap113s0`.
    pub part: String,
    /// The metric's name, such as `nccl.busbw`.
    pub metric: String,
    /// The suite and case.
    pub case: String,
    /// The rest of the key: dimensions, nodes and ranks.
    pub of_case: String,
    /// As the first run has it.
    pub unit: Unit,
    /// Median of the part's numbers in the first run.
    pub a: f64,
    /// Median of the part's numbers in the second run.
    pub b: f64,
    /// As a fraction of what it was.
    pub change: f64,
    /// The middle of what the other parts changed by, as a fraction.
    pub peers_change: f64,
    /// How many other parts there are.
    pub peers: usize,
    /// Whether an assertion judges the metric.
    pub judged: bool,
    /// Whether it is more than chance; where not, how much such a part varies is not known well enough.
    pub is_known: bool,
}

/// The numbers of one key, part by part.
pub(super) struct OfKey<'a> {
    pub key: &'a (String, Key),
    pub unit: Unit,
    pub better: Better,
    pub was: &'a Samples,
    pub is: &'a Samples,
    pub judged: bool,
}

/// One part in both runs.
struct Part<'a> {
    part: &'a Dims,
    a: f64,
    b: f64,
    /// Logarithm of what it changed by.
    ratio: f64,
}

/// Where fewer degrees of freedom are known, a fall is not judged but reported.
const FEWEST_FREEDOM: f64 = 4.0;
/// Such a fall is this far at least, as a fraction, and so many deviations.
const CLEAR: f64 = 0.2;
const CLEAR_DEVIATIONS: f64 = 6.0;

/// How many parts were compared, and those that are worse: the judged numbers first, and of those the worst.
pub(super) fn compare(
    keys: &[OfKey<'_>],
    known: impl Fn(&str) -> Known<'static>,
) -> (usize, Vec<PartChanged>) {
    let parts: Vec<Vec<Part<'_>>> = keys.iter().map(OfKey::parts).collect();
    let all: usize = parts.iter().map(Vec::len).sum();
    let mut spreads: BTreeMap<&str, (f64, Vec<KeySpread>)> = BTreeMap::new();
    let own: Vec<Option<KeySpread>> =
        keys.iter().zip(&parts).map(|(key, parts)| own(key.unit, parts)).collect();
    for (key, own) in keys.iter().zip(&own) {
        spreads.entry(&key.key.0).or_insert_with(|| (floor(key.unit), Vec::new())).1.extend(own);
    }
    let pools: BTreeMap<&str, Pool> = spreads
        .iter()
        .filter_map(|(metric, (least, own))| Some((*metric, Pool::fit(own, least / 4.0)?)))
        .collect();
    // Half as much is as far as twice as much.
    let factor = |one: &PartChanged| (one.b / one.a).ln().abs();
    let mut found = Vec::new();
    for ((key, parts), own) in keys.iter().zip(&parts).zip(&own) {
        let metric = key.key.0.as_str();
        let spread = bounds::spread(pools.get(metric), *own, parts.len() as u32);
        found.extend(key.worse(parts, spread, all as u32, &known(metric)));
    }
    found.sort_by(|x, y| {
        (y.is_known, y.judged)
            .cmp(&(x.is_known, x.judged))
            .then(factor(y).total_cmp(&factor(x)))
            .then((&x.part, &x.metric, &x.case, &x.of_case).cmp(&(&y.part, &y.metric, &y.case, &y.of_case)))
    });
    (all, found)
}

/// How much the changes of parts vary about their middle. Two show nothing of it: either may be the odd one.
fn own(unit: Unit, parts: &[Part<'_>]) -> Option<KeySpread> {
    if parts.len() < 3 {
        return None;
    }
    let ratios: Vec<f64> = parts.iter().map(|part| part.ratio).filter(|ratio| ratio.is_finite()).collect();
    let middle = bounds::median(&ratios)?;
    let about: Vec<f64> = ratios.iter().map(|ratio| (ratio - middle).exp()).collect();
    let kept = bounds::kept(&about, floor(unit));
    let alike: Vec<f64> = about.iter().zip(kept).filter(|(_, kept)| *kept).map(|(value, _)| *value).collect();
    KeySpread::from_values(&alike)
}

/// The middle of sorted numbers without the one at a place.
fn middle_without(sorted: &[f64], at: usize) -> Option<f64> {
    let left = sorted.len().checked_sub(1).filter(|left| *left > 0)?;
    let get = |place: usize| sorted.get(if place < at { place } else { place + 1 }).copied();
    let (low, high) = (get((left - 1) / 2)?, get(left / 2)?);
    Some(if low == high { low } else { (low + high) / 2.0 })
}

impl OfKey<'_> {
    fn parts(&self) -> Vec<Part<'_>> {
        let both =
            self.was.parts.iter().filter_map(|(part, was)| Some((part, was, self.is.parts.get(part)?)));
        let parts: Vec<Part<'_>> = both
            .filter_map(|(part, was, is)| {
                let (a, b) = (bounds::median(was)?, bounds::median(is)?);
                // From nothing, and past zero, there is no factor.
                (a > 0.0 && b >= 0.0).then(|| Part { part, a, b, ratio: (b / a).ln() })
            })
            .collect();
        if parts.len() > 1 { parts } else { Vec::new() }
    }

    fn worse(
        &self,
        parts: &[Part<'_>],
        spread: Spread,
        compared: u32,
        known: &Known<'_>,
    ) -> Vec<PartChanged> {
        if known.noise == RunNoise::NotComparable || self.better == Better::Neither {
            return Vec::new();
        }
        let mut sorted: Vec<(f64, usize)> =
            parts.iter().enumerate().map(|(at, part)| (part.ratio, at)).collect();
        sorted.sort_by(|x, y| x.0.total_cmp(&y.0));
        let ratios: Vec<f64> = sorted.iter().map(|(ratio, _)| *ratio).collect();
        let by_chance = bounds::two_runs(floor(self.unit));
        // A change is a difference of two numbers, each of which has half of its variance.
        let half = Spread { relative: spread.relative / 2f64.sqrt(), freedom: spread.freedom / 2.0 };
        let within = bounds::between((1, half), (1, half), compared).max(by_chance);
        let is_counted = !self.unit.varies();
        let mut found = Vec::new();
        for (place, (ratio, at)) in sorted.iter().enumerate() {
            let (Some(part), Some(peers)) = (parts.get(*at), middle_without(&ratios, place)) else {
                continue;
            };
            let sign = if self.better == Better::Higher { -1.0 } else { 1.0 };
            let (own, off) = (sign * ratio, sign * (ratio - peers));
            let is_beyond = |limit: f64| own > limit && off > limit;
            let is_same = known.is_same(self.unit, part.a, part.b);
            if is_same || !peers.is_finite() || !is_beyond(by_chance) {
                continue;
            }
            if is_counted {
                // What is counted is exact: one that fell while none of the others changed.
                let others_stay = ratios.iter().filter(|one| **one != 0.0).count() == 1;
                if !(others_stay && self.better == Better::Higher) {
                    continue;
                }
            }
            let is_known = is_counted || is_beyond(within);
            let is_clear = || is_beyond(CLEAR.max(CLEAR_DEVIATIONS * spread.relative));
            if is_known || (spread.freedom < FEWEST_FREEDOM && is_clear()) {
                found.push(PartChanged {
                    part: name(part.part),
                    metric: self.key.0.clone(),
                    case: self.key.1.suite_and_case(),
                    of_case: self.key.1.within_case(),
                    unit: self.unit,
                    a: part.a,
                    b: part.b,
                    change: (part.b - part.a) / part.a,
                    peers_change: peers.exp() - 1.0,
                    peers: parts.len() - 1,
                    judged: self.judged,
                    is_known,
                });
            }
        }
        found
    }
}

impl Known<'_> {
    /// Whether two numbers of a metric are no different ones: shown alike, apart by the last printed digit, or by less than
    /// is declared.
    fn is_same(&self, unit: Unit, a: f64, b: f64) -> bool {
        let is_last_digit = unit.varies() && (b - a).abs() <= LAST_DIGITS * self.resolution;
        let is_shown_alike = unit.varies() && unit.show(a) == unit.show(b);
        let is_absolute_noise = match self.noise {
            RunNoise::Absolute(deviation) => (b - a).abs() <= bounds::two_runs(deviation),
            RunNoise::Relative | RunNoise::NotComparable => false,
        };
        a == b || is_last_digit || is_shown_alike || is_absolute_noise
    }
}

/// `p5-002 rdmap113s0 to p5-003`, or the nodes of the job where the number is of them all.
fn name(part: &Dims) -> String {
    let of = |dim| part.get(dim).map(ToString::to_string);
    let numbered = |word: &str, dim| of(dim).map(|number| format!("{word}{number}"));
    let node = of(Dim::Node).or_else(|| {
        let nodes = part.word(Dim::Job)?;
        Some(base::nodeset::fold(&nodes.split(' ').map(str::to_owned).collect::<Vec<_>>()))
    });
    let peer = of(Dim::Peer).map(|peer| format!("to {peer}"));
    let parts = [node, of(Dim::Nic), numbered("gpu", Dim::Gpu), numbered("rank ", Dim::Rank), peer];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
