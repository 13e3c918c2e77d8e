//! How fast a collective is on a healthy pretend cluster, and how one slow NIC or GPU slows it for all.
//!
//! Curves over size are fitted through published figures of p5 and p4de, per operation and number of nodes. What was
//! never published is derived by a stated ratio. A collective runs at the pace of its slowest part: the plugin fixes
//! each NIC's share, so a slow NIC makes every NIC of the job wait.

use recipes::op::Op;

/// What the model knows of an instance type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    pub family: Family,
    pub gpus: u32,
    pub nics: u32,
    pub nic_line_rate_gb_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    P4de,
    P5,
}

/// What is left of the healthy rate of the slowest NIC and GPU of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowest {
    pub nic: f64,
    pub gpu: f64,
}

impl Slowest {
    pub const HEALTHY: Slowest = Slowest { nic: 1.0, gpu: 1.0 };
}

/// Of line rate, what a healthy NIC moves in a flow of its own.
pub const NIC_EFFICIENCY: f64 = 0.955;

impl Machine {
    /// The time of one operation in microseconds, without noise.
    pub fn time_us(&self, op: Op, nodes: u32, size_bytes: u64, slowest: Slowest) -> f64 {
        let ranks = nodes * self.gpus;
        let busbw = self.busbw_gb_s(op, nodes, size_bytes);
        let floor = self.latency_us(nodes);
        let healthy = self.time_of(op, ranks, size_bytes, busbw).max(floor);
        let moving = healthy - floor;
        floor + moving * self.slowdown(op, nodes, busbw, slowest)
    }

    /// The time of one all_reduce of a rank alone: a copy in its own memory.
    pub fn own_memory_us(&self, size_bytes: u64, gpu_left: f64) -> f64 {
        let gb_s = match self.family {
            Family::P5 => 1310.0,
            Family::P4de => 655.0,
        };
        4.0 + size_bytes as f64 / (gb_s * gpu_left * 1e3)
    }

    /// Bytes that leave each node through its NICs in one operation.
    pub fn bytes_out_per_node(&self, op: Op, nodes: u32, size_bytes: u64) -> f64 {
        if nodes < 2 {
            return 0.0;
        }
        let (n, size) = (f64::from(nodes), size_bytes as f64);
        let gpus = f64::from(self.gpus);
        let ranks = n * gpus;
        match op {
            // A tree of two nodes sends one payload; from three on a ring carries twice that.
            Op::AllReduce if nodes == 2 => size,
            Op::AllReduce => size * 2.0 * (ranks - 1.0) / ranks,
            Op::AllGather | Op::ReduceScatter => size * (ranks - 1.0) / ranks,
            Op::Broadcast | Op::Reduce | Op::SendRecv => size,
            Op::Gather | Op::Scatter => size * (n - 1.0) / n,
            Op::AllToAll => gpus * size * (n - 1.0) / n,
            Op::Hypercube => gpus * size * (n - 1.0) / n / 2.0,
        }
    }

    /// Bus bandwidth on a healthy cluster, GB/s.
    pub fn busbw_gb_s(&self, op: Op, nodes: u32, size_bytes: u64) -> f64 {
        let (basis, ratio) = self.basis(op, nodes);
        let known = curves(self.family, basis);
        let at = |curve: &Curve| on_curve(curve, size_bytes);
        let found = match known.iter().position(|curve| curve.nodes >= nodes) {
            Some(0) => known.first().map(at),
            Some(upper) => match (known.get(upper - 1), known.get(upper)) {
                (Some(_), Some(above)) if above.nodes == nodes => Some(at(above)),
                (Some(below), Some(above)) => {
                    let span = (f64::from(above.nodes) / f64::from(below.nodes)).ln();
                    let part = (f64::from(nodes) / f64::from(below.nodes)).ln() / span;
                    Some((at(below).ln() * (1.0 - part) + at(above).ln() * part).exp())
                }
                _ => None,
            },
            // Beyond what was published: a gentle fall with every doubling.
            None => known.last().map(|last| {
                let doublings = (f64::from(nodes) / f64::from(last.nodes)).log2();
                at(last) * 0.96f64.powf(doublings)
            }),
        };
        let busbw = ratio * found.unwrap_or(1.0);
        // Between published node counts a curve may ask more of the wire than there is.
        let can = NIC_EFFICIENCY * self.nic_line_rate_gb_s;
        busbw * (can / self.per_nic_gb_s(op, nodes, busbw)).min(1.0)
    }

