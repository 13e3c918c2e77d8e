//! The form of a table that people write: its keys, what each holds, and what it is for. Readers name the form of every
//! table that they read; JSON Schemas and the tables of the reference are made from it.

use metric::unit::Unit;
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// What a table may hold.
#[derive(Debug, Clone, Default)]
pub struct Form {
    /// Those that it has whatever else stands in it, in the order in which they are shown.
    pub keys: Vec<Key>,
    /// Further keys, by one of those.
    pub variants: Option<Variants>,
    /// The key with a table of lists, and the key of the table whose values they stand in for.
    pub matrix: Option<(&'static str, &'static str)>,
    /// A key that must be there, unless a key of another table has a value: the key; the table, its key and the value.
    pub needed_unless: Option<(&'static str, [&'static str; 3])>,
}

/// Further keys, by another key.
#[derive(Debug, Clone)]
pub struct Variants {
    /// The key that decides.
    pub by: &'static str,
    /// At most one condition holds.
    pub forms: Vec<(Condition, Form)>,
}

/// When a table has the keys of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The key has this value.
    Is(&'static str),
    /// The key is there.
    Present,
    /// The key is not there.
    Absent,
}

/// A key of a table.
#[derive(Debug, Clone)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What it holds.
    pub value: Type,
    /// Whether it can be left out.
    pub need: Need,
}

/// Whether a key can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It cannot.
    Needed,
    /// This holds then, as TOML or in words.
    Default(&'static str),
    /// Nothing holds then.
    Optional,
}

/// What a key holds.
#[derive(Debug, Clone)]
pub enum Type {
    /// Any text.
    Text,
    /// A text that this regular expression finds.
    Pattern(&'static str),
    /// `true` or `false`.
    Boolean,
    /// `false` only.
    Off,
    /// A whole number.
    Whole(RangeInclusive<u64>),
    /// Whole or not.
    Number,
    /// Bytes: `"1GiB"`, or a whole number.
    Size,
    /// A number, or a text of a number and its unit.
    Quantity,
    /// One of these words.
    OneOf(fn(&Catalogue) -> Vec<String>),
    /// A list of such.
    List(Box<Type>),
    /// A table of this form.
    Table(Box<Form>),
    /// A table whose keys are the user's own.
    Map(Box<Type>),
    /// One of these.
    Either(Vec<Type>),
}

impl Type {
    /// A whole number that nothing but its reader bounds.
    pub const WHOLE: Type = Type::Whole(0..=u64::MAX);

    /// A list of such.
    pub fn list(of: Type) -> Type {
        Type::List(Box::new(of))
    }

    /// A list of texts.
    pub fn texts() -> Type {
        Type::list(Type::Text)
    }

    /// `[[key]]`.
    pub fn tables(form: Form) -> Type {
        Type::list(Type::table(form))
    }

    /// `[key]`.
    pub fn table(form: Form) -> Type {
        Type::Table(Box::new(form))
    }

    /// A table whose keys are the user's own.
    pub fn map(of: Type) -> Type {
        Type::Map(Box::new(of))
    }

    /// A table whose keys stand in a list of the code's.
    pub fn keys(keys: impl IntoIterator<Item = Key>) -> Type {
        Type::table(Form::new(keys))
    }
}

/// The words of a list that a reader chooses from.
pub fn names<T>(choices: &[(&str, T)]) -> Vec<String> {
    choices.iter().map(|(word, _)| (*word).to_owned()).collect()
}

/// The units that numbers have.
pub fn units(_: &Catalogue) -> Vec<String> {
    Unit::ALL.iter().map(|unit| unit.name().to_owned()).collect()
}

impl Type {
    /// The form of the table, or of the tables of a list or map.
    pub fn form(&self) -> Option<&Form> {
        match self {
            Type::Table(form) => Some(form),
            Type::List(of) | Type::Map(of) => of.form(),
            Type::Either(types) => types.iter().find_map(Type::form),
            _ => None,
        }
    }

    /// The words that it, or an item of its list, is one of.
    pub fn choices(&self, catalogue: &Catalogue) -> Vec<String> {
        match self {
            Type::OneOf(words) => words(catalogue),
            Type::List(of) => of.choices(catalogue),
            Type::Either(types) => types.iter().flat_map(|of| of.choices(catalogue)).collect(),
            _ => Vec::new(),
        }
    }
}

impl Key {
    /// It must be there.
    pub const fn needed(name: &'static str, value: Type, about: &'static str) -> Key {
        Key { name, about, value, need: Need::Needed }
    }

    /// Where it is absent, `default` holds.
    pub const fn usual(name: &'static str, default: &'static str, value: Type, about: &'static str) -> Key {
        Key { name, about, value, need: Need::Default(default) }
    }

    /// It may be absent.
    pub const fn optional(name: &'static str, value: Type, about: &'static str) -> Key {
        Key { name, about, value, need: Need::Optional }
    }
}

impl Condition {
    /// As a part of a path to a form.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Is(word) => word,
            Condition::Present => "present",
            Condition::Absent => "absent",
        }
    }
}

impl Form {
    /// The form and those below it, by their paths: `case`, `case.workload`, `case.workload.kind=nccl-tests`.
    pub fn all(self, path: &str) -> Vec<(String, Form)> {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let mut all: Vec<(String, Form)> = Vec::new();
        for key in &self.keys {
            let form = key.value.form().cloned();
            all.extend(form.into_iter().flat_map(|form| form.all(&below(key.name))));
        }
        for (condition, form) in self.variants.iter().flat_map(|variants| &variants.forms) {
            let by = self.variants.as_ref().map_or("", |variants| variants.by);
            all.extend(form.clone().all(&below(&format!("{by}={}", condition.name()))));
        }
        all.insert(0, (path.to_owned(), self));
        all
    }

    /// A table with these keys.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Form {
        Form { keys: keys.into_iter().collect(), ..Form::default() }
    }

    /// The same, with further keys by the value of one of them.
    #[must_use]
    pub fn by(self, by: &'static str, forms: impl IntoIterator<Item = (Condition, Form)>) -> Form {
        Form { variants: Some(Variants { by, forms: forms.into_iter().collect() }), ..self }
    }

    /// The same with further keys behind its own.
    #[must_use]
    pub fn and(mut self, keys: impl IntoIterator<Item = Key>) -> Form {
        self.keys.extend(keys);
        self
    }

    /// Every key of the table and of all variants.
    pub(crate) fn all_keys(&self) -> Vec<&Key> {
        let variants = self.variants.iter().flat_map(|variants| &variants.forms);
        self.keys.iter().chain(variants.flat_map(|(_, form)| form.all_keys())).collect()
    }

    /// The keys of a table in which `find` gives the value of a key, where it is a text; `None` where it fits no variant.
    pub(crate) fn keys_of(
        &self,
        find: &dyn Fn(&str) -> Option<Option<String>>,
    ) -> Option<BTreeSet<&'static str>> {
        let mut keys: BTreeSet<&'static str> = self.keys.iter().map(|key| key.name).collect();
        let Some(variants) = &self.variants else { return Some(keys) };
        let value = find(variants.by);
        let holds = |condition: &Condition| match (condition, &value) {
            (Condition::Is(word), Some(Some(text))) => text == word,
            (Condition::Present, Some(_)) | (Condition::Absent, None) => true,
            _ => false,
        };
        let (_, form) = variants.forms.iter().find(|(condition, _)| holds(condition))?;
        keys.extend(form.keys_of(find)?);
        Some(keys)
    }
}
