//! The state of an observation: takes records in any order of ranks, closes windows of time, and reports what they show.

use crate::attribution::{Groups, report_late, report_sinking};
use crate::communicator::{Communicator, FEWEST_RANKS, Series, Taken};
use crate::finding::{Event, Place};
use crate::sequential::{Change, threshold};
use crate::state::{Counts, FAR_S, Host, Observer, ProcessRow};
use logs::inspector::lines::CallRecord;
use serde::Serialize;
use std::collections::BTreeSet;

/// What is beyond these is left out, and counted.
const MOST_COMMUNICATORS: usize = 20_000;
const MOST_MEMBERS: usize = 262_144;
const MOST_PROCESSES: usize = 65_536;
/// Times of calls that wait for ranks, 8 bytes each.
const MOST_CELLS: usize = 8 << 20;
/// Seconds between windows: a writing of a rank later than this is too late.
const MOST_GRACE_S: u32 = 600;
/// In windows: a shared file system shows what others wrote some time later.
const LEAST_GRACE: u32 = 3;
/// A communicator without a record for so long has ended.
const ENDED_AFTER_S: u32 = 2 * 3600;
/// Operations in which all ranks do the same. The root of others has less to do, and a shorter kernel says nothing of it.
const ALIKE: [&str; 5] = ["AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AllToAll"];
/// What is slow for the same reason shows within so many windows.
const SETTLE: u32 = 6;

/// What was looked at, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Of calls.
    pub records: u64,
    /// Sends and receives, whose times do not say whether they wait: not judged.
    pub sends: u64,
    /// Of operations with a root, or of unknown ones: not judged.
    pub rooted: u64,
    /// Without a time of the GPU or of the writing.
    pub untimed: u64,
    /// Of a rank that another process has, or a copy of one.
    pub contradictory: u64,
    /// For which there was no room.
    pub no_room: u64,
    /// Written after their window was closed.
    pub too_late: u64,
    /// Calls of which all ranks have a record, of those taken.
    pub whole_calls: u64,
    /// Calls that miss ranks.
    pub incomplete_calls: u64,
    /// Communicators of two ranks or more.
    pub communicators: u64,
    /// Of these: those with enough whole calls to compare.
    pub judged: u64,
    /// Of these: those with records for long, that miss ranks.
    pub unjudged: u64,
    /// Hosts with records.
    pub hosts: u64,
    /// Processes with records.
    pub processes: u64,
    /// The last record, in seconds since 1970: the median of the hosts.
    pub last_s: u64,
}

impl Observer {
    /// Takes one record.
    pub fn take(&mut self, record: &CallRecord) {
        self.counts.records += 1;
        if record.is_p2p {
            self.counts.sends += 1;
            return;
        }
        if !ALIKE.contains(&record.operation.as_str()) {
            self.counts.rooted += 1;
            return;
        }
        let at_s = record.at_us.and_then(|at| u32::try_from(at / 1_000_000).ok());
        let (Some(time_us), Some(at_s)) = (record.time_us, at_s) else {
            self.counts.untimed += 1;
            return;
        };
        // Alone there is no peer; a size near 2^64 is that of an unknown type of data.
        if record.ranks < 2 || record.bytes == 0 || i64::try_from(record.bytes).is_err() {
            return;
        }
        match self.take_timed(record, time_us, at_s) {
            Taken::Yes => {}
            Taken::NoRoom => self.counts.no_room += 1,
            Taken::Contradictory => self.counts.contradictory += 1,
            Taken::TooLate => self.counts.too_late += 1,
        }
    }

    fn take_timed(&mut self, record: &CallRecord, time_us: f64, at_s: u32) -> Taken {
        let Ok(ranks) = usize::try_from(record.ranks) else { return Taken::NoRoom };
        if !self.communicators.contains_key(&record.communicator) {
            if ranks > MOST_MEMBERS || self.communicators.len() >= MOST_COMMUNICATORS {
                return Taken::NoRoom;
            }
            self.communicators.insert(record.communicator.clone(), Communicator::new(ranks));
        }
        let Some(process) = self.process(record) else { return Taken::NoRoom };
        if let Some(row) = self.processes.get_mut(process as usize) {
            (row.last_s, row.turn) = (at_s, self.turn);
            if let Some(host) = self.hosts.get_mut(row.host as usize) {
                host.saw(at_s, self.turn, MOST_GRACE_S);
            }
        }
        let (window_s, closed) = (self.window_s, self.closed);
        let Some(communicator) = self.communicators.get_mut(&record.communicator) else {
            return Taken::NoRoom;
        };
        let rank = usize::try_from(record.rank).ok().filter(|rank| *rank < ranks);
        let Some(rank) = rank.filter(|_| communicator.ranks == ranks) else {
            return Taken::Contradictory;
        };
        match communicator.members.get(&rank) {
            Some(member) if *member != process => return Taken::Contradictory,
            Some(_) => {}
            // Room is for ranks that are there: a number that is only claimed takes none.
            None if self.members >= MOST_MEMBERS => return Taken::NoRoom,
            None => {
                communicator.members.insert(rank, process);
                self.members += 1;
            }
        }
        communicator.take(record, (time_us, at_s), window_s, closed)
    }

