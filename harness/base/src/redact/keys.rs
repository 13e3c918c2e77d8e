//! Keys and hashes that are known by what stands around them: blocks between `BEGIN ... KEY` and `END`, the parts of a key
//! in JSON, hashes of passwords, and keys behind a label of their own.

use super::body::{Body, blank_of_key};
use super::labels::label;
use super::shapes::{Found, blank_lines, count, is_no_word, quote};
use super::{escapes, names};

/// Of what stands between `BEGIN` and the hyphens behind it.
const LONGEST_KIND: usize = 72;

/// `-----BEGIN RSA PRIVATE KEY-----`, `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----`, `-----BEGIN OpenVPN Static key V1-----`
pub(super) fn block(rest: &[u8]) -> Option<Found> {
    let hyphens = count(rest, |byte| byte == b'-', 5);
    let mut at = hyphens + usize::from(hyphens == 4 && rest.get(hyphens) == Some(&b' '));
    if hyphens < 4 || !rest[at..].starts_with(b"BEGIN") {
        return None;
    }
    at += "BEGIN".len();
    let mut kind = Vec::new();
    while !rest.get(at..)?.starts_with(&b"-----"[..hyphens]) {
        let blank = blank_of_key(&rest[at..]);
        let letter = rest.get(at).copied().filter(|letter| blank > 0 || letter.is_ascii_alphanumeric())?;
        kind.push(if blank > 0 { b' ' } else { letter.to_ascii_uppercase() });
        at += blank.max(1);
        if kind.len() > LONGEST_KIND {
            return None;
        }
    }
    let has = |wanted: &[u8]| kind.split(|byte| *byte == b' ').any(|word| word == wanted);
    if !has(b"KEY") || has(b"PUBLIC") {
        return None;
    }
    at += hyphens;
    // The one line of it that holds more than a key does.
    let line = at + escapes::line_break(&rest[at..]);
    let comment = line + label(&rest[line..]);
    if line > at && rest[comment..].starts_with(b"Comment: ") {
        let ends = |at: &usize| escapes::line_break(&rest[*at..]) > 0;
        at = (comment..rest.len().min(comment + LONGEST_COMMENT)).find(ends).unwrap_or(at);
    }
    let body = Some(Body::Key { ending: false });
    Some(Found { keep: 0, skip: at, body, what: "a private key".to_owned() })
}

const LONGEST_COMMENT: usize = 256;

/// A secret part of a JSON Web Key: `"d": "X"` near `"kty"` or another part that only keys have.
pub(super) fn json_secret(before: &[u8], rest: &[u8]) -> Option<Found> {
    const PARTS: [&[u8]; 7] = [b"dp", b"dq", b"qi", b"d", b"k", b"p", b"q"];
    const MARKS: [&[u8]; 6] = [b"kty", b"crv", b"AQAB", b"dp", b"dq", b"qi"];
    let (b'"' | b'\'') = before.last()? else { return None };
    let is_part = |part: &&[u8]| rest.starts_with(part) && quote(&rest[part.len()..]).is_some();
    let part = PARTS.into_iter().find(is_part)?;
    let mut at = part.len();
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    at += blank_lines(&rest[at..]);
    if rest.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    at += blank_lines(&rest[at..]);
    let (slashes, mark) = quote(&rest[at..])?;
    at += slashes + 1;
    let seen = count(&rest[at..], in_part_of_url, 64);
    if seen < 20 || !is_no_word(&rest[at..at + seen]) {
        return None;
    }
    let quoted = |word: &&[u8], text: &[u8]| {
        text.windows(word.len() + 2)
            .any(|window| is_mark(window[0]) && &window[1..=word.len()] == *word && ends_name(window))
    };
    let behind = &rest[at..rest.len().min(at + FAR_OF_MARKS)];
    let is_key = MARKS.iter().any(|word| quoted(word, before) || quoted(word, behind));
    let body = Some(Body::Quoted { mark, slashes });
    is_key.then(|| Found { keep: at, skip: 0, body, what: "a private key in JSON".to_owned() })
}

/// So far behind a part of a key its other parts may begin: those of 2,048 bits have 342 letters.
const FAR_OF_MARKS: usize = 800;

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

fn ends_name(window: &[u8]) -> bool {
    window.last().is_some_and(|last| is_mark(*last) || *last == b'\\')
}

fn in_part_of_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// How the hash of a password begins, as crypt(3) writes it, and the length of its last part.
const HASHES: [(&str, usize); 6] =
    [("$1$", 22), ("$apr1$", 22), ("$5$", 43), ("$6$", 86), ("$y$", 43), ("$gy$", 43)];
