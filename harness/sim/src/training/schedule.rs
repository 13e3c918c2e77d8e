//! Which rank of the training program does what when. All ranks go through one list of tasks a step; a task waits for
//! its stream, for those that it depends on, and for the thread that launches it; a collective waits for all its ranks.
//! What a profiler sees of it is in `nsys`.

use super::{Training, bucket_bytes};
use crate::noise::Noise;

/// Something that a rank did, in nanoseconds from the first step's start.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// Among all ranks of the job.
    pub rank: u32,
    /// From 0.
    pub step: u32,
    /// What the rank did.
    pub doing: Doing,
    /// When the thread launched it; a step has none.
    pub launch: i64,
    /// On the GPU; a step's is that of its thread.
    pub start: i64,
    /// On the GPU; a step's is that of its thread.
    pub end: i64,
}

/// A whole step, or one part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// From its first call to the return of the last.
    Step,
    /// The batch is copied to the GPU.
    CopyIn,
    /// Four bytes of result are copied from the GPU.
    CopyOut,
    /// Kernels of a layer, or of the optimizer.
    Compute(Compute),
    /// One call of NCCL.
    Collective(Collective),
}

/// What kernels compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// One layer forward.
    Forward,
    /// One layer backward.
    Backward,
    /// Once in each step, behind all layers.
    Optimizer,
}

/// One call of a collective, the same on all ranks of its communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// By its C name, such as `ncclAllGather`.
    pub function: &'static str,
    /// Its communicator.
    pub who: Who,
    /// Of one call's count.
    pub bytes: u64,
}

/// The communicators: all ranks, those of a node, and those of one place on every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// All ranks.
    World,
    /// The ranks of one node.
    Node,
    /// The ranks of one place on every node.
    Across,
}

impl Who {
    /// In the order of declaration.
    pub(crate) const ALL: [Who; 3] = [Who::World, Who::Node, Who::Across];

    /// Which of the communicators of this kind a rank is in.
    pub(crate) fn which(self, rank: u32, ranks_per_node: u32) -> u32 {
        match self {
            Who::World => 0,
            Who::Node => rank / ranks_per_node,
            Who::Across => rank % ranks_per_node,
        }
    }

    /// The rank's number in it, and how many there are.
    pub(crate) fn member(self, rank: u32, ranks_per_node: u32, nodes: u32) -> (u32, u32) {
        match self {
            Who::World => (rank, ranks_per_node * nodes),
            Who::Node => (rank % ranks_per_node, ranks_per_node),
            Who::Across => (rank / ranks_per_node, nodes),
        }
    }
}

/// One task of a step.
struct Task {
    doing: Doing,
    us: f64,
    after: Vec<usize>,
}

/// Streams: what computes and copies, and one for each communicator.
const STREAMS: usize = 4;

fn stream(doing: Doing) -> usize {
    match doing {
        Doing::Collective(Collective { who: Who::World, .. }) => 1,
        Doing::Collective(Collective { who: Who::Node, .. }) => 2,
        Doing::Collective(Collective { who: Who::Across, .. }) => 3,
        _ => 0,
    }
}

const COPY_US: f64 = 40.0;
/// The thread launches one task after the other, and loads a batch between two steps.
const LAUNCH_NS: i64 = 25_000;
const BATCH_NS: i64 = 300_000;
/// What the GPU needs from a launch to a start.
const START_NS: i64 = 8_000;

