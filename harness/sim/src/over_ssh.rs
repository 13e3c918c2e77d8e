//! The commands that are sent to single nodes over ssh: those of `supervisor.sh`, which starts, keeps and ends a job's
//! script there, and a probe. Another command is an error. What runs then is in `ssh`.

use super::World;
use super::execution::execution;
use super::field;
use super::probed;
use super::programs::{case_and_job, needs, unknown};
use super::secrets;
use base::digest::sha256;
use cluster::field_kit::NodeRequest;
use cluster::probe::{CLOCK, ProbeRequest};
use cluster::reach::progress;
use cluster::reach::{Answer, ReachError};
use job::script::{self, Script, Start, Step, files};
use std::rc::Rc;

/// Whether a command changes nothing: it need not be remembered. A look renews the heartbeat, which is made up for.
pub(crate) fn only_asks(argv: &[String]) -> bool {
    progress::asked(argv).is_some()
        || argv.get(2).is_some_and(|verb| verb == "look")
        || argv == CLOCK
        || ProbeRequest::read(argv).is_some()
        || NodeRequest::read(argv).is_some()
}

/// Whether a command starts a job.
pub(crate) fn starts(argv: &[String]) -> bool {
    argv.get(1).is_some_and(|script| script.ends_with(files::SUPERVISOR))
        && argv.get(2).is_some_and(|verb| verb == "start")
}

pub(crate) fn run(world: &mut World, host: &str, argv: &[String]) -> Result<Answer, ReachError> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let true_s = world.epoch_s + world.now_s;
    if let Some(ask) = ProbeRequest::read(argv).filter(|ask| ask.node == host) {
        return Ok(Answer::ok(probed::answer(&world.cluster, &ask, true_s)));
    }
    if let Some(request) = NodeRequest::read(argv).filter(|request| request.node == host) {
        return Ok(Answer::ok(field::node(&world.cluster, &request)));
    }
    if let Some(folders) = progress::asked(argv) {
        return Ok(super::progress::answer(world, &folders));
    }
    if words == CLOCK {
        return Ok(Answer::ok(format!("{}\n", probed::clock(&world.cluster, host, true_s))));
    }
    if let ["bash", container, "pull", runtime, image, node] = words.as_slice()
        && let Some(folder) = container.strip_suffix(&format!("/{}", files::CONTAINER))
        && *node == host
    {
        return Ok(pull(world, folder, runtime, image, node));
    }
    let ["bash", supervisor, verb, folder, node, more @ ..] = words.as_slice() else {
        return Ok(unknown(world, argv));
    };
    if *node != host || *supervisor != format!("{folder}/{}", files::SUPERVISOR) {
        return Ok(unknown(world, argv));
    }
    if world.files.get(*supervisor).map(Vec::as_slice) != Some(script::SUPERVISOR_SH.as_bytes()) {
        return Ok(Answer::failed(127, format!("bash: {supervisor}: No such file or directory\n")));
    }
    let now_s = world.now_s;
    match (*verb, more) {
        ("start", [heartbeat_timeout_s]) if heartbeat_timeout_s.parse::<u32>().is_ok() => {
            return start(world, folder, node, heartbeat_timeout_s.parse().unwrap_or_default());
        }
        ("look", []) => {}
        ("end", [signal @ ("TERM" | "KILL")]) => world.ssh.end(folder, node, *signal == "KILL", now_s),
        _ => return Ok(unknown(world, argv)),
    }
    Ok(Answer::ok(world.ssh.look(folder, node, now_s)))
}

/// As `container.sh` does it.
fn pull(world: &mut World, folder: &str, runtime: &str, image: &str, node: &str) -> Answer {
    let path = format!("{folder}/{}", files::CONTAINER);
    if world.files.get(&path).map(Vec::as_slice) != Some(script::CONTAINER_SH.as_bytes()) {
        return Answer::failed(127, format!("bash: {path}: No such file or directory\n"));
    }
    let settings = &world.cluster.world;
    if settings.image_import_fails || settings.slow_with.get(image) == Some(&0.0) {
        return Answer::failed(
            125,
            format!(
                "container.sh: {node}: cannot pull the image {image}: Error response from daemon: manifest for {image} not \
                 found: manifest unknown; next: `{runtime} pull {image}` there: name, login, free space\n"
            ),
        );
    }
    let digest = format!("sha256:{}", sha256(image.as_bytes()));
    world.files.insert(
        format!("{folder}/{}", files::node_file(files::IMAGE, node)),
        format!("{digest}\n").into_bytes(),
    );
    Answer::ok(format!("{digest}\n"))
}

fn start(
    world: &mut World,
    folder: &str,
    node: &str,
    heartbeat_timeout_s: u32,
) -> Result<Answer, ReachError> {
    let now_s = world.now_s;
    if !world.ssh.was_started(folder, node) {
        let script = match readable(world, folder, node).and_then(|mut script| {
            secrets::take(world, folder, Some(node), &mut script)?;
            Ok(script)
        }) {
            Ok(script) => script,
            Err(why) => return Ok(Answer::failed(1, format!("simulated cluster: {why}\n"))),
        };
        let (case, job) = case_and_job(folder);
        for other in world.ssh.running_on(node) {
            let (other_case, other) = case_and_job(other);
            world.violations.push(format!(
                "{node}: two jobs in one node slot, {other} of `{other_case}` and {job} of `{case}`"
            ));
        }
        let execution = Rc::new(execution(&world.cluster, &script, case, job));
        let first = script.nodes.first().is_some_and(|first| first == node);
        if let Some(program) = execution.unknown_program.as_ref().filter(|_| first) {
            let program = program.escape_debug();
            world.violations.push(format!("unknown program `{program}` in job {job} of `{case}`"));
        }
        let at = script.nodes.iter().position(|name| name == node);
        let drops = at.is_some_and(|at| execution.active_faults.connection_drops(at));
        world.ssh.start(folder, node, f64::from(heartbeat_timeout_s), now_s, || execution);
        // The worst moment for a connection to drop: it was started, and the caller does not learn of it.
        if drops {
            let why = "connection reset by peer".to_owned();
            return Err(ReachError::Unreachable { host: node.to_owned(), why });
        }
    }
    Ok(Answer::ok(world.ssh.look(folder, node, now_s)))
}

/// The job's script, if it is complete and for this node.
fn readable(world: &World, folder: &str, node: &str) -> Result<Script, String> {
    let path = format!("{folder}/{}", files::JOB);
    let bytes = world.files.get(&path).ok_or_else(|| format!("no such file: `{path}`"))?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("`{path}` is not text: {error}"))?;
    let script = script::read(text).map_err(|why| format!("`{path}` is not a job script: {why}"))?;
    if script.start != Start::Ssh {
        return Err(format!("`{path}` is not a script for nodes reached by ssh"));
    }
    if !script.nodes.iter().any(|name| name == node) {
        return Err(format!("`{path}` is a script for other nodes than {node}"));
    }
    let put = |name: &str| world.files.get(&format!("{folder}/{name}")).map(Vec::as_slice);
    for name in needs(&script) {
        if put(name) != script::shared_text(name).map(str::as_bytes) {
            return Err(format!("`{folder}/{name}` is missing, or differs from the harness's script"));
        }
    }
    for step in &script.steps {
        if let Step::Run(run) = step
            && run.mpi.is_some()
            && put(files::HOSTFILE) != Some(script::hostfile(&script.nodes, run.tasks_per_node).as_bytes())
        {
            return Err(format!("mpirun has no host list: `{folder}/{}`", files::HOSTFILE));
        }
    }
    Ok(script)
}
