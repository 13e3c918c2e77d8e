//! What the strategy of `harness isolate` is worth, against fleets of 256 nodes whose faults are known: named exactly,
//! innocents blamed, runs, rounds and node-hours, beside all pairs, plain bisection and screening by topology domains.
//!
//!     cargo bench -p harness --bench isolate              # 1,000 seeds for each kind and noise; a quarter of an hour
//!     cargo bench -p harness --bench isolate -- 100       # fewer

#[path = "isolate/rivals.rs"]
mod rivals;

use verdict::isolate::Fleet;
use verdict::isolate::cost_estimate::{Played, play};
use verdict::isolate::fault_sampling::{self, Cost, FaultSite};
use verdict::isolate::model::{Fault, Model};

const NOISES: [f64; 3] = [0.01, 0.02, 0.05];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let seeds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    let fleet = Fleet::grouped(256, 16, 8, 32);
    let mut all = Tally::default();
    println!("256 nodes in 16 topology groups; {seeds} seeds for each line\n");
    Tally::head("no fault");
    for noise in NOISES {
        let tally = tally(&fleet, &[], Cost::Promised, noise, seeds);
        tally.line(&format!("none at {:.0} %", noise * 100.0));
        all.add(&tally);
    }
    Tally::head("one fault that costs 20 to 90 %");
    for noise in NOISES {
        for kind in FaultSite::ALL {
            let tally = tally(&fleet, &[kind], Cost::Promised, noise, seeds);
            tally.line(&format!("{} at {:.0} %", kind.name(), noise * 100.0));
            all.add(&tally);
        }
    }
    Tally::head("two such faults that some run can distinguish");
    for noise in NOISES {
        for [one, other] in FaultSite::pairs() {
            let tally = tally(&fleet, &[one, other], Cost::Promised, noise, seeds);
            tally.line(&format!("{} + {} at {:.0} %", one.name(), other.name(), noise * 100.0));
            all.add(&tally);
        }
    }
    all.bound("promised faults and none");
    let mut small = Tally::default();
    for cost in [0.10, 0.05] {
        Tally::head(&format!("one fault that costs {:.0} %, of which nothing is promised", cost * 100.0));
        for noise in NOISES {
            for kind in FaultSite::ALL {
                let tally = tally(&fleet, &[kind], Cost::Exactly(cost), noise, seeds);
                tally.line(&format!("{} at {:.0} %", kind.name(), noise * 100.0));
                small.add(&tally);
            }
        }
    }
    small.bound("faults of 5 and 10 %");
    against_others(&fleet, seeds.min(200));
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    exact: u64,
    blamed: u64,
    /// Neither named exactly, nor anybody blamed, and said to be uncertain.
    reported_open: u64,
    runs: usize,
    most_runs: usize,
    rounds: usize,
    node_runs: usize,
}

fn tally(fleet: &Fleet, kinds: &[FaultSite], cost: Cost, noise: f64, seeds: u64) -> Tally {
    let mut tally = Tally::default();
    let mut seed = 0;
    while tally.seeds < seeds && seed < 10 * seeds {
        // No two lines are made from the same draws.
        let line = kinds.iter().fold((noise * 1000.0) as u64, |line, kind| line * 7 + *kind as u64 + 1);
        let own = seed * 1_000_003 + line * 7_919;
        seed += 1;
        let faults = fault_sampling::faults(fleet, kinds, cost, own);
        if !fault_sampling::are_distinguishable(&faults) {
            continue;
        }
        let played = play(&mut Model::new(fleet, faults.clone(), noise, own + 1));
        tally.take(&played, &faults);
    }
    tally
}

impl Tally {
    fn take(&mut self, played: &Played, faults: &[Fault]) {
        let outcome = fault_sampling::outcome(&played.conclusion, faults);
        self.seeds += 1;
        self.exact += u64::from(outcome.exact);
        self.blamed += u64::from(outcome.blamed);
        self.reported_open += u64::from(!outcome.exact && !outcome.blamed && !played.conclusion.is_certain());
        self.runs += played.runs;
        self.most_runs = self.most_runs.max(played.runs);
        self.rounds += played.rounds;
        self.node_runs += played.node_runs;
    }

