//! What the first day of a fleet comes to, with published figures as the only baselines: how often healthy fleets of
//! several sizes exit 0, how many of their nodes `accept` accepts, rejects and leaves open, and how often each of twelve
//! kinds of fault is named, beside innocents that are.
//!
//!     cargo bench -p harness --bench day_one                       # 100 and 50 seeds, `nccl-p5`; many hours
//!     cargo bench -p harness --bench day_one -- 10 acceptance-p5   # fewer, and another suite
//!     cargo bench -p harness --bench day_one -- 50 --nodes=31 --kind=port   # one row; `healthy` is a kind, too
//!     cargo bench -p harness --bench day_one -- 1 --after=75 --kind=healthy   # seed 76 alone

mod seeds;

use harness::sweep::day_one::{DayOne, KINDS, Outcome, draw, outcome};
use seeds::{for_seeds, in_folder};
use std::path::Path;
use std::time::Instant;

/// What `accept` asks of nodes, whatever the suite of the runs.
const ACCEPTANCE: &str = "acceptance-p5";

// A benchmark reads the clock.
#[allow(clippy::disallowed_methods)]
fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let seeds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(100);
    let is_word = |arg: &&String| !arg.starts_with('-') && arg.parse::<u64>().is_err();
    let suite = args.iter().find(is_word).map_or("nccl-p5", String::as_str);
    let is_asked = |flag: &str, value: &str| {
        let mut values = args.iter().filter_map(|arg| arg.strip_prefix(flag)).peekable();
        values.peek().is_none() || values.any(|one| one == value)
    };
    let is_row =
        |nodes: usize, kind: &str| is_asked("--nodes=", &nodes.to_string()) && is_asked("--kind=", kind);
    let after: u64 = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--after="))
        .map_or(Ok(0), str::parse)
        .map_err(|error| format!("--after needs a number: {error}"))?;
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let day_one = DayOne::read(&project, suite)?;
    println!(
        "`{suite}`, published figures alone; noise 2 % by run, 1 % by node, every 200th value 10 % low\n"
    );
    let acceptance = DayOne::read(&project, ACCEPTANCE)?;
    println!(
        "{:<8} {:>6} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "healthy", "seeds", "exit 0", "s a run", "accepted", "rejected", "open"
    );
    for nodes in [4, 7, 31, 32].into_iter().filter(|nodes| is_row(*nodes, "healthy")) {
        let began = Instant::now();
        let runs = for_seeds(seeds, &|seed| run(&day_one, nodes, &[], seed + after))?;
        let green = runs.iter().filter(|summary| summary.exit_code == 0).count();
        let each = began.elapsed().as_secs_f64() / seeds as f64;
        let (mut accepted, mut rejected, mut open) = (0, 0, 0);
        for made in
            for_seeds(seeds, &|seed| in_folder(&|folder| acceptance.accept(nodes, seed + after, folder)))?
        {
            accepted += made.accepted.len();
            rejected += made.rejected.len();
            open += made.undecided.len();
        }
        println!("{nodes:<8} {seeds:>6} {green:>7} {each:>9.1} {accepted:>9} {rejected:>9} {open:>9}");
    }
    let seeds = seeds.div_ceil(2);
    let nics = day_one.inventory(3)?.instance.nics;
    for nodes in [3, 7, 31, 32].into_iter().filter(|nodes| is_asked("--nodes=", &nodes.to_string())) {
        println!(
            "\n{:<22} {:>6} {:>7} {:>7} {:>7} {:>9}",
            format!("{nodes} nodes"),
            "seeds",
            "exit 1",
            "exit 3",
            "named",
            "innocent"
        );
        for kind in KINDS.into_iter().filter(|kind| is_row(nodes, kind)) {
            let outcomes: Vec<Outcome> = for_seeds(seeds, &|seed| {
                let injected = draw(kind, nodes, &nics, seed + after);
                Ok(outcome(&run(&day_one, nodes, &injected.faults, seed + after)?, &injected))
            })?;
            let count = |is: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|one| is(one)).count();
            println!(
                "{kind:<22} {seeds:>6} {:>7} {:>7} {:>7} {:>9}",
                count(&|one| one.exit_code == 1),
                count(&|one| one.exit_code == 3),
                count(&|one| one.all_named),
                count(&|one| one.innocent_named)
            );
        }
    }
    Ok(())
}

fn run(
    day_one: &DayOne,
    nodes: usize,
    faults: &[String],
    seed: u64,
) -> Result<model::artefact::Summary, String> {
    in_folder(&|folder| day_one.run(nodes, faults, seed, folder))
}
