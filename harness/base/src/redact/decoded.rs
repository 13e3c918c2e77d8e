//! A known value as any mix of escapes writes it: each of its bytes is looked for as it is and in the escapes of JSON,
//! shells, addresses and pages, also within one another. What languages put between two pieces of a text is passed over.

use super::escapes;
use super::shapes::{blank_lines, quote};

/// One byte of a value is written in no more bytes than these.
pub(super) const MOST_A_BYTE: usize = 12;
/// Backslashes before an escape: each level of quotation doubles them.
const MOST_SLASHES: usize = 8;
/// References by name, and the bytes that they stand for.
const NAMED: [(&[u8], u8); 7] = [
    (b"amp;", b'&'),
    (b"lt;", b'<'),
    (b"gt;", b'>'),
    (b"quot;", b'"'),
    (b"apos;", b'\''),
    (b"plus;", b'+'),
    (b"sol;", b'/'),
];

/// Bytes with which an escape begins.
pub(super) const BEGINS: &[u8] = b"\\%&^=";

/// How many bytes of `rest` stand for the first bytes of `value`, and for how many; the case of letters does not count.
pub(super) fn unit(value: &[u8], rest: &[u8]) -> Option<(usize, usize)> {
    let (wanted, first) = (*value.first()?, *rest.first()?);
    let escaped = match first {
        b'\\' => backslashes(value, rest),
        b'%' => percent(wanted, &rest[1..]).map(|length| (length + 1, 1)),
        b'&' => reference(value, &rest[1..]).map(|(length, bytes)| (length + 1, bytes)),
        b'^' if rest.get(1) == Some(&wanted) => Some((2, 1)),
        b'=' => rest.get(1..3).and_then(hex).filter(|code| *code == u32::from(wanted)).map(|_| (3, 1)),
        b'+' if wanted == b' ' => Some((1, 1)),
        _ => None,
    };
    escaped.or_else(|| first.eq_ignore_ascii_case(&wanted).then_some((1, 1)))
}

/// What parts two pieces of one text: `" + "` and the like, and the end of a line that goes on.
pub(super) fn join(rest: &[u8]) -> usize {
    let line = continued_line(rest);
    if line > 0 {
        return line;
    }
    let Some(opened) = quote(rest) else { return 0 };
    let mut at = opened.0 + 1;
    at += blank_lines(&rest[at..]);
    at += usize::from(matches!(rest.get(at), Some(b'+' | b'.' | b'&' | b',')));
    at += blank_lines(&rest[at..]);
    match quote(&rest[at..]) {
        Some(closed) if closed == opened => at + closed.0 + 1,
        _ => 0,
    }
}

/// The length of the end of a line that goes on in the next one.
pub(super) fn continued_line(rest: &[u8]) -> usize {
    let slashes = rest.iter().take(MOST_SLASHES).take_while(|byte| **byte == b'\\').count();
    let is_other = matches!(rest.first(), Some(b'^' | b'`' | b'='));
    let marks = if is_other { 1 } else { slashes };
    let lines = (1..=marks).rev().map(|marks| (marks, escapes::line_break(&rest[marks..])));
    lines.filter(|(_, line)| *line > 0).map(|(marks, line)| marks + line).next().unwrap_or_default()
}

fn backslashes(value: &[u8], rest: &[u8]) -> Option<(usize, usize)> {
    let wanted = value[0];
    let slashes = rest.iter().take(MOST_SLASHES).take_while(|byte| **byte == b'\\').count();
    let word = &rest[slashes..];
    let first = *word.first()?;
    let named = match first {
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'r' => Some(b'\r'),
        _ => None,
    };
    // The letter of an escape may stand for itself.
    let plain = || (named == Some(wanted) || first == wanted).then_some((slashes + 1, 1));
    coded(value, word).map(|(length, bytes)| (slashes + length, bytes)).or_else(plain)
}

