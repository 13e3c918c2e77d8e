//! `harness sweep`: simulated clusters with drawn suites and faults, one per seed, checked against invariants.

use super::home;
use crate::error::Error;
use crate::library::Library;
use crate::sweep::{Swept, sweep};
use base::text;
use clap::Args;
use model::exit_code;
use std::collections::BTreeMap;
use store::Scratch;

/// `harness sweep`
#[derive(Debug, Args)]
#[command(
    about = "Run random suites with random faults on simulated clusters, and look for a broken invariant."
)]
pub(super) struct SweepArgs {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 300)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    first: u64,
    /// Only this seed; also prints the drawn cluster, suite and faults
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
}

pub(super) fn run(args: &SweepArgs) -> Result<i32, Error> {
    let home = home()?;
    let instances = Library::for_project(home.path()).instances()?;
    if let Some(seed) = args.seed {
        let drawn = crate::sweep::draw(seed);
        println!("{}{}\nfaults: {}", drawn.inventory, drawn.suite, drawn.faults.join(" "));
    }
    let (first, count) = args.seed.map_or((args.first, args.seeds), |seed| (seed, 1));
    let mut tally = Tally::default();
    for seed in first..first.saturating_add(count) {
        let swept = Scratch::new()
            .map_err(|error| error.to_string())
            .and_then(|scratch| sweep(seed, &instances, scratch.path(), &|_| ()));
        let broken = match &swept {
            Ok(swept) => swept.broken.clone(),
            Err(why) => vec![why.clone()],
        };
        for invariant in &broken {
            println!("seed {seed}: {invariant}");
        }
        if !broken.is_empty() {
            println!("seed {seed}: to reproduce it: cargo run -p harness -- sweep --seed {seed}");
            tally.broken += 1;
        }
        tally.count(swept.as_ref().ok());
    }
    tally.print();
    Ok(if tally.broken == 0 { exit_code::PASSED } else { exit_code::FAILED })
}

/// The totals of all seeds.
#[derive(Default)]
struct Tally {
    seeds: u64,
    broken: u64,
    jobs: usize,
    assertions: u64,
    faults: BTreeMap<&'static str, u64>,
    exit_codes: BTreeMap<i32, u64>,
}

impl Tally {
    fn count(&mut self, swept: Option<&Swept>) {
        self.seeds += 1;
        let Some(swept) = swept else { return };
        self.jobs += swept.jobs;
        self.assertions += u64::from(swept.assertions);
        *self.exit_codes.entry(swept.exit_code).or_default() += 1;
        for fault in &swept.faults {
            *self.faults.entry(fault.fault.kind()).or_default() += 1;
        }
    }

    fn print(&self) {
        let faults: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let codes: Vec<String> =
            self.exit_codes.iter().map(|(code, count)| format!("{code}: {count}")).collect();
        let (seeds, jobs) = (text::count(self.seeds, "seed"), text::count(self.jobs, "job"));
        println!("{seeds}, {jobs}, {}", text::count(self.assertions, "assertion"));
        println!("exit codes: {}", codes.join(", "));
        println!("faults drawn: {}", faults.join(", "));
        match self.broken {
            0 => println!("no invariant was broken"),
            broken => println!("seeds with a broken invariant: {broken}"),
        }
    }
}
