//! The watcher of a window under a real bash, with a stand-in for nsys: when it starts and stops the collection, and
//! that the command's own output and exit code stay what they are.

use job::profile::account::{self, Account};
use job::script::PROFILE_SH;
use job::window::mark::{self, Mark};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Writes down how it was called, and what the command had printed by then.
const NSYS: &str = r#"#!/bin/bash
printed() { printf '%s\n' "$1 at $(tail -n 1 seen)" >> calls; }
case $1 in
  --version) echo 'NVIDIA Nsight Systems version 2025.3.1.90' ;;
  launch)
    printf '%s\n' "$*" >> calls
    shift
    while [[ $1 == --* ]]; do shift; done
    "$@"
    status=$?
    if [[ -e output ]]; then echo report > "$(cat output).nsys-rep"; fi
    exit "$status"
    ;;
  start)
    if [[ ${FAKE:-} == no-start ]]; then exit 1; fi
    printf '%s\n' "$*" >> calls
    printed start
    for word in "$@"; do [[ $word == --output=* ]] && echo "${word#--output=}" > output; done
    ;;
  stop)
    if [[ ${FAKE:-} == no-stop ]]; then exit 1; fi
    printed stop
    ;;
esac
exit 0
"#;

/// A step takes longer than the watcher needs to see it.
const TRAIN: &str = r#"#!/bin/bash
echo starting
for ((step = 0; step < ${STEPS:-8}; step++)); do
  sleep 0.4
  echo "$step" >> seen
  case ${STYLE:-plain} in
    plain) echo "iteration $step/7 | loss: 1.5" ;;
    one) printf 'iteration %8d/ 8 | loss: 1.5\n' "$((step + 1))" ;;
    error) echo "iteration $step/7" >&2 ;;
    bar) printf '\riteration %s/7' "$step" ;;
    none) echo working ;;
  esac
done
echo 'no newline' | tr -d '\n'
exit ${CODE:-0}
"#;

struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Node {
        let node = Node { folder: tempfile::tempdir().expect("a folder") };
        for (name, text) in [("nsys", NSYS), ("train", TRAIN)] {
            let path = node.folder.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        }
        fs::create_dir(node.job()).expect("made");
        fs::write(node.job().join("profile.sh"), PROFILE_SH).expect("written");
        node
    }

    fn job(&self) -> PathBuf {
        self.folder.path().join("job")
    }

    fn run(&self, window: &str, environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let output = self.bash(1, window, environment).output().expect("bash starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn bash(&self, tasks: u32, window: &str, environment: &[(&str, &str)]) -> Command {
        let words = format!("profile.sh nsys 2025.3 {tasks} all none c.j none all");
        let mut bash = Command::new("bash");
        bash.args(words.split(' ')).arg(window).args([
            "--trace=cuda",
            "--sample=none",
            "--",
            "--enable=efa_metrics",
            "--",
            "train",
        ]);
        bash.current_dir(self.job()).stdin(Stdio::null()).env_clear();
        bash.env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().display()));
        for (name, value) in environment {
            bash.env(name, value);
        }
        bash
    }

    /// Two ranks side by side: the first prints its steps, the second nothing.
    fn two(&self, window: &str) {
        let rank = |rank: u32| {
            let number = rank.to_string();
            let style = if rank == 0 { "plain" } else { "none" };
            let reported = [("SLURM_PROCID", number.as_str()), ("SLURM_LOCALID", &number), ("STYLE", style)];
            let mut bash = self.bash(2, window, &reported);
            bash.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("bash starts")
        };
        for mut child in [rank(0), rank(1)] {
            assert!(child.wait().expect("it ends").success());
        }
    }

    fn account(&self) -> (Account, Mark) {
        self.account_of(0)
    }

    fn account_of(&self, rank: u32) -> (Account, Mark) {
        let text = fs::read_to_string(self.job().join(account::file_name(rank))).expect("an account");
        let account = account::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mark = mark::read(account.window.as_deref().expect("a mark")).expect("a mark");
        (account, mark)
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.job().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

const LINE: &str = "iteration +([0-9]+)/";

#[test]
fn the_collection_starts_behind_the_step_before_the_first_and_stops_behind_the_last() {
    for (style, from) in [("plain", 0), ("one", 1), ("error", 0), ("bar", 0)] {
        let node = Node::new();
        let (code, stdout, stderr) = node.run(&format!("watch:3..5:{from}:{LINE}"), &[("STYLE", style)]);
        assert_eq!(code, Some(0), "{style}: {stderr}");
        let calls = node.calls();
        let session = calls[0].split(' ').nth(1).expect("a session").replace("--session-new=", "--session=");
        assert_eq!(calls[0].split(' ').skip(2).collect::<Vec<_>>(), ["--trace=cuda", "train"], "{style}");
        let start = format!("start {session} --output=c.j.step0.try0.rank0.");
        assert!(calls[1].starts_with(&start) && calls[1].ends_with(" --sample=none"), "{style}: {calls:?}");
        assert_eq!(calls[2..], ["start at 2", "stop at 5"], "{style}: {calls:?}");
        let (account, mark) = node.account();
        assert!(account.complete && account.report.is_some(), "{style}: {account:?}");
        assert_eq!((mark.opened, mark.closed, mark.steps), (Some(3), Some(5), Some(8)), "{style}");
        if style == "plain" {
            assert!(stdout.starts_with("starting\niteration 0/7 | loss: 1.5\n"), "{stdout}");
            assert!(stdout.ends_with("iteration 7/7 | loss: 1.5\nno newline"), "{stdout}");
        }
        let left: Vec<_> =
            fs::read_dir(node.job()).expect("read").flatten().map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains(".log")), "{left:?}");
    }
}

