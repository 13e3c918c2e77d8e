//! The rule about characters that are not what they look like, and about words that the shell of the first line does
//! not know.

use super::shell::{Command, Word};
use super::{Diagnostics, ParsedFile};

pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    for slip in &file.script.slips {
        let word = Word { line: slip.line, column: slip.column, ..Word::default() };
        diagnostics.error(&word, slip.message.clone(), slip.advice);
    }
    let is_plain = matches!(file.script.shell.as_deref(), Some("sh" | "dash"));
    for command in &file.script.commands {
        command.words.iter().for_each(|word| characters(word, file.is_manifest, diagnostics));
        if is_plain {
            bash_only(command, diagnostics);
        }
        labelled(command, diagnostics);
    }
}

fn characters(word: &Word, is_manifest: bool, diagnostics: &mut Diagnostics) {
    if let Some(rest) = word.text.strip_prefix(['\u{2013}', '\u{2014}'])
        && rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    {
        let message = format!("option with a typographic dash, not a hyphen: `{}`", word.text.escape_debug());
        diagnostics.error(word, message, "write `-` or `--`; it was copied from a formatted text");
    }
    if !word.is_quoted && word.text.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
        diagnostics.error(word, "typographic quotation marks, which no shell understands", "write \" or '");
    }
    let closed = word.text.matches('}').count();
    if !is_manifest && !word.is_quoted && word.text != "}" && closed > word.text.matches('{').count() {
        diagnostics.error(word, format!("unmatched `}}`: `{}`", word.text.escape_debug()), "remove it");
    }
}

/// Commands of bash that a plain `sh` does not have.
const BASH_ONLY: [&str; 10] =
    ["[[", "pushd", "popd", "declare", "source", "shopt", "mapfile", "readarray", "typeset", "let"];

fn bash_only(command: &Command, diagnostics: &mut Diagnostics) {
    let advice = "write `#!/bin/bash` in the first line";
    if let (Some(name), Some(word)) = (&command.list, command.words.first()) {
        return diagnostics.error(word, format!("`{name}` is an array, which `sh` does not have"), advice);
    }
    let Some(first) = command.words.first() else { return };
    if BASH_ONLY.contains(&first.text.as_str()) {
        diagnostics.error(
            first,
            format!("`{}` works only in bash, but the first line asks for `sh`", first.text),
            advice,
        );
    }
    if matches!(first.text.as_str(), "[" | "test")
        && let Some(word) = command.words.iter().find(|word| word.text == "==")
    {
        let advice = "write `=`, or `#!/bin/bash` in the first line";
        diagnostics.error(word, "`==` works only in bash, but the first line asks for `sh`", advice);
    }
}

fn labelled(command: &Command, diagnostics: &mut Diagnostics) {
    let is_srun = command.words.first().is_some_and(|word| super::base(&word.text) == "srun");
    let label = command.words.iter().find(|word| matches!(word.text.as_str(), "-l" | "--label"));
    if let (true, Some(word)) = (is_srun, label) {
        let message = format!(
            "`{}` puts `N: ` before each line, which breaks scripts that pick words by position",
            word.text
        );
        diagnostics.note(word, message, "read the logs with `harness logs`, which removes it");
    }
}
