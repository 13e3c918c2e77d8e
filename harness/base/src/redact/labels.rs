//! What launchers and container runtimes put before each line: `3: `, `[default0]:`, `[1,0]<stdout>:`, and the time, the
//! stream and the mark of the CRI.

use super::escapes;

/// Longer than what a launcher puts before each line, such as `[1,0]<stdout>:`.
const LONGEST: usize = 64;

/// The length of the label that begins here; blanks behind it belong to the line, but for the one behind a number.
pub(super) fn label(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(first @ (b'[' | b'(' | b'<')) = rest.get(at).copied()
        && at < LONGEST
    {
        match in_brackets(&rest[at..], first) {
            0 => break,
            more => at += more,
        }
    }
    if at > 0 {
        return at + usize::from(rest.get(at) == Some(&b':'));
    }
    let count = |from: usize, class: fn(&u8) -> bool, most: usize| {
        rest[from..].iter().take(most).take_while(|byte| class(byte)).count()
    };
    let blanks = count(0, |byte| *byte == b' ', 8);
    let digits = count(blanks, u8::is_ascii_digit, 8);
    if digits > 0 && rest[blanks + digits..].starts_with(b": ") {
        return blanks + digits + 2;
    }
    // `2026-01-31T12:00:00.123456789Z stdout P `
    let time = count(0, |byte| byte.is_ascii_digit() || b"-:.TZ+".contains(byte), 40);
    let marks = [b" stdout P ".as_slice(), b" stdout F ", b" stderr P ", b" stderr F "];
    let is_marked = time >= 20 && marks.iter().any(|mark| rest[time..].starts_with(mark));
    if is_marked { time + marks[0].len() } else { 0 }
}

/// What stands in brackets at the beginning of a line.
pub(super) fn in_brackets(rest: &[u8], opening: u8) -> usize {
    let closing = match opening {
        b'[' => b']',
        b'(' => b')',
        _ => b'>',
    };
    let inside = rest.iter().take(LONGEST).take_while(|byte| !b"\n\"\\".contains(byte));
    inside.enumerate().find(|(_, byte)| **byte == closing).map_or(0, |(at, _)| at + 1)
}

/// How far the text of a line is indented behind its label, by what stands before a place in it; none without a label.
pub(super) fn labelled_indent(before: &[u8]) -> Option<usize> {
    let begins =
        |at: &usize| before[*at] == b'\n' || before[*at] == b'"' || before[*at..].starts_with(b"\\n");
    let begin = (0..before.len()).rev().find(begins);
    let line = &before[begin.map_or(0, |at| at + 1 + usize::from(before[at] == b'\\'))..];
    let label = label(line);
    let indent = line[label..].iter().take_while(|byte| **byte == b' ').count();
    (label > 0).then_some(indent)
}

/// A value that stands below its name.
#[derive(Clone, Copy)]
pub(super) struct Below {
    pub indent: usize,
    pub is_labelled: bool,
    /// Where it begins.
    pub at: usize,
}

/// A value below the name that `before` leads to; `rest` stands behind the name's colon.
pub(super) fn below(before: &[u8], rest: &[u8]) -> Option<Below> {
    let count = |from: usize, class: fn(&u8) -> bool, most: usize| {
        rest[from..].iter().take(most).take_while(|byte| class(byte)).count()
    };
    let mark = count(0, |byte| b"|>+-".contains(byte), 3);
    let line = mark + count(mark, |byte| *byte == b' ', 4);
    let line = line + Some(escapes::line_break(&rest[line..])).filter(|length| *length > 0)?;
    let blanks = |from: usize| count(from, |byte| matches!(byte, b' ' | b'\t'), 64);
    let label = label(&rest[line..]);
    // A label may begin with blanks.
    if let Some(above) = labelled_indent(before).filter(|_| label > 0) {
        let indent = blanks(line + label);
        return (indent > above).then_some(Below { indent, is_labelled: true, at: line + label + indent });
    }
    let indent = blanks(line);
    (indent > 0).then_some(Below { indent, is_labelled: false, at: line + indent })
}

/// The length of the end of a line and of what the next one begins with, where that is indented so far.
pub(super) fn goes_on(rest: &[u8], line: usize, indent: usize, is_labelled: bool) -> usize {
    let begin = line + if is_labelled { label(&rest[line..]) } else { 0 };
    let blanks = rest[begin..].iter().take(indent).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if blanks == indent { begin + blanks } else { 0 }
}
