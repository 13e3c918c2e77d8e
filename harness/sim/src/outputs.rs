//! The files that a job leaves in its folder, each made when it is asked for: a job is a small record until then.
//! What stands in a healthy file is made in `nccl`, `flows` and `counters`; here it is lost, cut or mangled.

use super::active_faults::{ActiveFaults, Ending};
use super::calendar::slurm_time;
use super::cluster::Cluster;
use super::commands::exits;
use super::flows::MARK_S;
use super::mangled::mangle;
use super::mpi_start::ABORT;
use super::over::{How, Over};
use super::spread::Spread;
use super::training;
use super::work::{Table, Work, noise_of};
use super::{counters, flight_recorder, flows, gpu_state, inspector, nccl, nccl_debug, nsys, ssh_errors};
use job::script::files;
use logs::efa_counters;

/// The file of that name, if the job left one.
pub(crate) fn file(cluster: &Cluster, epoch_s: f64, over: &Over, name: &str) -> Option<Vec<u8>> {
    let execution = &over.execution;
    let active_faults = &execution.active_faults;
    let started = over.run_s >= execution.work_from_s;
    let (name, own) = own_file(over, name)?;
    let text = match name {
        files::STDOUT if started && own.is_some() => stdout_of(cluster, over, own?)?,
        files::STDERR if started && own.is_some() => ssh_errors::by_process(over, own?),
        files::LOG => ssh_errors::by_shell(over, own?),
        files::STDOUT if started => stdout(cluster, over)?,
        files::STDERR if started => stderr(epoch_s, over),
        files::BATCH_OUT => String::new(),
        files::ENVIRONMENT => {
            let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
            cluster.world.shell_env.iter().map(line).collect()
        }
        files::EXIT_CODE => match over.how {
            How::Exit(code) => format!("{code}\n"),
            _ => return None,
        },
        files::BATCH_ERR => cancelled(epoch_s, over, &format!("JOB {}", over.id)),
        files::SAMPLER_LOG if execution.sampler.is_some() || !execution.sampler_log.is_empty() => {
            execution.sampler_log.clone()
        }
        files::SAMPLER_LOG => return None,
        files::INSPECTOR => return inspector::file(cluster, epoch_s, over).map(String::into_bytes),
        _ => {
            let of_node = files::node_of_counters(name);
            if let Some(node) = of_node.and_then(|of| execution.nodes.iter().position(|node| node == of)) {
                return capture(cluster, epoch_s, over, node);
            }
            if let Some(node) = execution.nodes.iter().position(|node| files::gpu_state(node) == name) {
                let text = gpu_state::file(cluster, over, node)?.into_bytes();
                return Some(if active_faults.garbled(node) { mangle(text) } else { text });
            }
            if let Some((node, bytes)) = nsys::file(cluster, epoch_s, over, name) {
                let garbled = name.ends_with(".txt") && active_faults.garbled(node);
                return Some(if garbled { mangle(bytes) } else { bytes });
            }
            if let Some(dump) = flight_recorder::given_up(cluster, epoch_s, over, name) {
                return Some(dump);
            }
            return part(cluster, over, name, started);
        }
    };
    let garbled = own.map_or(active_faults.any_garbled(), |node| active_faults.garbled(node));
    let mangled = name == files::STDOUT && garbled;
    Some(if mangled { mangle(text.into_bytes()) } else { text.into_bytes() })
}

fn capture(cluster: &Cluster, epoch_s: f64, over: &Over, node: usize) -> Option<Vec<u8>> {
    let active_faults = &over.execution.active_faults;
    if active_faults.output_missing(node) {
        return None;
    }
    let mut bytes = efa_counters::render(&counters::capture(cluster, epoch_s, over, node)?).into_bytes();
    let is = |how| active_faults.fails_by(how) == Some(node);
    if is(Ending::NodeFails) && over.how == How::NodeFail {
        bytes.truncate(bytes.len().saturating_sub(17));
    } else if is(Ending::DiskFull) {
        bytes.truncate(bytes.len() * 2 / 3);
    }
    Some(if active_faults.garbled(node) { mangle(bytes) } else { bytes })
}

