//! The time of a round, by a clock that may jump.

use base::text::duration;

/// What a clock may be set back by without a warning, as time servers do.
const USUAL_S: u64 = 600;

/// The time of a round, and by how much the clock was set back if that matters: then later times count as now, else checks
/// would stop until the clock is there again.
pub(super) fn time(wall_s: u64, last_s: u64) -> (u64, Option<u64>) {
    match last_s.checked_sub(wall_s) {
        Some(back_s) if back_s > USUAL_S => (wall_s, Some(back_s)),
        _ => (wall_s.max(last_s), None),
    }
}

/// What is printed of it.
pub(super) fn set_back(back_s: u64) -> String {
    let back = duration(back_s as f64);
    format!(
        "warning: the clock is {back} before the last round: one of the two is wrong; later checks count as made now"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_far_is_followed_and_one_that_is_adjusted_stands_still() {
        assert_eq!(time(2000, 1000), (2000, None));
        assert_eq!(time(1000, 1600), (1600, None));
        assert_eq!(time(1000, 90_000), (1000, Some(89_000)));
        assert!(set_back(86_400).contains("24 h before the last round"), "{}", set_back(86_400));
    }
}
