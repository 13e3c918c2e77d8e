//! The programs of nccl-tests: every rank runs, the first of a world prints its table, the first of a host moves the
//! host's counters.

use super::job_run::{Counters, JobRun};
use super::nccl_json;
use super::place::ProcessPlace;
use super::rank::{self, Part};
use super::state::State;
use super::world;
use job::script::{Gpus, Run, Step};
use metric::op::Op;
use sim::mpi_start;
use sim::nccl;
use sim::nccl_debug;
use sim::outputs::breaks_off;
use sim::work::{Table, Work, noise_of};

const SPLIT: &str = "NCCL_TESTS_SPLIT_MASK";

pub(crate) async fn answer(state: &State, op: Op, arguments: &[String]) -> Result<i32, String> {
    let place = ProcessPlace::from_environment()?;
    if state.cluster.world.openmpi == 4 && aborts(&place) {
        eprint!("{}", mpi_start::ABORT);
        return Ok(1);
    }
    let of_gpu = own_gpu(&place);
    let met = match place.wired && place.tasks > 1 {
        true => world::meet(state, &place).await?,
        false => world::alone(&place),
    };
    let nodes = place.nodes.clone().unwrap_or_else(|| world::nodes(&met.hosts));
    let (json, others) = nccl_json::asked(arguments)?;
    let argv = std::iter::once(op.program()).chain(others).collect();
    let steps = match of_gpu {
        Some(_) => {
            let gpus = Gpus { argv, gpus: state.cluster.gpus, container: None };
            vec![environment(), Step::Gpus(gpus)]
        }
        None => ranks(&place, nodes.len(), argv),
    };
    let life = JobRun::new(state, (&place.case, &place.job), nodes, steps.clone(), met.begin_ns);
    let execution = life.execution();
    let node = execution.nodes.iter().position(|node| *node == place.node);
    let node = node.ok_or_else(|| {
        format!("host {} is not one of the job's hosts: {}", place.node, execution.nodes.join(","))
    })?;
    let found = match (&execution.work, of_gpu) {
        (Work::Command { stderr, code, .. }, _) => {
            eprint!("{stderr}");
            return Ok(*code);
        }
        (Work::Gpus(nodes), Some(gpu)) => nodes.get(node).and_then(|tables| tables.get(gpu as usize)),
        (Work::Tables(tables), _) => tables.iter().find(|table| prints(table, place.rank)),
        _ => None,
    };
    let text = |at_s: f64, broken: bool| {
        let so_far = at_s - execution.work_from_s;
        found.map_or_else(String::new, |table| life.mark() + &table_text(state, &life, table, so_far, broken))
    };
    let json = match (found, json) {
        (Some(table), Some(name)) => {
            let all = std::iter::once(op.program()).chain(arguments.iter().cloned()).collect();
            Some(nccl_json::Output::begin(
                &name,
                &nccl_json::Contents { state, life: &life, table, argv: all },
            )?)
        }
        _ => None,
    };
    let moves = of_gpu.is_none() && place.local == 0;
    let counters = if moves { life.counters(state, &place.node, None) } else { Counters::default() };
    let locals = place.tasks / execution.nodes.len().max(1) as u32;
    let part = Part {
        place: &place,
        steps,
        local: of_gpu.map_or((place.local, locals), |gpu| (gpu, state.cluster.gpus)),
        counters,
        text: &|at_s| text(at_s, false),
        last: text(execution.work_to_s, breaks_off(&execution.active_faults)),
    };
    let code = rank::live(&life, part).await?;
    if let (Some(json), None) = (json, execution.active_faults.ending) {
        json.end()?;
    }
    Ok(code)
}

/// As Open MPI 4 does where srun launched a process and gave it no PMI.
fn aborts(place: &ProcessPlace) -> bool {
    !place.wired && mpi_start::DIRECT_LAUNCH.iter().all(|name| std::env::var_os(name).is_some())
}

/// The one GPU that a process is assigned, where nothing connects it to others.
fn own_gpu(place: &ProcessPlace) -> Option<u32> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok()?;
    let alone = !place.wired && place.local == 0;
    visible.parse().ok().filter(|_| alone)
}

fn ranks(place: &ProcessPlace, nodes: usize, argv: Vec<String>) -> Vec<Step> {
    let mpi = place.wired.then(|| "wired".to_owned());
    let tasks_per_node = place.tasks / nodes.max(1) as u32;
    let run = Run { argv, tasks_per_node, mpi, container: None, profile: None };
    vec![environment(), Step::Run(run)]
}

/// What the programs heed of their environment.
fn environment() -> Step {
    let names = [
        SPLIT,
        "OFI_NCCL_PROTOCOL",
        "NCCL_DEBUG",
        "NCCL_DEBUG_FILE",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_P2P_DISABLE",
        "NCCL_SHM_DISABLE",
    ];
    let set = names.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
    Step::Environment { variables: set.collect() }
}

/// Whether a task is the one that prints a table: the first of the table's world.
fn prints(table: &Table, task: u32) -> bool {
    task * table.options.gpus.max(1) == table.world.first
}

/// As the simulated cluster would have it in the job's folder.
pub(crate) fn table_text(state: &State, life: &JobRun, table: &Table, so_far_s: f64, broken: bool) -> String {
    let execution = life.execution();
    let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
    let mut noise = noise_of(&state.cluster, &execution.case, &execution.job, &what);
    let rows = table.ends().iter().filter(|end| **end <= so_far_s + 1e-6).count();
    let text = match broken {
        true => nccl::broken_off(&state.cluster, table, &execution.nodes, rows, &mut noise),
        false => nccl::text(&state.cluster, table, &execution.nodes, rows, &mut noise),
    };
    nccl_debug::added(&state.cluster, execution, table, (so_far_s, broken), text)
}
