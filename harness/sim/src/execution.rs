//! What becomes of a job that is not ended from outside: its workload, when that begins and ends, and the job's end by
//! itself. Who ends jobs from outside, and when, is Slurm's business (`slurm`).

use super::active_faults::{ActiveFaults, Ending};
use super::broken_start::BrokenStart;
use super::cluster::Cluster;
use super::commands::{CommandCall, exits};
use super::environment;
use super::flight_wanted::Recorder;
use super::flows::MARK_S;
use super::gpu_state_wanted::{self, GpuStateWanted};
use super::inspector_wanted::Plugin;
use super::model::Group;
use super::mpi_start;
use super::nccl_wanted::Wanted;
use super::noise::Noise;
use super::options::Options;
use super::spread::Spread;
use super::steps::Steps;
use super::torch_collective;
use super::training::{self, Training, WATCHDOG_S};
use super::work::{self, Table, Work, World, noise_of};
use super::{commands, flows};
use job::script::{Gpus, Profile, Run, SAMPLER_ENDED, Sampler, Script, Step};
use metric::op::Op;
use std::collections::BTreeMap;

/// One job as it goes if nothing from outside ends it.
pub struct Execution {
    /// Name of its case.
    pub case: String,
    /// The job's name within its case.
    pub job: String,
    /// In the order of the job's script.
    pub nodes: Vec<String>,
    /// What starts the workload on the nodes.
    pub spread: Spread,
    /// `None` where the script starts none, or srun refuses to start it.
    pub sampler: Option<Sampler>,
    /// What the sampler's own step printed.
    pub sampler_log: String,
    /// Processes of each node that MPI_Init aborted, one for each GPU.
    pub aborted_gpus: Option<u32>,
    /// What crosses the fabric is read by the receiver, not written by the sender.
    pub reads: bool,
    /// What NCCL is to write of itself.
    pub debug: Option<Wanted>,
    /// What ranks of a training record of their collectives.
    pub recorder: Option<Recorder>,
    /// Seconds between readings of the state of GPUs, where it is read.
    pub(crate) gpu_state: Option<GpuStateWanted>,
    /// NCCL's Inspector, where its files are put into one.
    pub inspector: Option<Plugin>,
    /// What the workload measures or prints.
    pub work: Work,
    /// What the command is, where it is the simulated training program.
    pub training: Option<Training>,
    /// The profiler around the ranks.
    pub profile: Option<Profile>,
    /// Faults of its nodes.
    pub active_faults: ActiveFaults,
    /// Seconds from the job's start to the workload's first byte.
    pub work_from_s: f64,
    /// To its last byte, or to the moment that its fault comes about.
    pub work_to_s: f64,
    /// Nothing where it goes on until somebody ends it.
    pub ends_s: Option<f64>,
    /// How it ends at `ends_s`.
    pub end: Own,
    /// Programs that this world does not have.
    pub unknown_program: Option<String>,
    /// Why no rank came to its work, on any node.
    pub broken_start: Option<BrokenStart>,
    /// srun waits to start the workload until the job ends: the sampler's step holds the nodes.
    pub step_waits: bool,
}

/// How a job ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// With this exit code.
    Exit(i32),
    /// One of its nodes fails.
    NodeFail,
    /// Slurm takes its nodes away.
    Preempted,
}

/// From the job's start to the start of the sampler.
pub(crate) const SAMPLER_FROM_S: f64 = 1.2;
/// From the workload's end until the batch script stops the sampler.
pub(crate) const STOP_AFTER_S: f64 = 1.0;
/// From there to the end of the job.
const CLOSING_S: f64 = 1.5;

