//! What terminals obey, taken out of a line of text: all forms of escape sequences of ECMA-48. What the line says is
//! its reader's business.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// Colours, titles and character sets go; NUL bytes at the front are what a rotated log leaves, others make their cell
/// unreadable.
pub(in super::super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\0');
    // All bytes are looked at, none by a branch: this runs over each line of a log. U+0080 to U+009F begin with 0xc2.
    if !text.bytes().fold(false, |any, byte| any | matches!(byte, b'\x1b' | b'\0' | b'\x08' | b'\xc2')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\0' | '\x08' => clean.push(char::REPLACEMENT_CHARACTER),
            '\x1b' => sequence(&mut rest),
            '\u{9b}' => control(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => string(&mut rest),
            '\u{80}'..='\u{9f}' => {}
            _ => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// What follows ESC.
fn sequence(rest: &mut Peekable<Chars>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            control(rest);
        }
        Some('P' | 'X' | ']' | '^' | '_') => {
            rest.next();
            string(rest);
        }
        // `ESC ( B` and the like: intermediate bytes, and one that ends it.
        Some(' '..='/') => {
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next_if(|c| ('0'..='~').contains(c));
        }
        Some('0'..='~') => {
            rest.next();
        }
        // It was cut, and what follows is text.
        _ => {}
    }
}

/// Parameters and intermediate bytes, and the byte that ends a control sequence.
fn control(rest: &mut Peekable<Chars>) {
    while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
    rest.next_if(|c| ('@'..='~').contains(c));
}

/// A title or another string, up to BEL or the string terminator.
fn string(rest: &mut Peekable<Chars>) {
    while let Some(c) = rest.next() {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}
