//! The commands that launchers call, and what they print: sbatch, squeue, scontrol, scancel, sinfo, sacct. Another
//! command is an error: it is answered with 127, and recorded as a violation of the whole run.

use super::World;
use super::calendar::{slurm_span, slurm_time};
use super::drained;
use super::execution::{Execution, execution};
use super::field::{self, NO_GRES};
use super::over::How;
use super::probed;
use super::secrets;
use super::slurm::{Job, Phase, Submission};
use super::turns::Turns;
use super::work::noise_of;
use base::nodeset;
use cluster::field_kit::NodeRequest;
use cluster::probe::{self, ProbeRequest};
use cluster::reach::Answer;
use cluster::reach::progress;
use job::script::{self, Profile, Script, Start, Step, files};
use job::window::{HOOK_FILE, Trigger};
use std::fmt::Write;
use std::rc::Rc;

/// Whether a command changes nothing: it need not be remembered.
pub(crate) fn only_asks(argv: &[String]) -> bool {
    match argv.first().map(String::as_str) {
        // Of what srun can run, a probe is all there is.
        Some("squeue" | "sinfo" | "sacct" | "srun") => true,
        Some("bash") => progress::asked(argv).is_some(),
        Some("scontrol") => argv.iter().any(|word| word == "show"),
        _ => false,
    }
}

pub(crate) fn run(world: &mut World, argv: &[String]) -> Answer {
    if let Some(folders) = progress::asked(argv) {
        return super::progress::answer(world, &folders);
    }
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    if let Some(answer) = field::cluster_command(world, &words) {
        return answer;
    }
    match words.as_slice() {
        ["sbatch", "--parsable", path] => sbatch(world, path),
        ["squeue", "--noheader", "--all", "--states=all", "--format=%i|%T|%r|%N", jobs]
            if jobs.starts_with("--jobs=") =>
        {
            squeue(world, &jobs["--jobs=".len()..])
        }
        ["squeue", "--noheader", "--all", "--me", "--states=all", "--format=%i|%j|%o|%Z"] => {
            let line = |job: &Job| {
                let (name, folder) = name_and_folder(world, job);
                format!("{}|{name}|{}|{folder}\n", job.id, script_of(job))
            };
            Answer::ok(world.slurm.known().map(line).collect::<String>())
        }
        ["scontrol", "--all", "--oneliner", "show", "job", id] => show_job(world, id),
        ["scontrol", "show", "hostnames", list] => match nodeset::expand(list) {
            Ok(names) => Answer::ok(names.iter().map(|name| format!("{name}\n")).collect::<String>()),
            Err(why) => Answer::failed(1, format!("Invalid hostlist: {list}: {why}\n")),
        },
        ["scontrol", "--all", "--oneliner", "show", "node", node] => drained::show(world, node),
        ["scontrol", "--all", "--oneliner", "show", "node"] => drained::show_all(world),
        ["scontrol", "update", words @ ..] => {
            drained::update(world, words).unwrap_or_else(|| unknown(world, argv))
        }
        // A simulated cluster keeps no accounts.
        ["sacct", "--noheader", "--parsable2", "--allocations", _, _] => {
            Answer::failed(1, "Slurm accounting storage is disabled\n")
        }
        ["scancel", "--signal=INT", "--full", id] => scancel(world, id, true),
        ["scancel", id] if !id.starts_with('-') => scancel(world, id, false),
        ["scancel", ids @ ..] if ids.iter().all(|id| !id.starts_with('-')) => {
            let answers: Vec<Answer> = ids.iter().map(|id| scancel(world, id, false)).collect();
            answers.into_iter().find(|answer| !answer.succeeded()).unwrap_or_else(|| Answer::ok(""))
        }
        ["squeue", "--noheader", "--all", "--me", "--format=%i|%T|%N|%j|%Z|%o"] => queue(world, |job| {
            let is_placed = !matches!(job.phase, Phase::Pending);
            let nodes = if is_placed { nodeset::fold(&job.execution.nodes) } else { String::new() };
            format!("{}|{nodes}", state(world, job))
        }),
        ["squeue", "--noheader", "--all", "--format=%i|%u|%V|%j|%Z|%o"] => {
            queue(world, |job| format!("harness|{}", slurm_time(world.epoch_s + job.submitted_s)))
        }
        ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%E"] => sinfo(world, ""),
        ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%G|%E"] => {
            sinfo(world, &format!("{}|", field::gres(world)))
        }
        ["sinfo", "--noheader", "--all", "--format=%P|%l"] => match world.cluster.world.max_minutes {
            Some(minutes) => Answer::ok(format!("sim-queue*|{}:00\n", minutes)),
            None => Answer::ok("sim-queue*|infinite\n"),
        },
        ["srun", ..] => match probe::read_srun(&words) {
            Some((node, inner)) => {
                let options = &words[..words.len() - inner.len()];
                let (node, inner) = (node.to_owned(), inner.to_vec());
                srun(world, options, &node, &inner).unwrap_or_else(|| unknown(world, argv))
            }
            None => unknown(world, argv),
        },
        _ => unknown(world, argv),
    }
}

