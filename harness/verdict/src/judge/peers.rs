//! A part compared with its peers: the same number of all other parts of the same kind in the case. Few peers can agree
//! or disagree; only four parts or more show which one is low.

use super::gate::Gate;
use super::measured::{Number, without_job};
use super::peer_group::PeerGroup;
use super::{CaseData, JudgedBound, Measured, contradiction};
use config::bounds;
use metric::unit::Better;
use metric::{Dim, Dims, Metric, Query};
use model::artefact::{JudgedBy, PlannedAssertion, PlannedCase, Status, Verdict};
use recipes::recipe;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// With fewer parts, one that differs may as well be the good one.
pub(crate) const FEWEST_TO_NAME: usize = 4;
/// Twice the tolerance, and so much at least: no healthy part is so much better than its peers by chance.
const FAR: f64 = 0.2;
/// Of so many numbers one that is far better shows that the others may be slow; of more it is the odd one itself.
const MOST_FOR_ONE: usize = 16;
/// Sizes up to so many times smaller or larger are bound by the same hardware.
const NEAR: u64 = 8;

/// How many peers a number was compared with, where they are too few to blame or clear a part: their bound is wider, and
/// all of them may be low.
pub(crate) fn few_peers(verdict: &Verdict) -> Option<u32> {
    match verdict.judged_by {
        Some(JudgedBy::Peers { of }) if (of as usize) < FEWEST_TO_NAME => Some(of.saturating_sub(1)),
        _ => None,
    }
}

/// The worst of all numbers of the assertion; nothing where none has a peer.
pub(super) fn judge(
    data: &CaseData,
    assertion: &PlannedAssertion,
    measured: &Measured,
    cache: &PeerCache<'_>,
) -> Option<JudgedBound> {
    let tolerance = assertion.bound.within_peers?;
    let peers = Peers { data, assertion, tolerance, cache };
    let mut worst: Option<JudgedBound> = None;
    let mut odd = Vec::new();
    for (name, numbers) in &measured.parts {
        for number in numbers {
            let Some(judged) = peers.judge(number) else { continue };
            if judged.status == Status::Fail && !name.is_empty() {
                odd.push(name.clone());
            }
            if worst.as_ref().is_none_or(|worst| super::gravity(worst.status) < super::gravity(judged.status))
            {
                worst = Some(judged);
            }
        }
    }
    let mut worst = worst?;
    odd.dedup();
    worst.odd = odd;
    Some(worst)
}

struct Peers<'a> {
    data: &'a CaseData<'a>,
    assertion: &'a PlannedAssertion,
    tolerance: f64,
    cache: &'a PeerCache<'a>,
}

/// The groups of a case's numbers that were looked at so far: each assertion of a node asks for the same ones.
#[derive(Default)]
pub(super) struct PeerCache<'a> {
    groups: RefCell<BTreeMap<GroupKey, Rc<PeerGroup>>>,
    /// Jobs without the profiler: with it and without it is no difference between parts.
    bare: BTreeSet<&'a str>,
    /// Jobs that did not run as declared: their numbers are no peers.
    left_out: BTreeSet<&'a str>,
}

impl<'a> PeerCache<'a> {
    /// Of jobs with an open gate.
    pub(super) fn new(case: &'a PlannedCase, gates: &BTreeMap<&'a str, Gate>) -> PeerCache<'a> {
        let bare = case.jobs.iter().filter(|job| job.is_bare()).map(|job| job.name.as_str());
        let shut = gates.iter().filter(|(_, gate)| !matches!(gate, Gate::Open)).map(|(job, _)| *job);
        PeerCache { bare: bare.collect(), left_out: shut.collect(), ..PeerCache::default() }
    }
}

/// Whose peers they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    metric: String,
    /// What all of them have alike.
    alike: Dims,
    is_bare: bool,
    of_runs: bool,
}

/// Numbers of a group that are far beyond the median, on the better side.
struct FarBetter {
    n: usize,
    of: usize,
    /// The one of them that is nearest to the median.
    nearest: f64,
}

/// What the other parts show of one number.
struct Others {
    n: usize,
    median: f64,
    /// How far a number may lie from the median, as a fraction.
    tolerance: f64,
}

