//! What the tables of statistics cost on a large report: 5 million kernels, 5 million calls, 100,000 copies, as SQLite and
//! as Parquet, each in a process of its own, so that the memory is that table's alone. Best of three after one run that
//! warms the caches. Beside them the time of merely reading the bytes and, where a second implementation is given by
//! `REFSTATS` (and a Python for it by `PYTHON`), its times on the same file, taken in the same way.
//!
//!     REFSTATS=path/to/refstats.py cargo bench --workspace --bench reports
//!
//! `KERNELS=N` takes another number of kernels and of calls.

#[path = "made/mod.rs"]
mod made;

use nsys::trace::Trace;
use recipes::report::{self, Arguments};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

const REPORTS: [&str; 3] = ["cuda_gpu_kern_sum", "cuda_api_sum", "cuda_kern_exec_sum"];

#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, path, name, ..] = args.as_slice()
        && flag == "--measure"
    {
        return measure(Path::new(path), name);
    }
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let kernels = std::env::var("KERNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let (sqlite, parquet) = (folder.path().join("large.sqlite"), folder.path().join("large_pqtdir"));
    made::sqlite(&sqlite, kernels, 1);
    made::parquet(&parquet, kernels, 1);
    println!(
        "{kernels} kernels and calls; SQLite {} MB, Parquet {} MB",
        megabytes(&sqlite),
        megabytes(&parquet)
    );
    println!("reading the bytes: SQLite {:.3} s", best(|| read_all(&sqlite)));
    println!(
        "{:<20} {:>9} {:>9} {:>14} {:>13} {:>12} {:>8}",
        "table", "form", "s", "rows / s", "peak MiB", "reference s", "ratio"
    );
    for name in REPORTS {
        if report::find(name).is_none() {
            continue;
        }
        let reference = reference(&sqlite, name);
        for (form, path) in [("SQLite", &sqlite), ("Parquet", &parquet)] {
            let (seconds, peak) = child(path, name);
            let (shown, ratio) = match reference {
                Some(other) => (format!("{other:.2}"), format!("{:.1}", other / seconds)),
                None => ("-".to_owned(), "-".to_owned()),
            };
            println!(
                "{name:<20} {form:>9} {seconds:>9.3} {:>14.0} {peak:>13} {shown:>12} {ratio:>8}",
                kernels as f64 / seconds
            );
        }
    }
}

#[allow(clippy::disallowed_methods)]
fn best(run: impl Fn()) -> f64 {
    run();
    let times = (0..3).map(|_| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// In the child: the best time on the first line.
fn measure(path: &Path, name: &str) {
    let report = report::find(name).expect("a report");
    let seconds = best(|| {
        let trace = Trace::open(path).expect("opens");
        let result_table = (report.run)(&trace, &Arguments::default()).expect("reads");
        assert!(result_table.is_some_and(|result_table| result_table.height() > 0));
    });
    println!("{seconds}");
}

fn child(path: &Path, name: &str) -> (f64, u64) {
    let mut child = Command::new(std::env::current_exe().expect("its own path"))
        .args(["--measure", &path.display().to_string(), name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let peak = made::watch(&mut child);
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("read");
    (text.trim().parse().expect("seconds"), peak)
}

#[allow(clippy::disallowed_methods)]
fn reference(sqlite: &Path, name: &str) -> Option<f64> {
    let script = std::env::var("REFSTATS").ok()?;
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let run = || {
        let begun = Instant::now();
        let ended = Command::new(&python).args([&script, &sqlite.display().to_string(), name]).output();
        let ended = ended.expect("the reference starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        begun.elapsed().as_secs_f64()
    };
    run();
    Some((0..3).map(|_| run()).fold(f64::INFINITY, f64::min))
}

fn read_all(path: &Path) {
    let mut file = fs::File::open(path).expect("opens");
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).expect("reads") > 0 {}
}

fn megabytes(path: &Path) -> u64 {
    let files: Vec<PathBuf> = if path.is_dir() {
        fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path()).collect()
    } else {
        vec![path.to_owned()]
    };
    files.iter().map(|file| fs::metadata(file).expect("there").len()).sum::<u64>() / 1_000_000
}
