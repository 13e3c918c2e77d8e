//! How far a secret goes, once it is known to have begun: byte by byte, so that one of any length needs no memory.
//! `shapes.rs` finds where one begins.

use super::labels::{goes_on, in_brackets};
use super::shapes::{blank_lines, quote, wall};
use super::{escapes, wide};

#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    /// All characters of a kind.
    Of(fn(u8) -> bool),
    /// To the quotation mark behind as many backslashes as the one that opened it.
    Quoted { mark: u8, slashes: usize },
    /// To the end of the line.
    Line,
    /// A word of a line; in a list or a table what follows it stays.
    Plain { in_list: bool },
    /// To the end of the line, or of the text that it is quoted in.
    Header,
    /// A cell of a table.
    Cell,
    /// Lines that are indented so far at least, behind what a launcher puts before each.
    Block { indent: usize, is_labelled: bool },
    /// All fields of a group in braces.
    Group,
    /// Quoted values with commas between them.
    List { mark: u8, slashes: usize },
    /// The lines of a private key, to the one that ends it.
    Key { ending: bool },
    /// Lines of nothing but base64.
    Base64Lines,
    /// A text in base64, and the lines that it goes on in where it was wrapped.
    Wrapped,
    /// Letters with a NUL behind each, to the end of their line; so many NULs end the text.
    Wide { nuls: usize },
}

/// How far behind a line's end a mark may stand that closes what goes over lines.
const CLOSES_WITHIN: usize = 512;
/// Of a private key, and as SSH2 writes it.
const KEY_ENDS: [&[u8]; 2] = [b"-----END", b"---- END"];
/// So long is a line at least that a text in base64 goes on in, but for its last one.
const LEAST_WRAPPED: usize = 16;
const MOST_WRAPPED: usize = 256;

impl Body {
    /// How many of the next bytes belong to it; none where it has ended. `rest` is long enough to see that.
    pub(super) fn eats(&mut self, rest: &[u8]) -> usize {
        let Some(first) = rest.first().copied() else { return 0 };
        let escape = escapes::length(rest);
        if escape > 0 {
            return escape;
        }
        if let Body::Plain { in_list: false } = self
            && let [mark @ (b'"' | b'\''), behind @ ..] = rest
            && begins_text(behind)
        {
            *self = Body::Quoted { mark: *mark, slashes: 0 };
            return 1;
        }
        let has_ended = match self {
            Body::Key { .. } => return self.eats_key(rest),
            Body::Wide { nuls } => return wide::eats(rest, *nuls),
            Body::Block { indent, is_labelled } => return block(rest, *indent, *is_labelled),
            Body::Group => b"}\0".contains(&first),
            Body::List { mark, slashes } => return list(rest, *mark, *slashes),
            Body::Base64Lines if rest.starts_with(b"Private-MAC") => true,
            Body::Base64Lines if escapes::line_break(rest) > 0 => return escapes::line_break(rest),
            Body::Wrapped if escapes::line_break(rest) > 0 => return wrapped(rest),
            Body::Quoted { mark, slashes: 0 } if first == b'\n' => {
                !rest.iter().take(CLOSES_WITHIN).take_while(|byte| **byte != 0).any(|byte| byte == mark)
            }
            _ if first.is_ascii_control() && first != b'\t' => true,
            Body::Of(class) => !class(first),
            Body::Quoted { mark, slashes } => {
                let (mark, slashes) = (*mark, *slashes);
                let eaten = quoted(rest, mark, slashes);
                if eaten > 0 {
                    return eaten;
                }
                let Some((more, body)) = rest_of_word(rest, mark, slashes) else { return 0 };
                *self = body;
                return more;
            }
            Body::Line => false,
            Body::Base64Lines | Body::Wrapped => !is_base64(first),
            Body::Header => ends_text(rest),
            Body::Cell => ends_text(rest) || wall(rest) > 0,
            Body::Plain { in_list } => {
                first.is_ascii_whitespace()
                    || b"\"'`\\<>&".contains(&first)
                    || (*in_list && b",;)]}".contains(&first))
            }
        };
        usize::from(!has_ended)
    }

