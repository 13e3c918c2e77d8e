//! One number over many runs: for each thing that is measured apart, by operation, size, number of nodes and the like, a
//! point per run, and what became of it from run to run.

use super::change::{self, Shape};
use super::hardware::{self, OtherMachines};
use super::past::{Past, Run};
use crate::fingerprint::{Difference, differences};
use base::size;
use base::text;
use config::baseline::propose::floor;
use config::bounds::{self, DEVIATIONS_OF_MAD, KeySpread, Spread};
use metric::unit::{Better, Unit};
use metric::{Dim, DimValue, Dims, Metric, Metrics, Query};
use model::artefact::{PlannedAssertion, PlannedBaseline, PlannedCase, PlannedJob, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is measured. Numbers of two of them are not compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The instance type's name.
    pub instance: String,
    /// The suite's name.
    pub suite: String,
    /// The case's name.
    pub case: String,
    /// Of the job that the number is of; nothing where it is of no job that was planned.
    pub nodes: Option<u32>,
    /// Ranks of the same job.
    pub ranks: Option<u32>,
    /// All dimensions but those that distinguish parts of one measurement.
    pub dims: Dims,
}

/// Parts and repetitions of one measurement: their numbers are samples of the same thing.
const SAMPLES: [Dim; 9] =
    [Dim::Case, Dim::Job, Dim::Node, Dim::Nic, Dim::Peer, Dim::Gpu, Dim::Round, Dim::Rank, Dim::Step];

/// Whether a dimension is of parts or repetitions, which no key has.
pub fn is_of_samples(dim: Dim) -> bool {
    SAMPLES.contains(&dim)
}

/// The series to find.
#[derive(Debug, Clone, Default)]
pub struct SeriesRequest {
    /// The metric's name, matched exactly.
    pub metric: String,
    /// Dimensions that every number must have, from `--where`.
    pub dims: Dims,
    /// The suite's name; `None` for all suites.
    pub suite: Option<String>,
    /// The instance type's name; `None` for all.
    pub instance: Option<String>,
    /// Nodes of the job; `None` for any number.
    pub nodes: Option<u32>,
    /// The place of the first run that counts; those before it are not read.
    pub first: usize,
}

/// One key's numbers, run by run.
#[derive(Debug)]
pub struct Series {
    /// What its numbers were measured of.
    pub key: Key,
    /// The unit of all its values.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// In the order of the runs, with a point for each run that was to measure it.
    pub points: Vec<Point>,
    /// Of the points that count.
    pub shape: Shape,
    /// The newest run lies where the runs of its level before it would not have it: its bounds.
    pub newest_off: Option<bounds::Bounds>,
}

/// What one run measured.
#[derive(Debug, Clone)]
pub struct Point {
    /// Its place among the runs.
    pub run: usize,
    /// The middle of its samples; nothing where none was measured.
    pub value: Option<f64>,
    /// A standard deviation, as a fraction of the value; nothing where fewer than two were measured.
    pub spread: Option<f64>,
    /// Finite samples behind `value`.
    pub n: usize,
    /// The worst of the verdicts that are about it.
    pub verdict: Option<Status>,
    /// The state of the baselines that it was compared with: `accepted`, `none`.
    pub baseline: Option<&'static str>,
    /// Why it is not counted: another source contradicts it, or it is not finite.
    pub uncounted: Option<String>,
}

/// A run in which a series changed, and what else did.
#[derive(Debug)]
pub struct Changed {
    /// The last counted run before, by its place among the runs; of a drift, the first one.
    pub before: usize,
    /// The first counted run after it, likewise; of a drift, the last one.
    pub after: usize,
    /// What differs between the two runs.
    pub software: Vec<Difference>,
    /// Nodes that measured both numbers, and were other machines the second time.
    pub hardware: Vec<OtherMachines>,
}

/// The series that answer a question; and what could not be read, by run.
pub struct Found {
    /// Sorted by their keys.
    pub series: Vec<Series>,
    /// Index of the run, and the error for metrics of a case of it.
    pub unread: Vec<(usize, String)>,
    /// The runs that measured nothing of it.
    pub without: Vec<usize>,
}

