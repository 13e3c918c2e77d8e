//! Hosts that cannot be reached, or not any more: each says why, and none is waited for by the others.

use super::commands::{exec, host};
use super::hosts::{Hosts, block, processes_with, wait_until};
use crate::fact::Fact;
use cluster::reach::{Reach, ReachError};
use futures::future::join_all;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const FACTS: &[Fact] = &[
    ("an_unknown_key_is_refused_with_the_line_that_adds_it", an_unknown_key_is_refused_with_its_line),
    ("a_key_that_changed_is_refused_with_its_place", a_key_that_changed_is_refused_with_its_place),
    ("a_host_that_takes_no_key_is_refused_without_a_question", a_host_that_takes_no_key_is_refused),
    ("a_host_that_accepts_and_never_answers_keeps_no_other_waiting", a_silent_host_keeps_no_other_waiting),
    ("a_command_whose_connection_breaks_is_unknown_and_the_next_one_runs", a_broken_command_is_unknown),
    ("a_host_that_is_down_comes_back_by_itself", a_host_that_is_down_comes_back_by_itself),
    ("connections_end_with_the_run_and_without_it", connections_end_with_the_run_and_without_it),
    ("sixty_four_hosts_at_once", sixty_four_hosts_at_once),
];

fn an_unknown_key_is_refused_with_its_line() {
    let hosts = Hosts::start(2);
    let known = hosts.text("known_hosts");
    fs::write(hosts.path("known_hosts"), known.lines().next().expect("a line").to_owned() + "\n")
        .expect("written");
    let reach = hosts.reach();
    let refused = block(async {
        assert!(exec(&reach, "h1", &["true"]).await.expect("known").succeeded());
        exec(&reach, "h2", &["true"]).await.expect_err("unknown").to_string()
    });
    let file = hosts.path("known_hosts").display().to_string();
    let line = format!("ssh-keyscan -p {} 127.0.11.2 >> {file}", hosts.port());
    assert_eq!(
        refused,
        format!("ssh to h2: its host key is not known; if you trust the network, add it: `{line}`")
    );
    // The line does what it says.
    let added = Command::new("sh").args(["-c", &line]).stderr(std::process::Stdio::null()).status();
    assert!(added.expect("ssh-keyscan").success());
    let reach = hosts.reach();
    block(async {
        assert!(exec(&reach, "h2", &["true"]).await.expect("known by now").succeeded());
        reach.end().await;
    });
}

fn a_key_that_changed_is_refused_with_its_place() {
    let hosts = Hosts::start(1);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(hosts.path("other"))
        .status();
    assert!(made.expect("ssh-keygen").success());
    let other = hosts.text("other.pub");
    let words: Vec<&str> = other.split(' ').take(2).collect();
    let file = hosts.path("known_hosts");
    fs::write(&file, format!("[127.0.11.1]:{} {}\n", hosts.port(), words.join(" "))).expect("written");
    let reach = hosts.reach();
    let why = block(exec(&reach, "h1", &["true"])).expect_err("another key").to_string();
    let place = format!("Offending ED25519 key in {}:1", file.display());
    assert!(why.starts_with("ssh to h1: its host key has changed") && why.ends_with(&place), "{why}");
}

fn a_host_that_takes_no_key_is_refused() {
    let hosts = Hosts::start_with(1, &["PasswordAuthentication yes"], "");
    fs::write(hosts.path("user.pub"), "").expect("written");
    let reach = hosts.reach();
    let began = std::time::Instant::now();
    let why = block(exec(&reach, "h1", &["true"])).expect_err("no key").to_string();
    assert!(began.elapsed() < Duration::from_secs(10), "somebody was asked");
    let config = hosts.path("ssh_config");
    let line = format!("make `ssh -F {} h1` work first", config.display());
    assert!(why.contains(&line) && why.contains("Permission denied"), "{why}");
}

