//! Text of a file as a terminal may be given it: what it would obey stands there as an escape.

use std::borrow::Cow;

/// Replaces control characters, and those that turn or end a line, by escapes: `\x1b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_obeyed(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, and those that turn the direction of a line or end it.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_an_escape() {
        assert_eq!(visible("\x1b[31mred\0\n\u{9b}2J\u{202e}x"), r"\x1b[31mred\x00\x0a\x9b2J\u{202e}x");
        assert!(matches!(visible("gemm<float, 2> 核"), std::borrow::Cow::Borrowed(_)));
    }
}
