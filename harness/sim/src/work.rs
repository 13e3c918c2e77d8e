//! What a job's workload does, second by second, with slow parts and noise in it: the times of every row, the rate of
//! every flow. What it leaves as text is in `nccl`, `flows` and `outputs`.

use super::active_faults::ActiveFaults;
use super::cluster::Cluster;
use super::flows::{self, FlowTimeline, MARK_S};
use super::model::{Group, NIC_EFFICIENCY};
use super::noise::{self, Noise};
use super::options::Options;
use super::traffic::{Crossing, shares};
use job::script::Flows;
use logs::flow_log::FlowPath;
use metric::op::Op;
use std::ops::Range;

/// What a workload measures or prints, by its kind.
pub enum Work {
    /// One program of nccl-tests over the ranks of the job: one table, or one for each world that its ranks found.
    Tables(Vec<Table>),
    /// One program for each GPU, side by side: by node, then by GPU.
    Gpus(Vec<Vec<Table>>),
    /// Flows between NICs of two nodes, one for each device, and what the script asks for.
    Flows(Vec<FlowTimeline>, Flows),
    /// Any other program.
    Command {
        /// By node.
        stdout: Vec<String>,
        /// Of the whole job.
        stderr: String,
        /// Exit code.
        code: i32,
        /// How long it runs.
        seconds: f64,
    },
}

/// One world of ranks and the rows that it prints.
pub struct Table {
    /// From the program's command line.
    pub options: Options,
    /// Which ranks it is.
    pub world: World,
    /// Of all groups that run side by side.
    pub ranks: u32,
    /// What runs before the first row.
    pub warmup: Vec<Warm>,
    /// In the order of the output.
    pub rows: Vec<Row>,
    /// Ranks of this world that come late to every collective, and by how much.
    pub late: Vec<(u32, f64)>,
}

/// Who runs a program of nccl-tests together.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Of the job's nodes.
    pub nodes: Range<usize>,
    /// Nothing for a world of its own on one GPU.
    pub gpu: Option<u32>,
    /// Ranks and nodes of one collective.
    pub group: Group,
    /// Among all the ranks of the job, the one that is this world's first.
    pub first: u32,
    /// Ranks of the job on each node.
    pub per_node: u32,
    /// Ranks of one node reach each other through its NICs alone.
    pub through_nics: bool,
}

impl World {
    /// What its operations move over the fabric.
    pub(crate) fn crossing(&self, op: Op, gpus: u32) -> Crossing {
        match self.through_nics && self.group.nodes <= 1 && self.gpu.is_none() {
            true => Crossing::within(self.group),
            false => Crossing::new(op, self.group, gpus),
        }
    }
}

/// Operations of one size before the first row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warm {
    /// As the program counts the size of a row.
    pub bytes: u64,
    /// Elements, as the program counts them for its operation.
    pub count: u64,
    /// Of one operation, in microseconds.
    pub us: f64,
}

/// One row of the output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The size that the row shows.
    pub bytes: u64,
    /// Elements, as the program counts them for its operation.
    pub count: u64,
    /// Of one operation out of place, in microseconds.
    pub out_us: f64,
    /// Of one operation in place, in microseconds.
    pub in_us: f64,
    /// Elements that came out wrong.
    pub wrong: u64,
}

impl Table {
    /// Everything in it goes at this fraction of its pace.
    pub(crate) fn slow_down(&mut self, left: f64) {
        self.warmup.iter_mut().for_each(|warm| warm.us /= left);
        for row in &mut self.rows {
            row.out_us /= left;
            row.in_us /= left;
        }
    }

    /// Whether any row has wrong elements.
    pub(crate) fn has_wrong(&self) -> bool {
        self.rows.iter().any(|row| row.wrong > 0)
    }
}

