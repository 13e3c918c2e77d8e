//! Medians and deviations that a few outliers do not move.

/// How many robust deviations one median deviation is, where values are spread normally.
pub(crate) const NORMAL: f64 = 1.4826;

/// The middle value, or between the two in the middle; the values are left in another order.
pub(crate) fn median<T: Middle>(values: &mut [T]) -> Option<T> {
    let (middle, even) = (values.len() / 2, values.len().is_multiple_of(2));
    if values.is_empty() {
        return None;
    }
    let (left, upper, _) = values.select_nth_unstable_by(middle, T::order);
    let upper = *upper;
    match left.iter().copied().max_by(T::order) {
        Some(lower) if even => Some(T::between(lower, upper)),
        _ => Some(upper),
    }
}

/// Of sorted values all but the one at `without`.
pub(crate) fn median_of_others(sorted: &[i64], without: usize) -> Option<i64> {
    let left = sorted.len().checked_sub(1).filter(|left| *left > 0)?;
    let at = |place: usize| sorted[place + usize::from(place >= without)];
    Some(i64::between(at((left - 1) / 2), at(left / 2)))
}

/// The robust deviation of values around their median.
pub(crate) fn deviation(values: &[i64], median: i64) -> f64 {
    let mut apart: Vec<i64> = values.iter().map(|value| apart(*value, median)).collect();
    self::median(&mut apart).map_or(0.0, |apart| NORMAL * apart as f64)
}

fn apart(a: i64, b: i64) -> i64 {
    i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX)
}

/// What has a middle.
pub(crate) trait Middle: Copy {
    /// A total order; that of `total_cmp` for `f64`.
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering;
    /// The mean of two; whole numbers are rounded towards 0.
    fn between(a: Self, b: Self) -> Self;
}

impl Middle for i64 {
    fn order(a: &i64, b: &i64) -> std::cmp::Ordering {
        a.cmp(b)
    }

    fn between(a: i64, b: i64) -> i64 {
        // The middle of two numbers of 64 bits is one too.
        ((i128::from(a) + i128::from(b)) / 2) as i64
    }
}

impl Middle for i128 {
    fn order(a: &i128, b: &i128) -> std::cmp::Ordering {
        a.cmp(b)
    }

    /// Times are sums of few numbers of 64 bits, so that two of them are far from what fits.
    fn between(a: i128, b: i128) -> i128 {
        (a + b) / 2
    }
}

impl Middle for f64 {
    fn order(a: &f64, b: &f64) -> std::cmp::Ordering {
        a.total_cmp(b)
    }

    fn between(a: f64, b: f64) -> f64 {
        a / 2.0 + b / 2.0
    }
}

/// What does not fit into 64 bits is as far as they reach.
pub(crate) fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_that_of_the_sorted_values() {
        for (mut values, expected) in [
            (vec![], None),
            (vec![7], Some(7)),
            (vec![9, 1], Some(5)),
            (vec![3, 1, 2], Some(2)),
            (vec![4, 1, 3, 2], Some(2)),
            (vec![i64::MIN, i64::MAX, i64::MAX], Some(i64::MAX)),
            (vec![i64::MAX, i64::MAX], Some(i64::MAX)),
        ] {
            assert_eq!(median::<i64>(&mut values), expected, "{values:?}");
        }
    }

    #[test]
    fn the_middle_of_the_others_leaves_one_out() {
        let sorted = [1, 5, 9, 100];
        let seen: Vec<_> = (0..4).map(|without| median_of_others(&sorted, without)).collect();
        assert_eq!(seen, [Some(9), Some(9), Some(5), Some(5)]);
        assert_eq!((median_of_others(&[3, 8], 0), median_of_others(&[3], 0)), (Some(8), None));
        assert_eq!(median_of_others(&[0, 2, 4], 1), Some(2), "between the two that are left");
    }

    #[test]
    fn a_wild_value_does_not_move_the_deviation() {
        assert_eq!(deviation(&[9, 10, 11, i64::MAX], 10), NORMAL);
        assert_eq!(deviation(&[i64::MIN, i64::MAX], 0), NORMAL * i64::MAX as f64);
    }
}
