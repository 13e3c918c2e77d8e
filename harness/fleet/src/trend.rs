//! Whether one number fell below its own past: bets on small ranks that are added up from check to check, so that how often
//! they raise a false alarm is set beforehand.

use crate::pool::Pool;
use serde::{Deserialize, Serialize};

/// With fewer checks there is no past to compare with.
pub(crate) const FEWEST: u16 = 12;
/// The past is that of the first checks: what sinks slowly must not become its own past.
const FROZEN: u16 = 32;
/// A fall of less than 2 % is not reported.
pub(crate) const LEAST: f64 = 0.02;
/// Each is good at another size of the fall.
const BETS: [f64; 3] = [0.1, 0.2, 0.4];
/// So many checks in a row without a fall end an alarm.
const CALM: u8 = 4;
/// Deviations of a suspect that are kept apart, at most.
const MOST_HELD: usize = 64;

/// What a check brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Suspect,
    Alarm,
    Calm,
}

/// The evidence at which a part is suspected, and at which it is an alarm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub suspect: f64,
    pub alarm: f64,
    /// What a check may raise an alarm from: others were measured beside it.
    pub may_alarm: bool,
    /// Many nodes fell alike: what a check shows is no evidence against one of them beyond a suspicion.
    pub is_fleetwide: bool,
}

/// One number of a node or a part, over its checks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub(crate) struct Trend {
    n: u16,
    mean: f64,
    /// Of deviations from `mean`.
    squares: f64,
    /// Of Shiryaev and Roberts.
    sum: f64,
    /// The mean deviation, and of how many checks, since the evidence began to grow.
    fall: f64,
    falls: u16,
    calm: u8,
    state: u8,
    /// Deviations since it is suspected, of which it is not known yet whether they are healthy: a fall that went into the
    /// ranks by which it is judged would look less unusual from check to check.
    held: Vec<f64>,
}

/// As it stands in the state: names would be most of it.
type Packed = (u16, f64, f64, f64, f64, u16, u8, u8, Vec<f64>);

impl From<Packed> for Trend {
    fn from((n, mean, squares, sum, fall, falls, calm, state, held): Packed) -> Trend {
        Trend { n, mean, squares, sum, fall, falls, calm, state: state.min(ALARM), held }
    }
}

impl From<Trend> for Packed {
    fn from(it: Trend) -> Packed {
        (it.n, it.mean, it.squares, it.sum, it.fall, it.falls, it.calm, it.state, it.held)
    }
}

const SUSPECT: u8 = 1;
const ALARM: u8 = 2;

impl Trend {
    pub(crate) fn is_sound(&self) -> bool {
        let all = [self.mean, self.squares, self.sum, self.fall];
        all.iter().chain(&self.held).all(|value| value.is_finite())
            && self.squares >= 0.0
            && self.sum >= 0.0
            && self.held.len() <= MOST_HELD
    }

    pub(crate) fn has_past(&self) -> bool {
        self.n >= FEWEST
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.state == SUSPECT
    }

    pub(crate) fn is_alarm(&self) -> bool {
        self.state == ALARM
    }

    /// By how much it is lower than its past, as a fraction.
    pub(crate) fn lower_by(&self) -> f64 {
        (1.0 - self.fall.exp()).max(0.0)
    }

    /// From its own past.
    pub(crate) fn deviation(&self, value: f64) -> f64 {
        value - self.mean
    }

    /// Back to no suspicion, with its past.
    pub(crate) fn absolve(&mut self) {
        (self.sum, self.fall, self.falls, self.calm, self.state) = (0.0, 0.0, 0, 0, 0);
        self.held.clear();
    }

    /// Of an alarm that is one of many: a suspicion remains. Whether it was one.
    pub(crate) fn withdraw(&mut self, suspect: f64) -> bool {
        let was = self.is_alarm();
        if was {
            (self.state, self.calm, self.sum) = (SUSPECT, 0, self.sum.min(suspect));
        }
        was
    }

    fn learn(&mut self, value: f64) {
        if self.n < FROZEN {
            self.n += 1;
            let before = value - self.mean;
            self.mean += before / f64::from(self.n);
            self.squares += before * (value - self.mean);
        }
    }

    /// Takes the value of a check.
    pub(crate) fn step(&mut self, value: f64, pool: &mut Pool, limits: Limits) -> Change {
        if !self.has_past() {
            if self.n > 0 {
                let n = f64::from(self.n);
                pool.widen(self.deviation(value) * (n / (n + 1.0)).sqrt());
            }
            self.learn(value);
            return Change::None;
        }
        let n = f64::from(self.n);
        let scale = pool.scale(u32::from(self.n), self.squares) * (1.0 + 1.0 / n).sqrt();
        let deviation = self.deviation(value);
        if self.is_alarm() {
            self.calm = if deviation > -LEAST { self.calm.saturating_add(1) } else { 0 };
            if self.calm >= CALM {
                self.absolve();
                return Change::Calm;
            }
            return Change::None;
        }
        let held = std::mem::take(&mut self.held);
        let change = match pool.is_ready() {
            true => self.bet(deviation, pool.rank((deviation + LEAST) / scale), limits),
            false => Change::None,
        };
        match self.state {
            0 => {
                pool.widen(deviation / (1.0 + 1.0 / n).sqrt());
                pool.add(deviation / scale);
                // It was healthy all the time.
                held.into_iter().for_each(|deviation| pool.add(deviation));
            }
            SUSPECT => {
                self.held = held;
                if self.held.len() < MOST_HELD {
                    self.held.push(deviation / scale);
                }
            }
            _ => {}
        }
        if self.sum < 1.0 {
            self.learn(value);
        }
        change
    }

    fn bet(&mut self, deviation: f64, rank: f64, limits: Limits) -> Change {
        let gain = BETS.iter().map(|bet| bet * rank.powf(bet - 1.0)).sum::<f64>() / BETS.len() as f64;
        let before = self.sum;
        let most = if limits.is_fleetwide { limits.suspect } else { 1e100 };
        self.sum = ((before + 1.0) * gain).min(most);
        if self.sum < 1.0 {
            let was = self.state;
            self.absolve();
            return if was == SUSPECT { Change::Calm } else { Change::None };
        }
        if before < 1.0 {
            (self.fall, self.falls) = (0.0, 0);
        }
        self.falls = self.falls.saturating_add(1);
        self.fall += (deviation - self.fall) / f64::from(self.falls);
        // What one check shows must be shown by another.
        let is_alarm = self.sum >= limits.alarm && self.state == SUSPECT && self.falls >= 2;
        if is_alarm && limits.may_alarm && deviation <= -LEAST {
            self.state = ALARM;
            return Change::Alarm;
        }
        if self.sum >= limits.suspect && self.state == 0 {
            self.state = SUSPECT;
            return Change::Suspect;
        }
        Change::None
    }
}
