//! Values that a suite or an inventory names and does not hold: `env:NAME` is the value of the variable `NAME` where the
//! harness is started. They are looked up when a run starts, handed to its jobs, and written into no artefact.

use super::tokens::begins_as_secret;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const MARK: &str = "env:";
/// A shorter value stands in many a text by accident, and could not be kept out of any.
const LEAST: usize = 6;

/// What a value that begins with `env:` refers to.
#[derive(Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// It refers to nothing: it is its own value.
    None,
    /// The value of this variable.
    To(&'a str),
    /// It begins so, and what follows is no name of a variable.
    Broken,
}

/// Reads `env:NAME`, and looks up nothing.
pub fn reference(value: &str) -> Reference<'_> {
    let Some(name) = value.strip_prefix(MARK) else { return Reference::None };
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Reference::To(name) } else { Reference::Broken }
}

/// The values of a run, by the names of their variables. They are shown nowhere.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// Looks up each name once; or says what is wrong with each that cannot be used.
    pub fn resolve<'a>(
        names: impl IntoIterator<Item = &'a str>,
        look_up: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Secrets, Vec<String>> {
        let mut secrets = Secrets::default();
        let mut diagnostics = Vec::new();
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            match look_up(name) {
                None => diagnostics.push(format!(
                    "`{MARK}{name}` is not set in this environment, and the plan needs \
                 its value"
                )),
                Some(value) if value.contains('\0') => {
                    diagnostics
                        .push(format!("`{MARK}{name}` contains a NUL byte, which cannot be passed to a job"));
                }
                Some(value) if value.len() < LEAST => diagnostics.push(format!(
                    "`{MARK}{name}` is shorter than {LEAST} characters, too short to be redacted reliably"
                )),
                Some(value) => {
                    secrets.0.insert(name.to_owned(), value);
                }
            }
        }
        if diagnostics.is_empty() { Ok(secrets) } else { Err(diagnostics) }
    }

    /// None where the run has no such variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names with their values, by name.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// No word of such a length stands in a text by accident.
const LONG: usize = 16;

/// Whether a value of the environment can be looked for everywhere: not a path, a word or a number, which stand in many a
/// text without being secret there.
pub(super) fn is_unmistakable(value: &str) -> bool {
    let is_no_word = value.len() >= LONG || value.chars().any(|c| c.is_ascii_digit());
    value.len() >= 8
        && !value.starts_with(['/', '~', '.', '$'])
        && !value.contains(char::is_whitespace)
        && (is_no_word || begins_as_secret(value))
        && value.chars().any(|c| c.is_ascii_alphabetic())
}
