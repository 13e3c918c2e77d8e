//! Sends the outcome of a run to a webhook, where a user named one: by the machine's `curl`, which knows its proxies and
//! certificates and repeats what failed for a moment. Whatever becomes of it, the exit code of the run stays.

use crate::report::{self, Report};
use base::redact::Redactor;
use base::text::{shorten, show};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Where the outcome goes.
#[derive(Clone)]
pub(crate) struct Webhook {
    /// It may hold a token: only its host is ever shown.
    pub url: String,
    /// The variable of the environment that holds the key of the signature.
    pub secret_variable: Option<String>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

/// How long it is tried.
#[derive(Clone, Copy)]
struct Patience {
    /// Of each attempt, in seconds.
    limit_s: f64,
    /// Attempts after the first: 1, 2, 4 seconds apart, or as the server says.
    retries: u32,
    /// Of all attempts and the pauses between them: a server may ask for a pause of a day.
    total: Duration,
}

const PATIENCE: Patience = Patience { limit_s: 10.0, retries: 3, total: Duration::from_secs(90) };
/// So much of the answers to all attempts is read, in bytes: only their status counts.
const MOST_ANSWER: u64 = 1 << 20;
/// No attempt begins later, in seconds.
const LAST_ATTEMPT_S: u32 = 60;
/// A block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// Checks a URL as it is given.
pub(crate) fn parse_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = text.chars().all(|c| c.is_ascii_graphic() && !"\"\\".contains(c));
    match rest {
        Some(rest) if is_plain && !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("expected `https://HOST/PATH` or `http://HOST/PATH`".to_owned()),
    }
}

/// Why the outcome could not be signed, before anything is launched.
pub(super) fn unsigned(webhook: Option<&Webhook>) -> Option<String> {
    secret(webhook?.secret_variable.as_ref()?).err()
}

fn secret(variable: &str) -> Result<String, String> {
    match std::env::var(variable) {
        Ok(value) if !value.is_empty() => Ok(value),
        _ => Err(format!("no secret to sign with: the environment variable `{}` is not set", show(variable))),
    }
}

/// Sends the outcome; a warning where that fails.
pub(super) fn send(report: &Report, redactor: &Redactor, webhook: Option<&Webhook>) {
    let Some(webhook) = webhook else { return };
    let body = redactor.text(&report::webhook_body(report));
    if let Err(why) = post(webhook, &report.summary.run_id, body.as_bytes(), PATIENCE) {
        eprintln!("warning: the webhook at {} may not have the outcome: {why}", show(host(&webhook.url)));
    }
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

fn post(webhook: &Webhook, run: &str, body: &[u8], patience: Patience) -> Result<(), String> {
    let folder = std::env::temp_dir();
    store::trust::check_temporary(&folder).map_err(|error| error.to_string())?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| error.to_string())?;
    file.write_all(body).map_err(|error| error.to_string())?;
    let mut options = vec![
        ("url", webhook.url.clone()),
        ("data-binary", format!("@{}", file.path().display())),
        ("header", "Content-Type: application/json".to_owned()),
        ("header", format!("X-Harness-Run: {}", show(run))),
        ("proto", "=http,https".to_owned()),
        ("max-time", patience.limit_s.to_string()),
        ("retry", patience.retries.to_string()),
        ("retry-max-time", LAST_ATTEMPT_S.to_string()),
        ("write-out", "%{http_code}".to_owned()),
    ];
    if let Some(variable) = &webhook.secret_variable {
        let secret = secret(variable)?;
        options
            .push(("header", format!("X-Harness-Signature-256: sha256={}", hmac(secret.as_bytes(), body))));
    }
    // A user's own settings of curl may follow redirects, and so take the outcome to another host.
    let mut config = "silent\nshow-error\nretry-all-errors\nno-location\n".to_owned();
    for (name, value) in options {
        // Infallible: writing to a string.
        let _ = writeln!(config, "{name} = \"{}\"", curl_text(&value));
    }
    // By stdin: a list of processes shows arguments to everyone on the machine.
    let mut curl = Command::new("curl")
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`curl` cannot be started: {error}"))?;
    let written = curl.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(config.as_bytes()));
    // The answers of all attempts, then the status of the last, which is the last that curl writes.
    let (answered, end_of) = mpsc::channel();
    let stdout = curl.stdout.take();
    thread::spawn(move || {
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            // An error ends the answer, which then has no status.
            let _ = stdout.take(MOST_ANSWER + 1).read_to_end(&mut answer);
        }
        // After a timeout the receiver is gone.
        let _ = answered.send(answer);
    });
    let answer = match end_of.recv_timeout(patience.total) {
        Ok(answer) if answer.len() as u64 <= MOST_ANSWER => answer,
        other => {
            // It may have ended by itself meanwhile.
            let _ = curl.kill().and_then(|()| curl.wait());
            return Err(match other {
                Ok(_) => format!("its answer is longer than {MOST_ANSWER} bytes"),
                Err(_) => format!("no answer after {} seconds", patience.total.as_secs()),
            });
        }
    };
    let output =
        written.and_then(|()| curl.wait_with_output()).map_err(|error| format!("`curl`: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).replace(&webhook.url, "URL");
        let last = text.lines().rev().find(|line| !line.starts_with("Warning:")).unwrap_or("no message");
        return Err(shorten(&show(last), 200));
    }
    match &*String::from_utf8_lossy(&answer[answer.len().saturating_sub(3)..]) {
        code if code.len() == 3 && code.starts_with('2') => Ok(()),
        code => Err(format!("it answered with HTTP status {}", show(code))),
    }
}

