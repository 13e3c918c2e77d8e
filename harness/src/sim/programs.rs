//! The short list of programs that launchers call, as the pretend cluster has them. An unknown one is a loud error.

use super::slurm::{Job, State};
use super::work::{Setting, Work};
use super::{Cluster, World, case_and_job};
use crate::nodeset;
use crate::reach::Answer;
use crate::script;
use std::fmt::Write;

pub fn run(cluster: &Cluster, world: &mut World, argv: &[String], now: f64) -> Answer {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["sbatch", "--parsable", path] => sbatch(cluster, world, path, now),
        ["squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%N", jobs] => squeue(world, jobs, now),
        ["scontrol", "--oneliner", "show", "job", id] => show_job(cluster, world, id, now),
        ["scontrol", "show", "hostnames", list] => match nodeset::expand(list) {
            Ok(nodes) => Answer::ok(nodes.join("\n") + "\n"),
            Err(why) => Answer::failed(1, why),
        },
        ["scancel", "--signal=INT", "--full", _] => Answer::ok(""),
        ["scancel", id] => {
            if let Ok(id) = id.parse() {
                world.slurm.cancel(id, now);
            }
            Answer::ok("")
        }
        ["sinfo", "--noheader", "--Node", "--format=%N|%T|%E"] => sinfo(cluster, world, now),
        _ => {
            let told = format!("pretend cluster: no such program: `{}`", argv.join(" "));
            world.violations.push(told.clone());
            Answer::failed(127, told)
        }
    }
}

fn sbatch(cluster: &Cluster, world: &mut World, path: &str, now: f64) -> Answer {
    let failed = |why: String| Answer::failed(1, format!("sbatch: error: {why}"));
    let Some(text) = world.files.get(path).and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return failed(format!("Unable to open file {path}"));
    };
    let script = match script::read(text) {
        Ok(script) => script,
        Err(error) => return failed(format!("{path}: {error}")),
    };
    let Some(directives) = &script.slurm else { return failed("no directives".to_owned()) };
    let folder = directives.folder.clone();
    for (name, known) in script::SHARED {
        let needed = text.contains(&format!(" {name} "));
        let there = world.files.get(&format!("{folder}/{name}"));
        if needed && there.is_none_or(|bytes| bytes != known.as_bytes()) {
            return failed(format!("{folder}/{name} is not there, or not as it must be"));
        }
    }
    if let Some(node) = script.nodes.iter().find(|node| !cluster.nodes.contains(node)) {
        return failed(format!("Batch job submission failed: Invalid node name specified: {node}"));
    }
    let (case, job) = case_and_job(&folder);
    let of_case = cluster.case_faults.get(case).map(Vec::as_slice).unwrap_or_default();
    let faults = cluster.faults.iter().chain(of_case).filter(|fault| script.nodes.contains(&fault.node));
    let setting = Setting { machine: &cluster.machine, seed: cluster.seed, case, job };
    let work = match Work::of(&script, faults.cloned().collect(), &setting) {
        Ok(work) => work,
        Err(why) => {
            world.violations.push(why.clone());
            return failed(why);
        }
    };
    for other in world.slurm.jobs.values().filter(|job| !matches!(job.state, State::Ended { .. })) {
        if let Some(node) = script.nodes.iter().find(|node| other.script.nodes.contains(node)) {
            let told = format!("{node} is given to {} while {} is on it", directives.job_name, other.name);
            world.violations.push(told);
        }
    }
    let id = world.slurm.submit(directives.job_name.clone(), folder, script, work, now);
    Answer::ok(format!("{id}\n"))
}

fn squeue(world: &World, jobs: &str, now: f64) -> Answer {
    let mut text = String::new();
    let ids = jobs.strip_prefix("--jobs=").unwrap_or_default();
    let known: Vec<(u64, &Job)> = ids
        .split(',')
        .filter_map(|id| id.parse().ok())
        .filter_map(|id| Some((id, world.slurm.forget_old(id, now)?)))
        .collect();
    if known.is_empty() {
        return Answer::failed(1, "slurm_load_jobs error: Invalid job id specified\n");
    }
    for (id, job) in known {
        let _ = writeln!(text, "{id}|{}|{}|{}", job.word(), job.reason(), nodes_of(job));
    }
    Answer::ok(text)
}

fn nodes_of(job: &Job) -> String {
    if job.state == State::Pending { String::new() } else { nodeset::fold(&job.script.nodes) }
}

fn show_job(cluster: &Cluster, world: &World, id: &str, now: f64) -> Answer {
    let Some(job) = id.parse().ok().and_then(|id| world.slurm.forget_old(id, now)) else {
        return Answer::failed(1, "slurm_load_jobs error: Invalid job id specified\n");
    };
    let (code, signal) = match job.state {
        State::Ended { code, signal, .. } => (code, signal),
        _ => (0, 0),
    };
    let moment = |at: Option<f64>| match at {
        Some(at) => format!("{}", cluster.epoch_unix_s + at as i64),
        None => "Unknown".to_owned(),
    };
    let (start, end) = match job.state {
        State::Pending => (None, None),
        State::Running { since } => (Some(since), None),
        State::Ended { since, at, .. } => (since, Some(at)),
    };
    Answer::ok(format!(
        "JobId={id} JobName={} JobState={} Reason={} ExitCode={code}:{signal} StartTime={} EndTime={} NodeList={}\n",
        job.name,
        job.word(),
        job.reason().replace(' ', ""),
        moment(start),
        moment(end),
        nodes_of(job),
    ))
}

fn sinfo(cluster: &Cluster, world: &World, now: f64) -> Answer {
    let mut text = String::new();
    for node in &cluster.nodes {
        let (state, reason) = if world.slurm.is_lost(node, now) {
            ("down*", "Not responding")
        } else if world.slurm.is_busy(node) {
            ("allocated", "none")
        } else {
            ("idle", "none")
        };
        let _ = writeln!(text, "{node}|{state}|{reason}");
    }
    Answer::ok(text)
}
