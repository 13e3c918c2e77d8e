//! What limits the work on the GPUs of some reports, the largest effect first: rules over the tables of recipes. A rule
//! computes no figure of its own from a report, so that a recipe shows every number of a finding.

mod one_run;
mod rows;
mod rules;
#[cfg(test)]
mod tests;

pub use one_run::started_apart;

use crate::duration;
use crate::recipe::of_reports::{Input, Outcome, Progress, ReportRecipe, Survey, find, survey};
use crate::report::Arguments;
use rows::Tables;
use rules::RULES;
use serde::Serialize;
use std::collections::BTreeSet;

/// What was found in some reports.
#[derive(Debug, Default, Serialize)]
pub struct Diagnosis {
    /// The largest effect first.
    pub findings: Vec<LimitFound>,
    /// That the reports are not of one run, and why: each is to be diagnosed by itself.
    pub apart: Option<String>,
    /// What limits what can be said, such as events that were lost.
    pub notes: Vec<String>,
    /// Reports that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// GPUs of processes that ran something.
    pub gpus: usize,
    /// Sum of their times from the first operation to the last, in nanoseconds.
    pub window_ns: f64,
    /// Whether any report is of a simulated cluster.
    pub simulated: bool,
}

/// One thing that limits the work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitFound {
    /// Stable, such as `exposed-communication`.
    pub code: &'static str,
    /// The time that could be won at most, as a part of the time of all GPUs.
    pub share: f64,
    /// One sentence with its number.
    pub what: String,
    /// Where it is largest, with figures.
    pub evidence: Vec<String>,
    /// What to change.
    pub change: &'static str,
    /// The recipe and the table that show it.
    pub recipe: &'static str,
    /// Of the recipe.
    pub table: &'static str,
}

/// Less work than this is no sample of anything.
const LEAST_WINDOW_NS: f64 = 1e6;

/// Applies every rule to what the recipes say of the reports.
pub fn diagnose(
    inputs: &[Input],
    jobs: usize,
    progress: &(dyn Fn(&Progress) + Sync),
) -> Result<Diagnosis, String> {
    let asked = recipes()?;
    let outcomes = survey(&Survey { asked: &asked, inputs, filter: None, jobs, progress })?;
    Ok(by_outcomes(inputs, &outcomes))
}

/// The same where the recipes of `recipes()` were computed already. Reports of several runs have no findings together.
pub fn by_outcomes(inputs: &[Input], outcomes: &[Outcome]) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for outcome in outcomes {
        for one in &outcome.unreadable {
            if !diagnosis.unreadable.contains(one) {
                diagnosis.unreadable.push(one.clone());
            }
        }
    }
    diagnosis.simulated = outcomes.iter().any(|outcome| outcome.simulated);
    diagnosis.apart = one_run::apart(inputs, outcomes);
    if diagnosis.apart.is_some() {
        return diagnosis;
    }
    let tables = Tables { outcomes };
    diagnosis.gpus = tables.gpus().len();
    diagnosis.window_ns = tables.window_ns();
    diagnosis.notes.extend(rules::lost_events(&tables));
    diagnosis.notes.extend(rules::unknown_overlap(&tables));
    if diagnosis.gpus > 0 && diagnosis.window_ns < LEAST_WINDOW_NS {
        diagnosis.notes.push(format!("too little work to diagnose: {}", duration::time(diagnosis.window_ns)));
        return diagnosis;
    }
    for rule in RULES {
        diagnosis.findings.extend((rule.find)(&tables).map(|found| LimitFound {
            code: rule.code,
            share: found.share,
            what: found.what,
            evidence: found.evidence,
            change: rule.change,
            recipe: rule.recipe,
            table: rule.table,
        }));
    }
    rules::drop_explained(&mut diagnosis.findings);
    if rules::is_benchmark(&tables) {
        rules::keep_for_benchmark(&mut diagnosis);
    }
    diagnosis.findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    diagnosis
}

/// Those that the rules read, each once, with its arguments.
pub fn recipes() -> Result<Vec<(ReportRecipe<'static>, Arguments)>, String> {
    let names: BTreeSet<&str> = RULES.iter().flat_map(|rule| rule.reads).copied().collect();
    let with_arguments = names.into_iter().map(|words| {
        let mut words = words.split(':');
        let name = words.next().unwrap_or_default();
        let recipe = find(name).ok_or_else(|| format!("no recipe `{name}`"))?;
        let words: Vec<&str> = words.collect();
        let arguments = Arguments::read(recipe.name, recipe.arguments, &words);
        Ok((recipe, arguments.map_err(|error| error.to_string())?))
    });
    with_arguments.collect()
}

/// Of a recipe by its name, among all that were computed.
fn outcome<'a>(outcomes: &'a [Outcome], name: &str) -> Option<&'a Outcome> {
    outcomes.iter().find(|outcome| outcome.recipe == name)
}