/// The error for an unknown command.
pub(crate) fn unknown(world: &mut World, argv: &[String]) -> Answer {
    let line = argv.join(" ");
    let line = line.escape_debug();
    world.violations.push(format!("unknown program: `{line}`"));
    Answer::failed(127, format!("simulated cluster: unknown program: `{line}`\n"))
}

pub(crate) fn remove(world: &mut World, paths: Vec<String>) -> Answer {
    for path in paths {
        world.files.remove(&path);
        world.removed.insert(path);
    }
    Answer::ok("")
}

const TOO_MANY_JOBS: &str = "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates \
     accounting/QOS policy (job submit limit, user's size and/or time limits)\n";
const UNKNOWN_JOB: &str = "slurm_load_jobs error: Invalid job id specified\n";

fn sbatch(world: &mut World, path: &str) -> Answer {
    if let Some(why) = &world.cluster.world.sbatch_refuses {
        return Answer::failed(1, format!("sbatch: error: {why}\n"));
    }
    let (script, execution) = match taken(world, path) {
        Ok(taken) => taken,
        Err(why) => return Answer::failed(1, format!("sbatch: error: {why}\n")),
    };
    let Start::Slurm(directives) = &script.start else { return Answer::failed(1, "sbatch: error\n") };
    if !world.cluster.world.gres && directives.gpus_per_node > 0 {
        return Answer::failed(1, format!("sbatch: error: {NO_GRES}\n"));
    }
    if world.cluster.world.most_submitted.is_some_and(|most| world.slurm.live().count() >= most as usize) {
        return Answer::failed(1, TOO_MANY_JOBS);
    }
    for other in world.slurm.live() {
        if let Some(node) = other.execution.nodes.iter().find(|node| script.nodes.contains(node)) {
            let (job, case) = (&execution.job, &execution.case);
            let broken = format!("{node}: two jobs in one node slot, {} and {job} of `{case}`", other.name);
            world.violations.push(broken);
        }
    }
    let submission = Submission {
        name: directives.job_name.clone(),
        folder: directives.folder.clone(),
        limit_s: directives.minutes as f64 * 60.0,
        waits_s: match is_too_long(world, directives.minutes as f64) {
            true => f64::INFINITY,
            false => noise_of(&world.cluster, &execution.case, &execution.job, "queue").between(1.0, 4.0),
        },
        first_id: world.first_id,
        turns: turns(&script).map(Turns::new),
        execution,
    };
    let now_s = world.now_s;
    Answer::ok(format!("{}\n", world.slurm.submit(now_s, submission)))
}

/// Slurm takes it (EnforcePartLimits=NO) and lets it wait.
fn is_too_long(world: &World, minutes: f64) -> bool {
    world.cluster.world.max_minutes.is_some_and(|most| minutes > f64::from(most))
}

fn turns(script: &Script) -> Option<&script::Turns> {
    script.steps.iter().find_map(|step| match step {
        Step::Turns(turns) => Some(turns),
        _ => None,
    })
}

