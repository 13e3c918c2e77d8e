//! Reads what workloads have in common: programs, arguments, environment variables.

use crate::toml_reader::{Table, Value};
use base::redact::{Reference, reference};
use std::collections::BTreeMap;

/// Keywords and builtins of bash, which run no program.
const OF_SHELLS: [&str; 58] = [
    "!", "[[", "{", "}", "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while",
    "until", "do", "done", "in", "function", "time", "coproc", ".", ":", "alias", "bg", "bind", "break",
    "builtin", "caller", "cd", "command", "continue", "declare", "disown", "eval", "exec", "exit", "export",
    "fg", "getopts", "hash", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readonly",
    "return", "set", "shift", "source", "times", "trap", "typeset", "unset", "wait",
];

/// A program that a shell would take for something of its own, or srun for an option, would not be what is run.
pub(super) fn program_of(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text().filter(|_| argument(value).is_some())?;
    let is_path = text.contains('/');
    if text.starts_with('-') || (text.contains('=') && !is_path) {
        value.diagnostic_with(format!("not a program name: {text:?}"), "write its path");
        return None;
    }
    if !is_path && OF_SHELLS.contains(&text.as_str()) {
        value.diagnostic_with(
            format!("a shell keyword or builtin, not a program: `{text}`"),
            "write the path of a program",
        );
        return None;
    }
    Some(text)
}

pub(super) fn argument(value: &Value<'_>) -> Option<String> {
    let text = value.text().filter(|text| refers_well(value, text))?;
    if text.contains('\0') {
        value.diagnostic(format!("an argument cannot contain a zero byte: {text:?}"));
        return None;
    }
    Some(text)
}

/// An error where a value begins like the name of a variable, and is none.
fn refers_well(value: &Value<'_>, text: &str) -> bool {
    let is_broken = reference(text) == Reference::Broken;
    if is_broken {
        let message = format!("no variable name after `env:`: `{}`", text.escape_debug());
        value.diagnostic_with(message, "write `env:NAME`: the value of that variable is passed to the job");
    }
    !is_broken
}

pub(super) fn environment(table: &Table<'_>) -> BTreeMap<String, String> {
    table
        .get("environment")
        .and_then(|value| value.table())
        .map(|table| variables(&table))
        .unwrap_or_default()
}

/// Every job has them all in its script: far more than any has would keep a plan busy for minutes.
const MOST_VARIABLES: usize = 1000;

/// Environment variables, as suites and inventories name them.
pub fn variables(table: &Table<'_>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let entries = table.entries();
    if let (true, Some((_, span, _))) = (entries.len() > MOST_VARIABLES, entries.first()) {
        let message = format!("{} environment variables, limit {MOST_VARIABLES}", entries.len());
        table.source().diagnostic(span, message);
        return variables;
    }
    for (name, span, value) in entries {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("not an environment variable name: `{}`", name.escape_debug());
            table.source().diagnostic(&span, message);
            continue;
        }
        // srun in the job obeys it.
        if name == "SLURM_DISTRIBUTION" {
            let message = format!("`{name}` would number ranks in another order");
            table.source().diagnostic_with(&span, message, "order nodes by `[topology]` of the inventory");
            continue;
        }
        let Some(text) = value.text() else { continue };
        if text.contains(['\0', '\n']) {
            value.diagnostic(format!("an environment variable must be one line: `{name}`"));
            continue;
        }
        if !refers_well(&value, &text) {
            continue;
        }
        variables.insert(name.to_owned(), text);
    }
    variables
}
