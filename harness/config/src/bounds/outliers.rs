//! The middle of numbers and how far they lie from it, and which of them do not belong to the rest.

/// The normal distribution's standard deviation, in units of its median absolute deviation.
pub const DEVIATIONS_OF_MAD: f64 = 1.4826;

/// An outlier lies more than so many deviations from the middle: one healthy number in sixteen thousand.
const FAR: f64 = 4.0;

/// Numbers in their order; nothing else may be in it than finite numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts them, without those that are not finite.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Sorted {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Sorted(values)
    }

    /// The number below which this fraction lies, linearly between its neighbours.
    pub(crate) fn quantile(&self, fraction: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let at = fraction.clamp(0.0, 1.0) * last as f64;
        let (low, high) = (self.0.get(at.floor() as usize)?, self.0.get(at.ceil() as usize)?);
        Some(low + (high - low) * at.fract())
    }

    /// None where there are no values.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
}

/// Of the finite ones; none where there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    Sorted::new(values.iter().copied()).median()
}

/// The median of the distances from the median.
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    Sorted::new(values.iter().map(|value| (value - middle).abs())).median()
}

/// Which numbers belong together, by iterating median and MAD until none is left out any more. `least` is the smallest
/// deviation, as a fraction of the middle, that is believed: few numbers may lie close by chance.
pub fn kept(values: &[f64], least: f64) -> Vec<bool> {
    let mut kept: Vec<bool> = values.iter().map(|value| value.is_finite()).collect();
    loop {
        let now: Vec<f64> =
            values.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(value, _)| *value).collect();
        let (Some(middle), Some(mad)) = (median(&now), mad(&now)) else { return kept };
        let limit = FAR * (DEVIATIONS_OF_MAD * mad).max(least * middle.abs());
        let next: Vec<bool> =
            values.iter().zip(&kept).map(|(value, kept)| *kept && (value - middle).abs() <= limit).collect();
        if next == kept {
            return kept;
        }
        kept = next;
    }
}
