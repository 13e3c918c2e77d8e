//! A real Slurm cluster of simulated nodes on this machine's loopback, which lives as long as a test does. What starts its
//! daemons and ends them is the script `cluster`, which keeps watch over the test: they end with it however it ends.
//! `HARNESS_TEST_SLURM_ROOT` names the tree of another Slurm than the machine's.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) struct Cluster {
    state: PathBuf,
}

/// A tree of Slurm has its own; `cluster` looks for them there.
const SLURM: [&str; 8] = ["slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo"];
const OTHERS: [&str; 4] = ["munged", "unshare", "nsenter", "mountpoint"];

const ROOT: &str = "HARNESS_TEST_SLURM_ROOT";

/// Whether Slurm is that of a tree of its own.
pub(crate) fn has_own_root() -> bool {
    std::env::var_os(ROOT).is_some_and(|root| !root.is_empty())
}

/// Why there can be none on this machine.
pub(crate) fn absent() -> Option<&'static str> {
    if fs::metadata("/proc/self").map_or(true, |process| process.uid() != 0) {
        return Some("a Slurm cluster is started by root alone");
    }
    let path = path();
    let is_there = |program: &&str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
    if !OTHERS.iter().all(is_there) || !has_own_root() && !SLURM.iter().all(is_there) {
        return Some("no Slurm and munge on PATH");
    }
    let namespaces =
        Command::new("unshare").args(["--uts", "--mount", "true"]).stderr(Stdio::null()).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return Some("this machine gives no namespaces to nodes");
    }
    None
}

/// Daemons lie where only root looks.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// The last port that was given away: no two clusters of a test's process share one.
static PORTS: Mutex<u16> = Mutex::new(0);

impl Cluster {
    /// Nodes `n1` to `nN`.
    pub(crate) fn start(nodes: u16) -> Cluster {
        Cluster::start_with(nodes, &[])
    }

    /// The same with more lines for slurm.conf, or `no-gres` for a Slurm that knows of no GPUs.
    pub(crate) fn start_with(nodes: u16, lines: &[&str]) -> Cluster {
        // Sockets lie in it, and their paths are short: wherever else temporary files go.
        let state = tempfile::Builder::new().prefix("slurm-").tempdir_in("/tmp").expect("a folder").keep();
        let cluster = Cluster { state };
        cluster.script("watch", &[&std::process::id().to_string()]);
        let mut last = PORTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let port = free_ports((*last).max(first_port()) + 1, nodes);
        *last = port + nodes;
        cluster.script("up", &[&[nodes.to_string().as_str(), &port.to_string()], lines].concat());
        cluster
    }

    /// By these every client of Slurm is this cluster's and finds it, and no other.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let path = std::env::var("PATH").unwrap_or_default();
        [("SLURM_CONF", self.configuration()), ("PATH", format!("{}{path}", self.first_on_path()))]
    }

    pub(crate) fn configuration(&self) -> String {
        self.state.join("slurm.conf").display().to_string()
    }

    /// What stands before all else in a PATH: the clients, where they are not the machine's. It ends with a colon.
    pub(crate) fn first_on_path(&self) -> String {
        if has_own_root() { format!("{}/bin:", self.state.display()) } else { String::new() }
    }

    /// Says a verb to `cluster`.
    #[track_caller]
    pub(crate) fn script(&self, verb: &str, words: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live/slurm_cluster/cluster");
        let mut command = Command::new("bash");
        command.arg(script).arg(verb).arg(&self.state).args(words);
        said(command.env("PATH", path()), verb)
    }

    /// What a client of Slurm prints.
    #[track_caller]
    pub(crate) fn ask(&self, argv: &[&str]) -> String {
        // Looked up in the PATH that the child gets.
        let mut command = Command::new("env");
        said(command.args(argv).envs(self.variables()), argv[0])
    }

    #[track_caller]
    pub(crate) fn assert_nothing_is_left(&self) {
        let left = self.what_is_left();
        assert!(left.is_empty(), "left:\n{left}");
    }

    /// The jobs in the queue and the processes on nodes, one to a line. Asked again and again, since Slurm lets the last
    /// processes of a job end in their own time.
    #[track_caller]
    pub(crate) fn what_is_left(&self) -> String {
        let from = Instant::now();
        loop {
            let queue = self.ask(&["squeue", "--noheader", "--format=job %i %j %T %N"]);
            let left = self.script("left", &[]);
            if from.elapsed() > Duration::from_secs(60) || queue.is_empty() && left.is_empty() {
                return format!("{queue}\n{left}").trim().to_owned();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live/slurm_cluster/cluster");
        let _ = Command::new("bash").arg(script).arg("down").arg(&self.state).stdin(Stdio::null()).status();
    }
}

#[track_caller]
fn said(command: &mut Command, what: &str) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{what}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Below the ports that the kernel gives away, and not where another test's process begins.
fn first_port() -> u16 {
    16_000 + (std::process::id() % 140) as u16 * 100
}

/// The first of so many free ports and one more in a row.
fn free_ports(from: u16, nodes: u16) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut starts = (from..32_000 - nodes).step_by(usize::from(nodes) + 1);
    starts.find(|first| (*first..=first + nodes).all(is_free)).expect("free ports")
}
