//! The jobs of a case: their scripts, their launches, what they will leave, and how long they should take.

use super::container_path::path_inside;
use super::placement::Placed;
use super::workload::{self, JobPlan, PlannedStep, Results};
use super::{Context, evidence, flight_recorder, inspector, nccl_log, profile, ras};
use base::digest::sha256;
use base::nodeset;
use base::redact::{Reference, reference};
use config::inventory::{Inventory, JobNeeds, JobSite};
use config::suite::Case;
use job::profile::account;
use job::script::{self, Container, Run, Sampler, Script, Step, files, secrets};
use job::window::{HOOK_FILE, Trigger};
use model::artefact::{
    ExpectedFile, FileKind, PlannedFile, PlannedJob, PlannedProfile, PlannedSecret, ScriptRuns,
};
use std::collections::BTreeMap;

pub(crate) fn jobs(context: &Context, case: &Case, placed: &[Placed]) -> Result<Vec<PlannedJob>, String> {
    if case.evidence.order.is_empty() {
        let environment = environment(context, case)?;
        return placed.iter().map(|placed| job(context, case, placed, &environment)).collect();
    }
    let recorded = |placed: &Placed| -> Result<PlannedJob, String> {
        let chosen = evidence::choose(context, case, &placed.nodes);
        let case = evidence::with_source(case, chosen.source);
        let job = job(context, &case, placed, &environment(context, &case)?)?;
        Ok(PlannedJob { evidence: Some(chosen), ..job })
    };
    placed.iter().map(recorded).collect()
}

fn job(
    context: &Context,
    case: &Case,
    placed: &Placed,
    environment: &BTreeMap<String, String>,
) -> Result<PlannedJob, String> {
    let inventory = context.inventory;
    let folder = format!("{}/{}/{}", context.folder, case.name, placed.name);
    let nodes = placed.nodes.len();
    let estimate_s = workload::planner(&case.workload).estimate_s(&inventory.instance, case.placement, nodes);
    let PlannedStep { mut step, tasks_per_node, ranks, mut helpers, follows_topology } =
        planned_step(context, case, placed)?;
    let mut nodes = placed.nodes.clone();
    // Which node sends stands in the step; the nodes of a job are a set, and ranks are numbered along it.
    match follows_topology {
        true => inventory.sort_for_ranks(&mut nodes),
        false => nodeset::sort(&mut nodes),
    }
    // Readers of a job find the node of a rank by it.
    let by_rank = inventory.network.is_some() && matches!(step, Step::Run(_));
    let placed_nodes = if by_rank { nodes.clone() } else { placed.nodes.clone() };
    let profile = profile::around(context, case, &placed.name, &nodes, &mut step)?;
    enter_folder(&mut step, &folder)?;
    let mut steps = Vec::new();
    let (mut environment, secrets) = apart(environment, case);
    let has_dumps = workload::planner(&case.workload).has_flight_recorder()
        && flight_recorder::ask(&mut environment, &step, &folder);
    let has_ras =
        workload::planner(&case.workload).has_ras() && ras::can_ask(&environment, &step, &placed_nodes);
    if case.evidence.inspector {
        inspector::ask(&mut environment, inventory, &step, &folder)?;
    }
    let given = environment.keys().chain(secrets.iter().map(|secret| &secret.variable));
    hand_to_container(&mut step, given, &context.request.run_id, inventory);
    if !secrets.is_empty() {
        let variables = secrets.iter().map(|secret| secret.variable.clone()).collect();
        steps.push(Step::Secrets { variables });
    }
    if !environment.is_empty() {
        steps.push(Step::Environment { variables: environment });
    }
    if profile.is_some() {
        helpers.push("profile.sh");
        helpers.extend(hook(&step));
    }
    if let Some(is_mpi) = in_image(&step) {
        helpers.push(files::CONTAINER);
        helpers.extend(is_mpi.then_some(files::AGENT));
    }
    if case.counters.enabled {
        helpers.push("counters.sh");
        steps.push(Step::CountersBegin(Sampler {
            root: inventory.paths.counters.clone(),
            interval_s: interval_s(case, estimate_s),
            limit_s: case.properties.limit_s + 120,
            watched: true,
        }));
    }
    steps.push(step);
    if case.counters.enabled {
        steps.push(Step::CountersEnd);
    }
    if case.evidence.inspector {
        helpers.push(script::files::INSPECTOR_SCRIPT);
        steps.push(Step::Inspector);
    }
    let planner = inventory.reach.planner();
    let start = planner.start(&JobSite {
        queued_as: format!("{}.{}.{}", context.request.run_id, case.name, placed.name),
        folder: &folder,
        tasks_per_node,
        gpus: inventory.instance.gpus,
        limit_s: case.properties.limit_s,
    });
    let script = Script { start, nodes, steps };
    let text = script::render(&script);
    let mut put = vec![PlannedFile { name: files::JOB.to_owned(), text: Some(text), sha256: None }];
    helpers.extend(planner.shared_scripts());
    put.extend(planner.files(&script));
    for name in helpers {
        let digest = script::shared_text(name).map(|text| sha256(text.as_bytes()));
        put.push(PlannedFile { name: name.to_owned(), text: None, sha256: digest });
    }
    let launch = planner.launch(&folder);
    let mut expected = expected(inventory, case, placed, &script, profile.as_ref());
    expected.extend(workload::planner(&case.workload).leaves(placed));
    if has_dumps {
        expected.extend(flight_recorder::expected(&placed_nodes, ranks));
    }
    if has_ras {
        expected.extend(ras::expected(&placed_nodes));
    }
    Ok(PlannedJob {
        name: placed.name.clone(),
        nodes: placed_nodes,
        round: placed.round,
        ranks,
        folder,
        files: put,
        launch,
        expected,
        estimate_s: estimate_s.ceil() as u64,
        limit_s: case.properties.limit_s,
        secrets,
        profile,
        control_run: None,
        again_of: None,
        evidence: None,
    })
}

