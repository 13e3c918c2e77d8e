//! Where time went within a window: to compute, to communication, to memory, to several of them at once, or to nothing.

use super::{Activity, Operation};
use crate::spans::{Spans, partition};
use serde::{Deserialize, Serialize};

/// The moments at which each kind of operation ran.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    /// Union of the operations of `Activity::Compute`.
    pub compute: Spans,
    /// Union of the operations of `Activity::Communication`.
    pub communication: Spans,
    /// Union of the operations of `Activity::Memory`.
    pub memory: Spans,
    /// Union of the operations of `Activity::Graph`.
    pub graphs: Spans,
}

impl Sets {
    /// Merges the operations of each kind.
    pub(crate) fn from_operations<'a>(operations: impl Iterator<Item = &'a Operation> + Clone) -> Sets {
        let of = |kind: Activity| {
            Spans::union(operations.clone().filter(|one| one.kind == kind).map(Operation::span))
        };
        Sets {
            compute: of(Activity::Compute),
            communication: of(Activity::Communication),
            memory: of(Activity::Memory),
            graphs: of(Activity::Graph),
        }
    }

    /// Splits the time between two moments, in nanoseconds, by what ran in it.
    pub(crate) fn within(&self, start: i64, end: i64) -> Shares {
        let window = Spans::one(start, end);
        let parts = partition([&self.compute, &self.communication, &self.memory, &self.graphs], &window);
        // Beside a graph the other three are what they are without it.
        let both = |mask: usize| parts[mask] + parts[mask | GRAPHS];
        Shares {
            window: window.ns(),
            idle: parts[0],
            graphs_alone: parts[GRAPHS],
            compute_alone: both(COMPUTE),
            communication_alone: both(COMMUNICATION),
            memory_alone: both(MEMORY),
            compute_communication: both(COMPUTE | COMMUNICATION),
            compute_memory: both(COMPUTE | MEMORY),
            communication_memory: both(COMMUNICATION | MEMORY),
            all_three: both(COMPUTE | COMMUNICATION | MEMORY),
            has_graphs: parts.iter().enumerate().any(|(mask, ns)| mask & GRAPHS > 0 && *ns > 0),
        }
    }
}

const COMPUTE: usize = 1;
const COMMUNICATION: usize = 2;
const MEMORY: usize = 4;
const GRAPHS: usize = 8;

/// Nanoseconds, each moment of the window in one part alone: the seven, the graphs of which nothing is known, and idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shares {
    /// Length of the window: the sum of the parts below.
    pub window: u64,
    /// No operation ran.
    pub idle: u64,
    /// Graphs traced as a whole ran, and nothing else.
    pub graphs_alone: u64,
    /// Compute without communication and memory.
    pub compute_alone: u64,
    /// Communication without compute and memory.
    pub communication_alone: u64,
    /// Copies and fills without compute and communication.
    pub memory_alone: u64,
    /// Compute and communication, without memory.
    pub compute_communication: u64,
    /// Compute and memory, without communication.
    pub compute_memory: u64,
    /// Communication and memory, without compute.
    pub communication_memory: u64,
    /// Compute, communication and memory at once.
    pub all_three: u64,
    /// Then the others are the least that they can be.
    pub has_graphs: bool,
}

impl Shares {
    /// Nanoseconds with compute, whatever ran beside it.
    pub(crate) fn compute(&self) -> u64 {
        self.compute_alone + self.compute_communication + self.compute_memory + self.all_three
    }

    /// Nanoseconds with communication, whatever ran beside it.
    pub(crate) fn communication(&self) -> u64 {
        self.communication_alone + self.compute_communication + self.communication_memory + self.all_three
    }

    /// Nanoseconds with copies or fills, whatever ran beside them.
    pub(crate) fn memory(&self) -> u64 {
        self.memory_alone + self.compute_memory + self.communication_memory + self.all_three
    }

    /// Nanoseconds with any operation, graphs included.
    pub(crate) fn active(&self) -> u64 {
        self.window - self.idle
    }

    /// Communication beside which nothing was computed; not known where a graph ran of which nothing is known.
    pub(crate) fn exposed(&self) -> Option<u64> {
        (!self.has_graphs).then_some(self.communication_alone + self.communication_memory)
    }
}
