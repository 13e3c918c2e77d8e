//! Whether many values cluster around one value or around several, which quartiles do not show.

use metric::quantile::quantile;

/// Fewer values than this do not show how they are spread.
pub(crate) const MODES_FROM: usize = 40;

/// Valleys differ from dents where they are less than this of the lower peak beside them.
const VALLEY: f64 = 0.4;
/// A peak with less than this of all values is no mode.
const SHARE: f64 = 0.1;
/// How many places a bandwidth has, and how many there are at most.
const PLACES_PER_WIDTH: f64 = 4.0;
const MOST_PLACES: f64 = 8192.0;

/// The values around which sorted durations lie: the peaks of a density of their logarithms (Gaussian kernel, bandwidth
/// by Silverman's rule, with a factor of 0.7) that hold at least a tenth of all values, with valleys between them of less
/// than 0.4 of the lower of the two peaks. Nothing of fewer than `MODES_FROM` values.
pub(crate) fn modes(sorted: &[u64]) -> Option<Vec<f64>> {
    let n = sorted.len();
    if n < MODES_FROM {
        return None;
    }
    let logs: Vec<f64> = sorted.iter().map(|value| (*value).max(1) as f64).map(f64::ln).collect();
    let (least, most) = (logs[0], logs[n - 1]);
    let mean = logs.iter().sum::<f64>() / n as f64;
    let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt();
    let quartiles = logs[n * 3 / 4] - logs[n / 4];
    let spread = if quartiles > 0.0 { deviation.min(quartiles / 1.34) } else { deviation };
    let width = 0.7 * spread * (n as f64).powf(-0.2);
    if width <= 0.0 || most - least < width {
        return Some(vec![quantile(sorted, 0.5)?]);
    }
    let step = (width / PLACES_PER_WIDTH).max((most - least) / MOST_PLACES);
    let density = density(&logs, least, step, width);
    Some(
        peaks(&density)
            .into_iter()
            .map(|place| (least + (place as f64 - MARGIN as f64) * step).exp())
            .collect(),
    )
}

/// Places before the least and behind the most value.
const MARGIN: usize = 32;

fn density(logs: &[f64], least: f64, step: f64, width: f64) -> Vec<f64> {
    let place = |log: f64| ((log - least) / step).round() as usize + MARGIN;
    let last = logs.last().map_or(0, |log| place(*log));
    let mut counts = vec![0.0; last + MARGIN + 1];
    for log in logs {
        counts[place(*log)] += 1.0;
    }
    let reach = (4.0 * width / step).ceil() as usize;
    let kernel: Vec<f64> =
        (0..=reach).map(|away| (-0.5 * (away as f64 * step / width).powi(2)).exp()).collect();
    let mut density = vec![0.0; counts.len()];
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        for (away, weight) in kernel.iter().enumerate() {
            density[(at + away).min(counts.len() - 1)] += count * weight;
            if away > 0 {
                density[at.saturating_sub(away)] += count * weight;
            }
        }
    }
    density
}

/// One peak, and the places from which and up to which it is counted.
struct Peak {
    at: usize,
    from: usize,
    to: usize,
}

fn peaks(density: &[f64]) -> Vec<usize> {
    let all: f64 = density.iter().sum();
    let mut peaks: Vec<Peak> = Vec::new();
    let mut rising = true;
    let mut valley = 0;
    for at in 1..density.len() {
        if rising && density[at] < density[at - 1] {
            peaks.push(Peak { at: at - 1, from: valley, to: density.len() });
            rising = false;
        } else if !rising && density[at] > density[at - 1] {
            valley = at - 1;
            if let Some(last) = peaks.last_mut() {
                last.to = valley;
            }
            rising = true;
        }
    }
    let mass = |peak: &Peak| density[peak.from..peak.to].iter().sum::<f64>() / all;
    // The least distinct of them is joined to its neighbour, until all are distinct.
    loop {
        let dents = peaks.windows(2).enumerate().map(|(at, pair)| {
            let lower = density[pair[0].at].min(density[pair[1].at]);
            (at, density[pair[1].from] / lower)
        });
        let dent = dents.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, depth)| *depth >= VALLEY);
        let small = || {
            let all = peaks.iter().enumerate().map(|(at, peak)| (at, mass(peak)));
            let least = all.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, mass)| *mass < SHARE)?;
            // With the neighbour before it, where there is one.
            (peaks.len() > 1).then(|| least.0.saturating_sub(1))
        };
        let Some(at) = dent.map(|(at, _)| at).or_else(small) else { break };
        let next = peaks.remove(at + 1);
        let first = &mut peaks[at];
        if density[next.at] > density[first.at] {
            first.at = next.at;
        }
        first.to = next.to;
    }
    peaks.into_iter().map(|peak| peak.at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between 0 and 1 that look drawn.
    fn drawn(state: &mut u64) -> f64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(state: &mut u64) -> f64 {
        (0..12).map(|_| drawn(state)).sum::<f64>() - 6.0
    }

    fn modes_of(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_by(f64::total_cmp);
        modes(&values.iter().map(|value| *value as u64).collect::<Vec<_>>()).expect("enough")
    }

    #[test]
    fn durations_around_one_value_have_one_mode() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let (mut wrong, mut all) = (0, 0);
        for size in [40, 100, 1000] {
            for shape in 0..4 {
                for _ in 0..200 {
                    let values = (0..size).map(|_| match shape {
                        0 => 1e6 + 3e4 * normal(&mut state),
                        1 => 1e6 * (0.5 * normal(&mut state)).exp(),
                        2 => 1e6 - 2e5 * drawn(&mut state).ln(),
                        _ => 1e6 + 2e5 * drawn(&mut state),
                    });
                    wrong += usize::from(modes_of(values.collect()).len() != 1);
                    all += 1;
                }
            }
        }
        assert!(wrong * 100 <= all, "{wrong} of {all}");
    }

    #[test]
    fn durations_around_two_or_three_values_have_as_many_modes() {
        let mut state = 77;
        for _ in 0..100 {
            let two = (0..100).map(|at| if at % 3 == 0 { 27e6 } else { 50e6 } + 1.5e6 * normal(&mut state));
            let found = modes_of(two.collect());
            assert_eq!(found.len(), 2, "{found:?}");
            assert!((found[0] / 27e6 - 1.0).abs() < 0.1 && (found[1] / 50e6 - 1.0).abs() < 0.1, "{found:?}");
            let three = (0..120).map(|at| [52e6, 90e6, 160e6][at % 3] + 2e6 * normal(&mut state));
            assert_eq!(modes_of(three.collect()).len(), 3);
        }
    }

    #[test]
    fn equal_values_and_single_outliers_are_one_mode_and_few_values_have_none() {
        assert_eq!(modes(&[5; 50]), Some(vec![5.0]));
        let mut values = vec![1000u64; 60];
        values.push(1_000_000);
        assert_eq!(modes(&values).map(|modes| modes.len()), Some(1));
        assert_eq!(modes(&[0; 60]), Some(vec![0.0]));
        assert_eq!(modes(&[1, 2, 3]), None);
    }
}