/// Works out from a job's script what it does, and when and how it ends.
pub fn execution(cluster: &Cluster, script: &Script, case: &str, job: &str) -> Execution {
    let nodes = script.nodes.clone();
    let left = environment::left_by_software(cluster, script);
    let active_faults =
        ActiveFaults::new(cluster, case, job, &nodes).with_all_slow(cluster, nodes.len(), left);
    let mut noise = noise_of(cluster, case, job, "work");
    let mut sampler = None;
    let (mut sampler_log, mut waited_s) = (String::new(), 0.0);
    let mut aborted_gpus = None;
    let mut profile = None;
    let mut unknown_program = None;
    let spread = Spread::from_script(script);
    let steps = Steps::read(script);
    let mut trained = None;
    let mut work = Work::Command { stdout: Vec::new(), stderr: String::new(), code: 0, seconds: 0.0 };
    let mut launch_s = 2.0;
    let mut exported = BTreeMap::new();
    let mut hangs = false;
    let mut gathers_inspector = false;
    let mut gpu_state = None;
    for step in &script.steps {
        match step {
            Step::Environment { variables } => exported = variables.clone(),
            Step::CountersBegin(wanted) => match steps.sampler_refusal(&cluster.world) {
                Some(refusal) => {
                    sampler_log = refusal.to_owned();
                    // A script that does not watch its sampler waits for each node in turn.
                    waited_s = if wanted.watched { 0.2 } else { 30.0 * nodes.len() as f64 };
                    if wanted.watched {
                        sampler_log.push_str(&format!("{SAMPLER_ENDED} 1\n"));
                    }
                }
                None => sampler = Some(wanted.clone()),
            },
            Step::Inspector => gathers_inspector = true,
            Step::CountersEnd | Step::Secrets { .. } | Step::Turns(_) => {}
            Step::Run(run) => {
                profile = run.profile.clone();
                gpu_state = gpu_state_wanted::wanted(&run.argv);
                exported = environment::in_container(cluster, exported, run.container.as_ref());
                let mask = exported.get("NCCL_TESTS_SPLIT_MASK");
                let split_mask = mask.and_then(|mask| hexadecimal(mask));
                hangs = is_nccl_tests(&run.argv) && environment::mpi_hangs(cluster, &exported, &nodes, run);
                let no_mpirun = environment::mpirun_missing(cluster, spread, run);
                let no_plugin = mpi_start::plugin_missing(cluster, &script.start, run);
                match training::read(cluster, &active_faults, nodes.len() as u32, run) {
                    _ if no_plugin.is_some() => {
                        let stderr = no_plugin.unwrap_or_default();
                        hangs = false;
                        work = Work::Command { stdout: Vec::new(), stderr, code: 1, seconds: 0.1 };
                    }
                    Some(Ok(read)) => {
                        let draws = |what| noise_of(cluster, case, job, what);
                        work = read.work(&nodes, draws(training::DRAWS), draws(training::LOSS));
                        trained = Some(read);
                    }
                    Some(Err(why)) => work = training::refused(&nodes, spread, run, &why),
                    None if no_mpirun.is_some() => {
                        let stderr = no_mpirun.unwrap_or_default();
                        hangs = false;
                        work = Work::Command { stdout: Vec::new(), stderr, code: 127, seconds: 0.1 };
                    }
                    None if hangs => {
                        work = Work::Command {
                            stdout: Vec::new(),
                            stderr: String::new(),
                            code: 0,
                            seconds: 0.5,
                        };
                    }
                    None if is_nccl_tests(&run.argv)
                        && mpi_start::ranks_abort(cluster, &script.start, run) =>
                    {
                        let stderr = mpi_start::ABORT.to_owned() + &exits(&nodes, run.tasks_per_node, 1);
                        work = Work::Command { stdout: Vec::new(), stderr, code: 1, seconds: 0.5 };
                    }
                    None => {
                        let how = (split_mask, environment::through_nics(&exported));
                        (work, unknown_program) =
                            ranks(cluster, &active_faults, &nodes, spread, run, how, &mut noise);
                    }
                }
                if matches!(work, Work::Tables(_)) || trained.is_some() {
                    launch_s = 12.0 + 0.004 * nodes.len() as f64;
                }
            }
            Step::Gpus(gpus) if mpi_start::each_gpu_aborts(cluster, &script.start) => {
                aborted_gpus = Some(gpus.gpus);
                let stderr = exits(&nodes, 1, 1);
                work = Work::Command { stdout: Vec::new(), stderr, code: 1, seconds: 0.5 };
            }
            Step::Gpus(gpus) => {
                exported = environment::in_container(cluster, exported, gpus.container.as_ref());
                (work, unknown_program) = each_gpu(cluster, &active_faults, &nodes, gpus, case, job);
                launch_s = 8.0;
            }
            Step::Flows(flows) => {
                work = Work::Flows(
                    work::flows(cluster, &active_faults, flows, &nodes, &mut noise),
                    flows.clone(),
                );
                launch_s = 6.0;
            }
        }
    }
    let debug = Wanted::from_variables(&exported);
    let recorder = Recorder::from_variables(&exported);
    let inspector = gathers_inspector.then(|| Plugin::from_variables(&exported));
    let is_recorded = inspector.as_ref().is_some_and(|plugin| plugin.interval_s.is_some());
    if let (true, None, Work::Tables(tables)) = (is_recorded, &profile, &mut work) {
        tables.iter_mut().for_each(|table| table.slow_down(active_faults.left_by_profiler()));
    }
    let sendrecv = exported.get("OFI_NCCL_PROTOCOL").is_some_and(|protocol| protocol == "SENDRECV");
    let refusal = steps.workload_refusal(&cluster.world);
    let mut active_faults = active_faults;
    if hangs && refusal.is_none() {
        active_faults.ending.get_or_insert((Ending::Hang, 0));
    }
    let broken_start = BrokenStart::find(cluster, &work, left).filter(|_| refusal.is_none());
    if let Some(broken) = broken_start {
        (work, trained) = (broken.work(&nodes, spread), None);
    }
    if let Some(refusal) = refusal {
        work = Work::Command { stdout: Vec::new(), stderr: refusal.to_owned(), code: 1, seconds: 0.1 };
        (trained, unknown_program, aborted_gpus) = (None, None, None);
    }
    let step_waits = refusal.is_none() && sampler.is_some() && steps.workload_waits(&cluster.world);
    if step_waits {
        work = Work::Command { stdout: Vec::new(), stderr: String::new(), code: 0, seconds: 0.5 };
        trained = None;
        active_faults.ending.get_or_insert((Ending::Hang, 0));
    }
    let work_from_s = SAMPLER_FROM_S + waited_s + launch_s * noise.between(0.95, 1.05);
    let seconds = seconds(&work);
    let mut execution = Execution {
        case: case.to_owned(),
        job: job.to_owned(),
        nodes,
        spread,
        sampler,
        sampler_log,
        aborted_gpus,
        reads: cluster.reads || sendrecv,
        debug,
        recorder,
        gpu_state,
        inspector,
        work,
        training: trained,
        profile,
        active_faults,
        work_from_s,
        work_to_s: work_from_s + seconds,
        ends_s: None,
        end: Own::Exit(0),
        unknown_program,
        broken_start,
        step_waits,
    };
    execution.decide_end(cluster, seconds, &mut noise);
    execution
}