/// Reads the metric from every run and judges how each series changed.
pub fn find(past: &Past, request: &SeriesRequest) -> Found {
    let mut found = find_each(past, std::slice::from_ref(request));
    found.pop().unwrap_or_else(|| Found { series: Vec::new(), unread: Vec::new(), without: Vec::new() })
}

/// The same of several questions, in their order: each file of a run is read once.
pub fn find_each(past: &Past, requests: &[SeriesRequest]) -> Vec<Found> {
    let mut all: Vec<Measured> = requests.iter().map(|_| Measured::default()).collect();
    for (at, run) in past.runs.iter().enumerate() {
        for case in &run.plan().cases {
            let about: Vec<usize> = (0..requests.len())
                .filter(|nth| at >= requests[*nth].first && requests[*nth].is_about(run, case))
                .collect();
            if about.is_empty() {
                continue;
            }
            let metrics = match run.stored.metrics(&case.name) {
                Ok(metrics) => metrics.unwrap_or_default(),
                Err(error) => {
                    let why = error.to_string();
                    about.iter().for_each(|nth| all[*nth].unread.push((at, why.clone())));
                    continue;
                }
            };
            for nth in about {
                all[nth].take(at, run, case, &metrics, &requests[nth]);
            }
        }
    }
    let answered = all.into_iter().zip(requests);
    answered.map(|(measured, request)| measured.judge(past, request)).collect()
}

/// What the runs measured of one question.
#[derive(Default)]
struct Measured {
    points: BTreeMap<Key, (Unit, Better, BTreeMap<usize, Samples>)>,
    unread: Vec<(usize, String)>,
    runs: BTreeSet<usize>,
}

impl Measured {
    fn take(&mut self, at: usize, run: &Run, case: &PlannedCase, metrics: &Metrics, request: &SeriesRequest) {
        // What is measured of a whole job names no node: it is of each of the job's.
        let node = request.dims.word(Dim::Node);
        let mut dims = Dims::new();
        for (dim, value) in request.dims.iter().filter(|(dim, _)| *dim != Dim::Node) {
            dims.set(dim, value.clone());
        }
        let rows = metrics.select(&Query { metric: request.metric.clone(), dims });
        if rows.is_empty() {
            return;
        }
        let contradiction = contradiction(run, case, &request.metric);
        let jobs: BTreeMap<&str, &PlannedJob> =
            case.jobs.iter().map(|job| (job.name.as_str(), job)).collect();
        for metric in rows {
            let job = metric.dims.word(Dim::Job).and_then(|name| jobs.get(name).copied());
            let is_on = |node: &str| match metric.dims.word(Dim::Node) {
                Some(own) => own == node,
                None => job.is_some_and(|job| job.nodes.iter().any(|one| one == node)),
            };
            if node.is_some_and(|node| !is_on(node)) {
                continue;
            }
            let key = Key::with_job(run, case, metric, job);
            if request.nodes.is_some() && request.nodes != key.nodes {
                continue;
            }
            self.runs.insert(at);
            let (.., runs) =
                self.points.entry(key).or_insert_with(|| (metric.unit, metric.better, BTreeMap::new()));
            let samples = runs.entry(at).or_default();
            samples.take(metric.value);
            samples.contradiction.clone_from(&contradiction);
        }
    }

    fn judge(self, past: &Past, request: &SeriesRequest) -> Found {
        let judged = self.points.len().max(1) as u32;
        let series: Vec<Series> = self
            .points
            .into_iter()
            .map(|(key, (unit, better, runs))| series(past, request, key, (unit, better), runs, judged))
            .collect();
        // A run that was to measure it stands among the points.
        let is_point = |at: usize| series.iter().any(|one| one.points.iter().any(|point| point.run == at));
        let without =
            (request.first..past.runs.len()).filter(|at| !self.runs.contains(at) && !is_point(*at)).collect();
        Found { series, unread: self.unread, without }
    }
}

