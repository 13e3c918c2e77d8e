//! From options to a plan: files are read, settings applied, everything is checked, and all that is wrong is given in
//! one go.

use super::{RunOptions, after_run, load};
use crate::library::Library;
use crate::own_recipes;
use base::redact::Secrets;
use config::diagnostic::Diagnostic;
use config::hardware_limits;
use config::inventory::{Inventory, Kind};
use config::suite::{OnFailure, Suite};
use model::artefact::Plan;
use model::fault::NodeFault;
use plan::{self, Request, Selection};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use store::{self, Home};
use verdict::isolate;

/// How the same plan is made for fewer nodes: the options that made it, and what was chosen of it.
pub(crate) struct Replanning<'a> {
    pub options: &'a RunOptions,
    pub catalogue: &'a Catalogue,
    pub choose: &'a dyn Fn(Plan) -> Plan,
}

/// The plan and the inventory that it is for; or all that is wrong, in one go.
pub(crate) fn make_plan(
    home: &Home,
    options: &RunOptions,
    catalogue: &Catalogue,
) -> Result<(Plan, Inventory), Vec<String>> {
    make_plan_as(home, options, catalogue, None)
}

/// The recipes that the options ask for.
pub(crate) fn recipes_of_project(home: &Home, options: &RunOptions) -> Result<Catalogue, Vec<String>> {
    own_recipes::load(Some(&Library::for_project(home.path())), options.recipe_path.as_deref())
        .map_err(|diagnostics| to_lines(&diagnostics))
}

/// The same for a run that may have its id already.
pub(crate) fn make_plan_as(
    home: &Home,
    options: &RunOptions,
    catalogue: &Catalogue,
    run_id: Option<&str>,
) -> Result<(Plan, Inventory), Vec<String>> {
    make_plan_on(home, options, catalogue, run_id, &|_| Ok(()))
}

/// The same for nodes that the inventory does not name: `prepare` puts them there.
pub(crate) fn make_plan_on(
    home: &Home,
    options: &RunOptions,
    catalogue: &Catalogue,
    run_id: Option<&str>,
    prepare: &dyn Fn(&mut Inventory) -> Result<(), String>,
) -> Result<(Plan, Inventory), Vec<String>> {
    let mut loaded = load::load_with(
        home,
        &options.suites,
        &options.inventory,
        options.baselines.as_deref(),
        catalogue,
        &options.stack,
    )?;
    prepare(&mut loaded.inventory).map_err(|why| vec![why])?;
    loaded.inventory.nsys_version = loaded.inventory.nsys_version.or(options.reported.nsys_version);
    if let Some(nics) = &options.reported.nics {
        loaded.inventory.instance.take_device_names(nics);
    }
    if let Some(gpus) = options.reported.gpus {
        loaded.inventory.settle_gpu_request(gpus);
    }
    let mut diagnostics = Vec::new();
    let settings: BTreeMap<String, String> = options.settings.iter().cloned().collect();
    if let Err(more) = plan::apply_settings(&mut loaded.suites, &settings) {
        diagnostics.extend(more);
    }
    loaded.inventory.bear_taints(options.bears);
    if let Some(name) = &options.reservation
        && let Err(why) = loaded.inventory.reserve(name)
    {
        diagnostics.push(format!("--reservation: {why}"));
    }
    let nodes = loaded.inventory.select(options.nodes.as_deref(), options.exclude_nodes.as_deref());
    let nodes = nodes.unwrap_or_else(|why| {
        diagnostics.push(why);
        Vec::new()
    });
    for suite in &loaded.suites {
        if loaded.inventory.instance.fits(&suite.instance) {
            let found = hardware_limits::lint(suite, &loaded.inventory.instance, loaded.baselines.as_ref());
            diagnostics.extend(found.iter().map(ToString::to_string));
        }
    }
    for suite in &mut loaded.suites {
        match (options.on_failure.as_deref(), suite.on_failure) {
            (Some("isolate"), OnFailure::Nothing) => {
                suite.on_failure = OnFailure::Isolate { budget_node_h: None };
            }
            (Some("nothing"), _) => suite.on_failure = OnFailure::Nothing,
            _ => {}
        }
        diagnostics.extend(isolate::round::lint(suite).map(|diagnostic| diagnostic.to_string()));
    }
    diagnostics.extend(impossible_faults(&options.sim_faults, &loaded.suites, &loaded.inventory));
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let names: Vec<&str> = loaded.suites.iter().map(|suite| suite.name.as_str()).collect();
    let request = Request {
        run_id: run_id.map_or_else(|| store::new_run_id(&names.join("+")), str::to_owned),
        seed: options.seed,
        nodes,
        settings,
        sim_faults: options.sim_faults.clone(),
        limit_s: options.timeout,
        max_fail: options.max_fail,
        reservation: options.reservation.clone(),
        sources: loaded.sources.clone(),
        catalogue: catalogue.clone(),
        sets: BTreeMap::new(),
        evidence: options.reported.evidence.clone(),
        programs: options.reported.programs.clone(),
    };
    let plan = plan::plan(&loaded.suites, &loaded.inventory, loaded.baselines.as_ref(), request)?;
    let selection = Selection {
        only: options.filters.select(&plan),
        filter: options.libtest.filter.clone(),
        exact: options.libtest.exact,
        skip: options.libtest.skip.clone(),
    };
    let mut plan = plan::select(plan, &selection);
    plan.strict = options.strict;
    plan.max_fail_errors = options.errors;
    plan.keep_bad_nodes = options.keep_bad_nodes;
    plan.isolations = after_run::plan(home, &plan, &loaded, options);
    Ok((plan, loaded.inventory))
}