/// Whether its container is of docker or podman; and whether mpirun starts its ranks there.
fn in_image(step: &Step) -> Option<bool> {
    let (container, is_mpi) = match step {
        Step::Run(run) => (run.container.as_ref(), run.mpi.is_some()),
        Step::Gpus(gpus) => (gpus.container.as_ref(), false),
        _ => return None,
    };
    container?.runtime.map(|_| is_mpi)
}

/// The module that opens a window in a python, where one does.
fn hook(step: &Step) -> Option<&'static str> {
    let Step::Run(Run { profile: Some(profile), .. }) = step else { return None };
    matches!(profile.window.as_deref(), Some(Trigger::Hook(_))).then_some(HOOK_FILE)
}

/// What may stand in artefacts, and what is handed over beside them: sorted, as a script has it.
fn apart(
    environment: &BTreeMap<String, String>,
    case: &Case,
) -> (BTreeMap<String, String>, Vec<PlannedSecret>) {
    let mut plain = BTreeMap::new();
    let mut secrets = Vec::new();
    for (name, value) in environment {
        match reference(value) {
            Reference::To(from) => {
                secrets.push(PlannedSecret { variable: name.clone(), from: from.to_owned() })
            }
            _ => {
                plain.insert(name.clone(), value.clone());
            }
        }
    }
    for word in case.workload.written_arguments() {
        if let Reference::To(from) = reference(word) {
            secrets.push(PlannedSecret { variable: secrets::argument(from), from: from.to_owned() });
        }
    }
    secrets.sort();
    secrets.dedup();
    (plain, secrets)
}

/// What holds of the image's own file system, and not of the node's.
const OF_THE_IMAGE: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"];

