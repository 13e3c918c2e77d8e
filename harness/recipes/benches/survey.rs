//! What all summaries over many reports cost: 64, 128 and 256 reports of 100,000 kernels and 100,000 calls each, all
//! summaries in one go, with one, two and four reports open at a time; each in a process of its own, so that the memory
//! is that run's alone. Sixteen reports are written, each differently; further ones are read again under other names.
//!
//!     cargo bench --workspace --bench survey

#[path = "made/mod.rs"]
mod made;

use recipes::recipe::of_reports::{Input, LIST, Survey, survey};
use recipes::report::Arguments;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

const ROWS: usize = 100_000;
const DIFFERENT: usize = 16;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, folder, reports, jobs, ..] = args.as_slice()
        && flag == "--measure"
    {
        let number = |text: &str| text.parse().expect("a number");
        return measure(Path::new(folder), number(reports), number(jobs));
    }
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for at in 0..DIFFERENT {
        made::sqlite(&folder.path().join(format!("r{at}.sqlite")), ROWS, at as u64 + 1);
    }
    println!(
        "{:>8} {:>6} {:>9} {:>14} {:>10} {:>10}",
        "reports", "jobs", "s", "rows / s", "s / report", "peak MiB"
    );
    for (reports, jobs) in [(64, 2), (128, 2), (256, 2), (256, 1), (256, 4)] {
        let mut child = Command::new(std::env::current_exe().expect("its own path"))
            .args([
                "--measure",
                &folder.path().display().to_string(),
                &reports.to_string(),
                &jobs.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let peak = made::watch(&mut child);
        let mut text = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut text).expect("read");
        let mut words = text.split_whitespace();
        let seconds: f64 = words.next().and_then(|word| word.parse().ok()).expect("seconds");
        let rows: f64 = words.next().and_then(|word| word.parse().ok()).expect("rows");
        let each = seconds / f64::from(reports);
        println!("{reports:>8} {jobs:>6} {seconds:>9.2} {:>14.0} {each:>10.4} {peak:>10}", rows / seconds);
    }
}

/// In the child: the time and the rows.
#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn measure(folder: &Path, reports: usize, jobs: usize) {
    let path = |at: usize| -> PathBuf { folder.join(format!("r{}.sqlite", at % DIFFERENT)) };
    let inputs: Vec<Input> =
        (0..reports).map(|at| Input { path: path(at), shown: format!("r{at}"), side: 0 }).collect();
    let asked: Vec<_> = LIST
        .iter()
        .filter(|recipe| recipe.is_summary())
        .map(|recipe| (*recipe, Arguments::default()))
        .collect();
    let rows = std::sync::atomic::AtomicU64::new(0);
    let begun = Instant::now();
    let outcomes = survey(&Survey {
        asked: &asked,
        inputs: &inputs,
        filter: None,
        jobs,
        progress: &|progress| rows.store(progress.rows, std::sync::atomic::Ordering::Relaxed),
    });
    let seconds = begun.elapsed().as_secs_f64();
    let outcomes = outcomes.expect("threads");
    assert!(outcomes.iter().any(|outcome| !outcome.tables.is_empty()));
    assert!(outcomes.iter().all(|outcome| outcome.unreadable.is_empty()), "{outcomes:?}");
    println!("{seconds} {}", rows.into_inner());
}