    fn process(&mut self, record: &CallRecord) -> Option<u32> {
        let host = match self.by_name.get(&record.host) {
            Some(host) => *host,
            None => {
                let at = u32::try_from(self.hosts.len()).ok().filter(|at| (*at as usize) < MOST_PROCESSES)?;
                self.hosts.push(Host::new(record.host.clone()));
                self.by_name.insert(record.host.clone(), at);
                at
            }
        };
        if let Some(process) = self.by_pid.get(&(host, record.pid)) {
            return Some(*process);
        }
        let at = u32::try_from(self.processes.len()).ok().filter(|at| (*at as usize) < MOST_PROCESSES)?;
        self.processes.push(ProcessRow { host, pid: record.pid, last_s: 0, turn: self.turn });
        self.by_pid.insert((host, record.pid), at);
        Some(at)
    }

    /// Closes the windows that all ranks should have written by now, and gives what is new.
    pub fn advance(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let Some(last_s) = self.last_s() else { return events };
        let gap_s = median(self.hosts.iter().map(|host| host.gap_s)).unwrap_or_default();
        let least_s = self.window_s.saturating_mul(LEAST_GRACE).min(MOST_GRACE_S);
        let grace_s = gap_s.saturating_mul(2).clamp(least_s, MOST_GRACE_S);
        let Some(end) = (last_s.saturating_sub(grace_s) / self.window_s).checked_sub(1) else {
            return events;
        };
        self.turn += 1;
        // A clock by which time went on was set back: what comes now is judged again.
        if self.closed.is_some_and(|closed| closed.saturating_sub(end) > FAR_S / self.window_s) {
            self.closed = Some(end);
        }
        for window in self.open_windows(end) {
            self.closed = Some(window);
            self.close(window, &mut events);
        }
        self.closed = self.closed.max(Some(end));
        let expired_s = last_s.saturating_sub(grace_s);
        let mut cells = 0;
        for communicator in self.communicators.values_mut() {
            communicator.operations.values_mut().for_each(|it| it.calls.expire(expired_s));
            cells += communicator.cells();
            if cells > MOST_CELLS {
                communicator.operations.values_mut().for_each(|it| it.calls.thin());
            }
        }
        self.end_old(last_s, &mut events);
        events
    }

    /// When most hosts that write had their last record: the largest group of clocks that agree, of equal ones the
    /// earlier. A clock that is wrong closes nothing.
    fn last_s(&self) -> Option<u32> {
        let writing = self.hosts.iter().filter(|host| host.last_s > 0 && self.is_writing(host.turn));
        let mut all: Vec<u32> = writing.map(|host| host.last_s).collect();
        all.sort_unstable();
        let mut best: &[u32] = &[];
        for at in 0..all.len() {
            let rest = all.get(at..)?;
            let first = *rest.first()?;
            let agree = rest.get(..rest.partition_point(|last| *last - first <= FAR_S))?;
            if agree.len() > best.len() {
                best = agree;
            }
        }
        median(best.iter().copied())
    }

    /// Those up to `end` that hold something, in their order.
    fn open_windows(&self, end: u32) -> BTreeSet<u32> {
        let mut open = BTreeSet::new();
        for communicator in self.communicators.values() {
            open.extend(communicator.waits.range(..=end).map(|(window, _)| *window));
            for series in communicator.operations.values().flat_map(|it| it.series.values()) {
                open.extend(series.windows.range(..=end).map(|(window, _)| *window));
            }
        }
        open
    }

    /// The evidence that an alarm takes: half of the alarms may be of each kind.
    fn threshold(&self) -> f64 {
        let tests: usize = self.communicators.values().map(Communicator::tests).sum();
        threshold(tests + self.groups.len(), self.window_s)
    }

