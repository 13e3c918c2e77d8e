//! What a secret looks like in a text: values behind the names of things that are secret (`names.rs`), and those that are
//! secret by themselves (`tokens.rs`).
//! Going through a text, and putting something else in their place, is left to `stream.rs`.

use super::body::Body;
use super::decoded::continued_line;
use super::labels::below;
use super::names::{
    is_header, is_login_name, is_number, is_path, is_placeholder, is_secret_name, is_signature, is_variable,
    may_be_defined, may_be_folder, may_be_key,
};
use super::values::{
    annotation, compound, entry_of_secret, escaped_separator, field, is_named_key, is_type, login_pair,
    loosely, names_pair, opening, opens_group, opens_list, opens_subscript, paired, string_prefix, tag,
};
use super::{commands, escapes, keys, letters, tokens, wide};

/// A secret that begins at the place that was looked at: so many bytes stay, so many go, and what belongs to `body` goes
/// with them.
pub(super) struct Found {
    pub keep: usize,
    pub skip: usize,
    pub body: Option<Body>,
    /// By what it was known, for a person.
    pub what: String,
}

const LONGEST_NAME: usize = 128;
/// A name, what parts it from its value, and as much of the value as must be seen.
pub(super) const LOOKS_AHEAD: usize = 1024;
/// So much of what lies before is looked at.
pub(super) const LOOKS_BACK: usize = 256;

/// What begins at the first byte of `rest`, where that is the beginning of something.
pub(super) fn at(before: &[u8], rest: &[u8]) -> Option<Found> {
    let first = *rest.first()?;
    if !may_begin(before, first) {
        return None;
    }
    match first {
        b'-' => keys::block(rest).or_else(|| commands::flag(before, rest)),
        b':' => userinfo(before, rest).or_else(|| pgpass(before, rest)),
        b'$' => keys::hash(before, rest),
        b'<' => commands::here_string(before, rest),
        _ => wide::at(before, rest)
            .or_else(|| tokens::value(rest))
            .or_else(|| bearer(rest))
            .or_else(|| keys::hash(before, rest))
            .or_else(|| keys::labelled(rest))
            .or_else(|| keys::json_secret(before, rest))
            .or_else(|| commands::htpasswd(rest))
            .or_else(|| commands::cifs(before, rest))
            .or_else(|| named(before, rest))
            .or_else(|| commands::netrc(before, rest))
            .or_else(|| commands::login(before, rest))
            .or_else(|| commands::piped(rest))
            .or_else(|| commands::users(before, rest))
            .or_else(|| login_pair(rest))
            .or_else(|| entry_of_secret(before, rest)),
    }
}

/// Whether anything can begin at a byte, by what stands before it.
pub(super) fn may_begin(before: &[u8], byte: u8) -> bool {
    matches!(byte, b'-' | b':' | b'$' | b'<')
        || ((byte.is_ascii_alphabetic() || byte == b'_' || byte == letters::WIDE)
            && (!before.last().copied().is_some_and(is_word) || escapes::ends_in_escape(before)))
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn in_value(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

pub(super) fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

pub(super) fn in_address(byte: u8) -> bool {
    in_token(byte) || byte == b'@'
}

pub(super) fn count(bytes: &[u8], class: fn(u8) -> bool, most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| class(**byte)).count()
}

pub(super) fn has_both_cases(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase)
}

/// Whether a text that stands where a token is expected is no word.
pub(super) fn is_no_word(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) || (text.len() >= 20 && has_both_cases(text))
}

