//! What holds between the cases of a suite: names are unique, dependencies exist and form no cycle.

use super::Case;
use super::read::Places;
use crate::toml_reader::Source;
use base::suggest::nearest;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(source: &Source<'_>, cases: &[(Case, Places)]) {
    // Folders of cases may be on file systems that do not distinguish `A` from `a`.
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    // A case whose name could not be read is nameless here.
    for (case, places) in cases.iter().filter(|(case, _)| !case.name.is_empty()) {
        match lines.get(&case.name.to_lowercase()) {
            Some(line) => {
                let message = format!("duplicate case name, first used in line {line}: `{}`", case.name);
                let other = format!("write another, such as `{}-2`", case.name);
                source.diagnostic_with(&places.name, message, other);
            }
            None => {
                lines.insert(case.name.to_lowercase(), case.line);
            }
        }
    }
    let names: BTreeSet<&str> = cases.iter().map(|(case, _)| case.name.as_str()).collect();
    for (case, places) in cases {
        for after in &case.after {
            if names.contains(after.as_str()) {
                continue;
            }
            // A case that could not be read may be the one meant, but its own error is reported too.
            let message = format!("`after` names no case of this suite: `{}`", after.escape_debug());
            match nearest(after, names.iter().copied()) {
                Some(near) => {
                    source.diagnostic_with(&places.after, message, format!("did you mean `{near}`?"))
                }
                None => source.diagnostic(&places.after, message),
            }
        }
    }
    for (case, places) in on_a_cycle(cases) {
        source.diagnostic(&places.after, format!("`after` forms a cycle through case `{}`", case.name));
    }
}

/// The cases from which `after` leads back to themselves. What can be finished is taken away, round by round, from
/// both ends; what then remains lies on a circle or between two.
fn on_a_cycle(cases: &[(Case, Places)]) -> Vec<&(Case, Places)> {
    let mut rest: Vec<&(Case, Places)> = cases.iter().collect();
    loop {
        let before = rest.len();
        let names: BTreeSet<&str> = rest.iter().map(|(case, _)| case.name.as_str()).collect();
        let wanted: BTreeSet<&str> =
            rest.iter().flat_map(|(case, _)| case.after.iter().map(String::as_str)).collect();
        rest.retain(|(case, _)| {
            let waits = case.after.iter().any(|name| names.contains(name.as_str()));
            waits && wanted.contains(case.name.as_str())
        });
        if rest.len() == before {
            return rest;
        }
    }
}
