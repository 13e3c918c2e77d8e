//! Passwords that only the command or the file around them shows: `sshpass -p X`, `docker login -p X`, `curl -u user:X`,
//! and `login me password X` of a `.netrc`.

use super::body::Body;
use super::names::is_placeholder;
use super::shapes::{Found, blank_lines, is_no_word, quote};

/// A flag of a command that is given a password, at its first hyphen.
pub(super) fn flag(before: &[u8], rest: &[u8]) -> Option<Found> {
    if !before.last().is_some_and(|last| b" \t\"'".contains(last)) {
        return None;
    }
    let (flag, is_user) = FLAGS.iter().find(|(flag, _)| rest.starts_with(flag.as_bytes()))?;
    let more = &rest[flag.len()..];
    let command = before.rsplit(|byte| b"\n;|&".contains(byte)).next().unwrap_or_default();
    let mut words = command.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_'));
    let is_attached = more.first().is_some_and(u8::is_ascii_alphanumeric);
    let is_given = words.any(|word| match (word, *is_user) {
        (b"curl", true) => true,
        (b"redis-cli", false) => *flag == "-a",
        (b"sshpass" | b"login", false) => *flag == "-p",
        // A blank behind theirs means that they ask for it.
        (b"mysql" | b"mysqldump" | b"mysqladmin" | b"mariadb", false) => *flag == "-p" && is_attached,
        _ => false,
    });
    if !is_given {
        return None;
    }
    let blanks =
        |at: usize| more.get(at..).unwrap_or_default().iter().take(8).take_while(|b| **b == b' ').count();
    // In a list the flag is quoted, and the next one is its value.
    let mut at = match quote(more) {
        Some((slashes, _)) if matches!(more.get(slashes + 1), Some(b',' | b' ')) => slashes + 2,
        _ => usize::from(more.first() == Some(&b'=')),
    };
    at += blanks(at);
    let (body, opens) = match quote(more.get(at..)?) {
        Some((slashes, mark)) => (Body::Quoted { mark, slashes }, slashes + 1),
        None => (Body::Plain { in_list: false }, 0),
    };
    at += opens;
    let mut seen = body.seen(more.get(at..)?, 128);
    if *is_user {
        let name = seen.iter().position(|byte| *byte == b':')? + 1;
        seen = &seen[name..];
        at += name;
    }
    let is_port = seen.len() < 6 && seen.iter().all(u8::is_ascii_digit);
    let what = format!("{flag} ...");
    let is_flag = seen.starts_with(b"--");
    (!is_placeholder(seen) && !is_port && !is_flag).then(|| Found {
        keep: flag.len() + at,
        skip: 0,
        body: Some(body),
        what,
    })
}

/// Flags, and whether a user stands before the password. `--password` is known by its name.
const FLAGS: [(&str, bool); 5] =
    [("-p", false), ("-a", false), ("-u", true), ("--user", true), ("--proxy-user", true)];

/// `wandb login X`, and `login("X")` of Python.
pub(super) fn login(before: &[u8], rest: &[u8]) -> Option<Found> {
    let more = rest.strip_prefix(b"login")?;
    let is_token = |text: &[u8]| {
        text.len() >= 16
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
            && is_no_word(text)
    };
    let found = |keep: usize, body: Body| {
        let keep = "login".len() + keep;
        Some(Found { keep, skip: 0, body: Some(body), what: "login ...".to_owned() })
    };
    if more.first() == Some(&b'(') {
        let mut at = 1 + blank_lines(&more[1..]);
        at += if more[at..].starts_with(b"key=") { 4 } else { 0 };
        let (slashes, mark) = quote(&more[at..])?;
        at += slashes + 1;
        let body = Body::Quoted { mark, slashes };
        return if is_token(body.seen(&more[at..], 64)) { found(at, body) } else { None };
    }
    let command = before.rsplit(|byte| b"\n;|&".contains(byte)).next().unwrap_or_default();
    let is_called = [b"wandb".as_slice(), b"hf", b"huggingface-cli", b"auth", b"ngc"];
    if !is_called.iter().any(|word| command.trim_ascii_end().ends_with(word)) {
        return None;
    }
    let body = Body::Plain { in_list: false };
    let mut at = 0;
    for _ in 0..MOST_WORDS {
        at += more[at..].iter().take(8).take_while(|byte| **byte == b' ').count();
        let word = body.seen(&more[at..], 128);
        if at > 0 && is_token(word) && !word.starts_with(b"-") {
            return found(at, body);
        }
        at += word.len();
    }
    None
}

/// Flags and their values before the key.
const MOST_WORDS: usize = 6;

/// `password X` behind `login NAME` or `machine NAME`.
pub(super) fn netrc(before: &[u8], rest: &[u8]) -> Option<Found> {
    let more = rest.strip_prefix(b"password")?;
    let blanks = more.iter().take(8).take_while(|byte| byte.is_ascii_whitespace()).count();
    let word_before = |text: &'_ [u8]| -> (usize, usize) {
        let end = text.trim_ascii_end().len();
        let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        (start, end)
    };
    let (name, end) = word_before(before);
    let (key, key_end) = word_before(&before[..name]);
    let is_netrc = blanks > 0
        && end > name
        && [b"login".as_slice(), b"machine", b"account"]
            .iter()
            .any(|word| before[key..key_end].ends_with(word));
    let body = Body::Plain { in_list: false };
    let is_value = is_netrc && !is_placeholder(body.seen(&more[blanks..], 64));
    let keep = "password".len() + blanks;
    is_value.then(|| Found { keep, skip: 0, body: Some(body), what: "password".to_owned() })
}