/// The table of one world of ranks, at the pace of the slowest NIC and GPU in it.
pub(crate) fn table(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    options: &Options,
    world: World,
    names: &[String],
    noise: &mut Noise,
) -> Table {
    let (nodes, group) = (world.nodes.clone(), world.group);
    let crossing = world.crossing(options.op, cluster.gpus);
    let left = match world.gpu {
        Some(gpu) => active_faults.gpu_left(nodes.start, gpu),
        None => active_faults.least_gpu_left(nodes.clone()),
    };
    let nic_us = match cluster.world.ofi_plugin {
        true => slowest_nic(cluster, active_faults, &crossing, nodes.clone()),
        false => over_sockets(&crossing, nodes.clone()),
    };
    let corrupt = match world.gpu {
        Some(gpu) => active_faults.is_corrupt(nodes.start, gpu),
        None => active_faults.any_corrupt(nodes.clone()),
    };
    let late = late(active_faults, &world);
    // Operations of one group wait once.
    let late_us = late.iter().map(|(_, us)| *us).fold(0.0, f64::max) / f64::from(options.aggregated);
    let mut variation = Variation::draw(cluster, &world, names, noise);
    let of_job = variation.of_job;
    let latency = cluster.model.time_us(options.op, 0, group);
    let time_us = |bytes: u64, row: f64| {
        let healthy = cluster.model.time_us(options.op, bytes, group);
        let needed = nic_us * crossing.unit_bytes(options.op, bytes);
        // A slow GPU slows what it computes and copies, not the wait for the first byte.
        let paced = latency.min(healthy) + (healthy - latency).max(0.0) / left;
        (paced * of_job * row).max(needed * row) + late_us
    };
    let mut rows = Vec::new();
    for asked in options.sizes() {
        let (bytes, count) = sized(options, asked, group.ranks);
        let mut half = || time_us(bytes, noise.factor(0.003) * variation.value_factor());
        let (out_us, in_us) = (half(), half());
        let wrong =
            if corrupt && options.check && bytes > 0 { 1 + noise.whole() % (count / 64 + 1) } else { 0 };
        rows.push(Row { bytes, count, out_us, in_us, wrong });
    }
    let warm = |asked: u64| {
        let (bytes, count) = sized(options, asked, group.ranks);
        Warm { bytes, count, us: time_us(bytes, 1.0) }
    };
    let warmup = options.warmup_sizes().into_iter().map(warm).collect();
    let ranks = group.ranks * group.side_by_side.max(1);
    Table { options: options.clone(), world, ranks, warmup, rows, late }
}

/// How much one job, one node and one value differ from the next, as the world is set to vary.
struct Variation {
    /// What the times of the whole job are multiplied by.
    of_job: f64,
    values: Option<Values>,
}

/// Values of which one in so many is low.
struct Values {
    noise: Noise,
    every: u32,
}

/// What an outlier has left.
const LEFT_TO_OUTLIER: f64 = 0.9;

impl Variation {
    fn draw(cluster: &Cluster, world: &World, names: &[String], noise: &mut Noise) -> Variation {
        let whole = noise.factor(0.01);
        let mut draws = noise.fork();
        let of_run = cluster.world.run_noise.map_or(whole, |deviation| draws.unbounded_factor(deviation));
        // All wait for the slowest.
        let names = names.get(world.nodes.clone()).unwrap_or_default();
        let of_nodes = names.iter().map(|name| node_factor(cluster, name)).reduce(f64::min).unwrap_or(1.0);
        Variation { of_job: of_run / of_nodes, values: Values::draw(cluster, draws) }
    }

    fn value_factor(&mut self) -> f64 {
        self.values.as_mut().map_or(1.0, Values::time)
    }
}

impl Values {
    fn draw(cluster: &Cluster, noise: Noise) -> Option<Values> {
        cluster.world.outlier_every.map(|every| Values { noise, every })
    }

    fn time(&mut self) -> f64 {
        let is_outlier = self.noise.whole().is_multiple_of(u64::from(self.every));
        if is_outlier { 1.0 / LEFT_TO_OUTLIER } else { 1.0 }
    }
}

/// How fast a sound node is among its peers: the same in every job.
fn node_factor(cluster: &Cluster, name: &str) -> f64 {
    cluster
        .world
        .node_noise
        .map_or(1.0, |deviation| noise::stream(cluster.seed, &["node", name]).unbounded_factor(deviation))
}

