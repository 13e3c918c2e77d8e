//! Tests that look at each new window: how often they raise an alarm where nothing changed is set beforehand. They assume of
//! healthy windows only that each order of them is equally likely, and of healthy ranks that each is equally often late.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Hours in which healthy jobs are to raise one alarm at most, on average.
const HOURS_PER_ALARM: u32 = 1000;
/// What is not reported: a bandwidth within 5 % of its own past. In the units of `to_units`.
const LEAST: i32 = 5129;
/// Windows of the past that a new one is compared with: an hour of windows of 10 s.
const MOST_PAST: usize = 360;
/// The newest windows are not compared with: what sinks must not become its own past.
const DELAY: usize = 30;
/// With fewer windows no test is made.
pub(crate) const FEWEST: usize = 40;
/// So many windows in a row end an alarm.
const CALM: u8 = 12;
/// Of bets on small ranks: each is good at another size of the past.
const BETS: [f64; 3] = [0.1, 0.2, 0.4];
/// What a rank keeps of its evidence in a window in which it is not late.
const KEPT: f64 = 0.3;

/// A ratio as a whole number that a state file keeps exactly: hundred-thousandths of its logarithm.
pub(crate) fn to_units(ln: f64) -> i32 {
    (ln * 1e5).round().clamp(-2e9, 2e9) as i32
}

/// By how much a bandwidth is lower, as a fraction.
pub(crate) fn to_drop(units: i32) -> f64 {
    1.0 - (-f64::from(units) / 1e5).exp()
}

/// The evidence that is needed where `tests` are made at once, in windows of `window_s`. The mean number of windows to a
/// false alarm is at least this number.
pub(crate) fn threshold(tests: usize, window_s: u32) -> f64 {
    let windows = f64::from(HOURS_PER_ALARM) * 3600.0 / f64::from(window_s.max(1));
    windows * tests.max(1) as f64
}

/// What a window brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Alarm,
    Calm,
}

/// Evidence that grows while a change lasts (Shiryaev and Roberts): the sum of bets that began at each window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Evidence {
    sum: f64,
    calm: u8,
    is_active: bool,
}

impl Evidence {
    /// `gain` is a bet's, at most 1 on average where nothing changed.
    fn step(&mut self, gain: f64, is_calm: bool, threshold: f64) -> Change {
        if self.is_active {
            self.calm = if is_calm { self.calm.saturating_add(1) } else { 0 };
            if self.calm < CALM {
                return Change::None;
            }
            *self = Evidence::default();
            return Change::Calm;
        }
        self.sum = ((self.sum + 1.0) * gain).min(1e100);
        if self.sum < threshold {
            return Change::None;
        }
        self.is_active = true;
        Change::Alarm
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// An alarm, or on the way to one.
    pub(crate) fn is_strong(&self, threshold: f64) -> bool {
        self.is_active || self.sum >= threshold.sqrt()
    }

    /// Nothing speaks for a change.
    pub(crate) fn is_clear(&self) -> bool {
        !self.is_active && self.sum < 1.0
    }

    /// A window of one of `n` ranks, of which `late` are late at the same time.
    pub(crate) fn step_rank(&mut self, is_late: bool, late: usize, n: usize, threshold: f64) -> Change {
        let share = if is_late { n as f64 / late.max(1) as f64 } else { 0.0 };
        self.step(KEPT + (1.0 - KEPT) * share, !is_late, threshold)
    }
}

/// Whether a bandwidth sank below its own past.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SinkTest {
    /// The oldest first; the values of an alarm are not among them.
    past: VecDeque<i32>,
    pub(crate) evidence: Evidence,
    /// The last values since the evidence began to grow.
    recent: VecDeque<i32>,
}

