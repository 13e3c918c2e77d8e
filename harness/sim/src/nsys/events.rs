//! What a profiler sees of a process: calls of CUDA on its threads, what they launched on its GPUs, and the ranges that
//! it marks. Times are true ones, in nanoseconds since the profilers of the job were started; clocks and windows are
//! the business of `report`, and what a program does that of the file named after it.

use super::payload::Payload;
use std::borrow::Cow;

pub(super) type Name = Cow<'static, str>;

#[derive(Default)]
pub(super) struct Events {
    pub processes: Vec<Process>,
    pub kernels: Vec<Kernel>,
    pub copies: Vec<Copied>,
    pub calls: Vec<Call>,
    pub ranges: Vec<Range>,
}

pub(super) struct Process {
    pub global_pid: i64,
    pub name: Name,
}

#[derive(Clone)]
pub(super) struct Kernel {
    pub name: Name,
    pub start: i64,
    pub end: i64,
    pub device: i64,
    pub stream: i64,
    pub correlation: i64,
    pub global_pid: i64,
    /// Where a graph launched it.
    pub node: Option<Node>,
}

/// A node of an executable graph.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub graph: i64,
    pub number: i64,
}

pub(super) struct Copied {
    pub start: i64,
    pub end: i64,
    pub bytes: u64,
    /// As CUDA numbers the directions.
    pub kind: i64,
    pub device: i64,
    pub stream: i64,
    pub correlation: i64,
    pub global_pid: i64,
}

pub(super) struct Call {
    pub name: &'static str,
    pub start: i64,
    pub end: i64,
    pub global_tid: i64,
    pub correlation: i64,
}

pub(super) struct Range {
    pub name: Name,
    pub start: i64,
    pub end: i64,
    pub global_tid: i64,
    /// Of NCCL's own domain; the others stand in the default one.
    pub of_nccl: bool,
    pub payload: Option<Payload>,
}

/// One process with one thread, whose calls are numbered as they are made.
pub(super) struct Thread {
    pub events: Events,
    pub global_pid: i64,
    global_tid: i64,
    last: i64,
    graphs: i64,
}

/// Which machine a process belongs to stands above its number.
const HARDWARE: i64 = 1 << 56;

impl Thread {
    pub(super) fn new(pid: u64, name: impl Into<Name>) -> Thread {
        let global_pid = HARDWARE | (pid as i64) << 24;
        let process = Process { global_pid, name: name.into() };
        let events = Events { processes: vec![process], ..Events::default() };
        Thread { events, global_pid, global_tid: global_pid | pid as i64, last: 0, graphs: 0 }
    }

    /// A call of CUDA; what it launches bears its number.
    pub(super) fn call(&mut self, name: &'static str, start: i64, end: i64) -> i64 {
        self.last += 1;
        let (global_tid, correlation) = (self.global_tid, self.last);
        self.events.calls.push(Call { name, start, end: end.max(start + 1), global_tid, correlation });
        correlation
    }

    pub(super) fn kernel(
        &mut self,
        name: impl Into<Name>,
        (start, end): (i64, i64),
        (device, stream): (i64, i64),
        correlation: i64,
        node: Option<Node>,
    ) {
        let (name, end, global_pid) = (name.into(), end.max(start + 1), self.global_pid);
        self.events.kernels.push(Kernel { name, start, end, device, stream, correlation, global_pid, node });
    }

    /// A range of NCCL's domain.
    pub(super) fn nccl(&mut self, name: &'static str, (start, end): (i64, i64), payload: Option<Payload>) {
        let (name, end, global_tid) = (Name::from(name), end.max(start + 1), self.global_tid);
        self.events.ranges.push(Range { name, start, end, global_tid, of_nccl: true, payload });
    }

    /// A range of the program's own.
    pub(super) fn range(&mut self, name: impl Into<Name>, start: i64, end: i64) {
        let (name, end, global_tid) = (name.into(), end.max(start + 1), self.global_tid);
        self.events.ranges.push(Range { name, start, end, global_tid, of_nccl: false, payload: None });
    }

    /// The number of a graph that is made now.
    pub(super) fn graph(&mut self) -> i64 {
        self.graphs += 1;
        self.graphs
    }
}

impl Events {
    /// Of several processes in one report.
    pub(super) fn append(&mut self, mut other: Events) {
        self.processes.append(&mut other.processes);
        self.kernels.append(&mut other.kernels);
        self.copies.append(&mut other.copies);
        self.calls.append(&mut other.calls);
        self.ranges.append(&mut other.ranges);
    }
}
