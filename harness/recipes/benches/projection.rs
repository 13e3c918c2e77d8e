//! What it costs to project ranges onto the GPU: 5 million kernels and calls within about a million nested ranges, as one
//! SQLite file, each table in a process of its own. Best of three after one run that warms the caches. Where a second
//! implementation is given by `REFSTATS` (and a Python for it by `PYTHON`), its time on the same file beside it, taken
//! once.
//!
//!     REFSTATS=path/to/refstats.py cargo bench --workspace --bench projection
//!
//! `KERNELS=N` takes another number of kernels and calls.

#[path = "made/mod.rs"]
mod made;

use nsys::trace::Trace;
use recipes::report::{self, Arguments};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

const REPORTS: [&str; 3] = ["nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace", "nvtx_kern_sum"];

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
    let sqlite = folder.path().join("nested.sqlite");
    let ranges = made::nested(&sqlite, kernels, 1);
    println!("{kernels} kernels and calls, {ranges} ranges");
    println!(
        "{:<20} {:>9} {:>14} {:>9} {:>12} {:>8}",
        "table", "s", "ranges / s", "peak MiB", "reference s", "ratio"
    );
    for name in REPORTS {
        let (seconds, peak) = child(&sqlite, name);
        // One table of the other is enough: its times are minutes.
        let (shown, ratio) = match reference(&sqlite, name) {
            Some(other) => (format!("{other:.2}"), format!("{:.1}", other / seconds)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        println!(
            "{name:<20} {seconds:>9.3} {:>14.0} {peak:>9} {shown:>12} {ratio:>8}",
            ranges as f64 / seconds
        );
    }
}

/// In the child: the best time on the first line.
#[allow(clippy::disallowed_methods)]
fn measure(path: &Path, name: &str) {
    let report = report::find(name).expect("a report");
    let run = || {
        let begun = Instant::now();
        let trace = Trace::open(path).expect("opens");
        let result_table = (report.run)(&trace, &Arguments::default()).expect("reads");
        assert!(result_table.is_some_and(|result_table| result_table.height() > 0));
        begun.elapsed().as_secs_f64()
    };
    run();
    println!("{}", (0..3).map(|_| run()).fold(f64::INFINITY, f64::min));
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
    if name != REPORTS[0] {
        return None;
    }
    let begun = Instant::now();
    let ended = Command::new(&python).args([&script, &sqlite.display().to_string(), name]).output();
    let ended = ended.expect("the reference starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Some(begun.elapsed().as_secs_f64())
}