    /// What each NIC must carry per second for an operation to run at that bus bandwidth; nothing on one node.
    fn per_nic_gb_s(&self, op: Op, nodes: u32, busbw_gb_s: f64) -> f64 {
        let probe = 1u64 << 30;
        let seconds = self.time_of(op, nodes * self.gpus, probe, busbw_gb_s) / 1e6;
        self.bytes_out_per_node(op, nodes, probe) / f64::from(self.nics) / seconds / 1e9
    }

    /// Which published curve an operation follows, and in what ratio.
    fn basis(&self, op: Op, nodes: u32) -> (Op, f64) {
        if nodes == 1 {
            // Only all_reduce is published for single nodes; the others lack its in-switch reduction.
            let ratio = match op {
                Op::AllReduce => 1.0,
                Op::AllGather | Op::ReduceScatter => 0.78,
                Op::Broadcast | Op::Reduce => 0.76,
                Op::AllToAll => 0.72,
                Op::Gather | Op::Scatter | Op::SendRecv => 0.70,
                Op::Hypercube => 0.30,
            };
            return (Op::AllReduce, ratio);
        }
        match (self.family, op) {
            (Family::P5, Op::AllReduce | Op::AllGather | Op::AllToAll) => (op, 1.0),
            (Family::P5, Op::ReduceScatter) => (Op::AllGather, 0.99),
            (Family::P5, Op::Broadcast) => (Op::AllGather, 0.95),
            (Family::P5, Op::Reduce) => (Op::AllGather, 0.92),
            (Family::P5, Op::Gather | Op::Scatter) => (Op::AllToAll, 0.60),
            (Family::P5, Op::SendRecv) => (Op::AllToAll, 0.55),
            (Family::P5, Op::Hypercube) => (Op::AllToAll, 0.50),
            (Family::P4de, Op::AllReduce) => (Op::AllReduce, 1.0),
            (Family::P4de, Op::AllGather | Op::ReduceScatter) => (Op::AllReduce, 0.57),
            (Family::P4de, Op::Broadcast | Op::Reduce) => (Op::AllReduce, 0.54),
            (Family::P4de, Op::AllToAll) => (Op::AllReduce, 0.13),
            (Family::P4de, Op::Gather | Op::Scatter | Op::SendRecv) => (Op::AllReduce, 0.12),
            (Family::P4de, Op::Hypercube) => (Op::AllReduce, 0.07),
        }
    }

    fn time_of(&self, op: Op, ranks: u32, size_bytes: u64, busbw_gb_s: f64) -> f64 {
        let algbw = busbw_gb_s / op.bus_factor(ranks);
        // Hypercube counts less than the size shown.
        let counted = op.algbw_gb_s(size_bytes, ranks, 1.0);
        counted / algbw
    }

    /// By how much the moving part of an operation is stretched.
    fn slowdown(&self, op: Op, nodes: u32, busbw_gb_s: f64, slowest: Slowest) -> f64 {
        let by_gpu = 1.0 / slowest.gpu;
        if nodes < 2 || slowest.nic >= 1.0 {
            return by_gpu;
        }
        let can = slowest.nic * NIC_EFFICIENCY * self.nic_line_rate_gb_s;
        by_gpu.max(self.per_nic_gb_s(op, nodes, busbw_gb_s) / can)
    }

    fn latency_us(&self, nodes: u32) -> f64 {
        let hops = f64::from(nodes.max(1)).log2();
        match (self.family, nodes) {
            (Family::P5, 1) => 28.0,
            (Family::P4de, 1) => 22.0,
            (Family::P5, _) => 62.0 + 7.0 * hops,
            (Family::P4de, _) => 150.0 + 12.0 * hops,
        }
    }
}

struct Curve {
    nodes: u32,
    /// MiB and GB/s, rising in size.
    points: &'static [(f64, f64)],
}

/// Straight lines between the points, both axes logarithmic; below the first it falls with the size, above the last
/// it is flat.
fn on_curve(curve: &Curve, size_bytes: u64) -> f64 {
    let mib = size_bytes as f64 / (1u64 << 20) as f64;
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return 1.0 };
    if mib <= first.0 {
        // A time that is half latency at the first point.
        return first.1 * (2.0 * mib / first.0) / (1.0 + mib / first.0);
    }
    if mib >= last.0 {
        return last.1;
    }
    let above = curve.points.partition_point(|point| point.0 < mib);
    let (Some(low), Some(high)) = (curve.points.get(above - 1), curve.points.get(above)) else {
        return last.1;
    };
    let part = (mib / low.0).ln() / (high.0 / low.0).ln();
    (low.1.ln() * (1.0 - part) + high.1.ln() * part).exp()
}