impl Execution {
    fn decide_end(&mut self, cluster: &Cluster, seconds: f64, noise: &mut Noise) {
        let fails_at = self.work_from_s + seconds * noise.between(0.35, 0.65);
        let (at, end) = match self.active_faults.ending {
            None | Some((Ending::QueueStuck, _)) => {
                (self.work_to_s, Own::Exit(own_code(cluster, &self.work)))
            }
            Some((Ending::NodeFails, _)) => (fails_at, Own::NodeFail),
            Some((Ending::Preempted, _)) => (fails_at, Own::Preempted),
            Some((Ending::Hang, _)) => (fails_at, Own::Exit(0)),
            Some((Ending::Desync, _)) => (fails_at, Own::Exit(1)),
            Some((Ending::RankDies, _)) => (fails_at, Own::Exit(137)),
            Some((Ending::DiskFull, _)) => (fails_at, Own::Exit(1)),
        };
        (self.work_to_s, self.end) = (at, end);
        self.ends_s = match self.active_faults.ending {
            Some((Ending::Hang, _)) => None,
            // Ranks of a training give up in the end; others wait for ever.
            Some((Ending::Desync, _)) => {
                self.training.as_ref().map(|_| at + WATCHDOG_S + STOP_AFTER_S + CLOSING_S)
            }
            // Slurm ends these itself, and waits for no script; a lost node is noticed late.
            Some((Ending::NodeFails, _)) => Some(at + 8.0),
            Some((Ending::Preempted, _)) => Some(at),
            _ => Some(at + STOP_AFTER_S + CLOSING_S),
        };
    }

