//! What a run of a stack measured: the numbers of one metric of one case, which runs of other stacks are compared with.

use metric::unit::{Better, Unit};
use model::artefact::{CaseVerdict, PlannedCase};
use std::collections::BTreeMap;

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
            Some(named) => metric == named && better != Better::Neither,
            None => better != Better::Neither && is_rate(unit),
        };
        let found = case.assertions.iter().find(|one| fits(&one.metric, one.better, one.unit));
        let Some(first) = found else {
            let mut known: Vec<&str> = case.assertions.iter().map(|one| one.metric.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let what = named
                .map_or("a rate or a time".to_owned(), |named| format!("`{named}` with a better direction"));
            return Err(format!(
                "case `{}` asserts nothing on {what}; it asserts `{}`",
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

    /// A level as people read it, with its unit.
    pub(super) fn show(&self, level: f64) -> String {
        let value = if self.better == Better::Lower { (-level).exp() } else { level.exp() };
        self.unit.show(value)
    }
}
