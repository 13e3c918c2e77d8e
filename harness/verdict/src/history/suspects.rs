//! Which parts were named or suspected before, in which runs, and whether they have passed since what they were blamed
//! in. A part that passes today is still listed: intermittent faults show over many runs only.

use super::hardware::{Identities, Now, OTHER_HARDWARE};
use super::isolations::{self, Isolation};
use super::past::{Past, Run, RunKind, is_later};
use crate::isolate::code::Code;
use base::nodeset;
use base::text::count;
use model::artefact::{CaseVerdict, Culprit, LeftOut, Status};
use std::collections::{BTreeMap, BTreeSet};

/// A part with its record. Runs are given by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The part that all this is about.
    pub component: SuspectedPart,
    /// The runs that named it alone.
    pub culprit: Vec<usize>,
    /// The runs in which it was one of several.
    pub suspect: Vec<usize>,
    /// Later runs in which its node passed what it was blamed in, and was not blamed.
    pub cleared: Vec<usize>,
    /// The runs that its node took part in, or was left out of.
    pub with: Vec<usize>,
    /// Codes that `harness explain` knows, and `-` where it was one of several.
    pub codes: BTreeSet<&'static str>,
    /// The evidence of the latest run.
    pub evidence: String,
}

/// A part with its cluster: equal names in a simulated cluster, or in another inventory, are other nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuspectedPart {
    /// Whether its runs are simulated.
    pub simulated: bool,
    /// The inventory's name.
    pub inventory: String,
    /// The node's name.
    pub node: String,
    /// A device, `gpuN` or `node`.
    pub part: String,
}

/// The blame of one run for one part.
pub(super) struct Blame {
    pub(super) component: SuspectedPart,
    pub(super) alone: bool,
    pub(super) code: &'static str,
    pub(super) evidence: String,
    /// The cases that blame it; none where the run as a whole does.
    pub(super) cases: BTreeSet<(String, String)>,
}

/// The record of all runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Blamed {
    /// The most often blamed first.
    pub suspects: Vec<Suspect>,
    /// What is not counted, since other hardware has the part's name now.
    pub gone: BTreeMap<SuspectedPart, Replaced>,
}

/// A part that is not there any more.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// The runs that blame it.
    pub runs: BTreeSet<usize>,
    /// What shows that it is another now.
    pub why: &'static str,
}

/// No code: one of several.
const UNCODED: &str = "-";

/// Those that any run blames, the most often blamed first.
pub fn suspects(past: &Past) -> Vec<Suspect> {
    blamed(past).suspects
}

/// The parts that any run blames, and those that are gone. A canary run blames no node, and clears none, nor does a run
/// of a bisection; the rounds of an
/// isolation count as one run, by what it concluded.
pub fn blamed(past: &Past) -> Blamed {
    let identities = Identities::read(&past.runs);
    let mut gone: BTreeMap<SuspectedPart, Replaced> = BTreeMap::new();
    let mut found: BTreeMap<SuspectedPart, Suspect> = BTreeMap::new();
    let mut open: BTreeMap<SuspectedPart, BTreeSet<(String, String)>> = BTreeMap::new();
    let isolations = isolations::by_last_round(past);
    let counted = || {
        let runs = past
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.kind() != RunKind::Canary && !run.is_of_bisection);
        runs.map(|(at, run)| (at, run, isolations.get(&at)))
            .filter(|(_, run, isolation)| run.round.is_none() || isolation.is_some())
    };
    for (at, run, isolation) in counted() {
        let mut blames = blames(run, isolation);
        blames.retain_mut(|blame| match identities.now(at, run, &blame.component) {
            Now::Is(component) => {
                blame.component = component;
                true
            }
            Now::Gone(why) => {
                let replaced = gone.entry(blame.component.clone()).or_default();
                replaced.runs.insert(at);
                if replaced.why != OTHER_HARDWARE {
                    replaced.why = why;
                }
                false
            }
        });
        for (component, cases) in &open {
            let is_blamed = blames.iter().any(|blame| blame.component.is_same_node(component));
            let Some(suspect) = found.get_mut(component) else { continue };
            let passed = || match isolation {
                Some(isolation) => isolation.clears(&component.node, !suspect.culprit.is_empty(), cases),
                None => passed(run, &component.node, cases),
            };
            let is_later = || suspect.last_blamed().is_none_or(|last| is_later(run, &past.runs[last]));
            if component.is_of(run) && !is_blamed && is_later() && passed() {
                suspect.cleared.push(at);
            }
        }
        for blame in blames {
            let suspect =
                found.entry(blame.component.clone()).or_insert_with(|| Suspect::new(&blame.component));
            let runs = if blame.alone { &mut suspect.culprit } else { &mut suspect.suspect };
            if runs.last() != Some(&at) {
                runs.push(at);
            }
            suspect.codes.insert(blame.code);
            suspect.evidence = blame.evidence;
            open.entry(blame.component).or_default().extend(blame.cases);
        }
    }
    let mut all: Vec<Suspect> = found.into_values().collect();
    for suspect in &mut all {
        let node = &suspect.component.node;
        let blamed = suspect.blamed();
        let is_with = |at: &usize, run: &Run, isolation: Option<&Isolation<'_>>| match isolation {
            Some(isolation) => isolation.has(node) || blamed.contains(at),
            None => run.plan().nodes.contains(node),
        };
        suspect.with = counted()
            .filter(|(at, run, isolation)| {
                let is_same = || !identities.is_other(*at, run, node) || blamed.contains(at);
                suspect.component.is_of(run) && is_with(at, run, *isolation) && is_same()
            })
            .map(|(at, ..)| at)
            .collect();
    }
    all.sort_by(|a, b| (b.blamed().len(), &a.component).cmp(&(a.blamed().len(), &b.component)));
    Blamed { suspects: all, gone }
}

