//! What many lines add up to, in bounded memory: nothing is kept of a line that only repeats. What is odd about it is
//! `checks`' business.

use super::call::{Call, OPERATIONS, Operation};
use super::choice::Choice;
use super::communicators::Communicators;
use super::counts::Counts;
use super::distinct::Distinct;
use super::graph::Connection;
use super::hasher::Mixed;
use super::operations::{Operations, Sum};
use super::processes::Processes;
use super::steps::Steps;
use super::tables::*;
use super::wired::Wired;
use std::collections::{BTreeMap, HashMap};

/// Of pairs of ranks, of GPUs, and of pairs that send: the rest is left out, and counted in a finding.
pub(super) const MOST: usize = 1 << 16;

/// Sends and receives of one pair of ranks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Pair {
    pub sends: u64,
    pub receives: u64,
}

#[derive(Debug)]
pub(super) struct Tally {
    pub operations: Operations,
    pub steps: Steps,
    pub wired: Wired,
    pub distinct: Distinct,
    pub processes: Processes,
    pub communicators: Communicators,
    gpus: Mixed<(u32, Option<u64>), Vec<Sum>>,
    pub gpus_beyond: u64,
    /// By communicator, sender and receiver.
    pub pairs: Mixed<(u32, u64, u64), Pair>,
    pub pairs_beyond: u64,
    connections: HashMap<(u64, u64, String, bool), u64>,
    pub connections_beyond: u64,
    choices: BTreeMap<(Option<String>, String), (u64, u64, u64)>,
    pub choices_beyond: u64,
    pub versions: Counts,
    pub drivers: Counts,
    pub bootstraps: Counts,
    pub networks: Counts,
    pub providers: Counts,
    pub plugins: Counts,
    pub variables: Counts,
}

impl Tally {
    /// Edges ascend, and each begins a bucket.
    pub(super) fn new(edges: Vec<u64>) -> Self {
        Tally {
            operations: Operations::new(edges),
            steps: Steps::default(),
            wired: Wired::default(),
            distinct: Distinct::default(),
            processes: Processes::default(),
            communicators: Communicators::default(),
            gpus: Mixed::default(),
            gpus_beyond: 0,
            pairs: Mixed::default(),
            pairs_beyond: 0,
            connections: HashMap::new(),
            connections_beyond: 0,
            choices: BTreeMap::new(),
            choices_beyond: 0,
            versions: Counts::default(),
            drivers: Counts::default(),
            bootstraps: Counts::default(),
            networks: Counts::default(),
            providers: Counts::default(),
            plugins: Counts::default(),
            variables: Counts::default(),
        }
    }

    pub(super) fn call(
        &mut self,
        call: &Call,
        process: Option<u32>,
        device: Option<u64>,
        line: u64,
        file: u32,
    ) {
        let bytes = call.bytes();
        let at = call.operation as usize;
        self.operations.call(call, bytes);
        self.steps.call(call.operation, bytes);
        let kind = self.distinct.count(call);
        let Some(process) = process else { return };
        let handle = self.communicators.handle(process, call.comm);
        // The device of the communicator is certain; the one of the line is only the process's current one.
        let device = handle.and_then(|handle| handle.device).or(device);
        let key = (process, device);
        if self.gpus.len() < MOST || self.gpus.contains_key(&key) {
            let sums = self.gpus.entry(key).or_insert_with(|| vec![Sum::default(); OPERATIONS.len()]);
            if let Some(sum) = sums.get_mut(at) {
                sum.add(bytes);
            }
        } else {
            self.gpus_beyond += 1;
        }
        let Some(handle) = handle else { return };
        match call.operation {
            Operation::Send | Operation::Recv => {
                let Some((communicator, rank)) = self.communicators.place(&handle) else { return };
                let sends = call.operation == Operation::Send;
                let (from, to) = if sends { (rank, call.root) } else { (call.root, rank) };
                let key = (communicator, from, to);
                if self.pairs.len() >= MOST && !self.pairs.contains_key(&key) {
                    self.pairs_beyond += 1;
                    return;
                }
                let pair = self.pairs.entry(key).or_default();
                pair.sends += u64::from(sends);
                pair.receives += u64::from(!sends);
            }
            operation if operation.is_collective() => {
                self.communicators.called(&handle, kind, line, file);
            }
            _ => {}
        }
    }

    pub(super) fn connection(&mut self, connection: &Connection) {
        let key = (connection.from, connection.to, connection.transport().to_owned(), connection.is_gdrdma());
        if self.connections.len() >= MOST && !self.connections.contains_key(&key) {
            self.connections_beyond += 1;
            return;
        }
        *self.connections.entry(key).or_default() += 1;
    }

