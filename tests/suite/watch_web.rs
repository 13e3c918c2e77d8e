//! `harness watch --web`: the page of a run that goes on, on the loopback interface, until the run ends.

use crate::little;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Ended with the test, however that ends.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer to a request for a path.
fn ask(place: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = Vec::new();
    // A request that is refused before its end may be cut off.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

/// A run that is over, as it was before its last case was judged.
fn set_back(folder: &Path) -> [(std::path::PathBuf, Vec<u8>); 4] {
    let files = ["summary.json", "run.json", "cases/kernels/verdict.json", "cases/kernels/outcomes.json"];
    let kept = files.map(|file| {
        let path = folder.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, bytes)
    });
    for file in [0, 2, 3] {
        fs::remove_file(&kept[file].0).expect("removed");
    }
    let mut record: Value = serde_json::from_slice(&kept[1].1).expect("JSON");
    record["ended"] = Value::Null;
    record["seconds"] = Value::Null;
    fs::write(&kept[1].0, record.to_string()).expect("written");
    kept
}

#[test]
fn the_page_follows_the_run_and_watch_ends_with_its_exit_code() {
    let project = little::project();
    let id = little::ended(&project);
    let folder = project.path().join("runs").join(&id);
    let kept = set_back(&folder);
    let mut command = project.command(&["watch", "--web", &id]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watching = Watching(command.spawn().expect("the harness starts"));
    let mut lines = BufReader::new(watching.0.stdout.take().expect("piped"));
    let mut first = String::new();
    lines.read_line(&mut first).expect("a line");
    let address = first.trim().strip_prefix("page: http://").unwrap_or_else(|| panic!("{first}")).to_owned();
    let (place, path) = address.split_once('/').expect("a path");
    assert!(place.starts_with("127.0.0.1:") && path.len() == 33, "{address}");
    let page = ask(place, &format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\n\r\n"));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for words in ["<h1 class=\"red\" id=\"verdict\">RUNNING: ", "connect-src 'self'", "data-revision=\"", &id]
    {
        assert!(page.contains(words), "no `{words}` in: {page}");
    }
    // Nothing of the file system is served: neither other paths, nor links into the run.
    for other in
        ["", "index.html", "../plan.json", &format!("{path}plan.json"), &format!("{path}../../../etc/passwd")]
    {
        let refused = ask(place, &format!("GET /{other} HTTP/1.1\r\nHost: {place}\r\n\r\n"));
        assert!(refused.starts_with("HTTP/1.1 404 ") && refused.ends_with("\r\n\r\n"), "{other}: {refused}");
    }
    assert!(!page.contains("href=\"cases"), "{page}");
    let rebound = ask(place, &format!("GET /{path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
    assert!(rebound.starts_with("HTTP/1.1 421 "), "{rebound}");
    let long = ask(place, &format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000)));
    assert!(long.is_empty() || long.starts_with("HTTP/1.1 400 "), "{long}");
    // The run goes on to its end.
    for (path, bytes) in kept.iter().rev() {
        fs::write(path, bytes).expect("written");
    }
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    let began = Instant::now();
    let last = loop {
        let page = ask(place, &request);
        if !page.contains(">RUNNING: ") {
            break page;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{page}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(last.contains("(exit 1)") && !last.contains("connect-src"), "{last}");
    let code = watching.0.wait().expect("it ends").code();
    assert_eq!(code, Some(1));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("(exit 1)"), "{rest}");
}

#[test]
fn a_run_that_is_over_needs_no_server_and_a_port_that_is_taken_is_named() {
    let project = little::project();
    let id = little::ended(&project);
    let ran = project.harness(&["watch", "--web", &id]);
    assert!(ran.code == Some(1) && !ran.stdout.contains("page: http"), "{}", ran.all());
    set_back(&project.path().join("runs").join(&id));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let ran = project.harness(&["watch", "--web", "--port", &port, &id]);
    let why = format!("--port {port}: ");
    assert!(ran.code == Some(2) && ran.stderr.contains(&why), "{}", ran.all());
    for odd in
        [&["watch", "--port", "1"][..], &["watch", "--web", "--once"], &["watch", "--web", "--port", "70000"]]
    {
        assert_eq!(project.harness(odd).code, Some(2), "{odd:?}");
    }
}
