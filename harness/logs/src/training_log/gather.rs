//! Lines of steps put in order: by program and rank, with repeats after a restart kept apart from what other ranks
//! say of the same step.

use super::step::{Dialect, ReportedStep, StepLine};
use super::{flops, ranks, sample_rate};
use crate::text;
use metric::finding::Finding;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The steps of one program as one rank logs them, each once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The program, by the form of its lines.
    pub dialect: Dialect,
    /// The rank or task that a launcher put before its lines; empty where none did.
    pub who: String,
    /// From 1: a file may hold several runs, one after the other.
    pub run: u32,
    /// In order, those that ran again only as they ran last.
    pub steps: Vec<StepLine>,
    /// In the order of the log.
    pub restarts: Vec<Restart>,
}

/// Where a run went on at an earlier step than it had been at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restart {
    /// Of the step it went on with, one-based.
    pub line: u64,
    /// The step it had been at.
    pub from: u64,
    /// The earlier step it went on with.
    pub to: u64,
    /// So many lines of steps stand for nothing any more: what ran again counts.
    pub repeated: u64,
}

impl Series {
    fn new(reported: &ReportedStep, run: u32) -> Series {
        Series {
            dialect: reported.dialect,
            who: reported.who.clone(),
            run,
            steps: Vec::new(),
            restarts: Vec::new(),
        }
    }

    /// The first step without a loss, and how many there are, where a loss was logged before and none should be left out.
    /// Megatron leaves out one that is NaN; of other programs, a loss that is logged every so often may be due.
    pub fn loss_stops(&self) -> Option<(&StepLine, usize)> {
        let first = self.steps.iter().position(|step| step.loss.is_some())?;
        if self.dialect == Dialect::Megatron {
            let behind = &self.steps[first..];
            let intervals = std::iter::once(1).chain(behind.windows(2).map(interval));
            // Where all steps were skipped, there is none.
            let lacks = |(step, interval): &(&StepLine, u64)| {
                step.loss.is_none() && step.skipped.is_none_or(|skipped| skipped < *interval)
            };
            let mut lacking = behind.iter().zip(intervals).filter(lacks).map(|(step, _)| step);
            let step = lacking.next()?;
            return Some((step, 1 + lacking.count()));
        }
        let (mut last, mut usual) = (first, 1);
        for (at, _) in self.steps.iter().enumerate().skip(first + 1).filter(|(_, step)| step.loss.is_some()) {
            (last, usual) = (at, usual.max(at - last));
        }
        let behind = &self.steps[last + 1..];
        behind.first().filter(|_| behind.len() >= usual).map(|step| (step, behind.len()))
    }

    /// Whether its figures are means of several steps each: some programs print those of all steps since the line before.
    pub fn is_of_means(&self) -> bool {
        let has_means = matches!(self.dialect, Dialect::Megatron | Dialect::Torchtitan);
        let apart = self.steps.windows(2).filter(|pair| interval(pair) > 1).count();
        // A line that was lost is not an interval of the program.
        has_means && 2 * apart > self.steps.len().saturating_sub(1)
    }

    /// Whether no line has the number of its step: each may stand for several.
    pub(crate) fn is_counted(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|step| step.is_counted)
    }

    /// How it is called where it is spoken of.
    pub fn render(&self) -> String {
        let who = if self.who.is_empty() { String::new() } else { format!(" of rank {}", self.who) };
        let run = if self.run > 1 { format!(", run {}", self.run) } else { String::new() };
        format!("{}{who}{run}", self.dialect.name())
    }
}

/// Of one log, which then takes less than 512 MiB. 512 ranks that log 1,000 steps each have half as many.
pub(super) const MOST_STEPS: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The last of each holds the run that goes on.
    of: BTreeMap<(Dialect, String), Vec<Series>>,
    /// Steps of all series; restarts and the series themselves count as well.
    size: usize,
}

