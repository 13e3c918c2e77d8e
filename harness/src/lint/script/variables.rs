//! The rule about variables that are not expanded, or not set.

use super::shell::{Command, Use, Word};
use super::{Diagnostics, ParsedFile, assignment, base};
use std::collections::BTreeSet;

pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    for word in file.script.directives.iter().flat_map(|directive| &directive.words) {
        if let Some(it) = word.uses.first() {
            let message = format!(
                "`{}` in `#SBATCH` is not expanded: no shell reads that line",
                it.name.escape_debug()
            );
            let advice =
                "write it in full, use Slurm's own `%j`, `%x` and `%u`, or pass it to sbatch as an option";
            diagnostics.error(&place(it), message, advice);
        }
    }
    let set = set(&file.script.commands);
    for command in &file.script.commands {
        quoted(command, diagnostics);
        for it in command.words.iter().flat_map(|word| &word.uses) {
            default_by_chance(it, &set, diagnostics);
        }
    }
    unset(file, &set, diagnostics);
}

fn place(it: &Use) -> Word {
    Word { line: it.line, column: it.column, ..Word::default() }
}

/// Programs whose own language has such names, or that print what they are given.
const OTHER_LANGUAGES: [&str; 22] = [
    "bash", "sh", "dash", "zsh", "ksh", "awk", "gawk", "mawk", "sed", "perl", "eval", "trap", "envsubst",
    "ssh", "find", "xargs", "jq", "grep", "echo", "printf", "python", "python3",
];

fn quoted(command: &Command, diagnostics: &mut Diagnostics) {
    if command
        .words
        .iter()
        .any(|word| OTHER_LANGUAGES.contains(&base(&word.text)) || word.text.starts_with("PS"))
    {
        return;
    }
    for word in &command.words {
        if let Some(it) = word.uses.iter().find(|it| it.is_quoted) {
            let message = format!("`${}` inside '' is not expanded", it.name);
            diagnostics.warn(&place(it), message, "use \"\" around it");
        }
    }
}

/// `${example-ns}` is `ns`, and no variable of that name.
fn default_by_chance(it: &Use, set: &BTreeSet<String>, diagnostics: &mut Diagnostics) {
    let Some(rest) = it.behind.strip_prefix('-') else { return };
    let is_word =
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_small = it.name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_word && is_small && !set.contains(&it.name) {
        let message = format!(
            "`${{{}-{rest}}}` expands to `{rest}`: a name has no `-`, and what follows it is a default",
            it.name
        );
        diagnostics.warn(
            &place(it),
            message,
            &format!("write `${{{}_{}}}`", it.name, rest.replace('-', "_")),
        );
    }
}

/// What the caller's environment has, or the shell itself.
const INHERITED: [&str; 40] = [
    "HOME",
    "PATH",
    "USER",
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "SHELL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "UID",
    "EUID",
    "PPID",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "FUNCNAME",
    "REPLY",
    "IFS",
    "TERM",
    "LANG",
    "LOGNAME",
    "HOSTTYPE",
    "OSTYPE",
    "DISPLAY",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "OPTARG",
    "OPTIND",
    "EDITOR",
    "DEBIAN_FRONTEND",
];
const INHERITED_FAMILIES: [&str; 9] =
    ["SLURM_", "SBATCH_", "OMPI_", "PMI_", "PMIX_", "BASH", "NVIDIA_", "KUBERNETES_", "PET_"];

fn unset(file: &ParsedFile, set: &BTreeSet<String>, diagnostics: &mut Diagnostics) {
    // Another file may set anything.
    let is_sourcing = |command: &Command| {
        command.words.first().is_some_and(|word| matches!(word.text.as_str(), "source" | "." | "eval"))
    };
    if file.is_manifest || file.script.commands.iter().any(is_sourcing) {
        return;
    }
    let mut seen = BTreeSet::new();
    for it in file.script.commands.iter().flat_map(|command| &command.words).flat_map(|word| &word.uses) {
        let is_guarded = it.behind.starts_with([':', '-', '=', '+', '?']);
        let is_parameter = it.name.bytes().all(|b| b.is_ascii_digit());
        let is_given = INHERITED.contains(&it.name.as_str())
            || INHERITED_FAMILIES.iter().any(|family| it.name.starts_with(family));
        if it.is_quoted || is_guarded || is_parameter || is_given || set.contains(&it.name) {
            continue;
        }
        if seen.insert(it.name.clone()) {
            let message =
                format!("`{}` is not set in this file: it is empty unless the caller sets it", it.name);
            let advice =
                format!("set it, or write `${{{0}:?}}` so that the script stops without it", it.name);
            diagnostics.note(&place(it), message, &advice);
        }
    }
}

/// Every name that gets a value somewhere in the script.
fn set(commands: &[Command]) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for command in commands {
        set.extend(command.list.clone());
        let first = command.words.first().map(|word| word.text.as_str()).unwrap_or_default();
        for (at, word) in command.words.iter().enumerate() {
            if let Some((name, _)) = assignment(word) {
                set.insert(name.to_owned());
            }
            let is_named = match first {
                "read" | "export" | "declare" | "local" | "typeset" | "readonly" | "mapfile"
                | "readarray" | "unset" => at > 0,
                "for" | "select" => at == 1,
                "printf" => at == 2 && command.words[1].text == "-v",
                "getopts" => at == 2,
                _ => false,
            };
            if is_named && !word.text.starts_with('-') {
                set.insert(word.text.split(['=', '[']).next().unwrap_or_default().to_owned());
            }
            for it in word
                .uses
                .iter()
                .filter(|it| [":=", "=", ":?", "?"].iter().any(|guard| it.behind.starts_with(guard)))
            {
                set.insert(it.name.clone());
            }
        }
    }
    set
}
