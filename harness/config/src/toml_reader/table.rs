//! A table being read: remembers which keys were asked for, so that all others are errors.

use super::{Raw, Source, Value, alike, renamed};
use crate::form::Form;
use base::suggest::nearest;
use std::cell::RefCell;
use std::ops::Range;
use toml::de::DeTable;

/// A TOML table, and the keys that were asked for.
pub struct Table<'a> {
    source: &'a Source<'a>,
    raw: &'a DeTable<'a>,
    span: Range<usize>,
    /// Values that stand in for keys of the table, as a matrix gives them.
    instead: Vec<(String, &'a Raw<'a>)>,
    asked: RefCell<Vec<&'static str>>,
    /// What to do instead where a list stands for a single value.
    no_lists: Option<&'static str>,
}

impl<'a> Table<'a> {
    /// The table at `span`, of which nothing was asked yet.
    pub(crate) fn root(source: &'a Source<'a>, raw: &'a DeTable<'a>, span: Range<usize>) -> Table<'a> {
        let start = span.start.min(span.end);
        Table {
            source,
            raw,
            span: start..span.end,
            instead: Vec::new(),
            asked: RefCell::default(),
            no_lists: None,
        }
    }

    /// The same table with other values for some keys.
    pub(crate) fn with(mut self, instead: Vec<(String, &'a Raw<'a>)>) -> Table<'a> {
        self.instead = instead;
        self
    }

    /// What to suggest where a list stands for a single value; `KEY` becomes the key.
    pub(crate) fn no_lists(mut self, suggestion: &'static str) -> Table<'a> {
        self.no_lists = Some(suggestion);
        self
    }

    /// The file that it is in.
    pub fn source(&self) -> &'a Source<'a> {
        self.source
    }

    /// Where the table begins, from 1.
    pub(crate) fn line(&self) -> usize {
        self.source.line(&self.span)
    }

    /// The key's value, under an older spelling too; none where absent.
    pub fn get(&self, key: &'static str) -> Option<Value<'a>> {
        self.asked.borrow_mut().push(key);
        let raw = self.find(key).or_else(|| self.find(renamed::old_key(key)?))?;
        Some(Value::new(self.source, key.to_owned(), raw, self.no_lists))
    }

    fn find(&self, key: &str) -> Option<&'a Raw<'a>> {
        let instead = self.instead.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw);
        instead.or_else(|| self.raw.get(key))
    }

    /// As `get`, and an error where the key is absent.
    pub fn need(&self, key: &'static str) -> Option<Value<'a>> {
        let value = self.get(key);
        match (&value, alike::example(key)) {
            (Some(_), _) => {}
            (None, Some(example)) => self.missing(key, example),
            (None, None) if self.source.is_broken() => {}
            (None, None) => self.diagnostic(format!("missing key: `{key}`")),
        }
        value
    }

    /// An error: a key that must stand is absent, and this is how it is written.
    pub(crate) fn missing(&self, key: &str, example: &str) {
        if !self.source.is_broken() {
            self.diagnostic_with(format!("missing key: `{key}`"), example);
        }
    }

    /// Every key that was not asked for is an error. To be called once all keys were, which are those of the form: builds
    /// for tests compare them.
    pub fn close(&self, form: impl FnOnce() -> Form) {
        let asked = self.asked.borrow();
        if cfg!(debug_assertions) {
            self.compare(&asked, &form());
        }
        let instead = self.instead.iter().map(|(name, raw)| (name.as_str(), raw.span()));
        let own = self.raw.iter().map(|(key, _)| (key.get_ref().as_ref(), key.span()));
        for (name, span) in own.chain(instead) {
            // An older spelling beside the new one is an error: only one of them was read.
            let is_older = |key: &&str| renamed::old_key(key) == Some(name) && self.find(key).is_none();
            if asked.contains(&name) || asked.iter().any(is_older) {
                continue;
            }
            let message = format!("unknown key: `{}`", name.escape_debug());
            match nearest(name, asked.iter().copied()) {
                _ if alike::key(name, &asked).is_some() => {
                    let suggestion = alike::key(name, &asked).unwrap_or_default();
                    self.source.diagnostic_with(&span, message, suggestion);
                }
                Some(near) => self.source.diagnostic_with(&span, message, format!("did you mean `{near}`?")),
                None => {
                    // A key can be read twice; it is listed once, at its first place.
                    let mut keys: Vec<String> = Vec::new();
                    for key in asked.iter().map(|key| format!("`{key}`")) {
                        if !keys.contains(&key) {
                            keys.push(key);
                        }
                    }
                    self.source.diagnostic_with(&span, message, format!("there are {}", keys.join(", ")));
                }
            }
        }
    }

    /// A key without a place in the form, or one of the form that the reader does not know, is an error of this program.
    /// A reader that met an error may have left the rest of a table.
    fn compare(&self, asked: &[&'static str], form: &Form) {
        let find = |key: &str| Some(self.find(key)?.get_ref().as_str().map(str::to_owned));
        let keys = form.keys_of(&find);
        let all = || form.all_keys().into_iter().map(|key| key.name).collect();
        let known = keys.clone().unwrap_or_else(all);
        let undeclared: Vec<&&str> = asked.iter().filter(|key| !known.contains(*key)).collect();
        assert!(undeclared.is_empty(), "keys without a place in the form of their table: {undeclared:?}");
        let unread: Vec<&str> = keys.into_iter().flatten().filter(|key| !asked.contains(key)).collect();
        assert!(
            unread.is_empty() || self.source.has_diagnostics(),
            "keys of a form that are never read: {unread:?}"
        );
    }

    /// Every entry in the order of the file, for tables whose keys are the user's own.
    pub fn entries(&self) -> Vec<(&'a str, Range<usize>, Value<'a>)> {
        let mut entries: Vec<_> = self
            .raw
            .iter()
            .map(|(key, raw)| {
                let name: &'a str = key.get_ref().as_ref();
                (name, key.span(), Value::new(self.source, name.to_owned(), raw, self.no_lists))
            })
            .collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// Whether no key stands in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Adds an error at the table.
    pub(crate) fn diagnostic(&self, message: impl Into<String>) {
        self.source.diagnostic(&self.span, message);
    }

    /// Adds an error at the table, with what to write instead.
    pub fn diagnostic_with(&self, message: impl Into<String>, suggestion: impl Into<String>) {
        self.source.diagnostic_with(&self.span, message, suggestion);
    }
}
