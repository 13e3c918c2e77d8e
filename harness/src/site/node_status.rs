//! What a node came to in a run as a whole: the worst of its cases, or that not all of them were judged.

use crate::report::node_cells::{Cell, EMPTY, meaning, node_cells, sign};
use std::collections::{BTreeMap, BTreeSet};
use verdict::history::past::Run;

/// The smaller, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeStatus(u8);

/// Red statuses come first in the order of cells.
const RED: usize = 4;
const STATUSES: usize = 8;

impl NodeStatus {
    /// Left out of the run before or while it went on.
    pub(super) const LEFT_OUT: NodeStatus = NodeStatus(2 * RED as u8);
    /// A job of the run was to use it, and its case was not judged.
    pub(super) const INCOMPLETE: NodeStatus = NodeStatus(2 * RED as u8 + 1);
    /// It was not in the run.
    pub(super) const ABSENT: NodeStatus = NodeStatus(u8::MAX);

    pub(super) fn from_cell(cell: Cell) -> NodeStatus {
        let place = 2 * cell.weight.min(STATUSES) + usize::from(cell.is_shared);
        match cell.weight {
            0..RED => NodeStatus(place as u8),
            RED..STATUSES => NodeStatus(place as u8 + 2),
            _ => NodeStatus::ABSENT,
        }
    }

    fn cell(self) -> Option<Cell> {
        let place = match usize::from(self.0) {
            place @ 0..8 => place,
            place @ 10..18 => place - 2,
            _ => return None,
        };
        Some(Cell { weight: place / 2, is_shared: place % 2 == 1 })
    }

    pub(super) fn is_red(self) -> bool {
        self < NodeStatus::LEFT_OUT
    }

    /// Whether the node's own numbers are red, rather than those of a job that it shared.
    pub(super) fn is_own_red(self) -> bool {
        self.is_red() && self.cell().is_some_and(|cell| !cell.is_shared)
    }

    /// The class and the letter in a map.
    pub(super) fn sign(self) -> (String, String) {
        match self {
            NodeStatus::LEFT_OUT => ("o".to_owned(), "L".to_owned()),
            NodeStatus::INCOMPLETE => ("m".to_owned(), "…".to_owned()),
            _ => sign(self.cell().unwrap_or(EMPTY)),
        }
    }

    pub(super) fn meaning(self) -> String {
        match self {
            NodeStatus::LEFT_OUT => "left out".to_owned(),
            NodeStatus::INCOMPLETE => "not all of its cases were judged".to_owned(),
            NodeStatus::ABSENT => "not in the run".to_owned(),
            _ => meaning(self.cell().unwrap_or(EMPTY)),
        }
    }
}

/// Of each node of a run.
pub(super) fn node_statuses(run: &Run) -> BTreeMap<&str, NodeStatus> {
    let plan = run.plan();
    let mut statuses: BTreeMap<&str, NodeStatus> = BTreeMap::new();
    let mut worsen = |node, status: NodeStatus| {
        let entry = statuses.entry(node).or_insert(NodeStatus::ABSENT);
        *entry = (*entry).min(status);
    };
    let planned: Vec<BTreeSet<&str>> = plan
        .cases
        .iter()
        .map(|case| match case.skip {
            Some(_) => BTreeSet::new(),
            None => case.jobs.iter().flat_map(|job| job.nodes.iter().map(String::as_str)).collect(),
        })
        .collect();
    for (node, cells) in plan.nodes.iter().zip(node_cells(plan, &run.cases)) {
        for (cell, planned) in cells.into_iter().zip(&planned) {
            match NodeStatus::from_cell(cell) {
                NodeStatus::ABSENT if planned.contains(node.as_str()) => worsen(node, NodeStatus::INCOMPLETE),
                status => worsen(node, status),
            }
        }
    }
    // A run that could not be read as a whole proves no node good.
    for left in &plan.left_out {
        worsen(&left.node, NodeStatus::LEFT_OUT);
    }
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::node_cells::EMPTY;

    #[test]
    fn the_worst_of_a_node_is_red_before_left_out_before_incomplete_before_green() {
        let all = (0..=STATUSES).flat_map(|weight| [false, true].map(|is_shared| Cell { weight, is_shared }));
        let mut places: Vec<NodeStatus> = all.clone().map(NodeStatus::from_cell).collect();
        assert!(places.is_sorted());
        for (cell, status) in all.zip(&places).take(2 * STATUSES) {
            assert_eq!(status.cell(), Some(cell));
            assert_eq!(status.is_red(), cell.weight < RED, "{cell:?}");
            let named = meaning(cell);
            assert_eq!(status.meaning(), named);
        }
        places.dedup();
        assert_eq!(NodeStatus::from_cell(EMPTY), NodeStatus::ABSENT);
        let between =
            [NodeStatus(7), NodeStatus::LEFT_OUT, NodeStatus::INCOMPLETE, NodeStatus(10), NodeStatus::ABSENT];
        assert!(between.is_sorted());
        // Every status that cannot exit 0 is red here, and no other.
        for status in model::artefact::Status::ALL {
            let weight = crate::report::node_cells::weight_of(status);
            let own = NodeStatus::from_cell(Cell { weight, is_shared: false });
            assert_eq!(own.is_red(), status.is_red(), "{status:?}");
        }
    }
}
