//! The time span of a map: one window over all reports, cut into equal bins. The maps compute the content of bins.

use crate::recipe::of_reports::ReportExtract;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::spans::Spans;
use serde::{Deserialize, Serialize};

pub(super) const BINS: ArgumentSpec = argument!(
    "bins",
    "number of equal bins that the window is cut into, from 1 to 10,000, and no more than it has nanoseconds",
    Takes::Number(30)
);

pub(super) const NO_SHIFT: ArgumentSpec = argument!(
    "no-shift",
    "lets all reports begin at the same moment, as for runs of different days",
    Takes::Nothing
);

const MOST_BINS: u64 = 10_000;

/// The time spans of a report, on its own clock, in nanoseconds since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Coverage {
    /// From the first to the last of what the map shows.
    pub shown: (i64, i64),
    /// From the first to the last of anything that was recorded.
    pub recorded: (i64, i64),
    /// The span of a filter by time.
    pub asked: Option<(i64, i64)>,
}

impl Coverage {
    /// For samples, where nothing else says what was recorded.
    pub(super) fn sampled(shown: (i64, i64), asked: Option<(i64, i64)>) -> Coverage {
        Coverage { shown, recorded: shown, asked }
    }

    /// The recorded part of the filter's span; the end may lie before the beginning.
    pub(super) fn measured(&self) -> (i64, i64) {
        match self.asked {
            Some((from, to)) => (self.recorded.0.max(from), self.recorded.1.min(to)),
            None => self.recorded,
        }
    }

    fn wanted(&self) -> (i64, i64) {
        if self.asked.is_some() { self.measured() } else { self.shown }
    }
}

/// One report, or one capture, on the common time axis.
#[derive(Debug, Clone)]
pub(super) struct PlacedReport<'a> {
    pub file: &'a str,
    pub coverage: Coverage,
    /// The UTC of its zero.
    pub utc_epoch_ns: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// Where bins begin, and where the last one ends.
    pub edges: Vec<i64>,
    /// By how much each is moved to the common clock, whose zero is that of the earliest.
    pub shifts: Vec<i64>,
    pub notes: Vec<String>,
}

impl Window {
    /// Over reports, whose extracts give their time spans.
    pub(super) fn over_reports<T>(
        reports: &[ReportExtract<&T>],
        coverage: fn(&T) -> Coverage,
        arguments: &Arguments,
    ) -> Option<Window> {
        let placed = reports.iter().map(|report| PlacedReport {
            file: &report.file,
            coverage: coverage(report.extract),
            utc_epoch_ns: report.utc_epoch_ns,
        });
        Window::over(&placed.collect::<Vec<_>>(), arguments)
    }

    /// Nothing where nothing is laid.
    pub(super) fn over(placed: &[PlacedReport], arguments: &Arguments) -> Option<Window> {
        let mut notes = Vec::new();
        let shifts = match arguments.has(NO_SHIFT.name) {
            true => vec![0; placed.len()],
            false => shifts(placed, &mut notes),
        };
        let moved = placed.iter().zip(&shifts).map(|(one, shift)| {
            let (from, to) = one.coverage.wanted();
            (from.saturating_add(*shift), to.saturating_add(*shift))
        });
        let (from, to) = moved.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
        // A single moment gets a window of one nanosecond.
        let from = from.min(i64::MAX - 1);
        let to = to.max(from + 1);
        let length = to.wrapping_sub(from) as u64;
        let asked = arguments.number(&BINS);
        let bins = asked.clamp(1, MOST_BINS).min(length);
        if bins != asked {
            notes.push(format!("bins: {length} ns cannot be cut into {asked}; using {bins}"));
        }
        let edge =
            |at: u64| from.wrapping_add((u128::from(length) * u128::from(at) / u128::from(bins)) as i64);
        Some(Window { edges: (0..=bins).map(edge).collect(), shifts, notes })
    }

    pub(super) fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.edges[0], self.edges[self.bins()])
    }

    /// How much of each bin lies in the set.
    pub(super) fn within(&self, set: &Spans) -> Vec<u64> {
        let ruler = set.ruler();
        self.edges.windows(2).map(|bin| ruler.within(bin[0], bin[1])).collect()
    }

    /// The bin of a moment; the end of the window belongs to the last one.
    pub(super) fn bin_of(&self, moment: i64) -> Option<usize> {
        let (from, to) = self.bounds();
        let after = self.edges.partition_point(|edge| *edge <= moment);
        (from..=to).contains(&moment).then(|| (after - 1).min(self.bins() - 1))
    }
}

