//! What a field kit saw: answers of commands on this machine, sections from nodes, and the probe. Everything came from
//! elsewhere, so it is bounded when it is read.

use super::Outcome;
use config::inventory::Inventory;
use model::artefact::{Probe, ProbedNode, Value};
use std::collections::{BTreeMap, BTreeSet};

/// More of a section is cut off.
const MOST_LINES: usize = 2000;
const MOST_BYTES: usize = 400;
const MOST_SECTIONS: usize = 100;

/// What one command printed, or one file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// The exit status; none where there was nothing to run or to read.
    pub status: Option<i32>,
    pub lines: Vec<String>,
}

/// What `node.sh` reported of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvidence {
    /// By its name in the inventory.
    pub node: String,
    /// Or why there are none.
    pub sections: Result<BTreeMap<String, Section>, String>,
}

/// All that a field kit saw of one cluster.
pub struct Evidence<'a> {
    /// Decides which assumptions concern the cluster.
    pub inventory: &'a Inventory,
    /// By the names of `CLUSTER_COMMANDS`: what it printed, or why nothing.
    pub here: BTreeMap<&'static str, Result<Section, String>>,
    /// The chosen nodes, idle ones first.
    pub nodes: Vec<NodeEvidence>,
    /// None where sinfo gave no answer: then no node is asked.
    pub probe: Option<Probe>,
}

impl Section {
    pub(crate) fn from_text(status: Option<i32>, text: &str) -> Section {
        let lines = text.lines().take(MOST_LINES).map(bounded).collect();
        Section { status, lines }
    }

    /// The first line with words: Open MPI draws one of dashes above its messages.
    pub(crate) fn first(&self) -> &str {
        self.names().find(|line| !line.chars().all(|c| c == '-')).unwrap_or_default()
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty())
    }
}

fn bounded(line: &str) -> String {
    let mut end = line.len().min(MOST_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

const MARK: &str = "harness-field\t";

/// The sections of `node.sh`. Lines that do not bear its mark are a shell's or a scheduler's own.
pub fn read_sections(text: &str) -> Result<BTreeMap<String, Section>, String> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut is_complete = false;
    for line in text.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let (word, rest) = line.split_once('\t').unwrap_or((line, ""));
        match (word, &current) {
            ("end", _) => is_complete = true,
            ("section", _) => {
                let (name, status) = rest.split_once('\t').unwrap_or((rest, "absent"));
                let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                if name.is_empty()
                    || name.len() > 40
                    || !name.chars().all(is_name)
                    || sections.len() >= MOST_SECTIONS
                {
                    return Err(format!("invalid section name: `{}`", bounded(name).escape_debug()));
                }
                sections.insert(name.to_owned(), Section { status: status.parse().ok(), lines: Vec::new() });
                current = Some(name.to_owned());
            }
            ("line", Some(name)) => {
                let section = sections.entry(name.clone()).or_default();
                if section.lines.len() < MOST_LINES {
                    section.lines.push(bounded(rest));
                }
            }
            _ => return Err(format!("unexpected line: `{}`", bounded(line).escape_debug())),
        }
    }
    match is_complete {
        true => Ok(sections),
        false => Err("the answer is truncated".to_owned()),
    }
}