fn curves(family: Family, op: Op) -> &'static [Curve] {
    match (family, op) {
        (Family::P4de, _) => P4DE_ALL_REDUCE,
        (Family::P5, Op::AllGather) => P5_ALL_GATHER,
        (Family::P5, Op::AllToAll) => P5_ALLTOALL,
        (Family::P5, _) => P5_ALL_REDUCE,
    }
}

/// Published: AWS's nccl-tests pages (1 and 2 nodes), and a public scaling study (4 to 32 nodes).
const P5_ALL_REDUCE: &[Curve] = &[
    Curve {
        nodes: 1,
        points: &[
            (64.0, 359.5),
            (1024.0, 441.8),
            (2048.0, 444.0),
            (4096.0, 476.0),
            (8192.0, 480.4),
            (16384.0, 483.1),
        ],
    },
    Curve {
        nodes: 2,
        points: &[
            (0.0625, 0.91),
            (1.0, 15.95),
            (8.0, 76.8),
            (16.0, 105.52),
            (64.0, 209.2),
            (128.0, 289.2),
            (256.0, 342.8),
            (512.0, 393.3),
            (1024.0, 437.0),
            (2048.0, 443.7),
            (4096.0, 465.9),
            (8192.0, 479.3),
            (16384.0, 487.1),
        ],
    },
    Curve {
        nodes: 4,
        points: &[
            (64.0, 152.4),
            (128.0, 229.5),
            (256.0, 273.3),
            (512.0, 278.4),
            (1024.0, 280.3),
            (2048.0, 347.6),
            (4096.0, 354.5),
            (8192.0, 357.0),
        ],
    },
    Curve {
        nodes: 8,
        points: &[
            (128.0, 156.3),
            (512.0, 272.6),
            (1024.0, 274.5),
            (2048.0, 278.2),
            (4096.0, 351.3),
            (8192.0, 355.4),
        ],
    },
    Curve {
        nodes: 16,
        points: &[
            (128.0, 129.2),
            (512.0, 223.8),
            (1024.0, 269.2),
            (2048.0, 270.9),
            (4096.0, 306.2),
            (8192.0, 356.3),
        ],
    },
    Curve {
        nodes: 32,
        points: &[
            (128.0, 115.8),
            (512.0, 156.8),
            (1024.0, 220.1),
            (2048.0, 269.5),
            (4096.0, 302.8),
            (8192.0, 321.1),
        ],
    },
];

/// Published: the same scaling study, and a readiness engine's results at 16 GiB.
const P5_ALL_GATHER: &[Curve] = &[
    Curve { nodes: 2, points: &[(512.0, 275.5), (1024.0, 322.0), (2048.0, 328.6), (16384.0, 338.6)] },
    Curve { nodes: 4, points: &[(512.0, 220.6), (1024.0, 288.5), (2048.0, 330.9)] },
    Curve { nodes: 8, points: &[(512.0, 261.3), (1024.0, 224.5), (2048.0, 293.7)] },
    Curve { nodes: 16, points: &[(512.0, 220.0), (1024.0, 261.9), (2048.0, 265.2)] },
    Curve { nodes: 32, points: &[(512.0, 146.4), (1024.0, 222.4), (2048.0, 262.8)] },
];

const P5_ALLTOALL: &[Curve] = &[
    Curve { nodes: 2, points: &[(512.0, 75.8), (1024.0, 77.7), (2048.0, 79.3), (16384.0, 79.1)] },
    Curve { nodes: 4, points: &[(64.0, 45.1), (512.0, 53.8), (1024.0, 53.8), (2048.0, 54.1)] },
    Curve { nodes: 8, points: &[(64.0, 40.4), (512.0, 46.6), (1024.0, 48.3), (2048.0, 49.6)] },
    Curve { nodes: 16, points: &[(512.0, 40.1), (1024.0, 42.4), (2048.0, 44.2)] },
    Curve { nodes: 32, points: &[(512.0, 33.1), (1024.0, 38.7), (2048.0, 40.8)] },
];

/// Published: AWS's nccl-tests page (2 nodes), and single nodes of the same GPU elsewhere. Four nodes are a guess.
const P4DE_ALL_REDUCE: &[Curve] = &[
    Curve { nodes: 1, points: &[(64.0, 170.0), (1024.0, 230.8), (16384.0, 234.9)] },
    Curve {
        nodes: 2,
        points: &[
            (0.0625, 0.54),
            (1.0, 6.35),
            (16.0, 26.39),
            (64.0, 47.58),
            (128.0, 64.3),
            (256.0, 69.89),
            (512.0, 74.3),
            (1024.0, 76.79),
            (2048.0, 78.33),
        ],
    },
    Curve { nodes: 4, points: &[(64.0, 27.0), (256.0, 37.0), (1024.0, 42.0), (2048.0, 43.0)] },
];

