//! Any quantile of many values.

/// Of sorted values the one at `(n - 1) * part`, between two of them by linear interpolation. Nothing of no values.
pub fn quantile(sorted: &[u64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = last as f64 * part.clamp(0.0, 1.0);
    let (low, high) = (*sorted.get(at.floor() as usize)?, *sorted.get((at.ceil() as usize).min(last))?);
    Some(low as f64 + (high - low) as f64 * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[10, 20, 30, 40, 50], 0.5), Some(30.0));
        assert_eq!(quantile(&[10, 20], 0.25), Some(12.5));
        assert_eq!(quantile(&[7], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
