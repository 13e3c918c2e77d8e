//! `evidence` of a case: what ranks write of themselves without a profiler, or the sources of their calls in order of
//! preference.

use super::profile::{self, COSTS_AT_MOST};
use super::{Evidence, EvidenceSource, Placement, Workload, form};
use crate::toml_reader::quantity::share_of;
use crate::toml_reader::{Table, Value};
use job::profile::Profile;
use metric::op::Op;
use recipes::recipe::nccl_tests;
use toml::de::DeValue;

/// The collectives whose bandwidth Inspector knows. Others are made of sends and receives, of whose times it is unknown
/// whether they hold the network.
const COLLECTIVES: [Op; 5] = [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast, Op::Reduce];

/// `evidence`, the profile that it needs, and the recipes with those that read what it records.
pub(super) fn read(
    table: &Table<'_>,
    profile: Option<Profile>,
    recipes: Option<Vec<String>>,
    workload: Option<&Workload>,
    placement: Option<Placement>,
) -> (Evidence, Option<Profile>, Option<Vec<String>>) {
    let value = table.get("evidence");
    let listed = value.as_ref().filter(|value| matches!(value.raw().get_ref(), DeValue::Array(_)));
    let sources = listed.map(sources).unwrap_or_default();
    let item = |source| sources.iter().find(|(_, one)| *one == source).map(|(item, _)| item.clone());
    let has_rates = recipes.iter().flatten().any(|recipe| recipe == nccl_tests::SPEC.name);
    let is_profiled = table.get("profile").is_some();
    let mut control_run = None;
    let of_table = value.as_ref().filter(|_| listed.is_none()).and_then(|value| value.table());
    let inspector = of_table.and_then(|table| {
        let inspector = table.get("inspector");
        let is_on = inspector.as_ref().and_then(|value| value.boolean()) == Some(true);
        control_run = read_control_run(&table, is_on, is_profiled, has_rates);
        table.close(form::evidence);
        inspector.filter(|_| is_on)
    });
    let inspector = inspector.or_else(|| item(EvidenceSource::Inspector));
    let profile = match (listed, item(EvidenceSource::Nsys), table.get("profile")) {
        (Some(_), Some(item), None) => profile::usual(&item, workload, placement),
        (Some(_), None, Some(value)) => {
            value.diagnostic_with("`evidence` does not list `nsys`", "add `\"nsys\"`, or remove `profile`");
            profile
        }
        _ => profile,
    };
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
    let adds_log = item(EvidenceSource::Log).is_some_and(|item| add_log(&item, &mut recipes, workload));
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
    let order = sources.into_iter().map(|(_, source)| source).collect();
    (Evidence { order, adds_log, inspector: inspector.is_some(), control_run }, profile, recipes)
}

/// The sources of a list, each with its place.
fn sources<'a>(value: &Value<'a>) -> Vec<(Value<'a>, EvidenceSource)> {
    let mut sources: Vec<(Value<'a>, EvidenceSource)> = Vec::new();
    let items = value.list().unwrap_or_default();
    if items.is_empty() {
        value.diagnostic_with("`evidence` is empty", "name a source, or remove `evidence`");
    }
    for item in items {
        let Some(source) = item.one_of(&EvidenceSource::ALL) else { continue };
        match sources.iter().any(|(_, before)| *before == source) {
            true => item
                .diagnostic_with(format!("`evidence` lists `{}` twice", source.name()), "remove the second"),
            false => sources.push((item, source)),
        }
    }
    sources
}

/// Adds the recipe that reads NCCL's log; whether the list alone asks for it.
fn add_log(item: &Value<'_>, recipes: &mut Option<Vec<String>>, workload: Option<&Workload>) -> bool {
    if workload.and_then(|workload| workload.refuse_nccl_log()).is_some() {
        item.diagnostic_with(
            "`log` is NCCL's, and this workload does not run NCCL",
            "remove it from the list",
        );
        return false;
    }
    let name = recipes::recipe::nccl_log::SPEC.name;
    let Some(recipes) = recipes.as_mut().filter(|recipes| recipes.iter().all(|recipe| recipe != name)) else {
        return false;
    };
    recipes.push(name.to_owned());
    true
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
