//! What changed, in groups: hundreds of numbers of one cause are one line with how many there are and the worst.

use super::numbers::{self, Beyond, Numbers};
use super::verdicts::{Turned, Verdicts};
use crate::history::past::Run;
use metric::unit::Unit;
use model::artefact::{CaseVerdict, Status, Verdict};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Verdicts of one metric or cause that turned alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictGroup {
    /// How they changed.
    pub turned: Turned,
    /// `pass -> fail`.
    pub change: String,
    /// The metric that is judged; empty where the cause is of them all.
    pub metric: String,
    /// Why there is no result: the same for all of the group.
    pub cause: Option<String>,
    /// How many there are.
    pub count: usize,
    /// In how many cases.
    pub cases: usize,
    /// The message of the first one.
    pub message: String,
}

/// Numbers of one metric that changed in the same direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NumberGroup {
    /// In which direction.
    pub beyond: Beyond,
    /// The metric's name.
    pub metric: String,
    /// Whether an assertion judges the metric.
    pub judged: bool,
    /// Of all its numbers.
    pub unit: Unit,
    /// How many changed so.
    pub count: usize,
    /// How many of the metric were compared.
    pub of: usize,
    /// In how many cases.
    pub cases: usize,
    /// The suite and case of the worst one.
    pub case: String,
    /// What the worst one is of, within its case.
    pub worst: String,
    /// The worst one in the first run.
    pub a: f64,
    /// The worst one in the second run.
    pub b: f64,
    /// Its change as a fraction; nothing where it was zero.
    pub change: Option<f64>,
}

pub(super) fn group_verdicts(verdicts: &Verdicts, b: &Run) -> Vec<VerdictGroup> {
    let of_case = |case: &'_ CaseVerdict| (case.suite.clone(), case.case.clone());
    let of_b: BTreeMap<&str, (&CaseVerdict, &Verdict)> = (b.cases.iter().map(|case| &**case))
        .flat_map(|case| case.verdicts.iter().map(move |one| (one.name.as_str(), (case, one))))
        .collect();
    type GroupKey<'a> = (Turned, Status, Status, &'a str, Option<&'a str>);
    let mut groups: BTreeMap<GroupKey<'_>, (VerdictGroup, BTreeSet<(String, String)>)> = BTreeMap::new();
    for one in &verdicts.changed {
        let Some((case, verdict)) = of_b.get(one.name.as_str()) else { continue };
        // A cause such as `not-run` says why for all metrics.
        let metric = if verdict.cause.is_some() { "" } else { verdict.metric.as_str() };
        let key = (one.turned, one.from, one.to, metric, verdict.cause.as_deref());
        let group = || VerdictGroup {
            turned: one.turned,
            change: format!("{} -> {}", one.from, one.to),
            metric: metric.to_owned(),
            cause: verdict.cause.clone(),
            count: 0,
            cases: 0,
            message: one.message.clone(),
        };
        let (group, cases) = groups.entry(key).or_insert_with(|| (group(), BTreeSet::new()));
        cases.insert(of_case(case));
        group.count += 1;
        group.cases = cases.len();
    }
    let mut groups: Vec<VerdictGroup> = groups.into_values().map(|(group, _)| group).collect();
    groups.sort_by_key(|group| (group.turned, Reverse(group.count)));
    groups
}

pub(super) fn group_numbers(numbers: &Numbers, runs: [&Run; 2]) -> Vec<NumberGroup> {
    let cases = runs.into_iter().flat_map(|run| &run.plan().cases);
    let judged: BTreeSet<&str> =
        cases.flat_map(|case| &case.assertions).map(|one| one.metric.as_str()).collect();
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: BTreeMap<(Beyond, &str), Vec<&numbers::Changed>> = BTreeMap::new();
    for one in &numbers.all {
        *compared.entry(&one.metric).or_default() += 1;
        if one.beyond.is_change() {
            groups.entry((one.beyond, &one.metric)).or_default().push(one);
        }
    }
    let group = |((beyond, metric), members): ((Beyond, &str), Vec<&numbers::Changed>)| {
        // They are sorted: the first is the worst, but for those that were zero, which have no factor.
        let worst = members.iter().find(|one| one.change.is_some()).or(members.first())?;
        Some(NumberGroup {
            beyond,
            metric: metric.to_owned(),
            judged: judged.contains(metric),
            unit: worst.unit,
            count: members.len(),
            of: compared.get(metric).copied().unwrap_or_default(),
            cases: members.iter().map(|one| &one.case).collect::<BTreeSet<_>>().len(),
            case: worst.case.clone(),
            worst: worst.of_case.clone(),
            a: worst.a,
            b: worst.b,
            change: worst.change,
        })
    };
    let mut groups: Vec<NumberGroup> = groups.into_iter().filter_map(group).collect();
    let size = |group: &NumberGroup| group.change.map_or(0.0, f64::abs);
    groups.sort_by(|x, y| {
        (x.beyond, !x.judged)
            .cmp(&(y.beyond, !y.judged))
            .then(size(y).total_cmp(&size(x)))
            .then(x.metric.cmp(&y.metric))
    });
    groups
}
