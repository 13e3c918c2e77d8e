//! What one process of nccl-tests does, seen by a profiler: it joins its communicator, goes through the program's
//! rounds, and leaves. Kernels of all ranks end together, whoever came last; calls run ahead of the kernels that they
//! launch, as far as a stream lets them; and what is timed takes on every rank what the program prints.

use super::collective::{Member, kernel, parts};
use super::events::{Events, Node, Thread};
use super::payload::{Of, Payload};
use super::{FIRST_KERNEL_S, ns};
use crate::nccl::group_of;
use crate::noise::Noise;
use crate::rounds::{BARRIER_S, Round, RoundKind, fill_us, filling_s};
use crate::work::Table;

/// One process of a table, and the draws that concern it.
pub(super) struct Process<'a> {
    pub table: &'a Table,
    /// Among the table's ranks, the first that it drives.
    pub first: u32,
    /// By rank that it drives.
    pub devices: Vec<i64>,
    pub pid: u64,
    /// Of each group side by side.
    pub communicators: &'a [u64],
    /// Kernels are launched by graphs, though that was not requested.
    pub by_graphs: bool,
}

/// The stream that the program makes, and the one that every context has.
const STREAM: i64 = 13;
const NULL_STREAM: i64 = 7;
/// So many launches wait in a stream before the next call waits for room.
const QUEUE: usize = 1024;

/// The draws of `shared` are the same for every process of the table; those of `own` are this one's.
pub(super) fn events(process: &Process, mut shared: Noise, own: Noise) -> Events {
    let thread = Thread::new(process.pid, process.table.options.op.program());
    let mut run = Run { process, thread, own };
    run.joins();
    let rounds = process.table.rounds();
    let mut end = ns(FIRST_KERNEL_S);
    for round in &rounds {
        end = run.round(round, &mut shared);
    }
    run.leaves(end + 2_000_000);
    run.thread.events
}

struct Run<'a> {
    process: &'a Process<'a>,
    thread: Thread,
    own: Noise,
}

/// What the host does for one kernel, in the order in which it does it.
struct Step {
    fraction: f64,
    items: Vec<(&'static str, Option<Payload>)>,
}

impl Run<'_> {
    fn members(&self) -> Vec<Member> {
        let table = self.process.table;
        let groups = table.world.group.side_by_side.max(1);
        let member = |at: usize| {
            let rank = self.process.first + at as u32;
            let group = group_of(table, rank as usize);
            let communicator = self.process.communicators.get(group).copied().unwrap_or_default();
            Member { communicator, rank: rank / groups, ranks: table.world.group.ranks }
        };
        (0..self.process.devices.len()).map(member).collect()
    }

    fn joins(&mut self) {
        let table = self.process.table;
        let members = self.members();
        let alone = members.len() as u32 == table.ranks;
        let start = ns(FIRST_KERNEL_S) - 2_500_000_000;
        let took = 1_800_000_000 + (self.own.fraction() * 50e6) as i64;
        if alone && let Some(member) = members.first() {
            let of = Of::Devices { devices: members.len() as u32 };
            let payload = Some(Payload::new(member.communicator, of));
            self.thread.nccl("ncclCommInitAll", (start, start + took), payload);
            return;
        }
        let grouped = members.len() > 1;
        let (mut now, each) = (start, 20_000);
        if grouped {
            self.thread.nccl("ncclGroupStart", (now, now + 1_000), None);
            now += 2_000;
        }
        for (member, device) in members.iter().zip(&self.process.devices) {
            let of = Of::Rank { ranks: member.ranks, rank: member.rank, device: *device };
            let span = (now, now + if grouped { each } else { took });
            self.thread.nccl("ncclCommInitRank", span, Some(Payload::new(member.communicator, of)));
            now += each + 1_000;
        }
        if grouped {
            self.thread.nccl("ncclGroupEnd", (now, start + took), None);
        }
    }

    fn leaves(&mut self, mut now: i64) {
        for (member, device) in self.members().iter().zip(&self.process.devices) {
            let of = Of::Rank { ranks: member.ranks, rank: member.rank, device: *device };
            let payload = Some(Payload::new(member.communicator, of));
            self.thread.nccl("ncclCommDestroy", (now, now + 900_000), payload);
            now += 1_000_000;
        }
    }

    /// The functions that are called for one iteration, kernel by kernel.
    fn steps(&self, round: &Round) -> Vec<Step> {
        let options = &self.process.table.options;
        let by_gpu: Vec<_> = self.members().into_iter().map(|me| parts(options, round.count, me)).collect();
        let start = || ("ncclGroupStart", None);
        let end = || ("ncclGroupEnd", None);
        // Calls for several GPUs, or of several operations, stand in one group, and so do the groups within.
        if by_gpu.len() > 1 || round.aggregated > 1 {
            let mut items = vec![start()];
            for part in (0..round.aggregated).flat_map(|_| by_gpu.iter().flatten()) {
                items.extend(part.is_group.then(start));
                items.extend(part.calls.iter().map(|(name, payload)| (*name, Some(*payload))));
                items.extend(part.is_group.then(end));
            }
            items.push(end());
            return vec![Step { fraction: 1.0, items }];
        }
        let step = |part: super::collective::Part| {
            let mut items = Vec::with_capacity(part.calls.len() + 2);
            items.extend(part.is_group.then(start));
            items.extend(part.calls.iter().map(|(name, payload)| (*name, Some(*payload))));
            items.extend(part.is_group.then(end));
            Step { fraction: part.fraction, items }
        };
        by_gpu.into_iter().flatten().map(step).collect()
    }

