//! The worst verdict of each node in each case of a run, and its sign in a map of nodes.

#[cfg(test)]
pub(crate) use super::marks::weight as weight_of;
use super::marks::{BY_WEIGHT, mark, weight};
use base::nodeset;
use model::artefact::{CaseVerdict, Plan, PlannedAssertion, PlannedCase};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The worst verdict of a node in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// As in `BY_WEIGHT`: 0 is the worst.
    pub weight: usize,
    /// The result is of a job on several nodes.
    pub is_shared: bool,
}

pub(crate) const EMPTY: Cell = Cell { weight: usize::MAX, is_shared: false };

/// The class and the letter of a cell; those of shared results are small letters.
pub(crate) fn sign(cell: Cell) -> (String, String) {
    let Some(status) = BY_WEIGHT.get(cell.weight).copied() else { return ("n".to_owned(), String::new()) };
    let mark = mark(status);
    match cell.is_shared {
        true => (format!("s{}", mark.class), mark.letter.to_lowercase()),
        false => (mark.class.to_owned(), mark.letter.to_owned()),
    }
}

/// The same in words.
pub(crate) fn meaning(cell: Cell) -> String {
    match BY_WEIGHT.get(cell.weight) {
        None => "not run".to_owned(),
        Some(status) if cell.is_shared && status.is_red() => {
            format!("{} of a job that it shared with other nodes", status.name())
        }
        Some(status) => status.name().to_owned(),
    }
}

/// By node and by case, in the order of the plan.
pub(crate) fn node_cells<C: Borrow<CaseVerdict>>(plan: &Plan, cases: &[C]) -> Vec<Vec<Cell>> {
    let places: BTreeMap<&str, usize> =
        plan.nodes.iter().enumerate().map(|(at, node)| (node.as_str(), at)).collect();
    let mut cells = vec![vec![EMPTY; plan.cases.len()]; plan.nodes.len()];
    let mut folded: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (column, planned) in plan.cases.iter().enumerate() {
        let Some(case) =
            cases.iter().map(|case| -> &CaseVerdict { case.borrow() }).find(|case| case.case == planned.name)
        else {
            continue;
        };
        let together = jobs_on_several_nodes(planned);
        let assertions: BTreeMap<&str, &PlannedAssertion> =
            planned.assertions.iter().map(|one| (one.name.as_str(), one)).collect();
        for verdict in &case.verdicts {
            let nodes = match &verdict.node {
                Some(node) => places.get(node.as_str()).copied().into_iter().collect(),
                None => folded
                    .entry(verdict.nodes.as_str())
                    .or_insert_with(|| places_of(&places, &verdict.nodes))
                    .clone(),
            };
            // What a node shows in a job that it shares is that job's, but for the numbers of its parts.
            let is_of_shared_job = || {
                let planned = assertions.get(verdict.name.as_str());
                planned.is_some_and(|one| one.jobs.iter().any(|job| together.contains(job.as_str())))
            };
            let is_of_parts = verdict.part.is_some() || !verdict.nics.is_empty();
            let is_shared = nodes.len() > 1 || (!is_of_parts && is_of_shared_job());
            let cell = Cell { weight: weight(verdict.status), is_shared };
            for node in nodes {
                let place = &mut cells[node][column];
                *place = (*place).min(cell);
            }
        }
    }
    cells
}

fn jobs_on_several_nodes(case: &PlannedCase) -> BTreeSet<&str> {
    case.jobs.iter().filter(|job| job.nodes.len() > 1).map(|job| job.name.as_str()).collect()
}

fn places_of(places: &BTreeMap<&str, usize>, nodes: &str) -> Vec<usize> {
    let nodes = nodeset::expand(nodes).unwrap_or_default();
    nodes.iter().filter_map(|node| places.get(node.as_str()).copied()).collect()
}
