//! Lines of steps put in order: by program and rank, with what ran again after a restart told apart from what other ranks
//! say of the same step.

use super::ranks;
use super::step::{Dialect, StepLine, Told};
use metric::finding::Finding;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The steps of one program as one rank tells them, each once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub dialect: Dialect,
    /// The rank or task that a launcher put before its lines; empty where none did.
    pub who: String,
    /// From 1: a file may hold several runs, one after the other.
    pub run: u32,
    pub steps: Vec<StepLine>,
    pub restarts: Vec<Restart>,
}

/// Where a run went on at an earlier step than it had been at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restart {
    pub line: u64,
    /// The step it had been at, and the one it went on with.
    pub from: u64,
    pub to: u64,
    /// So many lines of steps stand for nothing any more: what ran again counts.
    pub repeated: u64,
}

impl Series {
    fn new(told: &Told, run: u32) -> Series {
        Series { dialect: told.dialect, who: told.who.clone(), run, steps: Vec::new(), restarts: Vec::new() }
    }

    /// How it is called where it is spoken of.
    pub fn shown(&self) -> String {
        let who = if self.who.is_empty() { String::new() } else { format!(" of rank {}", self.who) };
        let run = if self.run > 1 { format!(", run {}", self.run) } else { String::new() };
        format!("{}{who}{run}", self.dialect.name())
    }
}

#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The last of each holds the run that goes on.
    of: BTreeMap<(Dialect, String), Vec<Series>>,
}

impl Gathered {
    pub(super) fn add(&mut self, told: Told) {
        let runs = self.of.entry((told.dialect, told.who.clone())).or_default();
        let number = runs.len() as u32;
        let Some(series) = runs.last_mut() else {
            let mut first = Series::new(&told, 1);
            first.steps.push(told.step);
            return runs.push(first);
        };
        let Some(last) = series.steps.last() else { return series.steps.push(told.step) };
        let (place, here) = (last.place(), told.step.place());
        // A run that goes on is to be as long as it was.
        let is_another = told.step.epoch == last.epoch && told.step.of != last.of && last.of.is_some();
        if is_another || series.steps.first().is_some_and(|first| here < first.place()) {
            let mut next = Series::new(&told, number + 1);
            next.steps.push(told.step);
            return runs.push(next);
        }
        if here > place {
            return series.steps.push(told.step);
        }
        if here == place {
            let last = series.steps.len() - 1;
            match told.dialect.is_a_bar() {
                true => series.steps[last] = told.step,
                false => ranks::add_copy(&mut series.steps[last], &told.step),
            }
            return;
        }
        // Ranks that nobody told apart say the same steps, and some are late by one.
        let late = series.steps.iter_mut().rev().nth(1).filter(|step| step.place() == here);
        if let Some(step) = late.filter(|step| step.copies > 0) {
            ranks::add_copy(step, &told.step);
            return;
        }
        if series.steps.first().is_some_and(|first| here <= first.place()) {
            let mut next = Series::new(&told, number + 1);
            next.steps.push(told.step);
            return runs.push(next);
        }
        let kept = series.steps.partition_point(|step| step.place() < here);
        series.restarts.push(Restart {
            line: told.step.line,
            from: place.1,
            to: here.1,
            repeated: (series.steps.len() - kept) as u64,
        });
        series.steps.truncate(kept);
        series.steps.push(told.step);
    }

    /// In the order of programs, ranks and runs: ranks by number.
    pub(super) fn series(self) -> Vec<Series> {
        let mut all: Vec<Series> = self.of.into_values().flatten().collect();
        all.sort_by_key(|series| {
            (series.dialect, series.who.parse::<u64>().ok(), series.who.clone(), series.run)
        });
        all
    }
}

