//! Texts with a NUL behind each letter, as in two or four bytes a letter without a mark that says so: they are looked at
//! without these.

use super::body::Body;
use super::escapes;
use super::shapes::{self, Found};

/// So many letters are looked at.
const MOST: usize = 256;
/// Backslashes before an escape: each level of quotation doubles them.
const MOST_SLASHES: usize = 4;
/// How programs write a NUL.
const NULS: [&[u8]; 3] = [b"u0000", b"x00", b"^@"];

/// The length of the NUL that begins here, as a byte or as JSON, shells and terminals show it; 0 where none does.
pub(super) fn nul(rest: &[u8]) -> usize {
    let slashes = match rest.first() {
        Some(0) => return 1,
        Some(b'^') => 0,
        Some(b'\\') => rest.iter().take(MOST_SLASHES).take_while(|byte| **byte == b'\\').count(),
        _ => return 0,
    };
    let is_here = |known: &&&[u8]| rest[slashes..].starts_with(known) && (slashes == 0) == (known[0] == b'^');
    NULS.iter().find(is_here).map_or(0, |known| slashes + known.len())
}

/// What stands before the NUL at the end of `before`.
fn before_nul(before: &[u8]) -> Option<&[u8]> {
    let lengths = 1..=MOST_SLASHES + NULS[0].len();
    let mut parts = lengths.filter_map(|length| before.split_at_checked(before.len().checked_sub(length)?));
    let (head, _) = parts.rfind(|(_, end)| nul(end) == end.len())?;
    Some(head)
}

/// A secret that begins here, of a text whose letters have a NUL behind each.
pub(super) fn at(before: &[u8], rest: &[u8]) -> Option<Found> {
    let is_wide = rest.len() > 1 && nul(&rest[1..]) > 0;
    if !is_wide {
        return None;
    }
    let mut head = Vec::new();
    let mut left = before;
    while let Some(plain) = before_nul(left) {
        // In four bytes a letter another NUL is a letter.
        let (last, more) = match (before_nul(plain), plain) {
            (Some(more), _) => (0, more),
            (None, [more @ .., last]) => (*last, more),
            (None, []) => break,
        };
        head.push(last);
        left = more;
        if head.len() == 1 && !shapes::may_begin(&head, rest[0]) {
            return None;
        }
    }
    head.reverse();
    let (mut letters, mut places) = (Vec::new(), Vec::new());
    let mut place = 0;
    while letters.len() < MOST {
        let here = &rest[place..];
        // What JSON escapes is one letter, and so is a NUL, in four bytes a letter.
        let is_nul = nul(here) > 0;
        let slashes = here.iter().take(MOST_SLASHES).take_while(|byte| **byte == b'\\').count();
        let length = if is_nul { nul(here) } else { slashes + 1 };
        let behind = here.get(length..).map_or(0, nul);
        if behind == 0 {
            break;
        }
        if is_nul {
            letters.push(0);
            places.push(place);
        } else {
            letters.extend_from_slice(&here[..length]);
            places.extend(place..place + length);
        }
        place += length + behind;
    }
    places.push(place);
    let found = shapes::at(&head, &letters)?;
    let keep = *places.get(found.keep)?;
    let skip = places.get(found.keep + found.skip)? - keep;
    let body = found.body.map(|body| match body {
        Body::Wide { nuls } => Body::Wide { nuls: nuls * 2 },
        _ => Body::Wide { nuls: 2 },
    });
    Some(Found { keep, skip, body, what: found.what })
}

/// How many of the next bytes belong to a value of such a text: to the end of its line, or to as many NULs as end a text.
pub(super) fn eats(rest: &[u8], nuls: usize) -> usize {
    let (mut end, mut count) = (0, 0);
    while count < nuls && nul(&rest[end..]) > 0 {
        end += nul(&rest[end..]);
        count += 1;
    }
    let ends = escapes::line_break(rest) > 0
        || rest.first() == Some(&b'\r')
        || matches!(shapes::quote(rest), Some((_, b'"')));
    match count {
        0 => usize::from(!ends),
        count if count == nuls => 0,
        _ => end,
    }
}
