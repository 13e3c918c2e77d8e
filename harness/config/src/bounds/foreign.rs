//! What another site measured, weighed by how well it predicted what was measured here. Its level says nothing of ours:
//! two sites may differ by a few per cent in all keys. What it lends is how its keys stand to each other.

use super::pool::{FEWEST_KEYS, inverse_trigamma, logarithms, trigamma};
use super::{KeySpread, Pool, Spread, outliers, variance_of_median};
use std::f64::consts::FRAC_PI_2;

/// One key of a metric, as both sites measured it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedKey {
    /// Median of the runs here.
    pub middle: f64,
    /// Runs here.
    pub runs: u32,
    /// How much its numbers vary here; nothing after one run.
    pub spread: Option<KeySpread>,
    /// Median of the runs there.
    pub their_middle: f64,
    /// Runs there.
    pub their_runs: u32,
    /// How much its numbers vary there.
    pub their_spread: Spread,
}

/// The other site's figures of one metric, beside those of here.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreign {
    keys: usize,
    /// Sum of the logarithms of our middles over theirs.
    ratios: f64,
    /// The squared error of predicting one of our middles from theirs and all other keys.
    error: f64,
    spreads: Spreads,
}

/// What the spread of a key is pooled with.
#[derive(Debug, Clone, PartialEq)]
enum Spreads {
    /// Those of our other keys, as without the other site: its own do not explain ours.
    Ours(Pool),
    /// Those of the other site: ours in units of theirs are more alike than ours are.
    InTheirs(Pool),
}

/// The baseline of one key, with the help of another site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Helped {
    /// What is expected here.
    pub middle: f64,
    /// As many runs of our own would know the middle as well.
    pub worth: f64,
    /// How much a number varies here.
    pub spread: Spread,
}

/// What one key measured here against what is predicted from there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// As a fraction of what was predicted.
    pub off: f64,
    /// Whether it is more than chance: the two sites differ here, whatever they are in their other keys.
    pub is_off: bool,
}

/// A spread is believed to be at least this fraction of the other site's.
const LEAST_RATIO: f64 = 0.05;

/// No number of a cluster varies by more from run to run.
const LARGEST_SPREAD: f64 = 0.5;

/// Further off than so many standard errors is no chance: one key of four hundred.
const FAR: f64 = 3.0;

/// Keys that lie closer than so many per cent to the others are no outliers among them.
const CLOSE: f64 = 0.01;

/// One key of so many may be an outlier. Where more are, the sites are not alike.
const OUTLIERS: usize = 5;

/// A site that misses our middles by more says nothing of how much our numbers vary either.
const WORST_ERROR: f64 = 0.1;

/// That two sites of one instance vary alike, up to a factor, is believed until it is shown to be wrong.
const ERRORS: f64 = 2.0;

impl Foreign {
    /// From all keys that both have. Nothing where there are too few of them to say how well one site predicts the other, or it does so
    /// badly. `least` as for `Pool::fit`.
    pub fn fit(keys: &[SharedKey], least: f64) -> Option<Foreign> {
        let keys: Vec<&SharedKey> = keys.iter().filter(|key| key.is_usable()).collect();
        if keys.len() < FEWEST_KEYS {
            return None;
        }
        let kept = alike(&keys);
        if (keys.len() - kept.len()) * OUTLIERS > keys.len() {
            return None;
        }
        let keys = kept;
        let n = keys.len() as f64;
        let ratios: f64 = keys.iter().map(|key| key.log_ratio()).sum();
        let squares: f64 = keys.iter().map(|key| (key.log_ratio() - ratios / n).powi(2)).sum();
        let scatter = squares / (n - 1.0);
        let spreads = Spreads::fit(&keys, least)?;
        // What few runs miss the middle by, here and there, is part of how far the two lie apart.
        let of_theirs =
            |key: &&SharedKey| key.their_spread.relative.powi(2) * variance_of_median(key.their_runs);
        let theirs = keys.iter().map(of_theirs).sum::<f64>() / n;
        let own: Vec<f64> = keys.iter().filter_map(|key| spreads.variance_of_middle(key)).collect();
        let own = own.iter().sum::<f64>() / n;
        let error = (scatter - own).max(theirs) + scatter / (n - 1.0);
        if error.sqrt() > WORST_ERROR {
            return None;
        }
        Some(Foreign { keys: keys.len(), ratios, error, spreads })
    }

    /// Its standard error, as a fraction: of two packs, the one with the smaller predicts better.
    pub fn error(&self) -> f64 {
        self.error.sqrt()
    }

