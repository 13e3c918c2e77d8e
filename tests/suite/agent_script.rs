//! `agent.sh` under a real bash: what mpirun asks of another node is run there as a part of the job and answered, what
//! strangers ask is refused, and a node that is gone is not waited for. Its runs in pods are in `pods_mpi.rs`.

use job::script::{AGENT_SH, files, hostfile};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Job {
    folder: TempDir,
}

/// Ended with all that it started, whatever becomes of the test.
struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Job {
    fn new(nodes: &[&str]) -> Job {
        let job = Job { folder: TempDir::new().expect("a folder") };
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        fs::write(job.path(files::AGENT), AGENT_SH).expect("written");
        fs::write(job.path(files::HOSTFILE), hostfile(&nodes, 2)).expect("written");
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What is in the mailbox of `n2`.
    fn mailbox(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("agent/n2")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn call(&self, node: &str, words: &[&str]) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.path(files::AGENT)).args(words).current_dir(self.folder.path());
        command.stdin(Stdio::null()).env("HARNESS_NODE", node);
        for name in ["OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"] {
            command.env_remove(name);
        }
        command.env("HARNESS_AGENT_START_LIMIT_S", "2").env("HARNESS_AGENT_SILENCE_LIMIT_S", "12");
        command
    }

    /// Begins to listen on `n2`.
    fn listen(&self) -> Listener {
        let log = fs::File::create(self.path("log.n2")).expect("made");
        let errors = log.try_clone().expect("cloned");
        let mut command = self.call("n2", &["listen"]);
        let listener = Listener(command.stdout(log).stderr(errors).spawn().expect("bash starts"));
        until("it listens", || self.mailbox().iter().any(|name| name == "token"));
        listener
    }

    /// As mpirun on `n1` asks for a command elsewhere.
    fn ask(&self, words: &[&str]) -> (Option<i32>, String, String) {
        read(self.call("n1", &[&["rsh"], words].concat()).output().expect("bash starts"))
    }

    /// mpirun on `n1`, whose text is given.
    fn mpirun(&self, text: &str) -> (Option<i32>, String, String) {
        let program = self.path("mpirun");
        fs::write(&program, format!("#!/bin/bash\n{text}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        let program = program.display().to_string();
        read(self.call("n1", &["mpirun", &program, "-np", "4"]).output().expect("bash starts"))
    }
}

fn read(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_command_runs_on_the_other_node_and_its_output_and_exit_code_come_back() {
    let job = Job::new(&["n1", "n2"]);
    let mut listener = job.listen();
    let said = job.ask(&["n2", "echo on $HARNESS_NODE;", "echo oops >&2;", "exit 7"]);
    assert_eq!(said, (Some(7), "on n2\n".to_owned(), "oops\n".to_owned()));
    // Line breaks, quotes, and a shell that a signal ends.
    assert_eq!(job.ask(&["n2", "printf '%s\\n' 'a\nb'\n", "kill -9 $$"]).0, Some(128 + 9));
    // Options of ssh are taken and ignored, with their values; a user before the name, too.
    let said = job.ask(&["-x", "-q", "-o", "BatchMode=yes", "-l", "me", "-p22", "you@n2", "echo", "'a  b'"]);
    assert_eq!(said, (Some(0), "a  b\n".to_owned(), String::new()));
    // A daemon there may start another one anywhere in the job, also where it is itself.
    let (code, stdout, stderr) = job.ask(&["n2", "$OMPI_MCA_plm_rsh_agent n2 'echo again on $HARNESS_NODE'"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "again on n2\n"), "{stderr}");
    let (code, stdout, stderr) = job.ask(&["n1", "echo here $HARNESS_NODE"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "here n1\n"), "{stderr}");
    // Only its owner sees what is asked.
    let mode = |name: &str| fs::metadata(job.path(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode("agent/n2"), 0o700);
    assert_eq!(mode("agent/n2/token"), 0o600);
    let taken: Vec<String> = job.mailbox().into_iter().filter(|name| name.starts_with("running.")).collect();
    assert!(taken.len() >= 4 && taken.iter().all(|name| mode(&format!("agent/n2/{name}")) == 0o600));
    // mpirun ends, and so does who listened.
    let (code, stdout, stderr) = job.mpirun("echo \"$OMPI_MCA_plm_rsh_agent\"; exit 3");
    assert_eq!((code, stderr.as_str()), (Some(3), ""));
    assert!(stdout.starts_with("bash /") && stdout.ends_with("/agent.sh rsh\n"), "{stdout}");
    let ended = listener.0.wait().expect("it ends");
    assert_eq!((ended.code(), job.text("log.n2").as_str()), (Some(0), ""));
}

#[test]
fn a_host_outside_of_the_job_and_a_node_that_never_listens_are_named_in_one_line() {
    let job = Job::new(&["n1", "n2", "ip-10-0-1-3.ec2.internal", "a.x", "a.y"]);
    for (host, line) in [
        ("n9", "agent.sh: no node of this job: n9\n"),
        ("../n2", "agent.sh: no node of this job: ../n2\n"),
        ("a", "agent.sh: no node of this job: a\n"),
        ("n2", "agent.sh: n2: its part of the job has not started within 2 s\n"),
        // mpirun may leave out what stands behind the first point.
        (
            "ip-10-0-1-3",
            "agent.sh: ip-10-0-1-3.ec2.internal: its part of the job has not started within 2 s\n",
        ),
    ] {
        assert_eq!(job.ask(&[host, "true"]), (Some(255), String::new(), line.to_owned()));
    }
    assert!(!job.path("agent").exists(), "nothing was asked");
    assert_eq!(job.ask(&["n2"]).0, Some(2), "no command");
}

#[test]
fn a_node_that_listened_and_is_gone_is_not_waited_for() {
    let job = Job::new(&["n1", "n2"]);
    let mut listener = job.listen();
    let asked =
        job.call("n1", &["rsh", "n2", "echo $$ > pid; exec sleep 600"]).stderr(Stdio::piped()).spawn();
    let asked = asked.expect("bash starts");
    until("it runs", || job.text("pid").ends_with('\n'));
    // For as long as its node gives signs of life a command may take its time.
    std::thread::sleep(Duration::from_secs(15));
    listener.0.kill().expect("killed");
    listener.0.wait().expect("gone");
    let (code, _, stderr) = read(asked.wait_with_output().expect("it ends"));
    let _ = Command::new("kill").args(["-9", job.text("pid").trim()]).status();
    assert_eq!(code, Some(255));
    assert_eq!(stderr, "agent.sh: n2: no sign of life for 12 s, its pod is gone or does not answer\n");
}

#[test]
fn requests_of_strangers_are_refused() {
    let job = Job::new(&["n1", "n2"]);
    let mut listener = job.listen();
    let token = job.text("agent/n2/token");
    let request = |id: &str, text: &str| {
        let path = job.path(&format!("agent/n2/request.{id}"));
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        path
    };
    let marks = |what: &str| format!("{what}touch {}\n", job.path("intruded").display());
    // Of an earlier job, without any token, cut short, under a name that no agent gives.
    request(&"1".repeat(32), &marks("0123456789abcdef0123456789abcdef\n"));
    request(&"2".repeat(32), &marks(""));
    request(&"3".repeat(32), token.trim_end());
    request("../../x".replace('/', "%").as_str(), &marks(&token));
    // Not a file of its own, or one that others may have written.
    fs::write(job.path("outside"), marks(&token)).expect("written");
    symlink(job.path("outside"), job.path(&format!("agent/n2/request.{}", "4".repeat(32)))).expect("linked");
    fs::hard_link(job.path("outside"), job.path(&format!("agent/n2/request.{}", "5".repeat(32))))
        .expect("linked");
    let open = request(&"6".repeat(32), &marks(&token));
    fs::set_permissions(open, fs::Permissions::from_mode(0o666)).expect("set");
    let mut many = 7;
    if nix::unistd::Uid::effective().is_root() {
        // It is not there as its owner's before it is complete.
        let path = job.path("foreign");
        fs::write(&path, marks(&token)).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        chown(&path, Some(65534), None).expect("given away");
        fs::rename(&path, job.path(&format!("agent/n2/request.{}", "8".repeat(32)))).expect("moved");
        many += 1;
    }
    until("all are refused", || {
        job.mailbox().iter().filter(|name| name.starts_with("refused.")).count() == many
    });
    assert_eq!(job.text("log.n2").matches("agent.sh: request refused: ").count(), many);
    assert!(!job.path("intruded").exists());
    // Whose job it is, is served still.
    assert_eq!(job.ask(&["n2", "echo mine"]), (Some(0), "mine\n".to_owned(), String::new()));
    // It does not go on for ever with them.
    for nth in 0..30 {
        request(&format!("{nth:032x}"), "x\n");
    }
    let ended = listener.0.wait().expect("it ends");
    assert_eq!(ended.code(), Some(1));
    assert!(job.text("log.n2").ends_with("agent.sh: too many requests of strangers\n"));
}

#[test]
fn a_mailbox_that_somebody_else_made_is_not_listened_at() {
    let job = Job::new(&["n1", "n2"]);
    fs::create_dir_all(job.path("agent/n2")).expect("made");
    let (code, _, stderr) = read(job.call("n2", &["listen"]).output().expect("bash starts"));
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("agent.sh: cannot make the folder, or it is not ours: "), "{stderr}");
    // Once mpirun has ended a node that was late has nothing more to do.
    fs::write(job.path("agent/n2/closed"), "").expect("written");
    let (code, stdout, stderr) = read(job.call("n2", &["listen"]).output().expect("bash starts"));
    assert_eq!((code, stdout, stderr), (Some(0), String::new(), String::new()));
}

#[test]
fn an_image_without_mpirun_is_reported_as_such_and_no_listener_is_left() {
    let job = Job::new(&["n1", "n2"]);
    let mut listener = job.listen();
    let mut command = job.call("n1", &["mpirun", "find-mpirun", "-np", "4"]);
    // What the script needs, and nothing else.
    let bin = job.path("bin");
    fs::create_dir(&bin).expect("made");
    for program in ["bash", "dirname", "mkdir"] {
        let found = ["/usr/bin", "/bin"].map(|folder| PathBuf::from(folder).join(program));
        let found = found.into_iter().find(|path| path.exists()).expect("there");
        symlink(found, bin.join(program)).expect("linked");
    }
    let (code, _, stderr) = read(command.env("PATH", &bin).output().expect("bash starts"));
    // Where AWS's installer puts it there is none on a machine of tests.
    assert_eq!(code, Some(127), "{stderr}");
    let line = "agent.sh: tool-missing mpirun: it is neither on PATH nor at /opt/amazon/openmpi/bin/mpirun\n";
    assert_eq!(stderr, line);
    assert_eq!(listener.0.wait().expect("it ends").code(), Some(0));
}