/// A job's script as it lies there, and what becomes of the job; or why nothing can.
pub(crate) fn taken(world: &mut World, path: &str) -> Result<(Script, Rc<Execution>), String> {
    let bytes = world.files.get(path).ok_or_else(|| format!("Unable to open file {path}"))?;
    let text = std::str::from_utf8(bytes)
        .map_err(|why| format!("simulated cluster: `{path}` is not text: {why}"))?;
    let mut script = script::read(text)
        .map_err(|why| format!("simulated cluster: `{path}` is not a job script: {why}"))?;
    let Start::Slurm(directives) = script.start.clone() else {
        return Err(format!("simulated cluster: no Slurm directives in `{path}`"));
    };
    if let Some(node) = script.nodes.iter().find(|node| !world.cluster.nodes.contains(*node)) {
        return Err(format!("Batch job submission failed: Invalid node name specified: {node}"));
    }
    for name in needs(&script) {
        let helper = format!("{}/{name}", directives.folder);
        if world.files.get(&helper).map(Vec::as_slice) != script::shared_text(name).map(str::as_bytes) {
            return Err(format!(
                "simulated cluster: `{helper}` is missing, or differs from the harness's script"
            ));
        }
    }
    secrets::take(world, &directives.folder, None, &mut script)
        .map_err(|why| format!("simulated cluster: {why}"))?;
    // What ails an allocation that jobs share is what ails the first of them: it waits in the queue for that one.
    let first = turns(&script).and_then(|turns| turns.jobs.first());
    let folder = first.map_or(directives.folder.as_str(), |turn| turn.folder.as_str());
    let (case, job) = case_and_job(folder);
    let execution = Rc::new(execution(&world.cluster, &script, case, job));
    if let Some(program) = &execution.unknown_program {
        world
            .violations
            .push(format!("unknown program `{}` in job {job} of `{case}`", program.escape_debug()));
    }
    Ok((script, execution))
}

/// The last two folders: the rest of the path holds the run's id, which must change nothing.
pub fn case_and_job(folder: &str) -> (&str, &str) {
    let mut parts = folder.trim_end_matches('/').rsplit('/');
    let job = parts.next().unwrap_or_default();
    (parts.next().unwrap_or_default(), job)
}

pub(crate) fn needs(script: &Script) -> impl Iterator<Item = &'static str> {
    let of_profile = |profile: &Profile| match profile.window.as_deref() {
        Some(Trigger::Hook(_)) => vec!["profile.sh", HOOK_FILE],
        _ => vec!["profile.sh"],
    };
    let by_mpi = script.steps.iter().any(|step| matches!(step, Step::Run(run) if run.mpi.is_some()));
    let of_image = script.image().into_iter().flat_map(move |_| {
        [Some(script::files::CONTAINER), by_mpi.then_some(script::files::AGENT)].into_iter().flatten()
    });
    of_image.chain(script.steps.iter().flat_map(move |step| match step {
        Step::CountersBegin(_) => vec!["counters.sh"],
        Step::Inspector => vec![script::files::INSPECTOR_SCRIPT],
        Step::Gpus(_) => vec!["gpus.sh"],
        Step::Flows(_) => vec!["flows.sh"],
        Step::Run(run) if run.argv.iter().any(|word| word == script::files::GPU_STATE_SCRIPT) => {
            let by_torch = run.argv.iter().any(|word| word == script::files::TORCH_BURN);
            let burn = by_torch.then_some(script::files::TORCH_BURN);
            [Some(script::files::GPU_STATE_SCRIPT), burn].into_iter().flatten().collect()
        }
        Step::Run(run) if run.argv.iter().any(|word| word == script::files::LINKS_SCRIPT) => {
            vec![script::files::LINKS_SCRIPT]
        }
        Step::Run(run) if run.argv.iter().any(|word| word == script::files::GPU_ALLOCATION_SCRIPT) => {
            vec![script::files::GPU_ALLOCATION_SCRIPT]
        }
        Step::Run(run) if run.argv.iter().any(|word| word == script::files::BUSY_SCRIPT) => {
            vec![script::files::BUSY_SCRIPT]
        }
        Step::Run(run) => run.profile.as_ref().map(of_profile).unwrap_or_default(),
        Step::Turns(_) => vec![script::files::ALLOCATION],
        Step::Environment { .. } | Step::Secrets { .. } | Step::CountersEnd => Vec::new(),
    }))
}

