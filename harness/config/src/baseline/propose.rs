//! From the numbers of runs to proposed baselines. The caller chooses the runs; `review` accepts or rejects the
//! proposals.

use super::help::{self, Help};
use super::pack::Pack;
use super::{Baseline, BaselineKey, BaselineSpread, State, are_enough};
use crate::bounds::{self, KeySpread, Measured, Pool, Sorted};
use metric::unit::{Better, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// What one independent run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RunNumbers {
    /// The run's id; `ID#2` for the second repeat within it.
    pub id: String,
    /// What its verdicts observed, where they are compared with a baseline.
    pub numbers: Vec<Number>,
}

/// One number that a run measured, with the key that its plan looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// As recipes name it: `nccl.busbw`.
    pub metric: String,
    /// Of `value`.
    pub unit: Unit,
    /// The metric's own direction.
    pub better: Better,
    /// The proposed baseline's key.
    pub key: BaselineKey,
    /// The node, nodes or part that it is of.
    pub subject: String,
    /// Left out unless it is finite and at least 0.
    pub value: f64,
    /// Software versions that its workload reported: other workloads may report none.
    pub software: BTreeMap<String, String>,
}

/// The origin of every proposed baseline.
pub struct Origin {
    /// `runs of this fleet, inventory NAME`, for `Baseline::source`.
    pub source: String,
    /// Day of the newest run: `2026-11-21`.
    pub date: Option<String>,
    /// So many numbers are judged at once.
    pub judged: u32,
    /// The runs are of a simulated cluster.
    pub simulated: bool,
}

/// What `harness baseline propose` writes to the pending file, and what it leaves out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposed {
    /// One for each metric and key, in their order.
    pub entries: Vec<Baseline>,
    /// By subject, then in the order of keys and runs.
    pub left_out: Vec<LeftOut>,
    /// Parts of the software that only some of the numbers report: no fingerprint holds them.
    pub partly_reported: BTreeSet<String>,
    /// How well packs predicted what these runs measured, metric by metric.
    pub packs: Vec<PackUse>,
    /// Medians far off what a pack predicts: a fault in all of these runs, or a difference of the sites.
    pub off_predicted: Vec<OffPredicted>,
}

/// How a pack was used for one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct PackUse {
    /// The beginning of the key that signed it.
    pub signer: String,
    /// As in `Number`.
    pub metric: String,
    /// Keys that it has too.
    pub shared: usize,
    /// How far the medians lie off what it predicts, as a fraction; nothing where too few keys are shared, it predicts
    /// too badly, or it is of the same runs: then it was not used.
    pub error: Option<f64>,
}

/// A median that lies off what a pack predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct OffPredicted {
    /// As in `Number`.
    pub metric: String,
    /// As in `Number`.
    pub key: BaselineKey,
    /// As a fraction of what was predicted.
    pub off: f64,
}

/// A number that lies off its peers of the same run.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// As in `Number`: a node, nodes or a part.
    pub subject: String,
    /// As in `RunNumbers::id`.
    pub run: String,
    /// As in `Number`.
    pub metric: String,
    /// As in `Number`.
    pub key: BaselineKey,
    /// Of `value` and `middle`.
    pub unit: Unit,
    /// What was measured.
    pub value: f64,
    /// Median of the runs' samples, made without it.
    pub middle: f64,
}

/// The spread that is assumed at least, as a fraction, however close a few numbers lie.
pub fn floor(unit: Unit) -> f64 {
    match unit {
        Unit::GigabytesPerSecond => 0.02,
        // Times and shares hang on more than a link, and vary with it.
        _ => 0.05,
    }
}

/// Bounds are stated for this many numbers at least: a suite of one today is one of many tomorrow.
pub(crate) const FEWEST_JUDGED: u32 = 10;

type PerRun<'a> = BTreeMap<&'a str, Vec<(&'a str, f64)>>;

struct Group<'a> {
    unit: Unit,
    better: Better,
    /// By run.
    runs: PerRun<'a>,
    /// Each part with its versions, and how many numbers report it.
    software: BTreeMap<String, (BTreeSet<String>, usize)>,
    numbers: usize,
}