/// Finite values by what they were measured of.
pub(crate) type ByPart = BTreeMap<Dims, Vec<f64>>;

/// What one run measured of one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// Values that count, in the order of the rows.
    pub finite: Vec<f64>,
    /// How many values are NaN or infinite.
    pub others: usize,
    /// Why another source contradicts them.
    pub contradiction: Option<String>,
    /// What the finite ones were measured of, where that was asked.
    pub parts: ByPart,
}

impl Samples {
    /// Adds one value.
    pub(crate) fn take(&mut self, value: f64) {
        if value.is_finite() { self.finite.push(value) } else { self.others += 1 }
    }

    /// Why they are not counted, if so.
    pub(crate) fn why_not(&self) -> Option<String> {
        match (self.finite.len(), self.others) {
            (0, 0) => Some("not measured".to_owned()),
            (0, n) => Some(format!("{}, none finite", text::count(n, "value"))),
            (_, 0) => self.contradiction.clone(),
            (finite, n) => Some(format!("{n} of {} values are not finite", finite + n)),
        }
    }

    /// A standard deviation, as a fraction of the middle; nothing where fewer than two were measured.
    pub(crate) fn spread(&self) -> Option<f64> {
        let middle = bounds::median(&self.finite)?;
        let deviation = bounds::mad(&self.finite).filter(|_| self.finite.len() > 1)?;
        Some(DEVIATIONS_OF_MAD * deviation / middle.abs()).filter(|relative| relative.is_finite())
    }
}

fn series(
    past: &Past,
    request: &SeriesRequest,
    key: Key,
    (unit, better): (Unit, Better),
    runs: BTreeMap<usize, Samples>,
    judged: u32,
) -> Series {
    let mut points: Vec<Point> = Vec::new();
    for (at, run) in past.runs.iter().enumerate().skip(request.first) {
        // A run whose case is this one, and that has no number of it, is a gap.
        let Some(case) = run.case_of(&key) else { continue };
        let samples = runs.get(&at);
        if samples.is_none() && !key.is_planned(case) {
            continue;
        }
        points.push(point(run, case, request, &key, at, samples));
    }
    let counted: Vec<f64> = points.iter().filter_map(Point::counted).collect();
    let least = floor(unit);
    // However many series there are, it is one question.
    let shape = change::shape(&counted, least, change::FALSE_ALARMS / f64::from(judged));
    let newest_off = newest_off(&counted, &shape, least, judged);
    Series { key, unit, better, points, shape, newest_off }
}

fn point(
    run: &Run,
    case: &PlannedCase,
    request: &SeriesRequest,
    key: &Key,
    at: usize,
    samples: Option<&Samples>,
) -> Point {
    let none = Samples::default();
    let samples = samples.unwrap_or(&none);
    let about = |one: &&PlannedAssertion| key.is_of(case, one) && one.metric == request.metric;
    let of_case = run.cases.iter().find(|judged| judged.case == case.name && judged.suite == case.suite);
    let verdicts = of_case.map(|judged| judged.verdicts.as_slice()).unwrap_or_default();
    let judged = case.assertions.iter().zip(verdicts).filter(|(one, _)| about(one));
    let verdict = judged.map(|(_, verdict)| verdict.status).max_by_key(|status| gravity(*status));
    let baselines = case.assertions.iter().filter(about).filter_map(|one| one.bound.baseline.as_ref());
    let baseline = baselines.map(state).max_by_key(|state| {
        ["accepted", "provisional", "predicted", "expired", "none"].iter().position(|one| one == state)
    });
    Point {
        run: at,
        value: bounds::median(&samples.finite),
        spread: samples.spread(),
        n: samples.finite.len(),
        verdict,
        baseline,
        uncounted: samples.why_not(),
    }
}

