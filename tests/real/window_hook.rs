//! The hook of a window under a real python: where it starts and stops the profiler, in which process, and that no
//! failure of it changes the training. A stand-in for torch writes down what is asked of it; a real one is tried where
//! python has it.

use crate::fact::Fact;
use job::script::PROFILE_SH;
use job::window::{HOOK_FILE, HOOK_PY};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub(crate) const FACTS: &[Fact] = &[
    (
        "the_lowest_of_four_processes_in_one_session_starts_once_before_step_3_and_stops_once_behind_step_5",
        the_lowest_of_four_processes_in_one_session_starts_once_before_step_3_and_stops_once_behind_step_5,
    ),
    ("each_of_four_sessions_has_its_own_start_and_stop", each_of_four_sessions_has_its_own_start_and_stop),
    (
        "processes_without_a_rank_settle_who_opens_the_window",
        processes_without_a_rank_settle_who_opens_the_window,
    ),
    ("an_iteration_counts_once_whatever_steps_in_it", an_iteration_counts_once_whatever_steps_in_it),
    ("a_step_is_what_the_training_calls_a_step", a_step_is_what_the_training_calls_a_step),
    (
        "a_window_can_begin_with_the_first_step_and_end_with_the_last",
        a_window_can_begin_with_the_first_step_and_end_with_the_last,
    ),
    (
        "a_window_that_the_training_never_comes_to_or_never_leaves_is_reported",
        a_window_that_the_training_never_comes_to_or_never_leaves_is_reported,
    ),
    ("no_failure_of_the_hook_changes_the_training", no_failure_of_the_hook_changes_the_training),
    (
        "what_no_window_can_be_made_of_leaves_the_training_alone",
        what_no_window_can_be_made_of_leaves_the_training_alone,
    ),
    (
        "a_torch_that_is_another_one_is_reported_and_left_alone",
        a_torch_that_is_another_one_is_reported_and_left_alone,
    ),
    (
        "the_module_that_the_hook_hides_is_imported_and_is_the_one_that_others_find",
        the_module_that_the_hook_hides_is_imported_and_is_the_one_that_others_find,
    ),
];

pub(crate) const WITH_TORCH: &[Fact] = &[(
    "steps_of_real_optimizers_are_those_of_the_training",
    steps_of_real_optimizers_are_those_of_the_training,
)];

/// Runs what it is to profile, and reports.
const NSYS: &str = r#"#!/bin/bash
case $1 in
  --version) echo 'NVIDIA Nsight Systems version 2025.3.1.90' ;;
  profile)
    shift
    while [[ $1 == --* ]]; do [[ $1 == --output=* ]] && output=${1#--output=}; shift; done
    "$@"
    status=$?
    echo report > "$output.nsys-rep"
    exit "$status"
    ;;
esac
"#;

/// Four processes of one node, reported their places as torchrun reports them. The launcher is python, and imports
/// torch as well.
const TORCHRUN: &str = r#"import os, subprocess, sys
import torch
ranks = []
for rank in range(4):
    environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="4", TORCHELASTIC_RUN_ID="x", ME=str(rank))
    environment.update({"LOCAL_RANK": os.environ["MISLED"]} if "MISLED" in os.environ else {})
    ranks.append(subprocess.Popen([sys.executable, "train.py"], env=environment))
sys.exit(max(rank.wait() for rank in ranks))
"#;

struct Node {
    folder: TempDir,
}

impl Node {
    fn new() -> Node {
        let node = Node { folder: tempfile::tempdir().expect("a folder") };
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/torch");
        copy(&from, &node.job());
        fs::write(node.job().join("profile.sh"), PROFILE_SH).expect("written");
        fs::write(node.job().join(HOOK_FILE), HOOK_PY).expect("written");
        fs::write(node.job().join("torchrun.py"), TORCHRUN).expect("written");
        let nsys = node.folder.path().join("nsys");
        fs::write(&nsys, NSYS).expect("written");
        fs::set_permissions(&nsys, fs::Permissions::from_mode(0o755)).expect("made executable");
        node
    }

    fn job(&self) -> PathBuf {
        self.folder.path().join("job")
    }

    /// `command` as the one task of its node under `profile.sh`, its window being that of steps 3 to 5.
    fn run(&self, command: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
        self.run_within("hook:3..5", command, environment)
    }

