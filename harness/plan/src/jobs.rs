//! The jobs of a case: their scripts, their launches, what they will leave, and how long they should take.

use super::placement::Placed;
use super::{Context, flow_path, nccl_log, profile, training};
use base::digest::sha256;
use base::nodeset;
use base::redact::{Reference, reference};
use config::inventory::{Inventory, JobNeeds, JobSite};
use config::suite::{Case, NcclTests, NicPairs, Placement, Step as Sizes, Workload};
use job::profile::account;
use job::script::{self, Container, Flows, Gpus, Run, Sampler, Script, Step, files, secrets};
use job::window::{HOOK_FILE, Trigger};
use model::artefact::{
    ExpectedFile, FileKind, PlannedFile, PlannedJob, PlannedProfile, PlannedSecret, ScriptRuns,
};
use std::collections::BTreeMap;

/// Before a program does anything: allocation, container, wiring.
const LAUNCH_S: f64 = 20.0;
/// How long a step takes is not known before it was measured.
const SECONDS_OF_STEP: f64 = 1.0;

pub(crate) fn jobs(context: &Context, case: &Case, placed: &[Placed]) -> Result<Vec<PlannedJob>, String> {
    let environment = environment(context.inventory, case)?;
    placed.iter().map(|placed| job(context, case, placed, &environment)).collect()
}

