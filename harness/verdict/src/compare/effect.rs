//! What a culprit costs: how much the judged numbers of whole jobs changed on jobs with its node, and on the others.

use crate::history::past::Run;
use config::baseline::propose::floor;
use config::bounds;
use metric::unit::{Better, Unit};
use metric::{Dim, Dims, RunNoise};
use model::artefact::Culprit;
use recipes::recipe;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The parts that the two runs name.
#[derive(Debug, Default, Serialize)]
pub struct Culprits {
    /// Named by the second run only.
    pub new: Vec<Named>,
    /// Named by both.
    pub same: Vec<Named>,
    /// Named by the first run only.
    pub gone: Vec<Named>,
}

/// A part that a run names, and what became of the jobs with its node.
#[derive(Debug, Serialize)]
pub struct Named {
    /// As the run names it; of both, as the second does.
    pub culprit: Culprit,
    /// One for each judged metric of whole jobs, the largest first. Empty where no such metric was measured in both runs.
    pub effects: Vec<Effect>,
}

/// How a metric of whole jobs changed from run to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Its name, such as `nccl.busbw`.
    pub metric: String,
    /// Median as a fraction of what it was, over the jobs with the node that changed; over all of them where none did.
    pub change: f64,
    /// How many of them changed by more than two healthy runs may differ.
    pub changed: usize,
    /// How many jobs with the node were measured in both runs.
    pub jobs: usize,
    /// Those that changed are all that span nodes, and no others.
    pub all_that_span_nodes: bool,
    /// Median over the jobs without it; nothing where there are none.
    pub others: Option<f64>,
    /// How many those are.
    pub other_jobs: usize,
}

/// A metric and its unit.
type MetricKey = (String, Unit);
/// A case with its suite, and a job of it.
type JobKey = (String, String, String);

/// A job in both runs.
#[derive(Debug, Clone)]
struct JobChange {
    nodes: BTreeSet<String>,
    /// As a fraction of what it was, at the largest size.
    change: f64,
}

pub(super) fn culprits(a: &Run, b: &Run) -> Result<Culprits, String> {
    if a.culprits.is_empty() && b.culprits.is_empty() {
        return Ok(Culprits::default());
    }
    let changes = changes(a, b)?;
    let named = |culprit: &Culprit| Named { culprit: culprit.clone(), effects: effects(&changes, culprit) };
    let is_in = |culprit: &Culprit, run: &Run| run.culprits.iter().any(|other| is_same(culprit, other));
    let mut all = Culprits {
        new: b.culprits.iter().filter(|one| !is_in(one, a)).map(named).collect(),
        same: b.culprits.iter().filter(|one| is_in(one, a)).map(named).collect(),
        gone: a.culprits.iter().filter(|one| !is_in(one, b)).map(named).collect(),
    };
    let size = |named: &Named| named.effects.first().map_or(0.0, |effect| factor(effect.change));
    for list in [&mut all.new, &mut all.same, &mut all.gone] {
        list.sort_by(|x, y| size(y).total_cmp(&size(x)));
    }
    Ok(all)
}

/// How far from unchanged, so that half as much is as far as twice as much.
fn factor(change: f64) -> f64 {
    (1.0 + change).max(f64::MIN_POSITIVE).ln().abs()
}

fn is_same(a: &Culprit, b: &Culprit) -> bool {
    match (a, b) {
        (Culprit::Culprit { node, part, .. }, Culprit::Culprit { node: other, part: of_other, .. }) => {
            (node, part) == (other, of_other)
        }
        (Culprit::Suspects { nodes, .. }, Culprit::Suspects { nodes: others, .. }) => nodes == others,
        (Culprit::Fleet { .. }, Culprit::Fleet { .. }) => true,
        _ => false,
    }
}

/// The jobs of both runs, by metric. Only metrics that an assertion judges, else the same cost is reported as bandwidth,
/// as time and as a fit.
fn changes(a: &Run, b: &Run) -> Result<BTreeMap<MetricKey, Vec<JobChange>>, String> {
    let (of_a, of_b) = (whole_jobs(a)?, whole_jobs(b)?);
    let mut changes: BTreeMap<MetricKey, Vec<JobChange>> = BTreeMap::new();
    for ((metric, job), was) in &of_a {
        let Some(is) = of_b.get(&(metric.clone(), job.clone())) else { continue };
        let largest = was.keys().filter(|dims| is.contains_key(*dims));
        let largest = largest.filter_map(|dims| dims.number(Dim::SizeBytes)).max();
        let at_largest = was.iter().filter(|(dims, _)| dims.number(Dim::SizeBytes) == largest);
        let both = at_largest.filter_map(|(dims, was)| {
            let (was, is) = (bounds::median(was)?, bounds::median(is.get(dims)?)?);
            (was > 0.0 && is >= 0.0).then(|| is / was - 1.0)
        });
        if let Some(change) = bounds::median(&both.collect::<Vec<_>>()) {
            let nodes = nodes_of(b, job);
            changes.entry(metric.clone()).or_default().push(JobChange { nodes, change });
        }
    }
    Ok(changes)
}

