//! Every limit that nodes were compared with: its source, its state, and the values that were compared with it.

use metric::unit::Unit;
use model::artefact::acceptance::{Limit, Observed};
use model::artefact::{
    BaselineNumbers, CaseVerdict, Plan, PlannedAssertion, PlannedBaseline, Status, Verdict,
};
use std::collections::BTreeMap;

/// A stored run of a stage.
pub struct OfRun<'a> {
    /// The stage's name in reports, such as `pairs`.
    pub stage: &'a str,
    /// The run's `plan.json`, whose assertions hold the limits.
    pub plan: &'a Plan,
    /// One for each judged case of the run.
    pub verdicts: &'a [CaseVerdict],
}

/// In the order of the stages, their cases and their assertions: runs of a stage that were made again share their limits.
#[derive(Debug, Default)]
pub struct Limits {
    order: Vec<String>,
    found: BTreeMap<String, (Limit, Vec<f64>)>,
}

impl Limits {
    /// All numbers of one more run.
    pub fn add(&mut self, run: &OfRun) {
        for case in &run.plan.cases {
            let of_case = run.verdicts.iter().find(|one| one.suite == case.suite && one.case == case.name);
            let Some(of_case) = of_case else { continue };
            for (assertion, verdict) in case.assertions.iter().zip(&of_case.verdicts) {
                let what = what(assertion);
                let shown = render(assertion);
                let key = format!("{}\n{}\n{what}\n{}\n{}", run.stage, case.name, shown.limit, shown.source);
                let (limit, values) = self.found.entry(key.clone()).or_insert_with(|| {
                    self.order.push(key);
                    (blank(run.stage, &case.name, &what, assertion.unit, shown), Vec::new())
                });
                count(limit, verdict);
                values.extend(verdict.observed.filter(|value| value.is_finite()));
            }
        }
    }

    /// Each with the numbers that were compared with it.
    pub fn list(&self) -> Vec<Limit> {
        let ended = |key: &String| {
            let (mut limit, values) = self.found.get(key)?.clone();
            limit.observed = observed(values);
            Some(limit)
        };
        self.order.iter().filter_map(ended).collect()
    }
}

struct Shown {
    limit: String,
    state: &'static str,
    source: String,
    numbers: Option<BaselineNumbers>,
}

fn blank(stage: &str, case: &str, what: &str, unit: Unit, shown: Shown) -> Limit {
    let numbers = shown.numbers.as_ref();
    let fingerprint = numbers.map(|numbers| {
        let parts = numbers.fingerprint.iter().map(|(part, those)| format!("{part} {}", those.join(" or ")));
        parts.collect::<Vec<_>>().join(", ")
    });
    Limit {
        stage: stage.to_owned(),
        case: case.to_owned(),
        what: what.to_owned(),
        unit,
        limit: shown.limit,
        state: shown.state.to_owned(),
        source: shown.source,
        n: numbers.map(|numbers| numbers.n),
        spread: numbers.and_then(|numbers| numbers.spread),
        fingerprint: fingerprint.unwrap_or_default(),
        observed: Observed::default(),
        passed: 0,
        failed: 0,
        open: 0,
    }
}

fn count(limit: &mut Limit, verdict: &Verdict) {
    *match verdict.status {
        Status::Pass => &mut limit.passed,
        Status::Fail | Status::UnexpectedPass => &mut limit.failed,
        Status::Inconclusive
        | Status::Error
        | Status::Skipped
        | Status::ExpectedFailure
        | Status::Unjudged => &mut limit.open,
    } += 1;
}

/// What stands between the case's name and the subject: the same for all nodes.
fn what(assertion: &PlannedAssertion) -> String {
    let label = assertion.name.rsplit("::").next().unwrap_or_default();
    label.split('@').next().unwrap_or_default().to_owned()
}

fn render(assertion: &PlannedAssertion) -> Shown {
    let unit = assertion.unit;
    let bound = &assertion.bound;
    let mut words = Vec::new();
    words.extend(bound.at_least.map(|least| format!("at least {}", unit.show(least))));
    words.extend(bound.at_most.map(|most| format!("at most {}", unit.show(most))));
    words.extend(bound.equals.map(|equals| format!("exactly {}", unit.show(equals))));
    let mut sources: Vec<String> = Vec::new();
    if !words.is_empty() {
        sources.push("the suite".to_owned());
    }
    let mut state = "stated";
    if let Some(within) = bound.within_peers {
        words.push(format!("within {:.0} % of its peers", within * 100.0));
        sources.push("its peers in the same run".to_owned());
        state = if sources.len() > 1 { "stated" } else { "peers" };
    }
    let mut numbers = None;
    if let Some(baseline) = &bound.baseline {
        let (name, of) = match baseline {
            PlannedBaseline::None { key } => {
                words.push("a baseline".to_owned());
                sources.push(format!("none for {key}"));
                ("none", None)
            }
            PlannedBaseline::Provisional(of) if of.predicted.is_some() => ("predicted", Some(of)),
            PlannedBaseline::Provisional(of) => ("provisional", Some(of)),
            PlannedBaseline::Accepted(of) => ("accepted", Some(of)),
            PlannedBaseline::Expired(of) => ("expired", Some(of)),
        };
        state = name;
        if let Some(of) = of {
            words.push(match (of.lower, of.upper) {
                (Some(lower), Some(upper)) => format!("{} to {}", unit.show(lower), unit.show(upper)),
                (Some(lower), None) => format!("at least {}", unit.show(lower)),
                (None, Some(upper)) => format!("at most {}", unit.show(upper)),
                (None, None) => "a baseline without bounds".to_owned(),
            });
            let between = of
                .between
                .as_ref()
                .map(|sizes| format!(", interpolated between {sizes}"))
                .unwrap_or_default();
            sources.push(format!("{}: {}{between}", of.key, of.source));
            numbers = Some(of.clone());
        }
    }
    Shown { limit: words.join(", "), state, source: sources.join("; "), numbers }
}

fn observed(mut values: Vec<f64>) -> Observed {
    values.sort_by(f64::total_cmp);
    let middle = median(&values);
    let spread = middle.filter(|middle| *middle != 0.0).and_then(|middle| {
        let mut away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
        away.sort_by(f64::total_cmp);
        median(&away).map(|distance| distance / middle.abs())
    });
    Observed {
        n: values.len(),
        least: values.first().copied(),
        median: middle,
        most: values.last().copied(),
        spread,
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let (low, high) = (sorted.get(n.checked_sub(1)? / 2)?, sorted.get(n / 2)?);
    Some((low + high) / 2.0)
}