#[cfg(test)]
mod tests {
    use super::*;

    const P5: Machine = Machine { family: Family::P5, gpus: 8, nics: 32, nic_line_rate_gb_s: 12.5 };
    const P4DE: Machine = Machine { family: Family::P4de, gpus: 8, nics: 4, nic_line_rate_gb_s: 12.5 };

    fn shown(machine: Machine, op: Op, nodes: u32, mib: u64, slowest: Slowest) -> f64 {
        let size = mib << 20;
        let ranks = nodes * machine.gpus;
        op.algbw_gb_s(size, ranks, machine.time_us(op, nodes, size, slowest)) * op.bus_factor(ranks)
    }

    #[test]
    fn published_figures_are_met_within_three_percent() {
        let rows = [
            (P5, Op::AllReduce, 1, 1024, 441.8),
            (P5, Op::AllReduce, 1, 16384, 483.1),
            (P5, Op::AllReduce, 2, 64, 209.2),
            (P5, Op::AllReduce, 2, 1024, 437.0),
            (P5, Op::AllReduce, 2, 16384, 487.1),
            (P5, Op::AllReduce, 4, 8192, 357.0),
            (P5, Op::AllReduce, 8, 1024, 274.5),
            (P5, Op::AllReduce, 16, 512, 223.8),
            (P5, Op::AllReduce, 32, 8192, 321.1),
            (P5, Op::AllGather, 2, 16384, 338.6),
            (P5, Op::AllGather, 8, 1024, 224.5),
            (P5, Op::AllGather, 32, 512, 146.4),
            (P5, Op::AllToAll, 4, 512, 53.8),
            (P5, Op::AllToAll, 32, 2048, 40.8),
            (P4DE, Op::AllReduce, 2, 64, 47.6),
            (P4DE, Op::AllReduce, 2, 2048, 78.3),
            (P4DE, Op::AllReduce, 1, 1024, 230.8),
        ];
        for (machine, op, nodes, mib, published) in rows {
            let shown = shown(machine, op, nodes, mib, Slowest::HEALTHY);
            let off = (shown / published - 1.0).abs();
            println!(
                "{op} {nodes} nodes {mib} MiB: {shown:.1} against {published}, off by {:.2} %",
                off * 100.0
            );
            assert!(off < 0.03, "{op} {nodes} nodes {mib} MiB: {shown} against {published}");
        }
    }

    #[test]
    fn small_sizes_cost_the_published_latency() {
        let p5 = P5.time_us(Op::AllReduce, 2, 8, Slowest::HEALTHY);
        let p4de = P4DE.time_us(Op::AllReduce, 2, 8, Slowest::HEALTHY);
        assert!((65.0..=75.0).contains(&p5), "{p5}");
        assert!((155.0..=170.0).contains(&p4de), "{p4de}");
    }

    #[test]
    fn no_operation_asks_more_of_a_nic_than_it_has() {
        for machine in [P5, P4DE] {
            for op in Op::ALL {
                for nodes in [2, 3, 4, 8, 16, 32, 64, 512] {
                    let size = 16u64 << 30;
                    let seconds = machine.time_us(op, nodes, size, Slowest::HEALTHY) / 1e6;
                    let per_nic =
                        machine.bytes_out_per_node(op, nodes, size) / f64::from(machine.nics) / seconds / 1e9;
                    assert!(per_nic <= machine.nic_line_rate_gb_s, "{op} on {nodes} nodes: {per_nic} GB/s");
                }
            }
        }
    }

    #[test]
    fn a_slow_part_never_helps_and_a_slow_nic_touches_no_single_node() {
        for op in Op::ALL {
            let healthy = shown(P5, op, 2, 8192, Slowest::HEALTHY);
            for left in [0.2, 0.5, 0.9] {
                assert!(
                    shown(P5, op, 2, 8192, Slowest { nic: left, gpu: 1.0 }) <= healthy * 1.000_001,
                    "{op}"
                );
                assert!(shown(P5, op, 2, 8192, Slowest { nic: 1.0, gpu: left }) < healthy, "{op}");
            }
            let alone = shown(P5, op, 1, 8192, Slowest::HEALTHY);
            assert_eq!(shown(P5, op, 1, 8192, Slowest { nic: 0.1, gpu: 1.0 }), alone, "{op}");
        }
        let slow = shown(P5, Op::AllGather, 2, 8192, Slowest { nic: 0.4, gpu: 1.0 });
        assert!(slow < 0.6 * shown(P5, Op::AllGather, 2, 8192, Slowest::HEALTHY), "{slow}");
    }
}