/// As a setting of curl holds it between quotation marks. A line break would begin another setting: `TMPDIR` may have one.
fn curl_text(text: &str) -> String {
    [('\\', "\\\\"), ('"', "\\\""), ('\n', "\\n"), ('\r', "\\r")]
        .iter()
        .fold(text.to_owned(), |text, (mark, written)| text.replace(*mark, written))
}

/// HMAC-SHA256 in hexadecimal digits, by RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> String {
    let mut block = [0u8; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
    outer.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    const SHORT: Patience = Patience { limit_s: 0.5, retries: 1, total: Duration::from_secs(60) };

    /// What a server does with a connection.
    #[derive(Clone, Copy)]
    enum Answer {
        Status(u16),
        /// The same with a body.
        Page(u16),
        /// It reads, and never answers.
        Nothing,
        /// It closes the connection.
        Reset,
        /// A body that ends only when the reader has gone.
        Endless(u16),
        /// To another path, which another host could have as well.
        Redirect,
    }

    /// Head and body.
    type Request = (String, Vec<u8>);

    /// Ends with each request, and the connections that stay open until then.
    type Server = JoinHandle<(Vec<Request>, Vec<TcpStream>)>;

    fn serve(answers: &[Answer]) -> (String, Server) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?token=hidden", listener.local_addr().unwrap());
        let answers = answers.to_vec();
        let server = thread::spawn(move || {
            let mut open = Vec::new();
            let requests = answers.iter().map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read(&stream);
                match answer {
                    Answer::Status(code) => {
                        let head =
                            format!("HTTP/1.1 {code} Some\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                        stream.write_all(head.as_bytes()).unwrap();
                    }
                    Answer::Page(code) => {
                        let head = format!(
                            "HTTP/1.1 {code} Some\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsorry"
                        );
                        stream.write_all(head.as_bytes()).unwrap();
                    }
                    Answer::Nothing => open.push(stream),
                    Answer::Reset => {}
                    Answer::Endless(code) => {
                        stream.write_all(format!("HTTP/1.1 {code} Some\r\n\r\n").as_bytes()).unwrap();
                        let mut written = 0;
                        while stream.write_all(&[b'2'; 1 << 16]).is_ok() {
                            written += 1 << 16;
                            assert!(written < 1 << 30, "all of it was read");
                        }
                    }
                    Answer::Redirect => {
                        let place = format!("http://{}/elsewhere", stream.local_addr().unwrap());
                        let head = format!(
                            "HTTP/1.1 307 Some\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                        );
                        stream.write_all(head.as_bytes()).unwrap();
                    }
                }
                request
            });
            (requests.collect(), open)
        });
        (url, server)
    }

    fn read(stream: &TcpStream) -> Request {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        (head, body)
    }

    fn sent(answers: &[Answer], secret_variable: Option<&str>) -> (Result<(), String>, Vec<Request>) {
        sent_within(answers, secret_variable, SHORT)
    }

    fn sent_within(
        answers: &[Answer],
        secret_variable: Option<&str>,
        patience: Patience,
    ) -> (Result<(), String>, Vec<Request>) {
        let (url, server) = serve(answers);
        let webhook = Webhook { url, secret_variable: secret_variable.map(str::to_owned) };
        let result = post(&webhook, "run-1", b"{\"a\":1}\n", patience);
        (result, server.join().unwrap().0)
    }

    #[test]
    fn a_path_with_a_line_break_begins_no_other_setting_of_curl() {
        assert_eq!(curl_text("/tmp/a\noutput = \"b\\"), "/tmp/a\\noutput = \\\"b\\\\");
    }

    #[test]
    fn signatures_are_those_of_the_rfc() {
        // RFC 4231, test cases 1, 2 and 6.
        let table: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, message, expected) in table {
            assert_eq!(hmac(key, message), expected);
        }
    }

    #[test]
    fn what_fails_for_a_moment_is_sent_again_and_each_attempt_is_the_same() {
        for first in [Answer::Status(503), Answer::Page(500), Answer::Nothing, Answer::Reset] {
            // `HOME` is a secret that every machine has.
            let (result, requests) = sent(&[first, Answer::Status(204)], Some("HOME"));
            assert_eq!(result, Ok(()));
            let signature = hmac(std::env::var("HOME").unwrap().as_bytes(), b"{\"a\":1}\n");
            for (head, body) in requests {
                assert!(head.starts_with("POST /hook?token=hidden HTTP/1.1\r\n"), "{head}");
                assert!(head.contains(&format!("X-Harness-Signature-256: sha256={signature}\r\n")), "{head}");
                assert!(head.contains("X-Harness-Run: run-1\r\n") && body == b"{\"a\":1}\n", "{head}");
            }
        }
    }

    #[test]
    fn what_stays_refused_ends_in_one_message_without_the_url() {
        let (result, _) = sent(&[Answer::Status(503), Answer::Status(503)], None);
        assert_eq!(result, Err("it answered with HTTP status 503".to_owned()));
        let (result, _) = sent(&[Answer::Page(500), Answer::Page(500)], None);
        assert_eq!(result, Err("it answered with HTTP status 500".to_owned()));
        // Not repeated: the server takes one connection only.
        let (result, requests) = sent(&[Answer::Status(404)], None);
        assert_eq!(result, Err("it answered with HTTP status 404".to_owned()));
        assert!(!requests[0].0.contains("Signature"), "{requests:?}");
        let (result, _) = sent(&[Answer::Nothing, Answer::Nothing], None);
        let why = result.unwrap_err();
        assert!(why.contains("timed out") && !why.contains("hidden"), "{why}");
        let (result, _) = sent(&[], Some("HARNESS_NO_SUCH_VARIABLE"));
        assert!(result.unwrap_err().ends_with("`HARNESS_NO_SUCH_VARIABLE` is not set"));
    }

    #[test]
    fn an_answer_without_end_is_cut_off_and_a_redirect_is_not_followed() {
        // The server takes one connection each: neither is repeated.
        let long = Patience { limit_s: 60.0, ..SHORT };
        for code in [200, 500] {
            let (result, requests) = sent_within(&[Answer::Endless(code)], None, long);
            assert_eq!(result, Err("its answer is longer than 1048576 bytes".to_owned()), "{code}");
            assert_eq!(requests.len(), 1, "{code}");
        }
        let (result, requests) = sent(&[Answer::Redirect], None);
        assert_eq!((result, requests.len()), (Err("it answered with HTTP status 307".to_owned()), 1));
        let short = Patience { limit_s: 60.0, total: Duration::from_secs(3), ..SHORT };
        let (result, _) = sent_within(&[Answer::Nothing], None, short);
        assert_eq!(result, Err("no answer after 3 seconds".to_owned()));
    }

    #[test]
    fn urls_are_of_http_and_only_their_host_is_shown() {
        for bad in
            ["", "file:///etc/passwd", "https://", "http:///x", "https://a b", "https://a\"\nurl = b", "a.b"]
        {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
        let url = parse_url("https://user:word@hooks.example:8443/services/T0/secret?x=1").unwrap();
        assert_eq!(host(&url), "hooks.example:8443");
        let shown = format!("{:?}", Webhook { url, secret_variable: Some("KEY".into()) });
        assert!(!shown.contains("secret") && !shown.contains("word"), "{shown}");
    }
}
