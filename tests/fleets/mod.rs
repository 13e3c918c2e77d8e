//! Generated fleets whose truth is known, and four ways to hold their numbers against what was measured before: how
//! often each calls a healthy fleet red, and how many bad parts it lets pass.

pub(crate) mod draws;

use config::bounds::{self, KeySpread, Pool};
use draws::Draws;

/// How the numbers of a fleet come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Truth {
    /// Every number varies by this much, as a fraction.
    Noise(f64),
    /// Each key varies by an amount of its own, from 1 to 5 %.
    Mixed,
    /// Each run measures sixteen nodes of which one in twenty is bad throughout; noise 3 %.
    BadNodes,
    /// The level sinks by 3 % from the first run to the judged one; noise 2 %.
    Drift,
    /// Three runs of ten lie 8 % below the others, as where another algorithm is chosen; noise 1 %.
    TwoModes,
}

pub(crate) const TRUTHS: [Truth; 9] = [
    Truth::Noise(0.01),
    Truth::Noise(0.02),
    Truth::Noise(0.03),
    Truth::Noise(0.04),
    Truth::Noise(0.05),
    Truth::Mixed,
    Truth::BadNodes,
    Truth::Drift,
    Truth::TwoModes,
];

/// The ways compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Ours,
    /// More than 10 % below the mean.
    Fixed,
    /// More than three standard deviations below the mean.
    ThreeSigma,
    /// The mean of what lies within 10 % of it, found by iterating (SuperBench's way), and the same 10 %.
    IteratedMean,
}

pub(crate) const WAYS: [Way; 4] = [Way::Ours, Way::Fixed, Way::ThreeSigma, Way::IteratedMean];

/// The declared floor of a bandwidth.
pub(crate) const FLOOR: f64 = 0.02;
const NODES: usize = 16;
const BAD_SHARE: f64 = 0.05;

/// What one way came to over many fleets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Score {
    pub suites: u32,
    /// Healthy suites in which any number was not a pass.
    pub red_suites: u32,
    /// And those in which any was a failure outright.
    pub failed_suites: u32,
    pub healthy: u64,
    pub red: u64,
    pub bad: u64,
    /// Bad parts that passed.
    pub missed: u64,
    /// Bad parts that were neither passed nor failed, but asked for more numbers.
    pub undecided: u64,
}

/// Every way over the same fleets: `judged` keys, each with a baseline of `n` runs, one fleet per seed.
pub(crate) fn scores(truth: Truth, judged: u32, n: u32, seeds: std::ops::Range<u64>) -> [Score; 4] {
    let mut scores = [Score::default(); 4];
    for seed in seeds {
        let mut draws = Draws::new(seed, judged, n);
        let keys: Vec<Key> = (0..judged).map(|_| Key::draw(truth, n, &mut draws)).collect();
        let judges: [Vec<Limits>; 4] = WAYS.map(|way| limits(way, &keys, n, judged));
        for (score, limits) in scores.iter_mut().zip(&judges) {
            score.suites += 1;
            let (mut any_red, mut any_failed) = (false, false);
            for (key, limits) in keys.iter().zip(limits) {
                let healthy = limits.judge(key.healthy);
                score.healthy += 1;
                score.red += u64::from(healthy != Judged::Pass);
                any_red |= healthy != Judged::Pass;
                any_failed |= healthy == Judged::Fail;
                score.bad += 1;
                match limits.judge(key.bad) {
                    Judged::Pass => score.missed += 1,
                    Judged::Undecided => score.undecided += 1,
                    Judged::Fail => {}
                }
            }
            score.red_suites += u32::from(any_red);
            score.failed_suites += u32::from(any_failed);
        }
    }
    scores
}

struct Key {
    /// By run.
    baseline: Vec<Vec<f64>>,
    /// The number of a healthy part in the judged run, and that of one that a fault slows.
    healthy: f64,
    bad: f64,
}

