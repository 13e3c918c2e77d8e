//! How often a bisection names the right step among 32 stacks, a wrong one or none, and in how many pairs of runs: a step of
//! 5 % at 2 % and at 5 % noise, with 0, 3, 10 and 20 earlier runs of each end, made on the same day or when all was 3 % faster.
//! Exits 1 where 20 earlier runs find fewer, or anything is wrong more often, than was asked for.
//!
//!     cargo bench -p harness --bench bisect             # 100 seeds for each line
//!     cargo bench -p harness --bench bisect -- 1000

use sim::noise::stream;
use verdict::bisect::{Conclusion, Next, Posterior, StackRun, next};

const STACKS: usize = 32;
const STEP: f64 = 0.05;

/// What is asked of bisections at a noise.
struct Demand {
    noise: f64,
    most_pairs: usize,
    /// Of 100 seeds, at least so many right and at most so many wrong.
    right: u64,
    wrong: u64,
}

/// How many runs of each end were made before, and by what they were faster than the same stacks are today.
const EARLIER: [(usize, f64); 5] = [(0, 0.0), (3, 0.0), (10, 0.0), (20, 0.0), (10, 0.03)];
/// So many earlier runs of the same level must find what is asked for.
const ENOUGH: usize = 20;

/// No rule is known that meets the first with nothing measured before. Of 1,000 simulated searches by posterior, without drift
/// and without a look for a second step, right and wrong within 12 pairs, each ended where at most 10 are wrong: given the
/// noise, 768 and 5; the noise and the size of the step, 861 and 9; the noise and the level of the good stack, 903 and 7; all
/// three, 959 and 4; the noise and 10 earlier runs of each end, 979 and 1. The noise alone, which a baseline holds, is not what
/// such a search lacks most.
const DEMANDS: [Demand; 2] = [
    Demand { noise: 0.02, most_pairs: 12, right: 95, wrong: 1 },
    Demand { noise: 0.05, most_pairs: 60, right: 50, wrong: 0 },
];
/// All lines go on to here, so that a table shows what a demand cuts off.
const LAST_PAIR: usize = 60;

/// Whether the step that was named is the right one, where one was, and the pairs that it took.
fn bisect(noise: f64, (earlier, faster): (usize, f64), seed: u64) -> (Option<bool>, usize) {
    let mut draws = stream(seed, &["bisect"]);
    let mut normal = || {
        let (a, b) = (1.0 - draws.fraction(), draws.fraction());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    let first_bad = 1 + (seed as usize).wrapping_mul(7919) % (STACKS - 1);
    let level = |stack: usize| 450f64.ln() + if stack >= first_bad { (1.0 - STEP).ln() } else { 0.0 };
    let mut runs = Vec::new();
    for stack in [0, STACKS - 1] {
        for _ in 0..earlier {
            let value = level(stack) + faster + noise * normal();
            runs.push(StackRun { pair: 0, stack, value, is_earlier: true });
        }
    }
    for pair in 0..=LAST_PAIR {
        match next(STACKS, &runs, &Posterior::new(STACKS, &runs)) {
            Next::Done(Conclusion::Step { after }) => return (Some(after + 1 == first_bad), pair),
            // There is a step: to call the stacks alike, or the step several, is wrong.
            Next::Done(Conclusion::Alike | Conclusion::Several { .. }) => return (Some(false), pair),
            Next::Pair(stacks) => {
                for stack in stacks {
                    let value = level(stack) + noise * normal();
                    runs.push(StackRun { pair, stack, value, is_earlier: false });
                }
            }
        }
    }
    (None, LAST_PAIR)
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let seeds: u64 = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(100);
    if seeds == 0 {
        return Err("0 seeds show nothing; give at least 1".to_owned());
    }
    println!("a step of {:.0} % among {STACKS} stacks\n", 100.0 * STEP);
    println!(
        "{:>6} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "noise", "earlier", "faster", "pairs", "seeds", "right", "wrong", "open"
    );
    let mut missed = Vec::new();
    for Demand { noise, most_pairs, right, wrong } in DEMANDS {
        for (earlier, faster) in EARLIER {
            let all: Vec<(Option<bool>, usize)> =
                (1..=seeds).map(|seed| bisect(noise, (earlier, faster), seed)).collect();
            for limit in [12, 15, 20, 30, LAST_PAIR] {
                let count = |wanted: bool| {
                    let ended =
                        all.iter().filter(|(is_right, pairs)| *is_right == Some(wanted) && *pairs <= limit);
                    ended.count() as u64
                };
                let (found, named_wrong) = (count(true), count(false));
                let open = seeds - found - named_wrong;
                println!(
                    "{:>5.0}% {earlier:>8} {:>6.0}% {limit:>6} {seeds:>6} {found:>6} {named_wrong:>6} {open:>6}",
                    100.0 * noise,
                    100.0 * faster
                );
                let is_asked_for = earlier >= ENOUGH && faster == 0.0;
                let is_missed = is_asked_for && 100 * found < right * seeds;
                if limit == most_pairs && (is_missed || 100 * named_wrong > wrong * seeds) {
                    missed.push(format!(
                        "at {:.0} % noise with {earlier} earlier runs within {limit} pairs: {found} of {seeds} right and \
                         {named_wrong} wrong; at least {right} and at most {wrong} of 100 are asked for",
                        100.0 * noise
                    ));
                }
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
}
