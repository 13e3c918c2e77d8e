//! torchrun with the programs of the simulated cluster, trainings and collectives: one launcher on each node, of which the
//! first prints; and `nemo` and `python3`, each of whose ranks is a task, of which the first prints.

use super::job_run::JobRun;
use super::nccl_tests::table_text;
use super::place::ProcessPlace;
use super::rank::{self, Part};
use super::state::State;
use super::world;
use job::script::{Run, Step};
use sim::outputs::breaks_off;
use sim::work::{Table, Work};

pub(crate) async fn answer(state: &State, program: &str, arguments: &[String]) -> Result<i32, String> {
    let place = ProcessPlace::from_environment()?;
    let met = if place.tasks > 1 { world::meet(state, &place).await? } else { world::alone(&place) };
    let nodes = place.nodes.clone().unwrap_or_else(|| world::nodes(&met.hosts));
    let argv = std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect();
    let tasks_per_node = (place.tasks / nodes.len().max(1) as u32).max(1);
    let steps = vec![Step::Run(Run { argv, tasks_per_node, mpi: None, container: None, profile: None })];
    let life = JobRun::new(state, (&place.case, &place.job), nodes, steps.clone(), met.begin_ns);
    let execution = life.execution();
    let (stdout, stderr, code, seconds) = match &execution.work {
        Work::Command { stdout, stderr, code, seconds } => (stdout, stderr, code, seconds),
        Work::Tables(tables) => return collective(state, &place, &life, tables, steps, tasks_per_node).await,
        _ => return Err("no training program".to_owned()),
    };
    if let Some(program) = &execution.unknown_program {
        return Err(format!(
            "it knows train.py, pretrain_gpt.py, megatron_gpt_pretraining.py, run_clm.py, torch_ddp.py and `nemo llm \
             pretrain` alone: `{program} {}`",
            arguments.join(" ")
        ));
    }
    if *code != 0 {
        eprint!("{stderr}");
        return Ok(*code);
    }
    let prints = |at: &usize| place.local == 0 || *at > 0;
    let node = execution.nodes.iter().position(|node| *node == place.node).filter(prints);
    let lines: Vec<&str> = node
        .and_then(|node| stdout.get(node))
        .map(|text| text.split_inclusive('\n').collect())
        .unwrap_or_default();
    let text = |at_s: f64| {
        let part = (at_s - execution.work_from_s) / seconds.max(1e-9);
        let done = (part * lines.len() as f64 + 1e-6).floor().max(0.0) as usize;
        life.mark() + &lines.get(..done.min(lines.len())).unwrap_or_default().concat()
    };
    let part = Part {
        place: &place,
        steps,
        local: (place.local, tasks_per_node),
        counters: life.counters(state, if place.local == 0 { &place.node } else { "" }, None),
        text: &text,
        last: text(execution.work_to_s),
    };
    rank::live(&life, part).await
}

/// A sweep of sizes: the first node prints its table.
async fn collective(
    state: &State,
    place: &ProcessPlace,
    life: &JobRun,
    tables: &[Table],
    steps: Vec<Step>,
    tasks_per_node: u32,
) -> Result<i32, String> {
    let execution = life.execution();
    let prints = place.local == 0 && execution.nodes.first() == Some(&place.node);
    let table = tables.first().filter(|_| prints);
    let text = |at_s: f64, broken: bool| {
        let so_far_s = at_s - execution.work_from_s;
        table
            .map_or_else(String::new, |table| life.mark() + &table_text(state, life, table, so_far_s, broken))
    };
    let part = Part {
        place,
        steps,
        local: (place.local, tasks_per_node),
        counters: life.counters(state, if place.local == 0 { &place.node } else { "" }, None),
        text: &|at_s| text(at_s, false),
        last: text(execution.work_to_s, breaks_off(&execution.active_faults)),
    };
    rank::live(life, part).await
}
