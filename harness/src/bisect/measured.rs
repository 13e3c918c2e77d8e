//! What a run of a stack measured: the numbers of one metric of one case, which runs of other stacks are compared with.

use metric::unit::{Better, Unit};
use metric::{Dim, DimValue, Dims, Metrics, Query};
use model::artefact::{CaseVerdict, PlannedAssertion, PlannedCase, Status, Verdict};
use recipes::recipe;
use std::collections::BTreeMap;

/// That a program found its data wrong: such a run is no measurement.
pub(super) fn wrong_data(verdict: Option<&CaseVerdict>) -> Option<String> {
    let is_wrong = |one: &&Verdict| one.status == Status::Fail && recipe::checks_data(&one.metric);
    verdict?.verdicts.iter().find(is_wrong).map(|one| one.message.clone())
}

/// By assertion and part.
pub(super) type Numbers = BTreeMap<String, f64>;

/// The metric that a case is compared by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    /// The assertions on it.
    pub assertions: Vec<PlannedAssertion>,
}

/// The assertion, and the part of it that a row is about.
fn name_of(assertion: &PlannedAssertion, dims: &Dims) -> String {
    let parts = [Dim::Gpu, Dim::Nic, Dim::Place].into_iter().filter(|dim| assertion.dims.get(*dim).is_none());
    let words = parts.filter_map(|dim| dims.get(dim)).map(|value| match value {
        DimValue::Word(word) => format!(" {word}"),
        DimValue::Number(number) => format!(" {number}"),
    });
    assertion.name.clone() + &words.collect::<String>()
}

impl Compared {
    /// The one that is named, else the first of the case that is a rate or a time.
    pub(super) fn new(case: &PlannedCase, named: Option<&str>) -> Result<Compared, String> {
        let is_rate = |unit: Unit| !matches!(unit, Unit::Count | Unit::Ratio | Unit::Bytes);
        let fits = |metric: &str, better: Better, unit: Unit| match named {
            Some(named) => metric == named && better != Better::Neither && is_rate(unit),
            None => better != Better::Neither && is_rate(unit),
        };
        let found = case.assertions.iter().find(|one| fits(&one.metric, one.better, one.unit));
        let Some(first) = found else {
            let mut known: Vec<&str> = case.assertions.iter().map(|one| one.metric.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let what = named.map_or(String::new(), |named| format!("`{named}` as "));
            return Err(format!(
                "case `{}` does not assert {what}a rate or a time; it asserts `{}`",
                case.name,
                known.join("`, `")
            ));
        };
        let of_metric = case.assertions.iter().filter(|one| one.metric == first.metric);
        Ok(Compared {
            metric: first.metric.clone(),
            unit: first.unit,
            better: first.better,
            assertions: of_metric.cloned().collect(),
        })
    }

    /// What a run measured of it, part by part; nothing where a number is missing, or is more than hardware allows.
    pub(super) fn numbers(
        &self,
        verdict: Option<&CaseVerdict>,
        metrics: Option<&Metrics>,
    ) -> Option<Numbers> {
        let judged: BTreeMap<&str, &Verdict> =
            verdict?.verdicts.iter().map(|one| (one.name.as_str(), one)).collect();
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for assertion in &self.assertions {
            if !judged.get(assertion.name.as_str()).is_some_and(|one| one.is_measured()) {
                return None;
            }
            let whole = [Dims::new()];
            let parts = if assertion.parts.is_empty() { &whole[..] } else { &assertion.parts[..] };
            for part in parts {
                let mut dims = assertion.dims.clone();
                part.iter().for_each(|(dim, value)| dims.set(dim, value.clone()));
                let query = Query { metric: assertion.metric.clone(), dims };
                let rows = metrics?.select_of_jobs(&query, &assertion.jobs);
                if rows.is_empty() || !rows.iter().all(|row| row.value.is_finite() && row.value > 0.0) {
                    return None;
                }
                for row in rows {
                    all.entry(name_of(assertion, &row.dims)).or_default().push(row.value.ln());
                }
            }
        }
        let mean = |values: Vec<f64>| (values.iter().sum::<f64>() / values.len().max(1) as f64).exp();
        Some(all.into_iter().map(|(name, values)| (name, mean(values))).collect())
    }

    /// The mean of the logarithms of all numbers; more is better.
    pub(super) fn level(&self, numbers: &Numbers) -> f64 {
        let mean = numbers.values().map(|value| value.ln()).sum::<f64>() / numbers.len().max(1) as f64;
        if self.better == Better::Lower { -mean } else { mean }
    }

    /// The number that is lowest with the bad stack, where that is no chance: by more than 5 %, and by six times the
    /// usual error of a difference.
    pub(super) fn worst_number(&self, good: &[&Numbers], bad: &[&Numbers]) -> Option<String> {
        let n = good.len().min(bad.len());
        if n < 2 {
            return None;
        }
        let sign = if self.better == Better::Lower { -1.0 } else { 1.0 };
        let mut spreads = Vec::new();
        let mut differences = Vec::new();
        for name in good.first()?.keys() {
            let values = |runs: &[&Numbers]| {
                let values = runs.iter().filter_map(|numbers| numbers.get(name));
                values.map(|value| sign * value.ln()).collect::<Vec<f64>>()
            };
            let (good, bad) = (values(good), values(bad));
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
            for values in [&good, &bad] {
                let mean = mean(values);
                let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
                spreads.push((squares / (values.len().max(2) - 1) as f64).sqrt());
            }
            differences.push((mean(&bad) - mean(&good), name));
        }
        spreads.sort_by(f64::total_cmp);
        let usual = spreads.get(spreads.len() / 2).copied().unwrap_or_default();
        let (lowest, name) = differences.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let is_clear = lowest < -0.05 && lowest < -6.0 * usual * (2.0 / n as f64).sqrt();
        is_clear.then(|| format!("{name} is {:.0} % worse", (1.0 - lowest.exp()) * 100.0))
    }

    /// A level as people read it, with its unit.
    pub(super) fn show(&self, level: f64) -> String {
        let value = if self.better == Better::Lower { (-level).exp() } else { level.exp() };
        self.unit.show(value)
    }
}
