//! The environments that suites and inventories set, each finding with its place in the file.

use super::{Severity, Versions, lint};
use crate::diagnostic::Diagnostic;
use crate::toml_reader::{self, Table};
use std::ops::Range;

/// What was found in a file: what keeps it from running, and what a person should know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linted {
    /// What keeps it from running: `Severity::Breaks`.
    pub diagnostics: Vec<Diagnostic>,
    /// What does harm, or not what was meant: `Severity::Warning`.
    pub warnings: Vec<Diagnostic>,
    /// What is superfluous or unknown: `Severity::Note`.
    pub notes: Vec<Diagnostic>,
}

/// `text` is a suite that could be read.
pub fn lint_suite(text: &str, file: &str, versions: &Versions) -> Linted {
    linted(text, file, versions, |table, take| {
        for case in table.get("case").and_then(|value| value.list()).unwrap_or_default() {
            let workload = case.table().and_then(|case| case.get("workload"));
            if let Some(workload) = workload.and_then(|workload| workload.table()) {
                take(&workload);
            }
        }
    })
}

/// `text` is an inventory that could be read.
pub fn lint_inventory(text: &str, file: &str, versions: &Versions) -> Linted {
    linted(text, file, versions, |table, take| take(table))
}

/// `visit` hands on every table that has an `environment`.
fn linted(
    text: &str,
    file: &str,
    versions: &Versions,
    visit: impl Fn(&Table<'_>, &mut dyn FnMut(&Table<'_>)),
) -> Linted {
    let of = |severity: Severity| {
        let read = toml_reader::read(text, file, |root| {
            visit(root, &mut |table| report(table, versions, severity));
            Some(())
        });
        read.err().map(|diagnostics| diagnostics.0).unwrap_or_default()
    };
    Linted { diagnostics: of(Severity::Breaks), warnings: of(Severity::Warning), notes: of(Severity::Note) }
}

fn report(table: &Table<'_>, versions: &Versions, severity: Severity) {
    let Some(environment) = table.get("environment").and_then(|value| value.table()) else { return };
    let mut env: Vec<(&str, String)> = Vec::new();
    let mut places: Vec<Range<usize>> = Vec::new();
    for (name, place, value) in environment.entries() {
        let Some(text) = value.text() else { continue };
        env.push((name, text));
        places.push(place);
    }
    for finding in lint(&env, versions).into_iter().filter(|finding| finding.severity == severity) {
        match places.get(finding.at) {
            Some(place) => environment.source().diagnostic_with(place, finding.message, finding.advice),
            None => environment.diagnostic_with(finding.message, finding.advice),
        }
    }
}
