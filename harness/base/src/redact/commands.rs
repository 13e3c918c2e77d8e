//! Passwords that only the command or the file around them shows: `sshpass -p X`, `docker login -p X`, `curl -u user:X`,
//! and `login me password X` of a `.netrc`.

use super::body::Body;
use super::escapes;
use super::names::is_placeholder;
use super::shapes::{Found, blank_lines, is_no_word, quote};

/// A flag of a command that is given a password, at its first hyphen.
pub(super) fn flag(before: &[u8], rest: &[u8]) -> Option<Found> {
    if !before.last().is_some_and(|last| b" \t\"'".contains(last)) {
        return None;
    }
    let is_here = |(flag, ..): &&(&str, Value, &[&str])| {
        // A long one may be the beginning of another.
        let ends =
            |more: &[u8]| !more.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        rest.strip_prefix(flag.as_bytes()).is_some_and(|more| !flag.starts_with("--") || ends(more))
    };
    let mut flags = FLAGS.iter().filter(is_here).peekable();
    flags.peek()?;
    let command = command(before);
    let words = || command.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_'));
    let of_command =
        |programs: &[&str]| words().any(|word| programs.iter().any(|one| one.as_bytes() == word));
    let (flag, value, _) = flags.find(|(_, _, programs)| of_command(programs))?;
    let more = &rest[flag.len()..];
    let blanks =
        |at: usize| more.get(at..).unwrap_or_default().iter().take(8).take_while(|b| **b == b' ').count();
    let is_listed = matches!(before.last(), Some(b'"' | b'\''));
    let is_attached =
        more.first().is_some_and(u8::is_ascii_alphanumeric) || (!is_listed && quote(more).is_some());
    if *value == Value::Attached && !is_attached {
        return None;
    }
    // In a list the flag is quoted, and the next one is its value.
    let mut at = match quote(more) {
        Some((slashes, _)) if matches!(more.get(slashes + 1), Some(b',' | b' ')) => slashes + 2,
        _ => usize::from(more.first() == Some(&b'=')),
    };
    at += blanks(at);
    let open = |at: usize| word(more.get(at..).unwrap_or_default());
    let (mut body, opens) = open(at);
    at += opens;
    let parted = |sign: u8| body.seen(more.get(at..)?, 128).iter().position(|byte| *byte == sign);
    at += match value {
        Value::Word | Value::Attached => 0,
        Value::Login => parted(b':')? + 1,
        Value::Pair => parted(b'=')? + 1,
        Value::Account => parted(b'%')? + 1,
        Value::Source if more.get(at..)?.starts_with(b"pass:") => "pass:".len(),
        Value::Source => return None,
    };
    if opens == 0 {
        let (inner, opens) = open(at);
        body = inner;
        at += opens;
    }
    let seen = body.seen(more.get(at..)?, 128);
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

/// What stands before a place of its own command.
fn command(before: &[u8]) -> &[u8] {
    let ends = |at: &usize| b"\n;|&".contains(&before[*at]) || before[*at..].starts_with(b"\\n");
    let end = (0..before.len()).rev().find(ends);
    &before[end.map_or(0, |at| at + 1 + usize::from(before[at] == b'\\'))..]
}

/// A word of a shell, and the length of the mark that opens it.
fn word(rest: &[u8]) -> (Body, usize) {
    match quote(rest) {
        Some((slashes, mark)) => (Body::Quoted { mark, slashes }, slashes + 1),
        None => (Body::Plain { in_list: false }, 0),
    }
}

/// What a flag is given.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Word,
    /// A word without a blank before it: behind one they ask for it.
    Attached,
    /// A user, a colon, and the password.
    Login,
    /// `pass:X`, or where to read it.
    Source,
    /// `name=X`
    Pair,
    /// `user%X`
    Account,
}