/// By the clocks of hosts, where every report has its start time; else none, with a note.
fn shifts(placed: &[PlacedReport], notes: &mut Vec<String>) -> Vec<i64> {
    let none = vec![0; placed.len()];
    if placed.len() < 2 {
        return none;
    }
    if let Some(silent) = placed.iter().find(|one| one.utc_epoch_ns.is_none()) {
        notes.push(format!(
            "reports are not aligned by clock but by their beginnings, since one lacks its start time: {}",
            silent.file
        ));
        return none;
    }
    let first = placed.iter().filter_map(|one| one.utc_epoch_ns).min().unwrap_or_default();
    let shift = |one: &PlacedReport| one.utc_epoch_ns.and_then(|epoch| epoch.checked_sub(first));
    match placed.iter().map(shift).collect::<Option<Vec<i64>>>() {
        Some(shifts) => shifts,
        None => {
            notes.push(
                "reports are not aligned by clock, since their beginnings are too far apart".to_owned(),
            );
            none
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(shown: (i64, i64), utc_epoch_ns: Option<i64>) -> PlacedReport<'static> {
        PlacedReport {
            file: "r",
            coverage: Coverage { shown, recorded: (0, 100), asked: None },
            utc_epoch_ns,
        }
    }

    fn over(placed: &[PlacedReport], words: &[&str]) -> Window {
        let arguments = Arguments::read("m", &[BINS, NO_SHIFT], words).expect("known");
        Window::over(placed, &arguments).expect("laid")
    }

    #[test]
    fn bins_are_equal_and_reach_from_the_first_to_the_last_of_all_that_is_shown() {
        let window = over(&[placed((5, 20), Some(1_000)), placed((0, 30), Some(1_010))], &["bins=3"]);
        assert_eq!((window.edges, window.shifts), (vec![5, 16, 28, 40], vec![0, 10]));
        let window =
            over(&[placed((5, 20), Some(1_000)), placed((0, 30), Some(1_010))], &["bins=3", "no-shift"]);
        assert_eq!((window.edges, window.notes.len()), (vec![0, 10, 20, 30], 0));
    }

    #[test]
    fn without_a_start_time_reports_are_not_aligned_and_a_note_says_so() {
        let window = over(&[placed((5, 20), Some(1_000)), placed((0, 30), None)], &["bins=1"]);
        assert_eq!((window.edges, window.shifts), (vec![0, 30], vec![0, 0]));
        assert!(window.notes[0].contains("not aligned by clock"), "{:?}", window.notes);
        let far = over(&[placed((0, 1), Some(i64::MIN)), placed((0, 1), Some(i64::MAX))], &[]);
        assert!(far.notes[0].contains("too far apart"), "{:?}", far.notes);
        assert_eq!(over(&[placed((5, 20), None)], &["bins=1"]).notes.len(), 0, "one has no other clock");
    }

    #[test]
    fn a_filter_is_the_window_as_far_as_anything_was_recorded() {
        let mut one = placed((40, 50), None);
        one.coverage.asked = Some((30, i64::MAX));
        assert_eq!(over(&[one], &["bins=1"]).edges, [30, 100]);
    }

    #[test]
    fn bins_that_cannot_be_cut_are_noted() {
        for (shown, words, edges) in [
            ((7, 9), ["bins=0"], vec![7, 9]),
            ((7, 9), ["bins=5"], vec![7, 8, 9]),
            ((7, 7), ["bins=2"], vec![7, 8]),
            ((i64::MAX, i64::MAX), ["bins=2"], vec![i64::MAX - 1, i64::MAX]),
        ] {
            let window = over(&[placed(shown, None)], &words);
            assert_eq!((window.edges, window.notes.len()), (edges, 1), "{words:?}");
        }
        assert_eq!(over(&[placed((i64::MIN, i64::MAX), None)], &["bins=99999"]).bins(), 10_000);
    }

    #[test]
    fn the_end_of_the_window_belongs_to_the_last_bin() {
        let window = over(&[placed((0, 30), None)], &["bins=3"]);
        let bins = [-1, 0, 9, 10, 29, 30, 31].map(|moment| window.bin_of(moment));
        assert_eq!(bins, [None, Some(0), Some(0), Some(1), Some(2), Some(2), None]);
    }
}