pub(super) fn blames(run: &Run, isolation: Option<&Isolation<'_>>) -> Vec<Blame> {
    let culprits = isolation.map_or_else(|| run.culprits.clone(), Isolation::culprits);
    let left_out: &[LeftOut] = isolation.map_or_else(|| run.left_out(), Isolation::left_out);
    let cases_that_blame = |node: &str| match isolation {
        Some(isolation) => [isolation.case()].into(),
        None => cases_that_blame(run, node),
    };
    let component = |node: &str, part: &str| SuspectedPart {
        simulated: run.is_simulated(),
        inventory: run.plan().inventory.clone(),
        node: node.to_owned(),
        part: part.to_owned(),
    };
    // A folder that all nodes share is no fault of theirs; and who was quarantined is named by the run itself.
    let left = left_out.iter().filter(|left| !left.by_folder && left.after.is_none()).map(|left| Blame {
        component: component(&left.node, "node"),
        alone: true,
        code: "HRN-NODE-UNFIT",
        evidence: left.why.clone(),
        cases: BTreeSet::new(),
    });
    let named = culprits.iter().flat_map(|culprit| match culprit {
        Culprit::Culprit { node, part, evidence, .. } => vec![Blame {
            component: component(node, part),
            alone: true,
            code: Code::for_culprit(culprit).map_or(UNCODED, |code| code.name),
            evidence: evidence.clone(),
            cases: cases_that_blame(node),
        }],
        Culprit::Suspects { nodes, evidence } => nodes
            .iter()
            .map(|node| Blame {
                component: component(node, "node"),
                alone: false,
                code: UNCODED,
                evidence: evidence.clone(),
                cases: cases_that_blame(node),
            })
            .collect(),
        Culprit::Fleet { .. } => Vec::new(),
    });
    left.chain(named).collect()
}

fn cases_that_blame(run: &Run, node: &str) -> BTreeSet<(String, String)> {
    let blames = |culprit: &Culprit| culprit.nodes().contains(&node);
    let cases = run.cases.iter().filter(|case| case.culprits.iter().any(blames));
    cases.map(|case| (case.suite.clone(), case.case.clone())).collect()
}

/// Whether the node passed, in one of these cases at least: another kind of work could not have shown what it was
/// blamed for. Where no case blamed it, any will do.
fn passed(run: &Run, node: &str, cases: &BTreeSet<(String, String)>) -> bool {
    let is_meant =
        |case: &&CaseVerdict| cases.is_empty() || cases.contains(&(case.suite.clone(), case.case.clone()));
    run.cases.iter().map(|case| &**case).filter(is_meant).any(|case| {
        let about = case.verdicts.iter().filter(|verdict| {
            let of_nodes = || nodeset::expand(&verdict.nodes).unwrap_or_default();
            match &verdict.node {
                Some(own) => own == node,
                None => of_nodes().iter().any(|one| one == node),
            }
        });
        let statuses: BTreeSet<Status> = about.map(|verdict| verdict.status).collect();
        statuses.contains(&Status::Pass)
            && statuses
                .iter()
                .all(|status| matches!(status, Status::Pass | Status::Skipped | Status::Unjudged))
    })
}