impl Gathered {
    /// Takes in a line; an error where the log is too long, since a part of its steps would be judged as the whole.
    pub(super) fn add(&mut self, reported: ReportedStep) -> io::Result<()> {
        // An empty series is as large as its name and four steps.
        let empty = 4 + reported.who.len() / size_of::<StepLine>();
        let runs = self.of.entry((reported.dialect, reported.who.clone())).or_default();
        let size = |runs: &[Series]| runs.last().map_or(0, |run| run.steps.len() + run.restarts.len());
        let (count, before) = (runs.len(), size(runs));
        take_in(runs, reported);
        match runs.len() > count {
            true => self.size += empty + size(runs),
            false => self.size = self.size + size(runs) - before,
        }
        if self.size > MOST_STEPS {
            let why = format!("more than {MOST_STEPS} steps in one log; split it and read the parts");
            return Err(io::Error::other(why));
        }
        Ok(())
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

fn take_in(runs: &mut Vec<Series>, reported: ReportedStep) {
    let number = runs.len() as u32;
    let Some(series) = runs.last_mut() else {
        let mut first = Series::new(&reported, 1);
        first.steps.push(reported.step);
        return runs.push(first);
    };
    let Some(last) = series.steps.last() else { return series.steps.push(reported.step) };
    let (place, here) = (last.place(), reported.step.place());
    // A run that goes on is to be as long as it was.
    let is_another = reported.step.epoch == last.epoch && reported.step.of != last.of && last.of.is_some();
    if is_another || series.steps.first().is_some_and(|first| here < first.place()) {
        let mut next = Series::new(&reported, number + 1);
        next.steps.push(reported.step);
        return runs.push(next);
    }
    if here > place {
        return series.steps.push(reported.step);
    }
    if here == place {
        let last = series.steps.len() - 1;
        match reported.dialect.is_a_bar() {
            true => series.steps[last] = reported.step,
            false => ranks::add_copy(&mut series.steps[last], &reported.step),
        }
        return;
    }
    // Unlabelled ranks log the same steps, and some are late by one.
    let late = series.steps.iter_mut().rev().nth(1).filter(|step| step.place() == here);
    if let Some(step) = late.filter(|step| step.copies > 0) {
        ranks::add_copy(step, &reported.step);
        return;
    }
    if series.steps.first().is_some_and(|first| here <= first.place()) {
        let mut next = Series::new(&reported, number + 1);
        next.steps.push(reported.step);
        return runs.push(next);
    }
    let kept = series.steps.partition_point(|step| step.place() < here);
    series.restarts.push(Restart {
        line: reported.step.line,
        from: place.1,
        to: here.1,
        repeated: (series.steps.len() - kept) as u64,
    });
    series.steps.truncate(kept);
    series.steps.push(reported.step);
}

/// Anomalies of the steps themselves.
pub(super) fn findings(series: &[Series]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let dialects: BTreeSet<Dialect> = series.iter().map(|series| series.dialect).collect();
    if dialects.len() > 1 {
        let names: Vec<String> =
            dialects.iter().map(|dialect| format!("the {} of {}", dialect.word(), dialect.name())).collect();
        let why = format!(
            "steps are logged in {} formats that count differently: {}; their statistics are kept apart",
            names.len(),
            names.join(" and ")
        );
        findings.push(Finding::new("training-two-meanings", why));
    }
    findings.extend(series.iter().flat_map(series_findings));
    findings.extend(ranks::slowest_of_programs(series));
    findings
}

/// How many steps two neighbouring lines are apart.
fn interval(pair: &[StepLine]) -> u64 {
    pair[1].iteration.saturating_sub(pair[0].iteration)
}

fn series_findings(series: &Series) -> Vec<Finding> {
    let shown = series.render();
    let word = series.dialect.word();
    let mut findings = Vec::new();
    if series.run > 1
        && let Some(first) = series.steps.first()
    {
        let why = format!(
            "{shown}: restarts at {word} {}: another run, with statistics of its own",
            first.iteration
        );
        findings.push(Finding::new("training-begins-anew", why).line(first.line));
    }
    for restart in &series.restarts {
        let why = format!(
            "{shown}: resumed at {word} {} after {}: {} repeated, the earlier ones are not counted",
            restart.to, restart.from, restart.repeated
        );
        findings.push(Finding::new("training-restart", why).line(restart.line));
    }
    let odd = |step: &&StepLine| step.loss.is_some_and(|loss| !loss.is_finite());
    if let Some(step) = series.steps.iter().find(odd) {
        let count = series.steps.iter().filter(odd).count();
        let loss = step.loss.unwrap_or(f64::NAN);
        let why = format!("{shown}: loss is {loss} at {word} {}, first of {count}", step.iteration);
        findings.push(Finding::new("training-loss-not-finite", why).line(step.line));
    }
    if let Some((step, count)) = series.loss_stops() {
        let (code, why) = match series.dialect {
            Dialect::Megatron => ("training-loss-not-finite", ": it leaves out a loss that is NaN"),
            _ => ("training-loss-missing", ""),
        };
        let why = format!("{shown}: no loss at {word} {}, first of {count}{why}", step.iteration);
        findings.push(Finding::new(code, why).line(step.line));
    }
    let odd = |step: &&StepLine| step.grad_norm.is_some_and(|norm| !norm.is_finite());
    if let Some(step) = series.steps.iter().find(odd) {
        let count = series.steps.iter().filter(odd).count();
        let norm = step.grad_norm.unwrap_or(f64::NAN);
        let why = format!("{shown}: gradient norm is {norm} at {word} {}, first of {count}", step.iteration);
        findings.push(Finding::new("training-grad-not-finite", why).line(step.line));
    }
    findings.extend(skipped(series, &shown));
    let lost: u64 = series.steps.iter().map(|step| step.nan.unwrap_or(0)).sum();
    if let Some(step) = series.steps.iter().find(|step| step.nan.is_some_and(|nan| nan > 0)) {
        let why =
            format!("{shown}: {lost} {} were NaN, the first at {}", series.dialect.plural(), step.iteration);
        findings.push(Finding::new("training-nan-iterations", why).line(step.line));
    }
    let back = series.steps.windows(2).find_map(|pair| {
        let (before, after) = (pair[0].moment_ms?, pair[1].moment_ms?);
        (after < before).then_some((&pair[1], before - after))
    });
    if let Some((step, by)) = back {
        let why = format!(
            "{shown}: clock goes back by {:.1} s at {word} {}: step times computed from it are invalid",
            by as f64 / 1000.0,
            step.iteration
        );
        findings.push(Finding::new("training-clock-back", why).line(step.line));
    }
    findings.extend(ranks::conflicting_lines(series));
    findings.extend(flops::conflicting_steps(series));
    findings.extend(sample_rate::conflicting_lines(series));
    findings.extend(missing(series, &shown));
    findings
}

/// Lines of which no step changed anything: a step alone may look for the scale of its losses, more of them do not train.
fn skipped(series: &Series, shown: &str) -> Option<Finding> {
    let steps = &series.steps;
    let first = steps.first()?.iteration;
    let first = steps.get(..2).map_or(first, |pair| first.min(interval(pair)));
    let intervals = std::iter::once(first).chain(steps.windows(2).map(interval));
    let all: Vec<&StepLine> = steps
        .iter()
        .zip(intervals)
        .filter(|(step, interval)| step.skipped.is_some_and(|skipped| skipped > 0 && skipped == *interval))
        .map(|(step, _)| step)
        .collect();
    let is_most = all.len() >= 4 && 2 * all.len() > steps.len();
    let step = all.iter().find(|step| is_most || step.skipped > Some(1))?;
    let why = format!(
        "{shown}: all {} up to {} were skipped and changed nothing, the first of {}",
        text::count(step.skipped.unwrap_or_default(), series.dialect.word()),
        step.iteration,
        text::count(all.len() as u64, "such line")
    );
    Some(Finding::new("training-all-skipped", why).line(step.line))
}

/// Steps that the program did not log, judged by the usual distance of its lines.
fn missing(series: &Series, shown: &str) -> Option<Finding> {
    let apart = |pair: &[StepLine]| {
        let same_epoch = pair[0].epoch == pair[1].epoch;
        same_epoch.then(|| pair[1].iteration - pair[0].iteration)
    };
    let mut usual: BTreeMap<u64, u64> = BTreeMap::new();
    // Many programs log their first step, and then round numbers: 1, 10, 20.
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
    let more = if more > 0 { format!(", {}", text::count(more as u64, "more gap")) } else { String::new() };
    let why = format!(
        "{shown}: {} follows {} {}, lines are usually {usual} apart{more}: steps between not logged or not readable",
        first[1].iteration,
        series.dialect.word(),
        first[0].iteration
    );
    Some(Finding::new("training-gap", why).line(first[1].line))
}

#[cfg(test)]
mod tests {
    use super::*;

    // What is kept of a log fits, also while a list of steps is moved to a place twice as large.
    const _: () = assert!(MOST_STEPS * size_of::<StepLine>() < 288 << 20);

    #[test]
    fn a_log_of_more_steps_than_memory_is_meant_for_is_refused() {
        let step = |who: &str, iteration: u64| ReportedStep {
            dialect: Dialect::Torchtitan,
            who: who.to_owned(),
            step: StepLine { iteration, ..StepLine::default() },
        };
        // Two series of it, of which each takes the place of four steps, and a restart.
        let most = MOST_STEPS as u64 - 10;
        let mut gathered = Gathered::default();
        assert!((1..=most).all(|iteration| gathered.add(step("", iteration)).is_ok()));
        // A copy takes nothing more, and steps that run again take the place of what they were.
        assert!(gathered.add(step("", most)).is_ok());
        assert!(gathered.add(step("", most - 9)).is_ok());
        assert!((most - 8..=most).all(|iteration| gathered.add(step("", iteration)).is_ok()));
        assert!(gathered.add(step("1", 1)).is_ok());
        assert!(gathered.add(step("2", 1)).is_err());
        let mut ranks = Gathered::default();
        let refused =
            (0..).find_map(|rank| ranks.add(step(&format!("rank {rank}"), 1)).err().map(|it| (rank, it)));
        let (rank, error) = refused.expect("a limit");
        assert_eq!(rank, MOST_STEPS / 5);
        assert_eq!(error.to_string(), "more than 1000000 steps in one log; split it and read the parts");
    }
}