/// What the script exports beats what the image sets, and the unpacked image is kept for the run's later jobs on the
/// node.
fn hand_to_container<'a>(
    step: &mut Step,
    given: impl Iterator<Item = &'a String>,
    run_id: &str,
    inventory: &Inventory,
) {
    let container = match step {
        Step::Gpus(gpus) => gpus.container.as_mut(),
        Step::Run(run) => run.container.as_mut(),
        _ => None,
    };
    let Some(container) = container else { return };
    let named = given.filter(|name| !OF_THE_IMAGE.contains(&name.as_str()) && !secrets::is_argument(name));
    container.env = named.cloned().collect();
    container.env.sort();
    if container.runtime.is_some() {
        return;
    }
    // Trainings name images of their own: one name is one image.
    let is_own = inventory.container.as_ref().is_none_or(|usual| usual.image != container.image);
    let reuse = inventory.container.as_ref().is_none_or(|usual| usual.reuse);
    if reuse {
        let which =
            if is_own { format!("-{}", &sha256(container.image.as_bytes())[..8]) } else { String::new() };
        container.name = Some(format!("harness-{run_id}{which}"));
    }
}

/// A script of the job's folder that runs in a container finds that folder there, or cannot run.
fn enter_folder(step: &mut Step, folder: &str) -> Result<(), String> {
    let container = match step {
        Step::Gpus(gpus) => gpus.container.as_mut(),
        Step::Run(run) if run.profile.is_some() || runs_own_script(run) => run.container.as_mut(),
        // Docker and podman begin in no folder of the job by themselves.
        Step::Run(run) => run.container.as_mut().filter(|container| container.runtime.is_some()),
        _ => None,
    };
    let Some(container) = container else { return Ok(()) };
    if container.runtime.is_some() && folder.contains([',', ':', '"']) {
        return Err(format!("`{folder}` cannot be mounted: change `paths.shared`"));
    }
    let Some(seen) = path_inside(container, folder) else {
        return Err(format!(
            "its container does not mount the job's folder `{folder}`; add a mount of `paths.shared` to `[container]`"
        ));
    };
    container.workdir = Some(seen);
    Ok(())
}

/// One that lies in the job's folder.
fn runs_own_script(run: &Run) -> bool {
    run.argv
        .iter()
        .any(|word| [files::TORCH_COLLECTIVE, files::TORCH_BURN, files::TORCH_DDP].contains(&word.as_str()))
}

fn planned_step(context: &Context, case: &Case, placed: &Placed) -> Result<PlannedStep, String> {
    let inventory = context.inventory;
    let container = inventory.container.as_ref().map(|container| Container {
        runtime: container.runtime,
        image: container.image.clone(),
        mounts: mounts(inventory, container),
        mount_home: container.mount_home,
        remap_root: container.remap_root,
        workdir: None,
        env: Vec::new(),
        name: None,
    });
    let planner = inventory.reach.planner();
    let workload = workload::planner(&case.workload);
    planner.refuse_job(&needs(inventory, case, placed))?;
    let run_id = &context.request.run_id;
    let wiring = planner.mpi(&inventory.paths);
    workload.step(JobPlan { inventory, case, placed, run_id, wiring, container })
}

/// Jobs that docker or podman runs live in the shared folder: it is mounted, unless the inventory mounts what holds it.
fn mounts(inventory: &Inventory, container: &config::inventory::Container) -> Vec<String> {
    let shared = inventory.paths.shared.trim_end_matches('/');
    let holds = |mount: &String| {
        let source = mount.split(':').next().unwrap_or_default().trim_end_matches('/');
        shared.strip_prefix(source).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut mounts = container.mounts.clone();
    if container.runtime.is_some() && !mounts.iter().any(holds) {
        mounts.push(format!("{shared}:{shared}"));
    }
    mounts
}

/// Why its launcher cannot run the case, and can run others of its suite.
pub(crate) fn unsupported(context: &Context, case: &Case, placed: &[Placed]) -> Option<String> {
    let planner = context.inventory.reach.planner();
    placed.iter().find_map(|placed| planner.unsupported(&needs(context.inventory, case, placed)))
}

/// The same, where its jobs give steps some of their GPUs.
pub(crate) fn no_shared_gpus(context: &Context, case: &Case) -> Option<String> {
    let shares_gpus = workload::planner(&case.workload).shares_gpus();
    shares_gpus.then(|| context.inventory.reach.planner().refuse_shared_gpus()).flatten()
}

fn needs<'a>(inventory: &Inventory, case: &'a Case, placed: &'a Placed) -> JobNeeds<'a> {
    let workload = workload::planner(&case.workload);
    JobNeeds {
        nodes: &placed.nodes,
        container: inventory.container.is_some(),
        runtime: inventory.container.as_ref().and_then(|container| container.runtime),
        image: workload.image(),
        mpi: workload.needs_mpi(case.placement),
        tasks_per_node: case.workload.tasks_per_node().unwrap_or(1),
    }
}

fn environment(context: &Context, case: &Case) -> Result<BTreeMap<String, String>, String> {
    let mut variables = context.inventory.environment.clone();
    let workload = workload::planner(&case.workload);
    variables.extend(workload.variables().into_iter().map(|(name, value)| (name.to_owned(), value)));
    variables.extend(case.workload.environment().clone());
    nccl_log::ask(context.catalogue, case, &mut variables)?;
    workload.complete(&mut variables);
    for (name, value) in &variables {
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(format!("`{}` is not a valid name of an environment variable", name.escape_debug()));
        }
        if value.contains('\0') {
            return Err(format!("environment variable `{name}` contains a NUL byte"));
        }
    }
    Ok(variables)
}

