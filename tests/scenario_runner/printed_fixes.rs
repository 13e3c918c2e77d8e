//! Counts the errors of users that scenarios make: each row with `fix` makes one, and applies the fix as the message prints it.

use crate::scenario::{Scenario, Step};
use crate::{FOLDER, root, scenarios};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// Of 97 that newcomers made.
const FEWEST: usize = 90;

/// Fails where fewer apply their fix than should, or where a row has a fix that its message does not print.
pub(crate) fn count() {
    let (files, _) = scenarios(&root().join(FOLDER));
    let (mut applied, mut unprinted) = (0, Vec::new());
    for file in files {
        let (fixed, odd) = count_in_file(&file);
        applied += fixed;
        unprinted.extend(odd);
    }
    assert!(
        unprinted.is_empty(),
        "a fix that no message prints, or that no later step applies: {unprinted:#?}"
    );
    assert!(
        applied >= FEWEST,
        "{applied} errors of users apply the fix as it is printed, at least {FEWEST} should"
    );
    println!("{applied} errors of users apply the fix as it is printed");
}

/// Rows whose fix is printed and applied, and those that name a fix and do not.
fn count_in_file(path: &Path) -> (usize, Vec<String>) {
    let text = fs::read_to_string(path).expect("a scenario");
    let scenario = Scenario::read(text).expect("a scenario");
    let (mut fixed, mut odd) = (0, Vec::new());
    for (row, at) in scenario.each.iter().zip(1..).filter(|(row, _)| row.contains_key("fix")) {
        match prints_and_applies(&scenario, row) {
            true => fixed += 1,
            false => odd.push(format!("{}, row {at}", path.display())),
        }
    }
    (fixed, odd)
}

/// Whether a step that fails expects the fix in its message, and a later one that passes uses it.
fn prints_and_applies(scenario: &Scenario, row: &Table) -> bool {
    let has_fix = |text: &str| holds_fix(text, row, 2);
    let prints = |step: &Step| {
        let is_failure = step.exit.as_ref().is_some_and(|code| *code != Value::Integer(0));
        is_failure && step.err.list().iter().any(|text| has_fix(text))
    };
    let applies = |step: &Step| {
        let changes = step.replace.values().flatten().map(|[_, to]| to);
        let mut texts = step.run.iter().chain(step.files.values()).chain(changes);
        let is_passed = step.exit.as_ref().is_none_or(|code| *code == Value::Integer(0));
        step.run.is_some() && is_passed && texts.any(|text| has_fix(text))
    };
    let Some(made) = scenario.step.iter().position(prints) else { return false };
    scenario.step[made + 1..].iter().any(applies)
}

/// Whether `{fix}` stands in a text, or in a cell that the text names.
fn holds_fix(text: &str, row: &Table, depth: usize) -> bool {
    let in_cell = |(name, value): (&String, &Value)| {
        let is_named = text.contains(&format!("{{{name}}}"));
        is_named && value.as_str().is_some_and(|cell| holds_fix(cell, row, depth - 1))
    };
    text.contains("{fix}") || (depth > 0 && row.iter().any(in_cell))
}
