//! Which link bounds a collective, by how much, and what part of its time is latency.

use metric::op::Op;

/// What of a node the limits are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Hardware {
    /// As instance profiles name it: `p5`.
    pub instance: String,
    /// Of a node; one rank on each.
    pub gpus: u32,
    /// Of a GPU, one way.
    pub nvlink_gb_s: f64,
    /// All NICs of a node, one way.
    pub wire_gb_s: f64,
}

/// The link that bounds a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// NVLink, within a node, and between two where a tree asks less of the wire.
    NvLink,
    /// The wire of a node, all NICs, along a ring or between pairs.
    Wire,
    /// The wire between the two ends of a tree of two nodes.
    TreeWire,
}

/// An operation at a size and node count, and what the hardware sets for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) instance: String,
    pub(crate) nodes: f64,
    pub(crate) bound: Bound,
    /// The largest busbw of that link, in GB/s.
    pub(crate) limit: f64,
    /// Natural logarithm of the bytes of each node: a ring's efficiency depends on nothing else.
    pub(crate) share: f64,
    /// What a microsecond of latency per node adds to `limit / busbw`.
    pub(crate) latency: f64,
}

impl Point {
    /// `None` for an operation whose limits are not modelled.
    pub(crate) fn new(hardware: &Hardware, op: Op, size_bytes: u64, nodes: u32) -> Option<Point> {
        let (bound, limit) = bound(hardware, op, nodes)?;
        let (n, bytes) = (f64::from(nodes), size_bytes as f64);
        let factor = op.bus_factor(nodes * hardware.gpus);
        Some(Point {
            instance: hardware.instance.clone(),
            nodes: n,
            bound,
            limit,
            share: (bytes / n).ln(),
            // Time is `factor * bytes / busbw`; GB/s times microseconds are 1000 bytes.
            latency: n * limit * 1e3 / (factor * bytes),
        })
    }
}

fn bound(hardware: &Hardware, op: Op, nodes: u32) -> Option<(Bound, f64)> {
    let (nvlink, wire) = (hardware.nvlink_gb_s, hardware.wire_gb_s);
    let ranks = nodes * hardware.gpus;
    match (op, nodes) {
        (Op::AllReduce | Op::AllGather | Op::AllToAll, 1) => Some((Bound::NvLink, nvlink)),
        // In a tree of two nodes each sends the payload once, where a ring sends nearly twice as much.
        (Op::AllReduce, 2) => {
            let tree = op.bus_factor(ranks) * wire;
            Some(if nvlink <= tree { (Bound::NvLink, nvlink) } else { (Bound::TreeWire, tree) })
        }
        // busbw is the rate on every edge of a ring, and one of them leaves each node.
        (Op::AllReduce | Op::AllGather, _) => Some((Bound::Wire, wire)),
        // Of what a rank sends to R - 1 others, only R - g leave its node.
        (Op::AllToAll, _) => {
            let (r, g) = (f64::from(ranks), f64::from(hardware.gpus));
            Some((Bound::Wire, wire / g * (r - 1.0) / (r - g)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p5() -> Hardware {
        Hardware { instance: "p5".to_owned(), gpus: 8, nvlink_gb_s: 450.0, wire_gb_s: 400.0 }
    }

    #[test]
    fn limits_follow_from_the_links() {
        let b200 = Hardware { nvlink_gb_s: 900.0, ..p5() };
        let cases = [
            (p5(), Op::AllReduce, 1, Some((Bound::NvLink, 450.0))),
            (p5(), Op::AllReduce, 2, Some((Bound::NvLink, 450.0))),
            (b200, Op::AllReduce, 2, Some((Bound::TreeWire, 750.0))),
            (p5(), Op::AllReduce, 3, Some((Bound::Wire, 400.0))),
            (p5(), Op::AllGather, 2, Some((Bound::Wire, 400.0))),
            (p5(), Op::AllToAll, 2, Some((Bound::Wire, 93.75))),
            (p5(), Op::Broadcast, 2, None),
        ];
        for (hardware, op, nodes, expected) in cases {
            assert_eq!(bound(&hardware, op, nodes), expected, "{op} on {nodes} nodes");
        }
    }

    #[test]
    fn latency_is_a_fraction_of_the_time_on_the_wire() {
        let point = Point::new(&p5(), Op::AllGather, 1 << 30, 4).expect("a point");
        // 1 GiB on 4 nodes: 31/32 of it at 400 GB/s take 2600 us, of which 4 us are 0.15 %.
        assert!((point.latency - 4.0 / 2600.5).abs() < 1e-5, "{}", point.latency);
    }
}
