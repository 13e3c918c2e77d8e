//! Suites x inventory x baselines to a plan that leaves no choice open. Pure: it reads no file and asks no clock.

mod allocations;
mod assertions;
mod baseline;
mod ceiling;
mod container_path;
mod control_run;
mod device_names;
mod evidence;
#[cfg(test)]
mod evidence_tests;
mod flight_recorder;
mod flow_path;
mod inspector;
mod inspector_probe;
mod installed;
mod jobs;
mod left_out;
#[cfg(test)]
mod message_tests;
mod mpirun;
mod nccl_log;
mod placement;
mod plan_size;
mod predicted;
mod profile;
mod ras;
mod samples;
mod select;
mod settings;
mod spread;
mod workload;

pub use allocations::{name_of_allocation, share};
pub use baseline::{key, look_up, read_shown, rebaseline};
pub use device_names::reported_names;
pub use evidence::{EvidenceLacks, asks_for_evidence, evidence_lacks, evidence_notes};
pub use flow_path::settle as settle_flows;
pub use inspector_probe::{inspector_notes, without_inspector};
pub use installed::{NodePrograms, node_programs};
pub use left_out::{leave_out, quarantine};
pub use mpirun::skip_without_mpirun;
pub use placement::{Placed, place, ring};
pub use predicted::hardware;
pub use samples::fsdp_script;
pub use select::{Selection, select};
pub use settings::{apply_settings, settings};
pub use workload::EXCLUDED_INTERFACES;

use base::digest::sha256;
use base::nodeset;
use base::text::count;
use config::baseline::Baselines;
use config::inventory::{Inventory, Kind};
use config::suite::{Case, Placement, Suite};
use model::artefact::{
    Format, InstanceFacts, Launcher, NotInstalled, Plan, PlannedCase, PlannedNetwork, PlannedPlace,
    PlannedRecipe, Source,
};
use recipes::catalogue::Catalogue;
use std::collections::{BTreeMap, BTreeSet};

/// What a plan is made of beside the files.
#[derive(Clone)]
pub struct Request {
    /// Names the run's folder, here and on the nodes.
    pub run_id: String,
    /// Of the simulated cluster: `--seed`.
    pub seed: u64,
    /// The nodes to run on, in the inventory's order.
    pub nodes: Vec<String>,
    /// `--set`, for the record: the suites have them already.
    pub settings: BTreeMap<String, String>,
    /// `--sim-fault`: `p5-002:nic-slow=0.4@rdmap113s0`.
    pub sim_faults: Vec<String>,
    /// Seconds of the whole run: `--timeout`.
    pub limit_s: Option<u64>,
    /// `--max-fail`: after so many failures nothing more is launched.
    pub max_fail: Option<u32>,
    /// As somebody gave it for this run; the inventory's own stands there.
    pub reservation: Option<String>,
    /// Files that were read, with digests.
    pub sources: Vec<Source>,
    /// The recipes that the suites were read with; the plan carries those of users that they name.
    pub catalogue: Catalogue,
    /// Cases that are placed on these sets of nodes, whatever their placement makes of all of them.
    pub sets: BTreeMap<String, Vec<Placed>>,
    /// What nodes lack for the sources of cases that list several; nothing where they were not probed.
    pub evidence: Option<EvidenceLacks>,
    /// What nodes reported to have of the programs of cases with `where_installed`.
    pub programs: NodePrograms,
}

