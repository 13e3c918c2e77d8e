//! The numbers of two runs, by what they measure: the medians of both, and whether they differ by more than the noise
//! of both. The samples of one run share its moment, so that a difference that two healthy runs may have is no change.

use super::parts::{self, OfKey, PartChanged};
use crate::history::past::Run;
use crate::history::series::{ByPart, Key, Samples, contradiction};
use base::text::count;
use config::baseline::propose::floor;
use config::bounds::{self, KeySpread, Pool, Spread};
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, Metric, Role, RunNoise};
use model::artefact::PlannedCase;
use recipes::recipe;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of both runs, compared key by key.
#[derive(Debug, Default, Serialize)]
pub struct Numbers {
    /// How many were compared.
    pub compared: usize,
    /// All of them, the worst first.
    pub all: Vec<Changed>,
    /// Metric and key of numbers that only the first run has.
    pub only_a: Vec<String>,
    /// Metric and key of numbers that only the second run has.
    pub only_b: Vec<String>,
    /// Measured in both, and not compared: why.
    pub uncounted: Vec<String>,
    /// How many numbers of one part alone were compared.
    pub parts_compared: usize,
    /// Parts that are worse while their peers are not, the worst first.
    pub parts: Vec<PartChanged>,
}

/// One number in both runs.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// The metric's name, such as `nccl.busbw`.
    pub metric: String,
    /// The key as text: instance, suite, case, dimensions, nodes and ranks.
    pub of: String,
    /// The suite and case of the key.
    #[serde(skip)]
    pub case: String,
    /// The rest of the key: dimensions, nodes and ranks.
    #[serde(skip)]
    pub of_case: String,
    /// As the first run has it.
    pub unit: Unit,
    /// Which direction is an improvement, as the first run has it.
    pub better: Better,
    /// Median of the first run's samples.
    pub a: f64,
    /// Median of the second run's samples.
    pub b: f64,
    /// Finite samples of the first run.
    pub n_a: usize,
    /// Finite samples of the second run.
    pub n_b: usize,
    /// As a fraction of what it was; nothing where that was zero.
    pub change: Option<f64>,
    /// How far they may differ by chance; nothing where the noise is unknown.
    pub within: Option<f64>,
    /// Whether the difference exceeds `within`, and in which direction.
    pub beyond: Beyond,
}

/// How a number changed beyond its noise. The order is that of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// Beyond the noise, in the bad direction.
    Worse,
    /// Worse by more than is declared, of numbers whose spread is unknown.
    Unknown,
    /// Beyond it, and neither side is the better one.
    Moved,
    /// Beyond the noise, in the good direction.
    Better,
    /// Equal, within the noise, shown alike, or apart by the last printed digit only.
    No,
    /// The metric describes one run only.
    NotComparable,
}

impl Beyond {
    /// Whether the difference is one.
    pub fn is_change(self) -> bool {
        !matches!(self, Beyond::No | Beyond::NotComparable)
    }

    /// As `harness compare` prints it.
    pub fn word(self) -> &'static str {
        match self {
            Beyond::Worse => "worse",
            Beyond::Unknown => "worse?",
            Beyond::Moved => "moved",
            Beyond::Better => "better",
            Beyond::No => "same",
            Beyond::NotComparable => "own",
        }
    }
}

type Measured = BTreeMap<(String, Key), (Unit, Better, Samples)>;

pub(super) fn compare(a: &Run, b: &Run) -> Result<Numbers, String> {
    let (of_a, of_b) = (measured(a)?, measured(b)?);
    let name = |(metric, key): &(String, Key)| format!("{metric} {key}");
    let mut numbers = Numbers {
        only_a: of_a.keys().filter(|key| !of_b.contains_key(*key)).map(name).collect(),
        only_b: of_b.keys().filter(|key| !of_a.contains_key(*key)).map(name).collect(),
        ..Numbers::default()
    };
    let both = || of_a.iter().filter_map(|(key, one)| Some((key, one, of_b.get(key)?)));
    let pairs = both().count() as u32;
    let pools = pools(&of_a, &of_b);
    let resolutions = resolutions(&of_a, &of_b);
    let noise = |metric: &str| recipe::built_in(metric).map_or(RunNoise::Relative, |metric| metric.run_noise);
    let cases = [a, b].into_iter().flat_map(|run| &run.plan().cases);
    let judged: BTreeSet<&str> =
        cases.flat_map(|case| &case.assertions).map(|one| one.metric.as_str()).collect();
    let mut by_part = Vec::new();
    for (key, (unit, better, was), (_, _, is)) in both() {
        if let Some(why) = was.why_not().or_else(|| is.why_not()) {
            numbers.uncounted.push(format!("{}: {why}", name(key)));
            continue;
        }
        let metric = key.0.as_str();
        let known = Known {
            pool: pools.get(metric),
            resolution: resolutions.get(metric).copied().unwrap_or_default(),
            pairs,
            noise: noise(metric),
        };
        let judged = judged.contains(metric);
        // Other numbers of single parts have no meaning by themselves, and many of them vary wildly.
        if judged || recipe::has_role(metric, Role::Rate) {
            by_part.push(OfKey { key, unit: *unit, better: *better, was, is, judged });
        }
        let one = changed(key, (*unit, *better), was, is, &known);
        // Without some of its parts the middle moves though nothing has changed.
        if one.beyond.is_change()
            && let Some(why) = other_parts(&was.parts, &is.parts, a.plan().nodes == b.plan().nodes)
        {
            numbers.uncounted.push(format!("{}: {why}", name(key)));
            continue;
        }
        numbers.compared += 1;
        numbers.all.push(one);
    }
    let of_parts = |metric: &str| Known {
        pool: None,
        resolution: resolutions.get(metric).copied().unwrap_or_default(),
        pairs,
        noise: noise(metric),
    };
    (numbers.parts_compared, numbers.parts) = parts::compare(&by_part, of_parts);
    let size = |one: &Changed| one.change.map_or(f64::INFINITY, f64::abs);
    numbers.all.sort_by(|x, y| {
        (x.beyond.cmp(&y.beyond))
            .then(size(y).total_cmp(&size(x)))
            .then((&x.metric, &x.of).cmp(&(&y.metric, &y.of)))
    });
    Ok(numbers)
}