/// The same of which the last part may have any length from 20 on: what follows are parts between dollar signs.
const NAMED_HASHES: [&str; 15] = [
    "$argon2id$",
    "$argon2i$",
    "$argon2d$",
    "$scrypt$",
    "$pbkdf2",
    "$bcrypt-sha256$",
    "$7$",
    "$sha1$",
    "argon2$argon2",
    "pbkdf2_sha",
    "pbkdf2:sha",
    "scrypt:",
    "bcrypt_sha256$",
    "SCRAM-SHA-",
    "$P$",
];
const LEAST_OF_HASH: usize = 20;
/// What stands in braces before a hash in a directory of users.
const SCHEMES: [&str; 7] =
    ["SSHA}", "SSHA256}", "SSHA384}", "SSHA512}", "SMD5}", "PBKDF2-SHA256}", "PBKDF2-SHA512}"];

fn in_hash(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"./=+".contains(&byte)
}

pub(super) fn hash(before: &[u8], rest: &[u8]) -> Option<Found> {
    let in_part = |byte: u8| byte.is_ascii_alphanumeric() || b"./=".contains(&byte);
    let found = |skip| Found { keep: 0, skip, body: None, what: "the hash of a password".to_owned() };
    if before.ends_with(b"{")
        && let Some(scheme) = SCHEMES.iter().find(|scheme| rest.starts_with(scheme.as_bytes()))
    {
        let keep = scheme.len();
        let is_one = count(&rest[keep..], in_hash, LEAST_OF_HASH) == LEAST_OF_HASH;
        return is_one.then(|| Found { keep, body: Some(Body::Of(in_hash)), ..found(0) });
    }
    if let Some(begin) = NAMED_HASHES.iter().find(|begin| rest.starts_with(begin.as_bytes())) {
        return named_hash(&rest[begin.len()..]).map(|length| found(begin.len() + length));
    }
    // bcrypt writes the salt and the hash as one.
    if let [b'$', b'2', b'a' | b'b' | b'x' | b'y', b'$', b'0'..=b'9', b'0'..=b'9', b'$', more @ ..] = rest {
        let skip = rest.len() - more.len() + 53;
        return (count(more, in_part, 54) == 53).then(|| found(skip));
    }
    let (begin, length) = HASHES.iter().find(|(begin, _)| rest.starts_with(begin.as_bytes()))?;
    let mut at = begin.len();
    // Parameters, the salt, and the hash.
    for parts in 0..3 {
        let part = count(&rest[at..], in_part, 128);
        if rest.get(at + part) != Some(&b'$') {
            return (parts > 0 && part == *length).then(|| found(at + part));
        }
        at += part + 1;
    }
    None
}

/// Whether the scheme of a hash stands here: behind it the hash is looked for by itself.
pub(super) fn has_scheme(rest: &[u8]) -> bool {
    SCHEMES.iter().any(|scheme| rest.starts_with(scheme.as_bytes()))
}

/// The length of the parts behind the name of a hash: parameters, the salt, and the hash itself.
fn named_hash(rest: &[u8]) -> Option<usize> {
    const MOST: usize = 256;
    let length = count(rest, |byte| in_hash(byte) || b"$,:_-".contains(&byte), MOST);
    let all = &rest[..length];
    let last = all.rsplit(|byte| b"$:".contains(byte)).next()?;
    let is_one = last.len() >= LEAST_OF_HASH && is_no_word(last) && all.contains(&b'$');
    is_one.then_some(length)
}

/// Keys behind a label that says so, and the kind of their characters: of NVMe, and the shares of Vault's.
const LABELLED: [(&str, bool); 5] = [
    ("DHHC-1:", false),
    ("NVMeTLSkey-1:", false),
    ("Unseal Key ", true),
    ("Recovery Key ", true),
    ("operator unseal ", false),
];

pub(super) fn labelled(rest: &[u8]) -> Option<Found> {
    const LEAST: usize = 32;
    let (begin, is_numbered) = LABELLED.iter().find(|(begin, _)| rest.starts_with(begin.as_bytes()))?;
    let mut keep = begin.len();
    if *is_numbered {
        keep += count(&rest[keep..], |byte| byte.is_ascii_digit(), 2);
        keep += rest.get(keep..)?.strip_prefix(b": ").map(|_| 2)?;
    }
    let class = |byte: u8| in_hash(byte) || byte == b':';
    let seen = count(&rest[keep..], class, LEAST);
    let is_one = seen == LEAST && !names::is_placeholder(&rest[keep..keep + seen]);
    let what = format!("{begin}...");
    is_one.then_some(Found { keep, skip: 0, body: Some(Body::Of(class)), what })
}
