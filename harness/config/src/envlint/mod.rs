//! The environment linter: variables of NCCL, libfabric and aws-ofi-nccl that are misspelt, removed, have invalid
//! values or contradict each other, by the known versions. It reads no files: `files.rs` passes suites and inventories,
//! `conf.rs` a node's `nccl.conf`, and the probe a node's own environment.

mod clash;
mod files;
mod holds;
#[cfg(test)]
mod message_tests;
mod name;
mod table;
#[cfg(test)]
mod tests;
mod unset;
mod version;

pub use files::{Linted, lint_inventory, lint_suite};
pub use table::Library;
pub use unset::{lint_unset, unset};
pub use version::Version;

use crate::inventory::{Instance, Transport};
use table::{Held, Variable, Weight, When};

/// What is known of the place where the environment will be used. Findings on unknown versions name them as a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// The probe's fact `nccl`; none where unknown.
    pub nccl: Option<Version>,
    /// The probe's fact `libfabric`; none where unknown.
    pub libfabric: Option<Version>,
    /// Of aws-ofi-nccl.
    pub plugin: Option<Version>,
    /// None so far: no probe reports it.
    pub pytorch: Option<Version>,
    /// The instance's; none where no instance is known.
    pub transport: Option<Transport>,
}

/// How bad a finding is; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Superfluous, or nothing is known of it.
    Note,
    /// It does not do what was meant, or does harm.
    Warning,
    /// With it nothing runs.
    Breaks,
}

/// What is wrong with one variable, set or absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which of the variables it is about; the length of the list where it is about one that is absent.
    pub at: usize,
    /// Decides whether it is an error, a warning or a note.
    pub severity: Severity,
    /// The variable first, in backticks.
    pub message: String,
    /// What to do instead, such as `remove it`.
    pub advice: String,
}

impl Versions {
    /// The transport alone is known of it, no version.
    pub fn from_instance(instance: &Instance) -> Versions {
        Versions { transport: Some(instance.transport), ..Versions::default() }
    }

    fn get(&self, library: Library) -> Option<Version> {
        match library {
            Library::Nccl => self.nccl,
            Library::Libfabric => self.libfabric,
            Library::Plugin => self.plugin,
            Library::PyTorch => self.pytorch,
            Library::RdmaCore | Library::NcclTests => None,
        }
    }
}

/// All findings on an environment, in its order.
pub fn lint<N: AsRef<str>, V: AsRef<str>>(env: &[(N, V)], versions: &Versions) -> Vec<Finding> {
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
    let mut findings = Vec::new();
    for (at, (name, value)) in env.iter().enumerate() {
        let issues = match table::find(name) {
            Some(variable) => check_known(variable, value, versions),
            None => name::unknown(name).into_iter().collect(),
        };
        findings.extend(issues.into_iter().map(|issue| issue.at(at)));
    }
    findings.extend(clash::all(&env, versions));
    findings.extend(clash::absent(&env, versions));
    // The gravest of a variable first.
    findings.sort_by(|a, b| (a.at, b.severity, &a.message).cmp(&(b.at, a.severity, &b.message)));
    findings
}

/// A finding without its place.
struct Issue {
    severity: Severity,
    message: String,
    advice: String,
}

impl Issue {
    fn at(self, at: usize) -> Finding {
        Finding { at, severity: self.severity, message: self.message, advice: self.advice }
    }
}

fn check_known(variable: &Variable, value: &str, versions: &Versions) -> Vec<Issue> {
    let name = variable.name;
    let here = versions.get(variable.library);
    let library = variable.library.name();
    let mut issues = Vec::new();
    if let Some(gone) = variable.gone {
        // A release before it went still reads it.
        let still_read = matches!((gone.from, here), (Some(from), Some(here)) if here < from);
        if !still_read {
            let since = gone.from.map(|from| format!(" from {library} {from} on")).unwrap_or_default();
            let message = format!("`{name}` {}{since}", gone.what);
            issues.push(Issue { severity: Severity::Warning, message, advice: gone.advice.to_owned() });
            return issues;
        }
    }
    if let (Some(since), Some(here)) = (variable.since, here)
        && here < since
    {
        let message = format!("`{name}` needs {library} {since}, installed is {here}");
        let advice = format!("remove it, or install {library} {since}");
        return vec![Issue { severity: Severity::Warning, message, advice }];
    }
    issues.extend(holds::wrong(variable, value, here));
    issues.extend(variable.said.iter().filter(|said| meant(said.held, value)).filter_map(|said| {
        let condition = condition(said.when, versions)?;
        let severity = match said.weight {
            Weight::Note => Severity::Note,
            Weight::Warning => Severity::Warning,
        };
        let message = match condition.is_empty() {
            true => format!("`{name}={value}` {}", said.what),
            false => format!("`{name}={value}` {}, {condition}", said.what),
        };
        Some(Issue { severity, message, advice: said.advice.to_owned() })
    }));
    issues
}

fn meant(held: Held, value: &str) -> bool {
    match held {
        Held::Any => true,
        Held::On => holds::is_on(value),
        Held::Off => holds::is_off(value),
        Held::Word(word) => holds::names(value, word),
        Held::Without(word) => !value.trim().is_empty() && holds::leaves_out(value, word),
        Held::Lacking(characters) => !value.contains(characters),
    }
}

/// The condition under which something holds: empty where it holds, nothing where it does not.
fn condition(when: When, versions: &Versions) -> Option<String> {
    match when {
        When::Always => Some(String::new()),
        When::On(transport) => (versions.transport == Some(transport)).then(String::new),
        When::From(releases) => {
            let mut open = Vec::new();
            for (library, from) in releases {
                match versions.get(*library) {
                    Some(here) if here < *from => return None,
                    Some(_) => {}
                    None => open.push(format!("{} {from}", library.name())),
                }
            }
            let open = open.join(" and ");
            Some(if open.is_empty() { open } else { format!("from {open} on") })
        }
    }
}
