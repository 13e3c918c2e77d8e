//! Logs that are larger than the memory in which they are read.

use crate::project::Project;
use std::io::Write;
use std::process::{Child, Stdio};

/// Of one line.
const LENGTH: usize = 8 << 10;
const TABLE: &str = "\
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
     8388608       2097152     float     sum      -1    83.33  100.67  100.67       0    80.98  103.59  103.59       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 102.13
";

fn write(child: &mut Child, mebibytes: usize) {
    let line = format!("n1:10:11 [0] NCCL INFO {}\n", "x".repeat(LENGTH));
    let into = child.stdin.as_mut().expect("piped");
    for _ in 0..(mebibytes << 20) / LENGTH {
        into.write_all(line.as_bytes()).expect("somebody reads it");
    }
}

/// The most that a process held so far.
fn peak_mib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

#[test]
fn a_log_of_nccl_tests_of_any_size_is_read_in_the_same_memory() {
    let project = Project::new();
    let mut command = project.command(&["logs", "nccl-tests", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    write(&mut child, 8);
    let before = peak_mib(&child);
    write(&mut child, 32);
    let grown = peak_mib(&child) - before;
    child.stdin.take().expect("piped").write_all(TABLE.as_bytes()).expect("somebody reads it");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("100.67"), "{text}");
    assert!(!text.contains("finding"), "{text}");
    assert!(grown < 8, "32 MiB more of a log took {grown} MiB more of memory");
}
