//! Manifests of Kubernetes and Helm values: what the API server would refuse, and what it would accept and somebody would
//! regret. They are read and never applied; add a rule in `rules`.

mod fields;
mod objects;
mod rules;
#[cfg(test)]
mod tests;
mod yaml;

pub use rules::{RULES, Rule, Weight};

use super::Source;
use super::script;
use config::diagnostic::Diagnostic;
use config::envlint::Linted;
use objects::{Document, Manifests, commands};
use rules::{Findings, YAML, corrected};
use yaml::{Position, SyntaxError};

/// The findings of files that may refer to each other, by file and line.
pub fn manifests(sources: &[Source]) -> Linted {
    let mut documents = Vec::new();
    let mut findings = Findings::default();
    for (file, source) in sources.iter().enumerate() {
        match yaml::documents(&source.text, file) {
            Ok(roots) => {
                documents
                    .extend(roots.into_iter().flat_map(|root| Document::new(root, &source.name, corrected)));
            }
            Err(error) => unread(source, error, &mut findings),
        }
    }
    let manifests = Manifests { documents };
    findings.all.extend(rules::check(&manifests).all);
    let mut linted = Linted::default();
    let is_nothing =
        |document: &Document| document.kind.is_empty() && !document.is_values && document.pods.is_empty();
    if findings.all.is_empty()
        && manifests.documents.iter().all(is_nothing)
        && let Some(first) = sources.first()
    {
        let what = "no object of Kubernetes and no Helm values in it";
        linted.diagnostics.push(Diagnostic::in_file(&first.name, what));
    }
    for finding in findings.all {
        let Some(source) = sources.get(finding.place.file) else { continue };
        let Position { line, column, .. } = finding.place;
        let diagnostic = Diagnostic::at(&source.name, line, column, finding.message).suggest(finding.advice);
        match finding.weight {
            Weight::Error => linted.diagnostics.push(diagnostic),
            Weight::Warning => linted.warnings.push(diagnostic),
            Weight::Note => linted.notes.push(diagnostic),
        }
    }
    super::append(&mut linted, lint_commands(&manifests, sources));
    linted
}

fn unread(source: &Source, error: SyntaxError, findings: &mut Findings) {
    let is_template = source.text.contains("{{") && source.text.contains("}}");
    match is_template {
        true => findings.add(
            &YAML,
            error.place,
            "a Helm template",
            "render it by `helm template` and check what it prints",
        ),
        false => findings.add(&YAML, error.place, error.message, error.advice),
    }
}

/// Of errors, of warnings and of notes.
const MOST_OF_COMMANDS: usize = 500;

/// What `lint script` finds in the commands and the environment of containers.
fn lint_commands(manifests: &Manifests, sources: &[Source]) -> Linted {
    let mut all = Linted::default();
    for container in
        manifests.documents.iter().flat_map(|document| &document.pods).flat_map(|pod| pod.all_containers())
    {
        let Some(source) = sources.get(container.place.file) else { continue };
        super::append(&mut all, script::commands(&source.name, commands(container)));
    }
    for of_kind in [&mut all.diagnostics, &mut all.warnings, &mut all.notes] {
        of_kind.sort();
        of_kind.dedup();
        of_kind.truncate(MOST_OF_COMMANDS);
    }
    all
}
