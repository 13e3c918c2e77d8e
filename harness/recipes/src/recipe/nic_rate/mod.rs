//! Which NIC is slow or dead, from the rates of all flows of a `nic-pairs` case: a pure function over both ends of
//! every flow. The caller decides whether a run fails on it.
//!
//! A flow is good if both its ends are. So one good flow proves both, and a bad flow counts against an end only once
//! the other end is proven by a flow with another partner.

mod ends;
mod evidence;

use self::ends::{End, Ends};
use logs::flow_log::GapKind;
use serde::{Deserialize, Serialize};

/// One flow: `tx_node` is where the data left, whichever end asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowResult {
    /// Node that sent the data: the first of the job's two.
    pub tx_node: String,
    /// Node that received it: the second.
    pub rx_node: String,
    /// The NIC, of one name on both nodes: `rdmap113s0`.
    pub device: String,
    /// GB/s, or why there is no rate.
    pub outcome: Result<f64, GapKind>,
}

/// Rates and verdicts of all NICs of a case, as `judge` returns them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NicRates {
    /// Every device of every node in both directions, in the order given: node, device, direction.
    pub nics: Vec<NicRate>,
    /// The one line for all verdicts where every rate is below the floor; then no NIC is blamed for a low rate.
    pub fleet_low: Option<String>,
    /// The one line where no NIC of any node connected: nothing proves an end of a flow, and no NIC is blamed.
    #[serde(default)]
    pub fleet_unconnected: Option<String>,
}

/// Begins `NicRates::fleet_unconnected`.
pub const UNCONNECTED: &str = "no NIC of ";

/// One NIC in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NicRate {
    /// Node that the NIC belongs to.
    pub node: String,
    /// Name of the NIC: `rdmap113s0`.
    pub device: String,
    /// Seen from this NIC: `Tx` where it sends.
    pub direction: Direction,
    /// The best of its flows.
    pub best_gb_s: Option<f64>,
    /// Each partner with the best rate reached with it, in the order of the nodes.
    pub partners: Vec<(String, Option<f64>)>,
    /// By its best rate; the limit is the floor, or a share of its peers' median if higher.
    pub verdict: NicVerdict,
    /// A culprit may be inconclusive: one whose flows did not connect while its partners' others did.
    pub blame: Blame,
    /// One line: its rate with each partner, and the median of its peers.
    pub evidence: String,
}

/// Direction of the data, seen from a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It sends.
    Tx,
    /// It receives.
    Rx,
}

/// Verdict on a NIC in one direction; the judge makes the assertion's status of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicVerdict {
    /// The best rate reaches the limit, or misses it so closely that it is chance.
    Pass,
    /// The best rate is below the limit, and not by chance.
    Fail,
    /// No flow gave a rate.
    Inconclusive,
}

/// Whether a NIC is at fault, by the flows of its partners with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// It passed, all NICs are slow, none connected, or no flow is evidence.
    None,
    /// Two partners or more, each proven by its flows with others.
    Culprit,
    /// One of this NIC and those of the same device at these nodes.
    Suspect {
        /// Nodes of the partners, without this NIC's own.
        with: Vec<String>,
    },
}

/// Judges all NICs against the floor, and against the median of all others in the same direction, of which a rate may
/// lack the share `peer_tolerance`. Flows of nodes or devices that are not named are left out.
pub fn judge(
    flows: &[FlowResult],
    nodes: &[String],
    devices: &[String],
    floor_gb_s: f64,
    peer_tolerance: f64,
) -> NicRates {
    let ends = Ends::new(flows, nodes, devices, floor_gb_s, peer_tolerance);
    let fleet_low = evidence::fleet_low(&ends, floor_gb_s);
    let fleet_unconnected = evidence::fleet_unconnected(&ends);
    let others = evidence::Others::new(&ends);
    let nics = ends.all().map(|end| {
        let verdict = verdict(&ends, end);
        let blame = match verdict {
            NicVerdict::Pass => Blame::None,
            // A low rate of all has no culprit.
            NicVerdict::Fail if fleet_low.is_some() => Blame::None,
            NicVerdict::Inconclusive if fleet_unconnected.is_some() => Blame::None,
            NicVerdict::Fail | NicVerdict::Inconclusive => blame(&ends, end),
        };
        NicRate {
            node: nodes[end.node].clone(),
            device: devices[end.device].clone(),
            direction: end.direction,
            best_gb_s: ends.best(end),
            partners: ends.partners(end).iter().map(|p| (nodes[p.node].clone(), p.outcome.ok())).collect(),
            verdict,
            blame,
            evidence: evidence::line(&ends, &others, end),
        }
    });
    NicRates { nics: nics.collect(), fleet_low, fleet_unconnected }
}

impl Direction {
    /// As in the dimension `direction`: `tx` or `rx`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Tx => "tx",
            Direction::Rx => "rx",
        }
    }
}

fn verdict(ends: &Ends, end: End) -> NicVerdict {
    match ends.best(end) {
        None => NicVerdict::Inconclusive,
        Some(best) if best >= ends.limit(end) => NicVerdict::Pass,
        Some(best) if is_chance(ends, end, best) => NicVerdict::Pass,
        Some(_) => NicVerdict::Fail,
    }
}

/// So near its limit, both flows of one direction may be low by chance; a slow NIC is slow in the other as well.
const NEAR_LIMIT: f64 = 0.9;

fn is_chance(ends: &Ends, end: End, best: f64) -> bool {
    let direction = if end.direction == Direction::Tx { Direction::Rx } else { Direction::Tx };
    let other = End { direction, ..end };
    let is_good = ends.best(other).is_some_and(|best| best >= ends.limit(other));
    is_good && ends.partners(end).len() > 1 && best >= NEAR_LIMIT * ends.limit(end)
}

/// The culprit or suspects for an end without a good flow.
fn blame(ends: &Ends, end: End) -> Blame {
    let partners = ends.partners(end);
    let is_evidence = |outcome: &Result<f64, GapKind>| matches!(outcome, Ok(_) | Err(GapKind::NotConnected));
    let evidence: Vec<_> = partners.iter().filter(|partner| is_evidence(&partner.outcome)).collect();
    let unproven: Vec<usize> = evidence
        .iter()
        .filter(|partner| {
            let elsewhere = ends.elsewhere(end, partner);
            let proven = if partner.outcome.is_ok() { elsewhere.good } else { elsewhere.connected };
            proven == 0
        })
        .map(|partner| partner.node)
        .collect();
    let named = |with: Vec<usize>| with.into_iter().map(|node| ends.nodes[node].clone()).collect();
    if evidence.is_empty() {
        Blame::None
    } else if !unproven.is_empty() {
        Blame::Suspect { with: named(unproven) }
    } else if evidence.len() < partners.len() || evidence.len() < 2 {
        // With one partner only, it could as well be the path between the two.
        Blame::Suspect { with: named(evidence.iter().map(|partner| partner.node).collect()) }
    } else {
        Blame::Culprit
    }
}

#[cfg(test)]
mod tests;