/// What is odd about the steps themselves.
pub(super) fn findings(series: &[Series]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let dialects: BTreeSet<Dialect> = series.iter().map(|series| series.dialect).collect();
    if dialects.len() > 1 {
        let names: Vec<String> =
            dialects.iter().map(|dialect| format!("the {} of {}", dialect.word(), dialect.name())).collect();
        let why = format!(
            "steps are told in {} ways, which do not count the same: {}; their figures stand apart",
            names.len(),
            names.join(" and ")
        );
        findings.push(Finding::new("training-two-meanings", why));
    }
    findings.extend(series.iter().flat_map(of_series));
    findings.extend(ranks::of_labels(series));
    findings
}

fn of_series(series: &Series) -> Vec<Finding> {
    let shown = series.shown();
    let word = series.dialect.word();
    let mut findings = Vec::new();
    if series.run > 1
        && let Some(first) = series.steps.first()
    {
        let why = format!(
            "{shown}: begins anew at {word} {}: another run, whose figures stand apart",
            first.iteration
        );
        findings.push(Finding::new("training-begins-anew", why).line(first.line));
    }
    for restart in &series.restarts {
        let why = format!(
            "{shown}: went on at {word} {} after {}: {} that ran before count no more",
            restart.to, restart.from, restart.repeated
        );
        findings.push(Finding::new("training-restart", why).line(restart.line));
    }
    let odd = |step: &&StepLine| step.loss.is_some_and(|loss| !loss.is_finite());
    if let Some(step) = series.steps.iter().find(odd) {
        let count = series.steps.iter().filter(odd).count();
        let loss = step.loss.unwrap_or(f64::NAN);
        let why = format!("{shown}: the loss is {loss} at {word} {}, the first of {count}", step.iteration);
        findings.push(Finding::new("training-loss-not-finite", why).line(step.line));
    }
    let lost: u64 = series.steps.iter().map(|step| step.nan.unwrap_or(0)).sum();
    if let Some(step) = series.steps.iter().find(|step| step.nan.is_some_and(|nan| nan > 0)) {
        let why =
            format!("{shown}: {lost} {} were NaN, the first at {}", series.dialect.words(), step.iteration);
        findings.push(Finding::new("training-nan-iterations", why).line(step.line));
    }
    let back = series.steps.windows(2).find_map(|pair| {
        let (before, after) = (pair[0].moment_ms?, pair[1].moment_ms?);
        (after < before).then_some((&pair[1], before - after))
    });
    if let Some((step, by)) = back {
        let why = format!(
            "{shown}: the clock goes back by {:.1} s at {word} {}: what is reckoned from it says nothing",
            by as f64 / 1000.0,
            step.iteration
        );
        findings.push(Finding::new("training-clock-back", why).line(step.line));
    }
    findings.extend(ranks::of_copies(series));
    findings.extend(missing(series, &shown));
    findings
}

/// Steps that the program did not tell, going by how far apart its lines usually are.
fn missing(series: &Series, shown: &str) -> Option<Finding> {
    let apart = |pair: &[StepLine]| {
        let same_epoch = pair[0].epoch == pair[1].epoch;
        same_epoch.then(|| pair[1].iteration - pair[0].iteration)
    };
    let mut usual: BTreeMap<u64, u64> = BTreeMap::new();
    // Many programs tell their first step, and from then on those of round numbers: 1, 10, 20.
    let from_second = if series.steps.len() > 2 { 1 } else { 0 };
    for distance in series.steps[from_second..].windows(2).filter_map(apart) {
        *usual.entry(distance).or_default() += 1;
    }
    let (usual, _) =
        usual.into_iter().max_by_key(|(distance, count)| (*count, std::cmp::Reverse(*distance)))?;
    let mut gaps =
        series.steps.windows(2).filter(|pair| apart(pair).is_some_and(|distance| distance > usual));
    let first = gaps.next()?;
    let more = gaps.count();
    let more = if more > 0 { format!(", and {more} more such gaps") } else { String::new() };
    let why = format!(
        "{shown}: {} follows {} {}, where lines are {usual} apart{more}: what lies between was not told, or could not be read",
        first[1].iteration,
        series.dialect.word(),
        first[0].iteration
    );
    Some(Finding::new("training-gap", why).line(first[1].line))
}