impl Key {
    fn draw(truth: Truth, n: u32, draws: &mut Draws) -> Key {
        let level = draws.between(50.0, 500.0);
        let own = draws.between(0.01, 0.05);
        let noise = match truth {
            Truth::Noise(noise) => noise,
            Truth::Mixed => own,
            Truth::BadNodes => 0.03,
            Truth::Drift => 0.02,
            Truth::TwoModes => 0.01,
        };
        let runs = |draws: &mut Draws, run: u32| match truth {
            Truth::Drift => level * (1.0 - 0.03 * f64::from(run) / f64::from(n)),
            Truth::TwoModes if draws.fraction() < 0.3 => level * 0.92,
            // Half of the variance is that of the run, half that of the node.
            Truth::BadNodes => level * draws.factor(noise * std::f64::consts::FRAC_1_SQRT_2),
            _ => level,
        };
        let within = match truth {
            Truth::BadNodes => noise * std::f64::consts::FRAC_1_SQRT_2,
            _ => noise,
        };
        let nodes: Vec<f64> = match truth {
            Truth::BadNodes => {
                (0..NODES).map(|_| if draws.fraction() < BAD_SHARE { draws.fault() } else { 1.0 }).collect()
            }
            _ => vec![1.0],
        };
        let baseline = (0..n)
            .map(|run| {
                let level = runs(draws, run);
                nodes.iter().map(|health| level * health * draws.factor(within)).collect()
            })
            .collect();
        let level = runs(draws, n);
        let healthy = level * draws.factor(within);
        Key { baseline, healthy, bad: level * draws.fault() * draws.factor(within) }
    }

    fn all(&self) -> Vec<f64> {
        self.baseline.iter().flatten().copied().collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Pass,
    Fail,
    Undecided,
}

struct Limits {
    lower: f64,
    upper: f64,
    /// Of one number; nothing where the way does not ask whether it supports the failure.
    spread: Option<f64>,
}

impl Limits {
    fn judge(&self, value: f64) -> Judged {
        let beyond = (self.lower - value).max(value - self.upper);
        match self.spread {
            _ if beyond <= 0.0 => Judged::Pass,
            Some(spread) if bounds::supports(beyond, spread, 1).is_err() => Judged::Undecided,
            _ => Judged::Fail,
        }
    }
}

fn limits(way: Way, keys: &[Key], n: u32, judged: u32) -> Vec<Limits> {
    let below = |lower: f64| Limits { lower, upper: f64::INFINITY, spread: None };
    match way {
        Way::Ours => ours(keys, n, judged),
        Way::Fixed => keys.iter().map(|key| below(mean(&key.all()) * 0.9)).collect(),
        Way::ThreeSigma => keys
            .iter()
            .map(|key| {
                let all = key.all();
                let middle = mean(&all);
                let squares: f64 = all.iter().map(|value| (value - middle).powi(2)).sum();
                below(middle - 3.0 * (squares / (all.len() as f64 - 1.0)).sqrt())
            })
            .collect(),
        Way::IteratedMean => keys.iter().map(|key| below(iterated(key.all()) * 0.9)).collect(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn iterated(mut values: Vec<f64>) -> f64 {
    loop {
        let (middle, before) = (mean(&values), values.len());
        values.retain(|value| (value / middle - 1.0).abs() <= 0.1);
        if values.len() == before || values.is_empty() {
            return middle;
        }
    }
}

fn ours(keys: &[Key], n: u32, judged: u32) -> Vec<Limits> {
    let measured: Vec<bounds::Measured> =
        keys.iter().map(|key| bounds::Measured::from_runs(&key.baseline, FLOOR)).collect();
    let own: Vec<KeySpread> = measured.iter().filter_map(|one| one.spread()).collect();
    let pool = Pool::fit(&own, FLOOR / 4.0);
    measured
        .iter()
        .map(|one| {
            let spread = bounds::spread(pool.as_ref(), one.spread(), n);
            let bounds = bounds::bounds(one.middle, n, judged, FLOOR, spread);
            Limits {
                lower: bounds.lower,
                upper: bounds.upper,
                spread: Some(spread.relative.max(FLOOR) * one.middle),
            }
        })
        .collect()
}