impl Training {
    fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        let alone = self.ranks() == 1;
        let shards = if self.ranks_per_node > 1 { Who::Node } else { Who::World };
        let mut push = |doing: Doing, us: f64, mut after: Vec<usize>| {
            if self.exposed {
                // Nothing begins before what was launched before it has ended.
                after.extend(tasks.len().checked_sub(1));
            }
            tasks.push(Task { doing, us, after });
            tasks.len() - 1
        };
        let collective = |function, who, bytes| Doing::Collective(Collective { function, who, bytes });
        let gather = collective("ncclAllGather", shards, self.shard_bytes);
        let scatter = collective("ncclReduceScatter", shards, self.shard_bytes);
        let across = collective("ncclAllReduce", Who::Across, self.shard_bytes);
        let layers = self.layers as usize;
        // Who holds the model whole gathers nothing.
        let whole = self.model.as_ref().filter(|_| self.program.holds_whole_model());
        let bucket =
            whole.map(|model| collective("ncclAllReduce", Who::World, bucket_bytes(model, self.layers)));
        let gathers = !alone && bucket.is_none();
        push(Doing::CopyIn, COPY_US, Vec::new());
        let mut last: Vec<usize> = Vec::new();
        for (part, us) in [(Compute::Forward, self.pace.forward), (Compute::Backward, self.pace.backward)] {
            // The next layer's shards are gathered while this one runs.
            let mut next = gathers.then(|| push(gather, self.times.gather, Vec::new()));
            for layer in 0..layers {
                let ready = next.take();
                if layer + 1 < layers && gathers {
                    next = Some(push(gather, self.times.gather, last.iter().copied().take(1).collect()));
                }
                let ran = push(Doing::Compute(part), us, ready.into_iter().collect());
                last = vec![ran];
                if let (Compute::Backward, false, Some(bucket)) = (part, alone, bucket) {
                    last.push(push(bucket, self.times.bucket, vec![ran]));
                } else if part == Compute::Backward && !alone {
                    let mut reduced = push(scatter, self.times.scatter, vec![ran]);
                    if shards == Who::Node && self.nodes > 1 {
                        reduced = push(across, self.times.across, vec![reduced]);
                    }
                    last.push(reduced);
                }
            }
        }
        if !alone {
            last.push(push(
                collective("ncclAllReduce", Who::World, super::NORM_BYTES),
                self.times.norm,
                last.clone(),
            ));
        }
        let optimizer = push(Doing::Compute(Compute::Optimizer), self.pace.optimizer, last);
        push(Doing::CopyOut, COPY_US / 4.0, vec![optimizer]);
        tasks
    }

    /// The collectives of one step, in the order in which each rank calls them.
    pub(crate) fn collectives(&self) -> Vec<Collective> {
        let calls = self.tasks().into_iter().filter_map(|task| match task.doing {
            Doing::Collective(call) => Some(call),
            _ => None,
        });
        calls.collect()
    }

    /// All that all ranks do, step by step and task by task.
    pub(crate) fn run(&self, mut noise: Noise, sink: &mut dyn FnMut(Placed)) {
        let tasks = self.tasks();
        let ranks = self.ranks() as usize;
        let mut free = vec![[0i64; STREAMS]; ranks];
        let mut thread: Vec<i64> = vec![0; ranks];
        let forwards = f64::from(self.layers);
        for step in 0..self.steps {
            let begun = thread.clone();
            let mut done = vec![vec![0i64; tasks.len()]; ranks];
            for (at, task) in tasks.iter().enumerate() {
                let which = stream(task.doing);
                // When each rank could begin, and how long it would take alone.
                let ready: Vec<(i64, i64)> = (0..ranks)
                    .map(|rank| {
                        let launch = begun[rank] + LAUNCH_NS * at as i64;
                        let after = task.after.iter().map(|before| done[rank][*before]).max().unwrap_or(0);
                        let start = (launch + START_NS).max(free[rank][which] + 1_500).max(after + 1_500);
                        (launch, start)
                    })
                    .collect();
                // Who comes first waits in its kernel for the last of its communicator.
                let own = |rank: usize| match task.doing {
                    Doing::Collective(one) => one.who.which(rank as u32, self.ranks_per_node) as usize,
                    _ => 0,
                };
                let mut latest = vec![i64::MIN; ranks];
                for (rank, (_, start)) in ready.iter().enumerate() {
                    latest[own(rank)] = latest[own(rank)].max(*start);
                }
                for (rank, (launch, start)) in ready.iter().copied().enumerate() {
                    let end = match task.doing {
                        Doing::Collective(_) => {
                            latest[own(rank)] + (task.us * 1e3) as i64 + (300.0 * noise.fraction()) as i64
                        }
                        Doing::Compute(part) => {
                            let late =
                                if part == Compute::Forward { self.late_us[rank] / forwards } else { 0.0 };
                            start + ((task.us / self.left[rank] * noise.factor(0.004) + late) * 1e3) as i64
                        }
                        _ => start + (task.us * 1e3) as i64,
                    };
                    (free[rank][which], done[rank][at]) = (end, end);
                    sink(Placed { rank: rank as u32, step, doing: task.doing, launch, start, end });
                }
            }
            for rank in 0..ranks {
                let end = done[rank].iter().copied().max().unwrap_or_default() + 3_000;
                let (doing, start) = (Doing::Step, begun[rank]);
                sink(Placed { rank: rank as u32, step, doing, launch: start, start, end });
                thread[rank] = end + BATCH_NS + (self.loads_us[rank] * 1e3) as i64;
            }
        }
    }
}
