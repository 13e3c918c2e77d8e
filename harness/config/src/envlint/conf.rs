//! `/etc/nccl.conf` and the user's own: settings that NCCL takes where the environment has none, as NCCL reads them.

use super::{Finding, Severity, Versions, lint};

/// A finding, and the line of the file that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfFinding {
    /// From 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// Its `at` counts settings, not lines.
    pub finding: Finding,
}

/// Name and value of every line that sets something, in the order of the file.
pub fn settings(text: &str) -> Vec<(String, String)> {
    read(text).into_iter().map(|(_, name, value)| (name, value)).collect()
}

/// All findings on the text of an `nccl.conf`, in the order of its lines.
pub fn lint_conf(text: &str, versions: &Versions) -> Vec<ConfFinding> {
    let read = read(text);
    let lines: Vec<usize> = read.iter().map(|(line, _, _)| *line).collect();
    let env: Vec<(&str, &str)> =
        read.iter().map(|(_, name, value)| (name.as_str(), value.as_str())).collect();
    let mut findings: Vec<ConfFinding> = lint(&env, versions)
        .into_iter()
        .map(|finding| ConfFinding { line: lines.get(finding.at).copied().unwrap_or_default(), finding })
        .collect();
    for (at, line) in text.lines().enumerate() {
        if let Some((message, advice)) = unread(line) {
            let (message, advice) = (message.to_owned(), advice.to_owned());
            let finding = Finding { at: env.len(), severity: Severity::Warning, message, advice };
            findings.push(ConfFinding { line: at + 1, finding });
        }
    }
    findings.sort_by_key(|found| found.line);
    findings
}

/// NCCL takes what stands before the first `=` for the name, blanks and all.
fn read(text: &str) -> Vec<(usize, String, String)> {
    let mut read = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('#') || unread(line).is_some() {
            continue;
        }
        if let Some((name, value)) = line.split_once('=') {
            read.push((at + 1, name.to_owned(), value.to_owned()));
        }
    }
    read
}

/// Why a line sets nothing, and what to write.
fn unread(line: &str) -> Option<(&'static str, &'static str)> {
    if line.starts_with('#') || line.trim().is_empty() {
        return None;
    }
    let Some((name, _)) = line.split_once('=') else {
        return Some(("a line without `=` sets nothing", "write `NAME=VALUE`, or `#` before it"));
    };
    if name.trim_start().starts_with("export ") {
        return Some(("`export` is read as part of the name", "write `NAME=VALUE`"));
    }
    if name.trim_start().starts_with('#') {
        return Some((
            "a comment must begin the line, this one is read as a name",
            "move the `#` to the left",
        ));
    }
    if name != name.trim() || name.is_empty() {
        return Some(("blanks before `=` are read as part of the name", "write `NAME=VALUE` without blanks"));
    }
    None
}
