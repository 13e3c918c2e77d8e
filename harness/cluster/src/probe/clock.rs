//! How far a node's clock is ahead of the harness's own. The node read its clock between question and answer, so the
//! offset is known to within the time that took.

use model::artefact::ClockOffset;

/// Everything that is known of the offset, in seconds: each reading narrows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offset {
    least_s: f64,
    most_s: f64,
}

impl Offset {
    pub(super) fn unknown() -> Offset {
        Offset { least_s: f64::NEG_INFINITY, most_s: f64::INFINITY }
    }

    /// What the node's clock showed at some moment from `asked_s` to `answered_s` of ours.
    pub(super) fn read(&mut self, node_s: f64, asked_s: f64, answered_s: f64) {
        if node_s.is_finite() && answered_s >= asked_s {
            self.least_s = self.least_s.max(node_s - answered_s);
            self.most_s = self.most_s.min(node_s - asked_s);
        }
    }

    /// Nothing where no clock was read, or where two readings contradict each other: a clock was set meanwhile.
    pub(super) fn known(self) -> Option<ClockOffset> {
        let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
        let is_known = self.least_s.is_finite() && self.most_s.is_finite() && self.least_s <= self.most_s;
        is_known.then(|| ClockOffset { at_least_ms: ms(self.least_s), at_most_ms: ms(self.most_s) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_known_to_within_the_time_of_the_answer() {
        let mut offset = Offset::unknown();
        assert_eq!(offset.known(), None);
        offset.read(105.0, 100.0, 102.0);
        assert_eq!(offset.known(), Some(ClockOffset { at_least_ms: 3000.0, at_most_ms: 5000.0 }));
        offset.read(108.1, 104.0, 104.2);
        let known = offset.known().expect("known");
        assert_eq!(known, ClockOffset { at_least_ms: 3900.0, at_most_ms: 4100.0 });
        assert_eq!((known.surely_off_ms(), known.perhaps_off_ms()), (3900.0, 4100.0));
        let straddles = ClockOffset { at_least_ms: -20.0, at_most_ms: 30.0 };
        assert_eq!((straddles.surely_off_ms(), straddles.perhaps_off_ms()), (0.0, 30.0));
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_has_no_offset() {
        let mut offset = Offset::unknown();
        offset.read(105.0, 100.0, 100.1);
        offset.read(100.2, 100.1, 100.2);
        assert_eq!(offset.known(), None);
        let mut odd = Offset::unknown();
        odd.read(f64::NAN, 1.0, 2.0);
        assert_eq!(odd.known(), None);
    }
}
