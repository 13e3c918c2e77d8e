//! What lists of many stored runs cost: `history`, `runs list`, `site` and `compare` over as many small runs as asked, and
//! over runs of 512 nodes, without an index (each run read), where it is made, and where it is used.
//!
//!     cargo bench -p harness --bench runs_index              # 100,000 small runs, 20 of 512 nodes
//!     cargo bench -p harness --bench runs_index -- 1000 5    # fewer

use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Files of a case that each run has as a link to the first one's.
const OF_CASE: [&str; 4] = ["analysis.json", "metrics.parquet", "outcomes.json", "job.json"];
const CASE: &str = "nic-pairs";
/// Runs that ended in different ways; the first few are green.
const VARIANTS: usize = 12;
const GREEN: usize = 11;
/// Assertions of a small run.
const SMALL: usize = 8;

// A benchmark reads the clock.
#[allow(clippy::disallowed_methods)]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let small = numbers.first().copied().unwrap_or(100_000);
    let large = numbers.get(1).copied().unwrap_or(20);
    for (what, inventory, runs) in
        [("4 nodes, 8 assertions", "default", small), ("512 nodes", "sim-512", large)]
    {
        let project = project(inventory);
        let made = Instant::now();
        multiply(project.path(), runs, inventory == "default");
        println!("\n{runs} runs of {what}, made in {:.0} s", made.elapsed().as_secs_f64());
        println!(
            "{:<38} {:>10} {:>10} {:>10} {:>9} {:>9}",
            "", "no index s", "cold s", "warm s", "ratio", "warm MiB"
        );
        let kind = ["--kind", "simulated"];
        let history = [&["history", "nic.rate"][..], &kind].concat();
        let suspects = [&["history", "--suspects"][..], &kind].concat();
        let site = ["site", "--output", "site", "--pages", "1"];
        for (name, words) in [
            ("history --suspects", suspects.as_slice()),
            ("history nic.rate, 1,000 newest", history.as_slice()),
            ("runs list", &["runs", "list"]),
            ("site, 1,000 newest", &site),
            ("compare of two", &["compare", "latest", &first(project.path())]),
        ] {
            let index = project.path().join("runs/.index.parquet");
            drop(fs::remove_file(&index));
            // A folder in its place: it can be neither read nor written.
            fs::create_dir(&index).expect("made");
            let none = run(project.path(), words);
            fs::remove_dir(&index).expect("removed");
            let cold = run(project.path(), words);
            let warm = run(project.path(), words);
            println!(
                "{name:<38} {:>10.2} {:>10.2} {:>10.2} {:>8.0}x {:>9}",
                none.0,
                cold.0,
                warm.0,
                none.0 / warm.0,
                warm.1
            );
        }
        let bytes = fs::metadata(project.path().join("runs/.index.parquet")).map_or(0, |facts| facts.len());
        println!("index: {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    }
}

/// A project with one stored run.
fn project(inventory: &str) -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the root");
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["suites", "inventory", "baselines"] {
        copy(&root.join(name), &folder.path().join(name));
    }
    let done = run(folder.path(), &["run", "--suite", "nccl-p5", "-q", "--inventory", inventory, CASE]);
    assert!(done.0 > 0.0);
    folder
}

fn first(project: &Path) -> String {
    let mut all: Vec<String> = fs::read_dir(project.join("runs"))
        .expect("runs")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("20"))
        .collect();
    all.sort();
    all.swap_remove(0)
}

/// Makes more runs of the newest one, an hour apart: each has its own plan and summary, one in twelve blames a NIC, and the
/// larger files are links.
fn multiply(project: &Path, runs: usize, is_small: bool) {
    let latest = fs::canonicalize(project.join("runs/latest")).expect("a run");
    let json =
        |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON") };
    let own = json(latest.join("summary.json"));
    let id = own["run_id"].as_str().expect("an id").to_owned();
    let mut plan = json(latest.join("plan.json"));
    let case = latest.join("cases").join(CASE);
    let mut verdict = json(case.join("verdict.json"));
    if is_small {
        // A hundred thousand whole plans fill a disk.
        let planned = &mut plan["cases"];
        planned.as_array_mut().expect("cases").retain(|one| one["name"] == CASE);
        planned[0]["assertions"].as_array_mut().expect("assertions").truncate(SMALL);
        for job in planned[0]["jobs"].as_array_mut().expect("jobs") {
            ["files", "launch", "expected"].iter().for_each(|key| job[*key] = Vec::<Value>::new().into());
        }
        verdict["verdicts"].as_array_mut().expect("verdicts").truncate(SMALL);
    }
    let plan = plan.to_string();
    let variants: Vec<(PathBuf, Value)> = (0..VARIANTS)
        .map(|nth| {
            let (mut verdict, mut summary) = (verdict.clone(), own.clone());
            if nth >= GREEN {
                let first = &mut verdict["verdicts"][nth % SMALL];
                first["status"] = "fail".into();
                let culprit = serde_json::json!({
                    "kind": "culprit", "node": first["node"], "part": first["part"],
                    "evidence": "4.8 GB/s, limit 11 GB/s", "code": "HRN-NIC-SLOW",
                });
                verdict["culprits"] = vec![culprit.clone()].into();
                summary["culprits"] = vec![culprit].into();
                (summary["exit_code"], summary["counts"]["fail"]) = (1.into(), 1.into());
            }
            let path = project.join(format!("verdict-{nth}.json"));
            fs::write(&path, verdict.to_string()).expect("written");
            (path, summary)
        })
        .collect();
    for nth in 0..runs {
        let (days, hour) = (nth / 24, nth % 24);
        let (year, month, day) = (2000 + days / 336, 1 + days % 336 / 28, 1 + days % 28);
        let new = format!("{year}{month:02}{day:02}T{hour:02}0000Z-nccl-p5-{:04x}", nth % 0x10000);
        let folder = project.join("runs").join(&new);
        let of_case = folder.join("cases").join(CASE);
        fs::create_dir_all(&of_case).expect("made");
        fs::write(folder.join("plan.json"), plan.replace(&id, &new)).expect("written");
        fs::hard_link(latest.join("run.json"), folder.join("run.json")).expect("linked");
        let (verdict, summary) = &variants[nth % VARIANTS];
        let mut summary = summary.clone();
        summary["run_id"] = new.into();
        fs::write(folder.join("summary.json"), summary.to_string()).expect("written");
        // No file system has as many names for one file.
        let link = |from: &Path, to: PathBuf| {
            fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).expect("linked");
        };
        link(verdict, of_case.join("verdict.json"));
        OF_CASE.iter().for_each(|name| link(&case.join(name), of_case.join(name)));
    }
}

/// Seconds by the clock, and the most memory of its own in MiB.
#[allow(clippy::disallowed_methods)]
fn run(project: &Path, words: &[&str]) -> (f64, u64) {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(words)
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the harness starts");
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let anon = status.lines().find_map(|line| {
            line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        peak = peak.max(anon.unwrap_or(0));
        match child.try_wait() {
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(5)),
            Ok(Some(status)) => {
                assert!(status.signal().is_none(), "{words:?}: {status}");
                return (began.elapsed().as_secs_f64(), peak / 1024);
            }
            Err(error) => panic!("{words:?}: {error}"),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}
