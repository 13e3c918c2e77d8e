//! Keeps secrets out of everything that a run leaves: by what they look like (`shapes`), and by their values where
//! these are known (`secrets`). Who writes a file, or shows a message, asks here first; what jobs are given is their
//! true value.

mod accounts;
mod arguments;
mod body;
mod commands;
mod decoded;
mod dumps;
mod encodings;
mod escapes;
mod keys;
mod known;
mod labels;
mod letters;
mod names;
#[cfg(test)]
mod planted_tests;
mod secrets;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;
mod tokens;
mod values;
mod wide;

pub use accounts::{WithoutAccounts, mask_accounts, part_without_accounts};
pub use names::{is_secret_name, is_secret_pair};
pub use secrets::{Reference, Secrets, reference};
pub use stream::{How, Stream};

use known::Known;
use serde_json::Value;
use std::io::{self, Read};

/// How much of a file is looked at to see whether it is text.
pub const HEAD: usize = 8 << 10;

/// What is secret, as far as one process knows.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    known: Known,
}

/// Bytes without their secrets, and how many these were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// Of the same length where they are no text.
    pub bytes: Vec<u8>,
    /// Secrets that were replaced.
    pub count: u64,
}

impl Redactor {
    /// What looks like a secret, and the values of these variables, where their names are those of secrets.
    pub fn from_environment(variables: impl IntoIterator<Item = (String, String)>) -> Redactor {
        let mut redactor = Redactor::default();
        for (name, value) in variables {
            if is_secret_name(&name).is_some() && secrets::is_unmistakable(&value) {
                redactor.known.add(&name, &value);
            }
        }
        redactor
    }

    /// These values too, whatever they look like.
    pub fn and(mut self, secrets: &Secrets) -> Redactor {
        for (name, value) in secrets.values() {
            self.known.add(name, value);
        }
        self
    }

    /// For bytes that come piece by piece.
    pub fn stream(&self, how: How) -> Stream<'_> {
        Stream::new(&self.known, how)
    }

    /// A whole file: in what is no text everything stays in its place.
    pub fn bytes(&self, bytes: &[u8]) -> Redacted {
        let mut stream = self.stream(How::detect(bytes));
        let mut out = Vec::with_capacity(bytes.len());
        for chunk in bytes.chunks(64 << 10) {
            stream.push(chunk, &mut out);
        }
        stream.finish(&mut out);
        Redacted { bytes: out, count: stream.count() }
    }

    /// With `[redacted]` in place of each secret.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes()).bytes).into_owned()
    }

    /// A text that stands in an artefact, where there is a secret in it.
    pub(crate) fn changed(&self, text: &str) -> Option<String> {
        self.first(text.as_bytes())?;
        Some(self.text(text))
    }

    /// Takes the secrets out of every text of an artefact.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(changed) = self.changed(text) {
                    *text = changed;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|inner| self.value(inner)),
            Value::Object(map) => {
                for (key, inner) in map.iter_mut() {
                    match inner {
                        Value::String(text) if is_secret_pair(key, text) => {
                            *text = String::from_utf8_lossy(stream::INSTEAD).into_owned();
                        }
                        Value::Array(list) => list.iter_mut().for_each(|inner| match inner {
                            Value::String(text) if is_secret_pair(key, text) => {
                                *text = String::from_utf8_lossy(stream::INSTEAD).into_owned();
                            }
                            inner => self.value(inner),
                        }),
                        inner => {
                            for text in held_by(key, inner) {
                                *text = String::from_utf8_lossy(stream::INSTEAD).into_owned();
                            }
                            self.value(inner);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// By what the first secret in there is known, and its line.
    pub fn first(&self, bytes: &[u8]) -> Option<(u64, String)> {
        let mut stream = self.stream(How::Mask);
        let mut out = Vec::new();
        for chunk in bytes.chunks(64 << 10) {
            stream.push(chunk, &mut out);
            out.clear();
        }
        stream.finish(&mut out);
        stream.first().map(|(line, what)| (line, what.to_owned()))
    }

    /// The same of what is too large to be held at once.
    pub fn first_in(&self, reader: &mut dyn Read) -> io::Result<Option<(u64, String)>> {
        let mut stream = self.stream(How::Mask);
        let (mut chunk, mut out) = (vec![0; 64 << 10], Vec::new());
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => stream.push(&chunk[..read], &mut out),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            out.clear();
        }
        stream.finish(&mut out);
        Ok(stream.first().map(|(line, what)| (line, what.to_owned())))
    }

    /// Where in an artefact a secret stands, and by what it is known: for what must be written as it is or not at all.
    pub fn first_within(&self, value: &Value) -> Option<(String, String)> {
        let within = |key: String, inner: &Value| {
            let (path, what) = self.first_within(inner)?;
            Some((if path.is_empty() { key } else { format!("{key}.{path}") }, what))
        };
        match value {
            Value::String(text) => self.first(text.as_bytes()).map(|(_, what)| (String::new(), what)),
            Value::Array(list) => {
                list.iter().enumerate().find_map(|(at, inner)| within(at.to_string(), inner))
            }
            Value::Object(map) => map.iter().find_map(|(key, inner)| match inner {
                Value::String(text) if is_secret_pair(key, text) => Some((key.clone(), key.clone())),
                Value::Array(list)
                    if list.iter().any(|one| one.as_str().is_some_and(|text| is_secret_pair(key, text))) =>
                {
                    Some((key.clone(), key.clone()))
                }
                inner if is_secret_name(key).is_some() && !held_by(key, &mut inner.clone()).is_empty() => {
                    Some((key.clone(), key.clone()))
                }
                inner => within(key.clone(), inner),
            }),
            _ => None,
        }
    }
}

/// The secret of a group that has its name: `"HF_TOKEN": {"value": ...}`.
fn held_by<'a>(key: &str, group: &'a mut Value) -> Vec<&'a mut String> {
    let Value::Object(fields) = group else { return Vec::new() };
    let fields = fields.iter_mut().filter(|(field, _)| names::is_value_field(field));
    fields
        .filter_map(|(_, value)| match value {
            Value::String(text) if is_secret_pair(key, text) => Some(text),
            _ => None,
        })
        .collect()
}
