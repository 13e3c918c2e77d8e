//! Escapes within a text: those that a terminal obeys, as bytes and as JSON or a shell writes them. They part what stands
//! on both sides, and a value goes on behind them.

/// Parameters of a terminal's escape are shorter than this.
const MOST: usize = 24;

/// The length of the terminal's escape that begins here; 0 where none does.
pub(super) fn length(rest: &[u8]) -> usize {
    let intro = match rest.first() {
        Some(0x1b) => 1,
        Some(b'\\') => {
            let slashes = rest.iter().take(4).take_while(|byte| **byte == b'\\').count();
            let word = &rest[slashes..];
            let found = WORDS
                .iter()
                .find(|known| word.get(..known.len()).is_some_and(|word| word.eq_ignore_ascii_case(known)));
            match found {
                Some(known) => slashes + known.len(),
                None => return 0,
            }
        }
        _ => return 0,
    };
    match rest.get(intro) {
        Some(b'[') => {
            let parameters = &rest[intro + 1..];
            let count = parameters.iter().take(MOST).take_while(|byte| (0x20..0x40).contains(*byte)).count();
            match parameters.get(count) {
                Some(0x40..=0x7e) => intro + 1 + count + 1,
                _ => 0,
            }
        }
        // The choice of a character set, which `tput sgr0` prints.
        Some(b'(' | b')') if rest.get(intro + 1).is_some_and(u8::is_ascii_alphanumeric) => intro + 2,
        _ => 0,
    }
}

/// How `ESC` is written in texts.
const WORDS: [&[u8]; 4] = [b"u001b", b"x1b", b"033", b"e"];

/// What stands before the terminal's escape at the end of `before`, if one is there.
pub(super) fn before_escape(before: &[u8]) -> Option<&[u8]> {
    let [head @ .., last] = before else { return None };
    let opens = match head.last()? {
        b'(' | b')' => head.len() - 1,
        _ if !last.is_ascii_alphabetic() => return None,
        _ => {
            let count = head.iter().rev().take(MOST).take_while(|byte| (0x20..0x40).contains(*byte)).count();
            let opens = head.len().checked_sub(count + 1)?;
            if head[opens] != b'[' {
                return None;
            }
            opens
        }
    };
    let intro = &head[..opens];
    if let [before @ .., 0x1b] = intro {
        return Some(before);
    }
    WORDS.iter().find_map(|word| {
        let at = intro.len().checked_sub(word.len())?;
        let before = &intro[..at];
        (intro[at..].eq_ignore_ascii_case(word) && before.ends_with(b"\\")).then(|| {
            let slashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            &before[..before.len() - slashes]
        })
    })
}

/// Whether the last letters of `before` are part of an escape, so that a word may begin behind them.
pub(super) fn ends_in_escape(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b't' | b'r'] => true,
        [.., b'\\', b'u', b'0', b'0', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'0'..=b'9' | b';' | b'[' | b'(' | b')', _] => before_escape(before).is_some(),
        _ => false,
    }
}

/// The length of a line's end, as a byte or as JSON and shells write it; 0 where there is none.
pub(super) fn line_break(rest: &[u8]) -> usize {
    match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        [b'\\', b'r', b'\\', b'n', ..] => 4,
        [b'\\', b'n', ..] => 2,
        _ => 0,
    }
}
