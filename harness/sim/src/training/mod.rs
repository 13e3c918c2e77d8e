//! A simulated training program: `torchrun ... train.py`, `python train.py`, and similar programs. Every rank holds a
//! shard of each layer: shards are gathered before a layer runs, gradients reduced behind it, within nodes and then between
//! them; `run_clm.py` and `torch_ddp.py` hold the whole model on each rank, and reduce alone. What a command line asks for
//! is read in `program`, what is printed in `log`, which rank does what when in `schedule`.

mod log;
mod program;
mod schedule;
mod stopped;

use metric::op::Op;
pub(crate) use program::option;
pub use program::{Program, is_script};
pub use schedule::{Collective, Compute, Doing, Placed, Who};
pub(crate) use stopped::WATCHDOG_S;
pub use stopped::waited;

use super::active_faults::ActiveFaults;
use super::cluster::Cluster;
use super::commands::exits;
use super::model::Group;
use super::noise::Noise;
use super::spread::Spread;
use super::traffic::Crossing;
use super::work::{Work, slowest_nic};
use job::script::Run;
use job::window::Steps;
use program::{Model, TrainingOptions};

/// One run of a simulated training program.
pub struct Training {
    /// Which program it is.
    pub program: Program,
    /// How many it runs, and how many it was asked for.
    pub steps: u32,
    asked: u32,
    /// Units of the model that it computes one after the other.
    pub layers: u32,
    /// How many nodes it runs on.
    pub nodes: u32,
    /// Tasks of a node times processes of a task.
    pub ranks_per_node: u32,
    /// Of one task.
    pub processes: u32,
    /// Of one rank and layer.
    pub shard_bytes: u64,
    /// `None` for the plain program.
    pub model: Option<Model>,
    times: Times,
    pace: Pace,
    exposed: bool,
    /// By rank: what it takes longer in each step, and for each batch, in microseconds; and the remaining fraction of
    /// its GPU's pace.
    late_us: Vec<f64>,
    loads_us: Vec<f64>,
    left: Vec<f64>,
    /// By rank: whether graphs launch what it computes.
    pub by_graphs: Vec<bool>,
    /// The steps around which it calls the profiler, by its own options.
    pub watches: Option<Steps>,
    nan: Option<Nan>,
    /// The ranks whose GPUs return wrong data.
    corrupt: Vec<u32>,
    /// Whether its GPUs are of Hopper's kind, whose kernels have other names.
    pub is_hopper: bool,
}

/// From which step on whose numbers are none.
#[derive(Debug, Clone, Copy)]
struct Nan {
    step: u32,
    rank: u32,
}

/// Of one layer's computation, in microseconds, and of what a step ends with.
struct Pace {
    forward: f64,
    backward: f64,
    optimizer: f64,
}

const PLAIN: Pace = Pace { forward: 2_700.0, backward: 5_300.0, optimizer: 900.0 };
/// What wide layers reach of a GPU's peak; narrow ones less.
const REACHED: f64 = 0.62;
const NARROW: f64 = 1_500.0;
/// What an optimizer reads and writes of a parameter, and how fast: bytes, and bytes in a microsecond.
const OF_PARAMETER: f64 = 16.0;
const MEMORY: f64 = 2e6;

impl Pace {
    fn at_peak(model: &Model, peak_tflops: f64, layers: u32, (ranks, sharers): (u32, u32)) -> Pace {
        let wide = f64::from(model.hidden);
        let reached = peak_tflops * 1e6 * REACHED * wide / (wide + NARROW);
        let tokens = model.samples as f64 * f64::from(model.sequence) / f64::from(ranks);
        let forward = model.flops_per_token * tokens / reached / 3.0 / f64::from(layers);
        let optimizer = PLAIN.optimizer + model.parameters / f64::from(sharers) * OF_PARAMETER / MEMORY;
        Pace { forward, backward: 2.0 * forward, optimizer }
    }
}

/// Of one layer and one collective each, in microseconds.
struct Times {
    gather: f64,
    scatter: f64,
    across: f64,
    /// Of the gradients of a layer that every rank holds whole.
    bucket: f64,
    norm: f64,
}

