//! How many of the first instances of something that is done again and again were a warm-up, by what they took.

use crate::quantile::quantile;

/// Fewer instances than this are too few to decide.
const LEAST: usize = 8;

/// The first instances that took longer than the later ones usually do: longer than the third quartile of the second half
/// of them by 1.5 times the range between its quartiles, and by 5 %. The first that did not ends the warm-up, which is
/// never more than the first half.
pub fn found(times: &[u64]) -> Option<usize> {
    if times.len() < LEAST {
        return None;
    }
    let (first, second) = times.split_at(times.len() / 2);
    let mut later = second.to_vec();
    later.sort_unstable();
    let (q1, q3) = (quantile(&later, 0.25)?, quantile(&later, 0.75)?);
    let border = (q3 + 1.5 * (q3 - q1)).max(q3 * 1.05);
    Some(first.iter().take_while(|ns| **ns as f64 > border).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_first_instances_are_a_warm_up_and_slow_later_ones_are_not() {
        let mut times = vec![100, 101, 99, 100, 102, 100, 98, 100, 101, 100];
        assert_eq!(found(&times), Some(0));
        times[0] = 400;
        times[1] = 150;
        times[3] = 900;
        assert_eq!(found(&times), Some(2));
        assert_eq!(found(&[100; 20]), Some(0));
        assert_eq!(found(&[104, 100, 100, 100, 100, 100, 100, 100]), Some(0), "within 5 %");
        assert_eq!(found(&[9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1]), Some(5), "the first half at most");
        assert_eq!(found(&[9, 1, 1, 1]), None);
    }
}
