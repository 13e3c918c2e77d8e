//! What a run costs as nodes grow: a suite on more and more simulated nodes, each run in a process of its own, so that the
//! processor time and the memory are that run's alone; what it leaves on disk; and the power of nodes that each grows by.
//!
//!     cargo bench -p harness --bench scale
//!     cargo bench -p harness --bench scale -- nccl-p5 4 64 512 4096

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where no suite is named, and no number of nodes.
const SUITE: &str = "scale";
const NODES: [u32; 4] = [64, 128, 256, 512];

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut sizes: Vec<u32> = given.iter().filter_map(|arg| arg.parse().ok()).collect();
    let suite = given.iter().find(|arg| arg.parse::<u32>().is_err()).map_or(SUITE, String::as_str);
    if sizes.is_empty() {
        sizes = NODES.to_vec();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the root");
    println!("suite {suite}");
    println!(
        "{:>6} {:>8} {:>10} {:>9} {:>14} {:>13} {:>9} {:>10} {:>9} {:>5}",
        "nodes",
        "jobs",
        "assertions",
        "CPU s",
        "peak anon MiB",
        "artefacts MB",
        "plan MB",
        "JUnit MB",
        "page MB",
        "exit"
    );
    let mut rows = Vec::new();
    for nodes in sizes {
        let row = Row::measure(root, suite, nodes);
        println!(
            "{nodes:>6} {:>8} {:>10} {:>9.2} {:>14.0} {:>13.2} {:>9.2} {:>10.2} {:>9.2} {:>5}",
            row.jobs,
            row.assertions,
            row.cpu_s,
            row.anon_mib,
            row.artefacts_mb,
            row.plan_mb,
            row.junit_mb,
            row.page_mb,
            row.exit.map_or_else(|| "-".to_owned(), |code| code.to_string())
        );
        rows.push(row);
    }
    // From 64 to 10,000 nodes, n log n grows as the power 1.16 of n.
    println!("growth as a power of nodes, from each row to the next:");
    for pair in rows.windows(2) {
        let [from, to] = pair else { continue };
        let power = |of: fn(&Row) -> f64| (of(to) / of(from)).ln() / (to.nodes / from.nodes).ln();
        println!(
            "{:>6} to {:>6}: CPU {:.2}, memory {:.2}, artefacts {:.2}, plan {:.2}, JUnit {:.2}, page {:.2}; n log n {:.2}",
            from.nodes,
            to.nodes,
            power(|row| row.cpu_s),
            power(|row| row.anon_mib),
            power(|row| row.artefacts_mb),
            power(|row| row.plan_mb),
            power(|row| row.junit_mb),
            power(|row| row.page_mb),
            power(|row| row.nodes * row.nodes.ln())
        );
    }
}

/// What a run of so many nodes cost.
struct Row {
    nodes: f64,
    jobs: usize,
    assertions: u64,
    cpu_s: f64,
    anon_mib: f64,
    artefacts_mb: f64,
    plan_mb: f64,
    junit_mb: f64,
    page_mb: f64,
    exit: Option<i32>,
}

impl Row {
    fn measure(root: &Path, suite: &str, nodes: u32) -> Row {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["suites", "inventory", "baselines"] {
            copy(&root.join(name), &folder.path().join(name));
        }
        let inventory = format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[00001-{nodes:05}]\"\n\n[reach]\nvia = \"slurm\"\n"
        );
        fs::write(folder.path().join("inventory/many.toml"), inventory).expect("written");
        let before = children_cpu_s();
        let mut child = Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["-q", "--suite", suite, "--inventory", "many"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the harness starts");
        let (anon_mib, exit) = watch(&mut child);
        let cpu_s = children_cpu_s() - before;
        let run = folder.path().join("runs/latest");
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let length = |name: &str| mb(fs::metadata(run.join(name)).map_or(0, |data| data.len()));
        let summary = fs::read_to_string(run.join("summary.json")).unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap_or_default();
        let events = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
        Row {
            nodes: f64::from(nodes),
            jobs: events.lines().filter(|line| line.contains("\"job-submitted\"")).count(),
            assertions: summary["counts"]["total"].as_u64().unwrap_or_default(),
            cpu_s,
            anon_mib: anon_mib as f64,
            artefacts_mb: mb(bytes(&run)),
            plan_mb: length("plan.json"),
            junit_mb: length("junit.xml"),
            page_mb: length("index.html"),
            exit,
        }
    }
}

/// Of all files below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Waits for the child, looking at its anonymous memory on the way.
#[allow(clippy::disallowed_methods)]
fn watch(child: &mut std::process::Child) -> (u64, Option<i32>) {
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let anon = status.lines().find_map(|line| {
            line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        peak = peak.max(anon.unwrap_or(0));
        match child.try_wait() {
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(20)),
            Ok(Some(status)) => return (peak / 1024, status.code()),
            Err(_) => return (peak / 1024, None),
        }
    }
}

/// Processor time of all children that have been waited for.
fn children_cpu_s() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).expect("asked");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
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
