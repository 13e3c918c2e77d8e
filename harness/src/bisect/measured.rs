//! What a run of a stack measured: the numbers of one metric of one case, which runs of other stacks are compared with.

use metric::unit::{Better, Unit};
use model::artefact::{CaseVerdict, PlannedCase, Status, Verdict};
use recipes::recipe;
use std::collections::BTreeMap;

/// That a program found its data wrong: such a run is no measurement.
pub(super) fn wrong_data(verdict: Option<&CaseVerdict>) -> Option<String> {
    let is_wrong = |one: &&Verdict| one.status == Status::Fail && recipe::checks_data(&one.metric);
    verdict?.verdicts.iter().find(is_wrong).map(|one| one.message.clone())
}

/// By the name of the assertion.
pub(super) type Numbers = BTreeMap<String, f64>;

/// The metric that a case is compared by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    /// The assertions on it.
    pub assertions: Vec<String>,
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
            assertions: of_metric.map(|one| one.name.clone()).collect(),
        })
    }

    /// What a run measured of it; nothing where a number is missing or says nothing.
    pub(super) fn numbers(&self, verdict: Option<&CaseVerdict>) -> Option<Numbers> {
        let verdicts = &verdict?.verdicts;
        let observed = |name: &String| {
            let one = verdicts.iter().find(|one| one.name == *name)?;
            let value = one.observed.filter(|value| value.is_finite() && *value > 0.0)?;
            Some((name.clone(), value))
        };
        self.assertions.iter().map(observed).collect()
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
        for name in &self.assertions {
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