fn nodes_of(run: &Run, (suite, case, job): &JobKey) -> BTreeSet<String> {
    let cases = run.plan().cases.iter().filter(|one| one.suite == *suite && one.name == *case);
    let jobs = cases.flat_map(|case| &case.jobs).filter(|one| one.name == *job);
    jobs.flat_map(|job| job.nodes.iter().cloned()).collect()
}

/// The numbers of whole jobs, by what they are of.
type WholeJobs = BTreeMap<(MetricKey, JobKey), BTreeMap<Dims, Vec<f64>>>;

fn whole_jobs(run: &Run) -> Result<WholeJobs, String> {
    /// Dimensions of a part of a job.
    const PARTS: [Dim; 5] = [Dim::Node, Dim::Nic, Dim::Peer, Dim::Gpu, Dim::Rank];
    let mut all = WholeJobs::new();
    for case in run.plan().cases.iter().filter(|case| case.skip.is_none()) {
        let judged: BTreeSet<&str> = case.assertions.iter().map(|one| one.metric.as_str()).collect();
        let metrics = run.stored.metrics(&case.name).map_err(|error| error.to_string())?.unwrap_or_default();
        for row in metrics.rows() {
            let is_of_part = row.dims.iter().any(|(dim, _)| PARTS.contains(&dim));
            if is_of_part || !row.value.is_finite() || !judged.contains(&*row.name) {
                continue;
            }
            let is_compared =
                recipe::built_in(&row.name).is_none_or(|one| one.run_noise == RunNoise::Relative);
            if !is_compared || !row.unit.varies() || row.unit == Unit::Ratio || row.better == Better::Neither
            {
                continue;
            }
            let Some(job) = row.dims.word(Dim::Job) else { continue };
            let mut dims = Dims::new();
            let kept = |dim: &Dim| !matches!(dim, Dim::Case | Dim::Job | Dim::Round | Dim::Step);
            for (dim, value) in row.dims.iter().filter(|(dim, _)| kept(dim)) {
                dims.set(dim, value.clone());
            }
            let metric = (row.name.to_string(), row.unit);
            let job = (case.suite.clone(), case.name.clone(), job.to_owned());
            all.entry((metric, job)).or_default().entry(dims).or_default().push(row.value);
        }
    }
    Ok(all)
}

fn effects(changes: &BTreeMap<MetricKey, Vec<JobChange>>, culprit: &Culprit) -> Vec<Effect> {
    let nodes: &[String] = match culprit {
        Culprit::Culprit { node, .. } => std::slice::from_ref(node),
        Culprit::Suspects { nodes, .. } => nodes,
        Culprit::Fleet { .. } => &[],
    };
    // What all have in common, all jobs have.
    let is_with = |job: &&JobChange| nodes.is_empty() || nodes.iter().any(|node| job.nodes.contains(node));
    let mut effects: Vec<Effect> = changes
        .iter()
        .filter_map(|((metric, unit), jobs)| {
            let (with, without): (Vec<&JobChange>, Vec<&JobChange>) = jobs.iter().partition(is_with);
            let middle =
                |jobs: &[&JobChange]| bounds::median(&jobs.iter().map(|job| job.change).collect::<Vec<_>>());
            let by_chance = bounds::two_runs(floor(*unit));
            let is_changed = |job: &&JobChange| factor(job.change) > by_chance;
            let changed: Vec<&JobChange> = with.iter().copied().filter(is_changed).collect();
            Some(Effect {
                metric: metric.clone(),
                change: middle(if changed.is_empty() { &with } else { &changed })?,
                changed: changed.len(),
                jobs: with.len(),
                all_that_span_nodes: !changed.is_empty()
                    && with.iter().all(|job| is_changed(job) == (job.nodes.len() > 1)),
                others: middle(&without),
                other_jobs: without.len(),
            })
        })
        .collect();
    effects.sort_by(|x, y| factor(y.change).total_cmp(&factor(x.change)).then(x.metric.cmp(&y.metric)));
    effects
}