/// Simulated faults of the run and of its cases that name what the cluster does not have.
fn impossible_faults(of_run: &[String], suites: &[Suite], inventory: &Inventory) -> Vec<String> {
    let mut diagnostics = Vec::new();
    for text in of_run {
        let checked = NodeFault::parse(text).and_then(|fault| check_fault(inventory, fault));
        if let Err(why) = checked {
            diagnostics.push(format!("--sim-fault: {why}"));
        }
    }
    for suite in suites {
        for case in &suite.cases {
            for fault in &case.sim_faults {
                if let Err(why) = check_fault(inventory, fault.clone()) {
                    diagnostics.push(format!("{}:{}: case `{}`: {why}", suite.file, case.line, case.name));
                }
            }
        }
    }
    diagnostics
}

/// Whether the simulated cluster has the node and the part that a fault names. A real cluster has no faults at all, which
/// the plan says.
pub(crate) fn check_fault(inventory: &Inventory, fault: NodeFault) -> Result<(), String> {
    match inventory.kind {
        Kind::Simulated => sim::check_fault(inventory, fault),
        Kind::Real => Ok(()),
    }
}

pub(crate) fn parse_faults(texts: &[String]) -> Result<Vec<NodeFault>, String> {
    texts.iter().map(|text| NodeFault::parse(text)).collect()
}

/// The values that the plan's jobs are given beside what the plan holds.
pub(crate) fn resolve_secrets(plan: &Plan) -> Result<Secrets, Vec<String>> {
    let jobs = plan.cases.iter().flat_map(|case| &case.jobs);
    let names = jobs.flat_map(|job| &job.secrets).map(|secret| secret.from.as_str());
    Secrets::resolve(names, &|name| std::env::var(name).ok())
}

/// A plan is obeyed to the letter, by a resumed run too: it is written as it is, or not at all.
pub(crate) fn check_holds_no_secret(plan: &Plan, secrets: &Secrets) -> Result<(), String> {
    let value = serde_json::to_value(plan).map_err(|error| error.to_string())?;
    match store::redactor().and(secrets).first_within(&value) {
        None => Ok(()),
        Some((place, what)) => Err(format!(
            "the plan would hold a secret in `{place}`, name its variable instead, `env:NAME`: `{what}`"
        )),
    }
}

/// Users' recipes of a stored run, as they were then: files of today are not looked at.
pub(crate) fn load_recipes_of(plan: &Plan) -> Result<Catalogue, String> {
    own_recipes::catalogue_of_plan(&plan.recipes)
}

pub(crate) fn to_lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}
