//! From a kubeconfig to the first verdict in two commands, and the page of the book that shows it: what these commands print
//! on a real Kubernetes, with ids and times replaced. `UPDATE_DOCS=1` writes it.

use super::bench::Bench;
use crate::bed::{StandIns, executable};
use crate::fact::Fact;
use crate::project::{Project, Ran, copy, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

pub(super) const FACTS: &[Fact] =
    &[("two_commands_lead_from_a_kubeconfig_to_the_first_verdict_as_the_book_shows", two_commands)];

const PAGE: &str = "docs/src/first-day/eks.md";
const BEGIN: &str = "<!-- first verdict: recorded on a real Kubernetes by `tests/live` -->\n";
const END: &str = "<!-- end of first verdict -->";
/// Where pods mount the claim by default.
const MOUNTED: &str = "/fsx/harness";
const DISCOVER: &str = "harness inventory discover --via kubernetes --namespace bench --image registry.example/nccl-tests:1 --claim fsx --output mine";
const RUN: &str = "harness run --suite nccl-p5 --inventory mine --no-probe gpu-each";

/// In an empty folder, with the cluster's programs on the PATH of the image.
fn two_commands() {
    let bench = Bench::named(Project::bare(), "bench", "fsx");
    programs(&bench);
    let mut shown = String::new();
    for (command, code) in [(DISCOVER, 0), (RUN, 0)] {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let ran = bench.harness(&words);
        assert_eq!(ran.code, Some(code), "{command}: {}", ran.all());
        shown += &format!("\n```sh\n{command}\n```\n\n```text\n{}```\n", replaced(&bench, &ran));
    }
    bench.assert_nothing_is_left();
    shown += "\n";
    let path = root().join(PAGE);
    let text = fs::read_to_string(&path).expect("a page");
    let (before, rest) = text.split_once(BEGIN).expect("where it begins");
    let (kept, after) = rest.split_once(END).expect("where it ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, [before, BEGIN, &shown, END, after].concat()).expect("written");
    } else {
        assert_eq!(kept, shown, "{PAGE}: run this test with UPDATE_DOCS=1");
    }
}

/// What lies on the claim, by the paths that pods have for it.
pub(super) fn programs(bench: &Bench) {
    let shared = bench.project.path().join("shared");
    for name in ["suites", "inventory", "baselines"] {
        copy(&root().join(name), &shared.join("home").join(name));
    }
    fs::copy(executable(), shared.join("standin")).expect("copied");
    let state = tempfile::Builder::new().prefix("state-").tempdir_in(&shared).expect("a folder");
    let made =
        StandIns::in_folder(state, executable(), &shared.join("home"), "sim-p5", "n[1-4]", "seed = 7\n");
    let programs = shared.join("programs");
    copy(&made.state().join("hosts"), &programs.join("hosts"));
    let text = fs::read_to_string(made.state().join("cluster.toml")).expect("a state");
    let home = shared.join("home").display().to_string();
    fs::write(programs.join("cluster.toml"), text.replace(&home, &format!("{MOUNTED}/home")))
        .expect("written");
    for folder in ["bin", "worlds"] {
        fs::create_dir_all(programs.join(folder)).expect("made");
    }
    // Where the image has nccl-tests, as its makers build them.
    symlink("bin", programs.join("build")).expect("linked");
    for entry in fs::read_dir(made.programs()).expect("programs").flatten() {
        let link = programs.join("bin").join(entry.file_name());
        symlink(Path::new(MOUNTED).join("standin"), link).expect("linked");
    }
}

/// What goes to stdout, without what differs from run to run.
fn replaced(bench: &Bench, ran: &Ran) -> String {
    let mut text = ran.stdout.clone();
    for run in fs::read_dir(bench.project.path().join("runs")).into_iter().flatten().flatten() {
        text = text.replace(&*run.file_name().to_string_lossy(), "20260101T000001Z-nccl-p5-0001");
    }
    let durations = regex::Regex::new(r"\b\d+(\.\d+)? s\b").expect("an expression");
    let text = durations.replace_all(&text, "12 s");
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}
