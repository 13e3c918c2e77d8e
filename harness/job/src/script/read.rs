//! Reads the shell text of a script back into its steps, by the grammar of `render.rs` and no other.

use super::{
    Container, Directives, FlowMemory, Flows, GpuRequest, Gpus, Profile, Run, Sampler, Script, Start, Step,
    Turn, Turns, files, in_image, over_ssh, render, secrets,
};
use crate::profile::{NsysVersion, Ranks, nsys};
use crate::window::Trigger;
use base::nodeset;
use std::collections::BTreeMap;
use std::fmt;

/// The script in `text`. Whatever `render` would not have written is refused.
pub fn read(text: &str) -> Result<Script, NotAScript> {
    let script = parse(text)?;
    // The steps were read loosely; that rendering them gives the very text makes the reading strict.
    let again = render(&script);
    // Older plans left the token where it was, or had steps with fewer options.
    let is_written = |form: &str| form == text || form.replacen(render::KEEPS_TOKEN, "", 1) == text;
    if is_written(&again) || render::as_older_versions(&again).iter().any(|form| is_written(form)) {
        return Ok(script);
    }
    let at = text.lines().zip(again.lines()).position(|(seen, expected)| seen != expected);
    let line = at.unwrap_or_else(|| text.lines().count().min(again.lines().count()));
    Err(NotAScript { line: line + 1, why: "not as the harness renders it".to_owned() })
}

/// Why a text is not a script of the harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAScript {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for NotAScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

fn parse(text: &str) -> Result<Script, NotAScript> {
    let (head, body) = text
        .split_once("set -u\nstatus=0\n")
        .ok_or_else(|| NotAScript { line: 1, why: "no `set -u` after the head".to_owned() })?;
    let mut script = parse_head(head)?;
    let first_line = head.lines().count() + 2;
    let mut words: Vec<String> = Vec::new();
    // The lexer drops comments, so the body is split at its comment lines before it is lexed.
    // A quoted value may hold a line that looks like one; the cut is then wrong, and the strict comparison refuses it.
    let mut block = String::new();
    let mut blocks: Vec<(usize, String, String)> = Vec::new();
    let mut title: Option<(usize, String)> = None;
    // Not by `lines`, which would take a carriage return at the end of a quoted value for part of the line's end.
    for (at, line) in body.split_inclusive('\n').enumerate() {
        match line.strip_suffix('\n').unwrap_or(line).strip_prefix("# ") {
            Some(comment) if is_title(comment) => {
                if let Some((line, title)) = title.take() {
                    blocks.push((line, title, std::mem::take(&mut block)));
                }
                title = Some((first_line + at + 1, comment.to_owned()));
            }
            _ => block.push_str(line),
        }
    }
    if let Some((line, title)) = title {
        blocks.push((line, title, block));
    }
    for (line, title, block) in blocks {
        words.clear();
        words.extend(shlex::Shlex::new(&block).map(secrets::read_back));
        if let (Start::Slurm(directives), Some((launch, _))) = (&mut script.start, launched(&words))
            && directives.srun.is_empty()
        {
            directives.srun = launch.further;
        }
        let step = parse_step(&title, &words)
            .ok_or_else(|| NotAScript { line, why: format!("not a `{title}` step") })?;
        script.steps.push(step);
    }
    Ok(script)
}

const TITLES: [&str; 9] = [
    "secrets",
    "environment",
    "counters begin",
    "run",
    "gpus",
    "flows",
    "counters end",
    "inspector",
    "turns",
];

fn is_title(comment: &str) -> bool {
    TITLES.contains(&comment.split(':').next().unwrap_or_default())
}

/// The options of sbatch that the harness sets itself.
const OWN: [&str; 18] = [
    "job-name",
    "nodes",
    "nodelist",
    "ntasks-per-node",
    "gres",
    "gpus-per-node",
    "time",
    "partition",
    "account",
    "reservation",
    "constraint",
    "qos",
    "mem",
    "chdir",
    "output",
    "error",
    "exclusive",
    "no-requeue",
];

