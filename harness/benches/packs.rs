//! What the baselines of another site are worth to one that has three runs of its own, over generated pairs of sites
//! whose truth is known: the table that the documents quote.
//!
//!     cargo bench -p harness --bench packs [-- SEEDS]

#[path = "../../tests/fleets/draws.rs"]
mod draws;
#[path = "../../tests/fleets/two_sites.rs"]
mod two_sites;

use two_sites::{TRUTHS, WAYS, scores};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let seeds = args.iter().find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(500);
    println!(
        "{seeds} pairs of sites each; in %: healthy suites that fail, bad parts that pass, mean width of bounds"
    );
    println!(
        "{:<10} {:>5} {}",
        "sites",
        "keys",
        WAYS.map(|(n, pack)| {
            format!("{:>27}", format!("{n} runs{}", if pack { " and a pack" } else { "" }))
        })
        .join("")
    );
    for truth in TRUTHS {
        for keys in [5, 20, 100, 500] {
            let cells = scores(truth, keys, 0..seeds).map(|score| {
                format!(
                    "{:>11.1}{:>8.2}{:>8.1}",
                    100.0 * score.red_suites as f64 / score.suites as f64,
                    100.0 * score.missed as f64 / score.bad as f64,
                    100.0 * score.width / score.bad as f64
                )
            });
            println!("{:<10} {keys:>5} {}", format!("{truth:?}"), cells.join(""));
        }
    }
}
