//! Calls of one operation, with the times of all ranks side by side. A kernel's time holds its waiting, so only the whole
//! call shows something: the shortest is the transfer, and what the others have beyond it is waiting. Memory is bounded:
//! where calls come too fast, a fixed part of them is taken, the same on all ranks.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Calls that wait for ranks.
const MOST_OPEN: usize = 256;
/// Numbers that are known to be complete: a record that comes a second time is a copy.
const RECENT: usize = 512;
/// At least one call of so many is taken.
const LEAST_TAKEN: u32 = 16;

/// What one rank recorded of a call.
pub(crate) struct RankCall {
    pub rank: usize,
    pub bytes: u64,
    pub time_us: f32,
    pub busbw: f32,
    /// In seconds since 1970.
    pub at_s: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenCall {
    bytes: u64,
    /// Of the ranks that are there, in their order: a number of ranks that is only claimed takes no room.
    seen: Vec<Arrival>,
    /// Of the fastest rank.
    busbw: f32,
    is_mixed: bool,
}

/// What is kept of a rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Arrival {
    rank: usize,
    time_us: f32,
    at_s: u32,
}

/// A call of which all ranks have a record.
pub(crate) struct WholeCall {
    pub bytes: u64,
    /// In microseconds, by rank.
    pub times: Vec<f32>,
    /// Of the rank that waited least.
    pub shortest_us: f32,
    pub busbw: f32,
    /// The median of the ranks' clocks: one that is wrong moves nothing.
    pub at_s: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Alignment {
    /// One call of 2 to the power of this is taken.
    thinned: u32,
    open: BTreeMap<u64, OpenCall>,
    recent: VecDeque<u64>,
    /// Numbers below it are over.
    over: u64,
    pub complete: u64,
    pub incomplete: u64,
    /// Those since the last whole one.
    #[serde(default)]
    pub incomplete_in_a_row: u64,
    /// Of different sizes on different ranks.
    pub mixed: u64,
    /// Records of a call that is over, or of a rank that was there.
    pub copies: u64,
}

/// The median of their times, of two the earlier: one that is far ahead moves nothing.
fn middle(seen: &[Arrival]) -> Option<u32> {
    let mut at: Vec<u32> = seen.iter().map(|it| it.at_s).collect();
    at.sort_unstable();
    at.get(at.len().checked_sub(1)? / 2).copied()
}

/// Neighbouring calls often have sizes in turn, so that not every n-th is taken.
fn is_taken(number: u64, thinned: u32) -> bool {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    mixed & ((1 << thinned) - 1) == 0
}

impl Alignment {
    /// Cells that its open calls take.
    pub(crate) fn cells(&self) -> usize {
        self.open.values().map(|call| call.seen.len()).sum()
    }

    /// When most ranks wrote a call that misses this one: by their clocks, in seconds since 1970.
    pub(crate) fn awaits(&self, number: u64, rank: usize, ranks: usize) -> Option<u32> {
        let seen = &self.open.get(&number)?.seen;
        let is_awaited = seen.len() * 2 >= ranks && seen.iter().all(|it| it.rank != rank);
        is_awaited.then(|| middle(seen)).flatten()
    }

    /// Takes fewer calls from here on.
    pub(crate) fn thin(&mut self) {
        self.thinned = (self.thinned + 1).min(LEAST_TAKEN);
        let thinned = self.thinned;
        self.open.retain(|number, _| is_taken(*number, thinned));
        while self.open.len() >= MOST_OPEN {
            self.open.pop_first();
            self.give_up(1);
        }
    }