fn a_silent_host_keeps_no_other_waiting() {
    let silent = TcpListener::bind("127.0.11.250:0").expect("an address");
    let port = silent.local_addr().expect("bound").port();
    let config = format!("Host mute\n    HostName 127.0.11.250\n    Port {port}\n");
    let hosts = Hosts::start_with(3, &[], &config);
    let reach = hosts.reach();
    block(async {
        let began = Instant::now();
        let good = async {
            for _ in 0..20 {
                for name in hosts.names() {
                    assert!(exec(&reach, &name, &["true"]).await.expect("an answer").succeeded());
                }
            }
            began.elapsed()
        };
        let (mute, good) = tokio::join!(exec(&reach, "mute", &["true"]), good);
        let took = began.elapsed();
        assert!(matches!(mute, Err(ReachError::Unreachable { .. })), "{mute:?}");
        assert!(took < Duration::from_secs(25), "{took:?}");
        assert!(good < took, "the others waited: {good:?} of {took:?}");
        // It is not waited for all over again.
        let again = Instant::now();
        assert_eq!(exec(&reach, "mute", &["true"]).await, mute);
        assert!(again.elapsed() < Duration::from_secs(1));
        reach.end().await;
    });
}

fn a_broken_command_is_unknown() {
    let hosts = Hosts::start(2);
    let reach = hosts.reach();
    block(async {
        exec(&reach, "h1", &["true"]).await.expect("connected");
        let cut = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            hosts.cut(1)
        };
        let began = Instant::now();
        let (broken, other, _) =
            tokio::join!(exec(&reach, "h1", &["sleep", "20"]), exec(&reach, "h2", &["sleep", "1"]), cut);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let why = broken.expect_err("broken").to_string();
        assert!(why.starts_with("h1 cannot be reached: the connection was lost"), "{why}");
        assert!(why.ends_with("whether it finished is unknown"), "{why}");
        assert!(other.expect("unharmed").succeeded());
        assert!(exec(&reach, "h1", &["true"]).await.expect("reconnected").succeeded());
        reach.end().await;
    });
}

fn a_host_that_is_down_comes_back_by_itself() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    block(async {
        exec(&reach, "h1", &["true"]).await.expect("connected");
        hosts.down(1);
        let why = exec(&reach, "h1", &["true"]).await.expect_err("down").to_string();
        assert!(why.contains("Connection refused") || why.contains("connection was lost"), "{why}");
        hosts.up(1);
        hosts.wait_for(1);
        let began = Instant::now();
        while exec(&reach, "h1", &["true"]).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "it rests for ever");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        reach.end().await;
    });
}

fn connections_end_with_the_run_and_without_it() {
    let hosts = Hosts::start(3);
    let config = hosts.path("ssh_config").display().to_string();
    let reach = hosts.reach();
    block(async {
        for name in hosts.names() {
            exec(&reach, &name, &["true"]).await.expect("an answer");
        }
        assert_eq!(processes_with(&config).len(), 3);
        // What still goes over a connection does not keep it.
        let (_, ()) = tokio::join!(exec(&reach, "h1", &["sleep", "30"]), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            reach.end().await;
        });
    });
    drop(reach);
    wait_until(5, "all connections end", || processes_with(&config).is_empty());
    // One that is never ended ends by itself: its harness may have been killed.
    let reach = hosts.reach();
    block(exec(&reach, "h1", &["true"])).expect("an answer");
    assert_eq!(processes_with(&config).len(), 1);
    wait_until(40, "an unused connection ends", || processes_with(&config).is_empty());
}

fn sixty_four_hosts_at_once() {
    let hosts = Hosts::start(64);
    let reach = hosts.reach();
    let names = hosts.names();
    block(async {
        let began = Instant::now();
        let reported = join_all(names.iter().map(|name| exec(&reach, name, &["hostname"]))).await;
        for (name, reported) in names.iter().zip(reported) {
            assert!(reported.unwrap_or_else(|error| panic!("{error}")).succeeded(), "{name}");
        }
        let connected = began.elapsed();
        let files = names.iter().map(|name| {
            let (reach, path) = (&reach, hosts.path(name).display().to_string());
            async move {
                let bytes = format!("of {name}").repeat(10_000).into_bytes();
                reach.put(&host(name), &path, &bytes).await.expect("written");
                assert!(reach.get(&host(name), &path).await.expect("read") == bytes, "{name}");
            }
        });
        join_all(files).await;
        eprintln!(
            "64 hosts: connected in {connected:.1?}, a file put and got on each in {:.1?}",
            began.elapsed() - connected
        );
        reach.end().await;
    });
}