fn squeue(world: &World, jobs: &str) -> Answer {
    let ids: Vec<&str> = jobs.split(',').collect();
    let mut text = String::new();
    for id in &ids {
        match id.parse().ok().and_then(|id| world.slurm.job(id)) {
            Some(job) => {
                let nodes = match job.phase {
                    Phase::Pending | Phase::Over { start_s: None, .. } => String::new(),
                    _ => nodeset::fold(&job.execution.nodes),
                };
                // Infallible: writing to a string.
                let _ = writeln!(text, "{id}|{}|{}|{nodes}", state(world, job), reason(world, job));
            }
            // Of several, those that are forgotten are left out; one alone is asked for by its id.
            None if ids.len() > 1 => {}
            None => return Answer::failed(1, UNKNOWN_JOB),
        }
    }
    Answer::ok(text)
}

/// Name and working folder, as the site's submit plugin has left them.
fn name_and_folder<'a>(world: &'a World, job: &'a Job) -> (&'a str, &'a str) {
    let settings = &world.cluster.world;
    let name = settings.job_name.as_deref().unwrap_or(&job.name);
    (name, settings.job_folder.as_deref().unwrap_or(&job.folder))
}

fn script_of(job: &Job) -> String {
    format!("{}/{}", job.folder, files::JOB)
}

/// Everything that is in the queue.
fn queue(world: &World, fields: impl Fn(&Job) -> String) -> Answer {
    let line = |job: &Job| {
        let (name, folder) = name_and_folder(world, job);
        format!("{}|{}|{name}|{folder}|{}\n", job.id, fields(job), script_of(job))
    };
    let queued = world
        .slurm
        .known()
        .filter(|job| !matches!(job.phase, Phase::Over { .. }) || job.is_completing(world.now_s));
    Answer::ok(queued.map(line).collect::<String>())
}

fn state(world: &World, job: &Job) -> &'static str {
    match job.phase {
        Phase::Pending => "PENDING",
        Phase::Configuring { .. } => "CONFIGURING",
        Phase::Running { .. } => "RUNNING",
        Phase::Over { .. } if job.is_completing(world.now_s) => "COMPLETING",
        Phase::Over { how, .. } => match how {
            How::Exit(0) => "COMPLETED",
            How::Exit(_) | How::Signal(_) => "FAILED",
            How::TimeLimit => "TIMEOUT",
            How::Cancelled => "CANCELLED",
            How::NodeFail => "NODE_FAIL",
            How::Preempted => "PREEMPTED",
        },
    }
}

fn reason(world: &World, job: &Job) -> String {
    match job.phase {
        Phase::Pending if is_too_long(world, job.limit_s / 60.0) => "PartitionTimeLimit".to_owned(),
        Phase::Pending => world.slurm.reason(job),
        Phase::Over { how: How::Exit(code), .. } if code != 0 => "NonZeroExitCode".to_owned(),
        Phase::Over { how: How::TimeLimit, .. } => "TimeLimit".to_owned(),
        Phase::Over { how: How::NodeFail, .. } => "NodeDown".to_owned(),
        _ => "None".to_owned(),
    }
}

fn show_job(world: &World, id: &str) -> Answer {
    let Some(job) = id.parse().ok().and_then(|id| world.slurm.job(id)) else {
        return Answer::failed(1, UNKNOWN_JOB);
    };
    let time = |at: Option<f64>| at.map_or("Unknown".to_owned(), |at| slurm_time(world.epoch_s + at));
    let (start_s, end_s, code) = match job.phase {
        Phase::Pending => (None, None, (0, 0)),
        Phase::Configuring { ready_s } => (Some(world.now_s), Some(ready_s + job.limit_s), (0, 0)),
        Phase::Running { start_s } => (Some(start_s), Some(start_s + job.limit_s), (0, 0)),
        Phase::Over { start_s, end_s, how } => (start_s.or(Some(end_s)), Some(end_s), exit_code(how)),
    };
    let ran_s = match job.phase {
        Phase::Over { start_s: Some(start_s), end_s, .. } => end_s - start_s,
        Phase::Running { start_s } => world.now_s - start_s,
        _ => 0.0,
    };
    let nodes = &job.execution.nodes;
    let placed = if matches!(job.phase, Phase::Pending) { "(null)".to_owned() } else { nodeset::fold(nodes) };
    let (name, folder) = name_and_folder(world, job);
    Answer::ok(format!(
        "JobId={} JobName={} UserId=harness(1000) GroupId=harness(1000) Priority=1 Account=(null) QOS=normal \
         JobState={} Reason={} Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={}:{} RunTime={} \
         TimeLimit={} SubmitTime={} EligibleTime={} StartTime={} EndTime={} Partition=sim-queue ReqNodeList={} \
         ExcNodeList=(null) NodeList={placed} NumNodes={} WorkDir={} \n",
        job.id,
        name,
        state(world, job),
        reason(world, job).replace(' ', "_"),
        code.0,
        code.1,
        slurm_span(ran_s),
        slurm_span(job.limit_s),
        time(Some(job.submitted_s)),
        time(Some(job.submitted_s)),
        time(start_s),
        time(end_s),
        nodeset::fold(nodes),
        nodes.len(),
        folder,
    ))
}

