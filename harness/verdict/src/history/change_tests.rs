//! Series whose truth is known: how often a change is reported where there is none, and whether one that is there is
//! found.

use super::*;
use proptest::prelude::*;

struct Noise(ChaCha8Rng);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(ChaCha8Rng::seed_from_u64(seed))
    }

    fn share(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    /// A normal number, one of two modes, one of heavy tails, one that lies off to one side alone.
    fn draw(&mut self, kind: u64) -> f64 {
        match kind {
            0 => self.normal(),
            1 if self.share() < 0.3 => self.normal() - 4.0,
            2 => self.normal() / self.share().sqrt().max(0.05),
            3 => self.share().ln(),
            _ => self.normal(),
        }
    }
}

fn series(seed: u64, n: usize, noise: f64, truth: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut random = Noise::new(seed);
    (0..n).map(|at| 400.0 * truth(at) * (1.0 + noise * random.normal())).collect()
}

#[test]
fn a_fleet_that_does_not_change_has_a_reported_change_in_at_most_one_of_a_hundred_series() {
    // So many alarms are one in a hundred, and three of their own deviations more.
    let (seeds, most) = (500, 5 + 7);
    for kind in 0..4 {
        for n in [5, 10, 20, 40] {
            for noise in [0.01, 0.05] {
                let alarms = (0..seeds)
                    .filter(|seed| {
                        let mut random = Noise::new(seed * 31 + n as u64 * 7 + kind);
                        let value = |_| 400.0 * (1.0 + noise * random.draw(kind));
                        let values: Vec<f64> = (0..n).map(value).collect();
                        shape(&values, 0.0, FALSE_ALARMS) != Shape::Level
                    })
                    .count();
                assert!(alarms <= most, "kind {kind}, {n} runs, noise {noise}: {alarms} of {seeds}");
            }
        }
    }
}

#[test]
fn a_step_is_found_at_its_run() {
    for (drop, noise, before, after, least) in
        [(0.05, 0.01, 10, 10, 90), (0.10, 0.02, 10, 5, 85), (0.28, 0.02, 5, 5, 100), (0.10, 0.02, 30, 30, 90)]
    {
        let found = (0..100)
            .filter(|seed| {
                let level = |at| if at < before { 1.0 } else { 1.0 - drop };
                match shape(&series(*seed, before + after, noise, level), 0.02, FALSE_ALARMS) {
                    Shape::Steps(steps) => steps.len() == 1 && steps[0].at.abs_diff(before) <= 1,
                    _ => false,
                }
            })
            .count();
        assert!(found >= least, "{drop} {noise} {before} + {after}: {found} of 100");
    }
}

#[test]
fn a_step_down_and_up_again_is_two_steps_with_their_levels() {
    let values = series(5, 36, 0.01, |at| if (12..24).contains(&at) { 0.8 } else { 1.0 });
    let Shape::Steps(steps) = shape(&values, 0.02, FALSE_ALARMS) else { panic!("no steps") };
    assert_eq!(steps.iter().map(|step| step.at).collect::<Vec<_>>(), [12, 24]);
    assert!((steps[0].before - 400.0).abs() < 5.0 && (steps[0].after - 320.0).abs() < 5.0, "{steps:?}");
    assert_eq!(steps[0].after, steps[1].before);
}

#[test]
fn what_sinks_little_by_little_is_a_drift_and_no_step() {
    for (total, noise, n) in [(0.1, 0.01, 20), (0.2, 0.02, 20), (0.2, 0.02, 40), (0.3, 0.02, 12)] {
        let drifts = (0..100)
            .filter(|seed| {
                let truth = |at: usize| 1.0 - total * at as f64 / (n - 1) as f64;
                matches!(shape(&series(*seed, n, noise, truth), 0.02, FALSE_ALARMS), Shape::Drift(_))
            })
            .count();
        assert!(drifts >= 95, "{total} {noise} {n}: {drifts} of 100");
    }
}

#[test]
fn small_changes_and_too_few_runs_report_nothing() {
    let small = series(1, 40, 0.001, |at| if at < 20 { 1.0 } else { 0.99 });
    assert_eq!(shape(&small, 0.02, FALSE_ALARMS), Shape::Level);
    assert!(matches!(shape(&small, 0.005, FALSE_ALARMS), Shape::Steps(_)));
    assert_eq!(
        shape(&[400.0, 400.0, 100.0, 100.0], 0.02, FALSE_ALARMS),
        Shape::Level,
        "six orders are chance"
    );
    assert_eq!(shape(&[], 0.02, FALSE_ALARMS), Shape::Level);
    assert_eq!(shape(&[0.0; 30], 0.02, FALSE_ALARMS), Shape::Level);
    let from_zero: Vec<f64> = (0..20).map(|at| if at < 10 { 0.0 } else { 3.0 }).collect();
    assert!(matches!(shape(&from_zero, 0.02, FALSE_ALARMS), Shape::Steps(_)));
}

#[test]
fn one_run_that_lies_off_is_no_change() {
    let mut values = series(3, 30, 0.01, |_| 1.0);
    values[20] = 100.0;
    assert_eq!(shape(&values, 0.02, FALSE_ALARMS), Shape::Level);
}

proptest! {
    #[test]
    fn steps_lie_within_the_series_and_rise(values in prop::collection::vec(0.0f64..1e9, 0..40)) {
        if let Shape::Steps(steps) = shape(&values, 0.02, 0.05) {
            prop_assert!(steps.is_sorted_by(|a, b| a.at < b.at));
            prop_assert!(steps.iter().all(|step| step.at > 0 && step.at < values.len() && step.before != step.after));
        }
    }
}
