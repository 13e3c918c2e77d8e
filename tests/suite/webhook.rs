//! The outcome of a run reaches a web server, signed; and whatever the server does, the exit code stays.

use crate::project::Project;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

const RED: [&str; 6] = ["run", "--suite", "nccl-p5", "-q", "--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];

/// Head and body of the request that is answered by 200, after one that is answered by 503.
fn serve() -> (String, thread::JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let mut last = (String::new(), Vec::new());
        for code in [503, 200] {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).expect("a line");
            }
            let length =
                head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
            let mut body = vec![0; length.parse().expect("a number")];
            reader.read_exact(&mut body).expect("a body");
            let answer = format!("HTTP/1.1 {code} Some\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("answered");
            last = (head, body);
        }
        last
    });
    (url, server)
}

#[test]
fn the_outcome_is_sent_again_until_it_is_taken() {
    let project = Project::new();
    let (url, server) = serve();
    let sent = ["nic-pairs", "--webhook", &url, "--webhook-secret-env", "HOOK_KEY"];
    let mut command = project.command(&[&RED[..], &sent].concat());
    command.env("HOOK_KEY", "hunter2-hunter2").env("no_proxy", "127.0.0.1");
    let ran = crate::project::ran(command.output().expect("it starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(!ran.stderr.contains("webhook"), "{}", ran.all());
    let (head, body) = server.join().expect("two requests");
    assert!(head.starts_with("POST /hook ") && head.contains("X-Harness-Signature-256: sha256="), "{head}");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        (&body["exit_code"], &body["culprits"][0]["code"]),
        (&Value::from(1), &Value::from("HRN-NIC-SLOW"))
    );
    assert_eq!(body["run"], project.json("summary.json")["run_id"]);
    assert!(body["text"].as_str().expect("a text").contains("SIMULATED"), "{body}");
    assert!(!ran.all().contains("hunter2") && !project.reported().contains("hunter2"));
}

#[test]
fn a_server_or_a_program_that_is_not_there_is_a_warning() {
    let project = Project::new();
    // A port that was free a moment ago: the connection is refused, three times more.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let mut command =
        project.command(&[&RED[..], &["nic-pairs", "--webhook", &format!("http://{host}/token")]].concat());
    command.env("no_proxy", "127.0.0.1");
    let ran = crate::project::ran(command.output().expect("it starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let warning = format!("warning: the webhook at {host} may not have the outcome: ");
    assert!(ran.stderr.contains(&warning) && !ran.stderr.contains("token"), "{}", ran.all());
    command.env("PATH", project.programs_but("curl"));
    let ran = crate::project::ran(command.output().expect("it starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stderr.contains("`curl` cannot be started: "), "{}", ran.all());
}

#[test]
fn what_cannot_be_sent_or_signed_is_refused_before_anything_is_launched() {
    let project = Project::new();
    let with = |more: &[&str]| project.harness(&[&RED[..], more].concat());
    let unset = ["--webhook", "https://hooks.example/x", "--webhook-secret-env", "HARNESS_NO_SUCH_VARIABLE"];
    for (more, message) in [
        (&["--webhook", "ftp://hooks.example"][..], "expected `https://HOST/PATH` or `http://HOST/PATH`"),
        (
            &unset,
            "--webhook-secret-env: no secret to sign with: the environment variable `HARNESS_NO_SUCH_VARIABLE` is not set",
        ),
        (&["--webhook-secret-env", "HOME"], "--webhook <URL>"),
    ] {
        let ran = with(more);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(message), "{}", ran.all());
    }
    assert!(!project.path().join("runs").exists());
}