#[test]
fn a_rank_that_prints_no_step_is_reported_by_one_that_does() {
    let node = Node::new();
    node.two(&format!("watch:3..5:0:{LINE}"));
    for rank in 0..2 {
        let (_, mark) = node.account_of(rank);
        assert_eq!((mark.opened, mark.closed, mark.error), (Some(3), Some(5), None), "rank {rank}");
    }
    let calls = node.calls();
    for verb in ["start --session=h0.", "start --session=h1.", "stop at 5", "start at 2"] {
        assert!(calls.iter().any(|call| call.starts_with(verb)), "{verb}: {calls:?}");
    }
    let node = Node::new();
    node.two(&format!("watch:30..35:0:{LINE}"));
    for rank in 0..2 {
        let (_, mark) = node.account_of(rank);
        assert_eq!((mark.opened, mark.steps, mark.error), (None, Some(8), None), "rank {rank}");
    }
}

#[test]
fn a_window_that_the_log_never_comes_to_is_not_opened_and_the_steps_are_reported() {
    let node = Node::new();
    let (code, ..) = node.run(&format!("watch:30..35:0:{LINE}"), &[("CODE", "7")]);
    let (_, mark) = node.account();
    assert_eq!((code, mark.opened, mark.steps, mark.error), (Some(7), None, Some(8), None));
    let node = Node::new();
    node.run(&format!("watch:3..5:0:{LINE}"), &[("STYLE", "none"), ("STEPS", "2")]);
    assert_eq!(node.account().1.steps, Some(0), "no line showed a step");
}

#[test]
fn a_window_that_the_end_of_the_program_cuts_has_no_stop() {
    let node = Node::new();
    node.run(&format!("watch:6..9:0:{LINE}"), &[]);
    let (account, mark) = node.account();
    assert_eq!((mark.opened, mark.closed, mark.steps), (Some(6), None, Some(8)));
    assert!(account.report.is_some());
}

#[test]
fn what_goes_wrong_with_nsys_changes_nothing_about_the_command() {
    for (fake, expected) in [("no-start", "nsys start failed"), ("no-stop", "nsys stop failed")] {
        let node = Node::new();
        let (code, stdout, _) = node.run(&format!("watch:1..2:0:{LINE}"), &[("FAKE", fake), ("CODE", "7")]);
        assert_eq!(code, Some(7), "{fake}");
        assert_eq!(stdout.lines().filter(|line| line.starts_with("iteration")).count(), 8, "{fake}");
        assert_eq!(node.account().1.error.as_deref(), Some(expected), "{fake}");
    }
    // An expression that is none finds no line, and the training goes on.
    let node = Node::new();
    let (code, stdout, _) = node.run("watch:1..2:0:iteration ([0-9]+", &[("STEPS", "3")]);
    assert_eq!((code, node.account().1.opened), (Some(0), None));
    assert_eq!(stdout.lines().count(), 5);
}
