//! A communicator: its ranks, its calls by operation and size, and what they came to in each window.

use crate::alignment::{Alignment, RankCall, WholeCall};
use crate::sequential::{Evidence, FEWEST, SinkTest};
use logs::inspector::lines::CallRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// NCCL has a dozen.
const MOST_OPERATIONS: usize = 16;
/// Windows that are open at the same time: writings of ranks are not further apart.
const MOST_WINDOWS: usize = 512;
/// With fewer ranks a late one cannot be distinguished from its peers.
pub(crate) const FEWEST_RANKS: usize = 4;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Communicator {
    pub ranks: usize,
    /// The process of each rank that has a record.
    pub members: BTreeMap<usize, u32>,
    pub operations: BTreeMap<String, Operation>,
    /// By window.
    pub waits: BTreeMap<u32, Waits>,
    /// Of each rank, since its first whole call.
    pub late: Vec<LateTest>,
    /// Windows in which it had records.
    pub windows: u32,
    pub last_s: u32,
    pub late_records: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub calls: Alignment,
    /// By the power of two of their size.
    pub series: BTreeMap<u32, Series>,
}

/// Calls of one operation and similar size.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Series {
    pub windows: BTreeMap<u32, Rates>,
    /// Of its own bandwidth.
    pub own: SinkTest,
    /// By how much more it sank than its peers did; nothing where it has none.
    pub test: SinkTest,
    /// Compared with peers and not with its past alone.
    pub has_peers: bool,
    pub busbw: f32,
    pub is_reported: bool,
}

impl Series {
    /// It sank below its own past, and more than its peers: one that only became slower than others is not meant.
    pub(crate) fn is_slow(&self, threshold: f64) -> bool {
        self.has_peers
            && self.test.is_ready()
            && self.test.evidence.is_strong(threshold)
            && self.own.evidence.is_strong(threshold)
    }

    /// The same, with enough evidence for an alarm, which was not reported.
    pub(crate) fn is_due(&self, threshold: f64) -> bool {
        !self.is_reported
            && match self.has_peers {
                true => self.test.evidence.is_active() && self.is_slow(threshold),
                false => self.own.evidence.is_active(),
            }
    }

    /// What is reported of it goes on.
    pub(crate) fn is_active(&self) -> bool {
        if self.has_peers { self.test.evidence.is_active() } else { self.own.evidence.is_active() }
    }
}

/// What calls of one window came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub calls: u32,
    /// Of logarithms of bytes by microseconds.
    pub sum: f64,
    pub busbw: f64,
}

/// How much less each rank waited than the median rank, in a window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Waits {
    pub calls: u32,
    /// Of the median rank, in microseconds.
    pub total: f64,
    pub less: Vec<f32>,
}

/// Whether a rank comes last again and again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LateTest {
    pub evidence: Evidence,
    /// As a fraction of the median rank's time in its kernels, of the last windows.
    pub less: f32,
    pub since_s: u32,
    pub is_reported: bool,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    NoRoom,
    /// Another process has that rank, or the sizes contradict each other.
    Contradictory,
    /// Its window was closed before.
    TooLate,
}

impl Communicator {
    pub(crate) fn new(ranks: usize) -> Communicator {
        Communicator {
            ranks,
            members: BTreeMap::new(),
            operations: BTreeMap::new(),
            waits: BTreeMap::new(),
            late: Vec::new(),
            windows: 0,
            last_s: 0,
            late_records: 0,
        }
    }

    pub(crate) fn take(
        &mut self,
        record: &CallRecord,
        (time_us, at_s): (f64, u32),
        window_s: u32,
        closed: Option<u32>,
    ) -> Taken {
        if !self.operations.contains_key(&record.operation) {
            if self.operations.len() >= MOST_OPERATIONS {
                return Taken::NoRoom;
            }
            self.operations.insert(record.operation.clone(), Operation::default());
        }
        self.last_s = self.last_s.max(at_s);
        let Some(operation) = self.operations.get_mut(&record.operation) else { return Taken::NoRoom };
        let call = RankCall {
            rank: usize::try_from(record.rank).unwrap_or(usize::MAX),
            bytes: record.bytes,
            time_us: time_us as f32,
            busbw: record.busbw.unwrap_or_default() as f32,
            at_s,
        };
        let Some(whole) = operation.calls.take(record.number, &call, self.ranks) else { return Taken::Yes };
        let window = whole.at_s / window_s;
        if closed.is_some_and(|closed| window <= closed) {
            self.late_records += 1;
            return Taken::TooLate;
        }
        let series = operation.series.entry(whole.bytes.checked_ilog2().unwrap_or_default()).or_default();
        if series.windows.len() < MOST_WINDOWS || series.windows.contains_key(&window) {
            let rates = series.windows.entry(window).or_default();
            rates.calls += 1;
            // A time of 0 us is one below 1.
            rates.sum += (whole.bytes as f64 / f64::from(whole.shortest_us.max(0.5))).ln();
            rates.busbw += f64::from(whole.busbw);
        }
        self.wait(window, &whole);
        Taken::Yes
    }

    fn wait(&mut self, window: u32, whole: &WholeCall) {
        let has_room = self.waits.len() < MOST_WINDOWS || self.waits.contains_key(&window);
        if self.ranks < FEWEST_RANKS || !has_room {
            return;
        }
        let mut sorted = whole.times.clone();
        let middle = sorted.len() / 2;
        let median = *sorted.select_nth_unstable_by(middle, f32::total_cmp).1;
        self.late.resize(self.ranks, LateTest::default());
        let waits = self.waits.entry(window).or_default();
        waits.less.resize(self.ranks, 0.0);
        waits.calls += 1;
        waits.total += f64::from(median);
        for (less, time) in waits.less.iter_mut().zip(&whole.times) {
            *less += median - time;
        }
    }

    /// The ranks on one host alone have no network between them.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.members.values().copied()
    }

    /// Whole calls, and those that miss ranks.
    pub(crate) fn calls(&self) -> (u64, u64) {
        let calls = self.operations.values().map(|it| &it.calls);
        calls.fold((0, 0), |sum, calls| (sum.0 + calls.complete, sum.1 + calls.incomplete))
    }

    /// Copies of records, and calls whose sizes differ.
    pub(crate) fn odd(&self) -> (u64, u64) {
        let calls = self.operations.values().map(|it| &it.calls);
        calls.fold((0, 0), |sum, calls| (sum.0 + calls.copies, sum.1 + calls.mixed))
    }

    pub(crate) fn is_judged(&self) -> bool {
        let (complete, incomplete) = self.calls();
        let is_ready = self.operations.values().flat_map(|it| it.series.values()).any(|it| it.own.is_ready());
        // A rank whose records stop leaves nothing whole, however much was before.
        let goes_on = |operation: &Operation| operation.calls.incomplete_in_a_row < FEWEST as u64;
        is_ready && incomplete <= complete && self.operations.values().all(goes_on)
    }

    /// It had records for long enough, and still was not judged.
    pub(crate) fn is_unjudged(&self) -> bool {
        let (_, incomplete) = self.calls();
        let is_long = self.windows as usize >= 2 * FEWEST || incomplete >= 2 * FEWEST as u64;
        is_long && !self.is_judged()
    }

    /// How many questions are asked of it in each window.
    pub(crate) fn tests(&self) -> usize {
        let series: usize = self.operations.values().map(|it| it.series.len()).sum();
        series + self.late.len()
    }

    pub(crate) fn cells(&self) -> usize {
        self.operations.values().map(|it| it.calls.cells()).sum()
    }
}
