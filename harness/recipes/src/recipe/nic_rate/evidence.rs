//! The lines that a person reads: a NIC's rates beside those of its neighbours, and the one line for a whole fleet.

use super::UNCONNECTED;
use super::ends::{End, Ends, median_without};
use logs::flow_log::GapKind;
use std::collections::BTreeSet;

/// The rates that each NIC is compared with: all of its node, or of its device on all nodes, in one direction, ascending.
pub(super) struct Others {
    by_node: Vec<Vec<f64>>,
    by_device: Vec<Vec<f64>>,
}

impl Others {
    pub(super) fn new(ends: &Ends) -> Self {
        let mut by_node = vec![Vec::new(); ends.nodes.len() * 2];
        let mut by_device = vec![Vec::new(); ends.devices.len() * 2];
        for end in ends.all() {
            let Some(best) = ends.best(end) else { continue };
            by_node[end.node * 2 + end.direction as usize].push(best);
            by_device[end.device * 2 + end.direction as usize].push(best);
        }
        for rates in by_node.iter_mut().chain(&mut by_device) {
            rates.sort_by(f64::total_cmp);
        }
        Others { by_node, by_device }
    }

    fn beside(&self, ends: &Ends, end: End) -> String {
        let rates = [
            &self.by_node[end.node * 2 + end.direction as usize],
            &self.by_device[end.device * 2 + end.direction as usize],
        ];
        for (rates, many, one) in [(rates[0], "", ""), (rates[1], " nodes", " node")] {
            let (count, median) = match ends.best(end) {
                Some(own) => (rates.len().saturating_sub(1), median_without(rates, own)),
                None => (rates.len(), rates.get(rates.len() / 2).copied()),
            };
            if let (1.., Some(median)) = (count, median) {
                return format!(", the other {count}{} at {median:.1}", if count == 1 { one } else { many });
            }
        }
        String::new()
    }
}

/// Such as `p5-003 rdmap113s0: 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9`.
pub(super) fn line(ends: &Ends, others: &Others, end: End) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut before = String::new();
    for partner in ends.partners(end) {
        let what = match partner.outcome {
            Ok(rate) => format!("{rate:.1} GB/s"),
            Err(GapKind::NotConnected) => "no connection".to_owned(),
            Err(kind) => format!("no rate ({kind})"),
        };
        let with = format!("with {}", ends.nodes[partner.node]);
        said.push(if what == before { with } else { format!("{what} {with}") });
        before = what;
    }
    let said = if said.is_empty() { "no flow".to_owned() } else { said.join(" and ") };
    format!("{} {}: {said}{}", ends.nodes[end.node], ends.devices[end.device], others.beside(ends, end))
}

/// Where every NIC that has a rate is below the floor, on every node, the cause is one that they share.
pub(super) fn fleet_low(ends: &Ends, floor_gb_s: f64) -> Option<String> {
    let mut measured = vec![false; ends.nodes.len()];
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for end in ends.all() {
        let Some(best) = ends.best(end) else { continue };
        measured[end.node] = true;
        (low, high) = (low.min(best), high.max(best));
    }
    if high >= floor_gb_s || floor_gb_s.is_nan() || measured.is_empty() || measured.contains(&false) {
        return None;
    }
    Some(format!(
        "all measured NICs on {} nodes are slow, so they share a cause: {low:.1} to {high:.1} GB/s, floor \
         {floor_gb_s:.1} GB/s",
        ends.nodes.len()
    ))
}

/// Where no flow has a rate and tools report that they did not connect, the cause is one that all nodes share.
pub(super) fn fleet_unconnected(ends: &Ends) -> Option<String> {
    let partners = || ends.all().flat_map(|end| ends.partners(end));
    let is_unconnected = partners().any(|partner| partner.outcome == Err(GapKind::NotConnected));
    if !is_unconnected || partners().any(|partner| partner.outcome.is_ok()) {
        return None;
    }
    let nodes: BTreeSet<usize> = partners().map(|partner| partner.node).collect();
    Some(format!("{UNCONNECTED}{} nodes connected: check security group and `nics`", nodes.len()))
}
