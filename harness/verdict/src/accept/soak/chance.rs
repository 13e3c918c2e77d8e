//! How likely numbers without a trend lie so much in rising order, whatever their distribution: Kendall's test, exact.

/// Longer series are thinned, which changes no chance: any choice of their places is as much without order.
const MOST: usize = 150;

/// The chance that so few pairs or fewer are out of rising order where every order is as likely as any other. Equal numbers
/// count as out of order, so that the chance is never stated too low.
pub(super) fn rising_by_chance(values: &[f64]) -> f64 {
    let step = values.len().div_ceil(MOST).max(1);
    let thinned: Vec<f64> = values.iter().copied().step_by(step).collect();
    let n = thinned.len();
    let out_of_order = |at: usize| thinned[at + 1..].iter().filter(|later| **later <= thinned[at]).count();
    let most = (0..n).map(out_of_order).sum::<usize>();
    // By the number of pairs out of order, the part of all orders of the first m numbers that have it.
    let mut part = vec![1.0];
    for m in 2..=n {
        let pairs = (m * (m - 1) / 2).min(most);
        let mut next = vec![0.0; pairs + 1];
        let mut sum = 0.0;
        for (at, place) in next.iter_mut().enumerate() {
            sum += part.get(at).copied().unwrap_or_default();
            // The m-th number may be put before none or up to m - 1 of the others.
            if at >= m {
                sum -= part.get(at - m).copied().unwrap_or_default();
            }
            *place = (sum / m as f64).max(0.0);
        }
        part = next;
    }
    part.iter().take(most + 1).sum::<f64>().min(1.0)
}

/// The fewest numbers whose rise can be as unlikely as that.
pub(super) fn fewest(chance: f64) -> u32 {
    let mut least = 1.0;
    (1..)
        .find(|n| {
            least /= f64::from(*n);
            least <= chance || *n as usize >= MOST
        })
        .unwrap_or(MOST as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use rand::seq::SliceRandom as _;

    #[test]
    fn the_chance_is_that_of_counting_all_orders() {
        // Of the 24 orders of four numbers 1, 3, 5, 6, 5, 3, 1 have 0 to 6 pairs out of order.
        for (values, part) in [
            ([1.0, 2.0, 3.0, 4.0], 1.0),
            ([2.0, 1.0, 3.0, 4.0], 4.0),
            ([2.0, 1.0, 4.0, 3.0], 9.0),
            ([4.0, 3.0, 2.0, 1.0], 24.0),
        ] {
            assert!((rising_by_chance(&values) - part / 24.0).abs() < 1e-12, "{values:?}");
        }
        assert!((rising_by_chance(&[7.0; 12]) - 1.0).abs() < 1e-9, "equal numbers do not rise");
        assert!(rising_by_chance(&[]) > 0.99 && rising_by_chance(&[1.0]) > 0.99);
        let rising: Vec<f64> = (0..400).map(f64::from).collect();
        assert!(rising_by_chance(&rising) < 1e-100);
    }

    #[test]
    fn numbers_in_no_order_are_unlikely_no_more_often_than_stated() {
        let mut draws = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let mut values: Vec<f64> = (0..40).map(f64::from).collect();
        let mut below = 0;
        for _ in 0..2000 {
            values.shuffle(&mut draws);
            below += usize::from(rising_by_chance(&values) <= 0.05);
        }
        assert!((60..=140).contains(&below), "{below} of 2000 at 5 %");
    }

    #[test]
    fn the_fewest_numbers_are_those_whose_single_rising_order_is_unlikely_enough() {
        assert_eq!([0.5, 0.01, 1e-7].map(fewest), [2, 5, 11]);
    }
}