/// How many rows a table has by the time that it stops.
fn rows_done(over: &Over, table: &Table) -> usize {
    let stop_s = over.execution.work_to_s.min(over.run_s) - over.execution.work_from_s;
    // The last row is done when the work is: sums of floating point must not leave it out.
    table.ends().iter().filter(|end| **end <= stop_s + 1e-6).count()
}

/// Whether what was printed last broke off in its middle.
pub fn breaks_off(active_faults: &ActiveFaults) -> bool {
    matches!(active_faults.ending, Some((Ending::RankDies | Ending::DiskFull | Ending::NodeFails, _)))
}

fn table_text(cluster: &Cluster, over: &Over, table: &Table, breaks: bool) -> String {
    let execution = &over.execution;
    let mut noise = noise_of(
        cluster,
        &execution.case,
        &execution.job,
        &format!("pid{:?}{:?}", table.world.nodes, table.world.gpu),
    );
    let rows = rows_done(over, table);
    let text = match breaks {
        true => nccl::broken_off(cluster, table, &execution.nodes, rows, &mut noise),
        false => nccl::text(cluster, table, &execution.nodes, rows, &mut noise),
    };
    let stop_s = execution.work_to_s.min(over.run_s) - execution.work_from_s;
    nccl_debug::added(cluster, execution, table, (stop_s, true), text)
}

fn stdout(cluster: &Cluster, over: &Over) -> Option<String> {
    let active_faults = &over.execution.active_faults;
    match &over.execution.work {
        _ if active_faults.any_output_missing() => None,
        Work::Tables(tables) => {
            let text = tables.iter().map(|table| table_text(cluster, over, table, breaks_off(active_faults)));
            Some(text.collect::<String>() + &nsys::chatter(cluster, over))
        }
        Work::Command { stdout, .. } if over.desync().is_some() => {
            Some(until_stop(over, &nccl_debug::between(cluster, &over.execution, None, &stdout.concat())))
        }
        Work::Command { .. } if active_faults.ending.is_some() => Some(String::new()),
        Work::Command { stdout, .. } => {
            Some(nccl_debug::between(cluster, &over.execution, None, &stdout.concat()))
        }
        // These write files of their own.
        Work::Gpus(_) | Work::Flows(..) => Some(String::new()),
    }
}

fn is_by_torch(tables: &[Table]) -> bool {
    tables.iter().any(|table| table.options.by_torch)
}

/// The file's name without the node, and the node, where each node of the job has its own of that name; nothing where
/// such a job has no such file.
fn own_file<'a>(over: &Over, name: &'a str) -> Option<(&'a str, Option<usize>)> {
    let spread = over.execution.spread;
    let shared = [files::STDOUT, files::STDERR, files::BATCH_OUT, files::BATCH_ERR, files::SAMPLER_LOG];
    let is_of_batch = shared[2..].contains(&name);
    match spread {
        Spread::Srun => return Some((name, None)),
        Spread::Mpirun if is_of_batch => return None,
        Spread::Each if shared.contains(&name) => return None,
        Spread::Mpirun | Spread::Each => {}
    }
    let own: &[&'static str] = match spread {
        Spread::Each => &[files::STDOUT, files::STDERR, files::LOG],
        _ => &[files::LOG],
    };
    let node = |base: &str| over.execution.nodes.iter().position(|node| files::node_file(base, node) == name);
    let found = own.iter().find_map(|base| Some((*base, Some(node(base)?))));
    Some(found.unwrap_or((name, None)))
}

/// What the process of one node printed.
fn stdout_of(cluster: &Cluster, over: &Over, node: usize) -> Option<String> {
    let active_faults = &over.execution.active_faults;
    match &over.execution.work {
        _ if active_faults.output_missing(node) => None,
        Work::Command { stdout, .. } if active_faults.ending.is_none() => {
            let printed = stdout.get(node).map_or("", String::as_str);
            Some(nccl_debug::between(cluster, &over.execution, Some(node), printed))
        }
        // Rank 0 prints.
        Work::Tables(tables) if node > 0 && is_by_torch(tables) => Some(String::new()),
        Work::Tables(_) => stdout(cluster, over),
        Work::Command { stdout, .. } if over.desync().is_some() => {
            let printed = stdout.get(node).map_or("", String::as_str);
            Some(until_stop(over, &nccl_debug::between(cluster, &over.execution, Some(node), printed)))
        }
        Work::Command { .. } | Work::Gpus(_) | Work::Flows(..) => Some(String::new()),
    }
}