    pub(super) fn choice(&mut self, choice: &Choice) {
        let mut by = choice.by.named();
        if let Some(kind) = choice.kind {
            by = format!("{by} [{kind}]");
        }
        let key = (choice.operation.map(str::to_owned), by);
        if self.choices.len() >= MOST / 16 && !self.choices.contains_key(&key) {
            self.choices_beyond += 1;
            return;
        }
        let (lines, min, max) = self.choices.entry(key).or_insert((0, u64::MAX, 0));
        *lines += 1;
        *min = (*min).min(choice.bytes);
        *max = (*max).max(choice.bytes);
    }

    /// The kinds of calls, those that differ in no size together.
    pub(super) fn calls(&self) -> Vec<Calls> {
        let mut by_size: BTreeMap<(Operation, u64, u64), u64> = BTreeMap::new();
        for (kind, calls) in self.distinct.all() {
            *by_size.entry((kind.operation, kind.count, kind.datatype)).or_default() += calls;
        }
        let one = |((operation, count, datatype), calls): ((Operation, u64, u64), u64)| {
            let bytes = super::call::type_bytes(datatype).and_then(|size| size.checked_mul(count));
            Calls { operation, count, datatype, bytes, calls }
        };
        by_size.into_iter().map(one).collect()
    }

    pub(super) fn gpus(&self) -> Vec<OfGpu> {
        let mut all = Vec::new();
        for ((process, device), sums) in &self.gpus {
            let Some(process) = self.processes.get(*process) else { continue };
            for (operation, sum) in OPERATIONS.into_iter().zip(sums).filter(|(_, sum)| sum.calls > 0) {
                let (host, pid) = (process.host.clone(), process.pid);
                let bytes = sum.bytes();
                all.push(OfGpu { host, pid, device: *device, operation, calls: sum.calls, bytes });
            }
        }
        all.sort_by(|a, b| {
            (&a.host, a.pid, a.device, a.operation).cmp(&(&b.host, b.pid, b.device, b.operation))
        });
        // A process that was also known by a torn name is one.
        all.dedup_by(|next, kept| {
            let is_same = (&next.host, next.pid, next.device, next.operation)
                == (&kept.host, kept.pid, kept.device, kept.operation);
            if is_same {
                kept.calls += next.calls;
                kept.bytes = kept.bytes.zip(next.bytes).and_then(|(a, b)| a.checked_add(b));
            }
            is_same
        });
        all.retain(|it| !it.host.is_empty());
        all
    }

    pub(super) fn connections(&self) -> Vec<OfConnection> {
        let one = |((from, to, transport, gdrdma), lines): (&(u64, u64, String, bool), &u64)| {
            let transport = transport.clone();
            OfConnection { from: *from, to: *to, transport, gdrdma: *gdrdma, lines: *lines }
        };
        let mut all: Vec<OfConnection> = self.connections.iter().map(one).collect();
        all.sort_by(|a, b| {
            (a.from, a.to, &a.transport, a.gdrdma).cmp(&(b.from, b.to, &b.transport, b.gdrdma))
        });
        all
    }

    pub(super) fn choices(&self) -> Vec<OfChoice> {
        let one = |((operation, by), (lines, min, max)): (&(Option<String>, String), &(u64, u64, u64))| {
            let (operation, by) = (operation.clone(), by.clone());
            OfChoice { operation, by, lines: *lines, min_bytes: *min, max_bytes: *max }
        };
        self.choices.iter().map(one).collect()
    }

    pub(super) fn communicator_rows(&self) -> Vec<OfCommunicator> {
        let one = |it: &super::communicators::Communicator| {
            let mut hosts: Vec<String> =
                it.hosts.iter().map(|process| self.processes.host(*process).to_owned()).collect();
            hosts.retain(|host| !host.is_empty());
            hosts.sort();
            hosts.dedup();
            OfCommunicator {
                id: it.id.map(|id| format!("0x{id:x}")),
                nranks: it.nranks,
                ranks_seen: it.members.len() as u64,
                ranks_complete: it.members.values().filter(|member| member.complete).count() as u64,
                hosts,
                fewest_calls: it.members.values().map(|member| member.calls).min().unwrap_or(0),
                most_calls: it.members.values().map(|member| member.calls).max().unwrap_or(0),
            }
        };
        self.communicators.all.iter().map(one).collect()
    }
}
