//! Passwords that only the command or the file around them shows: `sshpass -p X`, `docker login -p X`, `curl -u user:X`,
//! and `login me password X` of a `.netrc`.

use super::arguments::begins_command;
use super::body::Body;
use super::escapes;
use super::labels::below;
use super::names::is_placeholder;
use super::shapes::{Found, blank_lines, is_no_word, quote};

/// A flag of a command that is given a password, at its first hyphen.
pub(super) fn flag(before: &[u8], rest: &[u8]) -> Option<Found> {
    if !before.last().is_some_and(|last| b" \t\"'".contains(last)) {
        return None;
    }
    let mut flags = FLAGS.iter().filter_map(|row| Some((row, flag_length(row.0, row.1, rest)?))).peekable();
    flags.peek()?;
    let command = command(before);
    // Behind a label, and not the scheme of an address.
    let words: Vec<&[u8]> = command
        .split(|byte| !(byte.is_ascii_alphanumeric() || b"-_:".contains(byte)))
        .filter_map(|word| word.rsplit(|byte| *byte == b':').next())
        .collect();
    let has = |wanted: &str| words.contains(&wanted.as_bytes());
    let is_given = |one: &str| match one.strip_prefix('^') {
        Some(program) => begins(command, program.as_bytes()),
        None if one.contains(' ') => one.split(' ').all(has),
        None => has(one),
    };
    let of_command = |programs: &[&str]| programs.iter().any(|one| is_given(one));
    flags
        .filter(|((_, _, programs), _)| of_command(programs))
        .find_map(|((flag, value, _), length)| given(before, rest, flag, *value, length))
}

/// Whether a command is one of a program whose name is that of containers, too: `mongo -p X`, not `run --name mongo -p X`.
fn begins(command: &[u8], program: &[u8]) -> bool {
    let is_word = |at: &usize| {
        let more = command[*at..].strip_prefix(program);
        more.is_some_and(|more| more.first().is_some_and(|next| b" \\\"'".contains(next)))
    };
    (0..command.len()).filter(is_word).any(|at| begins_command(&command[..at]))
}

/// Whether a text is an address that is opened, with the one behind it: `27017:27017`, `127.0.0.1:80:8080/tcp`.
fn is_port(seen: &[u8]) -> bool {
    let digits = seen.strip_suffix(b"/tcp").or_else(|| seen.strip_suffix(b"/udp")).unwrap_or(seen);
    let is_number = |byte: &u8| byte.is_ascii_digit() || b".:-".contains(byte);
    digits.iter().all(is_number) && (seen.len() < 6 || digits.contains(&b':'))
}

/// The length of a flag, where it begins here. Those of one letter may be joined: `-su me:X`.
fn flag_length(flag: &str, value: Value, rest: &[u8]) -> Option<usize> {
    // A long one may be the beginning of another.
    let ends = |more: &[u8]| !more.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    if let Some(more) = rest.strip_prefix(flag.as_bytes()) {
        return (!flag.starts_with("--") || ends(more)).then_some(flag.len());
    }
    let ([b'-', letter], Value::Behind(_)) = (flag.as_bytes(), value) else { return None };
    let letters = rest.iter().skip(1).take(8).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_joined = rest.first() == Some(&b'-') && rest.get(letters) == Some(letter) && letters < 8;
    (is_joined && rest.get(letters + 1) == Some(&b' ')).then_some(letters + 1)
}

/// The password that a flag of such a length is given.
fn given(before: &[u8], rest: &[u8], flag: &str, value: Value, length: usize) -> Option<Found> {
    let more = &rest[length..];
    let is_listed = matches!(before.last(), Some(b'"' | b'\''));
    let is_attached =
        more.first().is_some_and(u8::is_ascii_alphanumeric) || (!is_listed && quote(more).is_some());
    if value == Value::Attached && !is_attached {
        return None;
    }
    // In a list the flag is quoted, and the next one is its value.
    let mut at = match quote(more) {
        Some((slashes, _)) if matches!(more.get(slashes + 1), Some(b',' | b' ')) => slashes + 2,
        _ => usize::from(more.first() == Some(&b'=')),
    };
    at += blanks(more, at);
    let open = |at: usize| word(more.get(at..).unwrap_or_default());
    let (mut body, opens) = open(at);
    at += opens;
    at += match value {
        Value::Word | Value::Attached => 0,
        Value::Behind(sign) => {
            let pair = body.seen(more.get(at..)?, 128);
            let user = pair.iter().position(|byte| *byte == sign)?;
            // A key in the place of a user, and no password.
            let is_key = user + 1 == pair.len() && user >= 16 && pair[0] != b'$' && is_no_word(&pair[..user]);
            if is_key { 0 } else { user + 1 }
        }
        Value::Source if more.get(at..)?.starts_with(b"pass:") => "pass:".len(),
        Value::Source => return None,
    };
    if opens == 0 {
        let (inner, opens) = open(at);
        body = inner;
        at += opens;
    }
    let seen = body.seen(more.get(at..)?, 128);
    let what = format!("{flag} ...");
    let is_flag = seen.starts_with(b"--");
    (!is_placeholder(seen) && !is_port(seen) && !is_flag).then(|| Found {
        keep: length + at,
        skip: 0,
        body: Some(body),
        what,
    })
}

