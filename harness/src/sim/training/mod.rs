//! A pretend training program, `torchrun ... train.py` or `python train.py`: what its command line asks for, and the
//! lines that it prints. Every rank holds a shard of each layer: shards are gathered before a layer runs, gradients
//! reduced behind it, within nodes and then between them. Which rank does what when is decided in `schedule`.

mod schedule;

pub use schedule::{Compute, Doing, Placed, Who};

use super::ailments::Ailments;
use super::cluster::Cluster;
use super::commands::exits;
use super::course::Spread;
use super::model::Group;
use super::noise::Noise;
use super::traffic::Crossing;
use super::work::{Work, slowest_nic};
use crate::script::Run;
use crate::window::{self, Steps};
use recipes::op::Op;

pub struct Training {
    pub steps: u32,
    pub layers: u32,
    pub nodes: u32,
    pub ranks_per_node: u32,
    /// Of one task.
    pub processes: u32,
    /// Of one rank and layer.
    pub shard_bytes: u64,
    times: Times,
    exposed: bool,
    /// By rank: what it takes longer in each step, in microseconds, and what is left of its GPU's pace.
    late_us: Vec<f64>,
    left: Vec<f64>,
    /// By rank: whether graphs launch what it computes.
    pub by_graphs: Vec<bool>,
    /// The steps around which it calls the profiler, by its own options.
    pub watches: Option<Steps>,
}

/// Of one layer and one collective each, in microseconds.
struct Times {
    gather: f64,
    scatter: f64,
    across: f64,
    norm: f64,
}

/// A shard of a layer, and the norm of all gradients.
const SHARD_BYTES: u64 = 16 << 20;
const NORM_BYTES: u64 = 4;
/// What names the draws of its schedule.
pub const DRAWS: &str = "training";
/// Beyond these the program refuses; they bound what a report can hold.
const MOST_STEPS: u32 = 10_000;
const MOST_LAYERS: u32 = 128;

/// The training that a command line asks for: nothing where it runs another program, an error as the program tells it.
pub fn read(
    cluster: &Cluster,
    ailments: &Ailments,
    nodes: u32,
    run: &Run,
) -> Option<Result<Training, String>> {
    let program = run.argv.first()?.rsplit('/').next()?;
    let script = run.argv.iter().position(|word| word.rsplit('/').next() == Some("train.py"))?;
    let launcher = run.argv.get(1..script)?;
    let processes = match program {
        "torchrun" => match option(launcher, &["--nproc_per_node", "--nproc-per-node"]) {
            None => Some(1),
            Some(number) => number.parse().ok(),
        },
        "python" | "python3" => Some(1),
        _ => return None,
    };
    let own = run.argv.get(script + 1..)?;
    let number = |name: &str, otherwise: u32, most: u32| match option(own, &[name]) {
        None => Ok(otherwise),
        Some(text) => text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| {
            format!("train.py: error: argument {name}: invalid value: '{text}' (1 to {most})\n")
        }),
    };
    let read = || {
        let processes =
            processes.filter(|number| *number > 0).ok_or("torchrun: error: --nproc_per_node\n")?;
        let (steps, layers) = (number("--steps", 20, MOST_STEPS)?, number("--layers", 4, MOST_LAYERS)?);
        let ranks_per_node = run.tasks_per_node * processes;
        if ranks_per_node > cluster.gpus {
            return Err("RuntimeError: CUDA error: invalid device ordinal\n".to_owned());
        }
        let watches = window::told(own);
        let training = Training::new(cluster, ailments, (nodes, ranks_per_node, processes), (steps, layers));
        Ok(Training { watches, ..training })
    };
    Some(read())
}

fn option<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| match word.strip_prefix(name)? {
            "" => words.get(at + 1).map(String::as_str),
            glued => glued.strip_prefix('='),
        })
    })
}

