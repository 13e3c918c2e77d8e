//! The request runs in bash, against pipes that are read as PyTorch reads its own.

// Real pipes are waited for by the machine's clock.
#![allow(clippy::disallowed_methods)]

use super::*;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::thread;

/// Makes the pipe of a rank, and answers the first byte with a dump.
fn rank(folder: &Path, rank: u32, dump: Option<&'static [u8]>) -> thread::JoinHandle<()> {
    let pipe = folder.join(format!("fr_pipe.{rank}.pipe"));
    mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let mut reader =
        OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&pipe).expect("opened");
    let to = folder.join(format!("fr_trace.{rank}"));
    thread::spawn(move || {
        for _ in 0..200 {
            if reader.read(&mut [0; 16]).is_ok_and(|read| read > 0) {
                if let Some(dump) = dump {
                    fs::write(&to, dump).expect("written");
                }
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    })
}

fn run(folder: &Path) -> String {
    let request = DumpRequest { folder: folder.to_str().expect("text"), node: Some("n1") };
    let mut argv = request.arguments();
    // Those of a test wait less long.
    let limits = argv.len() - 2;
    argv[limits..].clone_from_slice(&["1".to_owned(), "1".to_owned()]);
    let output = process::Command::new(&argv[0]).args(&argv[1..]).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(folder.join("fr_request.n1.txt")).expect("its report")
}

#[test]
fn ranks_of_this_node_are_those_that_take_the_byte_and_their_dumps_are_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let ranks = [rank(folder.path(), 3, Some(b"dump")), rank(folder.path(), 11, None)];
    // Nothing reads the pipe of a rank on another node, and what is no pipe is left alone.
    mkfifo(&folder.path().join("fr_pipe.4.pipe"), Mode::S_IRWXU).expect("a pipe");
    fs::write(folder.path().join("fr_pipe.5.pipe"), "").expect("written");
    std::os::unix::fs::symlink("fr_pipe.4.pipe", folder.path().join("fr_pipe.6.pipe")).expect("linked");
    mkfifo(&folder.path().join("fr_pipe.7; touch x.pipe"), Mode::S_IRWXU).expect("a pipe");
    let report = run(folder.path());
    assert_eq!(report, "node n1\nrank 3 4\nrank 11 0\n");
    for rank in ranks {
        rank.join().expect("ended");
    }
    let dumps = [RankDump { rank: 3, bytes: Some(4) }, RankDump { rank: 11, bytes: None }];
    assert_eq!(render("n1", &dumps), report);
    assert_eq!(fs::read(folder.path().join("fr_pipe.5.pipe")).expect("there"), b"");
    assert!(!folder.path().join("x.pipe").exists());
}

#[test]
fn a_job_without_pipes_is_reported_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(run(folder.path()), "node n1\n");
}

#[test]
fn what_is_asked_can_be_read_back() {
    let request = DumpRequest { folder: "/f/r/c/j", node: Some("n1") };
    assert_eq!(DumpRequest::read(&request.arguments()), Some(request));
    let by_slurm = DumpRequest { folder: "/f/r/c/j", node: None };
    let argv: Vec<String> = ["srun", "--jobid=17", "--overlap"]
        .map(str::to_owned)
        .into_iter()
        .chain(by_slurm.arguments())
        .collect();
    assert_eq!(DumpRequest::read_step(&argv), Some(("17", by_slurm)));
    assert_eq!((DumpRequest::read(&argv), DumpRequest::read(&["bash", "-c", "x"])), (None, None));
}
