//! A harness that is killed by force again and again, at moments drawn from a seed, and goes on each time with what runs
//! in its pods: every assertion is judged once, no job runs twice, and no pod is left.

use super::bench::{Bench, RUN, Running, case, ended};
use crate::fact::Fact;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const FACTS: &[Fact] = &[(
    "a_harness_that_is_killed_at_twenty_moments_judges_all_once_and_leaves_no_pod",
    killed_at_twenty_moments,
)];

const SEED: u64 = 6;
const KILLS: usize = 20;
const RESUME: [&str; 3] = ["--run", "latest", "--resume"];

/// From the first moments of a process, in which it asks for pods, to long after its first look at its jobs.
fn moments() -> Vec<Duration> {
    let mut draws = ChaCha8Rng::seed_from_u64(SEED);
    let mut moment = || 0.05 * 300f64.powf(draws.next_u32() as f64 / f64::from(u32::MAX));
    (0..KILLS).map(|_| Duration::from_secs_f64(moment())).collect()
}

fn killed_at_twenty_moments() {
    let program = "echo \"$PWD $HARNESS_NODE\" >> BENCH/ran; sleep \"1.$((RANDOM % 10))\"";
    let cases = [
        case("one", "\"each\"", program, ""),
        case("two", "\"all\"", program, ""),
        case("three", "\"pairs\"", program, "after = [\"one\"]"),
    ];
    let bench = Bench::new("n[1-2]", &cases.concat());
    let mut moments = moments().into_iter().peekable();
    let (mut kills, mut runs) = (0, 0);
    while moments.peek().is_some() {
        runs += 1;
        let before = bench.project.runs();
        let mut run = bench.start();
        while let Some(moment) = moments.peek().copied() {
            if !is_killed_at(&mut run, moment) {
                break;
            }
            moments.next();
            kills += 1;
            // Killed before it had a plan it has launched nothing, and there is nothing to go on with.
            let has_plan = bench.project.runs() > before;
            run = bench.start_with(if has_plan { &RESUME } else { &RUN });
        }
        let ran = ended(run);
        assert_eq!(ran.code, Some(0), "seed {SEED}, after {kills} kills: {}", ran.all());
        assert_each_ran_once(&bench, kills);
        bench.came_to(
            "the harness killed by force at drawn moments and resumed, Kubernetes",
            &ran,
            ["pass", "none", "4 pass", "nothing"],
        );
        std::fs::remove_file(bench.project.path().join("shared/ran")).expect("jobs have run");
    }
    assert_eq!(kills, KILLS);
    println!("the harness was killed {kills} times in {runs} runs");
}

/// Nothing is killed that has ended before.
fn is_killed_at(run: &mut Running, moment: Duration) -> bool {
    let from = Instant::now();
    while from.elapsed() < moment {
        if run.is_over() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let lives = !run.is_over();
    if lives {
        run.kill();
    }
    lives
}

/// By what the jobs themselves noted.
fn assert_each_ran_once(bench: &Bench, kills: usize) {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let plan = bench.project.json("plan.json");
    for case in plan["cases"].as_array().expect("cases") {
        for job in case["jobs"].as_array().expect("jobs") {
            for node in job["nodes"].as_array().expect("nodes") {
                let words = [&job["folder"], node].map(|word| word.as_str().expect("a word").to_owned());
                *wanted.entry(words.join(" ")).or_default() += 1;
            }
        }
    }
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for line in bench.text("ran").lines() {
        *found.entry(line.to_owned()).or_default() += 1;
    }
    assert_eq!(found, wanted, "seed {SEED}, after {kills} kills");
}
