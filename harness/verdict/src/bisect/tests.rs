//! Bisections of made-up stacks: how often they name the right step, and in how many pairs.

use super::{Conclusion, Next, Posterior, StackRun, next};
use sim::noise::stream;

/// Stacks, where their steps are, and how noisy runs of them are.
struct World {
    stacks: usize,
    /// First stack behind each step, and its size as a fraction.
    steps: Vec<(usize, f64)>,
    noise: f64,
    /// From pair to pair.
    drift: f64,
    /// Runs of each end that were made before, and by what the good and the bad ones were faster then.
    earlier: usize,
    then: [f64; 2],
}

impl World {
    fn one_step(step: f64, noise: f64) -> World {
        World { stacks: 32, steps: vec![(0, step)], noise, drift: 0.0, earlier: 0, then: [0.0; 2] }
    }

    /// What the bisection concludes within so many pairs, and after how many; nothing where it stays open.
    fn bisect(&self, seed: u64, most_pairs: usize) -> (Option<Conclusion>, usize, Vec<usize>) {
        let mut draws = stream(seed, &["bisect"]);
        let mut normal = || {
            let (a, b) = (1.0 - draws.fraction(), draws.fraction());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        // Where a step is not fixed, the seed places it.
        let place = |from: usize| if from > 0 { from } else { 1 + seed as usize * 7919 % (self.stacks - 1) };
        let steps: Vec<(usize, f64)> = self.steps.iter().map(|(from, size)| (place(*from), *size)).collect();
        let level = |stack: usize| {
            let behind = steps.iter().filter(|(from, _)| stack >= *from);
            450f64.ln() + behind.map(|(_, size)| (1.0 - size).ln()).sum::<f64>()
        };
        let mut runs = Vec::new();
        for (stack, then) in [0, self.stacks - 1].into_iter().zip(self.then) {
            for _ in 0..self.earlier {
                let value = level(stack) + then + self.noise * normal();
                runs.push(StackRun { pair: 0, stack, value, is_earlier: true });
            }
        }
        for pair in 0..=most_pairs {
            match next(self.stacks, &runs, &Posterior::new(self.stacks, &runs)) {
                Next::Done(conclusion) => {
                    return (Some(conclusion), pair, steps.iter().map(|step| step.0).collect());
                }
                Next::Pair(stacks) => {
                    let drift = self.drift * normal();
                    for stack in stacks {
                        let value = level(stack) + drift + self.noise * normal();
                        runs.push(StackRun { pair, stack, value, is_earlier: false });
                    }
                }
            }
        }
        (None, most_pairs, steps.iter().map(|step| step.0).collect())
    }
}

/// How often a bisection of a world ended in what, of so many seeds.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    /// Another step was named.
    wrong: usize,
    alike: usize,
    several: usize,
    /// Pairs of each that named the right step, sorted.
    pairs: Vec<usize>,
}

impl Tally {
    fn right_within(&self, pairs: usize) -> usize {
        self.pairs.iter().filter(|needed| **needed <= pairs).count()
    }
}

fn count(world: &World, seeds: u64, most_pairs: usize) -> Tally {
    let mut tally = Tally::default();
    for seed in 1..=seeds {
        let (conclusion, needed, steps) = world.bisect(seed, most_pairs);
        match conclusion {
            Some(Conclusion::Step { after }) if steps.contains(&(after + 1)) => {
                tally.right += 1;
                tally.pairs.push(needed);
            }
            Some(Conclusion::Step { .. }) => tally.wrong += 1,
            Some(Conclusion::Alike) => tally.alike += 1,
            Some(Conclusion::Several { .. }) => tally.several += 1,
            None => {}
        }
    }
    tally.pairs.sort_unstable();
    tally
}

#[test]
fn a_step_of_5_percent_at_2_percent_noise_is_found_among_32_stacks() {
    let found = count(&World::one_step(0.05, 0.02), 100, 30);
    assert_eq!((found.wrong, found.alike), (0, 0), "{found:?}");
    assert!(found.right >= 97, "{found:?}");
    assert!(found.right_within(12) >= 42, "{found:?}");
}