fn job(
    context: &Context,
    case: &Case,
    placed: &Placed,
    environment: &BTreeMap<String, String>,
) -> Result<PlannedJob, String> {
    let inventory = context.inventory;
    let folder = format!("{}/{}/{}", context.folder, case.name, placed.name);
    let estimate_s = estimate_s(inventory, case, placed.nodes.len());
    let (mut step, tasks_per_node, ranks, helper) = workload(context, case, placed)?;
    let mut nodes = placed.nodes.clone();
    // Which node sends stands in the step; the nodes of a job are a set, and ranks are numbered along it.
    nodeset::sort(&mut nodes);
    let profile = profile::around(inventory, case, &placed.name, &nodes, &mut step)?;
    enter_folder(&mut step, &folder)?;
    let mut steps = Vec::new();
    let (environment, secrets) = apart(environment, case);
    let given = environment.keys().chain(secrets.iter().map(|secret| &secret.variable));
    hand_to_container(&mut step, given, &context.request.run_id, inventory);
    if !secrets.is_empty() {
        let variables = secrets.iter().map(|secret| secret.variable.clone()).collect();
        steps.push(Step::Secrets { variables });
    }
    if !environment.is_empty() {
        steps.push(Step::Environment { variables: environment });
    }
    let mut helpers: Vec<&str> = helper.into_iter().collect();
    if profile.is_some() {
        helpers.push("profile.sh");
        helpers.extend(hook(&step));
    }
    if case.counters.enabled {
        helpers.push("counters.sh");
        steps.push(Step::CountersBegin(Sampler {
            root: inventory.paths.counters.clone(),
            interval_s: interval_s(case, estimate_s),
            limit_s: case.limit_s + 120,
            watched: true,
        }));
    }
    steps.push(step);
    if case.counters.enabled {
        steps.push(Step::CountersEnd);
    }
    let planner = inventory.reach.planner();
    let start = planner.start(&JobSite {
        queued_as: format!("{}.{}.{}", context.request.run_id, case.name, placed.name),
        folder: &folder,
        tasks_per_node,
        gpus: inventory.instance.gpus,
        limit_s: case.limit_s,
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
    Ok(PlannedJob {
        name: placed.name.clone(),
        nodes: placed.nodes.clone(),
        round: placed.round,
        ranks,
        folder,
        files: put,
        launch,
        expected: expected(inventory, case, placed, &script, profile.as_ref()),
        estimate_s: estimate_s.ceil() as u64,
        limit_s: case.limit_s,
        secrets,
        profile,
        control_run: None,
        again_of: None,
    })
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
    let words: Vec<&String> = match &case.workload {
        Workload::Command(command) => std::iter::once(&command.program).chain(&command.args).collect(),
        Workload::Training(training) => training.arguments().collect(),
        Workload::NcclTests(_) | Workload::NicPairs(_) => Vec::new(),
    };
    for word in words {
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
        Step::Run(run) if run.profile.is_some() => run.container.as_mut(),
        _ => None,
    };
    let Some(container) = container else { return Ok(()) };
    let seen = container.mounts.iter().find_map(|mount| {
        let mut ends = mount.split(':');
        let (outside, inside) = (ends.next()?.trim_end_matches('/'), ends.next()?.trim_end_matches('/'));
        let rest = folder.strip_prefix(outside).filter(|rest| rest.starts_with('/'))?;
        Some(format!("{inside}{rest}"))
    });
    let Some(seen) = seen else {
        return Err(format!(
            "its container does not mount the job's folder `{folder}`; add a mount of `paths.shared` to `[container]`"
        ));
    };
    container.workdir = Some(seen);
    Ok(())
}

/// The step, the tasks per node that Slurm is asked for, the ranks declared, and the script that the step needs.
fn workload(
    context: &Context,
    case: &Case,
    placed: &Placed,
) -> Result<(Step, u32, u32, Option<&'static str>), String> {
    let inventory = context.inventory;
    let gpus = inventory.instance.gpus;
    let container = inventory.container.as_ref().map(|container| Container {
        image: container.image.clone(),
        mounts: container.mounts.clone(),
        mount_home: container.mount_home,
        remap_root: container.remap_root,
        workdir: None,
        env: Vec::new(),
        name: None,
    });
    let planner = inventory.reach.planner();
    let wiring = planner.mpi(&inventory.paths);
    planner.refuse_job(&JobNeeds {
        nodes: &placed.nodes,
        container: inventory.container.is_some(),
        mpi: matches!(case.workload, Workload::NcclTests(_)) && case.placement != Placement::EachGpu,
        tasks_per_node: match &case.workload {
            Workload::Command(command) => command.tasks_per_node,
            _ => 1,
        },
    })?;
    match &case.workload {
        Workload::NcclTests(tests) if case.placement == Placement::EachGpu => {
            let argv = nccl_argv(inventory, tests, 1);
            Ok((Step::Gpus(Gpus { argv, gpus, container }), 1, 1, Some("gpus.sh")))
        }
        Workload::NcclTests(tests) => {
            // Without MPI to wire ranks together, one process drives all GPUs of its node.
            let (tasks, gpus_per_rank) = if wiring.is_some() { (gpus, 1) } else { (1, gpus) };
            let run = Run {
                argv: nccl_argv(inventory, tests, gpus_per_rank),
                tasks_per_node: tasks,
                mpi: wiring.map(str::to_owned),
                container,
                profile: None,
            };
            Ok((Step::Run(run), tasks, gpus * placed.nodes.len() as u32, None))
        }
        Workload::NicPairs(pairs) => {
            let [from, to] = placed.nodes.as_slice() else {
                return Err("a flow needs exactly two nodes".to_owned());
            };
            // A write moves data from the client to the server; a read moves it the other way.
            let reads = inventory.instance.flow_op.name() == "read";
            let (client, server) = if reads { (to, from) } else { (from, to) };
            let flows = Flows {
                tool: inventory.nic_tool.name().to_owned(),
                op: inventory.instance.flow_op.name().to_owned(),
                server: server.clone(),
                client: client.clone(),
                base_port: pairs.base_port,
                message_bytes: pairs.message_bytes,
                iterations: iterations(inventory, pairs),
                limit_s: flow_limit_s(pairs),
                memory: pairs.memory,
                devices: inventory.instance.nics.clone(),
                gpus: flow_path::gpus(&inventory.instance),
            };
            Ok((Step::Flows(flows), 1, 2, Some("flows.sh")))
        }
        Workload::Command(command) => {
            let mut argv = vec![command.program.clone()];
            argv.extend(command.args.iter().cloned());
            let tasks_per_node = command.tasks_per_node;
            let ranks = tasks_per_node * placed.nodes.len() as u32;
            let run = Run { argv, tasks_per_node, mpi: None, container, profile: None };
            Ok((Step::Run(run), tasks_per_node, ranks, None))
        }
        Workload::Training(training) => {
            let meeting = format!("{}.{}.{}", context.request.run_id, case.name, placed.name);
            let site = training::Site { inventory, placed, meeting, wiring, container };
            let (run, ranks) = training::run(training, site)?;
            Ok((Step::Run(run.clone()), run.tasks_per_node, ranks, None))
        }
    }
}

fn nccl_argv(inventory: &Inventory, tests: &NcclTests, gpus_per_rank: u32) -> Vec<String> {
    let program = format!("{}/{}", inventory.paths.nccl_tests.trim_end_matches('/'), tests.op.program());
    let mut argv = vec![program];
    let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
    option("-b", tests.min_bytes.to_string());
    option("-e", tests.max_bytes.to_string());
    match tests.step {
        Sizes::Factor(factor) => option("-f", factor.to_string()),
        Sizes::Bytes(bytes) => option("-i", bytes.to_string()),
    }
    option("-n", tests.iterations.to_string());
    option("-w", tests.warmup.to_string());
    option("-d", tests.dtype.clone());
    if matches!(tests.op.name(), "all_reduce" | "reduce" | "reduce_scatter") {
        option("-o", tests.redop.clone());
    }
    if let Some(root) = tests.root {
        option("-r", root.to_string());
    }
    option("-c", u8::from(tests.check).to_string());
    option("-g", gpus_per_rank.to_string());
    argv
}

/// Enough messages for the flow to last its time at line rate.
fn iterations(inventory: &Inventory, pairs: &NicPairs) -> u64 {
    let bytes = inventory.instance.nic_line_rate_gb_s * 1e9 * pairs.seconds;
    (bytes / pairs.message_bytes as f64).ceil() as u64
}

/// Of each turn. A flow at a tenth of line rate is slow, and is still to be measured.
fn flow_limit_s(pairs: &NicPairs) -> u64 {
    (pairs.seconds * 10.0).ceil() as u64 + 60
}

fn environment(inventory: &Inventory, case: &Case) -> Result<BTreeMap<String, String>, String> {
    let mut variables = inventory.environment.clone();
    match &case.workload {
        Workload::NcclTests(tests) => {
            if let Some(algorithm) = tests.algorithm {
                variables.insert("NCCL_ALGO".to_owned(), algorithm.nccl_name().to_owned());
            }
            if let Some(mask) = &tests.split_mask {
                variables.insert("NCCL_TESTS_SPLIT_MASK".to_owned(), mask.clone());
            }
            variables.extend(tests.environment.clone());
        }
        Workload::Command(command) => variables.extend(command.environment.clone()),
        Workload::Training(training) => variables.extend(training.environment.clone()),
        Workload::NicPairs(_) => {}
    }
    nccl_log::ask(case, &mut variables)?;
    if let Workload::NcclTests(_) = case.workload {
        leave_out_docker0(&mut variables);
    }
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

/// docker0 and HyperPod's veth_def_agent have the same address on every node: Open MPI would take them for a path to the
/// others and wait for ever. What a person chose stands.
fn leave_out_docker0(variables: &mut BTreeMap<String, String>) {
    let (exclude, interfaces) = EXCLUDED_INTERFACES;
    if !variables.contains_key("OMPI_MCA_btl_tcp_if_include") {
        variables.entry(exclude.to_owned()).or_insert_with(|| interfaces.to_owned());
    }
}

/// The variable that jobs of nccl-tests get where no interfaces were chosen, and its value.
pub const EXCLUDED_INTERFACES: (&str, &str) = ("OMPI_MCA_btl_tcp_if_exclude", "lo,docker0,veth_def_agent");

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
    let mut expected = Vec::new();
    let planner = inventory.reach.planner();
    let runs = planner.launcher().facts().script;
    let printed = |name: &str| match planner.gathers_output(script) {
        true => vec![(name.to_owned(), None)],
        false => placed.nodes.iter().map(|node| (files::node_file(name, node), Some(node))).collect(),
    };
    let mut expect = |name: String, kind, node: Option<&String>, part: Option<String>| {
        expected.push(ExpectedFile { name, kind, node: node.cloned(), part, rank: None });
    };
    match &case.workload {
        Workload::NcclTests(_) if case.placement == Placement::EachGpu => {
            for node in &placed.nodes {
                for gpu in 0..inventory.instance.gpus {
                    let part = Some(format!("gpu{gpu}"));
                    expect(files::gpu_out(gpu, node), FileKind::GpuNcclTests, Some(node), part.clone());
                    expect(files::gpu_err(gpu, node), FileKind::Stderr, Some(node), part);
                }
            }
        }
        Workload::NcclTests(_) => {
            for (name, node) in printed(files::STDOUT) {
                expect(name, FileKind::NcclTests, node, None);
            }
        }
        Workload::NicPairs(_) => {
            for device in &inventory.instance.nics {
                expect(files::flow_out(device), FileKind::Flow, None, Some(device.clone()));
            }
        }
        Workload::Training(_) => {
            for (name, node) in printed(files::STDOUT) {
                expect(name, FileKind::Stdout, node, None);
            }
        }
        // A command may well print nothing.
        Workload::Command(_) => {
            for (name, node) in printed(files::STDOUT) {
                expect(name, FileKind::Log, node, None);
            }
        }
    }
    if case.counters.enabled {
        for node in &placed.nodes {
            expect(files::counters(node), FileKind::Counters, Some(node), None);
        }
        if runs == ScriptRuns::Once {
            expect(files::SAMPLER_LOG.to_owned(), FileKind::Log, None, None);
        }
    }
    for (name, node) in printed(files::STDERR) {
        expect(name, FileKind::Stderr, node, None);
    }
    match runs {
        ScriptRuns::OnEachNode => {
            for node in &placed.nodes {
                expect(files::node_file(files::LOG, node), FileKind::Log, Some(node), None);
            }
        }
        ScriptRuns::Once => {
            expect(files::BATCH_ERR.to_owned(), FileKind::Log, None, None);
            expect(files::BATCH_OUT.to_owned(), FileKind::Log, None, None);
        }
    }
    if planner.records_environment() {
        expect(files::ENVIRONMENT.to_owned(), FileKind::Log, None, None);
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

/// How long a job should take where all is well, for a person to plan by. No limit is made of it.
fn estimate_s(inventory: &Inventory, case: &Case, nodes: usize) -> f64 {
    let instance = &inventory.instance;
    match &case.workload {
        Workload::NcclTests(tests) => {
            let wire = instance.nic_line_rate_gb_s * instance.nics.len() as f64;
            let gb_s = match (&case.placement, nodes) {
                (Placement::EachGpu, _) => instance.nvlink_gb_s,
                (_, 1) => instance.nvlink_gb_s * 0.5,
                _ => wire * 0.4,
            };
            // Out of place and in place, each warmed up and checked.
            let rounds = 2.0 * f64::from(tests.iterations + tests.warmup + 2);
            let one = |size: u64| 100e-6 + size as f64 / (gb_s * 1e9);
            LAUNCH_S + tests.sizes().into_iter().map(|size| rounds * one(size)).sum::<f64>()
        }
        Workload::NicPairs(pairs) => {
            LAUNCH_S + (pairs.seconds + 5.0) * flow_path::turns(instance, pairs.memory)
        }
        Workload::Training(training) => {
            LAUNCH_S + f64::from(training.steps.unwrap_or_default()) * SECONDS_OF_STEP
        }
        Workload::Command(_) => LAUNCH_S,
    }
}
