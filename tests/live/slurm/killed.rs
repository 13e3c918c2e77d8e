//! A harness that is killed by force again and again, at moments drawn from a seed, and goes on each time with what it
//! had launched: every assertion is judged once, and no job runs twice.

use super::bench::{Bench, RUN, Running, case, ended};
use crate::fact::Fact;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

pub(super) const FACTS: &[Fact] = &[(
    "a_harness_that_is_killed_at_twenty_moments_judges_all_once_and_runs_no_job_twice",
    killed_at_twenty_moments,
)];

const SEED: u64 = 6;
const KILLS: usize = 20;
const RESUME: [&str; 3] = ["--run", "latest", "--resume"];

/// From the first moments of a process, in which it plans and submits, to long after its first look at its jobs; early
/// ones as often as late ones, by their order of size.
fn moments() -> Vec<Duration> {
    let mut draws = ChaCha8Rng::seed_from_u64(SEED);
    let mut moment = || 0.02 * 300f64.powf(draws.next_u32() as f64 / f64::from(u32::MAX));
    (0..KILLS).map(|_| Duration::from_secs_f64(moment())).collect()
}

fn killed_at_twenty_moments() {
    let cases = [
        case("one", "\"each\"", "notes", ""),
        case("two", "\"all\"", "notes", ""),
        case("three", "\"pairs\"", "notes", "after = [\"one\"]"),
        case("four", "\"each\"", "notes", ""),
    ];
    let bench = Bench::new(&cases.concat().replace("queue_limit_s = 20", "queue_limit_s = 300"));
    bench.program("notes", "echo \"$PWD $SLURMD_NODENAME\" >>BENCH/ran\nsleep \"0.$((RANDOM % 10))\"");
    let mut moments = moments().into_iter().peekable();
    let (mut kills, mut runs) = (0, 0);
    while moments.peek().is_some() {
        runs += 1;
        let mut run = bench.start();
        while let Some(moment) = moments.peek().copied() {
            if !is_killed_at(&mut run, moment) {
                break;
            }
            moments.next();
            kills += 1;
            // Killed before it had a plan it has launched nothing, and there is nothing to go on with.
            let has_plan = bench.project.latest().join("plan.json").exists();
            run = bench.start_with(if has_plan { &RESUME } else { &RUN });
        }
        let ran = ended(run);
        assert_eq!(ran.code, Some(0), "seed {SEED}, after {kills} kills: {}", ran.all());
        assert_each_ran_once(&bench, kills);
        bench.came_to(
            "the harness killed by force at drawn moments and resumed, Slurm",
            &ran,
            ["pass", "none", "11 pass"],
        );
        fs::remove_file(bench.project.path().join("ran")).expect("jobs have run");
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
    if run.is_over() {
        return false;
    }
    run.kill();
    true
}

/// By what the jobs themselves noted, and by the handles that were written down.
fn assert_each_ran_once(bench: &Bench, kills: usize) {
    let noted = fs::read_to_string(bench.project.path().join("ran")).expect("jobs have run");
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let plan = bench.project.json("plan.json");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    for job in list(&plan["cases"]).iter().flat_map(|case| list(&case["jobs"])) {
        for node in list(&job["nodes"]) {
            let words = [&job["folder"], &node].map(|word| word.as_str().expect("a word").to_owned());
            *wanted.entry(words.join(" ")).or_default() += 1;
        }
    }
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for line in noted.lines() {
        *found.entry(line.to_owned()).or_default() += 1;
    }
    assert_eq!(found, wanted, "seed {SEED}, after {kills} kills");
    let mut handles: BTreeMap<String, String> = BTreeMap::new();
    for event in bench.events("job-submitted") {
        let name = format!("{} {}", event["case"], event["job"]);
        let handle = event["handle"].to_string();
        let known = handles.entry(name.clone()).or_insert_with(|| handle.clone());
        assert_eq!(*known, handle, "{name} was launched twice: seed {SEED}, after {kills} kills");
    }
    for name in ["one", "two", "three", "four"] {
        bench.verdicts(name);
    }
}