impl Evidence<'_> {
    /// What a command of the cluster printed, where it succeeded; else why it shows nothing.
    pub(crate) fn cluster(&self, name: &str) -> Result<&Section, Outcome> {
        match self.here.get(name) {
            Some(Ok(section)) if section.status == Some(0) => Ok(section),
            Some(Ok(section)) => {
                Err(Outcome::NotSeen(format!("it ended with an error: {}", section.first())))
            }
            Some(Err(why)) => Err(Outcome::NotSeen(why.clone())),
            None => Err(Outcome::NotSeen("not queried".to_owned())),
        }
    }

    /// A value of `scontrol show config`.
    pub(crate) fn config(&self, key: &str) -> Result<&str, Outcome> {
        let value = self.configs(key)?.first().copied();
        value.ok_or_else(|| Outcome::NotSeen(format!("`scontrol show config` has no {key}")))
    }

    /// The values of a key of which there may be several, as `Prolog[0]` of newer releases; none where none is set.
    pub(crate) fn configs(&self, key: &str) -> Result<Vec<&str>, Outcome> {
        let section = self.cluster("config")?;
        let values = section.lines.iter().filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.split('[').next()?.trim() == key).then_some(value.trim())
        });
        Ok(values.collect())
    }

    /// The outcome of all nodes together: one that differs differs for all, and what one node does not show is not seen.
    pub(crate) fn each(&self, check: impl Fn(&BTreeMap<String, Section>) -> Outcome) -> Outcome {
        let of = |node: &NodeEvidence| {
            let outcome = match &node.sections {
                Ok(sections) => check(sections),
                Err(why) => Outcome::NotSeen(why.clone()),
            };
            (node.node.clone(), outcome)
        };
        together(self.nodes.iter().map(of).collect())
    }

    /// The same of the facts of the probe.
    pub(crate) fn each_fact(&self, name: &str, check: impl Fn(&Value) -> Outcome) -> Outcome {
        let of = |node: &ProbedNode| {
            let outcome = match node.facts.get(name) {
                Some(value) => check(value),
                None => {
                    let why = node.unprobed.as_ref().or_else(|| node.unknown.get(name));
                    let unfit = node.unfit.first().filter(|_| node.facts.is_empty());
                    let why = why.or(unfit).cloned().unwrap_or_else(|| format!("the probe has no `{name}`"));
                    Outcome::NotSeen(why)
                }
            };
            (node.node.clone(), outcome)
        };
        together(self.probe.iter().flat_map(|probe| &probe.nodes).map(of).collect())
    }
}

fn together(outcomes: Vec<(String, Outcome)>) -> Outcome {
    let all = outcomes.len();
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| is(outcome)).count();
    let on = |node: &str, seen: &str, count: usize| match count {
        _ if all == 1 => seen.to_owned(),
        1 => format!("{node}: {seen}"),
        count if count == all => format!("all {all} nodes: {seen}"),
        count => format!("{count} of {all} nodes, such as {node}: {seen}"),
    };
    for (node, outcome) in &outcomes {
        if let Outcome::Differs(seen) = outcome {
            return Outcome::Differs(on(node, seen, count(|it| matches!(it, Outcome::Differs(_)))));
        }
    }
    for (node, outcome) in &outcomes {
        if let Outcome::NotSeen(why) = outcome {
            return Outcome::NotSeen(on(node, why, count(|it| matches!(it, Outcome::NotSeen(_)))));
        }
    }
    match outcomes.into_iter().next() {
        Some((_, holds)) => holds,
        None => Outcome::NotSeen("no node was queried".to_owned()),
    }
}

/// A section of a node that is there and ended well; else why not.
pub(super) fn section<'s>(
    sections: &'s BTreeMap<String, Section>,
    name: &str,
) -> Result<&'s Section, Outcome> {
    match sections.get(name) {
        Some(section) if section.status == Some(0) => Ok(section),
        Some(section) if section.status.is_none() => Err(Outcome::NotSeen(section.first().to_owned())),
        Some(section) => Err(Outcome::NotSeen(format!(
            "it ended with {}: {}",
            section.status.unwrap_or_default(),
            section.first()
        ))),
        None => Err(Outcome::NotSeen(format!("the node reported no `{name}`"))),
    }
}

/// The options that a program prints: some exit with an error after that.
pub(super) fn help<'s>(sections: &'s BTreeMap<String, Section>, name: &str) -> Result<&'s Section, Outcome> {
    match sections.get(name) {
        Some(section) if section.status.is_some() && section.names().count() > 2 => Ok(section),
        _ => section(sections, name)
            .and_then(|section| Err(Outcome::NotSeen(format!("it printed no options: {}", section.first())))),
    }
}

/// Whether a program's help names all of these options, each as a word of its own.
pub(super) fn lacks(section: &Section, options: &[&str]) -> Outcome {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let words: BTreeSet<&str> =
        section.lines.iter().flat_map(|line| line.split(|c: char| !is_part(c))).collect();
    let missing: Vec<&str> = options.iter().copied().filter(|option| !words.contains(option)).collect();
    match missing.is_empty() {
        true => Outcome::Holds(options.join(" ")),
        false => Outcome::Differs(format!("no {}", missing.join(" "))),
    }
}