/// Ranks of a world that come late. One that is alone in its group keeps no other rank waiting.
fn late(active_faults: &ActiveFaults, world: &World) -> Vec<(u32, f64)> {
    let ranks = world.group.ranks * world.group.side_by_side.max(1);
    let of_world = |(node, rank, ms): &(usize, u32, f64)| {
        let of_job = (*rank < world.per_node).then_some(*node as u32 * world.per_node + rank)?;
        let own = of_job.checked_sub(world.first).filter(|own| *own < ranks)?;
        Some((own, ms * 1e3))
    };
    let is_alone = world.gpu.is_some() || world.group.ranks < 2;
    active_faults.stragglers().iter().filter(|_| !is_alone).filter_map(of_world).collect()
}

/// The time that the slowest NIC needs for its share of a unit of one byte: the plugin fixes the shares, so all others
/// wait for it.
pub(crate) fn slowest_nic(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    crossing: &Crossing,
    nodes: Range<usize>,
) -> f64 {
    let full = cluster.line_gb_s * NIC_EFFICIENCY * 1e3;
    let first = nodes.start;
    let mut slowest = 0.0f64;
    for node in nodes {
        let (sent, received) = crossing.units((node - first) as u32);
        let units = sent.max(received) as f64;
        let carrying = carrying(cluster, active_faults, node);
        let sum: f64 = carrying.iter().sum();
        for (nic, weight) in carrying.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let left = active_faults.nic_left(node, nic).unwrap_or(1.0);
            slowest = slowest.max(units * weight / sum / (left * full));
        }
        // Nodes without an ailing NIC are all alike; the first two have every role that there is.
        if !active_faults.has_ailing_nics() && node > first {
            break;
        }
    }
    slowest
}

/// What TCP over the node's own network interface carries, in bytes a microsecond: a few streams of 10 Gbit/s each.
const SOCKETS_BYTES_US: f64 = 3_000.0;

/// The time that a byte of a unit takes where NCCL has no plugin for EFA.
fn over_sockets(crossing: &Crossing, nodes: Range<usize>) -> f64 {
    let units = (0..nodes.len() as u32).map(|node| {
        let (sent, received) = crossing.units(node);
        sent.max(received)
    });
    units.max().unwrap_or_default() as f64 / SOCKETS_BYTES_US
}

/// The NICs' parts of a node's traffic, nothing for those that carry nothing.
pub(crate) fn carrying(cluster: &Cluster, active_faults: &ActiveFaults, node: usize) -> Vec<f64> {
    let part = |(nic, weight): (usize, &f64)| active_faults.nic_left(node, nic).map_or(0.0, |_| *weight);
    cluster.weights.iter().enumerate().map(part).collect()
}

/// What a node's NICs moved, each way, of so many bytes.
pub(crate) fn split(cluster: &Cluster, active_faults: &ActiveFaults, node: usize, bytes: u64) -> Vec<u64> {
    shares(bytes, &carrying(cluster, active_faults, node))
}

/// The size as the program shows it, and its count: per-rank parts are whole and aligned to 16 bytes.
fn sized(options: &Options, asked: u64, ranks: u32) -> (u64, u64) {
    let element = options.element_bytes();
    let elements = asked / element;
    match options.op {
        Op::AllReduce | Op::Broadcast | Op::Reduce | Op::SendRecv => (elements * element, elements),
        _ => {
            let ranks = u64::from(ranks.max(1));
            let aligned = (16 / element).max(1);
            let each = elements / ranks / aligned * aligned;
            (each * ranks * element, each)
        }
    }
}

/// The timeline of each flow, in the order of `flows.devices`.
pub(crate) fn flows(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    flows: &Flows,
    names: &[String],
    noise: &mut Noise,
) -> Vec<FlowTimeline> {
    let paths: Vec<FlowPath> =
        flows.devices.iter().map(|device| flows::path(cluster, flows, device)).collect();
    flows_along(cluster, active_faults, flows, &paths, names, noise)
}

