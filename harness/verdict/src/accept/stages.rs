//! The stages of an acceptance, and which cases of a suite are whose: by how many nodes they are placed on.

use config::suite::{Case, Placement, Suite};
use std::collections::{BTreeMap, BTreeSet};

/// From the cheapest to the most expensive: a node that fails in one costs nothing in later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A probe of all nodes; nothing is launched.
    Preflight,
    /// Cases on one node or on single GPUs.
    Single,
    /// The case with `soak`: hours of load on each node, window by window.
    Soak,
    /// Cases on two nodes, NIC flows included.
    Pairs,
    /// Cases on a fixed number of nodes above two.
    Groups,
    /// Cases on all nodes together.
    All,
}

impl Stage {
    /// In the order in which they run.
    pub const ALL: [Stage; 6] =
        [Stage::Preflight, Stage::Single, Stage::Soak, Stage::Pairs, Stage::Groups, Stage::All];

    /// As in reports and `acceptance.json`: `single node`.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Preflight => "preflight",
            Stage::Single => "single node",
            Stage::Soak => "soak",
            Stage::Pairs => "pairs",
            Stage::Groups => "groups",
            Stage::All => "all",
        }
    }

    /// Good as part of a file's name.
    pub fn slug(self) -> &'static str {
        match self {
            Stage::Single => "single",
            stage => stage.name(),
        }
    }

    /// Whether its jobs run on one node each: a failure there is the node's own.
    pub fn is_alone(self) -> bool {
        matches!(self, Stage::Single | Stage::Soak)
    }

    fn from_case(case: &Case) -> Stage {
        if case.soak.is_some() {
            return Stage::Soak;
        }
        match (case.workload.flows(), case.placement) {
            (Some(_), _) => Stage::Pairs,
            (_, Placement::Each | Placement::EachGpu | Placement::Nodes(0 | 1)) => Stage::Single,
            (_, Placement::Pairs | Placement::Nodes(2) | Placement::Groups(0..=2)) => Stage::Pairs,
            (_, Placement::Nodes(_) | Placement::Groups(_)) => Stage::Groups,
            (_, Placement::All) => Stage::All,
        }
    }
}

/// The suite of each stage that has one; or all that keeps this suite from accepting anything.
pub fn divide(suite: &Suite) -> Result<BTreeMap<Stage, Suite>, Vec<String>> {
    let mut diagnostics = Vec::new();
    let mut stages: BTreeMap<Stage, Suite> = BTreeMap::new();
    for case in &suite.cases {
        let odd = match case {
            Case { expected_failure: Some(_), .. } => Some("it has `expected_failure`"),
            Case { must_end: Some(_), .. } => Some("it has `must_end`"),
            case if !case.sim_faults.is_empty() => Some("it has `sim_faults`"),
            case if case.assertions.is_empty() => Some("it has no assertions"),
            case if case.soak.is_some() && stages.contains_key(&Stage::Soak) => {
                Some("the suite has another soak before it")
            }
            _ => None,
        };
        if let Some(odd) = odd {
            let (file, line) = (&suite.file, case.line);
            diagnostics
                .push(format!("{file}:{line}: case `{}` cannot be used to accept nodes: {odd}", case.name));
        }
        let of_stage = stages
            .entry(Stage::from_case(case))
            .or_insert_with(|| Suite { cases: Vec::new(), ..suite.clone() });
        // Each new node has its own run of what is declared for one node.
        let placement = match case.placement {
            Placement::Nodes(0 | 1) => Placement::Each,
            placement => placement,
        };
        of_stage.cases.push(Case { placement, ..case.clone() });
    }
    for of_stage in stages.values_mut() {
        let names: BTreeSet<String> = of_stage.cases.iter().map(|case| case.name.clone()).collect();
        // Cases of earlier stages have passed for all nodes that came so far.
        of_stage.cases.iter_mut().for_each(|case| case.after.retain(|name| names.contains(name)));
    }
    if suite.cases.is_empty() {
        diagnostics.push(format!("{}: the suite has no case", suite.file));
    }
    if diagnostics.is_empty() { Ok(stages) } else { Err(diagnostics) }
}

/// On how many nodes a case of `groups` is placed.
pub fn size_of_group(case: &Case) -> usize {
    match case.placement {
        Placement::Groups(k) | Placement::Nodes(k) => k as usize,
        _ => 2,
    }
}
