//! Commands over ssh: they arrive as they were given, and their ends are reported.

use super::hosts::{Hosts, block};
use crate::fact::Fact;
use cluster::reach::openssh::OpenSsh;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Status};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::time::Duration;
use tokio::time::Instant;

pub(super) const FACTS: &[Fact] = &[
    ("commands_end_as_they_end_on_the_node", commands_end_as_they_end_on_the_node),
    ("what_a_login_shell_prints_is_no_output_of_a_command", what_a_login_shell_prints_is_no_output),
    ("output_is_bounded_and_says_so", output_is_bounded_and_says_so),
    ("any_text_arrives_as_itself", any_text_arrives_as_itself),
    ("a_limit_ends_the_wait_and_the_command", a_limit_ends_the_wait_and_the_command),
    ("commands_beyond_the_sessions_all_run_once", commands_beyond_the_sessions_all_run_once),
    ("a_crowded_jump_host_lets_all_in_by_and_by", a_crowded_jump_host_lets_all_in_by_and_by),
];

pub(super) fn host(name: &str) -> Host {
    Host::Node(name.to_owned())
}

pub(super) async fn exec(reach: &OpenSsh, name: &str, argv: &[&str]) -> Result<Answer, ReachError> {
    reach.exec(&host(name), &Command::new(argv.iter().copied(), Duration::from_secs(60))).await
}

fn commands_end_as_they_end_on_the_node() {
    let hosts = Hosts::start(2);
    let reach = hosts.reach();
    block(async {
        for (argv, code, stdout, stderr) in [
            (&["echo", "x"][..], 0, "x\n", ""),
            (&["sh", "-c", "echo out; echo err >&2; exit 3"], 3, "out\n", "err\n"),
            (&["sh", "-c", "exit 127"], 127, "", ""),
            (&["sh", "-c", "exit 255"], 255, "", ""),
            (&["cat"], 0, "", ""),
        ] {
            let answer = exec(&reach, "h1", argv).await.expect("an answer");
            let reported =
                (answer.status, answer.stdout_text(), String::from_utf8_lossy(&answer.stderr).into_owned());
            assert_eq!(reported, (Status::Code(code), stdout.to_owned(), stderr.to_owned()), "{argv:?}");
        }
        let killed = exec(&reach, "h2", &["sh", "-c", "kill -9 $$"]).await.expect("an answer");
        assert_eq!(killed.status, Status::Code(137));
        let absent = exec(&reach, "h2", &["no-such-program"]).await;
        assert_eq!(
            absent,
            Err(ReachError::NoProgram { host: "h2".into(), program: "no-such-program".into() })
        );
        reach.end().await;
    });
    assert_eq!(hosts.text("h1.log").matches("Accepted publickey").count(), 1, "one connection for all");
}

fn what_a_login_shell_prints_is_no_output() {
    // What a person's start-up files print comes before the command of every session.
    let hosts = Hosts::start_with(
        1,
        &["ForceCommand echo welcome; echo careful >&2; eval \"$SSH_ORIGINAL_COMMAND\""],
        "",
    );
    let reach = hosts.reach();
    block(async {
        let answer = exec(&reach, "h1", &["echo", "x"]).await.expect("an answer");
        assert_eq!(answer.stdout_text(), "x\n");
        let why = reach.get(&host("h1"), "/etc/hostname").await.expect_err("no sftp").to_string();
        assert!(why.contains("offers no sftp"), "{why}");
        reach.end().await;
    });
}

fn output_is_bounded_and_says_so() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    block(async {
        let argv = ["sh", "-c", "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero | tr '\\0' e >&2"];
        let answer = exec(&reach, "h1", &argv).await.expect("an answer");
        assert_eq!(answer.stdout.len(), 10_000_000);
        let said = String::from_utf8_lossy(&answer.stderr);
        let (first, rest) = said.split_once('\n').expect("a line");
        assert_eq!(first, format!("[{} bytes before this are left out]", 10_000_000 - rest.len()));
        let reported = exec(&reach, "h1", &["yes"]).await.expect_err("too much").to_string();
        assert_eq!(reported, "`yes` on h1: its output exceeds 16 MiB; larger output must go to a file");
        reach.end().await;
    });
}

/// Any text without a zero byte, more often than not of what means something to a shell.
pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[-'\"$`\\\\!*?~#;&|<>(){}\\[\\]=%^ \\n\\t\\r]{0,12}",
        "[^\\x00]{0,16}",
        Just("$(touch /tmp/was-run)".to_owned()),
        Just("-n".to_owned()),
        Just("--".to_owned()),
        Just("héllo wörld\u{202e}☃".to_owned()),
    ]
}