/// How many blanks stand there.
pub(super) fn blanks(rest: &[u8], at: usize) -> usize {
    rest.get(at..).unwrap_or_default().iter().take(8).take_while(|byte| **byte == b' ').count()
}

/// What stands before a place of its own command.
pub(super) fn command(before: &[u8]) -> &[u8] {
    let ends = |at: &usize| b"\n;|&".contains(&before[*at]) || before[*at..].starts_with(b"\\n");
    let end = (0..before.len()).rev().find(ends);
    &before[end.map_or(0, |at| at + 1 + usize::from(before[at] == b'\\'))..]
}

/// A word of a shell, and the length of the mark that opens it.
pub(super) fn word(rest: &[u8]) -> (Body, usize) {
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
    /// What stands behind a sign: `user:X`, `name=X`, `user%X`.
    Behind(u8),
    /// `pass:X`, or where to read it.
    Source,
}

/// Programs that take a user and a password as one word.
const SAMBA: &[&str] =
    &["smbclient", "rpcclient", "smbget", "smbcacls", "samba-tool", "net", "winexe", "wbinfo"];
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
    "snmptrap",
    "snmpinform",
    "snmpdf",
];
const LDAP: &[&str] =
    &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd", "ldapcompare"];
const HTTPIE: &[&str] = &["http", "https", "xh", "xhs"];
/// Programs that take the key of a BMC.
const IPMI: &[&str] = &[
    "ipmitool",
    "ipmipower",
    "ipmi-power",
    "ipmiconsole",
    "ipmi-console",
    "ipmi-chassis",
    "ipmi-config",
    "ipmi-sensors",
    "ipmi-sel",
    "ipmi-fru",
];
const PDF: &[&str] = &["pdftotext", "pdftoppm", "pdftocairo", "pdfinfo", "pdfimages"];

const WORD_BEHIND_P: &[&str] = &[
    "zip",
    "unzip",
    "ipmitool",
    "sqlcmd",
    "bcp",
    "tsql",
    "isql",
    "osql",
    "knife",
    "mosquitto_pub",
    "mosquitto_sub",
    "ssh-keygen",
    "ipmiutil",
    "apptainer key",
    "singularity key",
];
const WORD_BEHIND_SMALL_P: &[&str] = &[
    "sshpass",
    "login",
    "racadm",
    "redfishtool",
    "ilorest",
    "ipmipower",
    "ipmi-power",
    "ipmiconsole",
    "ipmi-console",
    "ipmi-chassis",
    "ipmi-config",
    "ipmi-sensors",
    "ipmi-sel",
    "ipmi-fru",
    "bmc-info",
    "bmc-config",
    "bmc-device",
    "^mongo",
    "mongo -u",
    "mongo --username",
    "mongosh",
    "mongodump",
    "mongorestore",
    "mongoexport",
    "mongoimport",
    "cqlsh",
    "cypher-shell",
    "beeline",
    "rabbitmqadmin",
    "elasticsearch-users",
    "useradd",
    "usermod",
    "twine",
    "nuget",
    "yt-dlp",
    "youtube-dl",
    "ncftp",
    "ncftpput",
    "ncftpget",
    "rdesktop",
    "steghide",
    "aescrypt",
    "doveadm",
    "hash-password",
    "check_mysql",
    "landscape-config",
    "poetry publish",
    "saa -u",
    "sum -u",
];
const ATTACHED_TO_P: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlcheck",
    "mysqlshow",
    "mysqlslap",
    "mysqlbinlog",
    "mysqlsh",
    "mycli",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
    "mariadb-import",
    "mariadb-check",
    "7z",
    "7za",
    "7zr",
    "7zz",
    "rar",
    "unrar",
];