/// The same of a number behind the backslashes.
fn coded(value: &[u8], word: &[u8]) -> Option<(usize, usize)> {
    let wanted = *value.first()?;
    match word.first()? {
        b'x' => {
            // A byte, or a letter, as `ascii` of Python writes it.
            let of = |digits: usize| {
                let code = hex(word.get(1..1 + digits)?)?;
                let bytes = if code == u32::from(wanted) { Some(1) } else { begins_with(value, code) };
                bytes.map(|bytes| (1 + digits, bytes))
            };
            [2, 1].into_iter().find_map(of)
        }
        b'u' | b'U' => {
            let (code, length) = code_point(word)?;
            let is_first_half = (0xd800..0xdc00).contains(&code);
            let (code, length) = match is_first_half {
                true => {
                    let again = word[length..].iter().take_while(|byte| **byte == b'\\').count();
                    let (low, more) = code_point(word.get(length + again..)?)?;
                    let whole = 0x10000 + ((code - 0xd800) << 10) + low.checked_sub(0xdc00)?;
                    (whole, length + again + more)
                }
                false => (code, length),
            };
            begins_with(value, code).map(|bytes| (length, bytes))
        }
        b'0'..=b'7' => {
            let of = |digits: usize| {
                let digits = std::str::from_utf8(word.get(..digits)?).ok()?;
                u32::from_str_radix(digits, 8).ok().filter(|code| *code == u32::from(wanted))
            };
            let digits = [4, 3, 2, 1].into_iter().find(|digits| of(*digits).is_some())?;
            Some((digits, 1))
        }
        _ => None,
    }
}

/// `uXXXX`, `UXXXXXXXX` or `u{X}`: the number, and its length.
fn code_point(word: &[u8]) -> Option<(u32, usize)> {
    match word {
        [b'u', b'{', digits @ ..] => {
            let count = digits.iter().take(7).take_while(|byte| byte.is_ascii_hexdigit()).count();
            let code = hex(&digits[..count])?;
            (digits.get(count) == Some(&b'}')).then_some((code, count + 3))
        }
        [b'u', digits @ ..] => Some((hex(digits.get(..4)?)?, 5)),
        [b'U', digits @ ..] => Some((hex(digits.get(..8)?)?, 9)),
        _ => None,
    }
}

/// Behind `%`, also where that itself is written with one.
fn percent(wanted: u8, rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < 6 && rest[at..].starts_with(b"25") && hex(rest.get(at + 2..at + 4)?).is_some() {
        at += 2;
    }
    // It may be the one that is wanted.
    for at in [at, at.saturating_sub(2), 0] {
        let unicode = usize::from(rest.get(at) == Some(&b'u')) * 3;
        let code = match unicode {
            0 => hex(rest.get(at..at + 2)?),
            _ => hex(rest.get(at + 1..at + 5)?),
        };
        if code == Some(u32::from(wanted)) {
            return Some(at + 2 + unicode);
        }
    }
    None
}

/// Behind `&`, also where that itself is written as a reference.
fn reference(value: &[u8], rest: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    while at < 8
        && rest[at..].starts_with(b"amp;")
        && rest.get(at + 4).is_some_and(|next| is_reference(*next))
    {
        at += 4;
    }
    for at in [at, 0] {
        let word = &rest[at..];
        if let [b'#', digits @ ..] = word {
            let is_hex = matches!(digits.first(), Some(b'x' | b'X'));
            let digits = &digits[usize::from(is_hex)..];
            let count = digits.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
            let text = std::str::from_utf8(&digits[..count]).ok()?;
            let code = u32::from_str_radix(text, if is_hex { 16 } else { 10 }).ok();
            let length = at + 1 + usize::from(is_hex) + count + 1;
            if digits.get(count) == Some(&b';')
                && let Some(bytes) = code.and_then(|code| begins_with(value, code))
            {
                return Some((length, bytes));
            }
        }
        if let Some((name, _)) = NAMED.iter().find(|(name, byte)| *byte == value[0] && word.starts_with(name))
        {
            return Some((at + name.len(), 1));
        }
    }
    None
}

fn is_reference(byte: u8) -> bool {
    byte == b'#' || byte.is_ascii_lowercase()
}

/// How many bytes of the value the character is, where it begins with that.
fn begins_with(value: &[u8], code: u32) -> Option<usize> {
    let mut bytes = [0; 4];
    let character = char::from_u32(code)?.encode_utf8(&mut bytes).as_bytes();
    let same = value.get(..character.len())?.eq_ignore_ascii_case(character);
    same.then_some(character.len())
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(text, 16).ok()
}
