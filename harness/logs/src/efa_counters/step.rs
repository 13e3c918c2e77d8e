//! What a counter did from one reading to a later one: it only grows, unless it passed its end or its driver was
//! reloaded.

/// How far it went, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// By how much it grew; 0 where it did not move.
    On(u64),
    /// Past 2^64, which loses nothing.
    Wrapped(u64),
    /// Past 2^32, an unknown number of times.
    Narrow,
    /// The driver was reloaded.
    Fell,
}

/// 400 Gb/s, the fastest NIC of any instance, in bytes per hundredth of a second.
const FASTEST_PER_CS: u64 = 500_000_000;
/// How near to 2^32 a counter must have been for its fall to be taken for a wrap.
const NARROW: u64 = 1 << 28;

impl Step {
    /// Uptimes are cut off to hundredths, so one more may have passed than they show.
    pub fn between(before: u64, value: u64, cs: u64) -> Step {
        let forward = value.wrapping_sub(before);
        if value >= before {
            return Step::On(forward);
        }
        let narrow = u64::from(u32::MAX).checked_sub(before).map(|left| left + value + 1);
        if before > u64::MAX / 2 && forward <= cs.saturating_add(1).saturating_mul(FASTEST_PER_CS) {
            Step::Wrapped(forward)
        } else if narrow.is_some_and(|forward| forward <= NARROW) {
            Step::Narrow
        } else {
            Step::Fell
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_falls_passed_its_end_or_was_reset() {
        for (before, value, cs, expected) in [
            (5, 5, 0, Step::On(0)),
            (5, 9, 100, Step::On(4)),
            (u64::MAX - 1, 3, 100, Step::Wrapped(5)),
            (u64::MAX - 1, u64::MAX / 2, 1, Step::Fell),
            (u64::from(u32::MAX) - 1, 3, 100, Step::Narrow),
            (1_000_000, 3, 100, Step::Fell),
            (1 << 40, 0, u64::MAX, Step::Fell),
        ] {
            assert_eq!(Step::between(before, value, cs), expected, "{before} to {value}");
        }
    }
}
