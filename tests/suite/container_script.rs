//! `container.sh` under a real bash, with a docker that is a script: what it is given, how a program in it ends, and what it
//! says where none begins. Its supervisor and `clean.sh` end what is left.

use job::script::{CLEAN_SH, CONTAINER_SH, SUPERVISOR_SH, files};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Its containers are folders of `$DOCKERS`: what runs in them is of no group of its client's, is given the variables that are
/// named, and ends with its first process. `$DOCKERS/says` is what it prints instead.
const DOCKER: &str = r#"#!/bin/bash
echo "$*" >> "$DOCKERS/calls"
if [[ -e $DOCKERS/says && $1 != rm ]]; then cat "$DOCKERS/says" >&2; exit 125; fi
end() {
  [[ -d $DOCKERS/$1 ]] || return 1
  kill -KILL -- "-$(cat "$DOCKERS/$1/pid")" 2> /dev/null
  rm -rf "${DOCKERS:?}/$1"
}
case $1 in
  info) echo '[name=seccomp,profile=default]' ;;
  image) [[ -e $DOCKERS/has ]] && echo "sha256:$(printf 'a%.0s' {1..64}) r/i@sha256:$(printf 'b%.0s' {1..64})" ;;
  pull) : > "$DOCKERS/has" ;;
  rm) shift 2; for id in "$@"; do end "$id" || exit 1; done ;;
  ps) grep -lxF "${*: -1}" "$DOCKERS"/*/label 2> /dev/null | while read -r file; do basename "${file%/label}"; done ;;
  run)
    shift
    id=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
    mkdir "$DOCKERS/$id"
    given=()
    while [[ $1 == -* ]]; do
      case $1 in
        --rm) shift && continue ;;
        --env) if [[ $2 == *=* ]]; then given+=("$2"); else given+=("$2=${!2}"); fi ;;
        --label) echo "label=$2" >> "$DOCKERS/$id/label" ;;
        --cidfile) [[ ! -e $2 ]] || exit 125; printf %s "$id" > "$2" ;;
        --workdir) cd "$2" ;;
        --entrypoint) entry=$2 ;;
      esac
      shift 2
    done
    shift
    setsid env -i PATH="$PATH" "${given[@]}" "$entry" "$@" &
    echo $! > "$DOCKERS/$id/pid"
    trap : TERM
    wait $!
    code=$?
    while kill -0 $! 2> /dev/null; do wait $!; code=$?; done
    end "$id"
    exit "$code"
    ;;
esac
"#;

struct Node {
    there: TempDir,
}

impl Node {
    fn new() -> Node {
        let node = Node { there: TempDir::new().expect("a folder") };
        for folder in ["bin", "dockers", "R1/case/job"] {
            fs::create_dir_all(node.path(folder)).expect("made");
        }
        fs::write(node.path("bin/docker"), DOCKER).expect("written");
        fs::set_permissions(node.path("bin/docker"), fs::Permissions::from_mode(0o755)).expect("a program");
        for (name, text) in [(files::SUPERVISOR, SUPERVISOR_SH), (files::CONTAINER, CONTAINER_SH)] {
            fs::write(node.job(name), text).expect("written");
        }
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.there.path().join(name)
    }

    fn job(&self, name: &str) -> PathBuf {
        self.path("R1/case/job").join(name)
    }

    fn folder(&self) -> String {
        self.path("R1/case/job").display().to_string()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.job(name)).unwrap_or_default()
    }

    fn bash(&self, words: &[&str]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(words).env("PATH", path).env("DOCKERS", self.path("dockers")).stdin(Stdio::null());
        command.env_remove("HARNESS_NODE").env_remove("HARNESS_JOB").output().expect("bash starts")
    }

    fn supervisor(&self, verb: &str, more: &[&str]) -> String {
        let script = self.job(files::SUPERVISOR).display().to_string();
        let output = self.bash(&[&[script.as_str(), verb, &self.folder(), "n1"], more].concat());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn clean(&self, verb: &str) -> String {
        let folder = self.folder();
        let words = ["-c", CLEAN_SH, "clean", verb, "n1", "--containers", "docker", &folder];
        String::from_utf8_lossy(&self.bash(&words).stdout).into_owned()
    }

    fn pull(&self) -> Output {
        let script = self.job(files::CONTAINER).display().to_string();
        self.bash(&[&script, "pull", "docker", "r/i:1", "n1"])
    }

    /// Starts a job that runs this in its container.
    fn start(&self, program: &str) {
        let folder = self.folder();
        let script = format!(
            "export A_TOKEN='planted word'\nbash container.sh run docker r/i:1 {folder} A_TOKEN {folder}:{folder} -- {program} \
             > stdout.n1 2> stderr.n1\nexit $?\n"
        );
        fs::write(self.job(files::JOB), script).expect("written");
        assert_eq!(self.supervisor("start", &["60"]), "running");
    }

    fn ends(&self) -> String {
        let mut last = String::new();
        until("the job has ended", || {
            last = self.supervisor("look", &[]);
            last != "running"
        });
        last
    }

    /// Its containers, by their folders.
    fn containers(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.path("dockers")).expect("a folder").flatten().map(|entry| entry.path());
        all.filter(|path| path.is_dir()).collect()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn calls(node: &Node) -> String {
    fs::read_to_string(node.path("dockers/calls")).unwrap_or_default()
}

#[test]
fn a_program_gets_its_variables_by_name_and_its_exit_code_is_the_jobs() {
    let node = Node::new();
    let pulled = node.pull();
    let digest = format!("sha256:{}\n", "b".repeat(64));
    assert_eq!(
        (String::from_utf8_lossy(&pulled.stdout).into_owned(), node.text("image.n1")),
        (digest.clone(), digest)
    );
    node.pull();
    assert_eq!(calls(&node).matches("pull --quiet r/i:1\n").count(), 1, "once: {}", calls(&node));
    node.start("sh -c 'echo \"$A_TOKEN|$HARNESS_NODE|$PWD\"; exit 125'");
    assert_eq!(node.ends(), "ended 125 itself");
    assert_eq!(node.text("stdout.n1"), format!("planted word|n1|{}\n", node.folder()));
    assert_eq!(node.text("stderr.n1"), "", "the program's own 125");
    let run = calls(&node).lines().find(|line| line.starts_with("run ")).expect("a run").to_owned();
    let label = format!("--label harness.job=n1:{}", node.folder());
    let mount = format!("--mount type=bind,source={0},target={0}", node.folder());
    for given in [
        "--rm",
        "--network host",
        "--ipc host",
        "--env A_TOKEN ",
        "--name harness-R1.case.job.n1 ",
        &label,
        &mount,
    ] {
        assert!(run.contains(given), "{given}: {run}");
    }
    assert!(!run.contains("planted"), "{run}");
    assert_eq!(node.containers(), [] as [PathBuf; 0]);
}

/// One that no environment gives away, and that heeds no signal which can be ignored.
const STUBBORN: &str = "env -i bash -c 'trap \"\" TERM INT HUP; echo $$ > pid; while :; do sleep 0.2; done'";

fn has_begun(node: &Node) -> i32 {
    let mut pid = 0;
    until("the program has begun", || {
        pid = node.text("pid").trim().parse().unwrap_or_default();
        pid != 0
    });
    pid
}

fn is_there(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn a_container_ends_with_its_job_whatever_its_program_heeds() {
    let node = Node::new();
    node.start(STUBBORN);
    let pid = has_begun(&node);
    node.supervisor("end", &["TERM"]);
    assert_eq!(node.ends(), "ended 143 asked");
    until("its program has ended", || !is_there(pid));
    assert_eq!(node.containers(), [] as [PathBuf; 0]);
}

#[test]
fn clean_finds_a_container_by_its_label_and_ends_that_of_its_job_alone() {
    let (node, other) = (Node::new(), Node::new());
    for node in [&node, &other] {
        node.start(STUBBORN);
    }
    let (pid, others) = (has_begun(&node), has_begun(&other));
    // One daemon has both.
    let of_other = other.containers().remove(0);
    let name = of_other.file_name().expect("a name").to_owned();
    fs::create_dir(node.path("dockers").join(&name)).expect("made");
    for file in ["label", "pid"] {
        fs::copy(of_other.join(file), node.path("dockers").join(&name).join(file)).expect("copied");
    }
    let killed = |name: &str| {
        let record = node.text(&format!("supervisor.n1/{name}"));
        let pid = record.split(' ').next().unwrap_or_default().to_owned();
        Command::new("kill")
            .args(["-KILL", "--", &if name == "group" { format!("-{pid}") } else { pid }])
            .status()
    };
    for name in ["supervisor", "group"] {
        killed(name).expect("kill starts");
    }
    until("nothing answers for it", || node.supervisor("look", &[]) == "lost");
    let found = node.clean("look");
    assert_eq!(found.matches("0\tcontainer\t").count(), 1, "{found}");
    let left = node.clean("end");
    assert!(!left.contains("container\t") && left.ends_with("complete\n"), "{left}");
    until("its program has ended", || !is_there(pid));
    assert!(is_there(others), "another job's");
    fs::write(node.path("dockers/says"), "Cannot connect to the Docker daemon").expect("written");
    assert!(
        node.clean("look").contains("0\tunasked\t`docker ps` fails there\n"),
        "what is not known is not nothing"
    );
    other.supervisor("end", &["KILL"]);
    other.ends();
    until("its program has ended", || !is_there(others));
}

#[test]
fn what_docker_refuses_is_reported_with_the_next_command() {
    let denied = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"x\"";
    let away =
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    let unknown = "Error response from daemon: manifest for r/i:1 not found: manifest unknown";
    let gpus =
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].";
    let other = "docker: Error response from daemon: invalid mount config\n\nRun 'docker run --help' for more information";
    for (says, pulls, expected) in [
        (
            denied,
            true,
            "n1: this user may not use docker (permission denied on its socket); next: `sudo usermod -aG docker $USER` there",
        ),
        (away, true, "n1: docker's daemon does not answer; next: `systemctl status docker` there"),
        (unknown, true, "manifest unknown; next: `docker pull r/i:1` there: name, login, free space"),
        (gpus, false, "n1: docker cannot give GPUs to containers: "),
        (
            other,
            false,
            "docker did not start the container: docker: Error response from daemon: invalid mount config; next: `docker run --rm r/i:1 true` there",
        ),
    ] {
        let node = Node::new();
        fs::write(node.path("dockers/says"), format!("{says}\n")).expect("written");
        let last = match pulls {
            true => {
                let output = node.pull();
                assert!(!output.status.success());
                String::from_utf8_lossy(&output.stderr).into_owned()
            }
            false => {
                node.start("true");
                assert_eq!(node.ends(), "ended 125 itself");
                node.text("stderr.n1")
            }
        };
        let last = last.lines().next_back().unwrap_or_default();
        assert!(last.starts_with("container.sh: ") && last.contains(expected), "{expected}: {last}");
    }
    let node = Node::new();
    fs::remove_file(node.path("bin/docker")).expect("removed");
    let script = node.job(files::CONTAINER).display().to_string();
    let nothing: &Path = &node.path("bin");
    let output = Command::new("/bin/bash")
        .args([&script, "pull", "docker", "r/i:1", "n1"])
        .env("PATH", nothing)
        .output();
    let output = output.expect("bash starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.trim()),
        (
            Some(127),
            "container.sh: n1: docker is not installed; next: install it, or change `runtime` of [container]"
        )
    );
}