#[test]
fn earlier_runs_of_both_ends_find_a_step_within_12_pairs() {
    let found = count(&World { earlier: 10, ..World::one_step(0.05, 0.02) }, 40, 12);
    assert_eq!((found.alike, found.several), (0, 0), "{found:?}");
    assert!(found.right >= 33 && found.wrong <= 1, "{found:?}");
}

#[test]
fn earlier_runs_that_were_faster_or_slower_seldom_name_another_step() {
    for then in [[-0.05, -0.05], [0.03, 0.03]] {
        let found = count(&World { earlier: 10, then, ..World::one_step(0.05, 0.02) }, 15, 16);
        assert!(found.wrong <= 1 && found.alike == 0, "{then:?}: {found:?}");
    }
}

#[test]
fn earlier_runs_alone_show_no_step() {
    let world = World { stacks: 8, earlier: 10, then: [0.05, 0.0], ..World::one_step(0.0, 0.01) };
    let found = count(&world, 20, 30);
    assert_eq!((found.right, found.wrong), (0, 0), "{found:?}");
}

#[test]
fn much_noise_leaves_it_open_rather_than_wrong() {
    let found = count(&World::one_step(0.05, 0.05), 40, 60);
    assert_eq!((found.wrong, found.alike), (0, 0), "{found:?}");
    assert!(found.right >= 20, "{found:?}");
}

#[test]
fn two_steps_of_the_same_size_are_seldom_called_one() {
    let world = World { steps: vec![(8, 0.05), (24, 0.05)], ..World::one_step(0.0, 0.02) };
    let found = count(&world, 40, 40);
    assert_eq!((found.wrong, found.alike), (0, 0), "{found:?}");
    assert!(found.right <= 8 && found.several >= 28, "{found:?}");
}

#[test]
fn drift_from_pair_to_pair_names_no_other_step() {
    let world = World { drift: 0.05, ..World::one_step(0.05, 0.01) };
    let found = count(&world, 20, 60);
    assert_eq!((found.wrong, found.alike), (0, 0), "{found:?}");
    assert!(found.right >= 18, "{found:?}");
}

#[test]
fn stacks_that_are_alike_or_better_show_no_step() {
    for step in [0.0, -0.05] {
        let world = World { stacks: 8, ..World::one_step(step, 0.005) };
        let found = count(&world, 20, 60);
        assert_eq!((found.right, found.wrong), (0, 0), "step {step}");
        assert!(found.alike >= 19, "step {step}: {found:?}");
    }
}

#[test]
fn steps_at_either_end_are_found() {
    for from in [1, 31] {
        let world = World { steps: vec![(from, 0.05)], ..World::one_step(0.05, 0.02) };
        let found = count(&world, 10, 60);
        assert_eq!((found.right, found.wrong), (10, 0), "step before stack {from}");
    }
}

#[test]
fn two_large_steps_are_not_called_one() {
    let world = World { steps: vec![(8, 0.2), (24, 0.2)], ..World::one_step(0.0, 0.01) };
    for seed in 1..=10 {
        let (conclusion, ..) = world.bisect(seed, 60);
        assert!(!matches!(conclusion, Some(Conclusion::Step { .. } | Conclusion::Alike)), "{conclusion:?}");
    }
}

#[test]
fn collapses_to_a_hundredth_are_steps() {
    for step in [0.7, 0.9, 0.99, 0.999] {
        let world = World { stacks: 8, ..World::one_step(step, 0.01) };
        let found = count(&world, 40, 30);
        assert_eq!((found.right, found.wrong, found.alike), (40, 0, 0), "step {step}");
        assert_eq!(found.right_within(16), 40, "step {step}: {found:?}");
    }
}

#[test]
fn numbers_at_the_edges_end_without_a_panic() {
    for value in [f64::MIN_POSITIVE.ln(), f64::MAX.ln(), 0.0] {
        for is_earlier in [false, true] {
            let run = |at: usize| StackRun { pair: at / 2, stack: at % 2, value, is_earlier };
            let runs: Vec<StackRun> = (0..6).map(run).collect();
            let posterior = Posterior::new(2, &runs);
            assert!(posterior.no_step.is_finite() && posterior.steps.iter().all(|step| step.is_finite()));
        }
    }
}