/// The plan, or everything that speaks against it.
pub fn plan(
    suites: &[Suite],
    inventory: &Inventory,
    baselines: Option<&Baselines>,
    request: Request,
) -> Result<Plan, Vec<String>> {
    let mut diagnostics = Vec::new();
    let launcher = inventory.reach.launcher();
    if inventory.kind == Kind::Simulated
        && let Some(why) = inventory.reach.planner().refuse_simulated()
    {
        diagnostics.push(format!("{}: {why}", inventory.file));
    }
    if request.nodes.is_empty() {
        diagnostics.push("no nodes selected".to_owned());
    }
    if inventory.kind == Kind::Real && !request.sim_faults.is_empty() {
        diagnostics
            .push(format!("--sim-fault: needs a simulated cluster, `{}` is a real one", inventory.name));
    }
    if baselines.is_some_and(|baselines| baselines.simulated) && inventory.kind == Kind::Real {
        diagnostics.push(format!(
            "{}: a real inventory cannot be judged by baselines of a simulated instance",
            inventory.name
        ));
    }
    // Sets of nodes are chosen one by one.
    let too_large = match request.sets.is_empty() {
        true => plan_size::refuse(suites, &inventory.instance, request.nodes.len()),
        false => None,
    };
    if let Some(why) = too_large {
        diagnostics.push(why);
        return Err(diagnostics);
    }
    let folder = format!("{}/{}", inventory.paths.shared.trim_end_matches('/'), request.run_id);
    let catalogue = &request.catalogue;
    let context = Context { inventory, baselines, catalogue, request: &request, launcher, folder: &folder };
    let mut cases = Vec::new();
    for suite in suites {
        for case in &suite.cases {
            match planned_case(&context, suite, case) {
                Ok(planned) => cases.push(planned),
                Err(why) => {
                    diagnostics.push(format!("{}:{}: case `{}`: {why}", suite.file, case.line, case.name))
                }
            }
        }
    }
    diagnostics.extend(duplicates(&cases));
    baseline::widen(&mut cases, baselines);
    spread::widen(&mut cases);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let instance = &inventory.instance;
    Ok(Plan {
        format: Format,
        harness: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: request.run_id.clone(),
        parent: None,
        replayed_from: None,
        pending: Vec::new(),
        simulated: inventory.kind == Kind::Simulated,
        seed: request.seed,
        sources: request.sources.clone(),
        inventory: inventory.name.clone(),
        suites: suites.iter().map(|suite| suite.name.clone()).collect(),
        instance: InstanceFacts {
            name: instance.name.clone(),
            gpus: instance.gpus,
            nics: instance.nics.clone(),
            nic_line_rate_gb_s: instance.nic_line_rate_gb_s,
            tx_counters: instance.tx_counters.clone(),
            rx_counters: instance.rx_counters.clone(),
            conservation_shown: instance.conservation_shown,
        },
        launcher,
        folder,
        nodes: request.nodes.clone(),
        network: network(inventory, &request.nodes),
        left_out: Vec::new(),
        settings: request.settings.clone(),
        sim_faults: request.sim_faults.clone(),
        limit_s: request.limit_s,
        max_fail: request.max_fail,
        strict: false,
        max_fail_errors: false,
        keep_bad_nodes: false,
        most_jobs: inventory.reach.planner().most_jobs(),
        reservation: request.reservation.clone(),
        publish: inventory.publish.clone(),
        allocations: Vec::new(),
        recipes: planned_recipes(
            &request.catalogue,
            suites.iter().flat_map(|suite| &suite.cases).flat_map(|case| &case.recipes),
        ),
        isolations: Vec::new(),
        cases,
    })
}

/// The places of these nodes in the network, where ranks are ordered by it.
fn network(inventory: &Inventory, nodes: &[String]) -> Option<PlannedNetwork> {
    let (file, network) = (inventory.topology.as_ref()?, inventory.network.as_ref()?);
    let places = network.paths.iter().filter(|(node, _)| nodes.contains(node));
    let places =
        places.map(|(node, switches)| PlannedPlace { node: node.clone(), switches: switches.clone() });
    Some(PlannedNetwork {
        source: network.source.to_owned(),
        file: file.file.clone(),
        places: places.collect(),
    })
}

/// The recipes of these names that users wrote, as a plan carries them.
pub fn planned_recipes<'a>(
    catalogue: &Catalogue,
    names: impl Iterator<Item = &'a (impl AsRef<str> + 'a)>,
) -> Vec<PlannedRecipe> {
    let names: BTreeSet<&str> = names.map(AsRef::as_ref).collect();
    let planned = names.into_iter().filter_map(|name| catalogue.user(name)).map(|user| PlannedRecipe {
        name: user.name.clone(),
        file: user.file.clone(),
        sha256: sha256(user.text.as_bytes()),
        text: user.text.clone(),
    });
    planned.collect()
}

struct Context<'a> {
    inventory: &'a Inventory,
    baselines: Option<&'a Baselines>,
    catalogue: &'a Catalogue,
    request: &'a Request,
    launcher: Launcher,
    folder: &'a str,
}

fn planned_case(context: &Context, suite: &Suite, case: &Case) -> Result<PlannedCase, String> {
    let Some(sets) = context.request.sets.get(&case.name) else {
        return placed_case(context, suite, case, None);
    };
    // What is asserted for each node is asserted for the nodes of these sets.
    let mut nodes: Vec<String> = sets.iter().flat_map(|set| &set.nodes).cloned().collect();
    nodeset::sort(&mut nodes);
    nodes.dedup();
    context.inventory.sort_for_ranks(&mut nodes);
    let request = Request { nodes, ..context.request.clone() };
    placed_case(&Context { request: &request, ..*context }, suite, case, Some(sets.clone()))
}

