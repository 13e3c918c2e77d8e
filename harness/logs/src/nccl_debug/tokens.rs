//! Words and numbers of one line, taken from its front. What they mean is the business of each kind of line.

/// The unread rest of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a>(pub &'a str);

impl<'a> Words<'a> {
    /// The next word; nothing at the end.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start_matches(' ');
        // Words are short: a search that prepares itself would take longer.
        let end = rest.bytes().position(|byte| byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// The word behind a label that comes next; a label that does not come leaves the line as it was.
    pub(super) fn labelled(&mut self, label: &str) -> Option<&'a str> {
        let mut ahead = *self;
        if ahead.next()? != label {
            return None;
        }
        let word = ahead.next()?;
        *self = ahead;
        Some(word)
    }
}

/// Digits and nothing else; a `+` is none.
pub(super) fn whole(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The same with a sign before it: `-1` is none.
pub(super) fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => whole(digits)?.try_into().ok().map(|value: i64| -value),
        None => whole(text)?.try_into().ok(),
    }
}

/// A pointer or a hash: `0x…`, or `(nil)`, which is none.
pub(super) fn pointer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => hex(digits),
        None => (text == "(nil)").then_some(0),
    }
}

pub(super) fn hex(digits: &str) -> Option<u64> {
    let mut value = 0_u64;
    for byte in digits.bytes() {
        let digit = char::from(byte).to_digit(16)?;
        if value >> 60 != 0 {
            return None;
        }
        value = value << 4 | u64::from(digit);
    }
    (!digits.is_empty()).then_some(value)
}

/// Digits with a point between them.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (plain && text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.parse().ok())?
}
