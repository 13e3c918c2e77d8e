//! How often a run names the rank for which a training hangs or ends, by what the rank does and by launcher, and whether it
//! ever names another. Exits 1 where the rank is named in less than 99 of 100 runs, or an innocent in any.
//!
//!     cargo bench -p harness --bench hangs              # 100 seeds for each line
//!     cargo bench -p harness --bench hangs -- 1000

mod seeds;

use harness::sweep::hangs::{Hangs, KINDS, LAUNCHERS, Named};
use seeds::{for_seeds, in_folder};
use std::path::Path;
use std::time::Instant;

// A benchmark reads the clock.
#[allow(clippy::disallowed_methods)]
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
    let hangs = Hangs::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    println!("a training on 4 nodes of 8 GPUs, one rank at fault\n");
    println!(
        "{:<18} {:<9} {:>6} {:>7} {:>8} {:>9} {:>9}",
        "a rank", "launcher", "seeds", "named", "nothing", "innocent", "s a run"
    );
    let mut wrong = Vec::new();
    for kind in KINDS {
        for launcher in LAUNCHERS {
            let began = Instant::now();
            let all = for_seeds(seeds, &|seed| in_folder(&|folder| hangs.run(kind, launcher, seed, folder)))?;
            let each = began.elapsed().as_secs_f64() / seeds as f64;
            let count = |wanted: Named| all.iter().filter(|named| **named == wanted).count() as u64;
            let (rank, nothing, innocent) =
                (count(Named::Rank), count(Named::Nothing), count(Named::Innocent));
            println!("{kind:<18} {launcher:<9} {seeds:>6} {rank:>7} {nothing:>8} {innocent:>9} {each:>9.1}");
            if rank * 100 < seeds * 99 || innocent > 0 {
                wrong.push(format!("{kind} over {launcher}: named {rank} of {seeds}, innocents {innocent}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
