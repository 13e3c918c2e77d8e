//! The rule about characters that are not what they look like, and about words that the shell of the first line does not know.

use super::shell::{Command, Word};
use super::{Read, Told};

pub(super) fn rule(file: &Read, _: &[Read], told: &mut Told) {
    for slip in &file.script.slips {
        let word = Word { line: slip.line, column: slip.column, ..Word::default() };
        told.wrong(&word, slip.message.clone(), slip.advice);
    }
    let is_plain = matches!(file.script.shell.as_deref(), Some("sh" | "dash"));
    for command in &file.script.commands {
        command.words.iter().for_each(|word| characters(word, file.is_manifest, told));
        if is_plain {
            of_bash(command, told);
        }
        labelled(command, told);
    }
}

fn characters(word: &Word, is_manifest: bool, told: &mut Told) {
    if let Some(rest) = word.text.strip_prefix(['\u{2013}', '\u{2014}'])
        && rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
    {
        let message = format!("an option with a dash that is no hyphen: `{}`", word.text.escape_debug());
        told.wrong(word, message, "write `-` or `--`, as a keyboard does: it was copied from a text");
    }
    if !word.is_quoted && word.text.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
        told.wrong(word, "quotation marks that no shell knows", "write \" or '");
    }
    let closed = word.text.matches('}').count();
    if !is_manifest && !word.is_quoted && word.text != "}" && closed > word.text.matches('{').count() {
        told.wrong(
            word,
            format!("a `}}` that closes nothing: `{}`", word.text.escape_debug()),
            "take it out",
        );
    }
}

/// What bash knows and a plain `sh` does not.
const OF_BASH: [&str; 10] =
    ["[[", "pushd", "popd", "declare", "source", "shopt", "mapfile", "readarray", "typeset", "let"];

fn of_bash(command: &Command, told: &mut Told) {
    let advice = "write `#!/bin/bash` in the first line";
    if let (Some(name), Some(word)) = (&command.list, command.words.first()) {
        return told.wrong(word, format!("a list, `{name}`, which `sh` does not have"), advice);
    }
    let Some(first) = command.words.first() else { return };
    if OF_BASH.contains(&first.text.as_str()) {
        told.wrong(first, format!("`{}` is bash's, and the first line asks for `sh`", first.text), advice);
    }
    if matches!(first.text.as_str(), "[" | "test")
        && let Some(word) = command.words.iter().find(|word| word.text == "==")
    {
        let advice = "write `=`, or `#!/bin/bash` in the first line";
        told.wrong(word, "`==` is bash's, and the first line asks for `sh`", advice);
    }
}

fn labelled(command: &Command, told: &mut Told) {
    let is_srun = command.words.first().is_some_and(|word| super::base(&word.text) == "srun");
    let label = command.words.iter().find(|word| matches!(word.text.as_str(), "-l" | "--label"));
    if let (true, Some(word)) = (is_srun, label) {
        let message = format!(
            "`{}` puts `N: ` before each line, which scripts that take words by their number break on",
            word.text
        );
        told.note(word, message, "read logs by `harness logs`, which takes it off");
    }
}
