//! What each NIC of a node has moved at any moment of a job. What must cross is computed in `traffic`, how fast in
//! `work`; here both become bytes over time, whole and conserved: what all NICs sent at the end is what all received.

use super::cluster::Cluster;
use super::flows::MARK_S;
use super::flows::directions;
use super::over::Over;
use super::traffic::Crossing;
use super::work::{self, Table, Work};
use metric::op::Op;

/// One NIC over one job: its totals, and which part of them it has moved at a moment.
#[derive(Debug, Clone, Default)]
pub struct NicTimeline {
    /// Sent by reads or writes, sent by messages; received alike.
    totals: [u64; 4],
    steps: std::rc::Rc<Steps>,
}

impl NicTimeline {
    /// After so many seconds of the job.
    pub(crate) fn moved(&self, at_s: f64) -> [u64; 4] {
        let part = self.steps.part(at_s);
        match part {
            _ if part >= 1.0 => self.totals,
            _ if part <= 0.0 => [0; 4],
            _ => self.totals.map(|total| (total as f64 * part) as u64),
        }
    }
}

/// Bytes moved evenly from one moment to the next, up to the moment at which all stops.
#[derive(Debug, Default)]
struct Steps {
    /// From, to, moved before, moved within.
    steps: Vec<(f64, f64, f64, f64)>,
    stop_s: f64,
    /// Until the moment from which on bytes are counted.
    before: f64,
    /// From there until the stop.
    total: f64,
}

impl Steps {
    fn new(pieces: impl Iterator<Item = (f64, f64, f64)>, (since_s, stop_s): (f64, f64)) -> Steps {
        let mut before = 0.0;
        let steps = pieces
            .map(|(from, to, bytes)| {
                before += bytes;
                (from, to, before - bytes, bytes)
            })
            .collect();
        let mut made = Steps { steps, stop_s, before: 0.0, total: 0.0 };
        made.before = made.until(since_s);
        made.total = (made.until(stop_s) - made.before).max(0.0);
        made
    }

    fn until(&self, at_s: f64) -> f64 {
        let at_s = at_s.min(self.stop_s);
        let step = self.steps.partition_point(|(from, ..)| *from <= at_s).checked_sub(1);
        let Some((from, to, before, bytes)) = step.and_then(|step| self.steps.get(step)) else { return 0.0 };
        before + bytes * ((at_s - from) / (to - from).max(1e-9)).clamp(0.0, 1.0)
    }

    fn part(&self, at_s: f64) -> f64 {
        if self.total > 0.0 { (self.until(at_s) - self.before) / self.total } else { 0.0 }
    }
}

/// Every NIC of a node, in the profile's order.
pub(crate) fn nic_timelines(cluster: &Cluster, over: &Over, node: usize) -> Vec<NicTimeline> {
    nic_timelines_since(cluster, over, node, f64::NEG_INFINITY)
}

/// The same of what is moved from a second of the job on, and of nothing before it.
pub fn nic_timelines_since(cluster: &Cluster, over: &Over, node: usize, since_s: f64) -> Vec<NicTimeline> {
    let execution = &over.execution;
    let span = (since_s, execution.work_to_s.min(over.run_s));
    let idle = || vec![NicTimeline::default(); cluster.nics.len()];
    match &execution.work {
        Work::Tables(tables) => match tables.as_slice() {
            [table]
                if table.world.crossing(table.options.op, cluster.gpus).moves()
                    && cluster.world.ofi_plugin =>
            {
                collective(cluster, over, table, node, span)
            }
            // Worlds within nodes move nothing between them.
            _ => idle(),
        },
        Work::Flows(flows, wanted) => {
            let name = execution.nodes.get(node).map_or("", String::as_str);
            let (sends, receives) = directions(wanted, name);
            let bytes = wanted.message_bytes as f64 * wanted.iterations as f64;
            let from_s = execution.work_from_s + MARK_S;
            let mut timelines = idle();
            for (flow, device) in flows.iter().zip(&wanted.devices) {
                let nic =
                    cluster.nics.iter().position(|nic| nic == device).and_then(|nic| timelines.get_mut(nic));
                let (Some(nic), Some(_)) = (nic, flow.rate_gb_s) else { continue };
                let from_s = from_s + flow.from_s;
                let steps = Steps::new([(from_s, from_s + flow.seconds, bytes)].into_iter(), span);
                let total = steps.total as u64;
                let way = |does: bool| if does { total } else { 0 };
                nic.totals = [way(sends), 0, way(receives), 0];
                nic.steps = std::rc::Rc::new(steps);
            }
            timelines
        }
        Work::Command { seconds, .. } => match &execution.training {
            Some(training) if training.nodes > 1 && cluster.world.ofi_plugin => {
                let (group, bytes) = training.across();
                let crossing = Crossing::new(Op::AllReduce, group, cluster.gpus);
                let all = crossing.unit_bytes(Op::AllReduce, bytes) * f64::from(training.steps);
                let piece = (execution.work_from_s, execution.work_from_s + seconds, all);
                carried(cluster, over, &crossing, [piece].into_iter(), (node as u32, node), span)
            }
            _ => idle(),
        },
        Work::Gpus(_) => idle(),
    }
}

fn collective(
    cluster: &Cluster,
    over: &Over,
    table: &Table,
    node: usize,
    span: (f64, f64),
) -> Vec<NicTimeline> {
    let execution = &over.execution;
    let op = table.options.op;
    let crossing = table.world.crossing(op, cluster.gpus);
    let pieces = table.rounds().into_iter().map(|round| {
        let from = execution.work_from_s + round.from_s;
        let unit = crossing.unit_bytes(op, round.bytes) * f64::from(round.operations());
        (from, from + round.seconds(), unit)
    });
    let of_group = (node - table.world.nodes.start) as u32;
    carried(cluster, over, &crossing, pieces, (of_group, node), span)
}

/// What each NIC of a node moves of units that cross piece by piece; the node is given as the group counts it, and as
/// the job does.
fn carried(
    cluster: &Cluster,
    over: &Over,
    crossing: &Crossing,
    pieces: impl Iterator<Item = (f64, f64, f64)>,
    (of_group, node): (u32, usize),
    span: (f64, f64),
) -> Vec<NicTimeline> {
    let steps = std::rc::Rc::new(Steps::new(pieces, span));
    // Whole units, divided into reads or writes and messages before they are handed to nodes: the same on both ends.
    let unit = steps.total as u64;
    let small = unit / 1000 * 7;
    let (sent, received) = crossing.units(of_group);
    let split =
        |units: u64, bytes: u64| work::split(cluster, &over.execution.active_faults, node, units * bytes);
    let ways = [
        split(sent, unit - small),
        split(sent, small),
        split(received, unit - small),
        split(received, small),
    ];
    (0..cluster.nics.len())
        .map(|nic| NicTimeline {
            totals: ways.each_ref().map(|way| way.get(nic).copied().unwrap_or_default()),
            steps: steps.clone(),
        })
        .collect()
}
