//! `harness watch --web`: one page on the loopback interface, for a browser on this machine. It answers GET and HEAD for
//! that page alone, under a path that other users of the machine cannot guess, and reads no file for a request.

use base::digest::sha256;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Longer requests are no browser's.
const MOST_BYTES: usize = 16 * 1024;
/// A request that has not arrived by then, or an answer that is not taken.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_CONNECTIONS: usize = 32;
/// A browser that asked so lately shows the page.
const LATELY: Duration = Duration::from_secs(10);
/// How long a browser has to take the last page.
const FAREWELL: Duration = Duration::from_secs(5);

/// The page as it is now.
#[derive(Default)]
struct Served {
    page: Arc<[u8]>,
    revision: String,
    asked: Option<Instant>,
}

/// Serves while its runtime is driven.
pub(super) struct PageServer {
    served: Arc<Mutex<Served>>,
    pub address: String,
}

impl PageServer {
    /// On this port, or on any that is free.
    pub(super) fn start(runtime: &Runtime, port: u16) -> Result<PageServer, String> {
        let bound = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        let listener = bound.map_err(|error| match port {
            0 => format!("cannot listen on 127.0.0.1: {error}"),
            port => format!("--port {port}: {error}; without --port a free one is taken"),
        })?;
        let place = listener.local_addr().map_err(|error| format!("cannot listen on 127.0.0.1: {error}"))?;
        let token = store::new_token().map_err(|error| format!("no random path for the page: {error}"))?;
        let served = Arc::new(Mutex::new(Served::default()));
        let address = format!("http://{place}/{token}/");
        let door = Arc::new(Door { place, path: format!("/{token}/") });
        runtime.spawn(accept(listener, door, Arc::clone(&served)));
        Ok(PageServer { served, address })
    }

    /// From now on this is the page.
    pub(super) fn show(&self, page: &[u8]) {
        let revision = sha256(page);
        let page = with_revision(page, &revision).into();
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        (served.page, served.revision) = (page, revision);
    }

    /// Gives a browser that shows the page the time to take the last one.
    pub(super) async fn farewell(&self) {
        let asked = self.served.lock().unwrap_or_else(PoisonError::into_inner).asked;
        if asked.is_some_and(|asked| asked.elapsed() < LATELY) {
            tokio::time::sleep(FAREWELL).await;
        }
    }
}

/// The page knows which one it is.
fn with_revision(page: &[u8], revision: &str) -> Vec<u8> {
    const MARK: &[u8] = b"<html lang=\"en\"";
    match page.windows(MARK.len()).position(|part| part == MARK) {
        Some(at) => {
            let (before, behind) = page.split_at(at + MARK.len());
            [before, format!(" data-revision=\"{revision}\"").as_bytes(), behind].concat()
        }
        None => page.to_vec(),
    }
}

/// Where the page is.
struct Door {
    place: SocketAddr,
    path: String,
}

async fn accept(listener: TcpListener, door: Arc<Door>, served: Arc<Mutex<Served>>) {
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // No file is left for a connection; one may be soon.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (door, served) = (Arc::clone(&door), Arc::clone(&served));
        tokio::spawn(async move {
            // A browser that goes away needs no error.
            let _ = timeout(2 * PATIENCE, converse(stream, &door, &served)).await;
            drop(permit);
        });
    }
}

async fn converse(mut stream: TcpStream, door: &Door, served: &Mutex<Served>) -> io::Result<()> {
    let head = timeout(PATIENCE, head(&mut stream)).await.unwrap_or(Ok(None))?;
    let answer = match head {
        Some(head) => answer(&head, door, served),
        None => refusal("400 Bad Request"),
    };
    stream.write_all(&answer).await?;
    stream.shutdown().await
}

/// All up to the empty line; nothing where that is too far.
async fn head(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    loop {
        let count = stream.read(&mut part).await?;
        bytes.extend_from_slice(&part[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(end);
            return Ok(Some(bytes));
        }
        if count == 0 || bytes.len() > MOST_BYTES {
            return Ok(None);
        }
    }
}

/// The answer to the head of a request.
fn answer(head: &[u8], door: &Door, served: &Mutex<Served>) -> Vec<u8> {
    let Ok(head) = std::str::from_utf8(head) else { return refusal("400 Bad Request") };
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = words.as_slice() else {
        return refusal("400 Bad Request");
    };
    // A page of another site that has its name point here is refused: it would be read as if it were its own.
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim())
        .collect();
    let port = door.place.port();
    // A browser leaves out port 80.
    let is_own = |host: &str| {
        let name = host.strip_suffix(&format!(":{port}")).or((port == 80).then_some(host));
        matches!(name, Some("127.0.0.1" | "localhost"))
    };
    match hosts.as_slice() {
        [host] if is_own(host) => {}
        _ => return refusal("421 Misdirected Request"),
    }
    if *method != "GET" && *method != "HEAD" {
        return refusal("405 Method Not Allowed\r\nAllow: GET, HEAD");
    }
    if *target != door.path {
        return refusal("404 Not Found");
    }
    let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
    served.asked = Some(Instant::now());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nETag: \"{}\"\r\n{HEADERS}\r\n",
        served.page.len(),
        served.revision
    );
    let body: &[u8] = if *method == "HEAD" { &[] } else { &served.page };
    [head.as_bytes(), body].concat()
}

