//! `[case.evidence]`: what ranks write of themselves without a profiler.

use super::profile::COSTS_AT_MOST;
use super::{Evidence, Placement, Workload, form};
use crate::toml_reader::Table;
use crate::toml_reader::quantity::share_of;
use metric::op::Op;
use recipes::recipe::nccl_tests;

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
    let has_rates = recipes.iter().flatten().any(|recipe| recipe == nccl_tests::SPEC.name);
    let is_profiled = table.get("profile").is_some();
    let mut control_run = None;
    let inspector = value.as_ref().and_then(|value| value.table()).and_then(|table| {
        let inspector = table.get("inspector");
        let is_on = inspector.as_ref().and_then(|value| value.boolean()) == Some(true);
        control_run = read_control_run(&table, is_on, is_profiled, has_rates);
        table.close(form::evidence);
        inspector.filter(|_| is_on)
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
    (Evidence { inspector: inspector.is_some(), control_run }, recipes)
}

/// What Inspector may cost, where each job is to run without it as well.
fn read_control_run(table: &Table<'_>, is_on: bool, is_profiled: bool, has_rates: bool) -> Option<f64> {
    let control_run = table.get("control_run");
    let is_wanted = control_run.as_ref().and_then(|value| value.boolean()) == Some(true);
    let most = table.get("costs_at_most");
    if let Some(value) = most.as_ref().filter(|_| !is_wanted) {
        value.diagnostic_with("`costs_at_most` needs a run without Inspector", "add `control_run = true`");
        return None;
    }
    let control_run = control_run.filter(|_| is_wanted)?;
    let wrong = match (is_on, is_profiled, has_rates) {
        (false, ..) => {
            Some(("this case has no Inspector that a control run could leave off", "add `inspector = true`"))
        }
        (_, true, _) => Some((
            "nsys runs beside Inspector here, and the control run would show what both cost",
            "measure Inspector in a case without `profile`",
        )),
        (.., false) => {
            Some(("the control run compares rates of recipe `nccl_tests`", "add `nccl_tests` to `recipes`"))
        }
        _ => None,
    };
    if let Some((why, instead)) = wrong {
        control_run.diagnostic_with(why, instead);
        return None;
    }
    most.as_ref().map_or(Some(COSTS_AT_MOST), share_of)
}