fn interval_s(case: &Case, estimate_s: f64) -> f64 {
    match case.counters.between {
        Some(readings) => {
            let interval = estimate_s / f64::from(readings.max(1));
            ((interval * 10.0).ceil() / 10.0).max(0.2)
        }
        None => case.counters.interval_s,
    }
}

fn expected(
    inventory: &Inventory,
    case: &Case,
    placed: &Placed,
    script: &Script,
    profile: Option<&PlannedProfile>,
) -> Vec<ExpectedFile> {
    let planner = inventory.reach.planner();
    let runs = planner.launcher().facts().script;
    let printed = |name: &str| match planner.gathers_output(script) {
        true => vec![(name.to_owned(), None)],
        false => placed.nodes.iter().map(|node| (files::node_file(name, node), Some(node))).collect(),
    };
    let file = |name: String, kind, node: Option<&String>| ExpectedFile {
        name,
        kind,
        node: node.cloned(),
        part: None,
        rank: None,
    };
    let mut expected = match workload::planner(&case.workload).results(inventory, case, placed) {
        Results::Files(own) => own,
        Results::Printed(kind) => {
            printed(files::STDOUT).into_iter().map(|(name, node)| file(name, kind, node)).collect()
        }
    };
    let mut expect = |name, kind, node| expected.push(file(name, kind, node));
    if case.counters.enabled {
        for node in &placed.nodes {
            expect(files::counters(node), FileKind::Counters, Some(node));
        }
        if runs == ScriptRuns::Once {
            expect(files::SAMPLER_LOG.to_owned(), FileKind::Log, None);
        }
    }
    if case.evidence.inspector {
        expect(files::INSPECTOR.to_owned(), FileKind::Inspector, None);
    }
    for (name, node) in printed(files::STDERR) {
        expect(name, FileKind::Stderr, node);
    }
    match runs {
        ScriptRuns::OnEachNode => {
            for node in placed.nodes.iter().filter(|_| script.image().is_some()) {
                expect(files::node_file(files::IMAGE, node), FileKind::Log, Some(node));
            }
            for node in &placed.nodes {
                expect(files::node_file(files::LOG, node), FileKind::Log, Some(node));
            }
        }
        ScriptRuns::Once => {
            expect(files::BATCH_ERR.to_owned(), FileKind::Log, None);
            expect(files::BATCH_OUT.to_owned(), FileKind::Log, None);
        }
    }
    if planner.records_environment() {
        expect(files::ENVIRONMENT.to_owned(), FileKind::Log, None);
    }
    expected.extend(profile.into_iter().flat_map(|profile| &profile.ranks).map(|profiled| ExpectedFile {
        name: account::file_name(profiled.rank),
        kind: FileKind::ProfileAccount,
        node: Some(profiled.node.clone()),
        part: None,
        rank: Some(profiled.rank),
    }));
    expected
}