/// No other site may show, read or keep the page; what it loads, its own policy says.
const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: \
                       no-referrer\r\nX-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\
                       Content-Security-Policy: frame-ancestors 'none'\r\n";

fn refusal(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{HEADERS}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_alone_is_served_by_its_path_for_its_own_host() {
        let door = Door { place: SocketAddr::from((Ipv4Addr::LOCALHOST, 4321)), path: "/token/".to_owned() };
        let served = Mutex::new(Served { page: (*b"<p>page").into(), revision: "r1".into(), asked: None });
        let ask = |request: &str| {
            let head = request.strip_suffix("\r\n\r\n").unwrap_or(request);
            String::from_utf8(answer(head.as_bytes(), &door, &served)).expect("text")
        };
        let own = "Host: 127.0.0.1:4321\r\n\r\n";
        for host in ["127.0.0.1:4321", "localhost:4321"] {
            let page = ask(&format!("GET /token/ HTTP/1.1\r\nhost: {host}\r\n\r\n"));
            assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\n<p>page"), "{page}");
            assert!(page.contains("ETag: \"r1\"") && page.contains("frame-ancestors 'none'"), "{page}");
        }
        let head = ask(&format!("HEAD /token/ HTTP/1.1\r\n{own}"));
        assert!(head.contains("Content-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for target in [
            "/",
            "/index.html",
            "/token",
            "/token/index.html",
            "/token/../token/",
            "/token/?x",
            "/../etc/passwd",
            "//token/",
            "/token/%2e%2e/",
            "http://127.0.0.1:4321/token/",
            "*",
        ] {
            let refused = ask(&format!("GET {target} HTTP/1.1\r\n{own}"));
            assert!(refused.starts_with("HTTP/1.1 404 "), "{target}: {refused}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
            let refused = ask(&format!("{method} /token/ HTTP/1.1\r\n{own}"));
            assert!(
                refused.starts_with("HTTP/1.1 405 ") && refused.contains("Allow: GET, HEAD"),
                "{refused}"
            );
        }
        for hosts in [
            "",
            "Host: evil.example\r\n",
            "Host: evil.example:4321\r\n",
            "Host: 127.0.0.1\r\n",
            "Host: 127.0.0.1:1\r\n",
            "Host: 127.0.0.1:4321\r\nHost: evil.example\r\n",
            "Host: 127.0.0.1:4321.evil.example\r\n",
        ] {
            let refused = ask(&format!("GET /token/ HTTP/1.1\r\n{hosts}Accept: */*\r\n\r\n"));
            assert!(refused.starts_with("HTTP/1.1 421 "), "{hosts}: {refused}");
        }
        let http = Door { place: SocketAddr::from((Ipv4Addr::LOCALHOST, 80)), path: "/token/".to_owned() };
        for (host, status) in [("localhost", "200"), ("127.0.0.1:80", "200"), ("evil.example", "421")] {
            let head = format!("GET /token/ HTTP/1.1\r\nHost: {host}");
            let answer = String::from_utf8(answer(head.as_bytes(), &http, &served)).expect("text");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
        }
        for odd in ["", "GET", "GET /token/", "GET /token/ HTTP/2", "GET  /token/ HTTP/1.1", "\u{0}"] {
            assert!(ask(odd).starts_with("HTTP/1.1 400 "), "{odd:?}");
        }
        assert!(answer(b"GET /\xff HTTP/1.1", &door, &served).starts_with(b"HTTP/1.1 400 "));
    }

    #[test]
    fn a_page_has_its_revision_and_another_page_another_one() {
        let page = with_revision(b"<!DOCTYPE html>\n<html lang=\"en\">\n<html lang=\"en\"", "abc");
        assert_eq!(page, b"<!DOCTYPE html>\n<html lang=\"en\" data-revision=\"abc\">\n<html lang=\"en\"");
        assert_eq!(with_revision(b"none", "abc"), b"none");
    }
}
