//! What a secret looks like in a text: the names of things that are secret, and the forms of values that are, declared.
//! Going through a text, and putting something else in their place, is left to `stream.rs`.

use super::body::Body;

/// A secret that begins at the place that was looked at: so many bytes stay, so many go, and what belongs to `body` goes
/// with them.
pub struct Found {
    pub keep: usize,
    pub skip: usize,
    pub body: Option<Body>,
    /// By what it was known, for a person.
    pub what: String,
}

/// Words that make a name secret wherever they stand in it.
const SECRET_WORDS: [&str; 9] = [
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
    "APIKEY",
    "AUTHTOKEN",
];
/// The same, but that numbers stand for counts: language models have tokens too.
const TOKEN: &str = "TOKEN";
/// Every such word holds one of these, and few other names do.
const MARKS: [&[u8; 2]; 4] = [b"KE", b"SS", b"CR", b"TH"];
/// What stands before `KEY` in names of keys that are secret, in whatever case they are written.
const KEYS: [&str; 7] = ["API", "ACCESS", "SECRET", "PRIVATE", "AUTH", "SIGNING", "ENCRYPTION"];
/// Libraries whose variables are settings, `..._KEY` or not.
const SETTINGS: [&str; 12] =
    ["NCCL", "FI", "RDMAV", "IBV", "OMPI", "PMI", "PMIX", "PRTE", "UCX", "SLURM", "CUDA", "OFI"];

/// Beginnings of values that are secret by themselves, and how many characters follow at least.
const VALUES: [(&str, usize); 17] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 20),
    ("nvapi-", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("AIza", 30),
    ("dckr_pat_", 16),
];
/// Ids of keys of AWS: exactly so many capitals and digits follow.
const KEY_IDS: [&str; 2] = ["AKIA", "ASIA"];
const KEY_ID: usize = 16;

const LONGEST_NAME: usize = 128;
/// A name, what parts it from its value, and as much of the value as must be seen.
pub const LOOKS_AHEAD: usize = 768;
/// So much of what lies before is looked at.
pub const LOOKS_BACK: usize = 16;

/// What begins at the first byte of `rest`, where that is the beginning of something.
pub fn at(before: &[u8], rest: &[u8]) -> Option<Found> {
    let first = *rest.first()?;
    if !may_begin(before.last().copied().unwrap_or(b' '), first) {
        return None;
    }
    match first {
        b'-' => private_key(rest),
        b':' => userinfo(rest),
        _ => value(rest).or_else(|| bearer(rest)).or_else(|| named(before, rest)),
    }
}

/// Whether anything can begin at a byte, which stands behind another.
pub fn may_begin(before: u8, byte: u8) -> bool {
    matches!(byte, b'-' | b':') || (byte.is_ascii_alphabetic() && !is_word(before))
}

/// Whether a name is that of something secret; and if so, whether a number may stand for it.
pub fn is_secret_name(name: &str) -> Option<bool> {
    if !name.as_bytes().windows(2).any(|two| MARKS.iter().any(|mark| two.eq_ignore_ascii_case(*mark))) {
        return None;
    }
    let words = words(name.as_bytes());
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    if SECRET_WORDS.iter().any(|word| has(word)) {
        return Some(false);
    }
    let pair = |one: &str, other: &str| words.windows(2).any(|two| two[0] == one && two[1] == other);
    if KEYS.iter().any(|kind| pair(kind, "KEY")) {
        return Some(false);
    }
    let is_setting = words.first().is_some_and(|first| SETTINGS.contains(&first.as_str()));
    let is_variable = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_variable && !is_setting && words.len() > 1 && words.last().is_some_and(|last| last == "KEY") {
        return Some(false);
    }
    has(TOKEN).then_some(true)
}

/// Whether a value that goes by a name is a secret.
pub fn is_secret_pair(name: &str, value: &str) -> bool {
    let value = value.as_bytes();
    is_secret_name(name).is_some_and(|may_count| !(tells_nothing(value) || may_count && is_number(value)))
}

