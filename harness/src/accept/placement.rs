//! Which nodes run together, case by case: by the stage, by which nodes are known to be good, and by the numbers of
//! nodes for which there are baselines.

use super::acceptance_session::{AcceptanceSession, Sets};
use base::nodeset;
use config::suite::{Case, Placement, Suite};
use model::artefact::PlannedBaseline;
use plan::Placed;
use std::collections::BTreeSet;
use verdict::accept::pairing;
use verdict::accept::stages::{Stage, size_of_group};

impl AcceptanceSession {
    /// The cases of a stage as they are placed on these nodes, and their partners.
    pub(crate) fn place(&self, stage: Stage, suite: &Suite, nodes: &[String]) -> (Suite, Sets) {
        let mut placed = Suite { cases: Vec::new(), ..suite.clone() };
        let mut sets = Sets::new();
        // Good nodes that none of them has met come first.
        let is_new = |good: &String| {
            !nodes.iter().any(|node| self.had.get(node).is_some_and(|had| had.contains(good)))
        };
        let (mut good, others): (Vec<String>, Vec<String>) =
            self.schedule.good().into_iter().partition(is_new);
        good.extend(others);
        for case in &suite.cases {
            let (of_case, placement) = match stage {
                Stage::Preflight | Stage::Single | Stage::Soak => continue,
                Stage::Pairs => (self.pairs(case, nodes), Placement::Pairs),
                Stage::Groups => {
                    let size = size_of_group(case);
                    (pairing::groups(nodes, &good, size), Placement::Groups(size as u32))
                }
                Stage::All => {
                    let counts = self.counts(suite, case, nodes, &good);
                    let all = pairing::all(nodes, &good, &|n| {
                        counts.as_ref().is_none_or(|known| known.contains(&n))
                    });
                    let size = all.first().map_or(0, |job| job.nodes.len());
                    (all, Placement::Groups(size as u32))
                }
            };
            sets.insert(case.name.clone(), of_case);
            placed.cases.push(Case { placement, ..case.clone() });
        }
        (placed, sets)
    }

    fn pairs(&self, case: &Case, nodes: &[String]) -> Vec<Placed> {
        let is_flows = case.workload.flows().is_some();
        let good = self.schedule.good();
        if good.is_empty() {
            let (jobs, flows) = pairing::among(nodes);
            return if is_flows { flows } else { jobs };
        }
        // Who did well in this stage already is a better partner than who did well some time ago.
        let witnesses = self.schedule.witnesses();
        let choose = |had: &pairing::Had| {
            let mut pairs = pairing::pairs(nodes, &witnesses, had);
            let is_left = |node: &&String| !pairs.iter().any(|(paired, _)| paired == *node);
            let left: Vec<String> = nodes.iter().filter(is_left).cloned().collect();
            pairs.extend(pairing::pairs(&left, &good, had));
            pairs
        };
        let mut pairs = choose(&self.had);
        if !is_flows {
            return pairing::jobs_of_pairs(&pairs);
        }
        // With one partner a bad NIC cannot be distinguished from a bad path to it.
        let mut had = self.had.clone();
        for (node, partner) in &pairs {
            had.entry(node.clone()).or_default().insert(partner.clone());
        }
        pairs.extend(choose(&had));
        pairing::flows_of_pairs(&pairs)
    }

    /// On how many nodes a case has all the baselines that it is compared with; nothing where it needs none.
    fn counts(
        &self,
        suite: &Suite,
        case: &Case,
        nodes: &[String],
        good: &[String],
    ) -> Option<BTreeSet<usize>> {
        if !case.assertions.iter().any(|assertion| assertion.bound.baseline) {
            return None;
        }
        let entries = self.baselines.iter().flat_map(|baselines| &baselines.entries);
        let counts: BTreeSet<usize> =
            entries.filter_map(|entry| entry.key.nodes).map(|n| n as usize).collect();
        let has_numbers = |count: &usize| {
            let one = pairing::groups(nodes, good, *count).into_iter().take(1).collect::<Vec<_>>();
            let Some(job) = one.first() else { return false };
            let alone = Case { placement: Placement::Groups(*count as u32), ..case.clone() };
            let of_one = Suite { cases: vec![alone], ..suite.clone() };
            let sets = Sets::from([(case.name.clone(), one.clone())]);
            let Ok(plan) = self.plan(&of_one, "none", job.nodes.clone(), sets) else { return false };
            let mut bounds =
                plan.cases.iter().flat_map(|case| &case.assertions).map(|one| &one.bound.baseline);
            bounds.all(|one| !matches!(one, Some(PlannedBaseline::None { .. } | PlannedBaseline::Expired(_))))
        };
        let most = nodes.len() + good.len();
        let known: BTreeSet<usize> =
            counts.into_iter().filter(|count| *count > 1 && *count <= most).filter(has_numbers).collect();
        // Where there are no numbers on any count, one count is as good as another: all at once.
        (!known.is_empty()).then_some(known)
    }
}

/// Everybody in these sets, in the order of names.
pub(crate) fn members(sets: &Sets) -> Vec<String> {
    let all: BTreeSet<&String> = sets.values().flatten().flat_map(|job| &job.nodes).collect();
    let mut all: Vec<String> = all.into_iter().cloned().collect();
    nodeset::sort(&mut all);
    all
}
