//! What a summary keeps of the values of one group: its figures for a table of one report, or a tally that values of
//! other reports are added to; count and sum alone where only a mean is shown.

use super::{Stats, Tally};
use serde::{Deserialize, Serialize};

/// Figures, or what figures can be made of later.
pub trait Keeps: Sized + Send {
    /// Nothing of no values; the values may be left in another order.
    fn from_values(values: &mut [u64]) -> Option<Self>;

    /// Of values with how often each came.
    fn from_weighed(values: Vec<(u64, u64)>) -> Option<Self>;
}

impl Keeps for Stats {
    fn from_values(values: &mut [u64]) -> Option<Stats> {
        Stats::from_values_mut(values)
    }

    fn from_weighed(values: Vec<(u64, u64)>) -> Option<Stats> {
        Tally::weighed(values).stats()
    }
}

impl Keeps for Tally {
    fn from_values(values: &mut [u64]) -> Option<Tally> {
        (!values.is_empty()).then(|| Tally::from_values(values))
    }

    fn from_weighed(values: Vec<(u64, u64)>) -> Option<Tally> {
        (!values.is_empty()).then(|| Tally::weighed(values))
    }
}

/// Of at least one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Gathered<K> {
    /// Every statistic, or the tally that gives it.
    All(K),
    /// Count and sum alone: no median, extremes or deviation.
    Sum {
        /// Number of values.
        count: u64,
        /// Sum of the values.
        total: u128,
    },
}

/// A statistic of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Number of values.
    Count,
    /// Sum of the values.
    Total,
    /// Arithmetic mean.
    Mean,
    /// Mean of the two middle values where their number is even.
    Median,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// Standard deviation with n - 1; 0 for one value.
    Deviation,
}

/// The value of a `Figure`, in the unit of the values, or a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FigureValue {
    /// A count, sum, minimum or maximum: exact.
    Whole(u128),
    /// A mean, median or standard deviation.
    Real(f64),
}

impl<K> Gathered<K> {
    /// Nothing of no values.
    pub(crate) fn sum(values: impl IntoIterator<Item = u64>) -> Option<Gathered<K>> {
        let add = |(count, total), value| (count + 1, total + u128::from(value));
        let (count, total) = values.into_iter().fold((0, 0), add);
        (count > 0).then_some(Gathered::Sum { count, total })
    }
}

impl Gathered<Tally> {
    /// Takes in what another report has of the same measure: both are of one kind.
    pub(crate) fn add(&mut self, other: Gathered<Tally>) {
        match (self, other) {
            (Gathered::All(tally), Gathered::All(more)) => tally.add(more),
            (Gathered::Sum { count, total }, Gathered::Sum { count: more, total: of_more }) => {
                (*count, *total) = (*count + more, *total + of_more);
            }
            (one, other) => debug_assert!(false, "two kinds of one measure: {one:?}, {other:?}"),
        }
    }

    /// Statistics of all values added so far; `None` of an empty tally.
    pub(crate) fn figures(&mut self) -> Option<Gathered<Stats>> {
        match self {
            Gathered::All(tally) => tally.stats().map(Gathered::All),
            Gathered::Sum { count, total } => Some(Gathered::Sum { count: *count, total: *total }),
        }
    }
}

impl Gathered<Stats> {
    /// Sum of the values, known in either variant.
    pub(crate) fn total(&self) -> u128 {
        match self {
            Gathered::All(stats) => stats.total,
            Gathered::Sum { total, .. } => *total,
        }
    }

    /// `None` where a sum does not know it.
    pub(crate) fn value(&self, figure: Figure) -> Option<FigureValue> {
        let (stats, count) = match self {
            Gathered::All(stats) => (Some(stats), stats.count),
            Gathered::Sum { count, .. } => (None, *count),
        };
        Some(match figure {
            Figure::Count => FigureValue::Whole(u128::from(count)),
            Figure::Total => FigureValue::Whole(self.total()),
            Figure::Mean => FigureValue::Real(self.total() as f64 / count as f64),
            Figure::Median => FigureValue::Real(stats?.median),
            Figure::Min => FigureValue::Whole(u128::from(stats?.min)),
            Figure::Max => FigureValue::Whole(u128::from(stats?.max)),
            Figure::Deviation => FigureValue::Real(stats?.stddev),
        })
    }
}

impl Figure {
    /// Whether its `FigureValue` is `Whole`.
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Figure::Count | Figure::Total | Figure::Min | Figure::Max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &[u64]) -> Gathered<Tally> {
        Gathered::All(Tally::from_values(values))
    }

    #[test]
    fn parts_together_are_all_their_values_and_a_sum_has_only_count_total_and_mean() {
        let mut one = all(&[1, 5]);
        one.add(all(&[9]));
        let figures = one.figures().expect("values");
        assert_eq!(figures.value(Figure::Median), Some(FigureValue::Real(5.0)));
        assert_eq!(figures.value(Figure::Max), Some(FigureValue::Whole(9)));
        let mut sum = Gathered::<Tally>::sum([1, 5]).expect("values");
        sum.add(Gathered::sum([9]).expect("a value"));
        let figures = sum.figures().expect("values");
        assert_eq!((figures.value(Figure::Mean), figures.total()), (Some(FigureValue::Real(5.0)), 15));
        assert_eq!((figures.value(Figure::Median), figures.value(Figure::Min)), (None, None));
    }

    #[test]
    fn no_values_give_nothing() {
        assert_eq!(Gathered::<Stats>::sum([]), None);
        assert!(
            <Tally as Keeps>::from_values(&mut []).is_none()
                && <Stats as Keeps>::from_values(&mut []).is_none()
        );
        assert!(<Tally as Keeps>::from_weighed(Vec::new()).is_none());
    }
}
