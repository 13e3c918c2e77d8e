//! A small S3 server for tests, on this machine: what `harness publish` asks of one, with faults that are planted. It
//! notes every request, and every object that was written over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// What the harness is given, and must never show.
pub(crate) const SECRETS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAQ3EGTESTTESTTEST"),
    ("AWS_SECRET_ACCESS_KEY", "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"),
    ("AWS_SESSION_TOKEN", "FwoGZXIvYXdzEBYaDPlantedSessionToken0123456789abcdef"),
];

/// What happens to a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Answered with this status and code, and not carried out.
    Status(u16, &'static str),
    /// The connection is cut in the middle of its body.
    CutRequest,
    /// Carried out, and the connection cut before the answer.
    CutAnswer,
    /// Half of the answer's body comes, and then nothing.
    HalfAnswer,
    /// Never answered.
    Silence,
    /// This file grows first.
    Grow(PathBuf),
}

struct Planted {
    method: &'static str,
    part_of_target: String,
    fault: Fault,
    times: usize,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// Uploads in parts that are open: the key, and the parts.
    pub(crate) uploads: BTreeMap<String, (String, BTreeMap<usize, Vec<u8>>)>,
    /// `METHOD /bucket/key?query` of each request that was carried out.
    pub(crate) done: Vec<String>,
    /// Of each `GET` that was answered the target, and how many bytes of its object were sent.
    pub(crate) sent: Vec<(String, u64)>,
    /// Keys whose objects were replaced by others.
    pub(crate) written_over: Vec<String>,
    pub(crate) ignores_conditions: bool,
    planted: Vec<Planted>,
    begun: usize,
}

#[derive(Clone)]
pub(crate) struct ObjectServer {
    state: Arc<Mutex<State>>,
    port: u16,
}

struct Request {
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Of a `HEAD`, whose body is not sent.
    length: Option<usize>,
}

impl ObjectServer {
    pub(crate) fn start() -> ObjectServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = ObjectServer { state: Arc::default(), port };
        let accepting = server.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let server = accepting.clone();
                thread::spawn(move || server.serve(connection));
            }
        });
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test has panicked in it")
    }

    /// The next so many requests of that method whose target contains this.
    pub(crate) fn plant(&self, method: &'static str, part_of_target: &str, fault: Fault, times: usize) {
        let part_of_target = part_of_target.to_owned();
        self.state().planted.push(Planted { method, part_of_target, fault, times });
    }

    pub(crate) fn heal(&self) {
        self.state().planted.clear();
    }

    /// Lets a command find the server, with credentials.
    pub(crate) fn configure(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        command.envs(SECRETS);
        command.env("AWS_REGION", "us-east-1").env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port));
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The keys that were written, in their order.
    pub(crate) fn writes(&self) -> Vec<String> {
        let state = self.state();
        let puts = state.done.iter().filter_map(|line| line.strip_prefix("PUT /bucket/"));
        puts.map(str::to_owned).collect()
    }

    fn serve(&self, connection: TcpStream) {
        let Ok(mut writing) = connection.try_clone() else { return };
        let mut reading = BufReader::new(connection);
        while let Some(mut request) = head(&mut reading) {
            let fault = self.fault(&request);
            let length =
                request.headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if matches!(fault, Some(Fault::CutRequest)) {
                let _ = reading.by_ref().take(length / 2).read_to_end(&mut Vec::new());
                let _ = writing.shutdown(Shutdown::Both);
                return;
            }
            if reading.by_ref().take(length).read_to_end(&mut request.body).is_err() {
                return;
            }
            let reply = match &fault {
                Some(Fault::Status(status, code)) => error(*status, code, &request),
                Some(Fault::Silence) => {
                    thread::sleep(Duration::from_secs(60));
                    return;
                }
                Some(Fault::Grow(path)) => {
                    let mut bytes = std::fs::read(path).unwrap_or_default();
                    bytes.push(b'x');
                    std::fs::write(path, bytes).expect("grown");
                    self.answer(&request)
                }
                _ => self.answer(&request),
            };
            match fault {
                Some(Fault::CutAnswer) => {
                    let _ = writing.shutdown(Shutdown::Both);
                    return;
                }
                Some(Fault::HalfAnswer) => {
                    let _ = send(&mut writing, &reply, reply.body.len() / 2);
                    thread::sleep(Duration::from_secs(60));
                    return;
                }
                _ => {}
            }
            let most = if request.method == "HEAD" { 0 } else { reply.body.len() };
            if send(&mut writing, &reply, most).is_err() {
                return;
            }
        }
    }

    fn fault(&self, request: &Request) -> Option<Fault> {
        let mut state = self.state();
        let hit = |planted: &&mut Planted| {
            planted.times > 0
                && request.method == planted.method
                && request.target.contains(&planted.part_of_target)
        };
        let planted = state.planted.iter_mut().find(hit)?;
        planted.times -= 1;
        Some(planted.fault.clone())
    }

    fn answer(&self, request: &Request) -> Reply {
        let mut state = self.state();
        state.done.push(format!("{} {}", request.method, request.target));
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let key = decoded(path.strip_prefix("/bucket/").unwrap_or_default());
        let query: BTreeMap<String, String> = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (name.to_owned(), decoded(value)))
            .collect();
        let upload = query.get("uploadId").cloned();
        match (request.method.as_str(), upload) {
            ("PUT", Some(id)) => {
                let index = query.get("partNumber").and_then(|text| text.parse().ok()).unwrap_or(0);
                match state.uploads.get_mut(&id) {
                    Some((_, parts)) => {
                        parts.insert(index, request.body.clone());
                        ok(&[("etag", &etag(&request.body))], Vec::new())
                    }
                    None => error(404, "NoSuchUpload", request),
                }
            }
            ("PUT", None) => {
                let is_conditional =
                    request.headers.contains_key("if-none-match") && !state.ignores_conditions;
                if is_conditional && state.objects.contains_key(&key) {
                    return error(412, "PreconditionFailed", request);
                }
                state.write(&key, request.body.clone())
            }
            ("POST", Some(id)) => match state.uploads.remove(&id) {
                Some((key, parts)) => {
                    let whole = parts.into_values().flatten().collect();
                    let written = state.write(&key, whole);
                    let tag = written.headers[0].1.clone();
                    let text = format!(
                        "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                    );
                    ok(&[], text.into_bytes())
                }
                None => error(404, "NoSuchUpload", request),
            },
            ("POST", None) if query.contains_key("delete") => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let keys = body.split("<Key>").skip(1).filter_map(|rest| rest.split('<').next());
                for key in keys {
                    state.objects.remove(key);
                }
                ok(&[], b"<DeleteResult></DeleteResult>".to_vec())
            }
            ("POST", None) => {
                state.begun += 1;
                let id = format!("upload-{}", state.begun);
                state.uploads.insert(id.clone(), (key.clone(), BTreeMap::new()));
                let text = format!(
                    "<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>{key}</Key><UploadId>{id}</UploadId>\
                     </InitiateMultipartUploadResult>"
                );
                ok(&[], text.into_bytes())
            }
            ("GET", _) if query.contains_key("list-type") => {
                let prefix = query.get("prefix").cloned().unwrap_or_default();
                let is_flat = !query.contains_key("delimiter");
                let below = |key: &String| {
                    key.strip_prefix(&prefix).is_some_and(|rest| is_flat || !rest.contains('/'))
                };
                let folders: BTreeSet<&str> = state
                    .objects
                    .keys()
                    .filter(|_| !is_flat)
                    .filter_map(|key| Some(key.strip_prefix(&prefix)?.split_once('/')?.0))
                    .collect();
                let folders: String = folders
                    .iter()
                    .map(|name| format!("<CommonPrefixes><Prefix>{prefix}{name}/</Prefix></CommonPrefixes>"))
                    .collect();
                let listed = state.objects.iter().filter(|(key, _)| below(key)).map(|(key, bytes)| {
                    format!(
                        "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                         <ETag>{}</ETag></Contents>",
                        bytes.len(),
                        etag(bytes)
                    )
                });
                let text =
                    format!("<ListBucketResult>{}{folders}</ListBucketResult>", listed.collect::<String>());
                ok(&[], text.into_bytes())
            }
            ("GET" | "HEAD", _) => {
                let reply = match state.objects.get(&key) {
                    Some(bytes) => read(request, bytes),
                    None => error(404, "NoSuchKey", request),
                };
                if reply.status < 300 {
                    state.sent.push((request.target.clone(), reply.body.len() as u64));
                }
                reply
            }
            _ => error(405, "MethodNotAllowed", request),
        }
    }
}

