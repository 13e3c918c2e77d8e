//! The records that a marker announces. From v4.3 on they have no header of their own and belong to the marker: one that is
//! lost, moved or cut off must never be given to another.

use super::record::{Body, Identity, Stats};

#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub identity: Identity,
    /// Of the marker.
    pub line: u64,
    pub announced: u64,
    pub came: u64,
    /// Collectives, sends and receives, and records of the proxy that are still to come.
    open: [u64; 3],
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Announced,
    /// All that were announced came before it.
    Beyond,
    /// Behind no marker.
    Outside,
}

impl Batch {
    pub(super) fn new(identity: Identity, stats: &Stats, line: u64) -> Batch {
        let open = [stats.coll_records, stats.p2p_records, stats.proxy_records];
        let announced = open.iter().fold(0_u64, |sum, records| sum.saturating_add(*records));
        Batch { identity, line, announced, came: 0, open }
    }

    pub(super) fn take(&mut self, body: &Body<'_>) -> Position {
        let at = match body {
            Body::Call(call) if !call.is_p2p => 0,
            Body::Call(_) => 1,
            Body::Proxy | Body::Marker(_) => 2,
        };
        match self.open[at].checked_sub(1) {
            Some(left) => {
                self.open[at] = left;
                self.came += 1;
                Position::Announced
            }
            None => Position::Beyond,
        }
    }
}
