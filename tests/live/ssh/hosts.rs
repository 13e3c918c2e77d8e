//! Real sshds on loopback addresses, one for each simulated host, with keys and a configuration of their own in a folder
//! that goes with them. They are ended by their process ids, when the test ends or panics.

use base::nodeset;
use cluster::reach::openssh::{FANOUT, OpenSsh, SshOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";

/// Why no such server can be started here.
pub(crate) fn absent() -> Option<&'static str> {
    (!Path::new(SSHD).exists()).then_some("no sshd here: apt-get install openssh-server")
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0)
}

pub(crate) struct Hosts {
    folder: TempDir,
    port: u16,
    own_names: bool,
    sshds: Mutex<Vec<Option<Child>>>,
}

impl Hosts {
    /// Hosts `h1` to `hN`.
    pub(crate) fn start(many: usize) -> Hosts {
        Hosts::start_with(many, &[], "")
    }

    /// The same, with lines of one's own for each sshd and for ssh, which take the first word on anything.
    pub(crate) fn start_with(many: usize, sshd: &[&str], ssh: &str) -> Hosts {
        Hosts::start_named(many, true, sshd, ssh)
    }

    /// A host `h1` that calls itself by this machine's name. A controller of Slurm 24.11 looks the name up of the host
    /// that `srun` runs on, and sends the job back to the queue where it finds none.
    pub(crate) fn start_login(sshd: &str) -> Hosts {
        Hosts::start_named(1, false, &[sshd], "")
    }

    fn start_named(many: usize, own_names: bool, sshd: &[&str], ssh: &str) -> Hosts {
        let folder = tempfile::Builder::new().prefix("sshds-").tempdir().expect("a folder");
        // The port is free on the first address, and nothing else listens on the others.
        let port =
            TcpListener::bind("127.0.11.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        for name in ["user", "host"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(folder.path().join(name))
                .status();
            assert!(made.expect("ssh-keygen").success());
        }
        if is_root() {
            // Compiled into sshd; gone after a boot where nothing else starts it.
            fs::create_dir_all("/run/sshd").expect("made");
        }
        let hosts = Hosts { folder, port, own_names, sshds: Mutex::new((0..many).map(|_| None).collect()) };
        hosts.configure(many, sshd, ssh);
        for nth in 1..=many {
            hosts.up(nth);
        }
        for nth in 1..=many {
            hosts.wait_for(nth);
        }
        hosts
    }

    pub(crate) fn names(&self) -> Vec<String> {
        (1..=self.sshds.lock().expect("whole").len()).map(|nth| format!("h{nth}")).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn way(&self) -> SshOptions {
        SshOptions { config: Some(self.path("ssh_config").display().to_string()), ..SshOptions::default() }
    }

    pub(crate) fn reach(&self) -> OpenSsh {
        OpenSsh::new(self.way(), 1, FANOUT).expect("a folder")
    }

    /// An inventory of these hosts, whose jobs lie in a folder here.
    pub(crate) fn inventory(&self, more: &str) -> String {
        let nodes = nodeset::fold(&self.names());
        let config = self.path("ssh_config");
        let shared = self.path("shared");
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{nodes}\"\n[reach]\nvia = \"ssh\"\nstart = \"processes\"\n\
             config = \"{}\"\n{more}\n[paths]\nshared = \"{}\"\n",
            config.display(),
            shared.display()
        )
    }

