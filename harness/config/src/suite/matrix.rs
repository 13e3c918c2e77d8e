//! The one way to sweep: a case's `matrix` names keys of its workload and the values that each takes in turn.

use crate::toml_reader::value::Scalar;
use crate::toml_reader::{Raw, Table, Value};

/// More cases from one matrix than this are a slip.
const MOST: usize = 1000;

/// One value for every key of the matrix; empty for a case without one.
#[derive(Clone, Default)]
pub(super) struct Combination<'a> {
    values: Vec<(String, String, &'a Raw<'a>)>,
}

impl<'a> Combination<'a> {
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(key, ..)| key.as_str())
    }

    /// The values by key, as they stand in for the workload's own.
    pub(super) fn values(&self) -> Vec<(String, &'a Raw<'a>)> {
        self.values.iter().map(|(key, _, raw)| (key.clone(), *raw)).collect()
    }

    /// `{key}` replaced by this combination's value.
    pub(super) fn fill(&self, pattern: &str) -> String {
        let fill =
            |text: String, (key, shown, _): &(String, String, _)| text.replace(&format!("{{{key}}}"), shown);
        self.values.iter().fold(pattern.to_owned(), fill)
    }
}

/// Every combination, the last key varying fastest. A matrix with errors gives the first of each good key, so that
/// the rest of the case is still looked at.
pub(super) fn combinations<'a>(case: &Table<'a>) -> Vec<Combination<'a>> {
    let mut all = vec![Combination::default()];
    let Some(matrix) = case.get("matrix") else { return all };
    let Some(table) = matrix.table() else { return all };
    if table.is_empty() {
        matrix.diagnostic("the matrix has no keys");
    }
    for (key, span, value) in table.entries() {
        if key == "kind" {
            table.source().diagnostic(&span, "a matrix cannot vary the workload's `kind`");
            continue;
        }
        let values = values_of(&value);
        if values.is_empty() {
            continue;
        }
        if all.len().saturating_mul(values.len()) > MOST {
            matrix.diagnostic(format!("the matrix makes more than {MOST} cases"));
            return all.into_iter().take(1).collect();
        }
        let extend = |combination: &Combination<'a>, (shown, raw): &(String, &'a Raw<'a>)| {
            let mut combination = combination.clone();
            combination.values.push((key.to_owned(), shown.clone(), *raw));
            combination
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| extend(one, value))).collect();
    }
    all
}

fn values_of<'a>(value: &Value<'a>) -> Vec<(String, &'a Raw<'a>)> {
    let Some(list) = value.list() else { return Vec::new() };
    if list.is_empty() {
        value.diagnostic(format!("a matrix needs at least one value for `{}`", value.key()));
    }
    let mut values: Vec<(String, &Raw<'_>)> = Vec::new();
    for item in list {
        let shown = match item.scalar() {
            Some(Scalar::Text(text)) => text,
            Some(Scalar::Integer(integer)) => integer.to_string(),
            Some(Scalar::Boolean(boolean)) => boolean.to_string(),
            Some(Scalar::Float(float)) => float.to_string(),
            None => {
                item.diagnostic("matrix values must be texts, numbers or booleans");
                continue;
            }
        };
        if values.iter().any(|(other, _)| *other == shown) {
            item.diagnostic(format!("duplicate matrix value: `{}`", shown.escape_debug()));
            continue;
        }
        values.push((shown, item.raw()));
    }
    values
}
