//! The most bandwidth that an operation can show on so many ranks and nodes: bytes that must cross a link, over the
//! rate of that link. Everything else (latency, protocol, copies) only makes it less.
//!
//! In what follows S is the size that nccl-tests prints, t the time, n the nodes, g the ranks of a node, R = n g the
//! ranks, W the wire of a node (all NICs, one way), L the NVLink rate of a GPU (one way). algbw is S / t and busbw is
//! algbw times the factor of the operation, so each line below bounds S / t first.

use crate::inventory::Instance;
use crate::suite::Algorithm;
use metric::op::Op;

/// The loosest where the algorithm is unknown. One rank moves nothing between ranks: zero where the factor is zero,
/// without limit where nccl-tests still prints the copy in the rank's own memory.
pub fn busbw_ceiling(
    op: Op,
    ranks: u32,
    nodes: u32,
    algorithm: Option<Algorithm>,
    instance: &Instance,
) -> f64 {
    let factor = op.bus_factor(ranks.max(1));
    if ranks <= 1 {
        return if factor == 0.0 { 0.0 } else { f64::INFINITY };
    }
    factor * algbw_ceiling(op, ranks, nodes, algorithm, instance)
}

/// In GB/s, the loosest where the algorithm is unknown; infinite for one rank.
pub fn algbw_ceiling(
    op: Op,
    ranks: u32,
    nodes: u32,
    algorithm: Option<Algorithm>,
    instance: &Instance,
) -> f64 {
    if ranks <= 1 {
        return f64::INFINITY;
    }
    let fabric = Fabric {
        ranks: f64::from(ranks),
        nodes: f64::from(nodes.max(1)),
        per_node: (f64::from(ranks) / f64::from(nodes.max(1))).max(1.0),
        wire: instance.node_wire_gb_s(),
        nvlink: instance.nvlink_gb_s,
        // The switches of A100 systems cannot reduce; those of anything newer, or unknown, may.
        switch_reduces: !instance.gpu.contains("A100"),
    };
    let inside = fabric.inside(op, algorithm);
    if nodes <= 1 { inside } else { fabric.between(op, algorithm).min(inside) }
}

struct Fabric {
    ranks: f64,
    nodes: f64,
    per_node: f64,
    wire: f64,
    nvlink: f64,
    switch_reduces: bool,
}

impl Fabric {
    /// What the NICs of a node allow.
    fn between(&self, op: Op, algorithm: Option<Algorithm>) -> f64 {
        let (n, r, w) = (self.nodes, self.ranks, self.wire);
        let others = (n - 1.0) / n;
        match (op, algorithm) {
            // A ring has one way out of each node, and busbw is by its definition the rate on every edge: busbw <= W.
            (Op::AllReduce, Some(Algorithm::Ring)) => w * r / (2.0 * (r - 1.0)),
            (Op::AllGather | Op::ReduceScatter, Some(Algorithm::Ring)) => w * r / (r - 1.0),
            // Switches that reduce on the way would let each node send its payload only once.
            (Op::AllReduce, Some(Algorithm::CollnetDirect | Algorithm::CollnetChain)) => w,
            // However it is done, a node hands out its share reduced and the results: all nodes together send at least
            // 2 (n-1) S, so that the busiest sends 2 (n-1)/n S. On two nodes this is S, as in a tree: algbw <= W.
            (Op::AllReduce, _) => w / (2.0 * others),
            // A node lacks, or must give away, the (n-1)/n of S that belong to the others.
            (Op::AllGather | Op::ReduceScatter, _) => w / others,
            // Each rank holds S, of which (n-1)/n go to other nodes, and g ranks share the wire of a node. In a
            // hypercube the masks below g stay within the node; those above send (n-1) g S / R per rank, the same sum.
            // nccl-tests counts (R-1)/R of S for the hypercube's algbw.
            (Op::AllToAll, _) => w / (self.per_node * others),
            (Op::Hypercube, _) => w / (self.per_node * others) * (r - 1.0) / r,
            // The root's node sends, or receives, what belongs to the ranks of the other nodes.
            (Op::Scatter | Op::Gather, _) => w / others,
            // Every node but the root's receives, or sends, S at least once.
            (Op::Broadcast | Op::Reduce, _) => w,
            // Each rank sends S to the next: only the last of a node goes out, over as many NICs as it can reach.
            (Op::SendRecv, _) => w,
        }
    }

    /// What the links of a GPU allow; across nodes it may use its own NICs beside them.
    fn inside(&self, op: Op, algorithm: Option<Algorithm>) -> f64 {
        let r = self.ranks;
        let own_nics = if self.nodes > 1.0 { self.wire / self.per_node } else { 0.0 };
        let link = self.nvlink + own_nics;
        match (op, algorithm) {
            // In a ring each GPU sends 2 (R-1)/R S: busbw <= L.
            (Op::AllReduce, Some(Algorithm::Ring)) => link * r / (2.0 * (r - 1.0)),
            // With a switch that reduces and multiplies, each GPU gives its payload once and takes the result once:
            // algbw <= L, so that busbw may stand above the link.
            (Op::AllReduce, _) if self.switch_reduces => link,
            // Without one the share of the node's own GPUs is sent twice, once reduced and once as the result.
            (Op::AllReduce, _) => {
                let g = self.per_node;
                if g > 1.0 { link * g / (2.0 * (g - 1.0)) } else { link }
            }
            // What a GPU lacks, or gives away: (R-1)/R of S; busbw <= L. The same sum leaves the root of a scatter.
            (Op::AllGather | Op::ReduceScatter | Op::AllToAll | Op::Scatter | Op::Gather, _) => {
                link * r / (r - 1.0)
            }
            // nccl-tests counts (R-1)/R of S for the hypercube's algbw, and that is what a GPU sends.
            (Op::Hypercube, _) => link,
            // Each GPU but the root receives, or sends, S; in sendrecv each GPU does.
            (Op::Broadcast | Op::Reduce | Op::SendRecv, _) => link,
        }
    }
}