/// Programs that take a user and a password as one word.
const SAMBA: &[&str] = &["smbclient", "rpcclient", "smbget"];
/// Programs that take a community, or the passwords of a user.
const SNMP: &[&str] = &[
    "snmpwalk",
    "snmpget",
    "snmpgetnext",
    "snmpbulkwalk",
    "snmpbulkget",
    "snmpset",
    "snmptable",
    "snmpstatus",
];

const WORD_BEHIND_P: &[&str] =
    &["zip", "unzip", "ipmitool", "sqlcmd", "bcp", "tsql", "mosquitto_pub", "mosquitto_sub", "ssh-keygen"];
const WORD_BEHIND_SMALL_P: &[&str] = &[
    "sshpass",
    "login",
    "racadm",
    "redfishtool",
    "ipmipower",
    "ipmi-sensors",
    "bmc-info",
    "mongosh",
    "mongodump",
    "mongorestore",
    "mongoexport",
    "mongoimport",
    "cqlsh",
    "useradd",
    "usermod",
];
const ATTACHED_TO_P: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
    "7z",
    "7za",
];

/// Flags, what each is given, and the words of the commands of which one stands before it. `--password` is known by its
/// name.
const FLAGS: [(&str, Value, &[&str]); 26] = [
    ("-pw", Value::Word, &["plink", "pscp"]),
    ("-P", Value::Word, WORD_BEHIND_P),
    ("-N", Value::Word, &["ssh-keygen"]),
    ("--pass", Value::Word, &["curl", "redis-cli"]),
    ("--oauth2-bearer", Value::Word, &["curl"]),
    ("-U", Value::Login, &["curl"]),
    ("-p", Value::Word, WORD_BEHIND_SMALL_P),
    ("-p", Value::Attached, ATTACHED_TO_P),
    ("-a", Value::Word, &["redis-cli"]),
    ("-u", Value::Login, &["curl"]),
    ("--user", Value::Login, &["curl", "etcdctl"]),
    ("--proxy-user", Value::Login, &["curl"]),
    ("--creds", Value::Login, &["skopeo", "podman", "buildah"]),
    ("--src-creds", Value::Login, &["skopeo"]),
    ("--dest-creds", Value::Login, &["skopeo"]),
    ("-w", Value::Word, &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"]),
    ("-passin", Value::Source, &["openssl"]),
    ("-passout", Value::Source, &["openssl"]),
    ("-pass", Value::Source, &["openssl"]),
    ("-k", Value::Word, &["openssl"]),
    ("--from-literal", Value::Pair, &["secret"]),
    ("-U", Value::Account, SAMBA),
    ("--user", Value::Account, SAMBA),
    ("-c", Value::Word, SNMP),
    ("-A", Value::Word, SNMP),
    ("-X", Value::Word, SNMP),
];

/// `echo X | docker login --password-stdin`
pub(super) fn piped(rest: &[u8]) -> Option<Found> {
    let mut at = [b"echo ".as_slice(), b"printf "].iter().find(|command| rest.starts_with(command))?.len();
    let ends = |at: &usize| rest[*at] == 0 || escapes::line_break(&rest[*at..]) > 0;
    let line = &rest[..(0..rest.len().min(MOST_OF_LINE)).find(ends).unwrap_or(rest.len().min(MOST_OF_LINE))];
    let pipe = line.iter().position(|byte| *byte == b'|')?;
    let reader = line[pipe..].split(|byte| b";&".contains(byte)).next()?;
    let reads = |word: &&&[u8]| reader.windows(word.len()).any(|window| window == **word);
    READERS.iter().find(reads)?;
    // Flags of `echo`, and the format of `printf`.
    loop {
        let word = &line[at.min(pipe)..pipe];
        let marks = quote(word).map_or(0, |(slashes, _)| slashes + 1);
        if !matches!(word.get(marks), Some(b'-' | b'%')) {
            break;
        }
        at += word.iter().position(|byte| *byte == b' ')? + 1;
    }
    let (body, opens) = word(&line[at..]);
    at += opens;
    let is_value = at < pipe && !is_placeholder(body.seen(&rest[at..], 128));
    is_value.then(|| Found { keep: at, skip: 0, body: Some(body), what: "a password in a pipe".to_owned() })
}

const MOST_OF_LINE: usize = 512;
/// What reads a password from its input.
const READERS: [&[u8]; 5] =
    [b"--password-stdin", b"--with-token", b"passwd --stdin", b"sudo -S", b"chpasswd"];

/// `sudo -S true <<< X`
pub(super) fn here_string(before: &[u8], rest: &[u8]) -> Option<Found> {
    let more = rest.strip_prefix(b"<<<")?;
    let command = command(before);
    if !READERS.iter().any(|reader| command.windows(reader.len()).any(|window| window == *reader)) {
        return None;
    }
    let blanks = more.iter().take(8).take_while(|byte| **byte == b' ').count();
    let (body, opens) = word(&more[blanks..]);
    let keep = "<<<".len() + blanks + opens;
    let is_value = !is_placeholder(body.seen(&rest[keep..], 128));
    let what = "a password in a here-string".to_owned();
    is_value.then_some(Found { keep, skip: 0, body: Some(body), what })
}

/// `htpasswd -b FILE USER X`, and `htpasswd -nb USER X`.
pub(super) fn htpasswd(rest: &[u8]) -> Option<Found> {
    const PROGRAM: &[u8] = b"htpasswd ";
    let line = rest.strip_prefix(PROGRAM)?;
    let (mut at, mut words, mut is_skipped) = (0, 0, false);
    let (mut has_password, mut before_password) = (false, 2);
    for _ in 0..MOST_WORDS * 2 {
        at += line[at..].iter().take(8).take_while(|byte| **byte == b' ').count();
        let (body, opens) = word(&line[at..]);
        let seen = body.seen(&line[at + opens..], 128);
        let is_flag = opens == 0 && seen.starts_with(b"-");
        if seen.is_empty() {
            return None;
        }
        if is_flag {
            has_password |= seen.contains(&b'b');
            before_password -= usize::from(before_password == 2 && seen.contains(&b'n'));
            // The cost, and the number of rounds.
            is_skipped = seen.ends_with(b"C") || seen.ends_with(b"r");
        } else if !std::mem::take(&mut is_skipped) {
            if words == before_password {
                let keep = PROGRAM.len() + at + opens;
                let is_value = has_password && !is_placeholder(seen);
                let what = "htpasswd -b ...".to_owned();
                return is_value.then_some(Found { keep, skip: 0, body: Some(body), what });
            }
            if seen.ends_with(b";") {
                return None;
            }
            words += 1;
        }
        at = line.len().min(at + opens + seen.len() + opens);
    }
    None
}

/// `pass=X` of a mount with cifs, on the line of its command or of `/etc/fstab`.
pub(super) fn cifs(before: &[u8], rest: &[u8]) -> Option<Found> {
    let more = rest.strip_prefix(b"pass=")?;
    let is_option = before.last().is_some_and(|last| b", \t\"'".contains(last));
    let is_cifs = command(before).windows(4).any(|word| word == b"cifs");
    let body = Body::Plain { in_list: true };
    let is_value = is_option && is_cifs && !is_placeholder(body.seen(more, 64));
    let what = "pass=".to_owned();
    is_value.then_some(Found { keep: what.len(), skip: 0, body: Some(body), what })
}

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
    let command = command(before);
    let is_called = [b"wandb".as_slice(), b"hf", b"huggingface-cli", b"auth", b"ngc", b"vault"];
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
    let (body, opens) = word(&more[blanks..]);
    let at = blanks + opens;
    let is_value = is_netrc && !is_placeholder(body.seen(&more[at..], 64));
    let keep = "password".len() + at;
    is_value.then(|| Found { keep, skip: 0, body: Some(body), what: "password".to_owned() })
}
