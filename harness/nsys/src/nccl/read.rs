//! Puts the calls of a report together: ranges with their payloads, groups, communicators and kernels.

use super::communicators::{self, KnownRanks};
use super::events::{self, Event, Events, Name};
use super::groups::{self, Owners};
use super::join::{Joined, join};
use super::{Call, Function, Group, Kernel, NcclCalls};
use crate::export::{ExportError, Rows};
use crate::tables::{KERNEL, NVTX_EVENTS};
use crate::trace::{Trace, process_of};
use polars::prelude::PlHashMap;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;

impl NcclCalls {
    /// `None` where the report has nothing of NCCL. Under a filter the calls that it keeps are given, with all of their
    /// kernels, and of kernels without a call those that it keeps.
    pub fn read(trace: &Trace) -> Result<Option<NcclCalls>, ExportError> {
        let events = events::read(trace)?;
        let owners = groups::owners(&events.all);
        let filtered = FilteredRows::read(trace)?;
        let joined = join(trace, &events.all, &owners.of_event)?;
        let joined = retain_filtered(joined, &events.all, &owners, filtered.as_ref());
        if owners.ends_alone > 0 {
            trace.note(format!(
                "NCCL: groups that began before the capture, whose calls may be missing: {}",
                owners.ends_alone
            ));
        }
        let all = assembled(&events, &owners, joined, filtered.as_ref())?;
        all.note_kernels(trace);
        Ok((!all.is_empty()).then_some(all))
    }

    fn note_kernels(&self, trace: &Trace) {
        let idle = self.calls.iter().filter(|call| call.kernels.is_empty()).count();
        if idle > 0 {
            trace.note(format!(
                "NCCL: calls without a kernel, such as those captured into a CUDA graph: {idle}"
            ));
        }
        let alone = self.kernels_of_none().len();
        if alone > 0 {
            trace.note(format!("NCCL: kernels without an NCCL call in the report: {alone}"));
        }
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.kernels.is_empty() && self.communicators.is_empty()
    }
}

fn assembled(
    events: &Events,
    owners: &Owners,
    joined: Joined,
    filtered: Option<&FilteredRows>,
) -> Result<NcclCalls, ExportError> {
    let of_owner = places(owners.owners.len(), &joined.owned);
    let (kernels, names) = joined.kernels()?;
    let communicators = communicators::collect(events);
    let known = KnownRanks::new(&communicators);
    // Groups by their beginnings; a group without a call is none of data.
    let mut order: Vec<u32> = (0..owners.owners.len() as u32)
        .filter(|owner| owners.owners[*owner as usize].is_group && owners.owners[*owner as usize].calls > 0)
        .collect();
    order.sort_by_key(|owner| (owners.owners[*owner as usize].start, *owner));
    let mut number_of = vec![0; owners.owners.len()];
    let mut groups = Vec::with_capacity(order.len());
    for owner in order {
        let of = owners.owners[owner as usize];
        number_of[owner as usize] = groups.len() as u32;
        let kernels = of_owner[owner as usize].clone();
        let (start, end, global_tid, calls) = (of.start, of.end, of.global_tid, of.calls);
        groups.push(Group { start, end, global_tid, calls, kernels });
    }
    let calls = (0..).zip(&events.all).filter_map(|(at, event)| match event.name {
        Name::Call(function) if filtered.is_none_or(|filtered| filtered.ranges.contains(&event.row)) => {
            Some((at, function))
        }
        _ => None,
    });
    let mut order: Vec<(u32, Function)> = calls.collect();
    let key = |(at, _): &(u32, Function)| {
        let event = &events.all[*at as usize];
        (event.start, event.global_tid, event.row)
    };
    if !order.is_sorted_by_key(key) {
        order.sort_unstable_by_key(key);
    }
    let calls = order.into_par_iter().map_init(PlHashMap::default, |ranks_of, (at, function)| {
        let (event, owner) = (&events.all[at as usize], owners.of_event[at as usize]);
        let payload = events.payload(event).copied().unwrap_or_default();
        let mine = owner.map_or(0..0, |owner| of_owner[owner as usize].clone());
        let process = process_of(event.global_tid);
        let (ranks, rank) = match payload.communicator {
            Some(id) => {
                let device = one_device(&kernels[mine.start as usize..mine.end as usize]);
                *ranks_of
                    .entry((process, id, device))
                    .or_insert_with(|| (known.ranks(process, id), known.rank(process, id, device)))
            }
            None => (None, None),
        };
        Call {
            function,
            start: event.start,
            end: event.end,
            global_tid: event.global_tid,
            bytes: payload.bytes,
            communicator: payload.communicator,
            ranks: payload.ranks.or(ranks),
            rank: payload.rank.or(rank),
            root: payload.root,
            peer: payload.peer,
            reduction: payload.reduction,
            group: owners.groups[at as usize].map(|owner| number_of[owner as usize]),
            kernels: mine,
        }
    });
    let calls = calls.collect();
    Ok(NcclCalls { calls, kernels, communicators, groups, names })
}

/// Where the kernels of each owner stand.
fn places(owners: usize, owned: &[(u32, u32)]) -> Vec<Range<u32>> {
    let mut of_owner = vec![0..0; owners];
    let mut begin = 0;
    for of_one in owned.chunk_by(|a, b| a.0 == b.0) {
        let end = begin + of_one.len() as u32;
        of_owner[of_one[0].0 as usize] = begin..end;
        begin = end;
    }
    of_owner
}

fn one_device(kernels: &[Kernel]) -> Option<i64> {
    let first = kernels.first()?.device;
    kernels.iter().all(|kernel| kernel.device == first).then_some(first)
}

/// What a filter keeps: rows of ranges and of kernels, from 0.
struct FilteredRows {
    ranges: HashSet<u32>,
    kernels: HashSet<u32>,
}

impl FilteredRows {
    /// `None` without a filter.
    fn read(trace: &Trace) -> Result<Option<FilteredRows>, ExportError> {
        if !trace.is_filtered() {
            return Ok(None);
        }
        let of = |rows: Option<Rows>| -> HashSet<u32> {
            rows.iter().flat_map(|rows| (0..rows.len()).map(|row| (rows.number(row) - 1) as u32)).collect()
        };
        let (ranges, kernels) = (trace.rows(&NVTX_EVENTS, &["start"])?, trace.rows(&KERNEL, &["start"])?);
        Ok(Some(FilteredRows { ranges: of(ranges), kernels: of(kernels) }))
    }
}

/// Keeps the kernels of calls that the filter keeps, and of those without a call the ones that it keeps.
fn retain_filtered(
    mut joined: Joined,
    events: &[Event],
    owners: &Owners,
    filtered: Option<&FilteredRows>,
) -> Joined {
    let mut looked_at = vec![false; owners.owners.len()];
    for (event, owner) in events.iter().zip(&owners.of_event) {
        if let (Name::Call(_), Some(owner)) = (event.name, owner) {
            looked_at[*owner as usize] |=
                filtered.is_none_or(|filtered| filtered.ranges.contains(&event.row));
        }
    }
    // A group whose calls are not in the report launched kernels of no call.
    let Joined { owned, of_none, .. } = &mut joined;
    owned.retain(|(owner, row)| {
        let is_called = owners.owners[*owner as usize].calls > 0;
        if !is_called {
            of_none.push(*row);
        }
        is_called && looked_at[*owner as usize]
    });
    if let Some(filtered) = filtered {
        of_none.retain(|row| filtered.kernels.contains(row));
    }
    joined
}