fn bearer(rest: &[u8]) -> Option<Found> {
    const BASIC: &str = "basic";
    const SCHEMES: [&str; 4] = ["bearer", "negotiate", "ntlm", BASIC];
    let begins = |scheme: &&&str| {
        rest.get(..scheme.len()).is_some_and(|word| word.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let scheme = SCHEMES.iter().find(begins)?;
    let word = scheme.len();
    let marks = |at: usize| rest.get(at..).and_then(quote).map_or(0, |(slashes, _)| slashes + 1);
    let closed = word + marks(word);
    let separator = closed + count(&rest[closed..], |byte| matches!(byte, b':' | b'='), 1);
    let blanks = separator + count(&rest[separator..], |byte| byte == b' ', 4);
    let keep = blanks + if blanks > closed { marks(blanks) } else { 0 };
    let token = &rest[keep..];
    let seen = count(token, in_token, 64);
    // What is basic may be anything: a login is known by the signs at the end of base64.
    let is_login = || is_encoded(&token[..seen]) && (seen == 64 || token[..seen].ends_with(b"="));
    let is_one =
        blanks > closed && seen >= 12 && is_no_word(&token[..seen]) && (*scheme != BASIC || is_login());
    let body = Some(Body::Of(in_token));
    is_one.then(|| Found { keep, skip: 0, body, what: "Bearer ...".to_owned() })
}

/// Schemes of addresses in which a user without a password is a token. Elsewhere it is a name: `ssh://git@host`.
const TAKE_TOKENS: [&str; 9] = ["http", "https", "git", "ftp", "ftps", "ws", "wss", "redis", "nats"];

/// `://user:password@`, or `://token@`
fn userinfo(before: &[u8], rest: &[u8]) -> Option<Found> {
    let user = rest.strip_prefix(b"://")?;
    // Both may hold an `@` that is not escaped: the last one ends them.
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/\"'<>\\,;".contains(&byte);
    let end = user[..count(user, plain, 768)].iter().rposition(|byte| *byte == b'@')?;
    let Some(colon) = user[..end].iter().position(|byte| *byte == b':') else {
        if is_placeholder(&user[..end]) {
            return None;
        }
        let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // In an escaped text a line's end is a letter.
        let letters = letters - usize::from(before[..before.len() - letters].ends_with(b"\\") && letters > 0);
        let scheme = std::str::from_utf8(&before[before.len() - letters..]).ok()?;
        let takes = TAKE_TOKENS.iter().any(|known| known.eq_ignore_ascii_case(scheme));
        let what = "a token in an address".to_owned();
        return takes.then_some(Found { keep: 3, skip: end, body: None, what });
    };
    let length = end - colon - 1;
    if length == 0 || user[colon + 1..].starts_with(b"[redacted") {
        return None;
    }
    Some(Found { keep: 3 + colon + 1, skip: length, body: None, what: "a password in an address".to_owned() })
}

/// The last column of a `.pgpass`: `host:5432:database:user:X`.
fn pgpass(before: &[u8], rest: &[u8]) -> Option<Found> {
    const PORT: &[u8] = b":5432:";
    let in_column = |byte: u8| byte.is_ascii_graphic() && !b":\"'\\/,;".contains(&byte);
    if !rest.starts_with(PORT)
        || !before.last().is_some_and(|last| last.is_ascii_alphanumeric() || *last == b'*')
    {
        return None;
    }
    let mut at = PORT.len();
    for _ in ["database", "user"] {
        let column = count(&rest[at..], in_column, LONGEST_NAME);
        if column == 0 || rest.get(at + column) != Some(&b':') {
            return None;
        }
        at += column + 1;
    }
    let body = Body::Plain { in_list: false };
    let is_value = !is_placeholder(body.seen(&rest[at..], 64));
    is_value.then(|| Found { keep: at, skip: 0, body: Some(body), what: ".pgpass".to_owned() })
}

/// `NAME=value`, `"name": "value"`, `--name value`, `| name | value |`, and the like.
fn named(before: &[u8], rest: &[u8]) -> Option<Found> {
    // In an escaped text a line's end is a letter.
    let escape = usize::from(before.ends_with(b"\\") && matches!(rest.first(), Some(b'n' | b't' | b'r')));
    let (name, length) = letters::name(&rest[escape..], LONGEST_NAME)?;
    let name: &str = &name;
    let name_end = escape + length;
    let ends_name = |byte: &u8| byte.is_ascii_control() || b"=:\"'\\ |\xe2>%\xef]".contains(byte);
    if !rest.get(name_end).is_some_and(ends_name) && compound(&rest[name_end..]) == 0 {
        return None;
    }
    let signs = || is_parameter(before) && is_signature(name);
    let is_login = is_login_name(name);
    let is_folder = may_be_folder(name);
    // What may as well be a sentence needs a value that is no word.
    let mut is_loose = name.eq_ignore_ascii_case("key") && is_named_key(before) || may_be_key(name);
    let secret = is_secret_name(name);
    let is_defined = secret.is_none() && is_defined(before, name);
    let may_count = secret
        .or_else(|| is_defined.then_some(true))
        .or_else(|| (is_login || is_folder || is_loose || signs()).then_some(false))?;
    let mut before = before;
    while let Some(plain) = escapes::before_escape(before) {
        before = plain;
    }
    let is_flag = [b"--".as_slice(), b" -", b"\"-"].iter().any(|mark| before.ends_with(mark));
    let mut at = name_end;
    while escapes::length(rest.get(at..)?) > 0 && at < name_end + MOST_GAP {
        at += escapes::length(&rest[at..]);
    }
    let closing = quote(rest.get(at..)?).map_or(0, |(slashes, _)| slashes + 1);
    let is_closed = closing > 0;
    at += closing;
    let is_element =
        rest.get(at) == Some(&b']') && (is_closed || is_variable(name)) && opens_subscript(before);
    at += usize::from(is_element);
    let parted = at;
    at += gap(rest.get(at..)?);
    let mut by = match rest.get(at)? {
        b'=' => {
            at += 1 + count(&rest[at + 1..], |byte| matches!(byte, b'=' | b'>'), 2);
            b'='
        }
        b':' => {
            at += 1 + usize::from(matches!(rest.get(at + 1), Some(b'=' | b'>' | b':')));
            b':'
        }
        _ if compound(&rest[at..]) > 0 => {
            at += compound(&rest[at..]);
            b'='
        }
        b'>' if before.ends_with(b"<") => {
            at += 1;
            b'>'
        }
        _ if names_pair(before) && paired(&rest[at..]).is_some() => {
            at += paired(&rest[at..])?;
            b'='
        }
        // The next word of a line, or of a list.
        b',' if is_closed && (is_flag || is_called_with(before, name)) => {
            at += 1;
            b' '
        }
        _ if !is_closed && at > parted && (is_flag || is_set_by_command(before)) => b' ',
        _ if wall(&rest[at..]) > 0 && is_in_cell(before) => {
            at += wall(&rest[at..]);
            b'|'
        }
        _ if letters::separator(&rest[at..]).is_some() => {
            let (by, length) = letters::separator(&rest[at..])?;
            at += length;
            by
        }
        _ if !is_closed && escaped_separator(&rest[at..]) > 0 => {
            at += escaped_separator(&rest[at..]);
            b'%'
        }
        _ if !is_closed && at > parted && annotation(&rest[at..]) > 0 => {
            at += annotation(&rest[at..]);
            b'='
        }
        _ if !is_closed => {
            is_loose = true;
            at += loosely(name, &rest[name_end..at], &rest[at..])?;
            b' '
        }
        _ => return None,
    };
    if is_defined && by != b'=' {
        return None;
    }
    at += gap(rest.get(at..)?);
    at += continued_line(rest.get(at..)?);
    at += gap(rest.get(at..)?);
    if by == b':' {
        at += tag(rest.get(at..)?);
        let annotation = annotation(rest.get(at..)?);
        at += annotation;
        by = if annotation > 0 { b'=' } else { by };
    }
    let mut below = if by == b':' { below(before, rest.get(at..)?) } else { None };
    at += below.map_or(0, |below| below.at);
    // The first of a list.
    at += if below.is_some() && rest[at..].starts_with(b"- ") { 2 } else { 0 };
    let is_assigned = matches!(by, b':' | b'=');
    let list = if is_assigned { opens_list(rest.get(at..)?) } else { 0 };
    at += list;
    if list == 0 && is_assigned {
        let field = field(rest.get(at..)?, below.is_some());
        at += field;
        below = below.filter(|_| field == 0);
        at += if by == b'=' { opens_group(rest.get(at..)?) } else { 0 };
    }
    at += string_prefix(rest.get(at..)?);
    let tail = rest.get(at..)?;
    let (body, opens) = match (opening(tail), below) {
        (Some((_, slashes, mark)), _) if list > 0 => (Body::List { mark, slashes }, slashes + 1),
        (Some((opens, slashes, mark)), _) => (Body::Quoted { mark, slashes }, opens),
        (None, Some(below)) => (Body::Block { indent: below.indent, is_labelled: below.is_labelled }, 0),
        (None, None) if by == b'|' => (Body::Cell, 0),
        (None, None) if by == b'>' => (Body::Of(in_element), 0),
        (None, None) if by == b'%' => (Body::Of(in_escaped), 0),
        // What the name stood in has ended with it.
        (None, None) if is_closed && by == b'=' && !is_header(name) => (Body::Plain { in_list: true }, 0),
        (None, None) => (unquoted(before, by, is_header(name)), 0),
    };
    at += opens;
    let is_hash = || rest[at] == b'{' && keys::has_scheme(&rest[at + 1..]);
    if by == b':' && opens == 0 && at < rest.len() && (begins_with_name(&rest[at..]) || is_hash()) {
        return None;
    }
    let mut seen = body.seen(rest.get(at..)?, 64);
    if let Body::Line | Body::Block { .. } | Body::Cell | Body::Header = body {
        seen = seen.split(u8::is_ascii_whitespace).next()?;
        let line = (0..seen.len()).find(|at| escapes::line_break(&seen[*at..]) > 0);
        seen = &seen[..line.unwrap_or(seen.len())];
    }
    // The mark may be the one that ends what the name stands in.
    let may_be_an_end = opens > 0 && !is_closed;
    if may_be_an_end && seen.first().is_none_or(|first| b",:]} \t".contains(first)) {
        return None;
    }
    // A group that is opened: what stands in it has names of its own.
    if opens == 0 && seen.iter().all(|byte| b"{[(".contains(byte)) {
        return None;
    }
    if is_placeholder(seen) || (may_count && is_number(seen)) {
        return None;
    }
    if by == b':' && opens == 0 && is_type(seen) {
        return None;
    }
    // Below a name there may be more names.
    if below.is_some() && opens == 0 && (seen.contains(&b':') || seen.starts_with(b"-")) {
        return None;
    }
    if is_login && !is_defined && !signs() && !is_encoded(seen) {
        return None;
    }
    // Results of tests have that name, too.
    if name == "pass" && !is_defined && (by != b'=' || seen.len() < LEAST_OBSCURED) {
        return None;
    }
    if (is_folder || is_loose || is_defined) && is_path(seen) {
        return None;
    }
    // A sentence about the folder.
    let is_word = || opens == 0 && rest[..at].ends_with(b" ") && !is_no_word(seen);
    if is_folder && (before.ends_with(b"$") || is_word()) {
        return None;
    }
    // After a colon a word of prose may stand.
    let is_prose = matches!(by, b':' | b'|' | b'>')
        && opens == 0
        && ["token", "jwt"].iter().any(|one| name.eq_ignore_ascii_case(one));
    if (is_prose || is_loose) && (seen.len() < 8 || !seen.iter().any(u8::is_ascii_digit)) {
        return None;
    }
    Some(Found { keep: at, skip: 0, body: Some(body), what: name.to_owned() })
}

/// So long is a password at least as rclone stores it.
const LEAST_OBSCURED: usize = 22;

/// Whether the name of another secret follows, with its sign: that one has the value.
fn begins_with_name(rest: &[u8]) -> bool {
    let Some((name, length)) = letters::name(rest, LONGEST_NAME) else { return false };
    let behind = &rest[length..];
    let sign = count(behind, |byte| byte == b' ', 2);
    matches!(behind.get(sign), Some(b'=' | b':'))
        && matches!(behind.get(sign + 1), Some(b' ' | b'"' | b'\''))
        && is_secret_name(&name).is_some()
}

/// Bytes of a value in such an address; what follows the value there goes with it.
pub(super) fn in_escaped(byte: u8) -> bool {
    in_token(byte) || byte == b'%'
}

/// So much of what shows nothing may part a name from its value.
pub(super) const MOST_GAP: usize = 64;

/// Blanks, terminal's escapes and control characters, but for ends of lines and texts.
fn gap(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < MOST_GAP {
        match (escapes::length(&rest[at..]).max(letters::invisible(&rest[at..])), rest.get(at)) {
            (0, Some(b' ')) => at += 1,
            (0, Some(byte)) if byte.is_ascii_control() && !b"\0\n\r".contains(byte) => at += 1,
            (0, _) => break,
            (length, _) => at += length,
        }
    }
    at
}

fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [head @ .., b' ' | b'\t'] = text {
        text = head;
    }
    text
}

fn is_parameter(before: &[u8]) -> bool {
    [b"?".as_slice(), b"&", b"&amp;", b"\\u0026"].iter().any(|mark| before.ends_with(mark))
}

/// Whether a flag that defines a variable or a property stands before the name of a password: `psql -v pw=X`, `-Da.pw=X`.
fn is_defined(before: &[u8], name: &str) -> bool {
    const FLAGS: [&[u8]; 8] =
        [b"-v", b"-e", b"-var", b"--set", b"--variable", b"--build-arg", b"--env", b"--extra-vars"];
    if name.ends_with("sonar.login") {
        return true;
    }
    if let Some(property) = name.strip_prefix('D').filter(|_| before.ends_with(b"-")) {
        return may_be_defined(property);
    }
    if !may_be_defined(name) {
        return false;
    }
    let parted = before.iter().rev().take_while(|byte| b"\"'\\ =".contains(byte)).count();
    parted > 0 && FLAGS.iter().any(|flag| before[..before.len() - parted].ends_with(flag))
}

/// Whether a shell's command stands before a name, which takes the name and the value as two words.
fn is_set_by_command(before: &[u8]) -> bool {
    [b"setenv ".as_slice(), b"ENV ", b"set -x ", b"set -gx ", b"configure set "]
        .iter()
        .any(|command| before.ends_with(command))
}

/// `setenv("NAME", "value")` of a module file, or a pair `('NAME', 'value')`, at the name.
fn is_called_with(before: &[u8], name: &str) -> bool {
    let Some((b'"' | b'\'', mut before)) = before.split_last() else { return false };
    while let Some(plain) = before.strip_suffix(b"\\") {
        before = plain;
    }
    let is_variable = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    before.ends_with(b"setenv(") || (is_variable && before.ends_with(b"("))
}

/// Bytes of the text of an element.
fn in_element(byte: u8) -> bool {
    !b"<\"\\".contains(&byte)
}

/// Whether a text may be base64 of something, and no word.
pub(super) fn is_encoded(text: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| text.iter().any(class);
    text.len() >= 12
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte))
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(|byte| byte.is_ascii_digit() || b"+/=".contains(byte))
}

