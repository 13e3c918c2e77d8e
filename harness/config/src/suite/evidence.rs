//! `[case.evidence]`: what ranks write of themselves without a profiler.

use super::{Evidence, Placement, Workload, form};
use crate::toml_reader::Table;
use metric::op::Op;

/// The collectives whose bandwidth Inspector knows. Others are made of sends and receives, of whose times it is unknown
/// whether they hold the network.
const COLLECTIVES: [Op; 5] = [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast, Op::Reduce];

/// The table, and the recipes with the one that reads its files.
pub(super) fn read(
    table: &Table<'_>,
    recipes: Option<Vec<String>>,
    workload: Option<&Workload>,
    placement: Option<Placement>,
) -> (Evidence, Option<Vec<String>>) {
    let value = table.get("evidence");
    let inspector = value.as_ref().and_then(|value| value.table()).and_then(|table| {
        let inspector = table.get("inspector");
        let is_on = inspector.as_ref().and_then(|value| value.boolean());
        table.close(form::evidence);
        inspector.filter(|_| is_on == Some(true))
    });
    let name = recipes::recipe::inspector::SPEC.name;
    let mut recipes = recipes;
    let is_named = recipes.as_ref().is_some_and(|recipes| recipes.iter().any(|recipe| recipe == name));
    match (&inspector, &mut recipes, table.get("recipes")) {
        (Some(_), Some(recipes), _) if !is_named => recipes.push(name.to_owned()),
        (None, _, Some(value)) if is_named => value.diagnostic_with(
            "recipe `inspector` needs records of NCCL's Inspector, and this case has none",
            "write `evidence = { inspector = true }` in the case",
        ),
        _ => {}
    }
    if let (Some(value), Some(workload)) = (&inspector, workload) {
        let is_known = workload.collective().is_some_and(|tests| COLLECTIVES.contains(&tests.op));
        if !is_known {
            value.diagnostic_with(
                "`inspector` is read of all_reduce, all_gather, reduce_scatter, broadcast and reduce of nccl-tests",
                "remove it from the case",
            );
        } else if placement == Some(Placement::EachGpu) {
            value.diagnostic_with(
                "`inspector` records nothing of use where each GPU runs by itself",
                "write `placement = \"each\"`, or remove it from the case",
            );
        }
    }
    (Evidence { inspector: inspector.is_some() }, recipes)
}