fn measured(run: &Run) -> Result<Measured, String> {
    let mut all = Measured::new();
    for case in run.plan().cases.iter().filter(|case| case.skip.is_none()) {
        let metrics = run.stored.metrics(&case.name).map_err(|error| error.to_string())?.unwrap_or_default();
        let mut contradictions: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for row in metrics.rows() {
            let why = contradictions.entry(&row.name).or_insert_with(|| contradiction(run, case, &row.name));
            let key = (row.name.to_string(), Key::new(run, case, row));
            let (.., samples) = all.entry(key).or_insert_with(|| (row.unit, row.better, Samples::default()));
            samples.take(row.value);
            if row.value.is_finite() {
                samples.parts.entry(part(case, row)).or_default().push(row.value);
            }
            samples.contradiction.clone_from(why);
        }
    }
    Ok(all)
}

/// What a number was measured of: in every repeat the same nodes and parts of them.
fn part(case: &PlannedCase, row: &Metric) -> Dims {
    let mut part = Dims::new();
    for dim in [Dim::Node, Dim::Nic, Dim::Gpu, Dim::Peer, Dim::Rank] {
        if let Some(value) = row.dims.get(dim) {
            part.set(dim, value.clone());
        }
    }
    let job = row.dims.word(Dim::Job).and_then(|name| case.jobs.iter().find(|job| job.name == name));
    if let Some(job) = job {
        part.set(Dim::Job, job.nodes.join(" ").as_str());
    }
    part
}

/// Why the numbers of two runs are not of the same parts; on other nodes the parts have other names, and only how many
/// there are can be compared.
fn other_parts(a: &ByPart, b: &ByPart, same_nodes: bool) -> Option<String> {
    let lacks = |one: &ByPart, other: &ByPart| one.keys().filter(|part| !other.contains_key(*part)).count();
    let differing = lacks(a, b) + lacks(b, a);
    let is_alike = if same_nodes { differing == 0 } else { a.len() == b.len() };
    (!is_alike).then(|| {
        let apart = if same_nodes { format!(", {differing} in one run only") } else { String::new() };
        format!("measured of {} and of {}{apart}", count(a.len(), "part"), count(b.len(), "part"))
    })
}

/// The pooled noise of all keys of one metric: for those that have one number alone.
fn pools<'a>(a: &'a Measured, b: &'a Measured) -> BTreeMap<&'a str, Pool> {
    let mut spreads: BTreeMap<&str, (f64, Vec<KeySpread>)> = BTreeMap::new();
    for ((metric, _), (unit, _, samples)) in a.iter().chain(b) {
        let (_, all) = spreads.entry(metric).or_insert_with(|| (floor(*unit), Vec::new()));
        all.extend(own(&samples.finite, floor(*unit)).1);
    }
    let pool = |(metric, (least, all)): (&'a str, (f64, Vec<KeySpread>))| {
        Some((metric, Pool::fit(&all, least / 4.0)?))
    };
    spreads.into_iter().filter_map(pool).collect()
}

/// The step of the last digit that a program prints of a metric: a change by one such step is none. It is at most the
/// smallest step between two numbers, and at most the place of their last digit: numbers far apart are not one step apart
/// because there are no others between them. Fewer than three different numbers do not show how many digits are printed.
fn resolutions<'a>(a: &'a Measured, b: &'a Measured) -> BTreeMap<&'a str, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for ((metric, _), (.., samples)) in a.iter().chain(b) {
        values.entry(metric).or_default().extend(&samples.finite);
    }
    values.into_iter().map(|(metric, values)| (metric, resolution(values))).collect()
}

pub(super) fn resolution(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let steps = values.iter().zip(values.iter().skip(1)).map(|(low, high)| (high - low, high.abs()));
    let real: Vec<f64> = steps.filter(|(step, size)| *step > ROUNDING * size).map(|(step, _)| step).collect();
    if real.len() < 2 {
        return 0.0;
    }
    let digits = values.iter().filter(|value| **value != 0.0).map(|value| last_digit(*value));
    real.into_iter().chain(digits).min_by(f64::total_cmp).unwrap_or_default()
}

