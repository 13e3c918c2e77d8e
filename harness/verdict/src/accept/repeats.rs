//! Repeats of cases that nodes missed narrowly. One number decides nothing: two passes of three runs do, as their median would,
//! and a second miss leaves the node open.

use super::schedule::{Open, RunResult, Schedule};
use super::stages::Stage;
use plan::Placed;

/// After the first miss: two passes outweigh it, and nothing outweighs two misses.
pub const MOST_REPEATS: usize = 2;

/// As many jobs or nodes as can be compared with each other run in a repeat, where the stage had so many.
const FEWEST_COMPARED: usize = 4;

/// The nodes that a run left open.
#[derive(Debug, Default)]
pub struct OpenNodes {
    /// Their cases are repeated.
    pub near_misses: Vec<Open>,
    /// A repeat with the same nodes would not decide them.
    pub others: Vec<Open>,
}

impl Schedule {
    /// Who missed narrowly, with nodes of which none is bad by now.
    pub fn near_misses(&self, open: Vec<Open>) -> OpenNodes {
        let (near_misses, others) =
            open.into_iter().partition(|one| one.node_status.is_near_miss() && !self.had_bad_company(one));
        OpenNodes { near_misses, others }
    }

    /// After a repeat, the first being 1: who has passed both is as good as any other, who missed again is left open. Who
    /// failed, or ran with a node that is bad by now, is given back to be looked into.
    pub fn repeated(
        &mut self,
        stage: Stage,
        near_misses: Vec<Open>,
        result: &RunResult,
        repeat: usize,
    ) -> OpenNodes {
        self.withdraw_named(stage, result);
        // Whoever is only compared with has passed before: one narrow miss decides nothing there either.
        let missed = result.node_statuses.iter().filter(|(_, node_status)| node_status.is_near_miss());
        let missed = missed.map(|(node, node_status)| Open::new(result, node, node_status));
        let tried: Vec<Open> = near_misses.iter().cloned().chain(missed).collect();
        self.settle_named(stage, &tried, result);
        let mut open = OpenNodes::default();
        for one in near_misses {
            if !self.is_in(&one.node) {
                continue;
            }
            let Some(node_status) = result.node_statuses.get(&one.node) else {
                open.others.push(one);
                continue;
            };
            let then = Open::new(result, &one.node, node_status);
            if self.had_bad_company(&one) || self.had_bad_company(&then) {
                open.others.push(one);
            } else if node_status.has_failed() {
                open.others.push(then);
            } else if !node_status.has_passed() {
                let why = format!("passed {} of {} runs: {}", repeat - 1, repeat + 1, node_status.why());
                self.leave_open(stage, &one.node, &why);
            } else if repeat < MOST_REPEATS {
                open.near_misses.push(one);
            } else if !stage.is_alone() && !self.proven.contains(&one.node) {
                self.proven.push(one.node);
            }
        }
        open
    }

    fn had_bad_company(&self, one: &Open) -> bool {
        one.with.iter().any(|other| self.is_bad(other))
    }

    /// The jobs of a case that are repeated: those of the near misses, and others to compare them with. None has a bad node.
    pub fn repeated_jobs(&self, near_misses: &[Open], jobs: &[Placed]) -> Vec<Placed> {
        let is_missed = |job: &Placed| near_misses.iter().any(|one| job.nodes.contains(&one.node));
        let usable = jobs.iter().filter(|job| !job.nodes.iter().any(|node| self.is_bad(node)));
        let (mut repeated, others): (Vec<Placed>, Vec<Placed>) = usable.cloned().partition(is_missed);
        let lacking = FEWEST_COMPARED.saturating_sub(repeated.len());
        repeated.extend(others.into_iter().take(lacking));
        repeated.sort_by_key(|job| job.round);
        repeated
    }

    /// The same of nodes that ran by themselves, in their order.
    pub fn repeated_nodes(&self, near_misses: &[Open], nodes: &[String]) -> Vec<String> {
        let is_missed = |node: &String| near_misses.iter().any(|one| one.node == *node);
        let mut lacking = FEWEST_COMPARED.saturating_sub(near_misses.len());
        let mut is_repeated = |node: &String| {
            if is_missed(node) {
                return true;
            }
            let is_taken = lacking > 0 && !self.is_bad(node);
            lacking -= usize::from(is_taken);
            is_taken
        };
        nodes.iter().filter(|node| is_repeated(node)).cloned().collect()
    }
}