fn any_text_arrives_as_itself() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let folder = hosts.path("paths").display().to_string();
    block(async {
        exec(&reach, "h1", &["true"]).await.expect("connected");
    });
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let output =
        runner.run(&(prop::collection::vec(text(), 1..4), text(), text()), |(words, value, name)| {
            // A connection belongs to no runtime: each case may have its own.
            block(async {
                let mut argv = vec!["printf", "%s\\0"];
                argv.extend(words.iter().map(String::as_str));
                let answer = exec(&reach, "h1", &argv).await.expect("an answer");
                let mut came: Vec<String> = answer.stdout_text().split('\0').map(str::to_owned).collect();
                came.pop();
                prop_assert_eq!(&came, &words);

                let variable = format!("V={value}");
                let answer = exec(&reach, "h1", &["env", &variable, "sh", "-c", "printf %s \"$V\""]).await;
                prop_assert_eq!(answer.expect("an answer").stdout_text(), value.clone());

                let name = name.replace('/', "_");
                let path = format!("{folder}/{name}x/{name}y");
                reach.put(&host("h1"), &path, value.as_bytes()).await.expect("written");
                prop_assert_eq!(std::fs::read(&path).expect("there, by this very name"), value.as_bytes());
                prop_assert_eq!(reach.get(&host("h1"), &path).await.expect("read"), value.as_bytes());
                Ok(())
            })
        });
    assert!(output.is_ok(), "{output:?}");
    block(async {
        let zero = exec(&reach, "h1", &["echo", "a\0b"]).await.expect_err("refused").to_string();
        assert_eq!(zero, "`echo` on h1: an argument cannot hold a zero byte: \"a\\0b\"");
        reach.end().await;
    });
}

fn a_limit_ends_the_wait_and_the_command() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let mark = hosts.path("mark").display().to_string();
    block(async {
        let argv = ["sh", "-c", "echo $$ > \"$1\"; sleep 60", "sh", &mark];
        let began = Instant::now();
        let output = reach.exec(&host("h1"), &Command::new(argv, Duration::from_secs(2))).await;
        assert_eq!(output, Err(ReachError::TimedOut { what: "`sh` on h1".into(), limit_s: 2 }));
        assert!(began.elapsed() < Duration::from_secs(4));
        // The node ends it by itself, though it is not asked to.
        let process = hosts.text("mark").trim().to_owned();
        let ended = "! kill -0 \"$1\" 2> /dev/null";
        let mut left = 40;
        while !exec(&reach, "h1", &["sh", "-c", ended, "sh", &process]).await.expect("an answer").succeeded()
        {
            left -= 1;
            assert!(left > 0, "{process} is left");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        reach.end().await;
    });
}

fn commands_beyond_the_sessions_all_run_once() {
    for sessions in [1, 2, 10] {
        let line = format!("MaxSessions {sessions}");
        let hosts = Hosts::start_with(1, &[&line], "");
        let reach = hosts.reach();
        let file = hosts.path("ran").display().to_string();
        block(async {
            let runs = (0..40).map(|nth| {
                let (reach, file) = (&reach, &file);
                async move {
                    let nth = nth.to_string();
                    exec(reach, "h1", &["sh", "-c", "echo \"$1\" >> \"$2\"; sleep 0.05", "sh", &nth, file])
                        .await
                }
            });
            for expected in join_all(runs).await {
                assert_eq!(expected.expect("an answer").status, Status::Code(0), "MaxSessions {sessions}");
            }
            reach.put(&host("h1"), &format!("{file}.too"), b"x").await.expect("written");
            reach.end().await;
        });
        let mut ran: Vec<u32> =
            hosts.text("ran").lines().map(|line| line.parse().expect("a number")).collect();
        ran.sort_unstable();
        assert_eq!(ran, (0..40).collect::<Vec<_>>(), "MaxSessions {sessions}");
    }
}

fn a_crowded_jump_host_lets_all_in_by_and_by() {
    // The first host takes two connections at a time that are not let in yet, and refuses more.
    let jump = "Host h2 h3 h4 h5 h6 h7 h8\n    ProxyCommand ssh -F %d/none -W %h:%p h1\n";
    let hosts = Hosts::start_with(8, &["MaxStartups 2:100:2"], "");
    let config = hosts.path("ssh_config").display().to_string();
    let jump = jump.replace("%d/none", &config);
    // The jump host itself is reached directly.
    let text = jump + &hosts.text("ssh_config");
    std::fs::write(hosts.path("ssh_config"), text).expect("written");
    let reach = hosts.reach();
    block(async {
        let names = hosts.names();
        let reported = join_all(names[1..].iter().map(|name| exec(&reach, name, &["hostname"]))).await;
        for (name, reported) in names[1..].iter().zip(reported) {
            let said = reported.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(said.succeeded());
        }
        reach.end().await;
    });
    let refused = hosts.text("h1.log").matches("beginning MaxStartups throttling").count()
        + hosts.text("h1.log").matches("drop connection").count();
    assert!(refused > 0, "no connection was refused, so nothing was shown: {}", hosts.text("h1.log"));
}
