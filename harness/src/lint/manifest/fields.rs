//! The fields that objects of Kubernetes have, by the table `fields.txt`; `tests/oracle/manifest_fields.py` makes it and says
//! what its letters mean.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The oldest and the newest minor version of Kubernetes in the table.
pub(super) const VERSIONS: (u8, u8) = (29, 37);

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Integer,
    Number,
    Bool,
    Quantity,
    IntegerOrText,
    Anything,
    /// One of the texts between bars.
    OneOf(&'static str),
    List(&'static str),
    Map(&'static str),
    Fields(&'static str),
}

/// One field of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) form: Form,
    pub(super) is_required: bool,
    /// Minor versions that have it.
    pub(super) versions: (u8, u8),
}

/// A version in which a kind is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    pub(super) api_version: &'static str,
    pub(super) fields: &'static str,
    pub(super) versions: (u8, u8),
}

#[derive(Debug, Default)]
pub(super) struct Table {
    kinds: BTreeMap<&'static str, Vec<Served>>,
    types: BTreeMap<&'static str, BTreeMap<&'static str, Field>>,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("fields.txt")));

impl Table {
    fn read(text: &'static str) -> Table {
        let mut table = Table::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("kind"), Some(kind)) => {
                    let (Some(api_version), Some(fields)) = (words.next(), words.next()) else { continue };
                    let versions = words.next().map_or(VERSIONS, dates);
                    table.kinds.entry(kind).or_default().push(Served { api_version, fields, versions });
                }
                (Some("type"), Some(name)) => {
                    table.types.insert(name, words.filter_map(field).collect());
                }
                _ => {}
            }
        }
        table
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }

    /// In which versions a kind is served; the usual one first.
    pub(super) fn served(&self, kind: &str) -> &[Served] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The fields of a type; none where anything may stand in it.
    pub(super) fn fields(&self, of: &str) -> Option<&BTreeMap<&'static str, Field>> {
        self.types.get(of)
    }
}

/// `@31` or `@29-33`.
fn dates(text: &str) -> (u8, u8) {
    let text = text.trim_start_matches('@');
    let (first, last) = text.split_once('-').unwrap_or((text, ""));
    (first.parse().unwrap_or(VERSIONS.0), last.parse().unwrap_or(VERSIONS.1))
}

fn field(word: &'static str) -> Option<(&'static str, Field)> {
    let (name, rest) = word.split_once(':')?;
    let (form, versions) = match rest.rfind('@') {
        Some(at) => (&rest[..at], dates(&rest[at..])),
        None => (rest, VERSIONS),
    };
    let is_required = name.ends_with('!');
    Some((name.trim_end_matches('!'), Field { form: Form::parse(form), is_required, versions }))
}

impl Form {
    pub(super) fn parse(text: &'static str) -> Form {
        if let Some(values) = text.strip_prefix("s(").and_then(|rest| rest.strip_suffix(')')) {
            return Form::OneOf(values);
        }
        match text.split_at_checked(1) {
            Some(("[", of)) => Form::List(of),
            Some(("{", of)) => Form::Map(of),
            Some((letter, "")) => match letter {
                "s" => Form::Text,
                "i" => Form::Integer,
                "n" => Form::Number,
                "b" => Form::Bool,
                "q" => Form::Quantity,
                "x" => Form::IntegerOrText,
                _ => Form::Anything,
            },
            _ => Form::Fields(text),
        }
    }

    /// What may stand there, for messages.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Form::Text | Form::OneOf(_) => "a string",
            Form::Integer => "an integer",
            Form::Number => "a number",
            Form::Bool => "`true` or `false`",
            Form::Quantity => "a quantity, such as 8 or 5120Mi",
            Form::IntegerOrText => "an integer or a string",
            Form::List(_) => "a list",
            Form::Map(_) | Form::Fields(_) => "a map",
            Form::Anything => "anything",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_fields_of_pods_and_jobs_with_their_versions() {
        let of = |name: &str, field: &str| TABLE.fields(name).and_then(|fields| fields.get(field)).copied();
        let containers = of("PodSpec", "containers").expect("a field");
        assert!(containers.is_required && containers.form == Form::List("Container"));
        assert_eq!(of("PodSpec", "hostnameOverride").map(|field| field.versions), Some((34, 37)));
        assert_eq!(of("PodSpec", "nodeSelector").map(|field| field.form), Some(Form::Map("s")));
        assert_eq!(TABLE.served("MPIJob")[0].api_version, "kubeflow.org/v2beta1");
        assert!(of("MPIJobSpec", "slotsPerWorker").is_some() && TABLE.kinds().count() > 35);
    }

    #[test]
    fn every_type_that_a_field_names_is_in_the_table_but_for_statuses() {
        let inner = |text: &'static str| match Form::parse(text) {
            Form::List(of) | Form::Map(of) => Form::parse(of),
            form => form,
        };
        for (name, fields) in &TABLE.types {
            for (field, of) in fields {
                let form = match of.form {
                    Form::List(of) | Form::Map(of) => inner(of),
                    form => form,
                };
                if let Form::Fields(of) = form {
                    assert!(of.ends_with("Status") || TABLE.fields(of).is_some(), "{name}.{field}: {of}");
                }
            }
        }
    }
}
