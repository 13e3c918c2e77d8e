//! Two sites of the same instance: one that has measured for long and exports a pack, and one with a few runs of its own
//! that imports it. How often each judges healthy parts red, and how many bad parts pass there.

use super::draws::Draws;
use config::bounds::{self, Foreign, KeySpread, Measured, Pool, SharedKey};

/// How the second site differs from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Truth {
    /// All keys are slower or faster by the same, up to 5 %.
    Level,
    /// Each key is slower or faster by an amount of its own, by 3 %.
    EachKey,
    /// No key has anything to do with that of the other site.
    Unlike,
    /// Its numbers vary twice as much.
    Noisier,
    /// What each key varies by has nothing to do with the other site: 1 to 5 %, there and here.
    OwnNoise,
    /// Half of what a run varies by is the same for all keys of the run.
    WholeRuns,
}

pub(crate) const TRUTHS: [Truth; 6] =
    [Truth::Level, Truth::EachKey, Truth::Unlike, Truth::Noisier, Truth::OwnNoise, Truth::WholeRuns];

/// What is compared: runs of its own, and whether the pack is used.
pub(crate) const WAYS: [(u32, bool); 3] = [(3, false), (3, true), (20, false)];

/// What one way came to over many pairs of sites.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Score {
    pub suites: u64,
    pub red_suites: u64,
    pub bad: u64,
    pub missed: u64,
    /// How far below the middle a number may lie, summed over keys: 1 where nothing is out of bounds.
    pub width: f64,
}

const FLOOR: f64 = 0.02;
const THEIR_RUNS: u32 = 20;

/// Each way over the same pairs of sites, of so many keys each.
pub(crate) fn scores(truth: Truth, keys: u32, seeds: std::ops::Range<u64>) -> [Score; 3] {
    let mut scores = [Score::default(); 3];
    for seed in seeds {
        let mut draws = Draws::new(seed, keys, 0);
        let sites = Sites::draw(truth, keys, &mut draws);
        for (score, (runs, uses_pack)) in scores.iter_mut().zip(WAYS) {
            score.suites += 1;
            let mut is_red = false;
            for (key, limits) in sites.keys.iter().zip(sites.limits(runs, uses_pack)) {
                is_red |= limits.fails(key.healthy);
                score.bad += 1;
                score.missed += u64::from(!limits.is_outside(key.bad));
                score.width += 1.0 - limits.lower / key.middle;
            }
            score.red_suites += u64::from(is_red);
        }
    }
    scores
}

struct Sites {
    keys: Vec<Key>,
}

struct Key {
    /// One for each run.
    theirs: Vec<f64>,
    ours: Vec<f64>,
    /// The truth here.
    middle: f64,
    /// A new number of a healthy part here, and that of one that a fault slows.
    healthy: f64,
    bad: f64,
}

struct Limits {
    lower: f64,
    upper: f64,
    spread: f64,
}

impl Limits {
    fn is_outside(&self, value: f64) -> bool {
        value < self.lower || value > self.upper
    }

    fn fails(&self, value: f64) -> bool {
        let beyond = (self.lower - value).max(value - self.upper);
        bounds::supports(beyond, self.spread, 1).is_ok()
    }
}

impl Sites {
    fn draw(truth: Truth, keys: u32, draws: &mut Draws) -> Sites {
        let level = draws.between(0.95, 1.05);
        let ours = WAYS.map(|(runs, _)| runs).into_iter().max().unwrap_or(0) as usize;
        // One more for the run that is judged.
        let whole: Vec<f64> = (0..=ours).map(|_| draws.factor(0.015)).collect();
        let keys = (0..keys)
            .map(|_| {
                let their_middle = draws.between(50.0, 500.0);
                let their_noise = draws.between(0.01, 0.05);
                let middle = match truth {
                    Truth::EachKey => their_middle * level * draws.factor(0.03),
                    Truth::Unlike => draws.between(50.0, 500.0),
                    _ => their_middle * level,
                };
                let noise = match truth {
                    Truth::Noisier => 2.0 * their_noise,
                    Truth::Unlike | Truth::OwnNoise => draws.between(0.01, 0.05),
                    _ => their_noise,
                };
                let of_run = |run: usize| match truth {
                    Truth::WholeRuns => whole.get(run).copied().unwrap_or(1.0),
                    _ => 1.0,
                };
                Key {
                    theirs: (0..THEIR_RUNS).map(|_| their_middle * draws.factor(their_noise)).collect(),
                    ours: (0..ours).map(|run| middle * of_run(run) * draws.factor(noise)).collect(),
                    middle,
                    healthy: middle * of_run(ours) * draws.factor(noise),
                    bad: middle * of_run(ours) * draws.fault() * draws.factor(noise),
                }
            })
            .collect();
        Sites { keys }
    }

    fn limits(&self, runs: u32, uses_pack: bool) -> Vec<Limits> {
        let theirs = measured(self.keys.iter().map(|key| key.theirs.as_slice()));
        let their_pool = pool(&theirs);
        let ours = measured(self.keys.iter().map(|key| key.ours.get(..runs as usize).unwrap_or_default()));
        let our_pool = pool(&ours);
        let shared: Vec<SharedKey> = ours
            .iter()
            .zip(&theirs)
            .map(|(own, their)| {
                let spread = bounds::spread(their_pool.as_ref(), their.between, THEIR_RUNS);
                SharedKey {
                    middle: own.middle,
                    runs,
                    spread: own.between,
                    their_middle: their.middle,
                    their_runs: THEIR_RUNS,
                    their_spread: spread,
                }
            })
            .collect();
        let foreign = Foreign::fit(&shared, FLOOR / 4.0).filter(|_| uses_pack);
        let judged = self.keys.len() as u32;
        ours.iter()
            .zip(&shared)
            .map(|(own, key)| {
                let alone = bounds::spread(our_pool.as_ref(), own.between, runs);
                let helped = foreign.as_ref().and_then(|foreign| foreign.help(key));
                let (middle, n, spread) = match helped {
                    Some(helped) => {
                        (helped.middle, helped.worth, bounds::narrower(alone, helped.spread, judged))
                    }
                    None => (own.middle, f64::from(runs), alone),
                };
                let limits = bounds::bounds(middle, n.floor() as u32, judged, FLOOR, spread);
                let spread = spread.relative.max(FLOOR) * middle;
                Limits { lower: limits.lower, upper: limits.upper, spread }
            })
            .collect()
    }
}

fn measured<'a>(keys: impl Iterator<Item = &'a [f64]>) -> Vec<Measured> {
    keys.map(|runs| {
        let runs: Vec<Vec<f64>> = runs.iter().map(|value| vec![*value]).collect();
        Measured::from_runs(&runs, FLOOR)
    })
    .collect()
}

fn pool(measured: &[Measured]) -> Option<Pool> {
    let own: Vec<KeySpread> = measured.iter().filter_map(|one| one.between).collect();
    Pool::fit(&own, FLOOR / 4.0)
}
