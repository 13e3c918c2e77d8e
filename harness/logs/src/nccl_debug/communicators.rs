//! The communicators of a log: which ranks on which hosts, and whether all ranks made the same calls in the same order.
//! Bounded: beyond `MOST` they are only counted, and calls beyond `MOST_COMPARED` are not compared; findings report
//! both.

use super::distinct::{Distinct, OTHER};
use super::hasher::Mixed;
use super::setup::{Setup, Stage};
use crate::text::count;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) const MOST: usize = 4096;
/// Of communicators without an id, the first so many that lack ranks are tried.
const MOST_TRIED: usize = 64;
/// Ranks that live, of all communicators together.
pub(super) const MOST_HANDLES: usize = 1 << 17;
/// Calls of all communicators that are kept, to compare other ranks with them: four bytes each.
pub(super) const MOST_COMPARED: usize = 8 << 20;

/// What one rank holds of a communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handle {
    /// None where no line reported it.
    communicator: Option<u32>,
    pub rank: Option<u64>,
    pub device: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Member {
    pub process: u32,
    pub complete: bool,
    pub gone: bool,
    /// Collective calls.
    pub calls: u64,
}

/// Where a rank first did something else than others.
#[derive(Debug)]
pub(super) struct Difference {
    /// How many calls agreed before it.
    pub at: u64,
    pub rank: u64,
    pub did: u32,
    pub others_did: u32,
    pub line: u64,
    pub file: u32,
}

#[derive(Debug)]
pub(super) struct Communicator {
    pub id: Option<u64>,
    pub nranks: u64,
    pub members: BTreeMap<u64, Member>,
    pub hosts: BTreeSet<u32>,
    /// What the rank that came furthest called, in order.
    sequence: Vec<u32>,
    pub difference: Option<Difference>,
    /// Whether calls were left out of the comparison for their number.
    pub beyond: bool,
}

#[derive(Debug, Default)]
pub(super) struct Communicators {
    pub all: Vec<Communicator>,
    by_id: HashMap<u64, u32>,
    /// Those without an id that lack ranks, by how many they are to have.
    open: HashMap<u64, Vec<u32>>,
    handles: Mixed<(u32, u64), Handle>,
    /// The processes that have, or had, a communicator of a handle.
    by_handle: HashMap<u64, BTreeSet<u32>>,
    /// How many of all handles together; of more than are kept, none is known.
    handled: usize,
    kept: usize,
    /// Communicators that are one too many, by their rank 0.
    pub beyond: u64,
    /// Calls of handles that are one too many.
    pub handles_beyond: u64,
}

impl Communicators {
    /// Notes what a rank says of its communicator.
    pub(super) fn set_up(&mut self, process: u32, setup: &Setup) {
        let key = (process, setup.comm);
        match setup.stage {
            Stage::InitStart | Stage::InitComplete => self.begin(key, setup),
            Stage::DestroyComplete | Stage::AbortComplete => {
                let Some(handle) = self.handles.remove(&key) else { return };
                if let Some(member) = self.member(&handle) {
                    member.gone = true;
                }
                self.let_go(handle.communicator);
            }
        }
    }

    fn begin(&mut self, key: (u32, u64), setup: &Setup) {
        let complete = setup.stage == Stage::InitComplete;
        // The second line of one that began.
        if let Some(handle) = self.handles.get(&key).copied()
            && handle.rank == Some(setup.rank)
            && let Some(member) = self.member(&handle)
            && !member.complete
            && complete
        {
            member.complete = true;
            return;
        }
        let Some(communicator) = self.communicator(setup) else {
            if setup.rank == 0 && complete {
                self.beyond += 1;
            }
            self.handles.remove(&key);
            return;
        };
        if self.handles.len() >= MOST_HANDLES && !self.handles.contains_key(&key) {
            self.handles_beyond += 1;
            return;
        }
        let handle =
            Handle { communicator: Some(communicator), rank: Some(setup.rank), device: setup.cuda_device };
        self.handles.insert(key, handle);
        if self.handled <= MOST_HANDLES && self.by_handle.entry(key.1).or_default().insert(key.0) {
            self.handled += 1;
        }
        if let Some(it) = self.all.get_mut(communicator as usize) {
            it.hosts.insert(key.0);
            it.members.insert(setup.rank, Member { process: key.0, complete, gone: false, calls: 0 });
            if it.id.is_none()
                && it.members.len() as u64 >= it.nranks
                && let Some(open) = self.open.get_mut(&it.nranks)
            {
                open.retain(|at| *at != communicator);
            }
        }
    }

