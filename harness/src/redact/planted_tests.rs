//! Secrets planted in the forms in which logs, scripts and settings hold them: none may survive.
//!
//! Knowingly not caught: a known value that is wrapped at a column, compressed, or interrupted by terminal escapes;
//! keys of which each line is a JSON record of its own (`docker logs` as JSON) and keys of PuTTY; quoted values whose
//! closing mark is more than 512 bytes behind a line break; a password without a name beside it.

use super::*;
use std::time::{Duration, Instant};

/// Stands in no text but where it was planted.
const X: &str = "x1Y2q9W8e7R6t5Z4";

fn long() -> String {
    X.repeat(4)
}

fn survives(redactor: &Redactor, text: &str, secret: &str) -> Vec<String> {
    let mut leaks = Vec::new();
    let json = serde_json::to_string(text).expect("text");
    for (form, whole) in [("plain", text), ("JSON", &json)] {
        let clean = redactor.text(whole);
        if clean.contains(secret) {
            leaks.push(format!("{form}: {clean:?}"));
        }
        let masked =
            String::from_utf8_lossy(&redactor.bytes(&[b"\0", whole.as_bytes()].concat()).bytes).into_owned();
        if masked.contains(secret) {
            leaks.push(format!("{form}, masked: {masked:?}"));
        }
    }
    leaks
}

#[test]
fn no_planted_secret_survives() {
    let esc = '\u{1b}';
    let texts = [
        format!("Authorization: Bearer {X}"),
        format!("Authorization: Basic {X}\nnext"),
        format!("proxy-authorization: Basic {X}"),
        format!("authorization=Basic {X}"),
        format!("x-auth-token: A {X}"),
        format!("Set-Cookie: a=b; session={X}; Path=/"),
        format!("> Cookie: a=b; session={X}"),
        format!("curl -H 'Authorization: token {X}' https://host"),
        format!("{{'Authorization': 'Bearer {X}'}}"),
        format!("HF_TOKEN={esc}[32m{X}{esc}[0m"),
        format!("{esc}[1mHF_TOKEN{esc}[0m={esc}[38;5;12m{X}{esc}[0m"),
        format!("{esc}[36mHF_TOKEN{esc}[0m: '{esc}[32m{X}{esc}[0m'"),
        format!("{esc}[32mhf_{}", long()),
        format!("a\u{1}hf_{}", long()),
        format!("{esc}(Bghp_{}", long()),
        format!("HF_TOKEN=\u{1}{X}"),
        format!("DB_PASSWORD='first line\n{X}'"),
        format!("DB_PASSWORD=\"first line\nsecond\n{X}\"\nNEXT=1"),
        format!("HF_TOKEN:\n  {X}\nnext: 1"),
        format!("  HF_TOKEN: |\n    {X}\n    {X}\n  next: 1"),
        format!("password: >-\n  {X}"),
        format!("machine host login me password {X}"),
        format!("machine host\n  login me\n  password {X}\n"),
        format!("docker login -u me -p {X} registry"),
        format!("docker login -p{X}"),
        format!("sshpass -p {X} ssh host"),
        format!("sshpass -p'{X}' ssh host"),
        format!("curl -s -u me:{X} https://host"),
        format!("curl --user me:{X} https://host"),
        format!("[\"curl\", \"-u\", \"me:{X}\"]"),
        format!("mysql -u me -p{X} db"),
        format!("PGPASSWORD={X}"),
        format!("MYSQL_PWD={X}"),
        format!("DB_PASS={X}"),
        format!("SSHPASS={X}"),
        format!("secretkey={X}"),
        format!("AccountName=a;AccountKey={X}=="),
        format!("HF_TOKEN2={X}"),
        format!("db_password1: {X}"),
        format!("https://host/a?sig={X}&b=1"),
        format!("https://host/a?b=1&X-Amz-Signature={X}"),
        format!("https://host/a?b=1&amp;Signature={X}"),
        format!("https://hooks.slack.com/services/T0001/B0001/{X}"),
        format!("npm_{}", long()),
        format!("ya29.{}", long()),
        format!("xapp-1-{X}"),
        format!("hvs.{}", long()),
        format!("{{\"token\":[\"{X}\"]}}"),
        format!("{{\"token\": [\n  \"a\",\n  \"{X}\"\n]}}"),
        format!("setenv HF_TOKEN {X}"),
        format!("set -gx HF_TOKEN {X}"),
        format!("setenv(\"HF_TOKEN\", \"{X}\")"),
        format!("| HF_TOKEN | {X} |"),
        format!("\u{2502} HF_TOKEN \u{2502} {X} \u{2502}"),
    ];
    let leaks: Vec<_> = texts.iter().flat_map(|text| survives(&Redactor::default(), text, X)).collect();
    assert!(leaks.is_empty(), "{} forms leak:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn no_line_of_a_private_key_survives_a_launchers_prefixes() {
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        for prefix in
            ["", "[default0]:", "0: ", "[1,0]<stdout>:", "[prterun-p5-1@1,3]<stderr>: ", "\u{1b}[32m"]
        {
            let lines =
                [format!("-----BEGIN {kind}-----"), long(), X.to_owned(), format!("-----END {kind}-----")];
            let text: String = lines.iter().map(|line| format!("{prefix}{line}\n")).collect();
            let leaks = survives(&Redactor::default(), &format!("{text}[default0]:next\n"), X);
            assert!(leaks.is_empty(), "{kind} behind {prefix:?}: {leaks:?}");
            let clean = Redactor::default().text(&format!("{text}[default0]:next\n"));
            assert!(clean.ends_with("[default0]:next\n"), "{clean:?}");
        }
    }
}

