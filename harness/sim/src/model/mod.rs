//! How long an operation takes on healthy hardware: published curves over sizes and node counts, by instance family.
//! What slow parts and noise do to these times is decided in `work`; what crosses the fabric, in `traffic`.
//!
//! Between published points the bandwidth is a straight line of logarithms, over sizes and over node counts. Above the
//! largest published size it stays level. Below the smallest, sizes follow the shape of all_reduce on two nodes, and
//! below that the time falls to a latency of 69 us (p5) or 164 us (p4de) at 8 bytes on two nodes, 15 % more for each
//! doubling of nodes. Above 32 nodes bandwidth falls by 4 % with each doubling. Where nothing is published there is a
//! stated ratio of what somebody did:
//!
//! | operation | taken from | ratio |
//! |---|---|---|
//! | reduce_scatter, broadcast, reduce | all_gather of the same nodes | 0.99, 0.95, 0.92 |
//! | all_gather, one node | all_reduce, one node | 0.76 (ring against in-switch reduction) |
//! | alltoall, one node | all_reduce, one node | 0.70 |
//! | gather, scatter, several nodes | alltoall | 0.55 (one GPU's share of the wire) |
//! | sendrecv, several nodes | alltoall | 0.50 (one pair of GPUs crosses each border) |
//! | hypercube | alltoall | 0.60 |
//! | p4de, several nodes, all but all_reduce | p5 | the ratio of the wires, 1/8 |
//! | one rank by itself | copy in its own memory | 1300 GB/s (H100), 650 GB/s (A100) |
//!
//! One rank takes as long in place, where real programs have nothing to copy and print rates beyond any memory.

mod tables;
#[cfg(test)]
mod tests;

use metric::op::Op;
use tables::{KIB, Points};

/// A healthy NIC carries this fraction of its line rate, by itself and in a collective.
pub(crate) const NIC_EFFICIENCY: f64 = 0.955;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    P5,
    P4de,
}

/// The curves of one instance type.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    family: Family,
    /// Against the family's own: other instances are scaled by their wire and their NVLink.
    wire_scale: f64,
    nvlink_scale: f64,
    wire_gb_s: f64,
}

/// Who takes part in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    pub nodes: u32,
    pub ranks: u32,
    /// How many such groups run side by side on the same nodes and share their wires.
    pub side_by_side: u32,
}

impl Model {
    /// By the profile's name, or the one that it is like; figures that differ from the family's scale the curves.
    pub(crate) fn new(names: &[&str], wire_gb_s: f64, nvlink_gb_s: f64) -> Model {
        let is_p4 = names.iter().any(|name| name.trim_start_matches("sim-").starts_with("p4"));
        let (family, wire, nvlink) =
            if is_p4 { (Family::P4de, 50.0, 300.0) } else { (Family::P5, 400.0, 450.0) };
        Model { family, wire_scale: wire_gb_s / wire, nvlink_scale: nvlink_gb_s / nvlink, wire_gb_s }
    }

    /// The time of one operation of `bytes`, the size that nccl-tests shows.
    pub(crate) fn time_us(&self, op: Op, bytes: u64, group: Group) -> f64 {
        let latency = self.latency_us(group.nodes);
        if group.ranks <= 1 {
            return COPY_LATENCY_US + bytes as f64 / (self.copy_gb_s() * 1e3);
        }
        let bandwidth = self.busbw_gb_s(op, bytes.max(64 * KIB), group);
        let by_bandwidth = |bytes: u64| {
            let moved = op.algbw_gb_s(bytes, group.ranks, 1e-3) * op.bus_factor(group.ranks);
            moved / bandwidth / 1e3
        };
        if bytes >= 64 * KIB {
            return by_bandwidth(bytes).max(latency);
        }
        // A straight line of logarithms from the latency at 8 bytes.
        let full = by_bandwidth(64 * KIB).max(latency);
        let along = ((bytes.max(8) as f64) / 8.0).ln() / ((64.0 * KIB as f64) / 8.0).ln();
        latency * (full / latency).powf(along)
    }

    /// Of a large copy in a GPU's own memory.
    pub(crate) fn copy_gb_s(&self) -> f64 {
        match self.family {
            Family::P5 => 1300.0,
            Family::P4de => 650.0,
        }
    }

    pub(crate) fn latency_us(&self, nodes: u32) -> f64 {
        let (one, two) = match self.family {
            Family::P5 => (12.9, 69.0),
            Family::P4de => (21.0, 164.0),
        };
        if nodes <= 1 { one } else { two * (1.0 + 0.15 * (f64::from(nodes) / 2.0).log2()) }
    }

    fn busbw_gb_s(&self, op: Op, bytes: u64, group: Group) -> f64 {
        if group.nodes <= 1 {
            return self.inside_gb_s(op, bytes) * self.nvlink_scale;
        }
        if group.side_by_side > 1 {
            // Groups that share the wires: a ring each, the wires divided among them.
            let ring = self.across_gb_s(Op::AllGather, bytes, group.nodes) * self.wire_scale;
            return ring.min(self.wire_gb_s * 0.9) / f64::from(group.side_by_side);
        }
        self.across_gb_s(op, bytes, group.nodes) * self.wire_scale
    }