/// The lines that a program had printed by the moment at which it came to a halt.
fn until_stop(over: &Over, text: &str) -> String {
    let Work::Command { seconds, .. } = &over.execution.work else { return String::new() };
    let part = (over.execution.work_to_s - over.execution.work_from_s) / seconds.max(1e-9);
    let lines = text.lines().count();
    let done = (part * lines as f64) as usize;
    text.split_inclusive('\n').take(done).collect()
}

/// The output of one GPU or of one flow.
fn part(cluster: &Cluster, over: &Over, name: &str, started: bool) -> Option<Vec<u8>> {
    if !started {
        return None;
    }
    if let Some(gpus) = over.execution.aborted_gpus {
        let of = |file: fn(u32, &str) -> String| {
            over.execution.nodes.iter().any(|node| (0..gpus).any(|gpu| file(gpu, node) == name))
        };
        let text = of(files::gpu_err).then_some(ABORT).or_else(|| of(files::gpu_out).then_some(""))?;
        return Some(text.as_bytes().to_vec());
    }
    if let Some(broken) = over.execution.broken_start {
        let own = over.execution.nodes.iter().find_map(|node| broken.gpu_program_output(name, node));
        return own.map(String::into_bytes);
    }
    let active_faults = &over.execution.active_faults;
    let (text, garbled) = match &over.execution.work {
        Work::Gpus(tables) => {
            let (node, table, is_out) = tables.iter().enumerate().find_map(|(node, tables)| {
                let host = over.execution.nodes.get(node)?;
                tables.iter().find_map(|table| {
                    let gpu = table.world.gpu?;
                    let is_out = files::gpu_out(gpu, host) == name;
                    (is_out || files::gpu_err(gpu, host) == name).then_some((node, table, is_out))
                })
            })?;
            if !is_out {
                return Some(Vec::new());
            }
            if active_faults.output_missing(node) {
                return None;
            }
            // What ends one node's processes leaves the other nodes' whole.
            let ails = active_faults.ending.is_some_and(|(_, at)| at == node);
            (table_text(cluster, over, table, ails && breaks_off(active_faults)), active_faults.garbled(node))
        }
        Work::Flows(timelines, wanted) => {
            let device = wanted.devices.iter().position(|device| files::flow_out(device) == name)?;
            if active_faults.any_output_missing() {
                return None;
            }
            if let Some(lost) = active_faults.wrong_ranks() {
                let is_client = over.execution.nodes.get(lost) == Some(&wanted.client);
                return (!is_client).then(|| flows::not_started(wanted).into_bytes());
            }
            if let Some((line, _)) = flows::refused(cluster, wanted) {
                return Some(line.into_bytes());
            }
            let name = wanted.devices.get(device)?;
            let flow = timelines.get(device)?;
            let stop_s = over.execution.work_to_s.min(over.run_s) - over.execution.work_from_s;
            let done = MARK_S + flow.from_s + flow.seconds <= stop_s + 1e-6;
            let text = if done { flows::text(cluster, wanted, flow, name) } else { String::new() };
            (text, active_faults.any_garbled())
        }
        Work::Tables(_) | Work::Command { .. } => return None,
    };
    Some(if garbled { mangle(text.into_bytes()) } else { text.into_bytes() })
}

/// What srun prints of a step that it cannot start: at once, after each minute, and at the job's end.
fn step_waits(over: &Over) -> String {
    let job = format!("srun: Job {} step creation", over.id);
    let busy = "retrying (Requested nodes are busy)";
    let waited_s = (over.run_s - over.execution.work_from_s).max(0.0);
    let again = format!("{job} still disabled, {busy}\n").repeat((waited_s / 60.0) as usize);
    let given_up = match over.interrupted_s {
        Some(_) => format!("srun: Cancelled pending step for job {}\n", over.id),
        None => String::new(),
    };
    format!("{job} temporarily disabled, {busy}\n{again}{given_up}")
}

