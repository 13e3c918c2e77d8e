//! A file being read: turns places in its text into lines and columns, and gathers the errors.

use crate::diagnostic::Diagnostic;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// The text of a TOML file, and the errors found in it so far.
pub struct Source<'a> {
    text: &'a str,
    file: &'a str,
    /// Where each line begins.
    starts: Vec<usize>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    /// The lines that could not be read as TOML.
    broken: BTreeSet<usize>,
}

/// The column of the text and the line as it should be, where toml rejects it and nothing but a key and a text without quotes
/// stands there. toml takes some for other things: `n[1-2]` for the number `nan`.
fn quoted(line: &str) -> Option<(usize, String)> {
    let (before, after) = line.split_once('=')?;
    let (key, value) = (before.trim(), after.trim());
    let is_text = value.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && !["true", "false", "nan", "inf"].contains(&value);
    let is_plain = is_text && !line.contains(['"', '\'', '#', '{', '}', '\\', '`']);
    let blanks = after.len() - after.trim_start().len();
    is_plain.then(|| (before.chars().count() + 2 + blanks, format!("{key} = \"{value}\"")))
}

impl<'a> Source<'a> {
    /// `errors` are toml's own; they are reported with the others.
    pub(crate) fn new(text: &'a str, file: &'a str, errors: &[toml::de::Error]) -> Source<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut source =
            Source { text, file, starts, diagnostics: RefCell::default(), broken: BTreeSet::new() };
        for error in errors {
            let (line, column) = source.place(error.span().unwrap_or_default().start);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            let is_rest = !source.broken.insert(line);
            let quoted = quoted(text.lines().nth(line.saturating_sub(1)).unwrap_or_default());
            let diagnostics = source.diagnostics.get_mut();
            // What stands behind a text without quotes is no error of its own.
            if is_rest && diagnostics.iter().any(|one| one.line == line && one.suggestion.is_some()) {
                continue;
            }
            diagnostics.push(match quoted {
                Some((column, quoted)) => Diagnostic::at(file, line, column, "a text must be in quotes")
                    .suggest(format!("write `{quoted}`")),
                None => Diagnostic::at(file, line, column, message),
            });
        }
        source
    }

    /// From 1, of where the span begins.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        self.place(span.start).0
    }

    /// As it is written in the file.
    pub(crate) fn written(&self, span: &Range<usize>) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Whether the text has syntax errors, so that what is absent may only have been unreadable.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Whether any error was found so far.
    pub(crate) fn has_diagnostics(&self) -> bool {
        self.is_broken() || !self.diagnostics.borrow().is_empty()
    }

    /// Adds an error, unless it is on a line that is no TOML.
    pub fn diagnostic(&self, span: &Range<usize>, message: impl Into<String>) {
        self.push(span, message.into(), None);
    }

    /// As `diagnostic`, with what to write instead.
    pub fn diagnostic_with(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        self.push(span, message.into(), Some(suggestion.into()));
    }

    /// In the order of the file, each once: a case of a matrix is read once for each of its values.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics.into_inner();
        diagnostics.sort_by(|a, b| (a.line, a.column, &a.message).cmp(&(b.line, b.column, &b.message)));
        diagnostics.dedup();
        diagnostics
    }

    fn push(&self, span: &Range<usize>, message: String, suggestion: Option<String>) {
        let (line, column) = self.place(span.start);
        if self.broken.contains(&line) {
            return;
        }
        let mut diagnostic = Diagnostic::at(self.file, line, column, message);
        diagnostic.suggestion = suggestion;
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Line and column from 1, the column counted in characters.
    fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let column = self.text.get(start..at).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}