    fn run_within(&self, window: &str, command: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
        let words = format!("nsys 2025.3 4 all none c.j none all {window} --trace=cuda -- --");
        let mut bash = Command::new("bash");
        bash.arg("profile.sh").args(words.split(' ')).args(command.split(' '));
        bash.current_dir(self.job()).stdin(Stdio::null()).stdout(Stdio::null());
        let path = std::env::var("PATH").unwrap_or_default();
        bash.env("PATH", format!("{}:{path}", self.folder.path().display()));
        bash.env("NSYS_VENDOR_FOLDER", "/nowhere").env("PYTHONDONTWRITEBYTECODE", "1");
        for name in ["PYTHONPATH", "LOCAL_RANK", "RANK", "TORCHELASTIC_RUN_ID"] {
            bash.env_remove(name);
        }
        bash.env("SLURM_PROCID", "0").env("SLURM_LOCALID", "0");
        for (name, value) in environment {
            bash.env(name, value);
        }
        let output = bash.output().expect("bash starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What one process asked of its GPU, and its steps.
    fn said(&self, me: u32) -> Vec<String> {
        let text = fs::read_to_string(self.job().join(format!("said.{me}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn trained(&self, me: u32) -> Option<String> {
        fs::read_to_string(self.job().join(format!("done.{me}"))).ok()
    }

    /// The mark, as the account of the rank has it.
    fn mark(&self, rank: u32) -> Option<job::window::mark::Mark> {
        let name = job::profile::account::file_name(rank);
        let text = fs::read_to_string(self.job().join(name)).expect("an account");
        let account = job::profile::account::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        account.window.map(|text| job::window::mark::read(&text).expect("a mark"))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.ends_with("__pycache__") {
            continue;
        }
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(|_| ()).expect("copied") }
    }
}

/// Without the ranges of steps.
fn calls(said: &[String]) -> Vec<&str> {
    said.iter().map(String::as_str).filter(|line| !line.contains("range")).collect()
}

/// Ten steps with one start before step 3 and one stop behind step 5, each behind a synchronisation.
fn watched() -> Vec<String> {
    let mut lines = Vec::new();
    for step in 0..10 {
        if step == 3 {
            // It opens within the optimizer's step that ends the one before.
            lines.insert(lines.len() - 1, "start".to_owned());
            lines.insert(lines.len() - 2, "synchronize".to_owned());
        }
        lines.push(format!("begin {step}"));
        if step == 5 {
            lines.extend(["synchronize", "stop"].map(str::to_owned));
        }
        lines.push(format!("ended {step}"));
    }
    lines
}

fn unwatched() -> Vec<String> {
    (0..10).flat_map(|step| [format!("begin {step}"), format!("ended {step}")]).collect()
}

fn the_lowest_of_four_processes_in_one_session_starts_once_before_step_3_and_stops_once_behind_step_5() {
    let node = Node::new();
    let (code, stderr) = node.run("python3 torchrun.py", &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(calls(&node.said(0)), watched(), "{:?}", node.said(0));
    for me in 1..4 {
        assert_eq!(node.said(me), unwatched(), "process {me}");
    }
    assert!((0..4).all(|me| node.trained(me).as_deref() == Some("10\n")));
    let mark = node.mark(0).expect("a mark");
    assert_eq!((mark.opened, mark.closed, mark.steps, mark.error), (Some(3), Some(5), Some(10), None));
    let ranges: Vec<String> = node.said(0).into_iter().filter(|line| line.starts_with("range")).collect();
    assert_eq!(ranges, ["range harness step 3", "range harness step 4", "range harness step 5"]);
}

fn each_of_four_sessions_has_its_own_start_and_stop() {
    let node = Node::new();
    std::thread::scope(|scope| {
        for rank in 0..4 {
            let node = &node;
            scope.spawn(move || {
                let number = rank.to_string();
                let line: [(&str, &str); 3] = [
                    ("SLURM_PROCID", number.as_str()),
                    ("SLURM_LOCALID", number.as_str()),
                    ("ME", number.as_str()),
                ];
                assert_eq!(node.run("python3 train.py", &line), (Some(0), String::new()));
            });
        }
    });
    for rank in 0..4 {
        assert_eq!(calls(&node.said(rank)), watched(), "process {rank}");
        assert_eq!(node.mark(rank).and_then(|mark| mark.closed), Some(5));
    }
}

fn processes_without_a_rank_settle_who_opens_the_window() {
    let node = Node::new();
    assert_eq!(node.run("python3 train.py", &[("HOW", "spawned")]), (Some(0), String::new()));
    let started = (0..4).filter(|me| calls(&node.said(*me)) == watched()).count();
    let others = (0..4).filter(|me| node.said(*me) == unwatched()).count();
    assert_eq!((started, others), (1, 3));
}

fn an_iteration_counts_once_whatever_steps_in_it() {
    for how in ["one", "two", "idle", "now and then", "scaler"] {
        let node = Node::new();
        assert_eq!(node.run("python3 train.py", &[("HOW", how)]), (Some(0), String::new()), "{how}");
        let mut said = node.said(0);
        said.retain(|line| line != "between" && !line.contains("range"));
        assert_eq!(said, watched(), "{how}");
        assert_eq!(node.mark(0).and_then(|mark| mark.steps), Some(10), "{how}");
    }
}

fn a_step_is_what_the_training_calls_a_step() {
    // A loss scaler of its own leaves steps out; that is seen by the backward passes of the step behind the next one.
    let cases = [
        ("groups", 3, 5),
        ("parts", 3, 5),
        ("critics", 3, 5),
        ("warm-up", 3, 5),
        ("warm-up that is gone", 3, 5),
        ("own scaler", 9, 9),
    ];
    for (how, first, last) in cases {
        let node = Node::new();
        let window = format!("hook:{first}..{last}");
        assert_eq!(
            node.run_within(&window, "python3 train.py", &[("HOW", how)]),
            (Some(0), String::new()),
            "{how}"
        );
        assert_watched(&node, how, first, last);
    }
}

/// Ten steps were counted, and the window opened within the step before its first one and closed within its last one.
fn assert_watched(node: &Node, how: &str, first: u64, last: u64) {
    let mark = node.mark(0).expect("a mark");
    assert_eq!((mark.opened, mark.closed, mark.steps), (Some(first), Some(last), Some(10)), "{how}");
    let said = node.said(0);
    let at = |line: &str| {
        said.iter().position(|said| said == line).unwrap_or_else(|| panic!("{how}: no {line}: {said:?}"))
    };
    assert!(
        (at(&format!("begin {}", first - 1))..at(&format!("begin {first}"))).contains(&at("start")),
        "{how}"
    );
    assert!((at(&format!("begin {last}"))..at(&format!("ended {last}"))).contains(&at("stop")), "{how}");
}

fn a_window_can_begin_with_the_first_step_and_end_with_the_last() {
    let node = Node::new();
    node.run_within("hook:0..9", "python3 train.py", &[]);
    let said = node.said(0);
    assert_eq!(calls(&said)[..3], ["synchronize", "start", "begin 0"]);
    assert_eq!(calls(&said)[calls(&said).len() - 4..], ["begin 9", "synchronize", "stop", "ended 9"]);
    assert_eq!(node.mark(0).map(|mark| (mark.opened, mark.closed)), Some((Some(0), Some(9))));
}

fn a_window_that_the_training_never_comes_to_or_never_leaves_is_reported() {
    let node = Node::new();
    assert_eq!(node.run_within("hook:50..55", "python3 train.py", &[]).0, Some(0));
    assert_eq!(node.said(0), unwatched());
    assert_eq!(node.mark(0).map(|mark| (mark.opened, mark.steps)), Some((None, Some(10))));
    let node = Node::new();
    node.run_within("hook:8..12", "python3 train.py", &[]);
    assert_eq!(node.mark(0).map(|mark| (mark.opened, mark.closed)), Some((Some(8), None)));
}

/// What fails, the environment that makes it fail, and what is reported about it.
type Failure<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

fn no_failure_of_the_hook_changes_the_training() {
    let hidden = tempfile::tempdir().expect("a folder");
    fs::write(hidden.path().join("sitecustomize.py"), "raise RuntimeError('as it always was')\n")
        .expect("written");
    let hidden = hidden.path().to_string_lossy().into_owned();
    let cases: [Failure; 8] = [
        ("no GPU", &[("BROKEN", "no GPU")], "torch sees no GPU in this process"),
        ("cudart", &[("BROKEN", "cudart")], "OSError: no libcudart"),
        ("start", &[("BROKEN", "start")], "cudaProfilerStart: error 36 of CUDA"),
        ("stop", &[("BROKEN", "stop")], "after step 5: RuntimeError: the driver is gone"),
        ("rank", &[("MISLED", "three")], "LOCAL_RANK is not a number: 'three'"),
        ("hidden", &[("PYTHONPATH", hidden.as_str())], "as it always was"),
        ("no stderr", &[("PYTHONSTARTUP", "/nowhere")], ""),
        ("isolated", &[("PYTHONNOUSERSITE", "1")], ""),
    ];
    for (what, environment, expected) in cases {
        let node = Node::new();
        let (code, stderr) = node.run("python3 torchrun.py", environment);
        assert_eq!(code, Some(0), "{what}: {stderr}");
        assert!(stderr.contains(expected), "{what}: {stderr}");
        let own = stderr.lines().filter(|line| line.starts_with("harness-window: ")).count();
        assert!(own <= 4, "{what}: once for each process: {stderr}");
        for me in 0..4 {
            assert_eq!(node.trained(me).as_deref(), Some("10\n"), "{what}: process {me}");
        }
        let mark = node.mark(0).unwrap_or_else(|| panic!("{what}: no mark"));
        match what {
            "stop" => assert_eq!((mark.opened, mark.closed), (Some(3), None)),
            "hidden" | "no stderr" | "isolated" => assert_eq!(mark.closed, Some(5), "{what}"),
            _ => assert_eq!(mark.opened, None, "{what}"),
        }
        let is_broken = !matches!(what, "hidden" | "no stderr" | "isolated");
        assert_eq!(mark.error.is_some(), is_broken, "{what}: {mark:?}");
        assert!(!is_broken || mark.error.is_some_and(|error| error.contains(expected)), "{what}");
    }
}

fn what_no_window_can_be_made_of_leaves_the_training_alone() {
    for window in ["hook:", "hook:a..b", "hook:5..3", "hook:-1..3"] {
        let node = Node::new();
        let (code, stderr) = node.run_within(window, "python3 train.py", &[]);
        assert_eq!((code, node.trained(0).as_deref()), (Some(0), Some("10\n")), "{window}: {stderr}");
        assert_eq!(node.said(0), unwatched(), "{window}");
        assert!(stderr.starts_with("harness-window: HARNESS_WINDOW="), "{window}: {stderr}");
    }
}

fn a_torch_that_is_another_one_is_reported_and_left_alone() {
    let node = Node::new();
    let optimizer = node.job().join("torch/optim/optimizer.py");
    let text = fs::read_to_string(&optimizer).expect("there").replace("class Optimizer:", "class Base:");
    let text = text.replace("(Optimizer)", "(Base)");
    fs::write(&optimizer, text).expect("written");
    let package = node.job().join("torch/optim/__init__.py");
    fs::write(&package, "from .optimizer import SGD, Adam\n").expect("written");
    let (code, stderr) = node.run("python3 train.py", &[]);
    assert_eq!((code, node.said(0)), (Some(0), unwatched()), "{stderr}");
    assert!(stderr.contains("torch.optim.optimizer is not as expected"), "{stderr}");
}

fn the_module_that_the_hook_hides_is_imported_and_is_the_one_that_others_find() {
    let node = Node::new();
    let hidden = node.folder.path().join("hidden");
    fs::create_dir(&hidden).expect("made");
    fs::write(hidden.join("sitecustomize.py"), "import os\nos.environ['HIDDEN'] = 'imported'\nmine = 1\n")
        .expect("written");
    let check = "import os, sitecustomize\nassert os.environ['HIDDEN'] == 'imported'\nassert sitecustomize.mine == 1\n";
    let train = fs::read_to_string(node.job().join("train.py")).expect("there");
    fs::write(node.job().join("train.py"), format!("{check}{train}")).expect("written");
    let hidden = hidden.to_string_lossy().into_owned();
    assert_eq!(node.run("python3 train.py", &[("PYTHONPATH", hidden.as_str())]), (Some(0), String::new()));
    assert_eq!(calls(&node.said(0)), watched());
}

fn steps_of_real_optimizers_are_those_of_the_training() {
    let cases = [
        "plain",
        "schedule",
        "two",
        "accumulation",
        "recomputed",
        "LBFGS",
        "in backward",
        "groups",
        "critics",
        "warm-up",
        "warm-up that is gone",
        "own scaler",
    ];
    for how in cases {
        let node = Node::new();
        fs::remove_dir_all(node.job().join("torch")).expect("removed");
        // What a loss scaler left out is known a step later.
        let (first, last) = if how == "own scaler" { (9, 9) } else { (3, 5) };
        let command = format!("{} real.py", crate::needs::python_with_torch());
        let (code, stderr) = node.run_within(&format!("hook:{first}..{last}"), &command, &[("HOW", how)]);
        assert_eq!((code, node.trained(0).as_deref()), (Some(0), Some("10\n")), "{how}: {stderr}");
        assert_watched(&node, how, first, last);
    }
}
