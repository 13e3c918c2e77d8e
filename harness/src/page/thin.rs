//! Which of very many points are drawn: so few that a page stays small, and every extreme among them.

/// The points that are kept, by ascending position: the first and the last one, and of each of equal spans the least,
/// the most, and one without a value where there is one, so that a broken line stays broken. No more than `most` of them,
/// and all where there are no more than that.
pub(super) fn points(values: &[Option<f64>], most: usize) -> Vec<usize> {
    if values.len() <= most {
        return (0..values.len()).collect();
    }
    let mut kept = vec![0, values.len() - 1];
    for span in spans(values.len(), most.saturating_sub(2) / 3) {
        let (least, highest) = extremes(values, span.clone());
        let gap = span.clone().find(|at| number(values[*at]).is_none());
        kept.extend([least, highest, gap].into_iter().flatten());
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Neighbouring columns of a map as two: the least and the most of each row among `together` of them, in the order in
/// which they were measured. A pair without any measured value is not measured.
pub(super) fn pairs(values: &[Option<f64>], together: usize) -> Vec<Option<f64>> {
    let starts = (0..values.len()).step_by(together.max(1));
    starts
        .flat_map(|start| {
            let (least, highest) = extremes(values, start..values.len().min(start + together));
            let (first, second) = (least.min(highest), least.max(highest));
            [first, second].map(|at| at.and_then(|at| values[at]))
        })
        .collect()
}

/// `count` spans of nearly equal length that cover everything.
pub(super) fn spans(length: usize, count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = count.min(length);
    (0..count).map(move |at| at * length / count..(at + 1) * length / count)
}

fn number(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// Where the first least and the first most stand.
fn extremes(values: &[Option<f64>], span: std::ops::Range<usize>) -> (Option<usize>, Option<usize>) {
    let measured = || span.clone().filter_map(|at| Some((at, number(values[at])?)));
    let least = measured().reduce(|known, next| if next.1 < known.1 { next } else { known });
    let highest = measured().reduce(|known, next| if next.1 > known.1 { next } else { known });
    (least.map(|(at, _)| at), highest.map(|(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Vec<Option<f64>>> {
        let value = prop_oneof![6 => (-1e9..1e9).prop_map(Some), 1 => Just(None), 1 => Just(Some(f64::NAN))];
        prop::collection::vec(value, 0..400)
    }

    fn extreme(values: impl Iterator<Item = Option<f64>>) -> Option<(f64, f64)> {
        values.filter_map(number).fold(None, |known, value| match known {
            None => Some((value, value)),
            Some((least, most)) => Some((f64::min(least, value), f64::max(most, value))),
        })
    }

    proptest! {
        #[test]
        fn the_extremes_of_every_span_and_both_ends_are_kept_within_the_budget(
            values in values(),
            most in 5usize..120,
        ) {
            let kept = points(&values, most);
            prop_assert!(kept.len() <= most.max(5));
            prop_assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
            if values.len() <= most {
                prop_assert_eq!(kept.len(), values.len());
            } else {
                prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, values.len() - 1));
                for span in spans(values.len(), (most - 2) / 3) {
                    let of_kept = kept.iter().filter(|at| span.contains(at)).map(|at| values[*at]);
                    prop_assert_eq!(extreme(of_kept), extreme(values[span.clone()].iter().copied()));
                    let breaks = values[span.clone()].iter().any(|value| number(*value).is_none());
                    let kept_break = kept.iter().any(|at| span.contains(at) && number(values[*at]).is_none());
                    prop_assert_eq!(breaks, kept_break);
                }
            }
        }

        #[test]
        fn a_pair_of_columns_has_the_extremes_of_those_it_stands_for(values in values(), together in 1usize..40) {
            let pairs = pairs(&values, together);
            prop_assert_eq!(pairs.len(), values.len().div_ceil(together) * 2);
            for (at, span) in values.chunks(together).enumerate() {
                let pair = pairs[2 * at..2 * at + 2].iter().copied();
                prop_assert_eq!(extreme(pair), extreme(span.iter().copied()));
            }
        }

        #[test]
        fn spans_cover_all_and_do_not_overlap(length in 0usize..500, count in 1usize..60) {
            let all: Vec<usize> = spans(length, count).flatten().collect();
            prop_assert_eq!(all, (0..length).collect::<Vec<_>>());
        }
    }
}