    /// The moment at which the batch script stops the sampler; nothing where it does not come to that.
    pub(crate) fn stop_s(&self) -> Option<f64> {
        match (self.end, self.ends_s) {
            (Own::Exit(_), Some(ends_s)) => match self.active_faults.ending {
                Some((Ending::Desync, _)) => Some(ends_s - CLOSING_S),
                _ => Some(self.work_to_s + STOP_AFTER_S),
            },
            _ => None,
        }
    }
}

fn own_code(cluster: &Cluster, work: &Work) -> i32 {
    match work {
        Work::Tables(tables) => i32::from(tables.iter().any(Table::has_wrong)),
        Work::Gpus(nodes) => i32::from(nodes.iter().flatten().any(Table::has_wrong)),
        Work::Flows(_, wanted) => flows::refused(cluster, wanted).map_or(0, |(_, code)| code),
        Work::Command { code, .. } => *code,
    }
}

fn seconds(work: &Work) -> f64 {
    match work {
        Work::Tables(tables) => tables.iter().map(Table::seconds).fold(0.0, f64::max),
        Work::Gpus(nodes) => nodes.iter().flatten().map(Table::seconds).fold(0.0, f64::max),
        Work::Flows(flows, _) => {
            MARK_S + flows.iter().map(|flow| flow.from_s + flow.seconds).fold(0.0, f64::max)
        }
        Work::Command { seconds, .. } => *seconds,
    }
}

fn ranks(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    nodes: &[String],
    spread: Spread,
    run: &Run,
    (split_mask, through_nics): (Option<u64>, bool),
    noise: &mut Noise,
) -> (Work, Option<String>) {
    let by_torch = torch_collective::read(run, cluster.gpus, nodes.len() as u32);
    let (options, per_node, is_wired) = match by_torch {
        Some(Ok(call)) => (call.options, run.tasks_per_node * call.processes, true),
        Some(Err(why)) => return (training::refused(nodes, spread, run, &why), None),
        None => {
            let Some(op) = run.argv.first().and_then(|program| op_of(program)) else {
                return commands::run(&CommandCall { cluster, active_faults, nodes, spread, run });
            };
            match Options::read(op, run.argv.get(1..).unwrap_or_default()) {
                Ok(options) => {
                    let per_node = run.tasks_per_node * options.gpus;
                    (options, per_node, run.mpi.is_some())
                }
                Err(why) => return (refused(op, &why), None),
            }
        }
    };
    let op = options.op;
    if per_node > cluster.gpus {
        let why = format!("{} GPUs are there, {per_node} were asked for", cluster.gpus);
        return (refused(op, &why), None);
    }
    let all = 0..nodes.len();
    let mut world = |of_job: std::ops::Range<usize>, first: u32, group: Group| {
        let world = World { nodes: of_job, gpu: None, group, first, per_node, through_nics };
        let mut table = work::table(cluster, active_faults, &options, world, nodes, noise);
        if run.profile.is_some() {
            table.slow_down(active_faults.left_by_profiler());
        }
        table
    };
    let single = |ranks: u32| Group { nodes: 1, ranks, side_by_side: 1 };
    // Ranks that are not wired together, or that look for each other in vain, make a world each, or one a node.
    if !is_wired && run.tasks_per_node * nodes.len() as u32 > 1 {
        let each = all.flat_map(|node| (0..run.tasks_per_node).map(move |_| node)).zip(0u32..);
        let one = |(node, task)| world(node..node + 1, task * options.gpus, single(options.gpus));
        return (Work::Tables(each.map(one).collect()), None);
    }
    if options.by_torch && active_faults.wrong_ranks().is_some() {
        let why = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n";
        return (training::refused(nodes, spread, run, why), None);
    }
    if active_faults.wrong_ranks().is_some() {
        let half = (per_node / 2).max(1);
        let tables = match nodes.len() {
            1 => (0..2).map(|which| world(0..1, which * half, single(half))).collect(),
            _ => all.map(|node| world(node..node + 1, node as u32 * per_node, single(per_node))).collect(),
        };
        return (Work::Tables(tables), None);
    }
    let total = per_node * nodes.len() as u32;
    let groups = split_mask.map_or(1, |mask| colours(total, mask));
    // Groups within nodes: nothing leaves a node.
    let inside = groups > 1 && !crosses(per_node, split_mask);
    let crossed = if inside { 1 } else { nodes.len() as u32 };
    let group = Group { nodes: crossed, ranks: total / groups.max(1), side_by_side: groups };
    (Work::Tables(vec![world(all, 0, group)]), None)
}