impl State {
    fn write(&mut self, key: &str, bytes: Vec<u8>) -> Reply {
        let tag = etag(&bytes);
        if self.objects.get(key).is_some_and(|there| *there != bytes) {
            self.written_over.push(key.to_owned());
        }
        self.objects.insert(key.to_owned(), bytes);
        ok(&[("etag", &tag)], Vec::new())
    }
}

fn read(request: &Request, bytes: &[u8]) -> Reply {
    let dated = ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    let tag = etag(bytes);
    if request.method == "HEAD" {
        let mut reply = ok(&[dated, ("etag", &tag)], Vec::new());
        reply.length = Some(bytes.len());
        return reply;
    }
    let range = request.headers.get("range").and_then(|text| text.strip_prefix("bytes="));
    let range = range.and_then(|text| text.split_once('-'));
    let Some((from, to)) =
        range.and_then(|(from, to)| Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()?)))
    else {
        return ok(&[dated, ("etag", &tag)], bytes.to_vec());
    };
    if from >= bytes.len() {
        return error(416, "InvalidRange", request);
    }
    let to = to.min(bytes.len() - 1);
    let of = format!("bytes {from}-{to}/{}", bytes.len());
    let mut reply = ok(&[dated, ("etag", &tag), ("content-range", &of)], bytes[from..=to].to_vec());
    reply.status = 206;
    reply
}

fn ok(headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply { status: 200, headers, body, length: None }
}

/// As real servers do, the body repeats the headers of the request, the session's token among them.
fn error(status: u16, code: &str, request: &Request) -> Reply {
    let headers: String = request.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let text = format!(
        "<Error><Code>{code}</Code><Message>refused</Message><CanonicalRequest>{} {}\n{headers}</CanonicalRequest></Error>",
        request.method, request.target
    );
    Reply { status, headers: Vec::new(), body: text.into_bytes(), length: None }
}

fn etag(bytes: &[u8]) -> String {
    format!("\"{}\"", &base::digest::sha256(bytes)[..32])
}

fn head(reading: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => return Some(Request { method, target, headers, body: Vec::new() }),
        };
    }
}

fn send(writing: &mut TcpStream, reply: &Reply, most: usize) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n", reply.length.unwrap_or(reply.body.len()));
    writing.write_all(head.as_bytes())?;
    writing.write_all(b"\r\n")?;
    writing.write_all(&reply.body[..most])
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