impl SinkTest {
    pub(crate) fn step(&mut self, value: i32, threshold: f64) -> Change {
        let reference = self.reference();
        let mut change = Change::None;
        if self.is_ready() {
            let limit = value.saturating_add(LEAST);
            let below = self.past.iter().take(reference).filter(|past| **past <= limit).count();
            let p = (1 + below) as f64 / (reference + 1) as f64;
            let gain = BETS.iter().map(|bet| bet * p.powf(bet - 1.0)).sum::<f64>() / BETS.len() as f64;
            let is_calm = value.saturating_add(LEAST / 2) >= self.usual();
            change = self.evidence.step(gain, is_calm, threshold);
            if self.evidence.is_clear() {
                self.recent.clear();
            }
            self.recent.push_back(value);
            if self.recent.len() > DELAY {
                self.recent.pop_front();
            }
            if change == Change::Alarm {
                // What led to it is no past to compare with later.
                let healthy = self.past.len() - (self.recent.len() - 1).min(self.past.len());
                self.past.truncate(healthy.max(FEWEST.min(self.past.len())));
            }
        }
        if !self.evidence.is_active() {
            self.past.push_back(value);
            if self.past.len() > MOST_PAST + DELAY {
                self.past.pop_front();
            }
        }
        change
    }

    /// There is enough past to compare with.
    pub(crate) fn is_ready(&self) -> bool {
        self.past.len() >= FEWEST
    }

    /// How many of the oldest values are compared with.
    fn reference(&self) -> usize {
        self.past.len() - DELAY.min(self.past.len() / 2)
    }

    pub(crate) fn usual(&self) -> i32 {
        median(self.past.iter().take(self.reference()).copied())
    }

    /// How much lower it is now than in its past, as a fraction.
    pub(crate) fn drop(&self) -> f64 {
        to_drop(self.usual().saturating_sub(median(self.recent.iter().copied())))
    }
}

/// 0 of none.
pub(crate) fn median(values: impl Iterator<Item = i32>) -> i32 {
    let mut values: Vec<i32> = values.collect();
    let at = values.len() / 2;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(at).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look drawn, from -1 to 1.
    fn noise(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) as f64 / f64::from(1_u32 << 30)) - 1.0
    }

    fn windows_to_alarm(drop: f64, scatter: f64, healthy: usize) -> Option<usize> {
        let (mut test, mut state) = (SinkTest::default(), 7);
        let limit = threshold(200, 10);
        for _ in 0..healthy {
            assert_eq!(test.step(to_units(scatter * noise(&mut state)), limit), Change::None);
        }
        let change =
            |_| test.step(to_units((1.0 - drop).ln() + scatter * noise(&mut state)), limit) == Change::Alarm;
        (0..200).position(change)
    }

    #[test]
    fn a_bandwidth_that_sinks_by_a_tenth_is_an_alarm_within_minutes_and_half_of_that_is_none() {
        let windows = windows_to_alarm(0.10, 0.02, 180).expect("an alarm");
        assert!((3..=15).contains(&windows), "{windows} windows");
        assert_eq!(windows_to_alarm(0.03, 0.02, 180), None);
        assert_eq!(windows_to_alarm(0.0, 0.3, 180), None);
    }

    #[test]
    fn an_alarm_is_raised_once_and_ends_when_the_bandwidth_is_back() {
        let mut test = SinkTest::default();
        let mut step = |drop: f64, n: usize| {
            let changes = (0..n).map(|_| test.step(to_units((1.0 - drop).ln()), 1e9));
            changes.filter(|change| *change != Change::None).collect::<Vec<_>>()
        };
        assert_eq!(step(0.0, 100), []);
        assert_eq!(step(0.2, 400), [Change::Alarm]);
        assert_eq!(step(0.0, 40), [Change::Calm]);
        assert_eq!(step(0.2, 400), [Change::Alarm]);
    }

    #[test]
    fn too_little_past_is_no_alarm() {
        let mut test = SinkTest::default();
        for value in (0..FEWEST).map(|at| -(at as i32) * 10_000) {
            assert_eq!(test.step(value, 1.0), Change::None);
        }
    }

    /// The bets of all ranks add up to their number at most: on average none gains.
    #[test]
    fn bets_on_late_ranks_are_fair() {
        for late in 0..8_usize {
            let sum: f64 = (0..8)
                .map(|rank| {
                    let mut evidence = Evidence::default();
                    evidence.step_rank(rank < late, late, 8, 1e9);
                    evidence.sum
                })
                .sum();
            assert!(sum <= 8.0 + 1e-9, "{late} late: {sum}");
        }
    }
}