    /// What belongs to it of the next bytes, as far as `most`.
    pub(super) fn seen<'a>(&self, rest: &'a [u8], most: usize) -> &'a [u8] {
        let mut body = *self;
        let mut end = 0;
        while end < most {
            match body.eats(&rest[end..]) {
                0 => break,
                more => end += more,
            }
        }
        &rest[..end]
    }

    fn eats_key(&mut self, rest: &[u8]) -> usize {
        let Body::Key { ending } = self else { return 0 };
        match (*ending, rest) {
            (true, [b'-', b'-', b'-', b'-', ..]) => {
                // Only these, and one more, end it.
                *self = Body::Of(|byte| byte == b'-');
                4
            }
            (true, [first, ..]) => usize::from(first.is_ascii_alphanumeric()).max(blank_of_key(rest)),
            (false, _) if key_end(rest) > 0 => {
                *ending = true;
                key_end(rest)
            }
            // A line's end, or a letter of base64, in an address or in an annotation of GitHub.
            (false, [b'%', high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => 3,
            // A line's end in an escaped text.
            (false, [b'\\', b'n' | b'r' | b't' | b'\\', ..]) => 2,
            (false, [b'"' | b'\\', ..]) => next_record(rest),
            (false, [first @ (b'[' | b'(' | b'<'), ..]) => in_brackets(rest, *first),
            (false, [first, ..]) => {
                usize::from(first.is_ascii_alphanumeric() || b"+/=:,-._ \n\r\t".contains(first))
            }
            (_, []) => 0,
        }
    }
}

/// The length of what begins the last line of a private key.
fn key_end(rest: &[u8]) -> usize {
    let ends = |end: &&&[u8]| rest.strip_prefix(**end).is_some_and(|more| blank_of_key(more) > 0);
    KEY_ENDS.iter().find(ends).map_or(0, |end| end.len())
}

/// The length of the blank between two words of a private key's first and last line, as addresses write it too.
pub(super) fn blank_of_key(rest: &[u8]) -> usize {
    match rest {
        [b' ' | b'+', ..] => 1,
        [b'%', b'2', b'0', ..] => 3,
        _ => 0,
    }
}

/// How the word of a shell goes on behind the mark that closes a part of it, and the length of what parts the two: `'a'b`,
/// `"a"'b'`, `'a'$'b'`, and `'a'"'"'b'`, as Python quotes a mark.
fn rest_of_word(rest: &[u8], mark: u8, slashes: usize) -> Option<(usize, Body)> {
    let (closing, next) = rest.split_at_checked(slashes + 1)?;
    if begins_text(next) {
        return Some((closing.len(), Body::Plain { in_list: false }));
    }
    let dollar = usize::from(next.first() == Some(&b'$'));
    let (inner, other) = quote(&next[dollar..])?;
    if dollar == 0 && other == mark {
        return None;
    }
    let (opening, behind) = next[dollar..].split_at_checked(inner + 1)?;
    let parted = closing.len() + dollar + opening.len();
    let quoted_mark = [closing, opening, closing].concat();
    if dollar == 0 && behind.starts_with(&quoted_mark) {
        return Some((parted + quoted_mark.len(), Body::Quoted { mark, slashes }));
    }
    begins_text(behind).then_some((parted, Body::Quoted { mark: other, slashes: inner }))
}

/// Whether letters or digits follow without a blank.
fn begins_text(rest: &[u8]) -> bool {
    rest.first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'_')
}

/// Whether the text ends here that something is quoted in, or its line.
fn ends_text(rest: &[u8]) -> bool {
    matches!(rest, [b'"', ..] | [b'\\', b'n' | b'r' | b'"' | b'\\', ..])
}

fn block(rest: &[u8], indent: usize, is_labelled: bool) -> usize {
    let line = escapes::line_break(rest);
    if line == 0 {
        let has_ended = rest.first().is_none_or(|first| first.is_ascii_control() && *first != b'\t');
        return usize::from(!has_ended && !ends_text(rest));
    }
    goes_on(rest, line, indent, is_labelled)
}

fn list(rest: &[u8], mark: u8, slashes: usize) -> usize {
    if rest[0].is_ascii_control() {
        return 0;
    }
    let eaten = quoted(rest, mark, slashes);
    if eaten > 0 {
        return eaten;
    }
    // It ends here; the next one belongs to the list too.
    let mut at = slashes + 1;
    at += blank_lines(rest.get(at..).unwrap_or_default());
    if rest.get(at) != Some(&b',') {
        return 0;
    }
    at += 1;
    at += blank_lines(&rest[at..]);
    if quote(&rest[at..]) == Some((slashes, mark)) { at + slashes + 1 } else { 0 }
}

/// What stands between the text of one record of JSON and that of the next, where each line of a text is a record.
pub(super) fn next_record(rest: &[u8]) -> usize {
    const MOST: usize = 256;
    let Some((slashes, mark)) = quote(rest) else { return 0 };
    let breaks = (slashes + 1..rest.len().min(MOST)).find(|at| escapes::line_break(&rest[*at..]) > 0);
    let Some(mut at) = breaks else { return 0 };
    at += escapes::line_break(&rest[at..]);
    if rest.get(at) != Some(&b'{') || quote(&rest[at + 1..]) != Some((slashes, mark)) {
        return 0;
    }
    at += slashes + 2;
    at += rest[at..]
        .iter()
        .take(MOST)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    // Its name ends, and the text begins.
    for separator in [Some(b':'), None] {
        if quote(&rest[at..]) != Some((slashes, mark)) {
            return 0;
        }
        at += slashes + 1;
        if let Some(separator) = separator {
            if rest.get(at) != Some(&separator) {
                return 0;
            }
            at += 1;
            at += rest[at..].iter().take(4).take_while(|byte| **byte == b' ').count();
        }
    }
    at
}

/// Each level of quotation doubles what stands before a mark, so that the number of backslashes shows to which a mark
/// belongs.
fn quoted(rest: &[u8], mark: u8, slashes: usize) -> usize {
    const MOST: usize = 64;
    let run = rest.iter().take(MOST).take_while(|byte| **byte == b'\\').count();
    if run == MOST {
        return MOST / 2;
    }
    if rest.get(run) != Some(&mark) {
        return run.max(1);
    }
    let inner = run.saturating_sub(slashes);
    let closes = run >= slashes && inner.is_multiple_of(2 * (slashes + 1));
    // A shell goes on where a mark by itself stands between two texts.
    let again = rest[run + 1..].iter().take(MOST).take_while(|byte| **byte == b'\\').count();
    let goes_on = mark == b'\'' && again > 0 && rest[run + 1 + again..].starts_with(b"\'\'");
    match (closes, goes_on) {
        (true, true) => run + 1 + again + 2,
        (true, false) => inner,
        (false, _) => run + usize::from(run > slashes),
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// A line break behind which a line of nothing but base64 follows: a word in a line of its own is none.
fn wrapped(rest: &[u8]) -> usize {
    let end = escapes::line_break(rest);
    let next = &rest[end..];
    let length = next.iter().take(MOST_WRAPPED).take_while(|byte| is_base64(**byte)).count();
    let ends = length == MOST_WRAPPED || next.get(length).is_none_or(|byte| b"\n\r\\\"'".contains(byte));
    let is_one = ends && (length >= LEAST_WRAPPED || next[..length].ends_with(b"="));
    if is_one { end } else { 0 }
}