/// One baseline for each metric and key that the runs measured, with the help of packs that predict them.
pub fn propose(runs: &[RunNumbers], packs: &[Pack], origin: &Origin) -> Proposed {
    let mut groups: BTreeMap<(&str, &BaselineKey), Group<'_>> = BTreeMap::new();
    for run in runs {
        for number in run.numbers.iter().filter(|number| number.value.is_finite() && number.value >= 0.0) {
            let group = groups.entry((&number.metric, &number.key)).or_insert_with(|| Group {
                unit: number.unit,
                better: number.better,
                runs: BTreeMap::new(),
                software: BTreeMap::new(),
                numbers: 0,
            });
            for (part, version) in &number.software {
                let (versions, times) = group.software.entry(part.clone()).or_default();
                versions.insert(version.clone());
                *times += 1;
            }
            group.numbers += 1;
            group.runs.entry(&run.id).or_default().push((&number.subject, number.value));
        }
    }
    let measured: BTreeMap<_, Measured> = groups
        .iter()
        .map(|(key, group)| (*key, Measured::from_runs(&group.values(), floor(group.unit))))
        .collect();
    let mut spreads: BTreeMap<&str, Vec<KeySpread>> = BTreeMap::new();
    for ((metric, _), one) in &measured {
        spreads.entry(metric).or_default().extend(one.spread());
    }
    let mut proposed = Proposed::default();
    let units: BTreeMap<&str, Unit> =
        groups.iter().map(|((metric, _), group)| (*metric, group.unit)).collect();
    let mut helped: BTreeMap<(&str, &BaselineKey), Help> = BTreeMap::new();
    for (metric, unit) in units {
        let ours: BTreeMap<&BaselineKey, &Measured> = measured
            .iter()
            .filter(|((name, _), _)| *name == metric)
            .map(|((_, key), one)| (*key, one))
            .collect();
        let chosen = help::choose(packs, metric, &ours, floor(unit) / 4.0);
        proposed.packs.extend(chosen.used);
        helped.extend(chosen.helped.into_iter().map(|(key, help)| ((metric, key), help)));
        proposed.off_predicted.extend(chosen.off.into_iter().map(|(key, off)| OffPredicted {
            metric: metric.to_owned(),
            key: key.clone(),
            off,
        }));
    }
    for ((metric, key), group) in &groups {
        let Some(one) = measured.get(&(*metric, *key)) else { continue };
        let floor = floor(group.unit);
        let pool = spreads.get(metric).and_then(|all| Pool::fit(all, floor / 4.0));
        proposed.entries.push(entry(
            metric,
            key,
            group,
            one,
            pool.as_ref(),
            helped.get(&(*metric, *key)),
            origin,
        ));
        proposed.left_out.extend(group.left_out(metric, key, one));
        let in_part = group.software.iter().filter(|(_, (_, times))| *times < group.numbers);
        proposed.partly_reported.extend(in_part.map(|(part, _)| part.clone()));
    }
    proposed.left_out.sort_by(|a, b| {
        (&a.subject, &a.metric, &a.key, &a.run).cmp(&(&b.subject, &b.metric, &b.key, &b.run))
    });
    proposed
}

fn entry(
    metric: &str,
    key: &BaselineKey,
    group: &Group<'_>,
    measured: &Measured,
    pool: Option<&Pool>,
    help: Option<&Help>,
    origin: &Origin,
) -> Baseline {
    let n = measured.samples.len() as u32;
    let judged = origin.judged.max(FEWEST_JUDGED);
    let alone = bounds::spread(pool, measured.spread(), n);
    let (middle, worth, spread) = match help {
        Some(help) => (help.middle, help.pack.worth as u32, bounds::narrower(alone, help.spread, judged)),
        None => (measured.middle, n, alone),
    };
    let bounds = bounds::bounds(middle, worth, judged, floor(group.unit), spread);
    let is_known = spread.freedom > 0.0;
    let kept = Sorted::new(group.values().iter().zip(&measured.kept).flat_map(|(run, kept)| {
        run.iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect::<Vec<_>>()
    }));
    let quantile = |fraction: f64| kept.quantile(fraction).map_or(0.0, rounded);
    Baseline {
        metric: metric.to_owned(),
        key: key.clone(),
        unit: group.unit,
        better: group.better,
        state: match is_known && are_enough(measured.samples.len(), help.map(|help| &help.pack)) {
            true => State::Accepted,
            false => State::Provisional,
        },
        samples: measured.samples.iter().copied().map(rounded).collect(),
        lower: is_known.then(|| rounded(bounds.lower)),
        upper: is_known.then(|| rounded(bounds.upper)),
        floor: None,
        floor_source: None,
        spread: is_known.then(|| BaselineSpread {
            relative: rounded(spread.relative.max(floor(group.unit))),
            freedom: rounded(spread.freedom),
            judged,
        }),
        pack: help.map(|help| help.pack.clone()),
        quantiles: Some([0.05, 0.25, 0.75, 0.95].map(quantile)),
        fingerprint: group.fingerprint(),
        runs: group.runs.keys().map(|run| (*run).to_owned()).collect(),
        source: origin.source.clone(),
        accepted_by: None,
        rejected_by: None,
        reason: None,
        date: origin.date.clone(),
        simulated: origin.simulated,
        line: 0,
    }
}

impl Group<'_> {
    /// The versions that all of its numbers report.
    fn fingerprint(&self) -> BTreeMap<String, Vec<String>> {
        let by_all = self.software.iter().filter(|(_, (_, times))| *times == self.numbers);
        by_all.map(|(part, (those, _))| (part.clone(), those.iter().cloned().collect())).collect()
    }

    fn values(&self) -> Vec<Vec<f64>> {
        self.runs.values().map(|run| run.iter().map(|(_, value)| *value).collect()).collect()
    }

    fn left_out(&self, metric: &str, key: &BaselineKey, measured: &Measured) -> Vec<LeftOut> {
        let runs = self.runs.iter().zip(&measured.kept);
        runs.flat_map(|((run, numbers), kept)| {
            numbers.iter().zip(kept).filter(|(_, kept)| !**kept).map(|((subject, value), _)| LeftOut {
                subject: (*subject).to_owned(),
                run: (*run).to_owned(),
                metric: metric.to_owned(),
                key: key.clone(),
                unit: self.unit,
                value: *value,
                middle: measured.middle,
            })
        })
        .collect()
    }
}

/// Six digits are as precise as a measurement, and a diff of them is readable.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;
