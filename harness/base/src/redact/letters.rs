//! Names as other letters write them: in full width, and with characters between that nothing shows.

use super::wide;
use std::borrow::Cow;

/// The first byte of letters in full width.
pub(super) const WIDE: u8 = 0xef;

/// A name and its length in the text: letters, digits, `_`, `-` and `.`; none where it is longer than `longest`.
pub(super) fn name(rest: &[u8], longest: usize) -> Option<(Cow<'_, str>, usize)> {
    let length = rest.iter().take(longest + 1).take_while(|byte| in_name(**byte)).count();
    let end = rest.get(length..)?;
    let is_plain = end.first().is_none_or(u8::is_ascii) && wide::nul(end) == 0;
    if is_plain {
        let name = std::str::from_utf8(&rest[..length]).ok()?;
        return (1..=longest).contains(&length).then_some((Cow::Borrowed(name), length));
    }
    let mut name = String::new();
    let mut at = 0;
    while name.len() <= longest && at <= longest * 2 {
        let here = &rest[at..];
        match (here.first().copied().filter(|byte| in_name(*byte)), wide(here)) {
            (Some(byte), _) => {
                name.push(char::from(byte));
                at += 1;
            }
            (None, Some(byte)) if in_name(byte) => {
                name.push(char::from(byte));
                at += 3;
            }
            _ => match invisible(here).max(nul_within(here)) {
                more if more > 0 && !name.is_empty() => at += more,
                _ => return (!name.is_empty()).then_some((Cow::Owned(name), at)),
            },
        }
    }
    None
}

/// `=` or `:` in full width, as the plain one, and its length.
pub(super) fn separator(rest: &[u8]) -> Option<(u8, usize)> {
    wide(rest).filter(|byte| matches!(byte, b'=' | b':')).map(|byte| (byte, 3))
}

/// The length of a character that nothing shows: of no width, or a hyphen that is shown at the end of a line alone.
pub(super) fn invisible(rest: &[u8]) -> usize {
    match rest {
        [0xe2, 0x80, 0x8b..=0x8f, ..] | [0xe2, 0x81, 0xa0, ..] | [0xef, 0xbb, 0xbf, ..] => 3,
        [0xc2, 0xad, ..] => 2,
        _ => 0,
    }
}

fn wide(rest: &[u8]) -> Option<u8> {
    match rest {
        [WIDE, 0xbc, byte @ 0x81..=0xbf, ..] => Some(byte - 0x60),
        [WIDE, 0xbd, byte @ 0x80..=0x9e, ..] => Some(byte - 0x20),
        _ => None,
    }
}

/// The length of a NUL between two letters of a name.
fn nul_within(rest: &[u8]) -> usize {
    let length = wide::nul(rest);
    if rest.get(length).copied().is_some_and(in_name) { length } else { 0 }
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