/// How many groups a mask makes of so many ranks: those whose masked bits are equal are together.
fn colours(ranks: u32, mask: u64) -> u32 {
    let mut seen: Vec<u64> = (0..u64::from(ranks)).map(|rank| rank & mask).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() as u32
}

/// Whether ranks of different nodes can share a group.
fn crosses(per_node: u32, mask: Option<u64>) -> bool {
    let mask = mask.unwrap_or_default();
    (0..u64::from(per_node)).any(|rank| rank & mask == (rank + u64::from(per_node)) & mask)
}

fn each_gpu(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    nodes: &[String],
    gpus: &Gpus,
    case: &str,
    job: &str,
) -> (Work, Option<String>) {
    let Some(op) = gpus.argv.first().and_then(|program| op_of(program)) else {
        let program = gpus.argv.first().cloned().unwrap_or_default();
        return (refused_program(&program), Some(program));
    };
    let options = match Options::read(op, gpus.argv.get(1..).unwrap_or_default()) {
        Ok(options) => options,
        Err(why) => return (refused(op, &why), None),
    };
    let one = |node: usize, gpu: u32| {
        let what = format!("gpu{gpu}.{}", nodes.get(node).map_or("", String::as_str));
        let mut noise = noise_of(cluster, case, job, &what);
        // A world of two where one was asked for is what a stray variable of a launcher makes.
        let ranks = options.gpus * if active_faults.has_wrong_ranks(node) { 2 } else { 1 };
        let group = Group { nodes: 1, ranks, side_by_side: 1 };
        let (first, per_node) = (node as u32 * cluster.gpus + gpu, cluster.gpus);
        let nodes_of = node..node + 1;
        let world = World { nodes: nodes_of, gpu: Some(gpu), group, first, per_node, through_nics: false };
        work::table(cluster, active_faults, &options, world, nodes, &mut noise)
    };
    let tables = (0..nodes.len()).map(|node| (0..gpus.gpus).map(|gpu| one(node, gpu)).collect()).collect();
    (Work::Gpus(tables), None)
}

fn is_nccl_tests(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| op_of(program).is_some())
}

fn op_of(program: &str) -> Option<Op> {
    Op::from_name(program.rsplit('/').next()?.strip_suffix("_perf")?)
}

fn refused(op: Op, why: &str) -> Work {
    let stderr = format!("{}: {why}\nUSAGE: {} \n", op.program(), op.program());
    Work::Command { stdout: Vec::new(), stderr, code: 1, seconds: 0.5 }
}

fn refused_program(program: &str) -> Work {
    let stderr = format!("slurmstepd: error: execve(): {program}: No such file or directory\n");
    Work::Command { stdout: Vec::new(), stderr, code: 2, seconds: 0.2 }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
}