fn parse_head(head: &str) -> Result<Script, NotAScript> {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    let mut nodes = None;
    let mut in_order = None;
    let mut sbatch = Vec::new();
    for line in head.lines() {
        if let Some(directive) = line.strip_prefix("#SBATCH --") {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            let unquoted = value.starts_with('\'').then(|| shlex::split(value)).flatten();
            let unquoted = unquoted.map_or_else(|| value.to_owned(), |words| words.concat());
            match OWN.contains(&name) {
                true => drop(values.insert(name, unquoted)),
                false if directive.contains('=') => sbatch.push(format!("--{name}={unquoted}")),
                false => sbatch.push(format!("--{name}")),
            }
        } else if let Some(set) = line.strip_prefix("# nodes ") {
            nodes = Some(set);
        } else if let Some(names) = line.strip_prefix(render::RANKS_ALONG) {
            in_order = Some(names.split(' ').map(str::to_owned).collect::<Vec<_>>());
        }
    }
    let bad = |why: &str| NotAScript { line: 1, why: why.to_owned() };
    let set = nodes
        .or_else(|| values.get("nodelist").map(String::as_str))
        .ok_or_else(|| bad("no nodes in the head"))?;
    let nodes = nodeset::expand(set).map_err(|why| bad(&why))?;
    let nodes = in_order.unwrap_or(nodes);
    if values.is_empty() {
        let starts = [(over_ssh::HEAD, Start::Ssh), (over_ssh::HEAD_OF_PODS, Start::Pods)];
        let start = starts.into_iter().find(|(line, _)| head.contains(line));
        let start = start.map_or(Start::Bash, |(_, start)| start);
        return Ok(Script { start, nodes, steps: Vec::new() });
    }
    let word = |name: &str| values.get(name).cloned();
    let number = |name: &str| values.get(name).and_then(|value| value.parse::<u64>().ok());
    let directives = (|| {
        let (gpus, gpus_per_node) = match (values.get("gres"), values.get("gpus-per-node")) {
            (Some(gres), _) => (GpuRequest::Gres, gres.strip_prefix("gpu:")?.parse().ok()?),
            (None, Some(gpus)) => (GpuRequest::GpusPerNode, gpus.parse().ok()?),
            (None, None) => (GpuRequest::None, 0),
        };
        Some(Directives {
            job_name: word("job-name")?,
            folder: word("chdir")?,
            tasks_per_node: u32::try_from(number("ntasks-per-node")?).ok()?,
            gpus_per_node,
            minutes: number("time")?,
            exclusive: values.contains_key("exclusive"),
            stands_alone: head.contains(render::FORGETS),
            partition: word("partition"),
            account: word("account"),
            reservation: word("reservation"),
            constraint: word("constraint"),
            gpus,
            qos: word("qos"),
            mem: word("mem"),
            sbatch: sbatch.clone(),
            srun: Vec::new(),
            records_environment: head.ends_with(render::RECORDS),
        })
    })();
    let directives = directives.ok_or_else(|| bad("a directive is missing or not a number"))?;
    Ok(Script { start: Start::Slurm(directives), nodes, steps: Vec::new() })
}

fn parse_step(title: &str, words: &[String]) -> Option<Step> {
    match title.split(':').next()? {
        "secrets" => {
            let variables = title.strip_prefix("secrets: ")?.split(' ').map(str::to_owned).collect();
            Some(Step::Secrets { variables })
        }
        "environment" => {
            let mut variables = BTreeMap::new();
            for pair in words.chunks(2) {
                let [export, assignment] = pair else { break };
                if export != "export" {
                    break;
                }
                let (name, value) = assignment.split_once('=')?;
                variables.insert(name.to_owned(), value.to_owned());
            }
            Some(Step::Environment { variables })
        }
        "counters begin" => {
            let (_, rest) = launched(words)?;
            let [bash, script, root, _out, _ready, _stop, interval_s, limit_s, ..] = rest else {
                return None;
            };
            (bash == "bash" && script == "counters.sh").then_some(())?;
            Some(Step::CountersBegin(Sampler {
                root: root.clone(),
                interval_s: interval_s.parse().ok()?,
                limit_s: limit_s.parse().ok()?,
                watched: words.iter().any(|word| word == render::WATCHED),
            }))
        }
        "run" => {
            let words = until_redirection(words)?;
            if let Some((run, argv)) = over_ssh::read_run(words) {
                let (profile, argv) = profiled(argv)?;
                return Some(Step::Run(Run { argv: argv.to_vec(), profile, ..run }));
            }
            let (launch, argv) = launched(words)?;
            let (profile, argv) = profiled(argv)?;
            Some(Step::Run(Run {
                argv: argv.to_vec(),
                tasks_per_node: launch.tasks_per_node.unwrap_or(1),
                mpi: launch.mpi,
                container: launch.container,
                profile,
            }))
        }
        "gpus" => {
            let (launch, rest) = launched(until_redirection(words)?)?;
            let (container, rest) = in_image::read(rest)?;
            let [_bash, _script, gpus, argv @ ..] = rest else { return None };
            Some(Step::Gpus(Gpus {
                argv: argv.to_vec(),
                gpus: gpus.parse().ok()?,
                container: container.or(launch.container),
            }))
        }
        "flows" => {
            let (_, rest) = launched(until_redirection(words)?)?;
            let [_bash, _script, tool, op, server, client, numbers @ ..] = rest else { return None };
            let [port, message, iterations, limit, memory, devices @ ..] = numbers else { return None };
            let devices = devices.iter().map(|word| word.rsplit_once('='));
            let devices = devices.collect::<Option<Vec<_>>>()?;
            Some(Step::Flows(Flows {
                tool: tool.clone(),
                op: op.clone(),
                server: server.clone(),
                client: client.clone(),
                base_port: port.parse().ok()?,
                message_bytes: message.parse().ok()?,
                iterations: iterations.parse().ok()?,
                limit_s: limit.parse().ok()?,
                memory: FlowMemory::ALL.into_iter().find(|known| known.name() == memory)?,
                devices: devices.iter().map(|(device, _)| (*device).to_owned()).collect(),
                gpus: devices.iter().map(|(_, gpu)| gpu.parse().ok()).collect::<Option<_>>()?,
            }))
        }
        "counters end" => Some(Step::CountersEnd),
        "inspector" => {
            let is_script = |word: &String| word == super::files::INSPECTOR_SCRIPT;
            words.iter().any(is_script).then_some(Step::Inspector)
        }
        "turns" => {
            let end = words.iter().position(|word| word == render::STATUS)?;
            let [_bash, _script, idle_s, jobs @ ..] = words.get(..end)? else { return None };
            let turn = |pair: &[String]| {
                let [folder, limit_s] = pair else { return None };
                Some(Turn { folder: folder.clone(), limit_s: limit_s.parse().ok()? })
            };
            let jobs = jobs.chunks(2).map(turn).collect::<Option<Vec<_>>>()?;
            Some(Step::Turns(Turns { idle_s: idle_s.parse().ok()?, jobs }))
        }
        _ => None,
    }
}