    /// The keys that both have.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// What one of the keys measured, against what the others predict of it.
    pub fn residual(&self, key: &SharedKey) -> Option<Residual> {
        let own = self.spreads.variance_of_middle(key).filter(|_| key.is_usable())?;
        let log = key.log_ratio() - self.ratios / self.keys as f64;
        let is_off = log.abs() > FAR * (own + self.error).sqrt();
        Some(Residual { off: log.exp() - 1.0, is_off })
    }

    /// Of one of the keys: nothing where it lies off what the others predict. The spread is that of the other site, scaled
    /// by what all keys show of ours, and by what the key itself shows; the middle is drawn towards what the others predict,
    /// by how well they do.
    pub fn help(&self, key: &SharedKey) -> Option<Helped> {
        if self.residual(key)?.is_off {
            return None;
        }
        let spread = self.spreads.spread(key)?;
        let own = self.spreads.variance_of_middle(key)?;
        let weight = own / (own + self.error);
        let off = key.log_ratio() - self.ratios / self.keys as f64;
        let middle = key.middle * (-weight * off).exp();
        let variance = (own * self.error / (own + self.error)) / spread.relative.powi(2);
        let worth = (FRAC_PI_2 / variance - FRAC_PI_2 + 1.0).min(f64::from(key.runs + key.their_runs));
        let is_sound = [middle, worth, spread.relative, spread.freedom].iter().all(|one| one.is_finite());
        is_sound.then(|| Helped { middle, worth: worth.max(f64::from(key.runs)), spread })
    }
}

/// The keys that are to theirs as most others are.
fn alike<'a>(keys: &[&'a SharedKey]) -> Vec<&'a SharedKey> {
    let logs: Vec<f64> = keys.iter().map(|key| key.log_ratio()).collect();
    let middle = outliers::median(&logs).unwrap_or_default();
    let near: Vec<f64> = logs.iter().map(|log| (log - middle).exp()).collect();
    let kept = outliers::kept(&near, CLOSE);
    keys.iter().zip(kept).filter(|(_, is_kept)| *is_kept).map(|(key, _)| *key).collect()
}

impl Spreads {
    fn fit(keys: &[&SharedKey], least: f64) -> Option<Spreads> {
        let ours: Vec<KeySpread> = keys.iter().filter_map(|key| key.spread).collect();
        let in_theirs: Vec<KeySpread> = keys.iter().filter_map(|key| key.ratio_of_spreads()).collect();
        let scatter = |keys: &[KeySpread], least| logarithms(keys.iter(), least).1;
        match scatter(&in_theirs, LEAST_RATIO) < scatter(&ours, least) {
            true => Pool::fit_unless_alike(&in_theirs, LEAST_RATIO, ERRORS).map(Spreads::InTheirs),
            false => Pool::fit(&ours, least).map(Spreads::Ours),
        }
    }

    fn spread(&self, key: &SharedKey) -> Option<Spread> {
        Some(match self {
            Spreads::Ours(pool) => pool.spread(key.spread, key.runs),
            Spreads::InTheirs(pool) => {
                let (ratio, theirs) = (pool.spread(key.ratio_of_spreads(), key.runs), key.their_spread);
                let freedom = both(ratio.freedom, theirs.freedom);
                Spread { relative: ratio.relative * theirs.relative, freedom }
            }
        })
    }

    fn variance_of_middle(&self, key: &SharedKey) -> Option<f64> {
        Some(self.spread(key)?.relative.powi(2) * variance_of_median(key.runs))
    }
}

impl SharedKey {
    fn is_usable(&self) -> bool {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        positive(self.middle)
            && positive(self.their_middle)
            && positive(self.their_spread.relative)
            && self.their_spread.relative <= LARGEST_SPREAD
            && self.their_spread.freedom >= 1.0
            && self.spread.is_some_and(|own| own.relative.is_finite() && own.freedom >= 1.0)
    }

    fn log_ratio(&self) -> f64 {
        (self.middle / self.their_middle).ln()
    }

    fn ratio_of_spreads(&self) -> Option<KeySpread> {
        let own = self.spread?;
        let relative = own.relative / self.their_spread.relative;
        // Less is chance, or their figure is wrong: neither says how the two vary.
        (relative >= LEAST_RATIO)
            .then_some(KeySpread { relative, freedom: both(own.freedom, self.their_spread.freedom) })
    }
}

