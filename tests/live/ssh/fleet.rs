//! Sixty-four real sshds with the shortest heartbeat timeout on a machine that is busy with something else: no job is
//! lost.

use super::hosts::Hosts;
use super::suites::Bench;
use crate::fact::Fact;
use crate::project::ran;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

pub(super) const NIGHTLY: &[Fact] =
    &[("sixty_four_hosts_lose_no_job_on_a_busy_machine", sixty_four_hosts_lose_no_job_on_a_busy_machine)];

/// Processes that do nothing as fast as they can; they end with this.
struct Load(Vec<Child>);

impl Load {
    fn start(many: usize) -> Load {
        let spin = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("a shell")
        };
        Load((0..many).map(|_| spin()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for one in &mut self.0 {
            let _ = one.kill();
            let _ = one.wait();
        }
    }
}

fn sixty_four_hosts_lose_no_job_on_a_busy_machine() {
    let bench = Bench::with_suite(Hosts::start(64), &[], "", "");
    let case = |name: &str, seconds: u32| {
        format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nlimit_s = 900\ncounters = false\n\
             workload = {{ kind = \"command\", program = \"sleep\", args = [\"{seconds}\"] }}\n\
             recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        )
    };
    // The second runs for longer than its heartbeat timeout lasts.
    let suite = format!(
        "instance = \"p5\"\nabout = \"over real ssh\"\n{}{}",
        case("short", 2),
        case("longer-than-its-timeout", 45)
    );
    bench.project.write("suites/test.toml", &suite);
    let load = Load::start(10);
    let began = Instant::now();
    let args = ["--suite", "test", "--inventory", "live", "--no-probe", "-q"];
    let child = bench.project.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let ran = ran(child.expect("starts").wait_with_output().expect("ends"));
    let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    eprintln!("64 hosts, 128 jobs: {:.0?}; load at the end: {}", began.elapsed(), loadavg.trim());
    drop(load);
    let events = fs::read_to_string(bench.project.latest().join("events.jsonl")).expect("events");
    let lost: Vec<&str> = events.lines().filter(|line| line.contains("no heartbeat for")).collect();
    assert!(lost.is_empty(), "{} jobs lost: {}", lost.len(), lost[0]);
    assert_eq!((ran.code, ran.blamed()), (Some(0), Vec::new()), "{}", ran.all());
    let counts = &bench.project.json("summary.json")["counts"];
    assert_eq!(counts["pass"], 128, "{}", ran.all());
    bench.reported_quiet(30);
}
