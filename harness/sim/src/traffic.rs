//! What must cross the fabric: the bytes that an operation moves between nodes, and each NIC's fixed share of them.
//! How fast it moves is decided in `model` and `work`; which counters it shows in, in `counters`.

use super::model::Group;
use super::noise;
use metric::op::Op;

/// Who sends and who receives among the nodes of a job, in units of equal size, so that all that is sent is received
/// to the byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Crossing {
    pattern: Pattern,
    group: Group,
    /// Ranks of one group on one node.
    local: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Nothing leaves the node.
    Inside,
    /// The node's own NICs carry what its ranks send each other: it sends and receives one unit.
    Loop,
    /// Every node sends and receives one unit.
    Even,
    /// From the first node, which holds the root, through all nodes to the last.
    Down,
    /// The same, towards the root.
    Up,
    /// From the root to each other node, one unit each.
    Spread,
    Gathered,
}

impl Crossing {
    pub(crate) fn new(op: Op, group: Group, gpus: u32) -> Crossing {
        let pattern = match op {
            _ if group.nodes <= 1 => Pattern::Inside,
            Op::Broadcast => Pattern::Down,
            Op::Reduce => Pattern::Up,
            Op::Scatter => Pattern::Spread,
            Op::Gather => Pattern::Gathered,
            _ => Pattern::Even,
        };
        Crossing { pattern, group, local: (gpus / group.side_by_side.max(1)).max(1) }
    }

    /// The same of ranks of one node that reach each other through its NICs alone.
    pub(crate) fn within(group: Group) -> Crossing {
        let pattern = if group.ranks > 1 { Pattern::Loop } else { Pattern::Inside };
        Crossing { pattern, group, local: group.ranks }
    }

    /// Whether anything leaves a node, be it to itself.
    pub(crate) fn moves(&self) -> bool {
        self.pattern != Pattern::Inside
    }

    /// The bytes of one unit, for one operation of `bytes` by all groups that run side by side.
    pub(crate) fn unit_bytes(&self, op: Op, bytes: u64) -> f64 {
        let (size, n, nodes) = (bytes as f64, f64::from(self.group.ranks), f64::from(self.group.nodes));
        let far = (nodes - 1.0) / nodes;
        let one = match op {
            _ if self.pattern == Pattern::Inside => 0.0,
            // All ranks of the node send, each to another.
            Op::AllReduce if self.pattern == Pattern::Loop => size * 2.0 * (n - 1.0),
            Op::SendRecv if self.pattern == Pattern::Loop => size * n,
            Op::Gather | Op::Scatter if self.pattern == Pattern::Loop => size * (n - 1.0) / n,
            _ if self.pattern == Pattern::Loop => size * (n - 1.0),
            // By a tree, each of two nodes sends its whole result once; by a ring, nearly twice.
            Op::AllReduce if self.group.nodes == 2 => size,
            Op::AllReduce => size * 2.0 * (n - 1.0) / n,
            Op::AllGather | Op::ReduceScatter => size * (n - 1.0) / n,
            Op::AllToAll | Op::Hypercube => size * f64::from(self.local) * far,
            Op::Gather | Op::Scatter => size / nodes,
            Op::Broadcast | Op::Reduce | Op::SendRecv => size,
        };
        one * f64::from(self.group.side_by_side.max(1))
    }

    /// Units that the node sends and receives; `node` counts from the one that holds the root.
    pub(crate) fn units(&self, node: u32) -> (u64, u64) {
        let last = self.group.nodes.saturating_sub(1);
        let others = u64::from(last);
        match self.pattern {
            Pattern::Inside => (0, 0),
            Pattern::Even | Pattern::Loop => (1, 1),
            Pattern::Down => (u64::from(node < last), u64::from(node > 0)),
            Pattern::Up => (u64::from(node > 0), u64::from(node < last)),
            Pattern::Spread => {
                if node == 0 {
                    (others, 0)
                } else {
                    (0, 1)
                }
            }
            Pattern::Gathered => {
                if node == 0 {
                    (0, others)
                } else {
                    (1, 0)
                }
            }
        }
    }
}

/// Divides `bytes` over the NICs of a node: nothing to those that do not carry, and to the byte in all.
pub(crate) fn shares(bytes: u64, weights: &[f64]) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return vec![0; weights.len()];
    }
    let mut parts: Vec<u64> =
        weights.iter().map(|weight| (bytes as f64 * (weight / sum)).floor() as u64).collect();
    // Floating point may be off either way by less than a part in a million million; the first carrier takes it.
    let given: u64 = parts.iter().sum();
    if let Some(first) = weights.iter().position(|weight| *weight > 0.0)
        && let Some(part) = parts.get_mut(first)
    {
        *part = (*part + bytes).saturating_sub(given);
    }
    parts
}

/// The plugin fixes each NIC's share: the same device carries the same on every node, near to what the others carry.
pub(crate) fn weights(seed: u64, devices: &[String]) -> Vec<f64> {
    devices
        .iter()
        .map(|device| 1.0 + 0.0008 * (noise::stream(seed, &["share", device]).fraction() - 0.5))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_sent_is_received() {
        for op in Op::ALL {
            for nodes in 1..=9 {
                let crossing = Crossing::new(op, Group { nodes, ranks: nodes * 8, side_by_side: 1 }, 8);
                let (sent, received) = (0..nodes)
                    .map(|node| crossing.units(node))
                    .fold((0, 0), |sum, units| (sum.0 + units.0, sum.1 + units.1));
                assert_eq!(sent, received, "{op} on {nodes}");
                assert_eq!(sent == 0, nodes == 1, "{op} on {nodes}");
            }
        }
    }

    #[test]
    fn shares_add_up_to_the_byte_and_differ_by_less_than_a_fifth_of_a_percent() {
        let devices: Vec<String> = (0..32).map(|nic| format!("rdmap{nic}s0")).collect();
        let mut weights = weights(1, &devices);
        for bytes in [0, 1, 31, 1_000_003, 3_066_570_940_167_774] {
            assert_eq!(shares(bytes, &weights).iter().sum::<u64>(), bytes);
        }
        let parts = shares(1 << 40, &weights);
        let (low, high) = (parts.iter().min().unwrap_or(&0), parts.iter().max().unwrap_or(&0));
        assert!((*high as f64 / *low as f64) < 1.002, "{low} {high}");
        weights[3] = 0.0;
        let parts = shares(1 << 40, &weights);
        assert_eq!((parts[3], parts.iter().sum::<u64>()), (0, 1 << 40));
    }
}
