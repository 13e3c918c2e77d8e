//! How much memory a large file takes that comes home: seen from a process of its own, for others would count too.

use super::tests::{case, ended};
use super::*;
use crate::reach::process::ProcessReach;
use model::artefact::Launcher;
use std::fs::{self, File};
use std::process::Command;

const THIS: &str = "collect::memory_tests::a_large_log_is_collected_in_little_memory";
/// Names the folder of the job, for the process that collects it.
const FOLDER: &str = "HARNESS_TEST_LARGE_FOLDER";
const LARGE: u64 = 256 << 20;
const ALLOWED_KIB: u64 = 32 << 10;

#[test]
fn a_large_log_is_collected_in_little_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let before = peak_kib();
        collect_large(folder.to_str().expect("text"));
        println!("grown-kib {}", peak_kib() - before);
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("job");
    fs::create_dir(&job).expect("made");
    File::create(job.join("good")).expect("made").set_len(LARGE).expect("grown");
    let this = std::env::current_exe().expect("a test");
    let output = Command::new(this)
        .args([THIS, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, &job)
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let grown = text.split("grown-kib ").nth(1).and_then(|rest| rest.lines().next());
    let grown: u64 = grown.expect(&text).trim().parse().expect("a number");
    assert!(grown < ALLOWED_KIB, "{grown} KiB for a file of {} KiB", LARGE >> 10);
}

fn collect_large(folder: &str) {
    let runs = tempfile::tempdir().expect("a folder");
    let store = Store::create_in(runs.path(), "run").expect("a store");
    let mut case = case();
    case.jobs[0].folder = folder.to_owned();
    let folders = Folders { reach: &ProcessReach, launcher: Launcher::Local, nodes: &[] };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let jobs = ended(Ended::Exited { code: 0 });
    let collected = runtime.block_on(collect(&case, &jobs, folders, None, &store)).expect("collected");
    assert_eq!((collected.files.len(), collected.files[0].bytes), (1, LARGE), "{:?}", collected.missing);
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