    fn add(&mut self, other: &Tally) {
        self.seeds += other.seeds;
        self.exact += other.exact;
        self.blamed += other.blamed;
    }

    fn head(what: &str) {
        println!(
            "\n{what:<58} {:>8} {:>8} {:>7} {:>7} {:>5} {:>7} {:>10}",
            "exact %", "blamed", "unsure", "runs", "most", "rounds", "node-runs"
        );
    }

    fn line(&self, what: &str) {
        let mean = |sum: usize| sum as f64 / self.seeds.max(1) as f64;
        println!(
            "{what:<58} {:>8.2} {:>8} {:>7} {:>7.1} {:>5} {:>7.1} {:>10.0}",
            100.0 * self.exact as f64 / self.seeds.max(1) as f64,
            self.blamed,
            self.reported_open,
            mean(self.runs),
            self.most_runs,
            mean(self.rounds),
            mean(self.node_runs)
        );
    }

    fn bound(&self, what: &str) {
        println!(
            "\n{what}: an innocent blamed in {} of {} seeds; at most {:.6} of them by an exact one-sided bound of 95 %",
            self.blamed,
            self.seeds,
            upper(self.blamed, self.seeds)
        );
    }
}

/// Clopper and Pearson: the share at which so few would be seen in one of twenty cases.
fn upper(seen: u64, of: u64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let share = (low + high) / 2.0;
        // The terms of the binomial one after the other, as logarithms.
        let (mut term, mut sum) = (of as f64 * (-share).ln_1p(), 0.0);
        for k in 0..=seen {
            sum += term.exp();
            term += ((of - k) as f64 / (k + 1) as f64).ln() + share.ln() - (-share).ln_1p();
        }
        if sum > 0.05 { low = share } else { high = share }
    }
    high
}

/// The rate that is healthy is given to the others for free, and a run is slow for them from 10 % below it.
fn against_others(fleet: &Fleet, seeds: u64) {
    println!(
        "\nThe same fleets by other strategies, which name nodes and not parts ({seeds} seeds for each line)."
    );
    println!(
        "`right`: the node, or one end of the link, and no other. A link has no node: naming none is right.\n"
    );
    println!(
        "{:<28} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "fault and noise", "strategy", "right %", "blamed %", "runs", "rounds", "node-runs"
    );
    let kinds: [&[FaultSite]; 4] =
        [&[], &[FaultSite::Nic], &[FaultSite::Nic, FaultSite::Gpu], &[FaultSite::Link]];
    for noise in NOISES {
        for kinds in kinds {
            let name = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" + ");
            let name = if name.is_empty() { "none".to_owned() } else { name };
            for (strategy, by) in rivals::ALL {
                let seeds = if strategy == "all pairs" { seeds.min(20) } else { seeds };
                let (mut right, mut blamed, mut runs, mut rounds, mut node_runs) = (0, 0, 0, 0, 0);
                for seed in 0..seeds {
                    let faults = fault_sampling::faults(fleet, kinds, Cost::Promised, seed * 31 + 7);
                    let mut model = Model::new(fleet, faults.clone(), noise, seed * 31 + 8);
                    let found = by(&mut model);
                    let guilty: Vec<usize> = faults.iter().filter_map(|fault| fault.place.node()).collect();
                    let wrong = found.nodes.iter().any(|node| !guilty.contains(node));
                    right += u64::from(!wrong && guilty.iter().all(|node| found.nodes.contains(node)));
                    blamed += u64::from(wrong);
                    runs += found.runs;
                    rounds += found.rounds;
                    node_runs += found.node_runs;
                }
                let mean = |sum: usize| sum as f64 / seeds as f64;
                println!(
                    "{:<28} {strategy:>10} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>10.0}",
                    format!("{name} at {:.0} %", noise * 100.0),
                    100.0 * right as f64 / seeds as f64,
                    100.0 * blamed as f64 / seeds as f64,
                    mean(runs),
                    mean(rounds),
                    mean(node_runs)
                );
            }
        }
    }
}