impl Peers<'_> {
    fn judge(&self, number: &Number) -> Option<JudgedBound> {
        let of_runs = !number.runs.is_empty();
        let others = self.others(number.dims, of_runs)?;
        let (lower, upper) = self.limits(&others);
        let mut comparison = format!(
            "expected within {:.0} % of {}, median {}",
            others.tolerance * 100.0,
            peers(others.n),
            self.assertion.unit.show(others.median)
        );
        let mut status = Status::Pass;
        if self.is_out(number.value, &others) {
            let near = self.near(number, &|value, _, others| self.is_out(value, others));
            if others.n + 1 < FEWEST_TO_NAME {
                status = Status::Inconclusive;
                comparison.push_str(&format!("; with {} it is open which one is off", numbers(others.n + 1)));
            } else {
                status = Status::Fail;
            }
            // A slow part is slow at every large size: one row alone is chance.
            let out = near.iter().filter(|is_out| **is_out).count();
            if !near.is_empty() && out * 2 < near.len() {
                status = Status::Pass;
                comparison.push_str(&format!(
                    "; only this row is out: {} of {} rows of the job near that size are within it",
                    near.len() - out,
                    near.len()
                ));
            }
        } else if let Some(better) = self.far_better(number.dims, of_runs, &others) {
            let behind = self.near(number, &|value, dims, others| {
                self.far_better(dims, false, others).is_some_and(|better| self.is_behind(value, &better))
            });
            let behind = behind.iter().filter(|is_behind| **is_behind).count() * 2 >= behind.len();
            if self.is_behind(number.value, &better) && behind {
                status = Status::Inconclusive;
                comparison = format!(
                    "{} of {} reach {} or better, median {}: it is open which of them are as usual",
                    better.n,
                    numbers(better.of),
                    self.assertion.unit.show(better.nearest),
                    self.assertion.unit.show(others.median)
                );
            } else if !self.is_behind(number.value, &better) {
                comparison = format!(
                    "{:.0} % better than the median of {}, {}",
                    (number.value / others.median - 1.0).abs() * 100.0,
                    peers(others.n),
                    self.assertion.unit.show(others.median)
                );
            }
        }
        Some(JudgedBound {
            status,
            observed: number.value,
            runs: number.runs.clone(),
            lower,
            upper,
            odd: Vec::new(),
            comparison,
            next: (status == Status::Inconclusive).then(|| {
                let next = match others.n + 1 < FEWEST_TO_NAME {
                    true => "run it on four nodes or more, so that the faulty one can be named",
                    false => {
                        "run it with nodes that are known to be good, or state a bound such as `at_least`"
                    }
                };
                next.to_owned()
            }),
            by: JudgedBy::Peers { of: others.n as u32 + 1 },
        })
    }

    fn limits(&self, others: &Others) -> (Option<f64>, Option<f64>) {
        let resolution = self.resolution();
        let lower = Some(others.median * (1.0 - others.tolerance) - resolution);
        let upper = Some(others.median * (1.0 + others.tolerance) + resolution);
        match self.assertion.better {
            Better::Higher => (lower, None),
            Better::Lower => (None, upper),
            Better::Neither => (lower, upper),
        }
    }

    fn is_out(&self, value: f64, others: &Others) -> bool {
        let (lower, upper) = self.limits(others);
        lower.is_some_and(|lower| value < lower) || upper.is_some_and(|upper| value > upper)
    }

    /// Where so many are far better that most of the group may be slow.
    fn far_better(&self, dims: &Dims, of_runs: bool, others: &Others) -> Option<FarBetter> {
        if others.n + 1 < FEWEST_TO_NAME || others.median <= 0.0 {
            return None;
        }
        let far = 1.0 + (self.tolerance * 2.0).max(FAR);
        let group = self.group_of(dims, of_runs);
        let (n, nearest) = match self.assertion.better {
            Better::Higher => group.above(others.median * far),
            Better::Lower => group.below(others.median / far),
            Better::Neither => return None,
        }?;
        let is_more = (nearest - others.median).abs() > self.resolution();
        (is_more && n * MOST_FOR_ONE >= group.len()).then(|| FarBetter { n, of: group.len(), nearest })
    }

    /// Whether a number is out of bounds by what the far better ones show.
    fn is_behind(&self, value: f64, better: &FarBetter) -> bool {
        match self.assertion.better {
            Better::Higher => value < better.nearest * (1.0 - self.tolerance) - self.resolution(),
            Better::Lower => value > better.nearest * (1.0 + self.tolerance) + self.resolution(),
            Better::Neither => false,
        }
    }

    fn resolution(&self) -> f64 {
        recipe::built_in(&self.assertion.metric).map_or(0.0, |metric| metric.resolution)
    }

    /// The same number of all other parts; `of_runs` where each part has one of each of several runs.
    fn others(&self, dims: &Dims, of_runs: bool) -> Option<Others> {
        let group = self.group_of(dims, of_runs);
        let others = if of_runs { group.others(&without_job(dims))? } else { group.others(dims)? };
        let (n, median) = (others.n, others.median);
        // One or two others are as likely to be off as the part itself.
        let wider = if n + 1 < FEWEST_TO_NAME { bounds::against_median_of(n as u32) } else { 1.0 };
        Some(Others { n, median, tolerance: self.tolerance * wider })
    }

    fn group_of(&self, dims: &Dims, of_runs: bool) -> Rc<PeerGroup> {
        let mut alike = Dims::new();
        for (dim, fixed) in dims.iter() {
            // What distinguishes parts is left open; what distinguishes questions is kept.
            if !matches!(dim, Dim::Node | Dim::Nic | Dim::Gpu | Dim::Job | Dim::Peer | Dim::Round) {
                alike.set(dim, fixed.clone());
            }
        }
        let is_bare = self.is_bare(dims);
        self.group(GroupKey { metric: self.assertion.metric.clone(), alike, is_bare, of_runs })
    }

    fn is_bare(&self, dims: &Dims) -> bool {
        dims.word(Dim::Job).is_some_and(|job| self.cache.bare.contains(job))
    }

    /// Whether the number could be judged itself: its job ran as declared, and nothing contradicts it.
    fn is_comparable(&self, row: &Metric) -> bool {
        let Some(job) = row.dims.word(Dim::Job) else { return true };
        let analysis = self.data.analysis.jobs.get(job);
        let mut doubts = analysis.into_iter().flat_map(|analysis| &analysis.doubts);
        !self.cache.left_out.contains(job) && !doubts.any(|one| contradiction::speaks_of(one, row))
    }

    fn group(&self, key: GroupKey) -> Rc<PeerGroup> {
        if let Some(group) = self.cache.groups.borrow().get(&key) {
            return Rc::clone(group);
        }
        let query = Query { metric: key.metric.clone(), dims: key.alike.clone() };
        let rows = self.data.metrics.select(&query).into_iter();
        let peers = rows.filter(|row| {
            self.is_bare(&row.dims) == key.is_bare && row.value.is_finite() && self.is_comparable(row)
        });
        // Another run of the same part is no peer.
        let whose = |row: &Metric| if key.of_runs { without_job(&row.dims) } else { row.dims.clone() };
        let group = Rc::new(PeerGroup::new(peers.map(|row| (whose(row), row.value))));
        self.cache.groups.borrow_mut().insert(key, Rc::clone(&group));
        group
    }

    /// Of each other row of the job near that size: whether it is odd, too. Only in the same place: one GPU alone has
    /// nothing to move in place, and is as fast there as its peers. None for the median of several runs.
    fn near(&self, number: &Number, is_odd: &dyn Fn(f64, &Dims, &Others) -> bool) -> Vec<bool> {
        let dims = number.dims;
        let Some(size) = dims.number(Dim::SizeBytes).filter(|_| number.runs.is_empty()) else {
            return Vec::new();
        };
        let mut of_job = Dims::new();
        for (dim, fixed) in dims.iter().filter(|(dim, _)| *dim != Dim::SizeBytes) {
            of_job.set(dim, fixed.clone());
        }
        let is_near = |row: &&Metric| {
            let other = row.dims.number(Dim::SizeBytes);
            row.dims != *dims && other.is_some_and(|other| (size / NEAR..=size * NEAR).contains(&other))
        };
        let query = Query { metric: self.assertion.metric.clone(), dims: of_job };
        let rows = self.data.metrics.select(&query).into_iter().filter(is_near);
        rows.filter_map(|row| Some(is_odd(row.value, &row.dims, &self.others(&row.dims, false)?))).collect()
    }
}

fn peers(n: usize) -> String {
    if n == 1 { "1 peer".to_owned() } else { format!("{n} peers") }
}

fn numbers(n: usize) -> String {
    if n == 1 { "1 number".to_owned() } else { format!("{n} numbers") }
}