    /// When the last kernel of it ends.
    fn round(&mut self, round: &Round, shared: &mut Noise) -> i64 {
        let base = ns(FIRST_KERNEL_S + round.from_s);
        let check = self.process.table.options.check;
        if check && matches!(round.kind, RoundKind::Meet | RoundKind::Checked) {
            self.fills(
                base - ns(filling_s(round.bytes)),
                round.bytes,
                &["prepareInput2", "prepareExpected2"],
            );
        }
        let end = self.collectives(round, base, shared);
        if check && round.kind == RoundKind::Checked {
            self.fills(end + 30_000, round.bytes, &["verifyPrepared"]);
        }
        end
    }

    /// Kernels that fill buffers and check them, on every GPU of the process.
    fn fills(&mut self, start: i64, bytes: u64, names: &[&'static str]) {
        let (mut now, mut end) = (start, start);
        let length = (fill_us(bytes) * 1e3) as i64;
        for device in self.process.devices.clone() {
            let mut free = now;
            for name in names {
                let correlation = self.thread.call("cudaLaunchKernel_v7000", now, now + 1_500);
                let from = free.max(now + 2_000);
                self.thread.kernel(*name, (from, from + length), (device, NULL_STREAM), correlation, None);
                free = from + length + 500;
                now += 2_000;
            }
            end = end.max(free);
        }
        self.thread.call("cudaDeviceSynchronize_v3020", now, end.max(now) + 500);
    }

    /// The kernels of NCCL in one round.
    fn collectives(&mut self, round: &Round, base: i64, shared: &mut Noise) -> i64 {
        let factors: Vec<f64> = (0..round.iterations).map(|_| shared.factor(0.05)).collect();
        let steps = self.steps(round);
        let Some(pace) = Pace::new(self.process.table, round, &steps, &factors) else { return base };
        let graphs = self.records(round, &steps, base);
        let devices = self.process.devices.clone();
        let late: Vec<i64> =
            (0..devices.len() as u32).map(|at| pace.late_ns(self.process, self.process.first + at)).collect();
        let name = kernel(self.process.table.options.op);
        // Those of `base` are the first that can leave the barrier.
        let first = base + (pace.skew * (1.0 + self.own.between(-1.0, 1.0))) as i64;
        let mut next = first - (0.3 * pace.host) as i64;
        let mut launched: Vec<Launched> = Vec::new();
        // Of each GPU: when its stream is free. Of each kernel: when it began on the last of them.
        let mut free = vec![i64::MIN; devices.len()];
        let mut begun: Vec<i64> = Vec::with_capacity(factors.len() * steps.len());
        let mut done = base as f64 + pace.skew + pace.host;
        for (at, factor) in factors.iter().enumerate() {
            for (which, step) in steps.iter().enumerate() {
                let busy = factor * pace.scale * step.fraction;
                done += busy + if which == 0 { pace.wait } else { 0.0 };
                if let Some(room) = begun.len().checked_sub(QUEUE).and_then(|at| begun.get(at)) {
                    next = next.max(*room);
                }
                let per_graph = graphs.as_ref().map(|graphs| at % graphs.iterations);
                match per_graph {
                    None => launched = self.calls(step, next, pace.host),
                    Some(0) if which == 0 => {
                        launched = self.launches("cudaGraphLaunch_v10000", next, pace.host)
                    }
                    // One launch runs the whole of a graph.
                    Some(_) => {}
                }
                next += pace.host as i64;
                let gap = (0.05 * busy).min(1_500.0) as i64;
                let mut last = i64::MIN;
                for (gpu, device) in devices.iter().enumerate() {
                    let Some(by) = launched.get(gpu) else { continue };
                    let ready = by.returned + (0.05 * pace.host) as i64;
                    let from =
                        ready.max(free[gpu].saturating_add(gap)) + if which == 0 { late[gpu] } else { 0 };
                    let off = (0.003 * busy).min(1_000.0) * self.own.fraction();
                    let to = ((done + off) as i64).max(from + 1);
                    let node = graphs.as_ref().zip(per_graph).map(|(graphs, at)| Node {
                        graph: graphs.numbers[gpu],
                        number: (at * steps.len() + which) as i64 + 1,
                    });
                    self.thread.kernel(name, (from, to), (*device, STREAM), by.correlation, node);
                    (free[gpu], last) = (to, last.max(from));
                }
                begun.push(last);
            }
        }
        let end = free.iter().copied().max().unwrap_or(base).max(base);
        let returned = launched.last().map_or(first, |by| by.returned);
        self.thread.call("cudaStreamSynchronize_v3020", returned + 200, end.max(returned + 200) + 1_500);
        end
    }

    /// The calls of one step, and what launches its kernels: within the last of them.
    fn calls(&mut self, step: &Step, from: i64, host: f64) -> Vec<Launched> {
        let Some(((name, payload), before)) = step.items.split_last() else { return Vec::new() };
        let at = |part: f64| from + (part * host) as i64;
        let slice = 0.25 / before.len().max(1) as f64;
        for (which, (name, payload)) in before.iter().enumerate() {
            let span = (at(slice * which as f64), at(slice * (which as f64 + 0.9)));
            self.thread.nccl(name, span, *payload);
        }
        let launched = self.launches("cudaLaunchKernelExC_v11060", from, host);
        self.thread.nccl(name, (at(0.26), at(0.95)), *payload);
        launched
    }

    /// One call for each GPU.
    fn launches(&mut self, call: &'static str, from: i64, host: f64) -> Vec<Launched> {
        let gpus = self.process.devices.len();
        let share = 0.6 / gpus as f64;
        let launch = |gpu: usize| {
            let start = from + ((0.3 + share * gpu as f64) * host) as i64;
            let returned = (start + (0.95 * share * host) as i64).max(start + 1);
            Launched { correlation: self.thread.call(call, start, returned), returned }
        };
        (0..gpus).map(launch).collect()
    }

    /// Records the round's calls into a graph for each GPU, where it is launched as one.
    fn records(&mut self, round: &Round, steps: &[Step], base: i64) -> Option<Graphs> {
        let options = &self.process.table.options;
        let asked = options.graph_launches > 0 || self.process.by_graphs;
        let free_s = match round.kind {
            RoundKind::Timed => BARRIER_S,
            RoundKind::Checked => 0.000_1,
            RoundKind::WarmUp | RoundKind::Meet => return None,
        };
        let launches = if round.kind == RoundKind::Timed { options.graph_launches.max(1) } else { 1 };
        let iterations = (round.iterations / launches) as usize;
        if !asked || iterations == 0 {
            return None;
        }
        let span = 0.8 * free_s * 1e9;
        let mut now = base - (0.85 * free_s * 1e9) as i64;
        let gpus = self.process.devices.len() as i64;
        let slice = (0.05 * span) as i64 / gpus;
        let each = |thread: &mut Thread, name, now: &mut i64| {
            for _ in 0..gpus {
                thread.call(name, *now, *now + slice * 9 / 10);
                *now += slice;
            }
        };
        each(&mut self.thread, "cudaStreamBeginCapture_v10000", &mut now);
        let host = (0.7 * span / (iterations * steps.len()) as f64).min(5_000.0);
        for _ in 0..iterations {
            for step in steps {
                self.calls(step, now, host);
                now += host as i64;
            }
        }
        each(&mut self.thread, "cudaStreamEndCapture_v10000", &mut now);
        each(&mut self.thread, "cudaGraphInstantiateWithFlags_v11040", &mut now);
        Some(Graphs { numbers: (0..gpus).map(|_| self.thread.graph()).collect(), iterations })
    }
}

/// The call that launched what runs on a GPU, and when it returned.
struct Launched {
    correlation: i64,
    returned: i64,
}

struct Graphs {
    /// Of each GPU.
    numbers: Vec<i64>,
    /// Of the round, in one launch.
    iterations: usize,
}

/// How a round's time is divided, in nanoseconds.
struct Pace {
    /// What the host does for one step. A call takes microseconds, and never so long that kernels would wait for it.
    host: f64,
    /// Ranks leave a barrier almost together: this much before the middle one, or after.
    skew: f64,
    /// What the late ones keep the others waiting, once an iteration.
    wait: f64,
    /// Of an iteration's kernels, to be multiplied with its factor.
    scale: f64,
    /// Operations of one iteration, of those that wait once.
    share: f64,
}

impl Pace {
    /// Nothing for a round without a kernel.
    fn new(table: &Table, round: &Round, steps: &[Step], factors: &[f64]) -> Option<Pace> {
        let narrowest = steps.iter().map(|step| step.fraction).reduce(f64::min)?;
        let items = steps.iter().map(|step| step.items.len()).max()?;
        let factor: f64 = factors.iter().sum();
        if factor <= 0.0 {
            return None;
        }
        let share = f64::from(round.aggregated) / f64::from(table.options.aggregated);
        let latest = table.late.iter().map(|(_, us)| *us).fold(0.0, f64::max);
        let wait = latest * 1e3 * share;
        let pure = (round.us * 1e3 - wait).max(1.0);
        let host = (5_000.0 + 150.0 * items as f64).min(0.35 * pure * narrowest);
        let all = factors.len() as f64 * pure;
        let skew = (0.004 * all).min(15_000.0).min(0.1 * pure * narrowest);
        Some(Pace { host, skew, wait, scale: (all - host) / factor, share })
    }

    fn late_ns(&self, process: &Process, rank: u32) -> i64 {
        let of_rank = process.table.late.iter().filter(|(late, _)| *late == rank);
        (of_rank.map(|(_, us)| *us).fold(0.0, f64::max) * 1e3 * self.share) as i64
    }
}