    /// The communicator that a rank belongs to. Up to 2.17 no line says which: it is the first of its size that lacks
    /// the rank.
    fn communicator(&mut self, setup: &Setup) -> Option<u32> {
        let found = match setup.comm_id {
            Some(id) => self.by_id.get(&id).copied(),
            None => self.open.get(&setup.nranks).and_then(|open| {
                let lacks = |at: &&u32| {
                    self.all.get(**at as usize).is_some_and(|it| !it.members.contains_key(&setup.rank))
                };
                open.iter().take(MOST_TRIED).find(lacks).copied()
            }),
        };
        if found.is_some() {
            return found;
        }
        if self.all.len() >= MOST {
            return None;
        }
        let at = u32::try_from(self.all.len()).ok()?;
        self.all.push(Communicator {
            id: setup.comm_id,
            nranks: setup.nranks,
            members: BTreeMap::new(),
            hosts: BTreeSet::new(),
            sequence: Vec::new(),
            difference: None,
            beyond: false,
        });
        match setup.comm_id {
            Some(id) => {
                self.by_id.insert(id, at);
            }
            None => self.open.entry(setup.nranks).or_default().push(at),
        }
        Some(at)
    }

    fn member(&mut self, handle: &Handle) -> Option<&mut Member> {
        self.all.get_mut(handle.communicator? as usize)?.members.get_mut(&handle.rank?)
    }

    /// What was called is kept only while a rank may still be compared with it.
    fn let_go(&mut self, communicator: Option<u32>) {
        let Some(it) = communicator.and_then(|at| self.all.get_mut(at as usize)) else { return };
        let all_gone = it.members.len() as u64 == it.nranks && it.members.values().all(|member| member.gone);
        if all_gone {
            self.kept -= it.sequence.len();
            it.sequence = Vec::new();
        }
    }

    #[cfg(test)]
    pub(super) fn handles_held(&self) -> usize {
        self.handles.len()
    }

    pub(super) fn handle(&self, process: u32, comm: u64) -> Option<Handle> {
        self.handles.get(&(process, comm)).copied()
    }

    /// The processes that have, or had, a communicator of a handle; nothing where none is known.
    pub(super) fn with_handle(&self, comm: u64) -> Option<&BTreeSet<u32>> {
        self.by_handle.get(&comm).filter(|_| self.handled <= MOST_HANDLES)
    }

    /// The communicator and rank of a handle, where they are known.
    pub(super) fn place(&self, handle: &Handle) -> Option<(u32, u64)> {
        Some((handle.communicator?, handle.rank?))
    }

    /// Notes a collective call, and compares it with what other ranks called there.
    pub(super) fn called(&mut self, handle: &Handle, kind: u32, line: u64, file: u32) {
        let Some((at, rank)) = self.place(handle) else { return };
        let Some(it) = self.all.get_mut(at as usize) else { return };
        let Some(member) = it.members.get_mut(&rank) else { return };
        let index = member.calls;
        member.calls += 1;
        if it.nranks < 2 || it.difference.is_some() {
            return;
        }
        match usize::try_from(index).ok().and_then(|index| it.sequence.get(index)) {
            Some(other) if *other == kind || *other == OTHER || kind == OTHER => {}
            Some(other) => {
                let difference = Difference { at: index, rank, did: kind, others_did: *other, line, file };
                it.difference = Some(difference);
                self.kept -= it.sequence.len();
                it.sequence = Vec::new();
            }
            None if it.sequence.len() as u64 == index && self.kept < MOST_COMPARED => {
                it.sequence.push(kind);
                self.kept += 1;
            }
            None => it.beyond = true,
        }
    }

    /// The difference in a sentence.
    pub(super) fn describe(difference: &Difference, kinds: &Distinct) -> String {
        let shown = |kind: u32| kinds.kind(kind).map_or_else(String::new, |kind| kind.render());
        let Difference { at, rank, did, others_did, .. } = difference;
        format!(
            "after {} rank {rank} calls {}, an earlier rank called {}",
            count(*at, "matching collective call"),
            shown(*did),
            shown(*others_did)
        )
    }
}
