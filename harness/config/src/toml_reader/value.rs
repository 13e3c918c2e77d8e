//! A value being read: says what it should have been where it is something else.

use super::{Raw, Source, Table, alike, inner, quantity, renamed};
use base::suggest::nearest;
use std::ops::{Range, RangeInclusive};
use toml::de::DeValue;

/// A TOML value with its key and place.
#[derive(Clone)]
pub struct Value<'a> {
    source: &'a Source<'a>,
    key: String,
    raw: &'a Raw<'a>,
    no_lists: Option<&'static str>,
}

impl<'a> Value<'a> {
    /// `no_lists` is suggested where a list stands for a single value.
    pub(crate) fn new(
        source: &'a Source<'a>,
        key: String,
        raw: &'a Raw<'a>,
        no_lists: Option<&'static str>,
    ) -> Value<'a> {
        Value { source, key, raw, no_lists }
    }

    /// That of the list, for its items.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// As toml has it, for values of several types.
    pub fn raw(&self) -> &'a Raw<'a> {
        self.raw
    }

    /// Bytes of the file's text.
    pub(crate) fn span(&self) -> Range<usize> {
        self.raw.span()
    }

    /// Adds an error at the value.
    pub fn diagnostic(&self, message: impl Into<String>) {
        self.source.diagnostic(&self.span(), message);
    }

    /// Adds an error at the value, with what to write instead.
    pub fn diagnostic_with(&self, message: impl Into<String>, suggestion: impl Into<String>) {
        self.source.diagnostic_with(&self.span(), message, suggestion);
    }

    /// An error within a text, by its place in what the text says: line and column from 1.
    pub fn diagnostic_within(&self, (line, column): (u64, u64), message: String, suggestion: Option<String>) {
        let span = self.span();
        let start = span.start + inner::offset(self.source.written(&span), line, column);
        let place = start.min(span.end)..span.end;
        match suggestion {
            Some(suggestion) => self.source.diagnostic_with(&place, message, suggestion),
            None => self.source.diagnostic(&place, message),
        }
    }

    /// The result of parsing this value, its error reported as a diagnostic.
    pub(crate) fn parsed<T>(&self, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.diagnostic(why)).ok()
    }

    /// Any text, an empty one too; else an error.
    pub(crate) fn text(&self) -> Option<String> {
        match self.raw.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.wrong("a text"),
        }
    }

    /// Whether it is this text; never an error.
    pub fn is_text(&self, wanted: &str) -> bool {
        self.raw.get_ref().as_str() == Some(wanted)
    }

    /// A text that says something.
    pub fn non_empty_text(&self) -> Option<String> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.diagnostic(format!("`{}` is empty", self.key));
            return None;
        }
        Some(text)
    }

    /// Anything else is an error.
    pub fn boolean(&self) -> Option<bool> {
        self.raw.get_ref().as_bool().or_else(|| self.wrong("`true` or `false`"))
    }

    /// The text or number itself, with what it is; `None`, and no error, for anything else.
    pub fn scalar(&self) -> Option<Scalar> {
        match self.raw.get_ref() {
            DeValue::String(text) => Some(Scalar::Text(text.to_string())),
            DeValue::Integer(integer) => {
                i128::from_str_radix(integer.as_str(), integer.radix()).ok().map(Scalar::Integer)
            }
            DeValue::Float(float) => float.as_str().parse().ok().map(Scalar::Float),
            DeValue::Boolean(boolean) => Some(Scalar::Boolean(*boolean)),
            _ => None,
        }
    }

    /// A whole number in the range; else an error.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let Some(Scalar::Integer(integer)) = self.scalar() else {
            return self.wrong("a whole number");
        };
        let whole = u64::try_from(integer).ok().filter(|whole| range.contains(whole));
        if whole.is_none() {
            let (low, high) = range.into_inner();
            match high {
                u64::MAX => self.diagnostic(format!("`{}` must be at least {low}, not: {integer}", self.key)),
                _ => {
                    self.diagnostic(format!(
                        "`{}` must lie between {low} and {high}, not: {integer}",
                        self.key
                    ));
                }
            }
        }
        whole
    }

    /// As `whole`, for what fits 32 bits.
    pub fn small(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let whole = self.whole(u64::from(*range.start())..=u64::from(*range.end()))?;
        u32::try_from(whole).ok()
    }

    /// A finite number, whole or not.
    pub fn number(&self) -> Option<f64> {
        let number = match self.scalar() {
            Some(Scalar::Integer(integer)) => integer as f64,
            Some(Scalar::Float(float)) => float,
            _ => return self.wrong("a number"),
        };
        if !number.is_finite() {
            self.diagnostic(format!("`{}` must be a finite number, not: {number}", self.key));
            return None;
        }
        Some(number)
    }

    /// Anything else is an error.
    pub fn table(&self) -> Option<Table<'a>> {
        match self.raw.get_ref() {
            DeValue::Table(table) => Some(Table::root(self.source, table, self.span())),
            _ => self.wrong("a table"),
        }
    }

    /// Its items; anything but a list is an error.
    pub fn list(&self) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(array) = self.raw.get_ref() else {
            return self.wrong("a list");
        };
        let value = |raw| Value::new(self.source, self.key.clone(), raw, None);
        Some(array.iter().map(value).collect())
    }

    /// The texts of a list; those that are none are errors and left out.
    pub(crate) fn texts(&self) -> Vec<String> {
        let values = self.list().unwrap_or_default();
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            let Some(text) = value.non_empty_text() else { continue };
            if texts.contains(&text) {
                value.diagnostic(format!("`{}` lists `{text}` twice", self.key));
                continue;
            }
            texts.push(text);
        }
        texts
    }

    /// The thing of that name, or an error with the nearest name there is.
    pub fn one_of<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let meant = renamed::value(&self.key, &text);
        let found = choices.iter().find(|(name, _)| *name == meant).map(|(_, thing)| thing.clone());
        if found.is_none() {
            self.unknown(&text, choices.iter().map(|(name, _)| *name));
        }
        found
    }

    /// An error: `text` is none of the names that there are.
    pub fn unknown<'n>(&self, text: &str, names: impl Iterator<Item = &'n str>) {
        let names: Vec<&str> = names.collect();
        let suggestion = match nearest(text, names.iter().copied()) {
            _ if alike::value(&self.key, text).is_some() => {
                alike::value(&self.key, text).unwrap_or_default().to_owned()
            }
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "there is none".to_owned(),
            None => format!("known: `{}`", names.join("`, `")),
        };
        self.diagnostic_with(format!("unknown {}: `{}`", self.key, text.escape_debug()), suggestion);
    }

    /// An error of type; always nothing, so that it can stand where a value is wanted.
    pub fn wrong<T>(&self, wanted: &str) -> Option<T> {
        let raw = self.raw.get_ref();
        let shown = match self.scalar() {
            Some(Scalar::Text(text)) => format!(": {text:?}"),
            Some(Scalar::Integer(integer)) => format!(": `{integer}`"),
            Some(Scalar::Float(float)) => format!(": `{float}`"),
            Some(Scalar::Boolean(boolean)) => format!(": `{boolean}`"),
            None => String::new(),
        };
        let found = match raw {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{}` needs {wanted}, not {found}{shown}", self.key);
        match (self.no_lists, raw) {
            (Some(suggestion), DeValue::Array(_)) => {
                self.diagnostic_with(message, suggestion.replace("KEY", &self.key));
            }
            _ => match self.as_wanted(wanted) {
                Some(suggestion) => self.diagnostic_with(message, suggestion),
                None => self.diagnostic(message),
            },
        }
        None
    }

    /// The same value in the type that is wanted, where it is plain what was meant.
    fn as_wanted(&self, wanted: &str) -> Option<String> {
        let text = match (self.scalar(), self.raw.get_ref()) {
            (Some(Scalar::Text(text)), _) => text,
            (Some(Scalar::Integer(integer)), _) => integer.to_string(),
            (None, DeValue::Table(_)) if wanted == "a list" => {
                let within = if self.key == "assert" { "case." } else { "" };
                return Some(format!("write `[[{within}{}]]`", self.key));
            }
            _ => return None,
        };
        let is_text = self.raw.get_ref().as_str().is_some();
        match (wanted, is_text) {
            ("a list", true) => Some(format!("write `[\"{}\"]`", text.escape_debug())),
            ("a whole number" | "a number", true) if text.trim().parse::<u64>().is_ok() => {
                Some(format!("write `{}`", text.trim()))
            }
            ("a whole number", true) if self.key.ends_with("_s") => {
                quantity::seconds(&text).map(|seconds| format!("write `{seconds}`, in seconds"))
            }
            ("a text", false) if self.key == "nodes" => Some("write `\"n[1-4]\"`".to_owned()),
            ("a text", false) => Some(format!("write `\"{text}\"`")),
            ("a table", true) if self.key == "reach" => {
                Some(format!("write `{{ via = \"{}\" }}`", text.escape_debug()))
            }
            _ => None,
        }
    }
}

/// A value without parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// May be empty.
    Text(String),
    /// Decimal, or of another radix: `0x3c`.
    Integer(i128),
    /// May be infinite or NaN.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
}
