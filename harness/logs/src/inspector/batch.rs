//! The records that a marker announces. From v4.3 on they have no header of their own and belong to the marker: one that is
//! lost, moved or cut off must never be given to another.

use super::record::{Body, Identity, Record, Stats};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Batch {
    pub identity: Identity,
    /// When the marker was written, by its host's clock, in microseconds since 1970.
    pub at_us: Option<u64>,
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
    fn new(identity: Identity, at_us: Option<u64>, stats: &Stats, line: u64) -> Batch {
        let open = [stats.coll_records, stats.p2p_records, stats.proxy_records];
        let announced = open.iter().fold(0_u64, |sum, records| sum.saturating_add(*records));
        Batch { identity, at_us, line, announced, came: 0, open }
    }

    fn take(&mut self, body: &Body<'_>) -> Position {
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

/// A record whose batch is known.
pub(super) struct Placed {
    /// Whose it is; none of a bare record that no marker announced.
    pub identity: Option<Identity>,
    /// When it was written.
    pub at_us: Option<u64>,
    pub position: Position,
    pub is_bare: bool,
    /// The batch that ends before it.
    pub ended: Option<Batch>,
}

/// Finds whose the record is, and begins or ends the batch of its file.
pub(super) fn place(record: &Record<'_>, line: u64, batch: &mut Option<Batch>) -> Placed {
    let (own, own_at) = (record.identity(), record.at_us());
    let is_bare = own.is_none();
    if let Body::Marker(stats) = &record.body {
        let ended = batch.take();
        *batch = own.clone().map(|identity| Batch::new(identity, own_at, stats, line));
        return Placed { identity: own, at_us: own_at, position: Position::Announced, is_bare, ended };
    }
    // A record of another communicator ends the batch: batches do not interleave.
    let is_other = own.as_ref().is_some_and(|own| batch.as_ref().is_some_and(|it| it.identity != *own));
    let ended = if is_other { batch.take() } else { None };
    let position = batch.as_mut().map_or(Position::Outside, |batch| batch.take(&record.body));
    let of_batch = || batch.as_ref().filter(|_| position == Position::Announced);
    // The header before it is of other lines, where it was not announced.
    let identity = own.or_else(|| of_batch().map(|batch| batch.identity.clone()));
    let at_us = own_at.or_else(|| of_batch().and_then(|batch| batch.at_us));
    Placed { identity, at_us, position, is_bare, ended }
}