impl Training {
    fn new(
        cluster: &Cluster,
        ailments: &Ailments,
        (nodes, ranks_per_node, processes): (u32, u32, u32),
        (steps, layers): (u32, u32),
    ) -> Training {
        let all = nodes as usize;
        let time = |op: Op, bytes: u64, group: Group| {
            let crossing = Crossing::of(op, group, cluster.gpus);
            let needed = slowest_nic(cluster, ailments, &crossing, 0..all) * crossing.unit_bytes(op, bytes);
            cluster.model.time_us(op, bytes, group).max(needed)
        };
        let shards = match ranks_per_node {
            1 => Group { nodes, ranks: nodes, side_by_side: 1 },
            ranks => Group { nodes: 1, ranks, side_by_side: 1 },
        };
        let world = Group { nodes, ranks: nodes * ranks_per_node, side_by_side: 1 };
        let layer = SHARD_BYTES * u64::from(shards.ranks);
        let times = Times {
            gather: time(Op::AllGather, layer, shards),
            scatter: time(Op::ReduceScatter, layer, shards),
            across: time(Op::AllReduce, SHARD_BYTES, across(nodes, ranks_per_node)),
            norm: time(Op::AllReduce, NORM_BYTES, world),
        };
        let ranks = || (0..nodes as usize).flat_map(|node| (0..ranks_per_node).map(move |rank| (node, rank)));
        let late = |(node, rank): (usize, u32)| {
            let of_rank = ailments.stragglers().iter().filter(|(at, late, _)| (*at, *late) == (node, rank));
            of_rank.map(|(.., ms)| ms * 1e3).fold(0.0, f64::max)
        };
        Training {
            steps,
            layers,
            nodes,
            ranks_per_node,
            processes,
            shard_bytes: SHARD_BYTES,
            times,
            exposed: ailments.any_comm_exposed(),
            late_us: ranks().map(late).collect(),
            left: ranks().map(|(node, rank)| ailments.gpu_left(node, rank)).collect(),
            watches: None,
            by_graphs: ranks().map(|(node, _)| ailments.launches_graphs(node)).collect(),
        }
    }

    pub fn ranks(&self) -> u32 {
        self.nodes * self.ranks_per_node
    }

    /// What the first rank prints, and how long all of it takes.
    pub fn work(&self, nodes: &[String], noise: Noise) -> Work {
        let mut ends = Vec::with_capacity(self.steps as usize);
        self.run(noise, &mut |placed| {
            if let (0, Doing::Step) = (placed.rank, placed.doing) {
                ends.push((placed.start, placed.end));
            }
        });
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
        let mut stdout = vec![String::new(); nodes.len()];
        if let Some(first) = stdout.first_mut() {
            *first = ends.iter().enumerate().map(line).collect();
        }
        let seconds = ends.last().map_or(0.0, |(_, end)| *end as f64 * 1e-9);
        Work::Command { stdout, stderr: String::new(), code: 0, seconds }
    }

    /// What crosses between nodes: the groups, and the bytes of their operation in one step.
    pub fn across(&self) -> (Group, u64) {
        match self.ranks_per_node {
            // Shards lie on different nodes: what is gathered twice and scattered once crosses as it would in a ring.
            1 => (across(self.nodes, 1), 3 * self.shard_bytes * u64::from(self.layers * self.nodes) / 2),
            ranks => (across(self.nodes, ranks), self.shard_bytes * u64::from(self.layers)),
        }
    }
}

/// One rank of each node, as many times as there are ranks on a node.
fn across(nodes: u32, ranks_per_node: u32) -> Group {
    Group { nodes, ranks: nodes, side_by_side: ranks_per_node }
}

/// The program's refusal.
pub fn refused(nodes: &[String], spread: Spread, run: &Run, why: &str) -> Work {
    let told = match spread {
        Spread::Srun => exits(nodes, run.tasks_per_node, 1),
        Spread::Mpirun | Spread::Each => String::new(),
    };
    Work::Command { stdout: Vec::new(), stderr: format!("{why}{told}"), code: 1, seconds: 0.5 }
}
