//! Scripts and manifests that launch jobs: what in them does not do what was meant. They are read and never run. Add a
//! rule by its file and its line in `RULES`.

mod environment;
mod launch;
mod manifest;
#[cfg(test)]
mod message_tests;
mod resolve;
mod secrets;
mod shell;
mod spelling;
#[cfg(test)]
mod tests;
mod variables;
mod window;

use config::diagnostic::Diagnostic;
use config::envlint::Linted;
use shell::Script;
pub(super) use shell::{Command, Word, read as shell_commands};

/// A file with its text.
pub struct Source {
    /// Path, as messages show it; its ending distinguishes manifests from scripts.
    pub name: String,
    /// All of the file.
    pub text: String,
}

/// A file as the rules see it.
struct ParsedFile<'a> {
    name: &'a str,
    text: &'a str,
    script: Script,
    is_manifest: bool,
}

/// A rule looks at one file, and may look into the others.
type Rule = fn(&ParsedFile, &[ParsedFile], &mut Diagnostics);

const RULES: &[Rule] = &[
    environment::rule,
    variables::rule,
    launch::rule,
    window::rule,
    spelling::rule,
    secrets::rule,
    manifest::rule,
];

/// The diagnostics of files that may start each other, by file and line.
pub fn scripts(sources: &[Source]) -> Linted {
    let read = |source: &'_ Source| -> (Script, bool) {
        match manifest::is_one(&source.name) {
            true => (manifest::read(&source.text), true),
            false => (shell::read(&source.text), false),
        }
    };
    let all: Vec<ParsedFile> = sources
        .iter()
        .map(|source| {
            let (script, is_manifest) = read(source);
            ParsedFile { name: &source.name, text: &source.text, script, is_manifest }
        })
        .collect();
    let mut linted = Linted::default();
    for file in &all {
        let mut diagnostics = Diagnostics { file: file.name, linted: Linted::default() };
        RULES.iter().for_each(|rule| rule(file, &all, &mut diagnostics));
        let mut of_file = diagnostics.linted;
        for all in [&mut of_file.diagnostics, &mut of_file.warnings, &mut of_file.notes] {
            all.sort();
            all.dedup();
        }
        super::append(&mut linted, of_file);
    }
    linted
}

/// What the rules of scripts find in commands that stand in another file: jobs within jobs, windows of steps, environment.
pub(super) fn commands(name: &str, commands: Vec<Command>) -> Linted {
    let script = Script { commands, ..Script::default() };
    let file = [ParsedFile { name, text: "", script, is_manifest: true }];
    let mut diagnostics = Diagnostics { file: name, linted: Linted::default() };
    let rules: [Rule; 3] = [environment::rule, launch::rule, window::rule];
    rules.iter().for_each(|rule| rule(&file[0], &file, &mut diagnostics));
    diagnostics.linted
}

/// The diagnostics of one file.
struct Diagnostics<'a> {
    file: &'a str,
    linted: Linted,
}

impl Diagnostics<'_> {
    fn at(&self, word: &Word, message: String, advice: &str) -> Diagnostic {
        Diagnostic::at(self.file, word.line, word.column, message).suggest(advice)
    }

    /// What does not work.
    fn error(&mut self, word: &Word, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(word, message.into(), advice);
        self.linted.diagnostics.push(diagnostic);
    }

    /// What is hardly meant.
    fn warn(&mut self, word: &Word, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(word, message.into(), advice);
        self.linted.warnings.push(diagnostic);
    }

    /// What may be meant.
    fn note(&mut self, word: &Word, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(word, message.into(), advice);
        self.linted.notes.push(diagnostic);
    }
}

/// `NAME=VALUE`.
pub(super) fn assignment(word: &Word) -> Option<(&str, &str)> {
    let (name, value) = word.text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// The last part of a path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The value of the last option of one of these names: `--name=value`, `--name value`, `-n value`, `-nvalue`.
fn option<'a>(words: &'a [Word], names: &[&str]) -> Option<(&'a str, &'a Word)> {
    let of = |(at, word): (usize, &'a Word)| {
        let text = word.text.as_str();
        names.iter().find_map(|name| {
            let rest = text.strip_prefix(name)?;
            match rest.strip_prefix('=') {
                Some(value) => Some((value, word)),
                None if rest.is_empty() => words.get(at + 1).map(|value| (value.text.as_str(), value)),
                None if !name.starts_with("--") && name.len() == 2 => Some((rest, word)),
                None => None,
            }
        })
    };
    words.iter().enumerate().filter_map(of).next_back()
}

pub(super) fn number(words: &[Word], names: &[&str]) -> Option<u64> {
    option(words, names)?.0.parse().ok()
}
