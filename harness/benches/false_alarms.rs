//! How often each way of judging calls a healthy fleet red, and how many bad parts it lets pass, over generated fleets
//! whose truth is known: the table that the documents quote.
//!
//!     cargo bench -p harness --bench false_alarms [-- SEEDS]

#[path = "../../tests/fleets/mod.rs"]
mod fleets;

use fleets::{TRUTHS, WAYS, scores};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let seeds = args.iter().find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(200);
    println!(
        "{seeds} fleets each; in %: healthy suites red, healthy numbers red, bad parts passed, bad parts asked again"
    );
    println!("{:<12} {:>5} {:>3} {}", "truth", "m", "n", WAYS.map(|way| format!("{way:>34?}")).join(""));
    for truth in TRUTHS {
        for judged in [10, 100, 1000] {
            for n in [5, 10, 20, 50] {
                let cells = scores(truth, judged, n, 0..seeds).map(|score| {
                    let share = |some: u64, all: u64| 100.0 * some as f64 / all as f64;
                    format!(
                        "{:>10.2}{:>8.3}{:>8.3}{:>8.3}",
                        share(u64::from(score.red_suites), u64::from(score.suites)),
                        share(score.red, score.healthy),
                        share(score.missed, score.bad),
                        share(score.undecided, score.bad)
                    )
                });
                println!("{:<12} {judged:>5} {n:>3} {}", format!("{truth:?}"), cells.join(""));
            }
        }
    }
}