/// A shard of a layer, and the norm of all gradients.
const SHARD_BYTES: u64 = 16 << 20;
const NORM_BYTES: u64 = 4;
/// What names the draws of its schedule.
pub(crate) const DRAWS: &str = "training";
/// And those of its loss.
pub(crate) const LOSS: &str = "loss";
/// Bytes of a parameter that is gathered, and of a gradient that is reduced whole.
const GATHERED: f64 = 2.0;
const REDUCED: f64 = 4.0;

/// The training that a command line asks for: nothing where it runs another program, an error as the program prints it.
pub(crate) fn read(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    nodes: u32,
    run: &Run,
) -> Option<Result<Training, String>> {
    let asked = program::read(cluster.gpus, nodes, run)?;
    Some(asked.map(|asked| Training::new(cluster, active_faults, nodes, &asked)))
}

impl Training {
    fn new(cluster: &Cluster, active_faults: &ActiveFaults, nodes: u32, asked: &TrainingOptions) -> Training {
        let TrainingOptions { program, steps, layers, processes, ranks_per_node, model, watches } = asked;
        let (program, steps, layers) = (*program, *steps, *layers);
        let (processes, ranks_per_node, model) = (*processes, *ranks_per_node, *model);
        let shard_bytes = match &model {
            Some(model) => {
                (model.parameters * GATHERED / f64::from(ranks_per_node * layers)) as u64 / 64 * 64
            }
            None => SHARD_BYTES,
        };
        let whole_bytes = model.map_or(0, |model| bucket_bytes(&model, layers));
        let all = nodes as usize;
        let time = |op: Op, bytes: u64, group: Group| {
            let crossing = Crossing::new(op, group, cluster.gpus);
            let needed =
                slowest_nic(cluster, active_faults, &crossing, 0..all) * crossing.unit_bytes(op, bytes);
            cluster.model.time_us(op, bytes, group).max(needed)
        };
        let shards = match ranks_per_node {
            1 => Group { nodes, ranks: nodes, side_by_side: 1 },
            ranks => Group { nodes: 1, ranks, side_by_side: 1 },
        };
        let world = Group { nodes, ranks: nodes * ranks_per_node, side_by_side: 1 };
        let layer = shard_bytes * u64::from(shards.ranks);
        let times = Times {
            gather: time(Op::AllGather, layer, shards),
            scatter: time(Op::ReduceScatter, layer, shards),
            across: time(Op::AllReduce, shard_bytes, across(nodes, ranks_per_node)),
            bucket: time(Op::AllReduce, whole_bytes, world),
            norm: time(Op::AllReduce, NORM_BYTES, world),
        };
        let ranks = || (0..nodes as usize).flat_map(|node| (0..ranks_per_node).map(move |rank| (node, rank)));
        let late = |(node, rank): (usize, u32)| {
            let of_rank =
                active_faults.stragglers().iter().filter(|(at, late, _)| (*at, *late) == (node, rank));
            of_rank.map(|(.., ms)| ms * 1e3).fold(0.0, f64::max)
        };
        let loads = |(node, rank): (usize, u32)| {
            let of_rank = active_faults.loaders().iter().filter(|(at, late, _)| (*at, *late) == (node, rank));
            of_rank.map(|(.., ms)| ms * 1e3).fold(0.0, f64::max)
        };
        let nan =
            active_faults.nans().iter().filter(|(_, rank, _)| *rank < ranks_per_node).min_by_key(|nan| nan.2);
        let nan =
            nan.map(|(node, rank, step)| Nan { step: *step, rank: *node as u32 * ranks_per_node + rank });
        // Who looks at its numbers goes no further than the step at which they are none.
        let runs = nan.filter(|_| log::checks(program)).map_or(steps, |nan| steps.min(nan.step + 1));
        let sharers = if program.holds_whole_model() { 1 } else { ranks_per_node };
        let is_corrupt = |(node, rank): &(usize, u32)| active_faults.is_corrupt(*node, *rank);
        let of_ranks = (nodes * ranks_per_node, sharers);
        Training {
            program,
            steps: runs,
            asked: steps,
            layers,
            nodes,
            ranks_per_node,
            processes,
            shard_bytes,
            model,
            times,
            pace: model.map_or(PLAIN, |model| Pace::at_peak(&model, cluster.peak_tflops, layers, of_ranks)),
            exposed: active_faults.any_comm_exposed(),
            late_us: ranks().map(late).collect(),
            loads_us: ranks().map(loads).collect(),
            nan,
            corrupt: (0..).zip(ranks()).filter(|(_, at)| is_corrupt(at)).map(|(rank, _)| rank).collect(),
            is_hopper: ["H100", "H200"].iter().any(|name| cluster.gpu_name.contains(name)),
            left: ranks().map(|(node, rank)| active_faults.gpu_left(node, rank)).collect(),
            watches: *watches,
            by_graphs: ranks().map(|(node, _)| active_faults.launches_graphs(node)).collect(),
        }
    }