/// The same, where the path of each is known.
pub(crate) fn flows_along(
    cluster: &Cluster,
    active_faults: &ActiveFaults,
    flows: &Flows,
    paths: &[FlowPath],
    names: &[String],
    noise: &mut Noise,
) -> Vec<FlowTimeline> {
    let full = cluster.line_gb_s * NIC_EFFICIENCY;
    let bytes = flows.message_bytes as f64 * flows.iterations as f64;
    let limit_s = flows.limit_s as f64;
    let mut draws = noise.fork();
    let of_nodes = names.iter().map(|name| node_factor(cluster, name)).reduce(f64::min).unwrap_or(1.0);
    let of_run = cluster.world.run_noise.map_or(1.0, |deviation| draws.unbounded_factor(deviation));
    let mut values = Values::draw(cluster, draws);
    let mut one = |(device, path): (&String, &FlowPath)| {
        // Drawn for every flow, so that a fault of one changes nothing about the others.
        let outlier = values.as_mut().map_or(1.0, Values::time);
        let factor = noise.between(0.995, 1.005) * of_nodes * of_run / outlier;
        let nic = cluster.nics.iter().position(|nic| nic == device)?;
        // A flow is as fast as the slower of its ends; one dead end is no flow.
        let left = active_faults.nic_left(0, nic)?.min(active_faults.nic_left(1, nic)?);
        let rate = full * left;
        let shared = cluster.host_link_gb_s.filter(|_| matches!(path, FlowPath::Host { .. }));
        let together = together(cluster, flows, paths, (nic, path));
        Some(shared.map_or(rate, |link| rate.min(link / together)) * factor)
    };
    let rates: Vec<Option<f64>> = flows.devices.iter().zip(paths).map(&mut one).collect();
    let mut timelines: Vec<FlowTimeline> = rates
        .into_iter()
        .map(|rate| {
            let seconds = rate.map_or(limit_s, |rate| bytes / (rate * 1e9));
            // What does not end within the limit is cut off by the script.
            match rate.filter(|_| seconds < limit_s) {
                Some(rate) => FlowTimeline { rate_gb_s: Some(rate), from_s: 0.0, seconds },
                None => FlowTimeline { rate_gb_s: None, from_s: 0.0, seconds: limit_s },
            }
        })
        .collect();
    // A turn begins when the last flow of the one before it is over.
    let mut from_s = 0.0;
    for turn in 1..=paths.iter().map(turn_of).max().unwrap_or(1) {
        let of_turn = timelines.iter_mut().zip(paths).filter(|(_, path)| turn_of(path) == turn);
        let mut longest = 0.0f64;
        for (execution, _) in of_turn {
            execution.from_s = from_s;
            longest = longest.max(execution.seconds);
        }
        from_s += longest + MARK_S;
    }
    if flows::refused(cluster, flows).is_some() {
        timelines
            .iter_mut()
            .for_each(|execution| *execution = FlowTimeline { rate_gb_s: None, from_s: 0.0, seconds: 4.0 });
    }
    timelines
}

/// How many flows run at once through the PCIe switch of a NIC.
fn together(cluster: &Cluster, flows: &Flows, paths: &[FlowPath], (nic, path): (usize, &FlowPath)) -> f64 {
    let own = cluster.gpu_of_nic.get(nic);
    let beside = flows.devices.iter().zip(paths).filter(|(device, other)| {
        let nic = cluster.nics.iter().position(|nic| nic == *device);
        turn_of(other) == turn_of(path) && nic.and_then(|nic| cluster.gpu_of_nic.get(nic)) == own
    });
    beside.count().max(1) as f64
}

fn turn_of(path: &FlowPath) -> u32 {
    match path {
        FlowPath::Gpu { .. } => 1,
        FlowPath::Host { turn, .. } => *turn,
    }
}

/// The draws of one job: by its case and its name within it, so that neither the run's id nor other jobs change them.
pub fn noise_of(cluster: &Cluster, case: &str, job: &str, what: &str) -> Noise {
    noise::stream(cluster.seed, &["job", case, job, what])
}
