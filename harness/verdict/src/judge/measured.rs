//! The numbers that an assertion asks for, part by part: of one run, or the medians of several.

use config::bounds;
use metric::{Dim, Dims, Metric, Metrics, Query};
use model::artefact::PlannedAssertion;
use std::collections::{BTreeMap, BTreeSet};

/// One number; of several independent runs it is their median.
pub struct Number<'a> {
    pub dims: &'a Dims,
    pub value: f64,
    /// In the order of the runs; empty where there was but one.
    pub runs: Vec<f64>,
}

/// The numbers of one assertion.
pub struct Measured<'a> {
    /// One entry per part that has numbers: its name where there are several parts, and its numbers.
    pub parts: Vec<(String, Vec<Number<'a>>)>,
    /// Parts that lack a finite number in at least one run; empty text for the whole query.
    pub missing: Vec<String>,
    /// Parts with numbers and parts without.
    pub n_expected: u32,
}

impl<'a> Measured<'a> {
    /// Of these jobs, which are the assertion's own or stand for them.
    pub(crate) fn select(
        metrics: &'a Metrics,
        assertion: &PlannedAssertion,
        jobs: &[String],
    ) -> Measured<'a> {
        let mut parts = Vec::new();
        let mut missing = Vec::new();
        let mut look = |dims: Dims, name: String| {
            let query = Query { metric: assertion.metric.clone(), dims };
            let rows = metrics.select_of_jobs(&query, jobs);
            // A NaN was not measured.
            if rows.is_empty() || rows.iter().any(|row| !row.value.is_finite()) {
                missing.push(name);
                return;
            }
            match together(&rows, jobs, assertion.unit.varies()) {
                Ok(numbers) => parts.push((name, numbers)),
                Err(runs) => {
                    missing.push(format!("{name} in {runs} of {} runs", jobs.len()).trim_start().to_owned());
                }
            }
        };
        if assertion.parts.is_empty() {
            look(assertion.dims.clone(), String::new());
        }
        for part in assertion.parts.iter() {
            let mut dims = assertion.dims.clone();
            for (dim, value) in part.iter() {
                dims.set(dim, value.clone());
            }
            let name = part
                .iter()
                .map(|(dim, value)| part_name(dim, &value.to_string()))
                .collect::<Vec<_>>()
                .join(" ");
            look(dims, name);
        }
        let n_expected = (parts.len() + missing.len()) as u32;
        Measured { parts, missing, n_expected }
    }

    /// How many parts have numbers.
    pub(crate) fn n(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Every number with the name of its part.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&str, &Number<'a>)> {
        self.parts
            .iter()
            .flat_map(|(name, numbers)| numbers.iter().map(move |number| (name.as_str(), number)))
    }

    /// Every value with the name of its part.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, f64)> {
        self.numbers().map(|(name, number)| (name, number.value))
    }
}

/// What several runs measured, by what they measured it of: the median of what varies from run to run, and each number by
/// itself of what is counted, for a wrong result is wrong in whichever run it came. In an error, how many runs lack one.
fn together<'a>(rows: &[&'a Metric], jobs: &[String], varies: bool) -> Result<Vec<Number<'a>>, usize> {
    let alone = |row: &&'a Metric| Number { dims: &row.dims, value: row.value, runs: Vec::new() };
    if jobs.len() < 2 || rows.iter().all(|row| row.dims.word(Dim::Job).is_none()) {
        return Ok(rows.iter().map(alone).collect());
    }
    let place = |row: &Metric| jobs.iter().position(|job| row.dims.word(Dim::Job) == Some(job.as_str()));
    let mut alike: BTreeMap<Dims, Vec<(Option<usize>, &'a Metric)>> = BTreeMap::new();
    for row in rows {
        alike.entry(without_job(&row.dims)).or_default().push((place(row), row));
    }
    let mut numbers = Vec::new();
    for mut those in alike.into_values() {
        let seen: BTreeSet<usize> = those.iter().filter_map(|(at, _)| *at).collect();
        if seen.len() < jobs.len() {
            return Err(jobs.len() - seen.len());
        }
        if !varies {
            numbers.extend(those.iter().map(|(_, row)| alone(row)));
            continue;
        }
        those.sort_by_key(|(at, _)| *at);
        let runs: Vec<f64> = those.iter().map(|(_, row)| row.value).collect();
        if let (Some((_, first)), Some(value)) = (those.first(), bounds::median(&runs)) {
            numbers.push(Number { dims: &first.dims, value, runs });
        }
    }
    Ok(numbers)
}

/// What a number is of, in whichever run.
pub(super) fn without_job(dims: &Dims) -> Dims {
    let mut rest = Dims::new();
    dims.iter().filter(|(dim, _)| *dim != Dim::Job).for_each(|(dim, value)| rest.set(dim, value.clone()));
    rest
}

pub(super) fn part_name(dim: Dim, value: &str) -> String {
    match dim {
        Dim::Gpu => format!("gpu{value}"),
        Dim::SizeBytes => value.parse().map_or_else(|_| value.to_owned(), base::size::show),
        _ => value.to_owned(),
    }
}