    /// Of all nodes.
    pub(crate) fn ranks(&self) -> u32 {
        self.nodes * self.ranks_per_node
    }

    /// Whether a collective of that step is launched by a graph that holds it, and not called again. The plain
    /// program's graphs hold what it computes alone.
    pub(crate) fn is_replayed(&self, rank: u32, step: u32) -> bool {
        let by_graphs = self.by_graphs.get(rank as usize).is_some_and(|by_graphs| *by_graphs);
        by_graphs && step > 0 && self.program != Program::Plain
    }

    /// What the first rank prints, and how long all of it takes.
    pub(crate) fn work(&self, nodes: &[String], noise: Noise, execution: Noise) -> Work {
        let mut ends = Vec::with_capacity(self.steps as usize);
        self.run(noise, &mut |placed| {
            if let (0, Doing::Step) = (placed.rank, placed.doing) {
                ends.push((placed.start, placed.end));
            }
        });
        let seconds = ends.last().map_or(0.0, |(_, end)| *end as f64 * 1e-9);
        let (printed, stderr, code) = match self.program {
            Program::Plain => (self.plain(&ends), String::new(), 0),
            _ => {
                let ends: Vec<f64> = ends.iter().map(|(_, end)| *end as f64 * 1e-9).collect();
                let output = log::print(self, nodes, &ends, execution);
                (output.stdout, output.stderr, output.code)
            }
        };
        let mut stdout = vec![String::new(); nodes.len()];
        if let Some(first) = stdout.first_mut() {
            *first = printed;
        }
        Work::Command { stdout, stderr, code, seconds }
    }

    fn plain(&self, steps: &[(i64, i64)]) -> String {
        let last = self.steps - 1;
        let line = |(step, (start, end)): (usize, &(i64, i64))| {
            format!(
                "Training epoch 0, iteration {step}/{last} | lr: 3e-07 | global_batch_size: {} | global_step: {step} | \
                 train_step_timing in s: {:.4} | consumed_samples: {}\n",
                self.ranks(),
                (end - start) as f64 * 1e-9,
                (step as u64 + 1) * u64::from(self.ranks()),
            )
        };
        steps.iter().enumerate().map(line).collect()
    }

    /// What crosses between nodes: the groups, and the bytes of their operation in one step.
    pub(crate) fn across(&self) -> (Group, u64) {
        if let Some(model) = self.model.as_ref().filter(|_| self.program.holds_whole_model()) {
            let world = Group { nodes: self.nodes, ranks: self.ranks(), side_by_side: 1 };
            return (world, bucket_bytes(model, self.layers) * u64::from(self.layers));
        }
        match self.ranks_per_node {
            // Shards lie on different nodes: what is gathered twice and scattered once crosses as it would in a ring.
            1 => (across(self.nodes, 1), 3 * self.shard_bytes * u64::from(self.layers * self.nodes) / 2),
            ranks => (across(self.nodes, ranks), self.shard_bytes * u64::from(self.layers)),
        }
    }
}

fn bucket_bytes(model: &Model, layers: u32) -> u64 {
    (model.parameters * REDUCED / f64::from(layers)) as u64 / 64 * 64
}

/// One rank of each node, as many times as there are ranks on a node.
fn across(nodes: u32, ranks_per_node: u32) -> Group {
    Group { nodes, ranks: nodes, side_by_side: ranks_per_node }
}

/// The program's refusal.
pub(crate) fn refused(nodes: &[String], spread: Spread, run: &Run, why: &str) -> Work {
    let exits = match spread {
        Spread::Srun => exits(nodes, run.tasks_per_node, 1),
        Spread::Mpirun | Spread::Each => String::new(),
    };
    Work::Command { stdout: Vec::new(), stderr: format!("{why}{exits}"), code: 1, seconds: 0.5 }
}