fn exit_code(how: How) -> (i32, i32) {
    match how {
        How::Exit(code) => (code, 0),
        How::Signal(signal) => (0, signal),
        How::TimeLimit | How::Preempted => (0, 0),
        How::Cancelled => (0, 15),
        How::NodeFail => (1, 0),
    }
}

fn scancel(world: &mut World, id: &str, by_interrupt: bool) -> Answer {
    let Ok(number) = id.parse() else {
        return Answer::failed(1, format!("scancel: error: Invalid job id {id}\n"));
    };
    let now_s = world.now_s;
    let found = if by_interrupt {
        world.slurm.interrupt(number, now_s)
    } else {
        let (found, over) = world.slurm.cancel(number, now_s);
        world.keep(over);
        found
    };
    match found {
        true => Answer::ok(""),
        false => Answer::failed(
            1,
            format!("scancel: error: Kill job error on job id {id}: Invalid job id specified\n"),
        ),
    }
}

/// Nothing where it is asked for anything but a probe of one of its nodes.
fn srun(world: &mut World, options: &[&str], node: &str, argv: &[&str]) -> Option<Answer> {
    let ask = ProbeRequest::read(argv).filter(|ask| ask.node == node);
    let request = NodeRequest::read(argv).filter(|request| request.node == node);
    if (ask.is_none() && request.is_none()) || !world.cluster.nodes.contains(node) {
        return None;
    }
    if let Some(why) = &world.cluster.world.sbatch_refuses {
        return Some(Answer::failed(1, format!("srun: error: {why}\n")));
    }
    let asks_gpus = |word: &&str| word.starts_with("--gres=gpu") || word.starts_with("--gpus");
    if !world.cluster.world.gres && options.iter().any(asks_gpus) {
        let why = format!("srun: error: Unable to allocate resources: {NO_GRES}\n");
        return Some(Answer::failed(1, why));
    }
    let minutes = options.iter().find_map(|word| word.strip_prefix("--time=")?.parse().ok());
    if is_too_long(world, minutes.unwrap_or_default())
        || world.slurm.is_busy(node)
        || world.slurm.is_down(node)
    {
        return Some(Answer::failed(
            1,
            "srun: error: Unable to allocate resources: Requested nodes are busy\n",
        ));
    }
    world.slurm.wake(node);
    let true_s = world.epoch_s + world.now_s;
    let of_probe = ask.map(|ask| probed::answer(&world.cluster, &ask, true_s));
    of_probe.or_else(|| Some(field::node(&world.cluster, &request?))).map(Answer::ok)
}

/// `gres` stands between state and reason, with the bar behind it.
fn sinfo(world: &World, gres: &str) -> Answer {
    let line = |node: &String| {
        let drained = world.slurm.drained.reason(node);
        let power = match (world.slurm.is_asleep(node), world.slurm.is_booting(node)) {
            (true, _) => "~",
            (false, true) => "#",
            (false, false) => "",
        };
        let (state, why) = match (world.slurm.is_down(node), world.slurm.is_busy(node), drained) {
            (true, ..) => ("down*", "Not responding"),
            (false, true, Some(why)) => ("draining", why),
            (false, false, Some(why)) => ("drained", why),
            (false, true, None) => ("allocated", "none"),
            (false, false, None) => ("idle", "none"),
        };
        format!("{node}|{state}{power}|{gres}{why}\n")
    };
    Answer::ok(world.cluster.nodes.iter().map(line).collect::<String>())
}
