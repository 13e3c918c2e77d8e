//! What a run costs as nodes grow: `suites/scale.toml` on 64, 128, 256 and 512 simulated nodes, each in a process of its
//! own, so that the processor time and the memory are that run's alone.
//!
//!     cargo bench -p harness --bench scale

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the root");
    println!(
        "{:>6} {:>10} {:>14} {:>12} {:>16}",
        "nodes", "CPU s", "peak anon MiB", "assertions", "CPU / n log2 n"
    );
    let mut base = None;
    for nodes in [64u32, 128, 256, 512] {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["suites", "inventory", "baselines"] {
            copy(&root.join(name), &folder.path().join(name));
        }
        let range = format!("p5-[001-{nodes:03}]");
        let mut child = Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["-q", "--suite", "scale", "--inventory", "sim-512", "--nodes", &range])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the harness starts");
        let (anon_mib, status) = watch(&mut child);
        let cpu_s = children_cpu_s() - base.unwrap_or(0.0);
        base = Some(children_cpu_s());
        let summary = fs::read_to_string(folder.path().join("runs/latest/summary.json")).unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap_or_default();
        let n = f64::from(nodes);
        println!(
            "{nodes:>6} {cpu_s:>10.2} {anon_mib:>14} {:>12} {:>16.6} exit {:?}",
            summary["counts"]["total"].to_string(),
            cpu_s / (n * n.log2()),
            status
        );
    }
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
