//! What checks have cost, over a sliding window.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const DAY_S: u64 = 86_400;
/// The window that the budget holds in, in days.
const WINDOW_DAYS: u64 = 7;
/// Ordinary checks leave this part of the budget to those of suspects.
const ORDINARY: f64 = 0.9;
/// A round of ordinary checks takes no more than this part of a day's budget.
const ROUNDS: f64 = 8.0;

/// Node-seconds by day and hour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// The oldest first: the hour, and what was spent in it.
    hours: VecDeque<(u64, f64)>,
    /// Since the beginning.
    pub(crate) total: f64,
}

impl Spent {
    pub(crate) fn is_sound(&self, now_s: u64) -> bool {
        let is_sound =
            |(hour, spent): &(u64, f64)| *hour <= now_s / 3600 && spent.is_finite() && *spent >= 0.0;
        self.total.is_finite() && self.hours.iter().all(is_sound)
    }

    /// A clock that was set back: nothing was spent later than now.
    pub(crate) fn set_back(&mut self, now_s: u64) {
        self.hours.iter_mut().for_each(|(hour, _)| *hour = (*hour).min(now_s / 3600));
    }

    pub(crate) fn add(&mut self, at_s: u64, node_s: f64) {
        let hour = at_s / 3600;
        self.total += node_s;
        match self.hours.back_mut() {
            Some((last, spent)) if *last >= hour => *spent += node_s,
            _ => self.hours.push_back((hour, node_s)),
        }
        while self.hours.len() as u64 > WINDOW_DAYS * 24 + 1 {
            self.hours.pop_front();
        }
    }

    fn since(&self, now_s: u64, days: u64) -> f64 {
        let first = now_s.saturating_sub(days * DAY_S) / 3600;
        self.hours
            .iter()
            .filter(|(hour, _)| *hour >= first)
            .map(|(_, spent)| spent)
            .fold(0.0, |sum, spent| sum + spent)
    }

    /// Spent within the window, in node-seconds.
    pub(crate) fn in_window(&self, now_s: u64) -> f64 {
        self.since(now_s, WINDOW_DAYS)
    }

    /// What may be spent now: on suspects, and on others. `share` is node-seconds a second; `least` is what one check costs.
    pub(crate) fn left(&self, now_s: u64, share: f64, least: f64) -> (f64, f64) {
        let (day, window) = (share * DAY_S as f64, share * (DAY_S * WINDOW_DAYS) as f64);
        // A small cluster saves for some days for one check.
        let most = day.max(least / ORDINARY);
        let (of_week, of_day) = (self.in_window(now_s), self.since(now_s, 1));
        let all = (window - of_week).min(most - of_day);
        let ordinary = (ORDINARY * window - of_week).min(ORDINARY * most - of_day);
        (all, ordinary.min((day / ROUNDS).max(least)))
    }

    /// Whether a check of this cost ever fits.
    pub(crate) fn is_possible(share: f64, least: f64) -> bool {
        least <= ORDINARY * share * (DAY_S * WINDOW_DAYS) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_spent_in_any_week_than_the_budget_and_a_part_is_left_for_suspects() {
        let (mut spent, share, least) = (Spent::default(), 0.5, 600.0);
        for hour in 0..24 * 30_u64 {
            let now_s = hour * 3600;
            let (all, ordinary) = spent.left(now_s, share, least);
            assert!(ordinary <= all + 1e-9, "{all} {ordinary}");
            if ordinary >= least {
                spent.add(now_s, (ordinary / least).floor() * least);
            }
            let week = spent.in_window(now_s);
            assert!(week <= 0.91 * share * 7.0 * 86_400.0, "{week} in hour {hour}");
        }
        assert!(spent.total > 0.75 * share * 30.0 * 86_400.0, "the budget is used: {}", spent.total);
    }

    #[test]
    fn a_small_cluster_saves_for_a_check_and_one_that_never_fits_is_known() {
        assert!(Spent::is_possible(0.002, 600.0));
        assert!(!Spent::is_possible(0.0005, 600.0));
        let mut spent = Spent::default();
        assert!(spent.left(0, 0.002, 600.0).1 >= 172.0 * 0.9);
        spent.add(0, 600.0);
        assert!(spent.left(3600, 0.002, 600.0).0 < 600.0);
        assert!(spent.left(8 * 86_400, 0.002, 600.0).0 >= 600.0);
    }
}