/// The length of what parts two cells of a table.
pub(super) fn wall(rest: &[u8]) -> usize {
    match rest {
        [b'|', ..] => 1,
        [0xe2, 0x94, 0x82 | 0x83, ..] => 3,
        _ => 0,
    }
}

fn is_in_cell(before: &[u8]) -> bool {
    let mut before = trim_blanks(before);
    while let Some(plain) = escapes::before_escape(before) {
        before = trim_blanks(plain);
    }
    before.ends_with(b"|") || before.ends_with(b"\xe2\x94\x82") || before.ends_with(b"\xe2\x94\x83")
}

/// Blanks and ends of lines, in whatever form.
pub(super) fn blank_lines(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < MOST_GAP {
        match (escapes::line_break(&rest[at..]), rest.get(at)) {
            (0, Some(b' ' | b'\t')) => at += 1,
            (0, _) => break,
            (length, _) => at += length,
        }
    }
    at
}

/// A quotation mark, behind so many backslashes.
pub(super) fn quote(bytes: &[u8]) -> Option<(usize, u8)> {
    let slashes = count(bytes, |byte| byte == b'\\', 16);
    bytes.get(slashes).copied().filter(|byte| matches!(byte, b'"' | b'\'')).map(|mark| (slashes, mark))
}

/// How far a value goes that no quotation mark opens: to the end of what the whole of it stands in, if that can be
/// determined.
fn unquoted(before: &[u8], by: u8, is_header: bool) -> Body {
    let before = before.strip_suffix(b"--").unwrap_or(before);
    if by == b'=' || is_header {
        if let Some((mark @ (b'"' | b'\''), head)) = before.split_last() {
            let slashes = head.iter().rev().take_while(|byte| **byte == b'\\').count();
            return Body::Quoted { mark: *mark, slashes };
        }
        let begins_line = before.last().is_none_or(|byte| matches!(byte, b'\n' | 0));
        if begins_line || before.ends_with(b"\nexport ") || before == b"export " {
            return Body::Line;
        }
    }
    if is_header { Body::Header } else { Body::Plain { in_list: by == b':' } }
}
