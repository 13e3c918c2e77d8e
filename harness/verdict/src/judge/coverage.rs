//! How much of what was planned was measured: nodes, ranks, NICs, sizes. A pass without it says little.

use super::CaseData;
use super::gate::Gate;
use metric::{Dim, MetricSpec, Role};
use model::artefact::{CoverageSets, PlannedCase};
use recipes::catalogue::Catalogue;
use recipes::recipe::{self, RecipeSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether recipes of the case show which NICs were measured.
pub fn reads_nics(case: &PlannedCase, catalogue: &Catalogue) -> bool {
    let shows_nics = |recipe: RecipeSpec| recipe.metrics.iter().any(|metric| metric.is(Role::ShowsNics));
    case.recipes.iter().filter_map(|name| catalogue.job_recipe(name)).any(shows_nics)
}

/// Within a node nothing goes over its NICs: that their counters were read measures none.
fn uses_nics(nodes: &[String]) -> bool {
    nodes.len() > 1
}

pub(super) fn collect(data: &CaseData, gates: &BTreeMap<&str, Gate>) -> CoverageSets {
    let mut sets = CoverageSets { gpus: data.instance.gpus, ..CoverageSets::default() };
    if data.jobs.skipped.is_some() {
        return sets;
    }
    let shows_ranks = data.case.workload.traits().shows_ranks;
    let reads_nics = reads_nics(data.case, data.catalogue);
    for planned in &data.case.jobs {
        for node in &planned.nodes {
            sets.nodes.expected.insert(node.clone());
            if shows_ranks {
                sets.ranks.expected.insert(node.clone());
            }
            if reads_nics && uses_nics(&planned.nodes) {
                sets.nics_of_nodes.expect(node, &data.instance.nics);
            }
        }
    }
    sets.sizes.expected.extend(data.case.workload.sizes());
    let nodes_of: BTreeMap<&str, &[String]> =
        data.case.jobs.iter().map(|job| (job.name.as_str(), job.nodes.as_slice())).collect();
    let is_open = |job: &str| matches!(gates.get(job), Some(Gate::Open));
    // A job has thousands of rows, and its nodes are the same for each of them.
    let (mut counted, mut ranks_counted) = (BTreeSet::new(), BTreeSet::new());
    let mut asked: Option<(&Arc<str>, Option<&MetricSpec>)> = None;
    for row in data.metrics.rows() {
        // The rate of a NIC is made of several jobs and names none; its flows do.
        let job = row.dims.word(Dim::Job);
        if job.is_some_and(|job| !is_open(job)) || !row.value.is_finite() {
            continue;
        }
        let nodes = job.and_then(|job| nodes_of.get(job).copied()).unwrap_or_default();
        if counted.insert(job) {
            sets.nodes.measured.extend(nodes.iter().cloned());
        }
        // Rows are sorted by name.
        if asked.is_none_or(|(name, _)| *name != row.name) {
            asked = Some((&row.name, recipe::built_in(&row.name)));
        }
        match asked.and_then(|(_, metric)| metric) {
            Some(metric) if metric.is(Role::ShowsSizes) => {
                sets.sizes.measured.extend(row.dims.number(Dim::SizeBytes));
                match row.dims.word(Dim::Node) {
                    Some(node) => sets.ranks.measured.extend([node.to_owned()]),
                    None if ranks_counted.insert(job) => sets.ranks.measured.extend(nodes.iter().cloned()),
                    None => {}
                }
            }
            Some(metric) if metric.is(Role::ShowsNics) && (job.is_none() || uses_nics(nodes)) => {
                if let (Some(node), Some(nic)) = (row.dims.word(Dim::Node), row.dims.word(Dim::Nic)) {
                    sets.nics_of_nodes.measure(node, nic);
                }
            }
            _ => {}
        }
    }
    sets
}
