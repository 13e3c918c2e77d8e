//! The script of `nic-latency` and `iperf3` under a real shell: both nodes as two processes in one folder, with stand-ins for
//! the programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// As a client it prints a table, but never through `rdmap81s0`; as a server it stays.
const FI_PINGPONG: &str = r#"#!/bin/bash
printf '%s shm=%s\n' "$*" "${FI_EFA_ENABLE_SHM_TRANSFER:-}" >> "calls.$SLURMD_NODENAME"
[[ " $* " == *" -P "* ]] || exec sleep 600
[[ " $* " != *" rdmap81s0-rdm "* ]] || exit 1
echo "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec"
echo "256     10k     =10k     4.8m        0.24s     21.28      12.03       0.08"
"#;

/// Another process has the server's port.
const PORT_TAKEN: &str = r#"#!/bin/bash
if [[ " $* " == *" -P "* ]]; then printf 'ERROR: connect: \033[1mrefused\n\n' >&2; exit 1; fi
echo "ERROR: bind: Address already in use" >&2
sleep 600
"#;

/// It cannot reach the server.
const IPERF3: &str = r#"#!/bin/bash
[[ " $* " != *" -s "* ]] || exec sleep 600
echo '{"error": "unable to connect to server"}'
exit 1
"#;

struct Nodes {
    folder: TempDir,
    tools: TempDir,
}

impl Nodes {
    fn with(tools: &[(&str, &str)]) -> Self {
        let nodes = Nodes { folder: TempDir::new().unwrap(), tools: TempDir::new().unwrap() };
        for name in ["bash", "cat", "date", "ls", "mv", "rm", "sleep", "timeout", "uname"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(found, nodes.tools.path().join(name)).unwrap();
        }
        for (name, text) in tools {
            let path = nodes.tools.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        nodes
    }

    fn start(&self, node: &str, arguments: &str) -> Child {
        Command::new("bash")
            .args(["-c", job::script::LINKS_SH, "links.sh"])
            .args(arguments.split(' '))
            .current_dir(self.folder.path())
            .env("PATH", self.tools.path())
            .env("SLURMD_NODENAME", node)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What each of these nodes printed, and its exit code.
    fn run(&self, nodes: &[&str], arguments: &str) -> Vec<(String, Option<i32>)> {
        let started: Vec<Child> = nodes.iter().map(|node| self.start(node, arguments)).collect();
        let ended = started.into_iter().map(|child| {
            let output = child.wait_with_output().unwrap();
            (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
        });
        ended.collect()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

#[test]
fn each_nic_is_measured_by_itself_and_one_that_does_not_answer_is_named() {
    let nodes = Nodes::with(&[("fi_pingpong", FI_PINGPONG)]);
    let ended = nodes.run(&["a", "b"], "nic fi_pingpong a b 19515 10000 256 5 rdmap79s0 rdmap81s0");
    assert_eq!(ended[0], ("server a\n".to_owned(), Some(0)));
    let (text, code) = &ended[1];
    assert_eq!(*code, Some(0), "{text}");
    assert!(text.starts_with("device rdmap79s0\nbytes "), "{text}");
    assert!(text.contains("\nnot-connected rdmap81s0 no answer in 5 s, attempts: "), "{text}");
    let links = logs::node_tools::pingpong::read(text).expect("read");
    assert_eq!((links.measured.len(), links.silent.len()), (1, 1));
    let calls = nodes.text("calls.b");
    let wanted = "-e rdm -I 10000 -S 256 -P 19515 -p efa -d rdmap79s0-rdm a shm=\n";
    assert!(calls.starts_with(wanted), "{calls}");
}

#[test]
fn why_a_nic_does_not_answer_is_what_both_sides_complained_of_last() {
    let nodes = Nodes::with(&[("fi_pingpong", PORT_TAKEN)]);
    let ended = nodes.run(&["a"], "nic fi_pingpong a a 19515 10000 256 2 rdmap79s0");
    let (text, code) = &ended[0];
    let wanted =
        "status: 1; client: ERROR: connect:  [1mrefused; server: ERROR: bind: Address already in use\n";
    assert!(*code == Some(0) && text.ends_with(wanted), "{text}");
}

#[test]
fn a_node_sends_to_itself_through_its_nics() {
    let nodes = Nodes::with(&[("fi_pingpong", FI_PINGPONG)]);
    let ended = nodes.run(&["a"], "nic fi_pingpong a a 19515 10000 256,1048576 5 rdmap79s0");
    assert_eq!(ended[0].1, Some(0));
    assert_eq!(ended[0].0.matches("device rdmap79s0\n").count(), 2, "{}", ended[0].0);
    assert!(nodes.text("calls.a").lines().all(|line| line.ends_with("shm=0")));
}

#[test]
fn what_iperf3_says_of_its_failure_is_kept() {
    let nodes = Nodes::with(&[("iperf3", IPERF3)]);
    let ended = nodes.run(&["a", "b"], "tcp iperf3 a b 19515 10 8 5");
    assert_eq!(ended[1], ("{\"error\": \"unable to connect to server\"}\n".to_owned(), Some(0)));
}

#[test]
fn a_program_that_is_not_installed_and_a_node_of_another_pair_end_at_once() {
    let nodes = Nodes::with(&[]);
    assert_eq!(nodes.run(&["a"], "tcp iperf3 a b 19515 10 8 5")[0].1, Some(127));
    let nodes = Nodes::with(&[("iperf3", IPERF3)]);
    assert_eq!(nodes.run(&["c"], "tcp iperf3 a b 19515 10 8 5")[0].1, Some(4));
    assert_eq!(nodes.run(&["a"], "nic iperf3 a b 19515 10 8 5")[0].1, Some(2));
}

/// A subshell that has not set its trap yet.
#[test]
fn what_loses_the_signal_that_ends_it_is_asked_until_it_is_gone() {
    const LATE: &str = r#"
late() {
  local tries
  trap '' TERM
  touch deaf
  sleep 0.3
  trap stop TERM
  for ((tries = 0; tries < 300; tries++)); do pause 0.1; done
  touch stayed
}
late &
until [[ -e deaf ]]; do sleep 0.02; done
end_all
"#;
    let (functions, _) = job::script::LINKS_SH.rsplit_once("main \"$@\"").expect("its last line");
    let folder = TempDir::new().unwrap();
    let status = Command::new("bash")
        .args(["-c", &format!("{functions}{LATE}")])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    assert!(!folder.path().join("stayed").exists());
}
