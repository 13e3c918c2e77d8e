//! What is kept of the jobs of a folder, from one window to the next and from one process to its successor.

use crate::communicator::Communicator;
use crate::finding::{Event, Finding, Process};
use crate::sequential::SinkTest;
use logs::inspector::lines::CallRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Clocks of hosts that are further apart are not compared, and one line that is further ahead proves nothing.
pub(crate) const FAR_S: u32 = 600;
/// Who had no record in so many turns writes no more.
const MOST_TURNS: u64 = 10;

/// Findings that are kept while they last.
const MOST_FINDINGS: usize = 1000;

/// A host, and its clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) last_s: u32,
    /// Between two of its writings, in seconds.
    pub(crate) gap_s: u32,
    /// A time far from the last one: another record must confirm it.
    pub(crate) odd_s: Option<u32>,
    /// The last turn in which it had a record.
    pub(crate) turn: u64,
}

impl Host {
    pub(crate) fn new(name: String) -> Host {
        Host { name, last_s: 0, gap_s: 0, odd_s: None, turn: 0 }
    }

    /// Takes the time of a record.
    pub(crate) fn saw(&mut self, at_s: u32, turn: u64, most_gap_s: u32) {
        self.turn = turn;
        let is_far = self.last_s > 0 && at_s.abs_diff(self.last_s) > FAR_S;
        if is_far && self.odd_s.is_none_or(|odd| at_s.abs_diff(odd) > FAR_S) {
            self.odd_s = Some(at_s);
            return;
        }
        self.odd_s = None;
        if is_far {
            self.last_s = at_s;
        } else if at_s > self.last_s {
            if self.last_s > 0 {
                self.gap_s = (at_s - self.last_s).min(most_gap_s);
            }
            self.last_s = at_s;
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProcessRow {
    pub(crate) host: u32,
    pub(crate) pid: u64,
    pub(crate) last_s: u32,
    /// The last turn in which it had a record.
    pub(crate) turn: u64,
}

/// The median of communicators that do the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GroupTest {
    pub(crate) test: SinkTest,
    /// The last window in which it had some.
    pub(crate) last: u32,
}

/// Records that were not used, by why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) sends: u64,
    pub(crate) rooted: u64,
    pub(crate) untimed: u64,
    pub(crate) contradictory: u64,
    pub(crate) no_room: u64,
    pub(crate) too_late: u64,
}

/// All that is known of the jobs of a folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Observer {
    pub(crate) window_s: u32,
    pub(crate) hosts: Vec<Host>,
    pub(crate) processes: Vec<ProcessRow>,
    pub(crate) communicators: BTreeMap<String, Communicator>,
    /// All communicators that do the same.
    pub(crate) groups: BTreeMap<String, GroupTest>,
    /// The last window that was closed.
    pub(crate) closed: Option<u32>,
    /// When what sank is reported.
    pub(crate) sinking_due: Option<u32>,
    pub(crate) late_due: Option<u32>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) numbers: u64,
    /// Slots of ranks in all communicators.
    pub(crate) members: usize,
    pub(crate) counts: Counts,
    /// Counts how often time went on.
    pub(crate) turn: u64,
    /// By name; made from `hosts`.
    #[serde(skip)]
    pub(crate) by_name: BTreeMap<String, u32>,
    /// By host and pid; made from `processes`.
    #[serde(skip)]
    pub(crate) by_pid: BTreeMap<(u32, u64), u32>,
}

impl Observer {
    /// With windows of so many seconds.
    pub fn new(window_s: u32) -> Observer {
        Observer {
            window_s: window_s.max(1),
            hosts: Vec::new(),
            processes: Vec::new(),
            communicators: BTreeMap::new(),
            groups: BTreeMap::new(),
            closed: None,
            sinking_due: None,
            late_due: None,
            findings: Vec::new(),
            numbers: 0,
            members: 0,
            counts: Counts::default(),
            turn: 0,
            by_name: BTreeMap::new(),
            by_pid: BTreeMap::new(),
        }
    }

    /// As it was written; what is derived is made again. False where its parts contradict each other.
    pub fn restore(&mut self) -> bool {
        self.by_name = (0..).zip(&self.hosts).map(|(at, host)| (host.name.clone(), at)).collect();
        self.by_pid = (0..).zip(&self.processes).map(|(at, it)| ((it.host, it.pid), at)).collect();
        let is_sound = |it: &Communicator| {
            let has = |(rank, process): (&usize, &u32)| {
                *rank < it.ranks && (*process as usize) < self.processes.len()
            };
            (it.late.is_empty() || it.late.len() == it.ranks) && it.members.iter().all(has)
        };
        self.window_s > 0
            && self.processes.iter().all(|it| (it.host as usize) < self.hosts.len())
            && self.communicators.values().all(is_sound)
    }

    /// In seconds.
    pub(crate) fn window_s(&self) -> u32 {
        self.window_s
    }

    /// It had records of late: by turns, or by the time of the records.
    pub(crate) fn goes_on(&self, row: &ProcessRow) -> bool {
        self.is_writing(row.turn) || u64::from(row.last_s) + u64::from(FAR_S) >= self.closing_s()
    }

    /// Who had a record in that turn goes on.
    pub(crate) fn is_writing(&self, turn: u64) -> bool {
        self.turn.saturating_sub(turn) <= MOST_TURNS
    }

    /// When most ranks wrote the call that this record is missing of, by their clocks; nothing where it is not missing.
    pub fn awaits(&self, record: &CallRecord) -> Option<u64> {
        let communicator = self.communicators.get(&record.communicator)?;
        let rank = usize::try_from(record.rank).ok().filter(|rank| *rank < communicator.ranks)?;
        let calls = &communicator.operations.get(&record.operation)?.calls;
        calls.awaits(record.number, rank, communicator.ranks).map(|at_s| u64::from(at_s) * 1_000_000)
    }

    /// What goes on.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The end of the window that is being closed.
    pub(crate) fn closing_s(&self) -> u64 {
        let window = self.closed.map_or(0, |closed| closed.saturating_add(1));
        u64::from(window) * u64::from(self.window_s)
    }

    /// Keeps and reports a finding.
    pub(crate) fn add(&mut self, mut finding: Finding, events: &mut Vec<Event>) {
        self.numbers += 1;
        finding.number = self.numbers;
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding.clone());
        }
        events.push(Event::Found(finding));
    }

    /// With its rank in its largest communicator.
    pub(crate) fn describe(&self, process: u32) -> Option<Process> {
        let row = self.processes.get(process as usize)?;
        let of = self.communicators.values().filter_map(|it| {
            let (rank, _) = it.members.iter().find(|(_, member)| **member == process)?;
            Some((it.ranks, *rank))
        });
        // The first of the largest.
        let rank = of.reduce(|a, b| if b.0 > a.0 { b } else { a }).map_or(0, |(_, rank)| rank as u64);
        Some(Process { host: self.hosts.get(row.host as usize)?.name.clone(), pid: row.pid, rank })
    }
}
