//! Hosts that answer and do not let us work there: a login shell that refuses, a forced command, and what prints where
//! sftp should begin. Each is reported with its own first line, before anything is launched, and no node is blamed.

use super::hosts::{Hosts, block};
use super::suites::Bench;
use crate::fact::Fact;
use crate::project::Ran;
use cluster::reach::{Host, Reach};
use std::fs;
use std::time::{Duration, Instant};

pub(super) const FACTS: &[Fact] = &[
    ("a_login_shell_that_refuses_is_left_out_with_its_own_words", a_login_shell_that_refuses_is_left_out),
    ("forced_commands_everywhere_end_the_run_before_it_begins", forced_commands_everywhere_end_the_run),
    ("what_is_printed_where_sftp_should_begin_is_reported", what_is_printed_instead_of_sftp_is_reported),
];

const NOLOGIN: &str = "This account is currently not available.";
const ARGS: [&str; 5] = ["--suite", "test", "--inventory", "live", "--no-probe"];

const SFTP: &str = "Subsystem sftp internal-sftp\n";

/// Restarts a host's sshd with another line for sftp.
fn set(hosts: &Hosts, nth: usize, line: &str) {
    let conf = format!("h{nth}.conf");
    let text = hosts.text(&conf).replace(SFTP, &format!("{line}\n"));
    fs::write(hosts.path(&conf), text).expect("written");
    hosts.down(nth);
    hosts.up(nth);
    hosts.wait_for(nth);
}

fn bench(many: usize) -> Bench {
    Bench::with_suite(Hosts::start(many), &["each"], "echo here", "limit_s = 120\ncounters = false")
}

/// How long a run took.
fn timed(bench: &Bench, args: &[&str]) -> (Ran, Duration) {
    let began = Instant::now();
    (bench.project.harness(args), began.elapsed())
}

fn a_login_shell_that_refuses_is_left_out() {
    let bench = bench(3);
    // What /usr/sbin/nologin does.
    set(&bench.hosts, 2, &format!("{SFTP}ForceCommand echo '{NOLOGIN}'; exit 1"));
    let (ran, took) = timed(&bench, &ARGS);
    let line = format!("ssh to h2: its login shell runs no commands; it printed: {NOLOGIN}");
    assert!(ran.stdout.contains(&format!("excluded h2: {line}")), "{}", ran.all());
    assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", ran.all());
    let counts = &bench.project.json("summary.json")["counts"];
    assert_eq!((&counts["pass"], &counts["error"]), (&2.into(), &1.into()), "{}", ran.all());
    assert!(took < Duration::from_secs(60), "{took:?}");
    // The same where nodes are probed, and the node is not remembered for it.
    let probed = bench.project.harness(&ARGS[..4]);
    assert!(probed.stdout.contains(&format!("excluded h2: {line}")), "{}", probed.all());
    assert!(!probed.blamed().contains(&"culprit h2 node".to_owned()), "{}", probed.all());
    let suspects = bench.project.harness(&["history", "--suspects"]);
    assert!(!suspects.stdout.contains("h2"), "{}", suspects.all());
}

fn forced_commands_everywhere_end_the_run() {
    let bench = bench(4);
    for nth in 1..=4 {
        set(&bench.hosts, nth, "ForceCommand echo only sftp here");
    }
    let (ran, took) = timed(&bench, &ARGS);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let wanted =
        "ssh to h1: its login shell runs no commands; it printed: only sftp here; all 4 nodes refuse";
    assert!(ran.stderr.contains(wanted), "{}", ran.all());
    assert!(ran.stderr.lines().count() + ran.stdout.lines().count() <= 10, "{}", ran.all());
    assert_eq!(bench.project.runs(), 0, "nothing was launched");
    assert!(took < Duration::from_secs(60), "{took:?}");
}

fn what_is_printed_instead_of_sftp_is_reported() {
    // The start-up files of a shell that print something, and a server of sftp that is started by that shell.
    let hosts = Hosts::start(1);
    set(&hosts, 1, "Subsystem sftp echo Welcome to the cluster; exec /usr/lib/openssh/sftp-server");
    let reach = hosts.reach();
    let why = block(async {
        let why = reach.get(&Host::Node("h1".to_owned()), "/etc/hostname").await.expect_err("no sftp");
        reach.end().await;
        why.to_string()
    });
    assert_eq!(why, "ssh to h1: it offers no sftp; it printed: Welcome to the cluster");
}