/// Degrees of freedom of a ratio of two variances, by how much the logarithm of each varies.
fn both(a: f64, b: f64) -> f64 {
    2.0 * inverse_trigamma(trigamma(a / 2.0) + trigamma(b / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u32, own: f64, spread: f64) -> SharedKey {
        let their_middle = 100.0 + 10.0 * f64::from(at);
        SharedKey {
            middle: their_middle * own,
            runs: 3,
            spread: Some(KeySpread { relative: spread, freedom: 2.0 }),
            their_middle,
            their_runs: 20,
            their_spread: Spread { relative: 0.02, freedom: 60.0 },
        }
    }

    /// Our middles about 5 % below theirs, within about 1 %.
    fn alike_sites(n: u32) -> Vec<SharedKey> {
        let wave = |at: u32| -> f64 { [1.0, -0.5, 0.3, -0.8, 0.1, 0.6, -0.7][at as usize % 7] };
        (0..n).map(|at| key(at, 0.95 * (0.01 * wave(at)).exp(), 0.02 * (0.3 * wave(at + 3)).exp())).collect()
    }

    #[test]
    fn a_site_that_predicts_ours_is_worth_runs_and_its_own_level_is_not_taken() {
        let keys = alike_sites(30);
        let foreign = Foreign::fit(&keys, 0.005).expect("keys enough");
        let helped = foreign.help(&keys[4]).expect("a key of both");
        assert!(helped.worth > 5.0 && helped.worth <= 23.0, "{helped:?}");
        assert!((helped.middle / keys[4].middle - 1.0).abs() < 0.01, "{helped:?}");
        assert!(helped.spread.freedom > 20.0, "{helped:?}");
    }

    #[test]
    fn a_site_that_predicts_badly_is_worth_little_and_a_worse_one_nothing() {
        let keys = |off: f64| -> Vec<SharedKey> {
            (0..30).map(|at| key(at, 1.0 + if at % 2 == 0 { off } else { -off }, 0.02)).collect()
        };
        let (some, much) = (keys(0.08), keys(0.3));
        let helped = Foreign::fit(&some, 0.005).expect("keys enough").help(&some[4]).expect("a key of both");
        assert!(helped.worth < 3.2, "{helped:?}");
        assert!((helped.middle / some[4].middle - 1.0).abs() < 0.005, "{helped:?}");
        assert_eq!(Foreign::fit(&much, 0.005), None);
    }

    #[test]
    fn a_site_that_is_quieter_than_ours_does_not_narrow_what_we_measured() {
        let keys: Vec<SharedKey> = alike_sites(30)
            .into_iter()
            .map(|key| SharedKey { spread: Some(KeySpread { relative: 0.06, freedom: 2.0 }), ..key })
            .collect();
        let helped = Foreign::fit(&keys, 0.005).expect("keys enough").help(&keys[4]).expect("a key of both");
        assert!((0.055..0.08).contains(&helped.spread.relative), "{helped:?}");
    }

    #[test]
    fn few_keys_or_senseless_numbers_say_nothing() {
        assert_eq!(Foreign::fit(&alike_sites(4), 0.005), None);
        let mut keys = alike_sites(30);
        let sound = Foreign::fit(&keys, 0.005).expect("keys enough");
        keys.push(SharedKey { their_middle: 0.0, ..keys[0] });
        keys.push(SharedKey { middle: f64::NAN, ..keys[0] });
        keys.push(SharedKey { spread: None, ..keys[0] });
        assert_eq!(Foreign::fit(&keys, 0.005), Some(sound.clone()));
        assert_eq!(sound.help(&keys[31]), None);
    }

    #[test]
    fn a_key_that_lies_off_what_the_others_predict_is_reported_and_not_helped() {
        let mut keys = alike_sites(200);
        keys[7].middle *= 0.9;
        let foreign = Foreign::fit(&keys, 0.005).expect("keys enough");
        let residual = foreign.residual(&keys[7]).expect("a key of both");
        assert!(residual.is_off && (-0.12..-0.08).contains(&residual.off), "{residual:?}");
        assert_eq!(foreign.help(&keys[7]), None);
        let sound = Foreign::fit(&alike_sites(200), 0.005).expect("keys enough");
        let (with, without) = (foreign.help(&keys[4]), sound.help(&keys[4]));
        let worth = |helped: Option<Helped>| helped.map_or(0.0, |one| one.worth);
        assert!((worth(with) / worth(without) - 1.0).abs() < 0.1, "{with:?} {without:?}");
    }

    #[test]
    fn sites_of_which_a_quarter_of_the_keys_differ_are_not_alike() {
        let mut keys = alike_sites(40);
        for key in keys.iter_mut().step_by(4) {
            key.middle *= 1.2;
        }
        assert_eq!(Foreign::fit(&keys, 0.005), None);
    }

    #[test]
    fn spreads_that_no_cluster_has_are_not_taken() {
        let keys: Vec<SharedKey> = alike_sites(40)
            .into_iter()
            .map(|key| SharedKey { their_spread: Spread { relative: 1.8, freedom: 900.0 }, ..key })
            .collect();
        assert_eq!(Foreign::fit(&keys, 0.005), None);
    }
}
