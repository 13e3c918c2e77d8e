//! The rule about the environment that a script sets: the findings of `envlint`, each at its place.

use super::shell::Word;
use super::{Diagnostics, ParsedFile, assignment};
use config::envlint::{Severity, Versions, lint};
use std::collections::BTreeMap;

/// Families of variables that are set once.
const FAMILIES: [&str; 5] = ["NCCL_", "FI_", "OFI_NCCL_", "RDMAV_", "TORCH_NCCL_"];

pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    let set = set(file);
    // A value that comes from another variable is known only at run time.
    let plain: Vec<&(String, String, Word)> =
        set.iter().filter(|(_, value, _)| !value.contains('$')).collect();
    let env: Vec<(&str, &str)> =
        plain.iter().map(|(name, value, _)| (name.as_str(), value.as_str())).collect();
    for finding in lint(&env, &Versions::default()) {
        let Some((_, _, word)) = plain.get(finding.at) else { continue };
        match finding.severity {
            Severity::Breaks => diagnostics.error(word, finding.message, &finding.advice),
            Severity::Warning => diagnostics.warn(word, finding.message, &finding.advice),
            Severity::Note => diagnostics.note(word, finding.message, &finding.advice),
        }
    }
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _, word) in &set {
        if !FAMILIES.iter().any(|family| name.starts_with(family)) {
            continue;
        }
        match first.get(name.as_str()) {
            Some(line) if *line != word.line => {
                let message = format!("`{name}` is already set on line {line}: the later value is used");
                diagnostics.note(word, message, "remove one of them");
            }
            _ => drop(first.insert(name, word.line)),
        }
    }
}

/// Every variable that the script sets, with its value and place: by itself, in front of a command, and by the options of
/// launchers.
fn set(file: &ParsedFile) -> Vec<(String, String, Word)> {
    let mut all = Vec::new();
    for command in &file.script.commands {
        let mut is_front = true;
        for (at, word) in command.words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| command.words.get(before));
            let is_passed =
                before.is_some_and(|before| matches!(before.text.as_str(), "-x" | "--env" | "-e"));
            if let Some((name, value)) = assignment(word)
                && (is_passed || is_front || command.list.is_some())
            {
                all.push((name.to_owned(), value.to_owned(), word.clone()));
            }
            // `--export=ALL,NAME=VALUE` of srun.
            if let Some(list) = word.text.strip_prefix("--export=") {
                let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
                all.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned(), word.clone())));
            }
            is_front &= assignment(word).is_some()
                || matches!(word.text.as_str(), "export" | "env" | "declare" | "-x" | "readonly");
        }
    }
    all
}
