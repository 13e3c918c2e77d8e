//! Reads what inventories and suites ask of nodes, `[probe]`: bounds on the facts of a probe, by name; and its form.

use super::{Bound, FACTS, FactType, Requirement, fact};
use crate::form::{Form, Key, Type};
use crate::toml_reader::quantity::size_of;
use crate::toml_reader::{Table, Value};
use base::suggest::nearest;
use model::artefact::Value as FactValue;

pub(crate) fn requirements(table: &Table<'_>) -> Vec<Requirement> {
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
        bounds.close(|| bounds_of(kind));
        if before == requirements.len() && bounds.is_empty() {
            value.diagnostic(format!("`{name}` has no bound"));
        }
    }
    requirements
}

#[derive(Clone, Copy)]
enum Asked {
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

/// `[probe]`: every fact.
pub(crate) fn requirement_keys() -> impl Iterator<Item = Key> {
    let facts = FACTS
        .iter()
        .map(|fact| Key::optional(fact.name, Type::table(bounds_of(Asked::Fact(fact.kind))), fact.about));
    let clock = Type::table(bounds_of(Asked::ClockMs));
    facts.chain([Key::optional(
        Requirement::CLOCK_OFFSET_MS,
        clock,
        "how far its clock may be off, in milliseconds",
    )])
}

/// The bounds that a fact can have.
fn bounds_of(of: Asked) -> Form {
    let value = || match of {
        Asked::Fact(FactType::Text) => Type::Text,
        Asked::Fact(FactType::Version) => Type::Pattern("^[0-9]"),
        Asked::Fact(FactType::Bytes) => {
            Type::Either(vec![Type::Size, Type::OneOf(|_| vec!["unlimited".to_owned()])])
        }
        Asked::ClockMs | Asked::Fact(FactType::Count | FactType::Names) => Type::WHOLE,
    };
    let at_least = Key::optional("at_least", value(), "so much, or more");
    let at_most = Key::optional("at_most", value(), "so much, or less");
    let equals = Key::optional("equals", value(), "exactly this");
    let holds = Key::optional("holds", Type::texts(), "names that must be in the list");
    Form::new(match of {
        Asked::ClockMs => vec![at_most],
        Asked::Fact(FactType::Text) => vec![equals],
        Asked::Fact(FactType::Names) => vec![at_least, at_most, equals, holds],
        Asked::Fact(_) => vec![at_least, at_most, equals],
    })
}