    fn configure(&self, many: usize, sshd: &[&str], ssh: &str) {
        let at = |name: &str| self.path(name).display().to_string();
        let mut known = String::new();
        let mut config = String::from(ssh);
        let key = self.text("host.pub");
        let key = key.split(' ').take(2).collect::<Vec<_>>().join(" ");
        for nth in 1..=many {
            let address = format!("127.0.11.{nth}");
            let _ = writeln!(known, "[{address}]:{} {key}", self.port);
            let _ = writeln!(config, "Host h{nth}\n    HostName {address}");
            let mut text = sshd.iter().fold(String::new(), |text, line| text + line + "\n");
            let _ = write!(
                text,
                "Port {}\nListenAddress {address}\nHostKey {}\nPidFile {}\nAuthorizedKeysFile {}\nStrictModes no\n\
                 UsePAM no\nUseDNS no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\nSetEnv SHLVL=1\nPrintMotd no\nPrintLastLog no\nLogLevel VERBOSE\n\
                 Subsystem sftp internal-sftp\n",
                self.port,
                at("host"),
                at(&format!("h{nth}.pid")),
                at("user.pub"),
            );
            fs::write(self.path(&format!("h{nth}.conf")), text).expect("written");
        }
        let user = Command::new("id").arg("-un").output().expect("id").stdout;
        let _ = write!(
            config,
            "Host *\n    Port {}\n    User {}\n    IdentityFile {}\n    IdentitiesOnly yes\n    IdentityAgent none\n    \
             UserKnownHostsFile {}\n    GlobalKnownHostsFile /dev/null\n",
            self.port,
            String::from_utf8_lossy(&user).trim(),
            at("user"),
            at("known_hosts"),
        );
        fs::write(self.path("known_hosts"), known).expect("written");
        fs::write(self.path("ssh_config"), config).expect("written");
    }

    /// Starts the sshd of a host, or starts it again.
    pub(crate) fn up(&self, nth: usize) {
        let log = self.path(&format!("h{nth}.log"));
        let conf = self.path(&format!("h{nth}.conf"));
        let sshd =
            [SSHD.into(), "-D".into(), "-f".into(), conf.into_os_string(), "-E".into(), log.into_os_string()];
        let mut command = if is_root() && self.own_names {
            // A name of its own, as a host has.
            let mut command = Command::new("unshare");
            command.args(["--uts", "--", "sh", "-c", "hostname \"$1\" && shift && exec \"$@\"", "sh"]);
            command.arg(format!("h{nth}")).args(&sshd);
            command
        } else {
            let mut command = Command::new(SSHD);
            command.args(&sshd[1..]);
            command
        };
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sshd");
        self.sshds.lock().expect("whole")[nth - 1] = Some(child);
    }

    pub(crate) fn wait_for(&self, nth: usize) {
        let address = format!("127.0.11.{nth}:{}", self.port);
        let began = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "{}", self.text(&format!("h{nth}.log")));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Breaks every connection of a host; what they had started lives on, as after a real drop.
    pub(crate) fn cut(&self, nth: usize) -> usize {
        let sshd = self.sshds.lock().expect("whole")[nth - 1].as_ref().map(Child::id).expect("it runs");
        let connections = children(sshd);
        for process in &connections {
            let _ = kill(Pid::from_raw(*process), Signal::SIGKILL);
        }
        // One that is only dying still has what it sent, and cannot be cut again.
        wait_until(10, "its connections are gone", || {
            children(sshd).iter().all(|process| !connections.contains(process))
        });
        connections.len()
    }

    /// Bytes that the servers of a host's connections have read so far, from its disk and from the network.
    pub(crate) fn sent(&self, nth: usize) -> u64 {
        let sshd = self.sshds.lock().expect("whole")[nth - 1].as_ref().map(Child::id);
        let serves = |process: &i32| {
            fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "sshd")
        };
        let read = |process: i32| {
            let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
            line.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        sshd.map_or(0, |sshd| descendants(sshd).into_iter().filter(serves).map(read).sum())
    }

    /// Ends a host's sshd and every process below it.
    pub(crate) fn down(&self, nth: usize) {
        let sshd = self.sshds.lock().expect("whole")[nth - 1].take();
        if let Some(mut sshd) = sshd {
            let below = descendants(sshd.id());
            let _ = sshd.kill();
            let _ = sshd.wait();
            for process in below {
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for nth in 1..=self.names().len() {
            self.down(nth);
        }
    }
}

fn children(process: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn descendants(process: u32) -> Vec<i32> {
    let mut found = children(process);
    let mut at = 0;
    while at < found.len() {
        let more = children(found[at] as u32);
        found.extend(more);
        at += 1;
    }
    found
}

/// The processes whose command line holds a text, by their ids.
pub(crate) fn processes_with(text: &str) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        if line.contains(text) && id != std::process::id() as i32 {
            found.push((id, line));
        }
    }
    found
}

/// Waits until something holds.
pub(crate) fn wait_until(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs to its end what waits for the world.
pub(crate) fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}