/// The workload's arguments: up to the redirection of its output, which is always to the same file, or to the node's own.
fn until_redirection(words: &[String]) -> Option<&[String]> {
    let is_stdout = |word: &str| word == files::STDOUT || word == over_ssh::OWN_STDOUT;
    let end = words.windows(2).rposition(|pair| pair[0] == ">" && is_stdout(&pair[1]))?;
    words.get(..end)
}

/// Splits the profiler's arguments off the front; the rest is the rank's command.
fn profiled(words: &[String]) -> Option<(Option<Profile>, &[String])> {
    let ["bash", "profile.sh"] = [words.first()?.as_str(), words.get(1).map_or("", String::as_str)] else {
        return Some((None, words));
    };
    let [nsys, version, tasks, ranks, node_ranks, name, export, tables, rest @ ..] = words.get(2..)? else {
        return None;
    };
    let (window, rest) = match rest {
        [word, more @ ..] if Trigger::is_one(word) => {
            (Some(Box::new(Trigger::try_from(word.clone()).ok()?)), more)
        }
        _ => (None, rest),
    };
    let end = rest.iter().position(|word| word == "--")?;
    let (every, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
    let end = rest.iter().position(|word| word == "--")?;
    let (once_per_node, argv) = (rest.get(..end)?, rest.get(end + 1..)?);
    let tables = match tables.as_str() {
        "all" => Vec::new(),
        tables => tables.split(',').map(str::to_owned).collect(),
    };
    let profile = Profile {
        nsys: nsys.clone(),
        version: NsysVersion::parse(version)?,
        tasks: tasks.parse().ok()?,
        ranks: Ranks::try_from(ranks.clone()).ok()?,
        node_ranks: Ranks::try_from(node_ranks.clone()).ok()?,
        name: name.clone(),
        export: export.clone(),
        tables,
        words: nsys::Arguments { every: every.to_vec(), once_per_node: once_per_node.to_vec() },
        window,
    };
    Some((Some(profile), argv))
}

#[derive(Default)]
struct Launch {
    tasks_per_node: Option<u32>,
    mpi: Option<String>,
    container: Option<Container>,
    /// Those that the inventory adds.
    further: Vec<String>,
}

/// Splits srun's arguments off the front; the rest is what each node runs.
fn launched(words: &[String]) -> Option<(Launch, &[String])> {
    let mut launch = Launch::default();
    let (srun, mut rest) = words.split_first()?;
    if srun != "srun" {
        return Some((launch, words));
    }
    while let Some((word, more)) = rest.split_first() {
        let Some(option) = word.strip_prefix("--") else { break };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "ntasks-per-node" => launch.tasks_per_node = Some(value.parse().ok()?),
            "mpi" => launch.mpi = Some(value.to_owned()),
            "container-image" => {
                launch.container = Some(Container {
                    runtime: None,
                    image: value.to_owned(),
                    mounts: Vec::new(),
                    mount_home: false,
                    remap_root: false,
                    workdir: None,
                    env: Vec::new(),
                    name: None,
                });
            }
            "container-mounts" => {
                launch.container.as_mut()?.mounts = value.split(',').map(str::to_owned).collect();
            }
            "container-env" => {
                launch.container.as_mut()?.env = value.split(',').map(str::to_owned).collect();
            }
            "container-name" => launch.container.as_mut()?.name = Some(value.to_owned()),
            "container-mount-home" => launch.container.as_mut()?.mount_home = true,
            "container-remap-root" => launch.container.as_mut()?.remap_root = true,
            "container-workdir" => launch.container.as_mut()?.workdir = Some(value.to_owned()),
            "nodes"
            | "ntasks"
            | "nodelist"
            | "cpu-bind"
            | "overlap"
            | "mem"
            | "gres"
            | "gpus-per-node"
            | "no-container-mount-home"
            | "no-container-remap-root" => {}
            "distribution" if ["arbitrary", "block"].contains(&value) => {}
            _ => launch.further.push(word.clone()),
        }
        rest = more;
    }
    Some((launch, rest))
}
