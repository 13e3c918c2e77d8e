//! The exit codes, their meaning, and which one a run ends with.

use crate::artefact::Counts;

/// All passed.
pub const PASSED: i32 = 0;
/// A measured value is out of bounds, or an expected failure passed.
pub const FAILED: i32 = 1;
/// Usage or configuration error; nothing was launched.
pub const USAGE: i32 = 2;
/// Something required was not measured or not judged, or the machinery failed.
pub const INCONCLUSIVE: i32 = 3;
/// Nothing was selected, or all of it was skipped.
pub const NOTHING_SELECTED: i32 = 4;
/// The code of a rerun: what it owes is in its plan, not in the counts of its own verdicts.
pub const OWES: i32 = 5;
/// Ctrl-C: 128 + SIGINT. Reports are written.
pub const INTERRUPTED: i32 = 130;
/// 128 + SIGTERM. Reports are written.
pub const TERMINATED: i32 = 143;

/// The table of `--help` and of the documents.
pub const TABLE: &str = "\
Exit codes:
  0    all passed
  1    failed: a measured value is out of bounds (takes precedence over 3; both counts are printed)
  2    usage or configuration error; nothing was launched
  3    inconclusive: something required was not measured or not judged, or the machinery failed
  4    nothing selected, or everything selected was skipped
  5    rerun without failures that leaves assertions pending
  130  interrupted (Ctrl-C); reports are written
  143  terminated (SIGTERM); reports are written";

/// From the gravest on. Their numbers are no order: what was measured and is out of bounds beats what is not known.
const GRAVITY: [i32; 8] =
    [TERMINATED, INTERRUPTED, FAILED, USAGE, INCONCLUSIVE, OWES, NOTHING_SELECTED, PASSED];

/// Of two codes that a run has at the same time, the one that it ends with.
pub fn graver(one: i32, other: i32) -> i32 {
    GRAVITY.into_iter().find(|code| [one, other].contains(code)).unwrap_or(one)
}

/// What the counts of a run amount to.
pub fn from_counts(counts: &Counts) -> i32 {
    if counts.fail + counts.unexpected_pass > 0 {
        FAILED
    } else if counts.inconclusive + counts.error > 0 {
        INCONCLUSIVE
    } else if counts.pass + counts.expected_failure + counts.unjudged == 0 {
        NOTHING_SELECTED
    } else if counts.pass + counts.expected_failure == 0 {
        INCONCLUSIVE
    } else {
        PASSED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_of_two_codes_counts_and_not_the_higher_number() {
        for (one, other, graver_one) in [
            (FAILED, INCONCLUSIVE, FAILED),
            (NOTHING_SELECTED, INCONCLUSIVE, INCONCLUSIVE),
            (OWES, INCONCLUSIVE, INCONCLUSIVE),
            (PASSED, NOTHING_SELECTED, NOTHING_SELECTED),
            (FAILED, INTERRUPTED, INTERRUPTED),
            (PASSED, PASSED, PASSED),
        ] {
            assert_eq!((graver(one, other), graver(other, one)), (graver_one, graver_one), "{one} {other}");
        }
    }

    #[test]
    fn failures_beat_inconclusive_and_only_skips_select_nothing() {
        type Edit = fn(&mut Counts);
        let counts = |edit: Edit| {
            let mut counts = Counts::default();
            edit(&mut counts);
            counts
        };
        let table: [(Edit, i32); 14] = [
            (|c| c.unjudged = 1, INCONCLUSIVE),
            (|c| (c.pass, c.unjudged) = (1, 9), PASSED),
            (|_| (), NOTHING_SELECTED),
            (|c| c.skipped = 3, NOTHING_SELECTED),
            (|c| c.pass = 1, PASSED),
            (|c| c.expected_failure = 1, PASSED),
            (|c| (c.pass, c.skipped) = (1, 9), PASSED),
            (|c| (c.pass, c.provisional) = (1, 1), PASSED),
            (|c| (c.pass, c.inconclusive) = (9, 1), INCONCLUSIVE),
            (|c| (c.pass, c.error) = (9, 1), INCONCLUSIVE),
            (|c| c.inconclusive = 1, INCONCLUSIVE),
            (|c| (c.pass, c.fail) = (9, 1), FAILED),
            (|c| (c.fail, c.error, c.inconclusive) = (1, 5, 5), FAILED),
            (|c| (c.pass, c.unexpected_pass) = (9, 1), FAILED),
        ];
        for (edit, code) in table {
            let counts = counts(edit);
            assert_eq!(from_counts(&counts), code, "{counts:?}");
        }
    }
}