    pub(crate) fn take(&mut self, number: u64, call: &RankCall, ranks: usize) -> Option<WholeCall> {
        if !is_taken(number, self.thinned) {
            return None;
        }
        if number < self.over || self.recent.contains(&number) {
            self.copies += 1;
            return None;
        }
        if !self.open.contains_key(&number) && self.open.len() >= MOST_OPEN {
            self.thin();
            if !is_taken(number, self.thinned) {
                return None;
            }
        }
        let open = self.open.entry(number).or_insert_with(|| OpenCall {
            bytes: call.bytes,
            seen: Vec::new(),
            busbw: 0.0,
            is_mixed: false,
        });
        match open.seen.binary_search_by_key(&call.rank, |it| it.rank) {
            Ok(_) => {
                self.copies += 1;
                return None;
            }
            Err(at) => {
                open.seen.insert(at, Arrival { rank: call.rank, time_us: call.time_us, at_s: call.at_s });
            }
        }
        open.busbw = open.busbw.max(call.busbw);
        open.is_mixed |= open.bytes != call.bytes;
        if open.seen.len() < ranks {
            return None;
        }
        let open = self.open.remove(&number)?;
        self.complete += 1;
        self.incomplete_in_a_row = 0;
        self.recent.push_back(number);
        if self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.over = self.over.max(oldest);
        }
        if open.is_mixed {
            self.mixed += 1;
            return None;
        }
        let OpenCall { bytes, seen, busbw, .. } = open;
        let at_s = middle(&seen)?;
        let times: Vec<f32> = seen.iter().map(|it| it.time_us).collect();
        let shortest_us = times.iter().copied().fold(f32::MAX, f32::min);
        Some(WholeCall { bytes, times, shortest_us, busbw, at_s })
    }

    /// Gives up calls whose ranks should all have written by then.
    pub(crate) fn expire(&mut self, before_s: u32) {
        let before = self.open.len();
        self.open.retain(|_, call| call.seen.iter().any(|it| it.at_s >= before_s));
        self.give_up((before - self.open.len()) as u64);
    }

    fn give_up(&mut self, calls: u64) {
        self.incomplete += calls;
        self.incomplete_in_a_row += calls;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(rank: usize, time_us: f32, at_s: u32) -> RankCall {
        RankCall { rank, bytes: 4096, time_us, busbw: 1.0 / time_us, at_s }
    }

    #[test]
    fn a_call_is_whole_when_the_last_rank_has_come_and_a_wrong_clock_does_not_move_it() {
        let mut calls = Alignment::default();
        assert!(calls.take(3, &call(0, 30.0, 100), 3).is_none());
        assert!(calls.take(3, &call(2, 10.0, u32::MAX), 3).is_none());
        assert!(calls.take(3, &call(0, 31.0, 100), 3).is_none(), "a copy");
        let whole = calls.take(3, &call(1, 29.0, 101), 3).expect("whole");
        assert_eq!((whole.shortest_us, whole.at_s, whole.times), (10.0, 101, vec![30.0, 29.0, 10.0]));
        assert!(calls.take(3, &call(1, 29.0, 101), 3).is_none());
        assert_eq!((calls.complete, calls.copies, calls.incomplete), (1, 2, 0));
    }

    #[test]
    fn ranks_that_run_ahead_take_bounded_room_and_the_same_calls_are_taken_of_all() {
        let mut calls = Alignment::default();
        for number in 0..10_000 {
            calls.take(number, &call(0, 10.0, 100), 2);
        }
        assert!(calls.open.len() <= MOST_OPEN);
        let whole = (0..10_000).filter(|number| calls.take(*number, &call(1, 12.0, 100), 2).is_some());
        let whole = whole.count();
        assert!((64..=MOST_OPEN).contains(&whole), "{whole}");
    }

    #[test]
    fn a_rank_without_a_record_leaves_calls_incomplete_and_sizes_that_differ_are_not_judged() {
        let mut calls = Alignment::default();
        calls.take(1, &call(0, 10.0, 100), 2);
        calls.expire(100);
        assert_eq!(calls.incomplete, 0);
        calls.expire(101);
        assert_eq!(calls.incomplete, 1);
        calls.take(2, &call(0, 10.0, 100), 2);
        assert!(calls.take(2, &RankCall { bytes: 1, ..call(1, 1.0, 100) }, 2).is_none());
        assert_eq!((calls.mixed, calls.complete), (1, 1));
    }
}
