//! Means of samples in the bins of a window: of moments all alike, of intervals by how much of a bin they cover.

use super::packed::PackedSamples;
use super::window::Window;

/// The mean of the samples in one bin; none for a bin without samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    /// How many samples, or how many nanoseconds of them.
    pub weight: u64,
}

impl Mean {
    pub(super) fn value(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.sum / self.weight as f64)
    }

    /// Of bins together.
    pub(super) fn combine(bins: &[Mean]) -> Mean {
        bins.iter().fold(Mean::default(), |all, one| Mean {
            sum: all.sum + one.sum,
            weight: all.weight + one.weight,
        })
    }

    fn add(&mut self, value: f64, weight: u64) {
        self.sum += value * weight as f64;
        self.weight += weight;
    }
}

/// Of samples of moments.
pub(super) fn from_moments(samples: &PackedSamples, shift: i64, window: &Window) -> Vec<Mean> {
    let mut bins = vec![Mean::default(); window.bins()];
    for sample in samples.iter() {
        if let Some(bin) = window.bin_of(sample.start.saturating_add(shift)) {
            bins[bin].add(sample.value, 1);
        }
    }
    bins
}

/// Of rates over intervals, as far as these lie in the window and between the two moments that a filter leaves.
pub(super) fn from_rates(
    samples: &PackedSamples,
    (from, to): (i64, i64),
    shift: i64,
    window: &Window,
) -> Vec<Mean> {
    let mut bins = vec![Mean::default(); window.bins()];
    for sample in samples.iter() {
        let start = sample.start.max(from).saturating_add(shift);
        let end = sample.end.min(to).saturating_add(shift);
        let first = window.edges.partition_point(|edge| *edge <= start).saturating_sub(1);
        for (bin, edges) in bins.iter_mut().zip(window.edges.windows(2)).skip(first) {
            if edges[0] >= end {
                break;
            }
            let (start, end) = (start.max(edges[0]), end.min(edges[1]));
            if end > start {
                bin.add(sample.value, end.wrapping_sub(start) as u64);
            }
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::super::packed::Sample;
    use super::*;
    use proptest::prelude::*;

    fn window(edges: &[i64]) -> Window {
        Window { edges: edges.to_vec(), shifts: Vec::new(), notes: Vec::new() }
    }

    #[test]
    fn a_bin_without_samples_has_no_mean() {
        let samples = PackedSamples::pack(vec![
            Sample { start: 3, end: 3, value: 8.0 },
            Sample { start: 4, end: 4, value: 2.0 },
            Sample { start: 30, end: 30, value: 7.0 },
            Sample { start: 31, end: 31, value: 90.0 },
        ]);
        let means: Vec<Option<f64>> =
            from_moments(&samples, 0, &window(&[0, 10, 20, 30])).iter().map(Mean::value).collect();
        assert_eq!(means, [Some(5.0), None, Some(7.0)]);
    }

    proptest! {
        #[test]
        fn rates_are_weighted_by_the_time_that_they_were_seen(
            drawn in proptest::collection::vec((-5i64..35, 0i64..12, 0i32..9), 0..12),
            filter in (-5i64..20, 0i64..40),
            shift in -7i64..7,
        ) {
            let samples: Vec<Sample> = drawn.iter()
                .map(|(start, ns, value)| Sample { start: *start, end: start + ns, value: f64::from(*value) }).collect();
            let (from, to) = (filter.0, filter.0 + filter.1);
            let edges = [0i64, 7, 8, 20, 30];
            let means = from_rates(&PackedSamples::pack(samples.clone()), (from, to), shift, &window(&edges));
            for (at, bin) in edges.windows(2).enumerate() {
                // Moment by moment.
                let (mut sum, mut weight) = (0.0, 0);
                for moment in bin[0]..bin[1] {
                    for one in &samples {
                        let of_report = moment - shift;
                        if (one.start..one.end).contains(&of_report) && (from..to).contains(&of_report) {
                            sum += one.value;
                            weight += 1;
                        }
                    }
                }
                prop_assert_eq!(means[at].weight, weight);
                prop_assert_eq!(means[at].value(), (weight > 0).then(|| sum / weight as f64));
            }
        }
    }
}
