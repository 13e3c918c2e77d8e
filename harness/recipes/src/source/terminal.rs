//! What terminals obey, taken out of a line of text. What the line says is its reader's business.

use std::borrow::Cow;

/// Colours and titles go; NUL bytes at the front are what a rotated log leaves, others make their cell unreadable.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\0');
    // All bytes are looked at, none by a branch: this runs over each line of a log.
    if !text.bytes().fold(false, |any, byte| any | matches!(byte, b'\x1b' | b'\0' | b'\x08')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\0' | '\x08' => clean.push(char::REPLACEMENT_CHARACTER),
            '\x1b' => match rest.next() {
                Some('[') => while rest.next_if(|c| !('\x40'..='\x7e').contains(c)).is_some() {},
                Some(']') => while rest.next_if(|c| !matches!(c, '\x07' | '\x1b')).is_some() {},
                _ => continue,
            },
            _ => clean.push(c),
        }
        if c == '\x1b' {
            // The byte that ends a sequence is part of it.
            rest.next();
        }
    }
    Cow::Owned(clean)
}