/// Why a metric of the case proves nothing, though it was measured.
pub(crate) fn contradiction(run: &Run, case: &PlannedCase, metric: &str) -> Option<String> {
    let analysis = match run.stored.analysis(&case.name) {
        Ok(analysis) => analysis?,
        Err(_) => {
            return Some("`analysis.json` cannot be read, contradictions are unknown".to_owned());
        }
    };
    let of_jobs = || analysis.jobs.values();
    let mut contradictions = of_jobs().flat_map(|job| &job.doubts);
    let found = contradictions.find(|one| one.metrics.iter().any(|one| one == metric));
    let odd = of_jobs().find_map(|job| job.not_comparable.as_ref());
    found.map(|one| one.why.clone()).or_else(|| odd.map(|odd| odd.why.clone()))
}

fn state(baseline: &PlannedBaseline) -> &'static str {
    match baseline {
        PlannedBaseline::None { .. } => "none",
        PlannedBaseline::Provisional(numbers) if numbers.predicted.is_some() => "predicted",
        PlannedBaseline::Provisional(_) => "provisional",
        PlannedBaseline::Accepted(_) => "accepted",
        PlannedBaseline::Expired(_) => "expired",
    }
}

/// The worse, the higher.
pub(crate) fn gravity(status: Status) -> u8 {
    match status {
        Status::Fail | Status::UnexpectedPass => 5,
        Status::Error => 4,
        Status::Inconclusive => 3,
        Status::ExpectedFailure => 2,
        Status::Pass => 1,
        Status::Skipped | Status::Unjudged => 0,
    }
}

/// Fewer runs than this do not predict the next one.
const FEWEST_BEFORE: usize = 5;

/// Whether the newest run lies out of what the others of its level predict. One run is no level, and may be one.
fn newest_off(counted: &[f64], shape: &Shape, least: f64, judged: u32) -> Option<bounds::Bounds> {
    let start = match shape {
        Shape::Drift(_) => return None,
        Shape::Steps(steps) => steps.last().map_or(0, |step| step.at),
        Shape::Level => 0,
    };
    let (newest, before) = counted.get(start..)?.split_last()?;
    if before.len() < FEWEST_BEFORE {
        return None;
    }
    let kept = bounds::kept(before, least);
    let alike: Vec<f64> =
        before.iter().zip(kept).filter(|(_, kept)| *kept).map(|(value, _)| *value).collect();
    let own = KeySpread::from_values(&alike)?;
    let spread = Spread { relative: own.relative, freedom: own.freedom };
    let bounds = bounds::bounds(bounds::median(&alike)?, alike.len() as u32, judged, least, spread);
    (!(bounds.lower..=bounds.upper).contains(newest)).then_some(bounds)
}

impl SeriesRequest {
    fn is_about(&self, run: &Run, case: &PlannedCase) -> bool {
        let suite = self.suite.as_ref().is_none_or(|suite| *suite == case.suite);
        let instance = self.instance.as_ref().is_none_or(|instance| *instance == run.plan().instance.name);
        suite && instance && case.skip.is_none()
    }
}

impl Key {
    /// The key of a number of this case: its dimensions without those of samples.
    pub(crate) fn new(run: &Run, case: &PlannedCase, metric: &Metric) -> Key {
        let job = metric.dims.word(Dim::Job).and_then(|name| case.jobs.iter().find(|job| job.name == name));
        Key::with_job(run, case, metric, job)
    }

    /// The same where the job of the number is known.
    fn with_job(run: &Run, case: &PlannedCase, metric: &Metric, job: Option<&PlannedJob>) -> Key {
        let mut dims = Dims::new();
        for (dim, value) in metric.dims.iter().filter(|(dim, _)| !SAMPLES.contains(dim)) {
            dims.set(dim, value.clone());
        }
        Key {
            instance: run.plan().instance.name.clone(),
            suite: case.suite.clone(),
            case: case.name.clone(),
            nodes: job.map(|job| job.nodes.len() as u32),
            ranks: job.map(|job| job.ranks),
            dims,
        }
    }

    /// Whether an assertion of the case is about it.
    fn is_of(&self, case: &PlannedCase, assertion: &PlannedAssertion) -> bool {
        let agrees = assertion
            .dims
            .iter()
            .all(|(dim, value)| SAMPLES.contains(&dim) || self.dims.get(dim).is_none_or(|own| own == value));
        agrees && self.is_on(case, &assertion.jobs)
    }