    fn inside_gb_s(&self, op: Op, bytes: u64) -> f64 {
        let ratio = match op {
            Op::AllReduce => 1.0,
            Op::AllGather => 0.76,
            Op::ReduceScatter => 0.75,
            Op::Broadcast => 0.74,
            Op::Reduce => 0.72,
            Op::AllToAll => 0.70,
            Op::Gather | Op::Scatter => 0.65,
            Op::SendRecv => 0.68,
            Op::Hypercube => 0.42,
        };
        at_nodes(self.all_reduce(), bytes, 1) * ratio
    }

    fn across_gb_s(&self, op: Op, bytes: u64, nodes: u32) -> f64 {
        if op == Op::AllReduce {
            return self.shaped(self.all_reduce(), bytes, nodes);
        }
        let family = match self.family {
            Family::P5 => 1.0,
            Family::P4de => 1.0 / 8.0,
        };
        let (table, ratio) = match op {
            Op::AllGather => (tables::P5_ALL_GATHER, 1.0),
            Op::ReduceScatter => (tables::P5_ALL_GATHER, 0.99),
            Op::Broadcast => (tables::P5_ALL_GATHER, 0.95),
            Op::Reduce => (tables::P5_ALL_GATHER, 0.92),
            Op::Gather | Op::Scatter => (tables::P5_ALLTOALL, 0.55),
            Op::SendRecv => (tables::P5_ALLTOALL, 0.50),
            Op::Hypercube => (tables::P5_ALLTOALL, 0.60),
            Op::AllReduce | Op::AllToAll => (tables::P5_ALLTOALL, 1.0),
        };
        self.shaped(table, bytes, nodes) * ratio * family
    }

    /// The table's value; below its smallest size by the shape of all_reduce on two nodes.
    fn shaped(&self, table: &[(u32, Points)], bytes: u64, nodes: u32) -> f64 {
        let smallest = table
            .iter()
            .filter(|(at, _)| *at > 1)
            .filter_map(|(_, points)| points.first())
            .map(|(size, _)| *size)
            .max()
            .unwrap_or_default();
        if bytes >= smallest || nodes == 2 && table.as_ptr() == self.all_reduce().as_ptr() {
            return at_nodes(table, bytes, nodes);
        }
        let shape = |bytes| at_nodes(self.all_reduce(), bytes, 2);
        at_nodes(table, smallest, nodes) * shape(bytes) / shape(smallest)
    }

    fn all_reduce(&self) -> &'static [(u32, Points)] {
        match self.family {
            Family::P5 => tables::P5_ALL_REDUCE,
            Family::P4de => tables::P4DE_ALL_REDUCE,
        }
    }
}

/// Launching a kernel that copies.
pub(crate) const COPY_LATENCY_US: f64 = 4.5;

/// Beyond the largest node count of the tables, what is left with each doubling.
const LEFT_PER_DOUBLING: f64 = 0.96;

fn at_nodes(table: &[(u32, Points)], bytes: u64, nodes: u32) -> f64 {
    // Nodes without a figure lie on a line between their neighbours, but what bounds them must be the same: one node
    // is bound by NVLink, and all_reduce on two nodes by a tree, which sends less than a ring.
    let is_all_reduce = table.first().is_some_and(|(at, _)| *at == 1);
    let fewest = if is_all_reduce { 4 } else { 2 };
    let exact = table.iter().find(|(at, _)| *at == nodes);
    if let Some((_, points)) = exact {
        return at_size(points, bytes);
    }
    let below = table.iter().rev().find(|(at, _)| *at >= fewest && *at < nodes);
    let above = table.iter().find(|(at, _)| *at > nodes);
    match (below, above) {
        (Some((low, few)), Some((high, many))) => {
            let along = (f64::from(nodes) / f64::from(*low)).ln() / (f64::from(*high) / f64::from(*low)).ln();
            let (few, many) = (at_size(few, bytes), at_size(many, bytes));
            few * (many / few).powf(along)
        }
        (Some((most, points)), None) => {
            at_size(points, bytes) * LEFT_PER_DOUBLING.powf((f64::from(nodes) / f64::from(*most)).log2())
        }
        (None, Some((_, points))) => at_size(points, bytes),
        (None, None) => 1.0,
    }
}

fn at_size(points: Points, bytes: u64) -> f64 {
    let pairs = points.windows(2).find(|pair| matches!(pair, [_, (high, _)] if bytes <= *high));
    match (pairs, points.first(), points.last()) {
        (Some([(low, from), (high, to)]), ..) if bytes > *low => {
            let along = (bytes as f64 / *low as f64).ln() / (*high as f64 / *low as f64).ln();
            from * (to / from).powf(along)
        }
        // Below the table the time stays, so the bandwidth falls with the size.
        (_, Some((size, value)), _) if bytes <= *size => value * bytes as f64 / *size as f64,
        (_, _, Some((_, value))) => *value,
        _ => 1.0,
    }
}
