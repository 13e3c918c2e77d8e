//! Where words of a text begin and end.

/// No name, host or address is longer; a longer word is not looked at from each of its parts to its end.
const LONGEST: usize = 256;

/// Not within a word; a line's end in an escaped text is none.
pub(super) fn begins_here(bytes: &[u8], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| bytes.get(at)).copied();
    match (before(2), before(1)) {
        (_, None) | (Some(b'\\'), Some(b'n' | b't' | b'r')) => true,
        (_, Some(one)) => {
            let is_path = bytes.get(at) == Some(&b'/');
            !(one.is_ascii_alphanumeric() || !one.is_ascii() || (is_path && b"/.-_+]})>".contains(&one)))
        }
    }
}

/// The bytes up to the next place at which a word may begin.
pub(super) fn step(text: &str, at: usize) -> usize {
    let Some(rest) = text.get(at..) else { return 1 };
    let word = taken(rest, |c| c.is_ascii_alphanumeric()).len();
    // What looks like the beginning of a word may end a line in an escaped text.
    let is_escaped = text.get(..at).is_some_and(|before| before.ends_with('\\'));
    match word {
        0 => rest.chars().next().map_or(1, char::len_utf8),
        _ if is_escaped => 1,
        word => word,
    }
}

pub(super) fn taken(rest: &str, is_of_it: impl Fn(char) -> bool) -> &str {
    rest.split(|c: char| !is_of_it(c)).next().unwrap_or_default()
}

/// So much of a text as may be one name.
pub(super) fn window(rest: &str) -> &str {
    rest.get(..rest.floor_char_boundary(LONGEST)).unwrap_or(rest)
}

/// The beginning of a text in any case.
pub(super) fn equals(rest: &str, beginning: &str) -> bool {
    rest.get(..beginning.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(beginning))
}