fn placed_case(
    context: &Context,
    suite: &Suite,
    case: &Case,
    sets: Option<Vec<Placed>>,
) -> Result<PlannedCase, String> {
    let workload = workload::planner(&case.workload);
    let placed = match sets {
        Some(sets) => sets,
        None => workload.place(case.placement, &context.request.nodes)?,
    };
    if context.launcher.facts().single_node
        && let Some(job) = placed.iter().find(|job| job.nodes.len() > 1)
    {
        let nodes = nodeset::fold(&job.nodes);
        let launcher = context.launcher;
        return Err(format!("placed on {nodes}, but the {launcher} launcher runs on one node at a time"));
    }
    let skip = precondition(context, case, placed.is_empty());
    let unsupported = skip.is_none().then(|| jobs::unsupported(context, case, &placed)).flatten();
    let skip = skip.or(unsupported);
    let no_gpus = skip.is_none().then(|| jobs::no_shared_gpus(context, case)).flatten();
    let without_slurm = no_gpus.as_ref().and_then(|_| installed::without_slurm(case, &placed));
    let skip = skip.or(no_gpus);
    let (jobs, assertions) = match &skip {
        // The assertions of a case that is not run are still named, and each gets its verdict: skipped.
        Some(_) => (Vec::new(), Vec::new()),
        None => {
            let jobs = jobs::jobs(context, case, &placed)?;
            let mut assertions = assertions::assertions(context, suite, case, &jobs)?;
            ceiling::state(&mut assertions, &jobs, case, &context.inventory.instance);
            (control_run::with(context, case, &placed, jobs, &mut assertions)?, assertions)
        }
    };
    let facts = workload.facts(context, case);
    let unnamed = || device_names::unknown(context.inventory, &facts, &assertions);
    let (skip, jobs) = match skip.is_none().then(unnamed).flatten() {
        // What places cases on chosen nodes looks at what they measure.
        Some(why) if context.request.sets.contains_key(&case.name) => return Err(why),
        Some(why) => (Some(why), Vec::new()),
        None => (skip, jobs),
    };
    let (jobs, not_installed) = installed::keep_jobs(context, case, jobs);
    let not_installed = not_installed.or(without_slurm);
    let absent = not_installed.as_ref().filter(|_| jobs.is_empty()).map(NotInstalled::reason);
    let skip = skip.or(absent);
    let assertions = if skip.is_some() { assertions::plan_skipped(context, suite, case) } else { assertions };
    Ok(PlannedCase {
        suite: suite.name.clone(),
        name: case.name.clone(),
        about: case.about.clone(),
        tags: case.tags.clone(),
        workload: facts,
        recipes: case.recipes.clone(),
        after: case.after.clone(),
        skip,
        not_installed,
        expected_failure: case.expected_failure.clone(),
        must_end: case.must_end,
        sim_faults: case.sim_faults.iter().map(ToString::to_string).collect(),
        properties: case.properties,
        jobs,
        assertions,
    })
}

fn precondition(context: &Context, case: &Case, nothing_placed: bool) -> Option<String> {
    let n = context.request.nodes.len() as u32;
    let requires = &case.requires;
    if !case.sim_faults.is_empty() && context.inventory.kind == Kind::Real {
        return Some("its faults need a simulated cluster".to_owned());
    }
    if case.soak.is_some() {
        return Some("a soak is run window by window, by `harness accept`".to_owned());
    }
    let must_profile = case.profile.is_some() && case.evidence.order.is_empty();
    if must_profile && context.inventory.nsys_version.is_none() {
        // Which switches a node's nsys takes must be known before it is called; the rest of a suite can do without.
        return Some(
            "profiled, but the inventory has no `nsys_version`; set it to what `nsys --version` prints on the nodes"
                .to_owned(),
        );
    }
    if let Some(min) = requires.min_nodes.filter(|min| n < *min) {
        return Some(format!("needs at least {}, selected: {n}", count(min, "node")));
    }
    if let Some(max) = requires.max_nodes.filter(|max| n > *max) {
        return Some(format!("takes at most {}, selected: {n}", count(max, "node")));
    }
    let needed = match case.placement {
        Placement::Nodes(k) | Placement::Groups(k) => k,
        Placement::Pairs => 2,
        Placement::All | Placement::Each | Placement::EachGpu => 1,
    };
    if nothing_placed {
        return Some(format!("placement needs {needed} nodes, selected: {n}"));
    }
    let ranks = match case.placement {
        Placement::All => n * context.inventory.instance.gpus,
        Placement::EachGpu => 1,
        _ => needed * context.inventory.instance.gpus,
    };
    if requires.ranks_power_of_two && !ranks.is_power_of_two() {
        return Some(format!("needs a power of two of ranks, has {ranks}"));
    }
    None
}

/// Names must be unique, or JUnit readers keep only the first of each.
fn duplicates(cases: &[PlannedCase]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut diagnostics = Vec::new();
    let mut folders = BTreeSet::new();
    for case in cases.iter().filter(|case| !folders.insert(case.name.as_str())) {
        // A case's files lie in a folder of its name.
        diagnostics
            .push(format!("case `{}` is in two suites; run the suites one after the other", case.name));
    }
    for assertion in cases.iter().flat_map(|case| &case.assertions) {
        if !seen.insert(assertion.name.as_str()) {
            diagnostics
                .push(format!("two assertions are named `{}`; give one of them a `name`", assertion.name));
        }
    }
    diagnostics.truncate(10);
    diagnostics
}
