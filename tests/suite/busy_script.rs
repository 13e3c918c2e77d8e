//! The script around stress-ng under a real shell: processes beside the program are named, and its own are not.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The machine may be busy with other tests: together they are among its three busiest.
const SPINNERS: usize = 16;
/// Until its input ends.
const SPIN: &str = "while ! read -r -t 0; do :; done; exit 7";

/// A copy of bash by this name, by which the kernel calls its processes.
fn program(folder: &Path, name: &str) -> PathBuf {
    let bash = ["/usr/bin/bash", "/bin/bash"].map(Path::new).into_iter().find(|path| path.exists());
    let path = folder.join(name);
    fs::copy(bash.expect("bash"), &path).expect("copied");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    path
}

fn spin(program: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(["-c", SPIN]).stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().expect("starts")
}

#[test]
fn a_process_beside_the_program_is_named_and_those_of_its_session_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (other, own) = (program(folder.path(), "other (load)"), program(folder.path(), "own-load"));
    let mut others: Vec<Child> = (0..SPINNERS).map(|_| spin(&other)).collect();
    let mut child = Command::new("setsid")
        .args(["bash", "-c", job::script::BUSY_SH, "busy.sh", "1"])
        .arg(&own)
        .args(["-c", SPIN])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let (found, is_over) = mpsc::channel::<()>();
    let stdin = child.stdin.take();
    let ends = std::thread::spawn(move || {
        // Whatever was printed, it ends.
        let _ = is_over.recv_timeout(Duration::from_secs(120));
        drop(stdin);
    });
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
        lines.push(line.expect("text"));
        if lines.iter().any(|line| line.ends_with(" other__load_")) {
            let _ = found.send(());
        }
    }
    ends.join().expect("ends");
    for other in &mut others {
        drop(other.stdin.take());
        other.wait().expect("ends");
    }
    assert_eq!(child.wait().expect("ends").code(), Some(7), "the exit code is that of the program");
    assert!(lines.iter().any(|line| line.ends_with(" other__load_")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("own-load")), "{lines:?}");
    assert!(lines.len() <= 3, "{lines:?}");
}

#[test]
fn a_program_that_is_absent_ends_as_in_a_shell_and_nothing_is_looked_at() {
    let output = Command::new("bash")
        .args(["-c", job::script::BUSY_SH, "busy.sh", "30", "/absent/stress-ng"])
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(127), b"".as_slice()));
}
