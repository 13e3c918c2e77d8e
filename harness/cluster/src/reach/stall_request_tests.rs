//! The request runs in bash, against pipes that are read as PyTorch reads its own.

// Real pipes are waited for by the machine's clock.
#![allow(clippy::disallowed_methods)]

use super::*;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
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
    let request = StallRequest { folder: folder.to_str().expect("text"), node: Some("n1"), ras: Ras::Off };
    let mut argv = request.arguments();
    // Those of a test wait less long: taken, written.
    argv[11..13].clone_from_slice(&["1".to_owned(), "1".to_owned()]);
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
    let request = StallRequest { folder: "/f/r/c/j", node: Some("n1"), ras: Ras::Addresses };
    assert_eq!(StallRequest::read(&request.arguments()), Some(request));
    let by_slurm = StallRequest { folder: "/f/r/c/j", node: None, ras: Ras::Reports };
    let argv: Vec<String> = ["srun", "--jobid=17", "--overlap"]
        .map(str::to_owned)
        .into_iter()
        .chain(by_slurm.arguments())
        .collect();
    assert_eq!(StallRequest::read_step(&argv), Some(("17", by_slurm)));
    assert_eq!((StallRequest::read(&argv), StallRequest::read(&["bash", "-c", "x"])), (None, None));
}

/// A RAS of NCCL: answers each connection as a version does, and closes behind the report.
fn ras(has_json: bool, reports: usize) -> (u16, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let serve = move || {
        let mut heard = Vec::new();
        let mut left = reports;
        while left > 0 {
            let (stream, _) = listener.accept().expect("a client");
            let mut to = stream.try_clone().expect("the same");
            let mut form = "text";
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                heard.push(line.clone());
                let answer = match line.as_str() {
                    "CLIENT PROTOCOL 2" => "SERVER PROTOCOL 2\n".to_owned(),
                    "SET FORMAT json" if has_json => {
                        form = "json";
                        "OK\n".to_owned()
                    }
                    "SET FORMAT json" => "ERROR: Unknown command set format json\n".to_owned(),
                    "VERBOSE STATUS" => {
                        left -= 1;
                        to.write_all(format!("a report, {form}\n").as_bytes()).expect("sent");
                        break;
                    }
                    _ => "OK\n".to_owned(),
                };
                to.write_all(answer.as_bytes()).expect("sent");
            }
        }
        heard
    };
    (port, thread::spawn(serve))
}

fn asked(folder: &Path, port: u16, wants: Ras) -> String {
    let request = StallRequest { folder: folder.to_str().expect("text"), node: Some("n1"), ras: wants };
    let mut argv = request.arguments();
    argv[10] = port.to_string();
    // Those of a test wait less long: taken, written, reported, between.
    argv[11..15].clone_from_slice(&["1", "1", "4", "0"].map(str::to_owned));
    let output = process::Command::new(&argv[0]).args(&argv[1..]).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.join("ras.n1.txt")).expect("its report");
    // The addresses are this machine's.
    let is_address = |line: &&str| line.starts_with("address ");
    assert!(text.lines().skip_while(is_address).all(|line| !is_address(&line)), "{text}");
    text.lines().filter(|line| !is_address(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn ras_is_asked_twice_in_json_and_in_text_where_it_knows_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, server) = ras(true, 2);
    assert_eq!(asked(folder.path(), port, Ras::Reports), "a report, json\n\na report, json\n");
    assert_eq!(
        server.join().expect("heard")[..4],
        ["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]
    );
    let (port, server) = ras(false, 2);
    assert_eq!(asked(folder.path(), port, Ras::Reports), "a report, text\n\na report, text\n");
    let heard = server.join().expect("heard");
    // A form that it refused is not asked for again.
    assert_eq!(heard.iter().filter(|line| line.starts_with("SET")).count(), 1, "{heard:?}");
}

#[test]
fn a_port_without_a_listener_or_of_a_stranger_gives_addresses_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
    assert_eq!(asked(folder.path(), closed, Ras::Reports), "");
    let (port, _server) = ras(true, 2);
    assert_eq!(asked(folder.path(), port, Ras::Addresses), "");
    // What speaks another protocol is heard no further.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(b"SSH-2.0-x\n").expect("sent");
    });
    assert_eq!(asked(folder.path(), port, Ras::Reports), "");
    other.join().expect("ended");
}

#[test]
fn the_first_nodes_of_a_job_are_asked_for_reports_and_the_others_for_addresses() {
    let file =
        |kind| model::artefact::ExpectedFile { name: "x".into(), kind, node: None, part: None, rank: None };
    let mut job = model::artefact::PlannedJob {
        nodes: ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
        folder: "/f".into(),
        expected: vec![file(FileKind::Ras)],
        ..crate::launch::ssh::tests::job(&[])
    };
    let wants = |job: &PlannedJob| StallRequest::for_nodes(job).map(|(_, it)| it.ras).collect::<Vec<_>>();
    assert_eq!(wants(&job), [Ras::Reports, Ras::Reports, Ras::Addresses]);
    assert!(StallRequest::has_any(&job) && StallRequest::by_slurm(&job).ras == Ras::Reports);
    job.expected = vec![file(FileKind::FlightDump)];
    assert_eq!(wants(&job), [Ras::Off; 3]);
    assert!(StallRequest::has_any(&job));
    job.expected.clear();
    assert!(!StallRequest::has_any(&job));
}

#[test]
fn what_others_planted_under_the_names_of_the_files_is_neither_written_nor_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::NamedTempFile::new().expect("a file");
    fs::write(outside.path(), "theirs").expect("written");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(outside.path(), at("ras.n1.txt.part")).expect("linked");
    std::os::unix::fs::symlink(outside.path(), at("ras.n1.txt")).expect("linked");
    // Opened to write, it would wait for a reader for ever.
    mkfifo(&at("fr_request.n1.txt.part"), Mode::S_IRWXU).expect("a pipe");
    let (port, _server) = ras(true, 2);
    assert_eq!(asked(folder.path(), port, Ras::Reports), "a report, json\n\na report, json\n");
    assert_eq!(fs::read_to_string(outside.path()).expect("there"), "theirs");
    assert!(fs::symlink_metadata(at("ras.n1.txt")).expect("there").is_file());
    assert_eq!(fs::read_to_string(at("fr_request.n1.txt")).expect("there"), "node n1\n");
}