    /// The nodes that a run was to measure it on.
    fn nodes_in<'a>(&self, run: &'a Run) -> BTreeSet<&'a String> {
        let jobs = run.case_of(self).map(|case| case.jobs.as_slice()).unwrap_or_default();
        let is_own = |job: &&PlannedJob| self.nodes.is_none_or(|nodes| job.nodes.len() as u32 == nodes);
        jobs.iter().filter(is_own).flat_map(|job| &job.nodes).collect()
    }

    /// Whether the case was to measure it, on as many nodes.
    fn is_planned(&self, case: &PlannedCase) -> bool {
        let names: Vec<String> = case.jobs.iter().map(|job| job.name.clone()).collect();
        self.is_on(case, &names)
    }

    fn is_on(&self, case: &PlannedCase, jobs: &[String]) -> bool {
        let mut of_case = case.jobs.iter().filter(|job| jobs.contains(&job.name));
        self.nodes.is_none() || of_case.any(|job| Some(job.nodes.len() as u32) == self.nodes)
    }
}

impl Run {
    fn case_of(&self, key: &Key) -> Option<&PlannedCase> {
        let cases = &self.plan().cases;
        let found = cases.iter().find(|case| case.suite == key.suite && case.name == key.case)?;
        (self.plan().instance.name == key.instance && found.skip.is_none()).then_some(found)
    }
}

impl Point {
    /// The number, where it counts.
    pub fn counted(&self) -> Option<f64> {
        self.value.filter(|_| self.uncounted.is_none())
    }
}

impl Series {
    /// The runs on both sides of each step, with the software and the machines that are not the same there.
    pub fn changed(&self, past: &Past) -> Vec<Changed> {
        let counted: Vec<usize> =
            self.points.iter().filter(|point| point.counted().is_some()).map(|point| point.run).collect();
        let sides: Vec<(usize, usize)> = match &self.shape {
            Shape::Level => Vec::new(),
            Shape::Steps(steps) => steps.iter().map(|step| (step.at - 1, step.at)).collect(),
            Shape::Drift(_) => vec![(0, counted.len().saturating_sub(1))],
        };
        let run = |at: usize| counted.get(at).copied();
        sides
            .into_iter()
            .filter_map(|(before, after)| {
                let (before, after) = (run(before)?, run(after)?);
                let of = |at: usize| past.runs.get(at).map(Run::fingerprint).unwrap_or_default();
                let software = differences(&of(before), &of(after));
                let nodes =
                    |at: usize| past.runs.get(at).map(|run| self.key.nodes_in(run)).unwrap_or_default();
                let both = nodes(before).intersection(&nodes(after)).copied().collect();
                let hardware = hardware::other_machines(past, &both, (before, after));
                Some(Changed { before, after, software, hardware })
            })
            .collect()
    }
}

impl Key {
    /// The suite and the case.
    pub(crate) fn suite_and_case(&self) -> String {
        format!("{}::{}", self.suite, self.case)
    }

    /// What it is of within its case: `all_reduce, 1GiB, 2 nodes, 16 ranks`.
    pub(crate) fn within_case(&self) -> String {
        let dims = self.dims.iter().map(|(dim, value)| match (dim, value) {
            (Dim::SizeBytes, DimValue::Number(bytes)) => size::show(*bytes),
            (Dim::Place, DimValue::Word(place)) if &**place == "in" => "in place".to_owned(),
            (Dim::Place, value) => format!("{value} of place"),
            (Dim::Op | Dim::Class | Dim::Direction, value) => value.to_string(),
            (dim, value) => format!("{} {value}", dim.name()),
        });
        let nodes = self.nodes.map(|nodes| text::count(nodes, "node"));
        let ranks = self.ranks.map(|ranks| text::count(ranks, "rank"));
        dims.chain(nodes).chain(ranks).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.instance, self.suite_and_case(), self.within_case())
    }
}
