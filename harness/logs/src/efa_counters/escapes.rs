//! The words of a capture: names with every odd byte as `%XX`, and decimal numbers kept whole.
//! Which word stands where is decided by `read.rs` and `render.rs`.

use std::fmt::Write;

/// A name as one word; nothing at all is a lone `%`.
pub(super) fn escape(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut word = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"_./:+-".contains(&byte) {
            word.push(char::from(byte));
        } else {
            // Infallible: writing to a string.
            let _ = write!(word, "%{byte:02X}");
        }
    }
    word
}

/// The name behind a word, or nothing where a `%` is not followed by two digits. A name need not be valid text; what
/// is not becomes replacement characters.
pub(super) fn unescape(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    if !word.contains('%') {
        return Some(word.to_owned());
    }
    let mut name = Vec::with_capacity(word.len());
    let mut bytes = word.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let digit =
            |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        name.push(high << 4 | low);
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// A decimal number as a whole count of its last of `places`; further places are cut off.
pub(super) fn fixed(word: &str, places: usize) -> Option<u64> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut number = decimal(whole.as_bytes())?;
    for place in 0..places {
        let digit = part.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// Digits and nothing else: the standard parser also takes a sign.
pub(super) fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The reverse of `fixed`.
pub(super) fn with_places(number: u64, places: u32) -> String {
    let one = 10u64.pow(places);
    format!("{}.{:0width$}", number / one, number % one, width = places as usize)
}
