//! A real Kubernetes on this machine, which the tests share and the last of them ends. What starts its daemons and ends
//! them is the script `cluster`, which keeps watch over the tests: they end with them however these end.
//! `HARNESS_TEST_KUBE` names the folder that the script `build` made; nothing of it is built or installed unasked.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const DIR: &str = "HARNESS_TEST_KUBE";
/// Nodes `n1` to `n4`.
pub(crate) const NODES: usize = 4;
const PARTS: [&str; 7] = [
    "kube-apiserver",
    "kube-scheduler",
    "kube-controller-manager",
    "kubelet",
    "root/usr/bin/etcd",
    "root/usr/bin/containerd",
    "root/bin/busybox",
];
const PROGRAMS: [&str; 6] = ["ip", "curl", "openssl", "nsenter", "unshare", "python3"];

/// Why there can be none here. A folder that is named and incomplete is no reason: its tests fail.
pub(crate) fn absent() -> Option<&'static str> {
    if dir().is_none() {
        return Some(
            "no Kubernetes: HARNESS_TEST_KUBE names a folder made by tests/live/kubernetes_cluster/build",
        );
    }
    if fs::metadata("/proc/self").map_or(true, |process| process.uid() != 0) {
        return Some("a Kubernetes is started by root alone");
    }
    if !Path::new("/sys/fs/cgroup/memory").is_dir() {
        return Some("no cgroups of version 1, which this Kubernetes needs");
    }
    let path = path();
    let is_there = |program: &&str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !PROGRAMS.iter().all(is_there) {
        return Some("ip, curl, openssl, nsenter, unshare or python3 is not on PATH");
    }
    None
}

fn dir() -> Option<PathBuf> {
    std::env::var_os(DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Daemons lie where only root looks.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

pub(crate) struct Cluster {
    state: PathBuf,
    dir: PathBuf,
}

static RUNNING: OnceLock<Cluster> = OnceLock::new();

/// The cluster of all tests: the first that asks starts it.
pub(crate) fn running() -> &'static Cluster {
    RUNNING.get_or_init(Cluster::start)
}

/// Ends it, if it was started. False where something is left of it, which is printed.
pub(crate) fn end() -> bool {
    let Some(cluster) = RUNNING.get() else { return true };
    let ended = cluster.command("down", &[]).output();
    let printed = ended.map(|ended| String::from_utf8_lossy(&ended.stdout).trim().to_owned());
    match printed {
        Ok(printed) if printed.is_empty() => true,
        Ok(printed) => {
            println!("the Kubernetes of the tests:\n{printed}");
            false
        }
        Err(error) => {
            println!("the Kubernetes of the tests: {error}");
            false
        }
    }
}

impl Cluster {
    fn start() -> Cluster {
        let dir =
            dir().expect("checked before").canonicalize().expect("the folder that HARNESS_TEST_KUBE names");
        for part in PARTS {
            assert!(dir.join(part).is_file(), "no {part} in {}: run build again", dir.display());
        }
        let state = tempfile::Builder::new().prefix("kube-").tempdir_in("/tmp").expect("a folder").keep();
        let cluster = Cluster { state, dir };
        cluster.script("watch", &[&std::process::id().to_string()]);
        let standin = crate::bed::executable().display().to_string();
        let dir = cluster.dir.display().to_string();
        // Pods run it to read reports.
        let harness = crate::project::HARNESS;
        cluster.script("up", &[&dir, &NODES.to_string(), &standin, harness]);
        cluster
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live/kubernetes_cluster/cluster");
        let mut command = Command::new("bash");
        command.arg(script).arg(verb).arg(&self.state).args(arguments).env("PATH", path());
        command.stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub(crate) fn script(&self, verb: &str, arguments: &[&str]) -> String {
        printed(&mut self.command(verb, arguments), verb)
    }

    /// By these every kubectl is this cluster's.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 4] {
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        path.push(":");
        path.push(self.dir.join("root/usr/bin"));
        let direct = || OsString::from("10.240.0.0/24");
        [
            ("KUBECONFIG", self.state.join("kubeconfig").into_os_string()),
            ("PATH", path),
            ("NO_PROXY", direct()),
            ("no_proxy", direct()),
        ]
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("env");
        command.arg("kubectl").args(arguments).envs(self.variables()).stdin(Stdio::null());
        printed(&mut command, &format!("kubectl {arguments:?}"))
    }

    /// `kubectl create` of these objects, in YAML.
    #[track_caller]
    pub(crate) fn create(&self, objects: &str) {
        let file = self.state.join("objects.yaml");
        fs::write(&file, objects).expect("written");
        self.kubectl(&["create", "--filename", &file.display().to_string()]);
    }
}

#[track_caller]
fn printed(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