/// The words of a name, in capitals: parted by what is no letter or digit, and where capitals begin.
fn words(name: &[u8]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = b'_';
    for byte in name {
        if byte.is_ascii_alphanumeric() {
            let begins =
                !last.is_ascii_alphanumeric() || (last.is_ascii_lowercase() && byte.is_ascii_uppercase());
            match words.last_mut() {
                Some(word) if !begins => word.push(char::from(byte.to_ascii_uppercase())),
                _ => words.push(char::from(byte.to_ascii_uppercase()).to_string()),
            }
        }
        last = *byte;
    }
    words
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn in_value(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn count(bytes: &[u8], class: fn(u8) -> bool, most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| class(**byte)).count()
}

fn value(rest: &[u8]) -> Option<Found> {
    for prefix in KEY_IDS {
        let Some(more) = rest.strip_prefix(prefix.as_bytes()) else { continue };
        let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        if count(more, upper, KEY_ID) == KEY_ID && !more.get(KEY_ID).copied().is_some_and(is_word) {
            let (skip, what) = (prefix.len() + KEY_ID, format!("{prefix}..."));
            return Some(Found { keep: 0, skip, body: None, what });
        }
    }
    for (prefix, least) in VALUES {
        let Some(more) = rest.strip_prefix(prefix.as_bytes()) else { continue };
        // Words of a language have no digits.
        let seen = count(more, in_value, 64);
        if seen >= least && more[..seen].iter().any(u8::is_ascii_digit) {
            let (skip, body) = (prefix.len(), Some(Body::Of(in_value)));
            return Some(Found { keep: 0, skip, body, what: format!("{prefix}...") });
        }
    }
    // A web token: two parts that begin as JSON does, and its signature.
    let part = |bytes: &[u8]| count(bytes, in_value, 512);
    if rest.starts_with(b"eyJ") {
        let first = part(rest);
        let next = rest.get(first + 1..).unwrap_or_default();
        if first >= 10 && rest.get(first) == Some(&b'.') && next.starts_with(b"eyJ") {
            let body = Some(Body::Of(in_token));
            return Some(Found { keep: 0, skip: first, body, what: "a web token".to_owned() });
        }
    }
    None
}

fn bearer(rest: &[u8]) -> Option<Found> {
    const WORD: usize = "bearer".len();
    if !rest.get(..WORD)?.eq_ignore_ascii_case(b"bearer") {
        return None;
    }
    let blanks = count(&rest[WORD..], |byte| byte == b' ', 4);
    let token = &rest[WORD + blanks..];
    let seen = count(token, in_token, 64);
    let is_one = blanks > 0 && seen >= 12 && token[..seen].iter().any(u8::is_ascii_digit);
    let body = Some(Body::Of(in_token));
    is_one.then(|| Found { keep: WORD + blanks, skip: 0, body, what: "Bearer ...".to_owned() })
}

fn private_key(rest: &[u8]) -> Option<Found> {
    let begin = b"-----BEGIN ";
    let kind = rest.strip_prefix(begin)?;
    let end = kind.windows(16).take(48).position(|window| window == b"PRIVATE KEY-----")?;
    if !kind[..end].iter().all(|byte| byte.is_ascii_uppercase() || *byte == b' ') {
        return None;
    }
    let skip = begin.len() + end + 16;
    Some(Found { keep: 0, skip, body: Some(Body::Key { ending: false }), what: "a private key".to_owned() })
}

/// `://user:password@`
fn userinfo(rest: &[u8]) -> Option<Found> {
    let user = rest.strip_prefix(b"://")?;
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/@\"'<>\\,;".contains(&byte);
    let name = count(user, |byte| byte.is_ascii_graphic() && !b":/@\"'<>\\,;".contains(&byte), 128);
    let password = user.get(name..)?.strip_prefix(b":")?;
    let length = count(password, plain, 512);
    if length == 0 || password.get(length) != Some(&b'@') || password.starts_with(b"[redacted") {
        return None;
    }
    Some(Found { keep: 3 + name + 1, skip: length, body: None, what: "a password in an address".to_owned() })
}

/// `NAME=value`, `"name": "value"`, `--name value`, and the like.
fn named(before: &[u8], rest: &[u8]) -> Option<Found> {
    // In an escaped text a line's end is a letter.
    let escape = usize::from(before.ends_with(b"\\") && matches!(rest.first(), Some(b'n' | b't' | b'r')));
    let in_name = |byte: u8| is_word(byte) || byte == b'-' || byte == b'.';
    let length = count(&rest[escape..], in_name, LONGEST_NAME + 1);
    let name_end = escape + length;
    if length == 0
        || length > LONGEST_NAME
        || !matches!(rest.get(name_end)?, b'=' | b':' | b'"' | b'\'' | b'\\' | b' ')
    {
        return None;
    }
    let name = std::str::from_utf8(&rest[escape..name_end]).ok()?;
    let may_count = is_secret_name(name)?;
    let is_flag = before.ends_with(b"--");
    let mut at = name_end + quote(&rest[name_end..]).map_or(0, |(slashes, _)| slashes + 1);
    let blanks =
        |at: usize| count(rest.get(at..).unwrap_or_default(), |byte| byte == b' ' || byte == b'\t', 4);
    let parted = at;
    at += blanks(at);
    let by = match rest.get(at)? {
        b'=' | b':' => {
            let by = rest[at];
            at += 1 + usize::from(matches!(rest.get(at + 1), Some(b'=' | b'>')));
            by
        }
        // The next word of a line, or of a list.
        b',' if is_flag && parted > name_end => {
            at += 1;
            b' '
        }
        _ if is_flag && parted == name_end && at > parted => b' ',
        _ => return None,
    };
    at += blanks(at);
    let tail = rest.get(at..)?;
    let (body, opens) = match quote(tail) {
        Some((slashes, mark)) => (Body::Quoted { mark, slashes }, slashes + 1),
        None => (unquoted(before, by), 0),
    };
    at += opens;
    let mut seen = body.seen(rest.get(at..)?, 64);
    if let Body::Line = body {
        seen = seen.split(u8::is_ascii_whitespace).next()?;
    }
    // The mark may be the one that ends what the name stands in.
    let may_be_an_end = opens > 0 && parted == name_end;
    if may_be_an_end && seen.first().is_none_or(|first| b",:]} \t".contains(first)) {
        return None;
    }
    if tells_nothing(seen) || (may_count && is_number(seen)) {
        return None;
    }
    // After a colon a word of prose may stand.
    let is_prose = by == b':' && opens == 0 && name.eq_ignore_ascii_case("token");
    if is_prose && (seen.len() < 8 || !seen.iter().any(u8::is_ascii_digit)) {
        return None;
    }
    Some(Found { keep: at, skip: 0, body: Some(body), what: name.to_owned() })
}

/// A quotation mark, behind so many backslashes.
fn quote(bytes: &[u8]) -> Option<(usize, u8)> {
    let slashes = count(bytes, |byte| byte == b'\\', 16);
    bytes.get(slashes).copied().filter(|byte| matches!(byte, b'"' | b'\'')).map(|mark| (slashes, mark))
}

/// How far a value goes that no quotation mark opens: to the end of what the whole of it stands in, if that can be told.
fn unquoted(before: &[u8], by: u8) -> Body {
    let before = before.strip_suffix(b"--").unwrap_or(before);
    if by == b'=' {
        if let Some((mark @ (b'"' | b'\''), head)) = before.split_last() {
            let slashes = head.iter().rev().take_while(|byte| **byte == b'\\').count();
            return Body::Quoted { mark: *mark, slashes };
        }
        let begins_line = before.last().is_none_or(|byte| matches!(byte, b'\n' | 0));
        if begins_line || before.ends_with(b"\nexport ") || before == b"export " {
            return Body::Line;
        }
    }
    Body::Plain { in_list: by == b':' }
}

/// What stands for a value without being one.
fn tells_nothing(value: &[u8]) -> bool {
    const NONE: [&str; 6] = ["null", "none", "nil", "true", "false", "unset"];
    let is_none = |word: &str| value.eq_ignore_ascii_case(word.as_bytes());
    let is_reference = match value {
        [b'$', b'{', name @ .., b'}'] | [b'$', name @ ..] => name.iter().all(|byte| is_word(*byte)),
        _ => value.starts_with(b"env:"),
    };
    value.is_empty()
        || is_reference
        || value.starts_with(b"[redacted")
        || value.iter().all(|byte| *byte == b'*')
        || NONE.iter().any(|word| is_none(word))
}

fn is_number(value: &[u8]) -> bool {
    value.len() < 16 && value.iter().all(|byte| byte.is_ascii_digit() || b".,eE+-%".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_makes_a_name_secret_does() {
        for word in SECRET_WORDS {
            assert_eq!(is_secret_name(word), Some(false), "{word}");
            assert_eq!(is_secret_name(&format!("my-{}-x", word.to_lowercase())), Some(false), "{word}");
        }
        assert_eq!(is_secret_name("HF_TOKEN"), Some(true));
        for kind in KEYS {
            assert_eq!(is_secret_name(&format!("{kind}_KEY_ID")), Some(false), "{kind}");
        }
        for name in ["KEY", "sort_key", "NCCL_X_KEY", "TOKENS", "tokenizer", "threads", "class", "across"] {
            assert_eq!(is_secret_name(name), None, "{name}");
        }
    }
}
