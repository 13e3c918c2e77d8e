//! All flows by their ends: per device, node and direction its partners, its best rate, its limit, and what each
//! partner reached with others. It names no culprit.

use super::{Direction, FlowResult};
use logs::flow_log::GapKind;
use std::collections::HashMap;

pub(super) struct Ends<'a> {
    pub nodes: &'a [String],
    pub devices: &'a [String],
    slots: Vec<Slot>,
}

/// One NIC in one direction, by its places in the lists of nodes and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub node: usize,
    pub device: usize,
    pub direction: Direction,
}

pub(super) struct Partner {
    pub node: usize,
    /// The best of all flows with it.
    pub outcome: Result<f64, GapKind>,
}

/// How many other partners a partner has flows with that reached its limit, and that gave any rate.
pub(super) struct OtherFlows {
    pub good: usize,
    pub connected: usize,
}

#[derive(Default)]
struct Slot {
    partners: Vec<Partner>,
    best: Option<f64>,
    limit: f64,
    good: usize,
    connected: usize,
}

impl<'a> Ends<'a> {
    pub(super) fn new(
        flows: &[FlowResult],
        nodes: &'a [String],
        devices: &'a [String],
        floor_gb_s: f64,
        peer_tolerance: f64,
    ) -> Self {
        let slots = (0..nodes.len() * devices.len() * 2).map(|_| Slot::default()).collect();
        let mut ends = Ends { nodes, devices, slots };
        ends.sort_in(flows);
        for slot in &mut ends.slots {
            slot.settle();
        }
        for direction in [Direction::Tx, Direction::Rx] {
            ends.set_limits(direction, floor_gb_s, peer_tolerance);
        }
        for slot in &mut ends.slots {
            slot.count();
        }
        ends
    }

    pub(super) fn all(&self) -> impl Iterator<Item = End> + use<> {
        let devices = self.devices.len();
        (0..self.slots.len()).map(move |at| End {
            node: at / 2 / devices,
            device: at / 2 % devices,
            direction: if at % 2 == 0 { Direction::Tx } else { Direction::Rx },
        })
    }

    pub(super) fn best(&self, end: End) -> Option<f64> {
        self.slot(end).best
    }

    pub(super) fn limit(&self, end: End) -> f64 {
        self.slot(end).limit
    }

    pub(super) fn partners(&self, end: End) -> &[Partner] {
        &self.slot(end).partners
    }

    /// Results of a partner of `end` with others.
    pub(super) fn elsewhere(&self, end: End, partner: &Partner) -> OtherFlows {
        let direction = if end.direction == Direction::Tx { Direction::Rx } else { Direction::Tx };
        let other = self.slot(End { node: partner.node, direction, ..end });
        let own_good = partner.outcome.is_ok_and(|rate| rate >= other.limit);
        let own_connected = partner.outcome.is_ok();
        OtherFlows {
            good: other.good.saturating_sub(usize::from(own_good)),
            connected: other.connected.saturating_sub(usize::from(own_connected)),
        }
    }

    fn sort_in(&mut self, flows: &[FlowResult]) {
        let index = |names: &'a [String]| -> HashMap<&'a str, usize> {
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect()
        };
        let (nodes, devices) = (index(self.nodes), index(self.devices));
        for flow in flows {
            let places = (nodes.get(&*flow.tx_node), nodes.get(&*flow.rx_node), devices.get(&*flow.device));
            let (Some(&tx), Some(&rx), Some(&device)) = places else { continue };
            // A node with itself never leaves the node, so it proves nothing.
            if tx == rx {
                continue;
            }
            let outcome = flow.outcome.and_then(|rate| {
                if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(GapKind::NotUnderstood) }
            });
            for (node, partner, direction) in [(tx, rx, Direction::Tx), (rx, tx, Direction::Rx)] {
                let at = self.at(End { node, device, direction });
                self.slots[at].partners.push(Partner { node: partner, outcome });
            }
        }
    }

    /// The limit of each NIC: the floor, or the share of the median of the others where that is higher.
    fn set_limits(&mut self, direction: Direction, floor_gb_s: f64, peer_tolerance: f64) {
        let mut rates: Vec<f64> =
            self.all().filter(|end| end.direction == direction).filter_map(|end| self.best(end)).collect();
        rates.sort_by(f64::total_cmp);
        for at in 0..self.slots.len() {
            if (at % 2 == 0) != (direction == Direction::Tx) {
                continue;
            }
            let slot = &mut self.slots[at];
            let median = match slot.best {
                Some(own) => median_without(&rates, own),
                None => median(&rates, rates.len(), |nth| nth),
            };
            // `max` ignores NaN, so a missing floor or tolerance sets no limit.
            slot.limit =
                median.map_or(f64::NAN, |median| median * (1.0 - peer_tolerance)).max(floor_gb_s).max(0.0);
        }
    }

    fn slot(&self, end: End) -> &Slot {
        &self.slots[self.at(end)]
    }

    fn at(&self, end: End) -> usize {
        (end.node * self.devices.len() + end.device) * 2 + usize::from(end.direction == Direction::Rx)
    }
}

impl Slot {
    /// One entry per partner, the best of several; among gaps the one that says most about the NICs.
    fn settle(&mut self) {
        let rank = |outcome: &Result<f64, GapKind>| match outcome {
            Ok(rate) => *rate,
            Err(GapKind::NotConnected) => -1.0,
            Err(_) => -2.0,
        };
        self.partners.sort_by(|a, b| a.node.cmp(&b.node).then(rank(&b.outcome).total_cmp(&rank(&a.outcome))));
        self.partners.dedup_by_key(|partner| partner.node);
        self.best = self.partners.iter().filter_map(|partner| partner.outcome.ok()).max_by(f64::total_cmp);
    }

    fn count(&mut self) {
        let rates = || self.partners.iter().filter_map(|partner| partner.outcome.ok());
        (self.good, self.connected) = (rates().filter(|rate| *rate >= self.limit).count(), rates().count());
    }
}

/// The median of ascending `rates` without one that equals `own`.
pub(super) fn median_without(rates: &[f64], own: f64) -> Option<f64> {
    let gone = rates.partition_point(|rate| *rate < own);
    median(rates, rates.len().saturating_sub(1), |nth| if nth < gone { nth } else { nth + 1 })
}

fn median(rates: &[f64], count: usize, place: impl Fn(usize) -> usize) -> Option<f64> {
    let nth = |nth: usize| rates.get(place(nth)).copied();
    let high = nth(count.checked_sub(1)? / 2 + usize::from(count.is_multiple_of(2)))?;
    Some((nth((count - 1) / 2)? + high) / 2.0)
}