    fn close(&mut self, window: u32, events: &mut Vec<Event>) {
        let threshold = self.threshold();
        let groups = Groups::new(self, window);
        if groups.step(self, threshold) {
            self.sinking_due.get_or_insert(window.saturating_add(SETTLE));
        }
        if self.step_late(window, threshold) {
            self.late_due.get_or_insert(window.saturating_add(SETTLE));
        }
        if self.sinking_due.is_some_and(|due| window >= due) {
            self.sinking_due = None;
            report_sinking(self, &groups, threshold, events);
        }
        if self.late_due.is_some_and(|due| window >= due) {
            self.late_due = None;
            report_late(self, window, threshold, events);
        }
        for communicator in self.communicators.values_mut() {
            let mut has_any = communicator.waits.remove(&window).is_some();
            for series in communicator.operations.values_mut().flat_map(|it| it.series.values_mut()) {
                has_any |= series.windows.remove(&window).is_some();
            }
            communicator.windows = communicator.windows.saturating_add(u32::from(has_any));
        }
        self.end_findings(window, events);
    }

    /// Whether a rank is new among those that come last.
    fn step_late(&mut self, window: u32, threshold: f64) -> bool {
        let mut is_new = false;
        for communicator in self.communicators.values_mut().filter(|it| it.ranks >= FEWEST_RANKS) {
            let Some(waits) = communicator.waits.get(&window).filter(|it| it.total > 0.0) else { continue };
            let least_us = LEAST_US * waits.calls as f32;
            let is_late = |less: f32| f64::from(less) >= LEAST_PART * waits.total && less >= least_us;
            let late = waits.less.iter().filter(|less| is_late(**less)).count();
            for (test, less) in communicator.late.iter_mut().zip(&waits.less) {
                test.less += ((f64::from(*less) / waits.total) as f32 - test.less) * 0.2;
                let change = test.evidence.step_rank(is_late(*less), late, communicator.ranks, threshold);
                if change == Change::Calm {
                    test.is_reported = false;
                }
                is_new |= change == Change::Alarm;
            }
        }
        is_new
    }

    /// Findings that show nowhere any more.
    fn end_findings(&mut self, window: u32, events: &mut Vec<Event>) {
        let at_s = u64::from(window) * u64::from(self.window_s);
        let (communicators, groups) = (&self.communicators, &self.groups);
        let lasts = |place: &Place| match place {
            Place::Rank(id, rank) => communicators
                .get(id)
                .and_then(|it| it.late.get(*rank))
                .is_some_and(|it| it.evidence.is_active()),
            Place::Series(id, operation, class) => {
                let operation = communicators.get(id).and_then(|it| it.operations.get(operation));
                operation.and_then(|it| it.series.get(class)).is_some_and(Series::is_active)
            }
            Place::Group(key) => groups.get(key).is_some_and(|it| it.test.evidence.is_active()),
        };
        self.findings.retain(|finding| {
            let goes_on = finding.shows.iter().any(lasts);
            if !goes_on {
                let (number, kind, hosts) = (finding.number, finding.kind, finding.hosts.clone());
                events.push(Event::Over { number, kind, hosts, at_s });
            }
            goes_on
        });
    }

    fn end_old(&mut self, last_s: u32, events: &mut Vec<Event>) {
        let before = self.communicators.len();
        for communicator in self.communicators.values_mut() {
            communicator.last_s = communicator.last_s.min(last_s.saturating_add(FAR_S));
        }
        self.communicators.retain(|_, it| last_s.saturating_sub(it.last_s) <= ENDED_AFTER_S);
        if self.communicators.len() < before {
            self.members = self.communicators.values().map(|it| it.members.len()).sum();
            let window_s = self.window_s;
            self.groups.retain(|_, it| last_s.saturating_sub(it.last * window_s) <= ENDED_AFTER_S);
            self.end_findings(last_s / self.window_s, events);
        }
    }

    /// What was looked at so far.
    pub fn coverage(&self) -> Coverage {
        let Counts { records, sends, rooted, untimed, contradictory, no_room, too_late } = self.counts;
        let mut coverage = Coverage {
            records,
            sends,
            rooted,
            untimed,
            contradictory,
            no_room,
            too_late,
            communicators: self.communicators.len() as u64,
            hosts: self.hosts.len() as u64,
            processes: self.processes.len() as u64,
            last_s: self.last_s().map_or(0, u64::from),
            ..Coverage::default()
        };
        for communicator in self.communicators.values() {
            let ((whole, incomplete), (copies, mixed)) = (communicator.calls(), communicator.odd());
            coverage.whole_calls += whole;
            coverage.incomplete_calls += incomplete;
            coverage.contradictory += copies + mixed;
            coverage.judged += u64::from(communicator.is_judged());
            coverage.unjudged += u64::from(communicator.is_unjudged());
        }
        coverage
    }
}

/// A rank is late whose kernels are shorter than the median rank's by so much in all, and by so many microseconds a call.
const LEAST_PART: f64 = 0.10;
const LEAST_US: f32 = 10.0;

fn median(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut values: Vec<u32> = values.filter(|value| *value > 0).collect();
    let at = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(at).1)
}
