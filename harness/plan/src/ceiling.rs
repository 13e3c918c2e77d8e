//! What no bandwidth of a job can exceed, stated with each assertion on one: whoever judges knows no hardware.

use config::hardware_limits;
use config::inventory::Instance;
use config::suite::{Case, Placement};
use metric::Limit;
use model::artefact::{PlannedAssertion, PlannedJob};
use recipes::recipe;
use std::collections::HashMap;

pub(crate) fn state(
    assertions: &mut [PlannedAssertion],
    jobs: &[PlannedJob],
    case: &Case,
    instance: &Instance,
) {
    let Some(tests) = case.workload.collective() else { return };
    // A split mask makes communicators whose shape is its own.
    if tests.split_mask.is_some() {
        return;
    }
    // Without NVLink each GPU is a node of its own, with its part of the wire.
    let apart = tests.through_nics.then(|| Instance {
        nic_line_rate_gb_s: instance.nic_line_rate_gb_s / f64::from(instance.gpus.max(1)),
        ..instance.clone()
    });
    let instance = apart.as_ref().unwrap_or(instance);
    let by_name: HashMap<&str, &PlannedJob> = jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    for assertion in assertions {
        let ceiling = match recipe::built_in(&assertion.metric).and_then(|metric| metric.limit) {
            Some(Limit::BusBandwidth) => hardware_limits::busbw_ceiling,
            Some(Limit::AlgorithmBandwidth) => hardware_limits::algbw_ceiling,
            _ => continue,
        };
        let extents = assertion.jobs.iter().filter_map(|name| by_name.get(name.as_str())).map(|job| {
            let ranks = if case.placement == Placement::EachGpu { 1 } else { job.ranks };
            let nodes = if tests.through_nics { ranks } else { job.nodes.len() as u32 };
            ceiling(tests.op, ranks, nodes, tests.algorithm, instance)
        });
        let loosest = extents.fold(0.0, f64::max);
        assertion.bound.ceiling = Some(loosest).filter(|ceiling| *ceiling > 0.0 && ceiling.is_finite());
    }
}
