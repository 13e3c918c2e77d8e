//! Reads the requirements of an inventory on its nodes: bounds on the facts of a probe, by name.

use super::form;
use crate::facts::{Bound, FACTS, FactType, Requirement, fact};
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use base::suggest::nearest;
use model::artefact::Value as FactValue;

pub(super) fn requirements(table: &Table<'_>) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for (name, span, value) in table.entries() {
        let kind = match fact(name) {
            Some(fact) => Asked::Fact(fact.kind),
            None if name == Requirement::CLOCK_OFFSET_MS => Asked::ClockMs,
            None => {
                let names = FACTS.iter().map(|fact| fact.name).chain([Requirement::CLOCK_OFFSET_MS]);
                let message = format!("unknown fact: `{}`", name.escape_debug());
                let suggestion = match nearest(name, names.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known: `{}`", names.collect::<Vec<_>>().join("`, `")),
                };
                table.source().diagnostic_with(&span, message, suggestion);
                continue;
            }
        };
        let Some(bounds) = value.table() else { continue };
        let before = requirements.len();
        let asked = |bound: Bound| Requirement { fact: name.to_owned(), bound };
        let is_ordered = !matches!(kind, Asked::Fact(FactType::Text));
        let is_list = matches!(kind, Asked::Fact(FactType::Names));
        let may_be_at_least = is_ordered && !matches!(kind, Asked::ClockMs);
        if may_be_at_least && let Some(value) = bounds.get("at_least") {
            requirements.extend(kind.read(&value).map(Bound::AtLeast).map(asked));
        }
        if is_ordered && let Some(value) = bounds.get("at_most") {
            requirements.extend(kind.read(&value).map(Bound::AtMost).map(asked));
        }
        if may_be_at_least | !is_ordered
            && let Some(value) = bounds.get("equals")
        {
            requirements.extend(kind.read(&value).map(Bound::Equals).map(asked));
        }
        if is_list && let Some(value) = bounds.get("holds") {
            requirements.push(asked(Bound::Holds(value.texts())));
        }
        bounds.close(|| form::bounds(kind));
        if before == requirements.len() && bounds.is_empty() {
            value.diagnostic(format!("`{name}` has no bound"));
        }
    }
    requirements
}

#[derive(Clone, Copy)]
pub(super) enum Asked {
    Fact(FactType),
    ClockMs,
}

impl Asked {
    fn read(self, value: &Value<'_>) -> Option<FactValue> {
        let whole = || value.whole(0..=u64::MAX).map(FactValue::Number);
        match self {
            Asked::ClockMs | Asked::Fact(FactType::Count | FactType::Names) => whole(),
            Asked::Fact(FactType::Bytes) if value.is_text("unlimited") => value.text().map(FactValue::Text),
            Asked::Fact(FactType::Bytes) => size_of(value).map(FactValue::Number),
            Asked::Fact(FactType::Text) => value.non_empty_text().map(FactValue::Text),
            Asked::Fact(FactType::Version) => {
                let text = value.non_empty_text()?;
                if !text.starts_with(|c: char| c.is_ascii_digit()) {
                    value.diagnostic_with(
                        format!("not a version: `{}`", text.escape_debug()),
                        "write a text that begins with a number, such as `\"570.133\"`",
                    );
                    return None;
                }
                Some(FactValue::Text(text))
            }
        }
    }
}
