//! Which calls form a group, and which call or group owns a launch: the call in whose range it lies, or the group in
//! whose end it lies. Calls between `ncclGroupStart` and `ncclGroupEnd` launch nothing themselves. Releases before
//! 2.23 open a group within each `ncclSend` and `ncclRecv`: within another group it starts no new one, and outside of
//! groups its launches are the call's.

use super::events::{Event, Name};
use crate::trace::nesting::Stack;

/// One call that launches for itself, or one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub start: i64,
    pub end: i64,
    pub global_tid: i64,
    pub is_group: bool,
    pub calls: u32,
}

#[derive(Debug, Default)]
pub(super) struct Owners {
    pub owners: Vec<Owner>,
    /// Of each event who owns what lies in its range and in no range within.
    pub of_event: Vec<Option<u32>>,
    /// Of each event that is a call the group it stands in.
    pub groups: Vec<Option<u32>>,
    /// Ends of groups whose start is not in the report.
    pub ends_alone: usize,
}

/// Events by thread, in the order in which they begin.
pub(super) fn owners(events: &[Event]) -> Owners {
    let mut all = Owners {
        owners: Vec::new(),
        of_event: Vec::with_capacity(events.len()),
        groups: Vec::with_capacity(events.len()),
        ends_alone: 0,
    };
    let mut begin = 0;
    for thread in events.chunk_by(|a, b| a.global_tid == b.global_tid) {
        assign_owners(&mut all, thread, begin);
        begin += thread.len();
    }
    all
}

fn assign_owners(all: &mut Owners, thread: &[Event], begin: usize) {
    let mut stack = Stack::default();
    // How many groups are open, the outermost one's owner, and the call in whose range it was opened.
    let (mut depth, mut group) = (0usize, None);
    for (at, event) in thread.iter().enumerate() {
        let place = stack.push(begin + at, event.end);
        // What encloses it owns it too, where that is a call.
        let around = place.parent.filter(|parent| is_call(&thread[*parent - begin]));
        let around = around.and_then(|parent| all.of_event[parent]);
        let fresh = |all: &mut Owners, is_group| {
            let Event { start, end, global_tid, .. } = *event;
            all.owners.push(Owner { start, end, global_tid, is_group, calls: 0 });
            Some(all.owners.len() as u32 - 1)
        };
        let mut of_call = None;
        let owner = match event.name {
            Name::GroupStart => {
                depth += 1;
                if depth == 1 {
                    group = around.or_else(|| fresh(all, true));
                }
                group
            }
            Name::GroupEnd => {
                if depth == 0 {
                    all.ends_alone += 1;
                    group = around.or_else(|| fresh(all, true));
                }
                depth = depth.saturating_sub(1);
                let owner = group;
                if let Some(owner) = owner.and_then(|owner| all.owners.get_mut(owner as usize)) {
                    owner.end = owner.end.max(event.end);
                }
                if depth == 0 {
                    group = None;
                }
                owner
            }
            Name::Call(_) if depth > 0 => {
                of_call = group.filter(|group| all.owners[*group as usize].is_group);
                group
            }
            Name::Call(_) => around.or_else(|| fresh(all, false)),
            Name::Makes | Name::Ends | Name::Other => None,
        };
        if let (true, Some(owner)) = (is_call(event), owner) {
            let owner = &mut all.owners[owner as usize];
            owner.calls += 1;
            owner.end = owner.end.max(event.end);
        }
        all.of_event.push(owner);
        all.groups.push(of_call);
    }
}

fn is_call(event: &Event) -> bool {
    matches!(event.name, Name::Call(_))
}
