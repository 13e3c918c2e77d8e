//! What is reported of a job, each once: when it began, whom the records separate, and how far it is off.

use serde::{Deserialize, Serialize};

/// What it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A rank, or all of a host, comes last to its collectives again and again.
    Straggler,
    /// Communicators sank below their peers, and have some processes in common.
    Sinking,
    /// All communicators that do the same sank alike, or one without peers did: no node is blamed.
    AllSlower,
}

impl FindingKind {
    /// As in events and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Straggler => "straggler",
            FindingKind::Sinking => "sinking",
            FindingKind::AllSlower => "all-slower",
        }
    }
}

/// A process of the job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// As the process calls it.
    pub host: String,
    /// On that host.
    pub pid: u64,
    /// In its largest communicator.
    pub rank: u64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Counts from 1.
    pub number: u64,
    /// What it is about.
    pub kind: FindingKind,
    /// Whom it blames: one process, or several of one host. Of several hosts it is one of them. None where nothing is
    /// separated.
    pub processes: Vec<Process>,
    /// How many there are, since not all are listed.
    pub processes_in_all: usize,
    /// The hosts of these.
    pub hosts: Vec<String>,
    /// Whether all of these are meant together, and not one of them.
    pub is_whole_host: bool,
    /// Where it shows; not all where there are many.
    pub communicators: Vec<String>,
    /// How many there are.
    pub communicators_in_all: usize,
    /// Such as `AllReduce`.
    pub operation: String,
    /// About so many, by the power of two below.
    pub bytes: u64,
    /// By how much lower, as a fraction: the bandwidth, or the time spent waiting.
    pub lower_by: f64,
    /// GB/s over the bus, where the records have it.
    pub busbw: Option<f64>,
    /// Communicators of the same kind with a higher bandwidth, and how many there are.
    pub peers: (usize, usize),
    /// The window in which it was found, in seconds since 1970, by the median of the hosts' clocks.
    pub at_s: u64,
    /// Where it shows, for its end.
    pub(crate) shows: Vec<Place>,
}

/// Where a finding shows: a communicator, with an operation and size, or with a rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Place {
    Series(String, String, u32),
    Rank(String, usize),
    Group(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// It is new.
    Found(Finding),
    /// It was over two minutes ago, or its communicators have ended.
    Over {
        /// Of the finding.
        number: u64,
        /// What it was about.
        kind: FindingKind,
        /// Whom it blamed.
        hosts: Vec<String>,
        /// In seconds since 1970.
        at_s: u64,
    },
}