fn stderr(epoch_s: f64, over: &Over) -> String {
    let execution = &over.execution;
    if execution.spread == Spread::Mpirun {
        return ssh_errors::by_mpirun(over);
    }
    let name = |node: usize| execution.nodes.get(node).map_or("", String::as_str);
    let step = format!("STEP {}.0", over.id);
    let ended_itself = matches!(over.how, How::Exit(_));
    match execution.active_faults.ending {
        _ if execution.step_waits => step_waits(over),
        Some((Ending::RankDies, node)) if ended_itself => rank_dies(over, node),
        Some((Ending::DiskFull, node)) if ended_itself => {
            let node = name(node);
            let task = tasks(over).0
                * execution.nodes.iter().position(|name| name == node).unwrap_or_default() as u32;
            format!(
                "slurmstepd: error: [{node}] write error: No space left on device\n\
                 srun: error: {node}: task {task}: Exited with exit code 1\n"
            )
        }
        Some((Ending::Desync, _)) if ended_itself => {
            let waited = over.desync().map(|(training, rank)| training::waited(training, rank, None));
            waited.unwrap_or_default() + &exits(&execution.nodes, 1, 1)
        }
        Some((Ending::NodeFails, node)) if over.how == How::NodeFail => format!(
            "srun: error: Node failure on {}\n\
             srun: Job step aborted: Waiting up to 62 seconds for job step to finish.\n{}",
            name(node),
            cancelled(epoch_s, over, &step)
        ),
        _ if !ended_itself => {
            let aborted = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n";
            format!("{aborted}{}", cancelled(epoch_s, over, &step))
        }
        _ => match &execution.work {
            Work::Command { stderr, .. } => stderr.clone(),
            // All ranks agree on the count of wrong elements, and all end alike.
            Work::Tables(tables) if tables.iter().any(Table::has_wrong) => {
                exits(&execution.nodes, tasks(over).0, 1)
            }
            Work::Gpus(tables) => {
                let wrong =
                    tables.iter().enumerate().filter(|(_, tables)| tables.iter().any(Table::has_wrong));
                wrong
                    .map(|(at, _)| format!("srun: error: {}: task {at}: Exited with exit code 1\n", name(at)))
                    .collect()
            }
            _ => String::new(),
        },
    }
}

/// srun reports the first task that died, then those that it ended for it.
fn rank_dies(over: &Over, node: usize) -> String {
    let (per_node, is_script) = tasks(over);
    let nodes = &over.execution.nodes;
    let first = node as u32 * per_node;
    let died = first + per_node / 2;
    let host = nodes.get(node).map_or("", String::as_str);
    if is_script {
        let shell = "gpus.sh: line 14: Killed";
        return format!("{shell}\nsrun: error: {host}: task {first}: Exited with exit code 137\n");
    }
    let mut text =
        format!("srun: error: {host}: task {died}: Killed\nsrun: Terminating StepId={}.0\n", over.id);
    for (at, other) in nodes.iter().enumerate().filter(|(at, _)| *at != node) {
        let (low, high) = (at as u32 * per_node, (at as u32 + 1) * per_node - 1);
        let which = if low == high { format!("task {low}") } else { format!("tasks {low}-{high}") };
        text.push_str(&format!("srun: error: {other}: {which}: Terminated\n"));
    }
    text
}

/// Tasks on each node, and whether each is a script that runs the programs.
fn tasks(over: &Over) -> (u32, bool) {
    match &over.execution.work {
        Work::Tables(tables) if is_by_torch(tables) => (1, false),
        Work::Tables(tables) => {
            let ranks: u32 = tables.iter().map(|table| table.ranks / table.options.gpus.max(1)).sum();
            ((ranks / over.execution.nodes.len().max(1) as u32).max(1), false)
        }
        Work::Gpus(_) => (1, true),
        Work::Flows(..) | Work::Command { .. } => (1, false),
    }
}

/// What the step's daemon says where somebody else ended the job.
fn cancelled(epoch_s: f64, over: &Over, what: &str) -> String {
    let why = match over.how {
        How::Exit(_) | How::Signal(_) => return String::new(),
        How::Cancelled => "",
        How::TimeLimit => " DUE TO TIME LIMIT",
        How::Preempted => " DUE TO PREEMPTION",
        How::NodeFail => " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    };
    let at = slurm_time(epoch_s + over.start_s + over.run_s);
    let host = over.execution.nodes.first().map_or("", String::as_str);
    format!("slurmstepd: error: *** {what} ON {host} CANCELLED AT {at}{why} ***\n")
}
