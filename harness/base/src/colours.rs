//! Texts without the codes by which a terminal shows colours: a name directly behind one stands as a word again.

use std::borrow::Cow;

/// How the byte that begins a code is written in an escaped text.
const ESCAPED: [&str; 5] = ["x1b[", "u001b[", "u{1b}[", "033[", "e["];
const ESCAPE: char = '\u{1b}';
/// Begins a code by itself.
const CSI: char = '\u{9b}';

/// Stands for a code while names are looked for: what is before it and what is behind are two words.
pub const MARK: &str = "\u{1f}";

/// The text with a mark for each, written as they are or escaped as in JSON, if it has any.
pub fn marked(text: &str) -> Option<String> {
    match replaced(text, MARK) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

fn replaced<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let mut out = String::new();
    // What is in `out` already.
    let mut done = 0;
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find([ESCAPE, CSI, '\\'])) {
        let from = at + next;
        let rest = text.get(from..).unwrap_or_default();
        let slashes = rest.len() - rest.trim_start_matches('\\').len();
        let length = match slashes {
            0 => code(rest),
            _ => escaped(rest.get(slashes..).unwrap_or_default()).map_or(0, |length| slashes + length),
        };
        if length > 0 {
            out.push_str(text.get(done..from).unwrap_or_default());
            out.push_str(mark);
            done = from + length;
        }
        at = from + length.max(slashes).max(1);
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + text.get(done..).unwrap_or_default()),
    }
}

/// The length of a code that begins with its byte.
fn code(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    let behind = text.get(first.len_utf8()..).unwrap_or_default();
    if first == CSI {
        return first.len_utf8() + sequence(behind).unwrap_or(0);
    }
    let length = match behind.as_bytes().first() {
        Some(b'[') => behind.get(1..).and_then(sequence).map_or(1, |length| length + 1),
        // Titles and links: up to their end in this line.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let line = behind.split('\n').next().unwrap_or_default();
            let bell = line.find('\u{7}').map(|at| at + 1);
            let end = line.find("\u{1b}\\").map(|at| at + 2);
            bell.into_iter().chain(end).min().unwrap_or(1)
        }
        _ => {
            let between = behind.bytes().take_while(|byte| (0x20..0x30).contains(byte)).count();
            let has_end = behind.as_bytes().get(between).is_some_and(|byte| (0x30..0x7f).contains(byte));
            if has_end { between + 1 } else { 0 }
        }
    };
    1 + length
}

fn escaped(text: &str) -> Option<usize> {
    let begins = ESCAPED.iter().find(|begins| {
        text.get(..begins.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(begins))
    })?;
    Some(begins.len() + sequence(text.get(begins.len()..)?)?)
}

/// Behind the bracket: numbers and signs, and a letter.
fn sequence(text: &str) -> Option<usize> {
    let numbers = text.bytes().take_while(|byte| (0x20..0x40).contains(byte)).count();
    let ends = text.as_bytes().get(numbers).is_some_and(|byte| (0x40..0x7f).contains(byte));
    ends.then_some(numbers + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_and_the_rest_stays() {
        for (text, wanted) in [
            ("\u{1b}[32mjdoe\u{1b}[0m é", "jdoe é"),
            ("p5-\u{1b}[1;31m003\u{9b}0m", "p5-003"),
            (r#"{"m": "\u001b[32mjdoe\\x1b[0m \033[1mx"}"#, r#"{"m": "jdoe x"}"#),
            ("\u{1b}]8;;https://acme.ai/x\u{1b}\\link\u{1b}]8;;\u{7}", "link"),
            ("\u{1b}(Bx \u{1b}7y\u{1b}", "x y"),
            (r"a\nb \[1m [32m C:\e\x", r"a\nb \[1m [32m C:\e\x"),
        ] {
            assert_eq!(replaced(text, ""), wanted);
        }
        assert_eq!(marked("jdoe\u{1b}[0mx").as_deref(), Some("jdoe\u{1f}x"));
        assert!(marked("plain \\n").is_none());
    }
}
