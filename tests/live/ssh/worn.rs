//! Runs over ssh whose servers, hosts or jobs give out in the middle: what comes of them stands in the table of failures.

use super::hosts::{Hosts, wait_until};
use super::suites::{Bench, Folder, pids_in};
use crate::fact::Fact;
use crate::project::ran;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

pub(super) const FACTS: &[Fact] = &[
    ("a_server_that_is_killed_while_a_job_runs_costs_nothing", server_killed_mid_command),
    ("a_server_that_is_killed_while_a_file_is_fetched_costs_nothing", server_killed_mid_transfer),
    ("a_host_that_accepts_and_never_answers_costs_its_own_verdicts_only", silent_host),
    ("a_job_over_its_limit_is_ended_on_every_host", over_the_limit),
    ("a_job_that_somebody_kills_costs_its_own_verdict_only", killed_by_somebody),
];

fn waiting(many: usize, placements: &[&str]) -> (Bench, Folder) {
    let folder = Folder(tempfile::tempdir().expect("a folder").keep().display().to_string());
    let program = Bench::program_that_waits(&folder.0);
    (Bench::with_suite(Hosts::start(many), placements, &program, "limit_s = 120"), folder)
}

fn go(folder: &Folder) {
    fs::write(format!("{}/go", folder.0), "").expect("written");
}

fn server_killed_mid_command() {
    let (bench, folder) = waiting(3, &["each", "all"]);
    let child = bench.start();
    pids_in(&folder.0, 3);
    // Jobs start side by side: one may run whose start has not been answered, and whose supervisor is still below sshd.
    wait_until(30, "all jobs are launched", || {
        let events = fs::read_to_string(bench.project.latest().join("events.jsonl")).unwrap_or_default();
        events.matches("\"job-submitted\"").count() == 3
    });
    bench.hosts.down(2);
    std::thread::sleep(Duration::from_secs(7));
    go(&folder);
    bench.hosts.up(2);
    let ran = ran(child.wait_with_output().expect("ends"));
    bench.came_to("sshd killed while a job runs, and started again", &ran, ["pass", "none", "4 pass"]);
}

/// Of the output of one job: more than goes over in a moment.
const BYTES: u64 = 96 << 20;

fn server_killed_mid_transfer() {
    let program = format!("[ \"$HARNESS_NODE\" != h2 ] || head -c {BYTES} /dev/zero | tr '\\0' x");
    let bench = Bench::with_suite(Hosts::start(3), &["each"], &program, "limit_s = 120");
    let child = bench.start();
    for nth in 1..=2 {
        wait_until(60, "the file is on its way", || bench.hosts.sent(2) > BYTES / 8);
        assert!(bench.hosts.cut(2) > 0, "cut {nth}");
    }
    bench.hosts.down(2);
    std::thread::sleep(Duration::from_secs(3));
    bench.hosts.up(2);
    let ran = ran(child.wait_with_output().expect("ends"));
    bench.came_to("sshd killed while a file is fetched", &ran, ["pass", "none", "3 pass"]);
    let raw = bench.project.latest().join("cases/on-each/raw/h2");
    let sizes = fs::read_dir(&raw).expect("raw").flatten().map(|file| file.metadata().expect("there").len());
    assert_eq!(sizes.max(), Some(BYTES), "all of it came home");
}

fn silent_host() {
    let silent = TcpListener::bind("127.0.11.250:0").expect("an address");
    let port = silent.local_addr().expect("bound").port();
    let config = format!("Host h3\n    HostName 127.0.11.250\n    Port {port}\n");
    let bench =
        Bench::with_suite(Hosts::start_with(4, &[], &config), &["each"], "echo here", "limit_s = 120");
    let ran = ran(bench.start().wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    bench.came_to(
        "a host that accepts and never answers, ssh",
        &ran,
        ["1 error host-unreachable", "culprit h3 node", "3 pass"],
    );
}

fn over_the_limit() {
    let program = "trap '' INT TERM; [ \"$HARNESS_NODE\" != h2 ] || while :; do sleep 1; done";
    let bench = Bench::with_suite(Hosts::start(3), &["each"], program, "limit_s = 20");
    let ran = ran(bench.start().wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    bench.came_to(
        "a job over its time limit that heeds no signal, ssh",
        &ran,
        ["1 error hang", "culprit h2 node", "2 pass"],
    );
}

fn killed_by_somebody() {
    let (bench, folder) = waiting(3, &["each"]);
    let child = bench.start();
    let pids = pids_in(&folder.0, 3);
    kill(Pid::from_raw(pids[1]), Signal::SIGKILL).expect("killed");
    go(&folder);
    let ran = ran(child.wait_with_output().expect("ends"));
    bench.came_to("a job that somebody else kills, ssh", &ran, ["1 fail", "culprit h2 node", "2 pass"]);
}
