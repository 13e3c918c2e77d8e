//! Runs the cases again that nodes missed narrowly, before a stage decides. Which those are, and what the repeats prove, is in
//! `verdict::accept::repeats`.

use super::acceptance_session::{AcceptanceSession, Sets};
use super::delivery::Stopped;
use super::messages;
use super::placement::members;
use config::suite::{Case, Suite};
use std::collections::BTreeSet;
use verdict::accept::repeats::{MOST_REPEATS, OpenNodes};
use verdict::accept::schedule::Open;
use verdict::accept::stages::Stage;

impl AcceptanceSession {
    /// Of a run of `suite` on `nodes`, with its cases where `sets` places them: what repeats leave to be decided otherwise.
    pub(super) fn repeat_near_misses(
        &mut self,
        stage: Stage,
        suite: &Suite,
        nodes: &[String],
        sets: &Sets,
        open: Vec<Open>,
    ) -> Result<Vec<Open>, Stopped> {
        let OpenNodes { mut near_misses, mut others } = self.schedule.near_misses(open);
        for repeat in 1..=MOST_REPEATS {
            if near_misses.is_empty() {
                break;
            }
            let missed = near_misses.iter().flat_map(|one| &one.node_status.bad);
            let names: BTreeSet<String> = missed.map(|bad| bad.case.clone()).collect();
            let sets: Sets = sets
                .iter()
                .filter(|(case, _)| names.contains(*case))
                .map(|(case, jobs)| (case.clone(), self.schedule.repeated_jobs(&near_misses, jobs)))
                .collect();
            let nodes = match sets.is_empty() {
                true => self.schedule.repeated_nodes(&near_misses, nodes),
                false => members(&sets),
            };
            let about = messages::repeat(repeat, MOST_REPEATS, &names);
            let result = match self.run(stage, &about, &only(suite, &names), &nodes, sets) {
                Ok(result) => result,
                // What passed stays passed.
                Err(Stopped::Budget(needed)) => {
                    let asked = self.delivery.record.asked.budget.unwrap_or_default();
                    let spent = messages::budget_spent(needed, self.delivery.node_hours(), asked);
                    for one in &near_misses {
                        let why = format!("{spent}: {}", one.node_status.why());
                        self.schedule.leave_open(stage, &one.node, &why);
                    }
                    break;
                }
                Err(stopped) => return Err(stopped),
            };
            let after = self.schedule.repeated(stage, near_misses, &result, repeat);
            near_misses = after.near_misses;
            others.extend(after.others);
        }
        Ok(others)
    }
}

/// The suite with these cases alone; what came before them has passed.
fn only(suite: &Suite, names: &BTreeSet<String>) -> Suite {
    let is_named = |case: &&Case| names.contains(&case.name);
    let mut cases: Vec<Case> = suite.cases.iter().filter(is_named).cloned().collect();
    cases.iter_mut().for_each(|case| case.after.retain(|name| names.contains(name)));
    Suite { cases, ..suite.clone() }
}