#[test]
fn known_values_are_found_in_base64_hex_and_percent_encoding() {
    let value = "s\u{e4}cret/w0rd+9 x";
    let look_up = |_: &str| Some(value.to_owned());
    let redactor = Redactor::default().and(&Secrets::resolve(["X"], &look_up).expect("a value"));
    // Written by base64(1) for the value itself and behind 1 and 2 more bytes.
    for (text, secret) in [
        ("c8OkY3JldC93MHJkKzkgeA==", "3JldC93MHJk"),
        ("YTpzw6RjcmV0L3cwcmQrOSB4", "jcmV0L3cwcmQr"),
        ("YXPDpGNyZXQvdzByZCs5IHg=", "GNyZXQvdzByZC"),
        ("c8OkY3JldC93MHJkKzkgeA", "3JldC93MHJk"),
        ("73c3a4637265742f773072642b392078", "6372657"),
        ("73C3A4637265742F773072642B392078", "6372657"),
        ("s%C3%A4cret%2Fw0rd%2B9%20x", "w0rd"),
        ("s%c3%a4cret/w0rd%2b9+x", "w0rd"),
    ] {
        let leaks = survives(&redactor, &format!("said {text} so"), secret);
        assert!(leaks.is_empty(), "{text}: {leaks:?}");
        assert!(redactor.text(text).contains("[redacted]"), "{text}");
    }
}

#[test]
fn words_that_only_resemble_the_new_names_stay() {
    for text in [
        "OLDPWD=/home/me PWD=/home/me",
        "ALL_PASS=1 num_pass: 12, pass: yes",
        "| tokens | 12 |",
        "| token | count |",
        "docker run -p 8080:80 image",
        "ssh -p 2222 host; mkdir -p /a/b; curl -u $USER:$PASS url",
        "signature: valid, sig=11, compass=north, bypass=on",
        "the password is wrong\nthe cookies are warm",
        "\u{1b}[32mok\u{1b}[0m done",
    ] {
        assert_eq!(Redactor::default().text(text), text);
    }
}

#[test]
fn hostile_texts_take_linear_time() {
    let timed = |text: &str| {
        let once = || {
            #[allow(clippy::disallowed_methods)]
            let begun = Instant::now();
            Redactor::default().text(text);
            begun.elapsed()
        };
        (0..3).map(|_| once()).min().unwrap_or(Duration::ZERO)
    };
    for piece in [
        "th.kb.c-",
        "-p ",
        "login ",
        "-----BEGIN ",
        "password='a\n",
        "\u{1b}[",
        "token: [\"a\", ",
        "machine a ",
        "| a_token",
    ] {
        let few = timed(&piece.repeat(100_000 / piece.len()));
        let many = timed(&piece.repeat(800_000 / piece.len()));
        // 8 where linear, 64 where quadratic.
        assert!(many < few * 24 + Duration::from_millis(50), "{piece:?}: {few:?}, {many:?}");
    }
}