/// Flags, what each is given, and the words of the commands of which one stands before it, or all where these are several;
/// `^a`: the command begins with it. `--password` is known by its name.
const FLAGS: &[(&str, Value, &[&str])] = &[
    ("-pw", Value::Word, &["plink", "pscp", "psftp", "putty", "addprinc", "cpw", "change_password"]),
    ("-P", Value::Word, WORD_BEHIND_P),
    ("-N", Value::Word, &["ssh-keygen"]),
    ("--pass", Value::Word, &["curl", "redis-cli"]),
    ("--oauth2-bearer", Value::Word, &["curl"]),
    ("-U", Value::Behind(b':'), &["curl"]),
    ("-p", Value::Word, WORD_BEHIND_SMALL_P),
    ("-p", Value::Attached, ATTACHED_TO_P),
    ("-hp", Value::Attached, &["rar"]),
    ("-a", Value::Word, &["redis-cli", "bearer"]),
    ("-a", Value::Behind(b':'), HTTPIE),
    ("-a", Value::Behind(b':'), &["check_http"]),
    ("-a", Value::Behind(b'%'), &["wbinfo"]),
    ("--auth", Value::Behind(b':'), HTTPIE),
    ("--authenticate", Value::Behind(b'%'), &["wbinfo"]),
    ("-auth", Value::Behind(b':'), &["splunk", "jenkins-cli"]),
    ("-u", Value::Behind(b':'), &["curl"]),
    ("-u", Value::Behind(b','), &["lftp"]),
    ("--user", Value::Behind(b','), &["lftp"]),
    ("--user", Value::Behind(b':'), &["curl", "etcdctl"]),
    ("--proxy-user", Value::Behind(b':'), &["curl"]),
    ("--proxy-auth", Value::Behind(b':'), &["ncat"]),
    ("-E", Value::Behind(b':'), &["curl"]),
    ("--cert", Value::Behind(b':'), &["curl"]),
    ("-b", Value::Behind(b'='), &["curl"]),
    ("--cookie", Value::Behind(b'='), &["curl"]),
    ("--creds", Value::Behind(b':'), &["skopeo", "podman", "buildah", "crictl"]),
    ("--user", Value::Behind(b':'), &["ctr pull", "ctr push"]),
    ("-u", Value::Behind(b':'), &["ctr pull", "ctr push"]),
    ("--auth", Value::Word, &["crictl"]),
    ("--src-creds", Value::Behind(b':'), &["skopeo"]),
    ("--dest-creds", Value::Behind(b':'), &["skopeo"]),
    ("-w", Value::Word, LDAP),
    ("-w", Value::Word, &["kadmin", "dsconf", "ipa-client-install"]),
    ("-s", Value::Word, &["ldappasswd", "slappasswd", "check_nt"]),
    ("-passin", Value::Source, &["openssl"]),
    ("-passout", Value::Source, &["openssl"]),
    ("-pass", Value::Source, &["openssl"]),
    ("-k", Value::Word, &["openssl", "openai"]),
    ("-k", Value::Word, IPMI),
    ("-k", Value::Word, &["ossutil", "ossutil64", "obsutil"]),
    ("-s", Value::Word, &["coscmd"]),
    ("-y", Value::Word, &["ipmitool"]),
    ("-K", Value::Word, &["openssl", "ccrypt", "swift", "pk12util"]),
    ("-W", Value::Word, &["pk12util"]),
    ("-hmac", Value::Word, &["openssl"]),
    ("-macopt", Value::Behind(b':'), &["openssl"]),
    ("-emp", Value::Word, &["mvn"]),
    ("-ep", Value::Word, &["mvn"]),
    ("-t", Value::Word, &["doctl", "influx", "codecov", "k3s", "rke2", "auth login", "^anaconda"]),
    ("-r", Value::Word, &["gitlab-runner", "SUSEConnect"]),
    ("-a", Value::Word, &["ldappasswd"]),
    ("-v", Value::Word, &["iscsiadm password", "glab variable"]),
    ("-C", Value::Word, &["check_snmp"]),
    ("-xp", Value::Word, &["sendemail", "sendEmail"]),
    ("-ap", Value::Word, &["swaks"]),
    ("-upw", Value::Word, PDF),
    ("-opw", Value::Word, PDF),
    ("--key", Value::Word, &["rados", "rbd", "ceph", "s3curl"]),
    ("-b", Value::Word, &["gh secret"]),
    ("--body", Value::Word, &["secret"]),
    ("--value", Value::Word, &["put-parameter", "keyvault secret", "glab variable"]),
    ("--plaintext", Value::Word, &["hash-password"]),
    ("--http-restricted-api", Value::Behind(b'='), &["tritonserver"]),
    ("--grpc-restricted-protocol", Value::Behind(b'='), &["tritonserver"]),
    ("-id", Value::Word, &["vault token"]),
    ("--base64", Value::Word, &["secret-set-value"]),
    ("--from-literal", Value::Behind(b'='), &["secret"]),
    ("-U", Value::Behind(b'%'), SAMBA),
    ("--user", Value::Behind(b'%'), SAMBA),
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
const READERS: [&[u8]; 22] = [
    b"--password-stdin",
    b"--with-token",
    b"--passphrase-fd 0",
    b"passwd --stdin",
    b"passwd -stdin",
    b"smbpasswd -s",
    b"| passwd ",
    b"| sudo passwd ",
    b"sudo -S",
    b"chpasswd",
    b"kinit ",
    b"cryptsetup ",
    b"| su ",
    b"--passphrase-fd=0",
    b"password_stdin",
    b"devops login",
    b"create secret ",
    b"gh secret set",
    b"secrets create ",
    b"versions add ",
    b"docker secret create ",
    b"podman secret create ",
];

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

/// `htpasswd -b FILE USER X`, `mosquitto_passwd -b FILE USER X`, and `htpasswd -nb USER X`.
pub(super) fn htpasswd(rest: &[u8]) -> Option<Found> {
    const PROGRAMS: [&[u8]; 2] = [b"htpasswd ", b"mosquitto_passwd "];
    let program = PROGRAMS.into_iter().find(|program| rest.starts_with(program))?;
    let line = &rest[program.len()..];
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
                let keep = program.len() + at + opens;
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

/// `pass=X` or `user=me%X` of a mount with cifs, on the line of its command or of `/etc/fstab`.
pub(super) fn cifs(before: &[u8], rest: &[u8]) -> Option<Found> {
    const OPTIONS: [&[u8]; 3] = [b"pass=", b"user=", b"username="];
    let option = OPTIONS.into_iter().find(|option| rest.starts_with(option))?;
    let is_option = before.last().is_some_and(|last| b", \t\"'".contains(last));
    let is_cifs = command(before).windows(4).any(|word| word == b"cifs");
    if !is_option || !is_cifs {
        return None;
    }
    let body = Body::Plain { in_list: true };
    let seen = body.seen(&rest[option.len()..], 128);
    let is_user = option != OPTIONS[0];
    let user = if is_user { seen.iter().position(|byte| *byte == b'%')? + 1 } else { 0 };
    let what = String::from_utf8_lossy(option).into_owned();
    let keep = option.len() + user;
    (!is_placeholder(&seen[user..])).then_some(Found { keep, skip: 0, body: Some(body), what })
}

/// The users of `chpasswd` of cloud-init, a `user:X` each: `chpasswd: {list: "me:X"}`.
pub(super) fn users(before: &[u8], rest: &[u8]) -> Option<Found> {
    const FIELD: &[u8] = b"list";
    const GROUP: &[u8] = b"chpasswd";
    const NEAR: usize = 64;
    rest.strip_prefix(FIELD)?;
    let near = &before[before.len().saturating_sub(NEAR)..];
    if !near.windows(GROUP.len()).any(|word| word == GROUP) {
        return None;
    }
    let mut at = FIELD.len();
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    at += blanks(rest, at);
    if rest.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    at += blanks(rest, at);
    let body = if let Some(below) = below(before, &rest[at..]) {
        at += below.at;
        Body::Block { indent: below.indent, is_labelled: below.is_labelled }
    } else {
        let (slashes, mark) = quote(&rest[at..])?;
        at += slashes + 1;
        Body::Quoted { mark, slashes }
    };
    let is_value = !is_placeholder(body.seen(&rest[at..], 64));
    is_value.then(|| Found { keep: at, skip: 0, body: Some(body), what: "chpasswd".to_owned() })
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