/// The place of the last digit of a number as a program may have printed it: 0.01 of 12.34. It is at most 1: that 20 and 10
/// end in a zero does not show that tens were printed.
pub(super) fn last_digit(value: f64) -> f64 {
    let text = format!("{value:.8e}");
    let Some((digits, exponent)) = text.split_once('e') else { return 0.0 };
    let decimals = digits.trim_end_matches('0').split_once('.').map_or(0, |(_, decimals)| decimals.len());
    exponent.parse::<i32>().map_or(0.0, |exponent| 10f64.powi((exponent - decimals as i32).min(0)))
}

/// Two numbers that are the same may be printed one step apart; where both are middles of few, a little more.
pub(super) const LAST_DIGITS: f64 = 1.5;

/// What a number loses where it is written in binary, as a fraction.
const ROUNDING: f64 = 1e-9;

/// How many samples are left without those that lie off, and how much they vary.
fn own(samples: &[f64], least: f64) -> (u32, Option<KeySpread>) {
    let kept = bounds::kept(samples, least);
    let alike: Vec<f64> =
        samples.iter().zip(kept).filter(|(_, kept)| *kept).map(|(value, _)| *value).collect();
    (alike.len() as u32, KeySpread::from_values(&alike))
}

/// What is known of a metric beside the samples of a pair, and how many pairs are compared at once.
pub(super) struct Known<'a> {
    pub pool: Option<&'a Pool>,
    pub resolution: f64,
    pub pairs: u32,
    pub noise: RunNoise,
}

pub(super) fn changed(
    key: &(String, Key),
    (unit, better): (Unit, Better),
    was: &Samples,
    is: &Samples,
    known: &Known<'_>,
) -> Changed {
    let middle = |samples: &Samples| bounds::median(&samples.finite).unwrap_or(f64::NAN);
    let (a, b) = (middle(was), middle(is));
    let least = floor(unit);
    let spread = |samples: &Samples| -> (u32, Spread) {
        let (n, own) = own(&samples.finite, least);
        (n, bounds::spread(known.pool, own, n))
    };
    let by_chance = bounds::two_runs(least);
    let within = bounds::between(spread(was), spread(is), known.pairs).max(by_chance);
    let within = Some(within).filter(|within| within.is_finite());
    let change = (a != 0.0).then(|| (b - a) / a.abs());
    // Factors are compared, so that half as much is as far as twice as much. From nothing to something, or to nothing, is
    // beyond any.
    let far = if a * b > 0.0 { (b / a).ln().abs() } else { f64::INFINITY };
    // What is counted is exact: no digit of it is rounded.
    let is_last_digit = unit.varies() && (b - a).abs() <= LAST_DIGITS * known.resolution;
    // A difference that is not shown is none to act on.
    let is_shown_alike = unit.varies() && unit.show(a) == unit.show(b);
    let is_absolute_noise = match known.noise {
        RunNoise::Absolute(deviation) => (b - a).abs() <= bounds::two_runs(deviation),
        RunNoise::Relative | RunNoise::NotComparable => false,
    };
    let is_worse = match better {
        Better::Higher => b < a,
        Better::Lower => b > a,
        Better::Neither => false,
    };
    let beyond = match within {
        _ if known.noise == RunNoise::NotComparable => Beyond::NotComparable,
        _ if a == b || is_last_digit || is_shown_alike || is_absolute_noise => Beyond::No,
        Some(within) if far <= within => Beyond::No,
        None if far <= by_chance => Beyond::No,
        None if far.is_finite() && is_worse => Beyond::Unknown,
        _ if is_worse => Beyond::Worse,
        _ if better == Better::Neither => Beyond::Moved,
        _ => Beyond::Better,
    };
    Changed {
        metric: key.0.clone(),
        of: key.1.to_string(),
        case: key.1.suite_and_case(),
        of_case: key.1.within_case(),
        unit,
        better,
        a,
        b,
        n_a: was.finite.len(),
        n_b: is.finite.len(),
        change,
        within,
        beyond,
    }
}

impl Numbers {
    fn count(&self, beyond: Beyond) -> usize {
        self.all.iter().filter(|one| one.beyond == beyond).count()
    }

    /// How many are worse by more than their noise.
    pub(crate) fn worse(&self) -> usize {
        self.count(Beyond::Worse)
    }

    /// How many are worse while their noise is unknown.
    pub(crate) fn unknown(&self) -> usize {
        self.count(Beyond::Unknown)
    }

    /// How many numbers of one part fell behind those of its peers; where `is_known` is false, by an unknown chance.
    pub(crate) fn worse_parts(&self, is_known: bool) -> usize {
        self.parts.iter().filter(|part| part.is_known == is_known).count()
    }

    /// How many changed without a better direction.
    pub(crate) fn moved(&self) -> usize {
        self.count(Beyond::Moved)
    }
}