impl SuspectedPart {
    fn is_of(&self, run: &Run) -> bool {
        self.simulated == run.is_simulated() && self.inventory == run.plan().inventory
    }

    fn is_same_node(&self, other: &SuspectedPart) -> bool {
        (self.simulated, &self.inventory, &self.node) == (other.simulated, &other.inventory, &other.node)
    }
}

impl Suspect {
    fn new(component: &SuspectedPart) -> Suspect {
        Suspect {
            component: component.clone(),
            culprit: Vec::new(),
            suspect: Vec::new(),
            cleared: Vec::new(),
            with: Vec::new(),
            codes: BTreeSet::new(),
            evidence: String::new(),
        }
    }

    /// The runs that blame it, in their order.
    pub fn blamed(&self) -> BTreeSet<usize> {
        self.culprit.iter().chain(&self.suspect).copied().collect()
    }

    fn last_blamed(&self) -> Option<usize> {
        self.culprit.last().max(self.suspect.last()).copied()
    }

    /// Nothing since has cleared it.
    pub fn is_open(&self) -> bool {
        self.last_blamed().as_ref() > self.cleared.last()
    }

    /// Of the last `most` runs with its node: how many there are, and how many of them blame it.
    pub fn lately(&self, most: usize) -> (usize, usize) {
        let lately: Vec<&usize> = self.with.iter().rev().take(most).collect();
        let blamed = self.blamed();
        (lately.len(), lately.into_iter().filter(|at| blamed.contains(at)).count())
    }
}

/// How many earlier runs with the node a run looks back on.
pub const LOOKED_BACK: usize = 5;

/// The record of earlier runs for the parts that this run names: one line each.
pub fn before(past: &Past, simulated: bool, inventory: &str, culprits: &[Culprit]) -> Vec<String> {
    let Blamed { suspects: known, gone } = blamed(past);
    let mut named: BTreeSet<(&str, &str)> = BTreeSet::new();
    for culprit in culprits {
        match culprit {
            Culprit::Culprit { node, part, .. } => {
                named.insert((node, part));
            }
            Culprit::Suspects { nodes, .. } => named.extend(nodes.iter().map(|node| (node.as_str(), "node"))),
            Culprit::Fleet { .. } => {}
        }
    }
    let mut lines = Vec::new();
    for (component, replaced) in &gone {
        let is_named = named.iter().any(|(node, _)| *node == component.node);
        if is_named && (component.simulated, component.inventory.as_str()) == (simulated, inventory) {
            lines.push(format!("before: {}", not_counted(component, replaced)));
        }
    }
    for (node, part) in named {
        // A node that was only suspected may have had a part of it named, and the other way round.
        let own = |suspect: &&Suspect| {
            let component = &suspect.component;
            (component.simulated, component.inventory.as_str(), component.node.as_str())
                == (simulated, inventory, node)
                && (component.part == part || component.part == "node" || part == "node")
        };
        for suspect in known.iter().filter(own) {
            let (of, times) = suspect.lately(LOOKED_BACK);
            if times == 0 {
                continue;
            }
            let role = if suspect.culprit.is_empty() { "suspected" } else { "named" };
            let last = suspect.blamed().last().and_then(|at| past.runs.get(*at));
            let last = last.map(|run| format!("{} UTC", run.made)).unwrap_or_default();
            let part = &suspect.component.part;
            lines.push(match of {
                1 => format!("before: {node} {part}: {role} in the last run on this node, {last}"),
                of => format!(
                    "before: {node} {part}: {role} in {times} of the last {of} runs on this node, last {last}"
                ),
            });
        }
    }
    lines
}

/// A part whose name other hardware has now.
pub fn not_counted(component: &SuspectedPart, Replaced { runs, why }: &Replaced) -> String {
    let SuspectedPart { node, part, .. } = component;
    format!("{node} {part}: {why}; not counted: blamed in {}", count(runs.len(), "run"))
}
